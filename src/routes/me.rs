//! `GET /me`, `POST /me/buy`, `PUT /me/agent-limits`, `GET /me/purchases/{id}/content`, `POST /me/wallet/withdraw`

use api_types::{Bought, Buy, LimitsSet, NewLimits, Withdrawal};
use cardano::{
    ContentHash, Lovelace, TxHash,
    chain::{Chain, ChainError},
};
use edge::serve::{Request, Response};
use edge::{
    answer::{self, ErrorAnswer, Fault},
    http,
    semaphore::Permit,
};
use market::{
    ListingId,
    account::{self, AccountView, LimitsError},
    catalogue, chain_state,
    checkout::{self, BuyError, Order},
    contents::Contents,
    purchase::{self, Owned, Status},
    withdraw::{self, WithdrawError},
};
use sql::{Database, exactly};

use crate::{
    app::App,
    body,
    checkout::Ports,
    error::{ApiError, Refused},
    limits::{self, Counted, Weight},
    paywall::{self, SCHEDULE},
    respond,
    session::Session,
};

/// Why an account is not served as it asked.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// Limits out of range.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// No purchase of the account's has this id.
    #[error("no such purchase of yours")]
    UnknownPurchase,
    /// What was bought was paid back.
    #[error("this purchase was refunded: its content is no longer yours")]
    Refunded,
    /// Nothing to buy under this id.
    #[error("listingId: no such listing")]
    UnknownListing,
    /// Not bought; the text says why and what to do.
    #[error(transparent)]
    NotBought(BuyError),
    /// Paid and not in a block yet, or in the way of other payments: the same call again goes on.
    #[error(transparent)]
    Pending(BuyError),
    /// Not withdrawn; the text says why and what to do.
    #[error(transparent)]
    NotWithdrawn(WithdrawError),
}

impl Refused for AccountError {
    fn answer(&self) -> ErrorAnswer {
        let text = self.to_string();
        match self {
            Self::UnknownPurchase => ErrorAnswer::not_found(text),
            Self::Refunded => ErrorAnswer::gone(text),
            Self::Pending(_) => ErrorAnswer::unavailable(text),
            Self::Limits(_) | Self::UnknownListing | Self::NotBought(_) | Self::NotWithdrawn(_) => {
                ErrorAnswer::bad_request(text)
            }
        }
    }
}

/// The account of the session, and what its wallet holds, if the provider tells; with the place to be kept until the answer is
/// made. Where nothing is answered without the balance, nothing else is read for it.
pub async fn read(
    app: &App,
    request: &Request,
    needs_balance: bool,
) -> Result<(AccountView, Result<Lovelace, ChainError>, Permit), ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let Session { account, token } = Session::of(app, request).await?;
    app.limit(Counted::Account, &account.owner).await?;
    let wallet = account.wallet_address.to_string();
    let mut balance = app.chain(request)?.balance_of(&wallet).await;
    if needs_balance {
        balance = Ok(balance?);
    }
    // Last: it may be the longest of all answers.
    let place = Weight::Long.hold(request).await?;
    let view = account::view(&app.database(), &token, app.now_ms()).await?.ok_or(ApiError::NotSignedIn)?;
    Ok((view, balance, place))
}

/// The account: wallet, limits, purchases, listings.
pub async fn show(app: &App, request: &Request) -> Result<Response, ApiError> {
    let (view, balance, _place) = read(app, request, true).await?;
    Ok(answer::private_json(view.json(balance?))?)
}

/// New limits for purchases from the service wallet.
pub async fn set_limits(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, &request).await?;
    let Session { account, token } = Session::of(app, &request).await?;
    app.limit(Counted::Account, &account.owner).await?;
    let NewLimits { max_per_payment_ada, daily_budget_ada } = body::read(&mut request).await?;
    let limits = account::limits(max_per_payment_ada, daily_budget_ada).map_err(AccountError::from)?;
    if !account::set_limits(&app.database(), &token, limits, app.now_ms()).await? {
        return Err(ApiError::NotSignedIn);
    }
    respond::private(&LimitsSet { max_per_payment_lovelace: limits.0, daily_budget_lovelace: limits.1 })
}

/// What a purchase of the caller's bought.
pub async fn content(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let Session { account, .. } = Session::of(app, request).await?;
    let id: TxHash = id.parse().map_err(|_| AccountError::UnknownPurchase)?;
    let database = app.database();
    let [bought, time] =
        exactly(database.batch(vec![purchase::owned_purchase(&id, &account.keys()), chain_state::read_time()]).await?)?;
    let bought: Option<Owned> = bought.first_json()?;
    let bought = bought.ok_or(AccountError::UnknownPurchase)?;
    if bought.status == Status::Refunded {
        return Err(AccountError::Refunded.into());
    }
    let clock = chain_state::clock(&time, app.now_ms(), app.settings()?.lead)?;
    let chain = app.chain(request)?;
    checkout::ensure_redeliverable(&database, &chain, &bought, app.methods()?.confirmations, clock).await?;
    let missing = || Fault::Inconsistent(format!("{} has no content", bought.listing_id));
    let hash: Option<ContentHash> = database.run(catalogue::content_hash(&bought.listing_id)).await?.first_json()?;
    let content = app.contents(request)?.bought(&hash.ok_or_else(missing)?, &id).await?;
    Ok(answer::private_text(content.ok_or_else(missing)?)?)
}

/// A purchase paid from the service wallet.
pub async fn buy(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, &request).await?;
    let Session { account, .. } = Session::of(app, &request).await?;
    app.limit(Counted::Buy, &account.owner).await?;
    let Buy { listing_id, mode } = body::read(&mut request).await?;
    let id: ListingId = listing_id.parse().map_err(|_| AccountError::UnknownListing)?;
    let _held = http::hold(&request, limits::PURCHASE_BYTES)?;
    let ports = Ports::of(app, &request, &SCHEDULE)?;
    let priced = paywall::priced(app, &request, &id).await?.ok_or(AccountError::UnknownListing)?;
    let terms = &priced.terms;
    let hung_up = || request.inner().signal().aborted();
    let options = ports.options(terms);
    let checkout = ports.checkout(&options, &priced, &hung_up)?;
    let key = app.account_key(&account)?;
    let order = Order { account: &account, key: &key, terms, mode, nonce: edge::random()? };
    let bought = checkout.buy(&order).await.map_err(|error| match error {
        BuyError::NotOffered(_) if terms.hidden => AccountError::UnknownListing.into(),
        error => not_bought(error),
    })?;
    let unread = |error| Fault::Inconsistent(format!("a purchase cannot be read: {error}"));
    respond::private(&Bought {
        purchase: serde_json::from_str(&bought.purchase).map_err(unread)?,
        content: bought.content,
        already_owned: bought.already_owned,
    })
}

fn not_bought(error: BuyError) -> ApiError {
    match error {
        BuyError::Unavailable(error) => error.into(),
        BuyError::Pending(_) | BuyError::EarlierUnresolved(_) | BuyError::SamePurchase | BuyError::Busy => {
            AccountError::Pending(error).into()
        }
        error => AccountError::NotBought(error).into(),
    }
}

/// The service wallet's money, back to its owner.
pub async fn withdraw(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let Session { account, .. } = Session::of(app, request).await?;
    app.limit(Counted::Withdraw, &account.owner).await?;
    let key = app.account_key(&account)?;
    let sent = withdraw::withdraw(&app.database(), &app.chain(request)?, &account, &key, app.now_ms()).await;
    let sent = sent.map_err(|error| match error {
        WithdrawError::Database(error) => ApiError::from(error),
        WithdrawError::Chain(error) => error.into(),
        error => AccountError::NotWithdrawn(error).into(),
    })?;
    respond::private(&Withdrawal { tx: sent.tx, lovelace: sent.lovelace })
}
