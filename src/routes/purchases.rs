//! Purchases and actions on them: `GET /purchases`, `GET /purchases/{id}`, `GET /purchases/{id}/statement`, `POST
//! /purchases/{id}/verification`.

use api_types::{BuyerAction, Error, ErrorCode, Purchase, Verdict};
use cardano::{Address, TxHash};
use edge::{
    answer::ErrorAnswer, chain::Blockfrost, contents::ContentStore, d1::D1, ed25519::WebCrypto, serve::Response,
};
use market::{
    account::Account,
    actions::{ActionError, Actions, Owner, output_with_pending_step},
    payment::{self, PaymentRecord},
    proof::Proof,
    purchase,
};
#[cfg(test)]
use serde_json::json;
use sql::Database;

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    body::Json,
    error::ApiError,
    limits::{AnswerMemory, Counted},
    receipts, respond,
    route::PROOF,
    route::{Argument, Asked, Limit, Route, route},
    routes::pages,
    session::Session,
};

/// The market's actions on purchases, with this worker's adapters for D1, Blockfrost and the content store.
pub type ApiActions<'a> = Actions<'a, D1, Blockfrost, ContentStore>;

/// Maximum number of buyers in a query. Wallets list up to this number of addresses.
const MAX_BUYERS: usize = 100;

/// 404: there is no such purchase.
pub fn unknown() -> ErrorAnswer {
    ErrorAnswer::not_found(Error::new(ErrorCode::UnknownPurchase, "no such purchase"))
}

impl Argument for TxHash {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(asked.parameter.parse().map_err(|_| unknown())?)
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.path("id", "Id of the purchase, which is the id of its payment or lock transaction.").fails(&[404])
    }
}

pub const ROUTES: &[Route] = &[
    route! {
        GET "/purchases", Limit::Client(Counted::SEARCH) => list();
        page Limit::Client(Counted::SEARCH) => pages::sales();
        docs |of| of
            .names("listPurchases", "Purchases", "List a seller's sales, newest first")
            .parameter("query", "seller", true, "The seller's preprod address.", json!({ "type": "string" }))
            .query(
                "buyer",
                "Restricts the result to purchases by this address. Can be repeated up to 100 times.",
                json!({ "type": "string" }),
            )
            .answers::<Vec<Purchase>>(200, "Purchases.")
            .page(200)
            .fails(&[400])
    },
    route! {
        GET "/purchases/{id}", Limit::Client(Counted::READ) => show(TxHash);
        page Limit::Client(Counted::READ) => pages::purchase(TxHash);
        docs |of| of
            .names("getPurchase", "Purchases", "Get a purchase with its events")
            .answers::<Purchase>(200, "The purchase.")
            .page(200)
    },
    route! {
        GET "/purchases/{id}/statement", Limit::Client(Counted::READ) => statement(TxHash);
        docs |of| of
            .names("getPurchaseStatement", "Purchases", "Get a signed statement about a purchase")
            .more("A compact JWS (EdDSA), signed with a key from `/.well-known/did.json`. Its payload is a PurchaseStatement: the listing with content hash and price, and the purchase with its events as known at `issuedAt`.")
            .text(200, "application/jose", "The JWS.")
    },
    route! {
        POST "/purchases/{id}/verification", Limit::Client(Counted::VERDICT) => verify(TxHash, Json<Verdict>);
        docs |of| of
            .names("judgePurchase", "Purchases", "Report whether the delivered content is the listed one")
            .more(
                "Needs a proof signed by the payer, as for unlocking, or a session of the account whose service wallet \
                 paid. If a service wallet paid, `mismatch` also starts a dispute, as long as the contract permits one. \
                 Otherwise a verdict moves no money.",
            )
            .security(&["proof", "session"])
            .answers::<Purchase>(200, "The purchase with the verdict.")
            .fails(&[401, 403])
    },
];

/// Lists a seller's sales. If the query names buyers, lists only their purchases.
async fn list(app: &App) -> Result<Response, ApiError> {
    let _permit = AnswerMemory::LONG.hold(&app.request).await?;
    respond::json(&found(app).await?.1)
}

/// Returns the seller that the request's query names, and the selected sales.
pub async fn found(app: &App) -> Result<(Address, Vec<Purchase>), ApiError> {
    let url = app.request.url()?;
    let named = |wanted: &'static str| {
        let values = url.query_pairs().filter(move |(name, _)| name == wanted);
        values.map(move |(_, value)| {
            value
                .parse::<Address>()
                .map_err(|error| ErrorAnswer::bad_request(Error::of_field(ErrorCode::InvalidAddress, wanted, error)))
        })
    };
    let no_seller = || {
        ErrorAnswer::bad_request(Error::of_field(ErrorCode::MissingField, "seller", "is required (a preprod address)"))
    };
    let seller = named("seller").next().ok_or_else(no_seller)??;
    let buyers = named("buyer").collect::<Result<Vec<_>, _>>()?;
    if buyers.len() > MAX_BUYERS {
        let error = Error::of_field(ErrorCode::TooManyItems, "buyer", format_args!("at most {MAX_BUYERS}"));
        return Err(ErrorAnswer::bad_request(error).into());
    }
    let buyers: Vec<_> = buyers.iter().map(|address| *address.payment_key()).collect();
    Ok((seller, purchase::of_seller(&app.database(), &seller, &buyers).await?))
}

/// Returns a purchase with its events on the chain.
async fn show(app: &App, id: TxHash) -> Result<Response, ApiError> {
    let database = app.database();
    let (output, stored) = database.batch((output_with_pending_step(&id), purchase::read(&id))).await?;
    let purchase = match output {
        None => stored.map(Purchase::from),
        Some(from) => {
            note_failure(app, acting(app, async |actions| actions.follow(&from).await.map_err(ApiError::from)).await);
            purchase::one(&database, &id).await?
        }
    };
    respond::json(&purchase.ok_or_else(unknown)?)
}

/// Returns a statement about the purchase and its listing, signed with the key of the
/// service's receipts.
async fn statement(app: &App, id: TxHash) -> Result<Response, ApiError> {
    let row = app.database().fetch(purchase::read(&id)).await?.ok_or_else(unknown)?;
    let jws = receipts::statement(app, row)?;
    Ok(Response::bytes("application/jose", jws.as_bytes()).with_header("cache-control", "no-store"))
}

/// Calls `run` with the market's [`Actions`], which use this request's database, chain provider and content store.
pub async fn acting<T, E: From<ApiError>>(
    app: &App,
    run: impl AsyncFnOnce(&ApiActions<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let no_contract = "protected purchases are not configured here: there is no escrow";
    let methods = app.methods()?;
    let deployment = methods.deployment().ok_or_else(|| {
        ApiError::from(ErrorAnswer::bad_request(Error::new(ErrorCode::EscrowUnavailable, no_contract)))
    })?;
    let (database, chain, contents) = (app.database(), app.chain()?, app.contents()?);
    let lead = app.settings()?.lead;
    run(&Actions { database: &database, chain: &chain, contents: &contents, deployment, now: app.now_ms, lead }).await
}

/// Records the next event of a purchase if a block already includes its transaction, so that readers need not wait for
/// the watcher. A failure is only logged.
pub async fn catch_up(app: &App, id: &TxHash) {
    if !app.methods().is_ok_and(|methods| methods.deployment().is_some()) {
        return;
    }
    note_failure(app, acting(app, async |actions| actions.catch_up(id).await.map_err(ApiError::from)).await);
}

/// Logs that the events of a purchase could not be read from the chain.
fn note_failure(app: &App, caught_up: Result<(), ApiError>) {
    if let Err(error) = caught_up {
        app.line.note("not caught up", &error.to_string());
    }
}

/// Performs a buyer's action for the account whose service wallet paid. The caller must have authorized the account's
/// owner or agent.
pub async fn perform(app: &App, account: &Account, purchase: &TxHash, action: BuyerAction) -> Result<TxHash, ApiError> {
    let (keys, key) = (app.keys()?, app.account_key(account)?);
    let owner = Owner { account, key: &key, platform: keys.required_seller()? };
    acting(app, async |actions| {
        actions.perform(purchase, action, &owner).await.map_err(|error| {
            if let ActionError::Refused(reason) | ActionError::Later(reason) = &error {
                app.line.note("not submitted", reason);
            }
            ApiError::from(error)
        })
    })
    .await
}

/// Stores a buyer's verdict. It must be signed by the wallet that paid, or sent in a session of the account whose
/// service wallet paid.
async fn verify(app: &App, id: TxHash, Json(verdict): Json<Verdict>) -> Result<Response, ApiError> {
    let database = app.database();
    let bought = database.fetch(payment::by_tx(&id)).await?;
    let bought = bought.filter(PaymentRecord::is_purchase).ok_or_else(unknown)?;
    match app.request.headers().get(PROOF)? {
        Some(proof) => signed_by_payer(app, &proof, &bought).await?,
        None => paid_by_account(app, &bought).await?,
    }
    respond::json(&purchase::verify(&database, &id, verdict.verification).await?.ok_or_else(unknown)?)
}

async fn signed_by_payer(app: &App, header: &str, bought: &PaymentRecord) -> Result<(), ErrorAnswer> {
    let proof = Proof::recent(header, app.now_ms).map_err(ErrorAnswer::forbidden)?;
    if proof.address.payment_key() != bought.payer.payment_key() {
        let text = "only the address that paid may judge the purchase";
        return Err(ErrorAnswer::forbidden(Error::new(ErrorCode::NotYours, text)));
    }
    let digest = proof.unlock_digest(bought.listing_id.as_str());
    proof.check(&WebCrypto, &digest, app.now_ms).await.map_err(ErrorAnswer::forbidden)
}

/// Checks that the session's account paid for a purchase from its service wallet. Only the service holds the key of
/// this wallet, so the session replaces the payer's signature.
async fn paid_by_account(app: &App, bought: &PaymentRecord) -> Result<(), ApiError> {
    let refused = match Session::shown(app).await? {
        Some(Session { account, .. }) if account.wallet_address == bought.payer => return Ok(()),
        Some(_) => "only the account whose Surety balance paid may judge the purchase",
        None => {
            "sign the verdict with the payer's wallet (X-Service-Proof), or sign in to the account whose Surety balance paid"
        }
    };
    Err(ErrorAnswer::forbidden(Error::new(ErrorCode::NotYours, refused)).into())
}
