//! Transactions for wallets in somebody's browser or program, for their owners to sign.
//!
//! - `POST /listings/{id}/payment-draft`: a payment. The signed one comes to the paywall (`GET /listings/{id}/unlock`).
//! - `POST /purchases/{id}/action-draft`: what a party can do with its escrow, and the transaction for it. The wallet submits
//!   the signed one, and the watcher reads from the chain what it did.

use std::collections::BTreeSet;

use cardano::{
    TxHash, TxRef,
    chain::{self, Chain},
    tx::build::UnsignedTx,
};
use edge::answer::{self, ErrorAnswer, Fault};
use edge::serve::{Request, Response};
use escrow::{Action, rules::Timing};
use market::{
    DeliveryMode, ListingId,
    actions::{self, ActionDraft, ActionError, Actions, CurrentEscrow, NoEscrow, PossibleAction, PossibleActions},
    checkout::{self, DraftError, DraftOrder, PaymentDraft},
    cip30::{Cip30Wallet, InvalidWallet, WalletDescription},
    purchase::Status,
};
use serde_json::{Map, Value, json};
use x402_cardano::{
    request_commitment::{Commitment, RequestDigest},
    wire::request_binding,
};

use crate::{
    app::App,
    body::{FieldError, JsonBody, WalletBody},
    error::{ApiError, Refused},
    limits::{Counted, Weight},
    paywall::{self, Priced},
    routes::purchases::PurchaseError,
};

/// Why there is no draft.
#[derive(Debug, thiserror::Error)]
pub enum DraftingError {
    /// No listing has this id, or the operator hid it.
    #[error("no such listing")]
    UnknownListing,
    /// Not a mode of delivery.
    #[error("mode: must be instant or protected")]
    Mode,
    /// Not a digest.
    #[error("commitment: must be 64 lowercase hexadecimal digits")]
    Commitment,
    /// A wallet that cannot be read.
    #[error(transparent)]
    Wallet(#[from] InvalidWallet),
    /// The output that would pay is not there to be spent: the wallet is on another network, or lags.
    #[error(
        "utxos: {0} is not on preprod to be spent: switch the wallet to preprod; if the money came or went just now, try again \
         after the next block"
    )]
    NotOnChain(TxRef),
    /// Nothing can be drafted; the text says why and what to do.
    #[error(transparent)]
    NotDrafted(DraftError),
    /// Nothing is sold protected here, so nothing is locked.
    #[error("no purchase is protected here: nothing is locked")]
    NoContract,
    /// Not an action.
    #[error(
        "action: must be SetRefundRequested, AuthorizeWithdrawal, WithdrawRefund, SubmitResult, AuthorizeRefund or Withdraw"
    )]
    Action,
    /// Nothing can be done; the text says why and what to do.
    #[error(transparent)]
    NotActed(ActionError),
}

impl Refused for DraftingError {
    fn answer(&self) -> ErrorAnswer {
        let text = self.to_string();
        match self {
            Self::UnknownListing => ErrorAnswer::not_found(text),
            Self::NotActed(error) => acted(error, text),
            Self::Mode
            | Self::Commitment
            | Self::Action
            | Self::NoContract
            | Self::Wallet(_)
            | Self::NotOnChain(_)
            | Self::NotDrafted(_) => ErrorAnswer::bad_request(text),
        }
    }
}

/// Why a party's action is not drafted.
fn acted(error: &ActionError, text: String) -> ErrorAnswer {
    match error {
        ActionError::NotYours { .. } => ErrorAnswer::forbidden(text),
        ActionError::NoEscrow(NoEscrow::Busy) => ErrorAnswer::unavailable(text),
        ActionError::NoEscrow(NoEscrow::Unknown) => ErrorAnswer::not_found(text),
        ActionError::NoEscrow(_)
        | ActionError::Insufficient { .. }
        | ActionError::Collateral { .. }
        | ActionError::Build(_) => ErrorAnswer::bad_request(text),
        ActionError::Ended(_)
        | ActionError::State { .. }
        | ActionError::TooEarly { .. }
        | ActionError::TooLate { .. }
        | ActionError::Refused(_)
        | ActionError::Plan(_) => ErrorAnswer::conflict(text),
    }
}

/// A payment for a listing. Asks nobody outside but for the protocol's parameters, where this isolate has none, and for the
/// output that pays, where the body says `checkInputs`: pages do, so that a wallet on another network is told before it signs.
pub async fn payment(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Draft, &request).await?;
    let id: ListingId = id.parse().map_err(|_| DraftingError::UnknownListing)?;
    let body = WalletBody::read(&mut request).await?;
    let (mode, _, commitment) = payment_of(&body)?;
    let database = app.database();
    let priced = paywall::priced(app, &request, &id).await?.filter(|priced| !priced.terms.hidden);
    let Priced { terms, .. } = priced.ok_or(DraftingError::UnknownListing)?;
    let clock = paywall::clock(app, &database).await?;
    let chain = app.chain(&request)?;
    let parameters = chain.protocol_parameters().await?;
    let digest = paywall::unlock_digest(app, &request, &terms.id);
    // Without an origin nothing could be checked.
    let commitment = commitment.filter(|_| digest.is_some());
    let order = DraftOrder { terms: &terms, mode, nonce: edge::random()?, clock, commitment };
    let (_, wallet, _) = payment_of(&body)?;
    let draft = checkout::draft(&app.methods()?.ways(), &order, &wallet, &parameters).map_err(|error| match error {
        DraftError::Offer(_) | DraftError::CannotPay(_) => Fault::Inconsistent(format!("draft: {error}")).into(),
        error => ApiError::from(DraftingError::NotDrafted(error)),
    })?;
    if body.fields()?.switch("checkInputs")? && !is_unspent(&chain, &draft.nonce).await {
        return Err(DraftingError::NotOnChain(draft.nonce).into());
    }
    let mut extensions = request_binding::offered(&paywall::secret()?);
    extensions.extend(digest.iter().flat_map(RequestDigest::offered));
    let payment = json!({
        "x402Version": 2,
        "resource": paywall::resource_info(&terms, paywall::resource_url(&app.public_origin(&request)?, &terms.id)),
        "accepted": draft.offered.requirements,
        "payload": { "nonce": draft.nonce.to_string() },
        "extensions": extensions,
    });
    let told = [("payment", payment), ("summary", summary(&draft)), ("words", json!(draft.words(clock)))];
    answer(&draft.tx, told)
}

/// Whether an output is there to be spent, as far as can be told: a provider that does not answer keeps nobody from signing.
async fn is_unspent(chain: &impl Chain, reference: &TxRef) -> bool {
    match chain.outputs_among(&reference.tx, &BTreeSet::from([*reference]), 0).await {
        Ok(outputs) => outputs.iter().flatten().any(|output| output.spent_by.is_none()),
        Err(_) => true,
    }
}

/// What can be done with a purchase, or the transaction for one action.
pub async fn action(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Draft, &request).await?;
    let id: TxHash = id.parse().map_err(|_| PurchaseError::Unknown)?;
    let body = WalletBody::read(&mut request).await?;
    let wanted = action_of(&body)?;
    let (database, chain, contents, methods) =
        (app.database(), app.chain(&request)?, app.contents(&request)?, app.methods()?);
    let actions = Actions {
        database: &database,
        chain: &chain,
        contents: &contents,
        deployment: methods.deployment().ok_or(DraftingError::NoContract)?,
        now: app.now_ms(),
        lead: app.settings()?.lead,
    };
    let Some(action) = wanted else {
        return possible(&id, &actions.possible(&id).await.map_err(ActionError::from)?);
    };
    let mut place = None;
    let read = async || {
        // Until the provider has run the contract.
        place = Some(Weight::Draft.hold(&request).await?);
        wallet(&body.fields()?)
    };
    let draft = actions.draft(&id, action, read).await?;
    drop(place);
    answer(&draft.tx, [("summary", action_summary(&draft)), ("words", json!(draft.words))])
}

/// How is to be paid, from which wallet, and what the transaction has to commit to.
fn payment_of(body: &WalletBody) -> Result<(DeliveryMode, Cip30Wallet, Option<Commitment>), ApiError> {
    let fields = body.fields()?;
    let mode = fields.text("mode")?.parse().map_err(|()| DraftingError::Mode)?;
    let commitment = fields.optional_text("commitment")?;
    let commitment = commitment.map(|text| Commitment::parse(text).ok_or(DraftingError::Commitment)).transpose()?;
    Ok((mode, wallet(&fields)?, commitment))
}

/// What is to be done, if anything, by a wallet that can be read.
fn action_of(body: &WalletBody) -> Result<Option<Action>, ApiError> {
    let fields = body.fields()?;
    let action = |name| PARTIES.into_iter().find(|action| action.name() == name).ok_or(DraftingError::Action);
    let action = fields.optional_text("action")?.map(action).transpose()?;
    if action.is_some() {
        wallet(&fields)?;
    }
    Ok(action)
}

/// What parties do themselves.
const PARTIES: [Action; 6] = [
    Action::SetRefundRequested,
    Action::AuthorizeWithdrawal,
    Action::WithdrawRefund,
    Action::SubmitResult,
    Action::AuthorizeRefund,
    Action::Withdraw,
];

/// What is nobody's fault is a fault of ours.
impl From<ActionError> for ApiError {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::NoEscrow(NoEscrow::Unknown) => PurchaseError::Unknown.into(),
            ActionError::NoEscrow(NoEscrow::Database(error)) => error.into(),
            ActionError::NoEscrow(NoEscrow::Chain(error)) => error.into(),
            ActionError::NoEscrow(NoEscrow::Contents(error)) => error.into(),
            error => DraftingError::NotActed(error).into(),
        }
    }
}

fn possible(purchase: &TxHash, possible: &PossibleActions) -> Result<Response, ApiError> {
    let mut told = json!({ "purchase": purchase, "now": possible.now.to_string(), "actions": [] });
    let fields = match &possible.escrow {
        CurrentEscrow::Ended(status) => json!({ "state": status }),
        CurrentEscrow::Open(escrow) => json!({
            "state": Status::from(escrow.datum.state).name(),
            "buyer": escrow.datum.buyer.to_string(),
            "seller": escrow.datum.seller.to_string(),
            "lockedLovelace": escrow.utxo.value.lovelace,
            "actions": possible.actions.iter().map(possible_action).collect::<Vec<_>>(),
        }),
    };
    if let (Some(told), Value::Object(fields)) = (told.as_object_mut(), fields) {
        told.extend(fields);
    }
    Ok(answer::private_json(told.to_string())?)
}

fn possible_action(it: &PossibleAction) -> Value {
    let timing = match it.timing {
        Timing::Early(_) => "early",
        Timing::Open => "open",
        Timing::Over => "over",
    };
    let fields = [
        ("action", json!(it.action.name())),
        ("by", json!(actions::party(it.by))),
        ("timing", json!(timing)),
        ("opens", json!(it.window.opens.to_string())),
        ("closes", json!(it.window.closes.map(|at| at.to_string()))),
        ("feeLovelace", json!(it.fee)),
        ("words", json!(it.words)),
    ];
    present(fields)
}

/// The fields that there are.
fn present<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

fn action_summary(draft: &ActionDraft) -> Value {
    let change = draft.change();
    present([
        ("action", json!(draft.action.name())),
        ("by", json!(actions::party(draft.by))),
        ("state", json!(draft.state)),
        ("becomes", json!(draft.becomes)),
        ("feeLovelace", json!(draft.tx.facts().fee)),
        ("collateralLovelace", json!(draft.collateral)),
        ("receivesLovelace", json!(draft.receives)),
        ("changeLovelace", json!(change.lovelace)),
        ("changeAddress", json!(draft.change_to)),
        ("changeAssets", Value::Object(quantities(&change))),
        ("validUntil", json!(draft.valid_until.to_string())),
        ("closes", json!(draft.closes.map(|at| at.to_string()))),
    ])
}

/// The wallet in a body.
fn wallet(body: &JsonBody) -> Result<Cip30Wallet, ApiError> {
    let described = WalletDescription {
        change_address: body.text("changeAddress")?,
        utxos: body.texts("utxos")?.ok_or(FieldError::Missing("utxos"))?,
        collateral: body.texts("collateral")?.unwrap_or_default(),
        addresses: body.texts("addresses")?.unwrap_or_default(),
    };
    Ok(Cip30Wallet::read(&described).map_err(DraftingError::from)?)
}

/// What a wallet needs to sign, and what is told of it.
fn answer<const N: usize>(tx: &UnsignedTx, told: [(&str, Value); N]) -> Result<Response, ApiError> {
    let cbor = tx.unsigned_cbor().map_err(|error| Fault::Inconsistent(format!("draft: {error}")))?;
    let signed = [
        ("transaction", json!(hex::encode(cbor))),
        ("txHash", json!(tx.facts().tx_id)),
        ("signers", json!(tx.keys().iter().map(ToString::to_string).collect::<Vec<_>>())),
    ];
    Ok(answer::private_json(Value::from_iter(signed.into_iter().chain(told)).to_string())?)
}

fn summary(draft: &PaymentDraft) -> Value {
    let change = draft.change();
    let deadlines = draft.deadlines().map(|deadlines| {
        json!({
            "payBy": deadlines.pay_by.to_string(),
            "submitResult": deadlines.submit_result.to_string(),
            "unlock": deadlines.unlock.to_string(),
            "externalDisputeUnlock": deadlines.external_dispute_unlock.to_string(),
        })
    });
    present([
        ("mode", json!(draft.mode)),
        ("priceLovelace", json!(draft.price)),
        ("payTo", json!(draft.offered.requirements.pay_to)),
        ("lockedLovelace", json!(draft.locked)),
        ("collateralLovelace", json!(draft.locked.saturating_sub(draft.price))),
        ("feeLovelace", json!(draft.tx.facts().fee)),
        ("changeLovelace", json!(change.lovelace)),
        ("changeAddress", json!(draft.change_to)),
        ("changeAssets", Value::Object(quantities(&change))),
        ("buyerAddress", json!(draft.buyer)),
        ("validUntil", json!(draft.valid_until.to_string())),
        ("deadlines", json!(deadlines)),
    ])
}

/// Quantities of tokens by their units, as decimal strings.
fn quantities(value: &chain::Value) -> Map<String, Value> {
    value.assets.iter().map(|(unit, quantity)| (unit.clone(), json!(quantity.to_string()))).collect()
}
