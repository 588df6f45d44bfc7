//! `GET /me`, `POST /me/buy`, `PUT /me/agent-limits`, `GET /me/purchases/{id}/content`, `POST /me/wallet/withdraw`

use cardano::{TxHash, chain::Chain};
use edge::ed25519::WebCrypto;
use market::{
    DeliveryMode, ListingId,
    account::{self, Account},
    catalogue,
    checkout::{BuyError, Checkout, Order},
    contents::InDatabase,
    purchase::{self, Owned, Status},
    withdraw::{self, WithdrawError},
};
use serde_json::json;
use sql::{Database, exactly};
use worker::{Request, Response};

use crate::{
    app::App,
    body::Body,
    error::ApiError,
    limits::Limiter,
    paywall::{self, Priced, SCHEDULE},
    respond, session,
};

fn signed_out() -> ApiError {
    ApiError::unauthorized(session::SIGN_IN)
}

/// The account: wallet, limits, purchases, listings.
pub async fn show(app: &App, request: &Request) -> Result<Response, ApiError> {
    let token = session::required(request)?;
    let view = account::view(&app.database()?, &token, app.now_ms()).await?.ok_or_else(signed_out)?;
    let wallet = view.account.wallet_address.to_string();
    let balance = app.chain()?.balance_of(&wallet).await?;
    let wallet = json!({ "address": wallet, "balanceLovelace": balance });
    let limits = json!({
        "maxPerPaymentLovelace": view.account.max_per_payment,
        "dailyBudgetLovelace": view.account.daily_budget,
        "spentTodayLovelace": view.spent_today,
    });
    // The lists are finished JSON: they are put in as they are.
    let body = format!(
        "{{\"owner\":{},\"wallet\":{wallet},\"limits\":{limits},\"purchases\":{},\"listings\":{}{}}}",
        json!(view.account.owner),
        view.purchases,
        view.listings,
        view.figures
    );
    let mut response = respond::json(body)?;
    response.headers_mut().set("cache-control", "no-store")?;
    Ok(response)
}

/// New limits for purchases from the service wallet.
pub async fn set_limits(app: &App, mut request: Request) -> Result<Response, ApiError> {
    let token = session::required(&request)?;
    let database = app.database()?;
    let live = database.run(account::by_session(&token.hash(), app.now_ms())).await?;
    live.first_json::<Account>()?.ok_or_else(signed_out)?;
    let body = Body::read(&mut request).await?;
    let (per_payment, daily) = (body.whole("maxPerPaymentAda")?, body.whole("dailyBudgetAda")?);
    let limits = account::limits(per_payment, daily).map_err(|error| ApiError::bad_request(error.to_string()))?;
    if !account::set_limits(&database, &token, limits, app.now_ms()).await? {
        return Err(signed_out());
    }
    let answer = json!({ "maxPerPaymentLovelace": limits.0, "dailyBudgetLovelace": limits.1 });
    Ok(respond::json(answer.to_string())?)
}

/// What a purchase of the caller's bought.
pub async fn content(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    let token = session::required(request)?;
    let unknown = || ApiError::not_found("no such purchase of yours");
    let id: Option<TxHash> = id.parse().ok();
    let database = app.database()?;
    let session = account::by_session(&token.hash(), app.now_ms());
    let bought = purchase::owner(&id.unwrap_or(TxHash::new([0; 32])));
    let [session, bought] = exactly(database.batch(vec![session, bought]).await?)?;
    let account: Account = session.first_json()?.ok_or_else(signed_out)?;
    let bought: Owned = bought.first_json()?.ok_or_else(unknown)?;
    let buyer = bought.buyer_address;
    if buyer != account.wallet_address && buyer.to_string() != account.owner {
        return Err(unknown());
    }
    if bought.status == Status::Refunded {
        return Err(ApiError::gone("this purchase was refunded: its content is no longer yours"));
    }
    let content = database.run(catalogue::content(&bought.listing_id)).await?.rows.into_iter().next();
    Ok(respond::private_text(content.ok_or_else(unknown)?)?)
}

/// The account of a live session.
async fn account(app: &App, request: &Request) -> Result<Account, ApiError> {
    let token = session::required(request)?;
    let session = app.database()?.run(account::by_session(&token.hash(), app.now_ms())).await?;
    session.first_json()?.ok_or_else(signed_out)
}

/// A purchase paid from the service wallet.
pub async fn buy(app: &App, mut request: Request) -> Result<Response, ApiError> {
    let account = account(app, &request).await?;
    app.limit(Limiter::Buy, &account.owner).await?;
    let body = Body::read(&mut request).await?;
    let (id, mode) = (body.text("listingId")?, body.text("mode")?);
    let mode: DeliveryMode = mode.parse().map_err(|()| ApiError::bad_request("mode: must be instant or protected"))?;
    let unknown = || ApiError::bad_request("listingId: no such listing");
    let id: ListingId = id.parse().map_err(|_| unknown())?;
    let (database, chain, methods) = (app.database()?, app.chain()?, app.methods()?);
    let Priced { terms, clock } = paywall::priced(&database, &id, app.now_ms()).await?.ok_or_else(unknown)?;
    let checkout = Checkout {
        database: &database,
        chain: &chain,
        signatures: &WebCrypto,
        sleep: &app.timer(),
        contents: &InDatabase(&database),
        ways: &methods.ways(),
        now: app.now_ms(),
        clock,
        schedule: &SCHEDULE,
        confirmations: methods.confirmations,
        hung_up: &|| request.inner().signal().aborted(),
    };
    let key = app.account_key(&account)?;
    let nonce = edge::random().map_err(|error| ApiError::internal("randomness", error))?;
    let order = Order { account: &account, key: &key, terms: &terms, mode, nonce };
    let bought = checkout.buy(&order).await.map_err(not_bought)?;
    let content = json!(bought.content);
    let body =
        format!("{{\"purchase\":{},\"content\":{content},\"alreadyOwned\":{}}}", bought.purchase, bought.already_owned);
    let mut response = respond::json(body)?;
    response.headers_mut().set("cache-control", "private, no-store")?;
    Ok(response)
}

fn not_bought(error: BuyError) -> ApiError {
    match error {
        BuyError::Unavailable(error) => error.into(),
        BuyError::Pending(_) => ApiError::unavailable(error.to_string()),
        error => ApiError::bad_request(error.to_string()),
    }
}

/// The service wallet's money, back to its owner.
pub async fn withdraw(app: &App, request: &Request) -> Result<Response, ApiError> {
    let account = account(app, request).await?;
    app.limit(Limiter::Withdraw, &account.owner).await?;
    let key = app.account_key(&account)?;
    let sent = withdraw::withdraw(&app.database()?, &app.chain()?, &account, &key, app.now_ms()).await;
    let sent = sent.map_err(|error| match error {
        WithdrawError::Database(error) => error.into(),
        WithdrawError::Chain(error) => error.into(),
        error => ApiError::bad_request(error.to_string()),
    })?;
    Ok(respond::json(json!({ "tx": sent.tx, "lovelace": sent.lovelace }).to_string())?)
}
