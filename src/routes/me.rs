//! `GET /me`, `PUT /me/agent-limits`, `GET /me/purchases/{id}/content`

use cardano::{TxHash, chain::Chain};
use market::{
    account::{self, Account, Limits},
    catalogue,
    database::{Database, outcomes},
    purchase::{self, Owned},
};
use serde_json::json;
use worker::{Request, Response};

use super::auth;
use crate::{app::App, error::ApiError, respond, session};

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
    let limits: Limits = auth::body(&mut request).await?;
    let limits = limits.checked().map_err(|error| ApiError::bad_request(error.to_string()))?;
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
    let [session, bought] = outcomes(database.batch(vec![session, bought]).await?)?;
    let account: Account = session.first_json()?.ok_or_else(signed_out)?;
    let bought: Owned = bought.first_json()?.ok_or_else(unknown)?;
    let buyer = bought.buyer_address;
    if buyer != account.wallet_address && buyer.to_string() != account.owner {
        return Err(unknown());
    }
    if bought.status == "refunded" {
        return Err(ApiError::gone("this purchase was refunded: its content is no longer yours"));
    }
    let content = database.run(catalogue::content(&bought.listing_id)).await?.rows.into_iter().next();
    Ok(respond::private_text(content.ok_or_else(unknown)?)?)
}
