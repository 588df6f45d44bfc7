//! `GET /me`, `POST /me/buy`, `PUT /me/agent-limits`, `GET /me/purchases/{id}/content`, `POST /me/purchases/{id}/actions`,
//! `POST /me/wallet/withdraw`

use api_types::{Buy, LimitsSet, NewBuyerAction, NewLimits, SubmittedAction};
use cardano::{
    Lovelace, TxHash,
    chain::{Chain, ChainError},
};
use edge::{
    answer::{self, ErrorAnswer},
    semaphore::Permit,
    serve::Response,
};
use market::{
    account::{self, AccountView, AskAbove},
    checkout::{BuyError, NotRead},
    withdraw::{self, WithdrawError},
};

use crate::{
    app::App,
    body::{self, MAX_BODY},
    checkout::{self, Ordered},
    error::{ApiError, not_signed_in},
    limits::{Counted, Weight},
    respond,
    routes::purchases,
    session::Session,
};

impl From<NotRead> for ApiError {
    fn from(error: NotRead) -> Self {
        match error {
            NotRead::Unavailable(error) => error.into(),
            NotRead::Refunded => ErrorAnswer::new(410, error).into(),
            NotRead::Unknown | NotRead::Failed => ErrorAnswer::not_found(error).into(),
        }
    }
}

/// Reads the session's account and its wallet's balance. The returned permit reserves memory until the answer is sent.
/// If the balance is required but unavailable, nothing else is read.
pub async fn read(
    app: &App,
    needs_balance: bool,
) -> Result<(AccountView, Result<Lovelace, ChainError>, Permit), ApiError> {
    let Session { account, token } = Session::of(app).await?;
    app.limit(Counted::ACCOUNT, &account.owner).await?;
    let wallet = account.wallet_address.to_string();
    let mut balance = app.chain()?.balance_of(&wallet).await;
    if needs_balance {
        balance = Ok(balance?);
    }
    // Last: it may be the longest of all answers.
    let permit = Weight::LONG.hold(&app.request).await?;
    let view = account::view(&app.database(), &token, app.now_ms).await?.ok_or_else(not_signed_in)?;
    Ok((view, balance, permit))
}

/// Returns the account: wallet, limits, purchases, listings.
pub async fn show(app: &App) -> Result<Response, ApiError> {
    let (view, balance, _permit) = read(app, true).await?;
    Ok(answer::private_json(view.json(balance?)))
}

/// Sets the spending limits of the account's service wallet.
pub async fn set_limits(app: &App) -> Result<Response, ApiError> {
    let Session { account, token } = Session::of(app).await?;
    app.limit(Counted::ACCOUNT, &account.owner).await?;
    let NewLimits { max_per_payment_ada, daily_budget_ada, ask_above_ada } = body::read(app, MAX_BODY).await?;
    let limits = account::limits(max_per_payment_ada, daily_budget_ada).map_err(ErrorAnswer::bad_request)?;
    let ask_above = ask_above_ada.map(AskAbove::from_ada).transpose().map_err(ErrorAnswer::bad_request)?;
    let set = account::set_limits(&app.database(), &token, limits, ask_above, app.now_ms).await?;
    let set = set.ok_or_else(not_signed_in)?;
    respond::private(&LimitsSet {
        max_per_payment_lovelace: set.max_per_payment,
        daily_budget_lovelace: set.daily_budget,
        ask_above_lovelace: set.ask_above,
    })
}

/// Returns the content of a purchase.
pub async fn content(app: &App, id: &str) -> Result<Response, ApiError> {
    let Session { account, .. } = Session::of(app).await?;
    let id: TxHash = id.parse().map_err(|_| NotRead::Unknown)?;
    let bought = checkout::own_purchase(app, &account, &id, true).await??;
    // An unconfirmed payment is not a purchase yet.
    Ok(answer::private_text(bought.content.ok_or(NotRead::Unknown)?))
}

/// Performs a buyer's action on a purchase that the session's service wallet paid for.
pub async fn act(app: &App, id: &str) -> Result<Response, ApiError> {
    let Session { account, .. } = Session::of(app).await?;
    let NewBuyerAction { action } = body::read(app, MAX_BODY).await?;
    let purchase = purchases::id(id)?;
    let tx = purchases::perform(app, &account, &purchase, action).await?;
    respond::private(&SubmittedAction { purchase, action, tx })
}

/// Buys a listing from the service wallet.
pub async fn buy(app: &App) -> Result<Response, ApiError> {
    let Session { account, .. } = Session::of(app).await?;
    let Buy { listing_id, mode } = body::read(app, MAX_BODY).await?;
    let error = match checkout::order(app, &account, &listing_id, mode).await? {
        Ordered::Bought(_, bought) => return respond::private(&bought),
        Ordered::NotBought(_, error) => error,
        Ordered::UnknownListing => BuyError::UnknownListing,
    };
    let answer = if error.is_temporary() { ErrorAnswer::unavailable(error) } else { ErrorAnswer::bad_request(error) };
    Err(answer.into())
}

/// Withdraws the service wallet's money to its owner.
pub async fn withdraw(app: &App) -> Result<Response, ApiError> {
    let Session { account, .. } = Session::of(app).await?;
    app.limit(Counted::WITHDRAW, &account.owner).await?;
    let key = app.account_key(&account)?;
    let sent = withdraw::withdraw(&app.database(), &app.chain()?, &account, &key, app.now_ms).await;
    let sent = sent.map_err(|error| match error {
        WithdrawError::Port(error) => ApiError::from(error),
        error => ErrorAnswer::bad_request(error).into(),
    })?;
    respond::private(&sent)
}
