//! The owner's account: `GET /me`, `POST /me/buy`, `PUT /me/agent-limits`, `PUT /me/agent-pause`,
//! `PUT /me/seller-name`, `GET /me/purchases/{id}/content`, `POST /me/purchases/{id}/actions`, `POST /me/wallet/withdraw`.

use api_types::{
    AgentPause, Buy, LimitsSet, Me, NewBuyerAction, NewLimits, NewSellerName, SellerNameSet, SubmittedAction,
};
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
    account::{self, RuleChanges},
    checkout::{BuyError, NotRead},
    seller_name::SellerName,
    withdraw::{self, WithdrawError},
};

use crate::{
    app::App,
    body::Json,
    checkout::{self, Ordered},
    error::{ApiError, not_signed_in},
    limits::{AnswerMemory, Counted},
    respond,
    route::{Limit, Route, route},
    routes::{pages, purchases},
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

pub const ROUTES: &[Route] = &[
    route! {
        GET "/me", Limit::Account(Counted::ACCOUNT) => show(Session);
        page Limit::Account(Counted::ACCOUNT) => pages::account(Option<Session>);
        docs |of| of
            .names("getMe", "Account", "Get the account: wallet, limits, purchases, listings")
            .answers::<Me>(200, "The account.")
    },
    route! {
        POST "/me/buy", Limit::Account(Counted::BUY) => buy(Session, Json<Buy>);
        docs |of| of
            .names("buy", "Account", "Buy a listing from the service wallet, within the limits")
            .more("Takes 20 to 60 seconds. A listing that the account already owns is returned without a payment.")
            .answers::<api_types::Bought>(200, "The purchase and its content.")
    },
    route! {
        POST "/me/wallet/withdraw", Limit::Account(Counted::WITHDRAW) => withdraw(Session);
        docs |of| of
            .names("withdraw", "Account", "Send the service wallet's money to its owner")
            .answers::<api_types::Withdrawal>(200, "The withdrawal.")
            .fails(&[400])
    },
    route! {
        PUT "/me/agent-limits", Limit::Account(Counted::ACCOUNT) => set_limits(Session, Json<NewLimits>);
        docs |of| of.names("setAgentLimits", "Account", "Set the spending limits").answers::<LimitsSet>(200, "The limits.")
    },
    route! {
        PUT "/me/agent-pause", Limit::Account(Counted::ACCOUNT) => pause_agents(Session, Json<AgentPause>);
        docs |of| of
            .names("pauseAgents", "Account", "Stop all agents from moving money, or let them go on")
            .answers::<AgentPause>(200, "Whether the agents are paused.")
    },
    route! {
        PUT "/me/seller-name", Limit::Account(Counted::NAME) => set_seller_name(Session, Json<NewSellerName>);
        docs |of| of
            .names("setSellerName", "Account", "Set or remove the display name as a seller")
            .more(
                "The name is shown with the seller's listings, always beside the address: names are not unique and prove nothing.",
            )
            .answers::<SellerNameSet>(200, "The name.")
    },
    route! {
        GET "/me/purchases/{id}/content", Limit::Session => content(Session, TxHash);
        docs |of| of
            .names("getPurchaseContent", "Account", "Get the content of a purchase again")
            .text(200, "text/plain; charset=utf-8", "The content.")
            .fails(&[410])
    },
    route! {
        POST "/me/purchases/{id}/actions", Limit::Account(Counted::ACT) => act(Session, TxHash, Json<NewBuyerAction>);
        docs |of| of
            .names("actOnPurchase", "Account", "Act as the buyer of a purchase from the service wallet")
            .more(
                "The service signs the transaction. Repeating the request returns the same transaction. `POST \
                 /purchases/{id}/action-draft` lists the possible actions and their consequences.",
            )
            .answers::<SubmittedAction>(200, "The transaction, which is submitted or included in a block.")
            .fails(&[403, 409])
    },
];

/// Reads the session's account and its wallet's balance. The returned permit reserves memory until the answer is sent.
/// If the balance is required but unavailable, nothing else is read.
pub async fn read(
    app: &App,
    Session { account, token }: Session,
    needs_balance: bool,
) -> Result<(Me, Result<Lovelace, ChainError>, Permit), ApiError> {
    let wallet = account.wallet_address.to_string();
    let mut balance = app.chain()?.balance_of(&wallet).await;
    if needs_balance {
        balance = Ok(balance?);
    }
    // Memory is reserved last, because this may be the longest of all answers.
    let permit = AnswerMemory::LONG.hold(&app.request).await?;
    let shown = balance.as_ref().copied().unwrap_or_default();
    let me = account::view(&app.database(), &token, shown, app.now_ms).await?.ok_or_else(not_signed_in)?;
    Ok((me, balance, permit))
}

/// Returns the account: wallet, limits, purchases, listings.
async fn show(app: &App, session: Session) -> Result<Response, ApiError> {
    let (me, _, _permit) = read(app, session, true).await?;
    respond::private(&me)
}

/// Sets the spending limits of the account's service wallet.
async fn set_limits(
    app: &App,
    Session { token, .. }: Session,
    Json(new): Json<NewLimits>,
) -> Result<Response, ApiError> {
    let limits = account::limits(new.max_per_payment_ada, new.daily_budget_ada).map_err(ErrorAnswer::bad_request)?;
    let rules = RuleChanges::parse(new.ask_above_ada, new.protected_only, new.min_reputation);
    let rules = rules.map_err(ErrorAnswer::bad_request)?;
    let set = account::set_limits(&app.database(), &token, limits, rules, app.now_ms).await?;
    let set = set.ok_or_else(not_signed_in)?;
    respond::private(&LimitsSet {
        max_per_payment_lovelace: set.max_per_payment,
        daily_budget_lovelace: set.daily_budget,
        ask_above_lovelace: set.ask_above,
        rules: set.rules,
    })
}

/// Pauses or resumes the account's agents.
async fn pause_agents(
    app: &App,
    Session { token, .. }: Session,
    Json(AgentPause { paused }): Json<AgentPause>,
) -> Result<Response, ApiError> {
    let set = account::pause_agents(&app.database(), &token, paused, app.now_ms).await?.ok_or_else(not_signed_in)?;
    respond::private(&AgentPause { paused: set.rules.agents_paused })
}

/// Sets or removes the display name of the account's owner as a seller.
async fn set_seller_name(
    app: &App,
    Session { token, .. }: Session,
    Json(NewSellerName { seller_name }): Json<NewSellerName>,
) -> Result<Response, ApiError> {
    let name = SellerName::read(&seller_name.unwrap_or_default()).map_err(ErrorAnswer::bad_request)?;
    if !account::set_seller_name(&app.database(), &token, name.as_ref(), app.now_ms).await? {
        return Err(not_signed_in().into());
    }
    respond::private(&SellerNameSet { seller_name: name.map(|name| name.as_str().to_owned()) })
}

async fn content(app: &App, Session { account, .. }: Session, id: TxHash) -> Result<Response, ApiError> {
    let bought = checkout::own_purchase(app, &account, &id, true).await??;
    // An unconfirmed payment is not a purchase yet.
    Ok(answer::private_text(bought.content.ok_or(NotRead::Unknown)?))
}

/// Performs a buyer's action on a purchase that the session's service wallet paid for.
async fn act(
    app: &App,
    Session { account, .. }: Session,
    purchase: TxHash,
    Json(NewBuyerAction { action }): Json<NewBuyerAction>,
) -> Result<Response, ApiError> {
    let tx = purchases::perform(app, &account, &purchase, action).await?;
    respond::private(&SubmittedAction { purchase, action, tx })
}

/// Buys a listing from the service wallet.
async fn buy(
    app: &App,
    Session { account, .. }: Session,
    Json(Buy { listing_id, mode, price_lovelace }): Json<Buy>,
) -> Result<Response, ApiError> {
    let error = match checkout::order(app, &account, &listing_id, mode, price_lovelace).await? {
        Ordered::Bought(_, bought) => return respond::private(&bought),
        Ordered::NotBought(_, error) => error,
        Ordered::UnknownListing => BuyError::UnknownListing,
    };
    let answer = if error.is_temporary() { ErrorAnswer::unavailable(error) } else { ErrorAnswer::bad_request(error) };
    Err(answer.into())
}

/// Withdraws the service wallet's money to its owner.
async fn withdraw(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    let key = app.account_key(&account)?;
    let sent = withdraw::withdraw(&app.database(), &app.chain()?, &account, &key, app.now_ms).await;
    let sent = sent.map_err(|error| match error {
        WithdrawError::Port(error) => ApiError::from(error),
        error => ErrorAnswer::bad_request(error).into(),
    })?;
    respond::private(&sent)
}
