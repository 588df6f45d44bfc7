//! Transactions for wallets in browsers or programs, for their owners to sign.
//!
//! - `POST /listings/{id}/payment-draft`: a payment. The signed one comes to the paywall (`GET /listings/{id}/unlock`).
//! - `POST /purchases/{id}/action-draft`: what a party can do with its escrow, and the transaction for it. The wallet submits
//!   the signed one, and the watcher reads from the chain what it did.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{ActionSummary, ActionTiming, NewActionDraft, NewPaymentDraft, PaymentSummary};
use cardano::{
    TxHash, TxRef,
    chain::{self, Chain},
    tx::build::UnsignedTx,
};
use edge::answer::{ErrorAnswer, Fault};
use edge::serve::{Request, Response};
use escrow::{Action, rules::Timing};
use market::{
    DeliveryMode, ListingId,
    actions::{self, ActionDraft, ActionError, Actions, CurrentEscrow, NoEscrow, PossibleAction, PossibleActions},
    checkout::{self, DraftError, DraftOrder, PaymentDraft},
    cip30::{Cip30Wallet, InvalidWallet, WalletDescription},
};
use serde_json::json;
use x402_cardano::{
    request_commitment::{Commitment, RequestDigest},
    wire::request_binding,
};

use crate::{
    app::App,
    body::{FieldError, WalletBody},
    error::{ApiError, Refused},
    limits::{Counted, Weight},
    paywall::{self, Priced},
    respond,
    routes::purchases::PurchaseError,
};

/// Why there is no draft.
#[derive(Debug, thiserror::Error)]
pub enum DraftingError {
    /// No listing has this id, or the operator hid it.
    #[error("no such listing")]
    UnknownListing,
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
    /// On a local ledger, where every other wallet's coins are elsewhere.
    #[error(
        "utxos: {0} is not on this shop's local ledger: your wallet's coins are on preprod and cannot pay here; choose the Surety \
         test wallet"
    )]
    NotOnLocalLedger(TxRef),
    /// Nothing can be drafted; the text says why and what to do.
    #[error(transparent)]
    NotDrafted(DraftError),
    /// Nothing is sold protected here, so nothing is locked.
    #[error("protected purchases are not configured here: there is no escrow")]
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
            Self::Commitment
            | Self::Action
            | Self::NoContract
            | Self::Wallet(_)
            | Self::NotOnChain(_)
            | Self::NotOnLocalLedger(_)
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

/// A payment for a listing. Asks the provider only for the protocol's parameters, where this isolate has none, and for
/// the output that pays, where the body says `checkInputs`. Pages do: a wallet on another network is told before it
/// signs.
pub async fn payment(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Draft, &request).await?;
    let id: ListingId = id.parse().map_err(|_| DraftingError::UnknownListing)?;
    let body = WalletBody::read(&mut request).await?;
    let Wanted { mode, commitment, check_inputs, .. } = Wanted::of(&body)?;
    let database = app.database();
    let priced = paywall::priced(app, &request, &id).await?.filter(|priced| !priced.terms.hidden);
    let Priced { terms, .. } = priced.ok_or(DraftingError::UnknownListing)?;
    let clock = paywall::clock(app, &database).await?.ms;
    let chain = app.chain(&request)?;
    let parameters = chain.protocol_parameters().await?;
    let digest = paywall::unlock_digest(app, &request, &terms.id);
    // Without an origin nothing could be checked.
    let commitment = commitment.filter(|_| digest.is_some());
    let order = DraftOrder { terms: &terms, mode, nonce: edge::random()?, clock, commitment };
    let Wanted { wallet, .. } = Wanted::of(&body)?;
    let draft =
        checkout::draft(&app.methods()?.options(), &order, &wallet, &parameters).map_err(|error| match error {
            DraftError::Offer(_) | DraftError::CannotPay(_) => Fault::Inconsistent(format!("draft: {error}")).into(),
            error => ApiError::from(DraftingError::NotDrafted(error)),
        })?;
    if check_inputs && !is_unspent(&chain, &draft.nonce).await {
        let local = app.is_on_local_ledger();
        let missing = if local { DraftingError::NotOnLocalLedger } else { DraftingError::NotOnChain };
        return Err(missing(draft.nonce).into());
    }
    let mut extensions = request_binding::offered(&paywall::secret()?);
    extensions.extend(digest.iter().flat_map(RequestDigest::offered));
    let payment = [
        ("x402Version", json!(2)),
        (
            "resource",
            json!(paywall::resource_info(&terms, paywall::resource_url(&app.public_origin(&request)?, &terms.id))),
        ),
        ("accepted", json!(draft.offered.requirements)),
        ("payload", json!({ "nonce": draft.nonce.to_string() })),
        ("extensions", json!(extensions)),
    ];
    let payment = payment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let (transaction, tx_hash, signers) = unsigned(&draft.tx)?;
    let (summary, words) = (summary(&draft), draft.words(clock));
    respond::private(&api_types::PaymentDraft { transaction, tx_hash, signers, payment, summary, words })
}

/// Whether an output is there to be spent, as far as can be told: a provider that does not answer does not prevent signing.
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
        return possible(id, &actions.possible(&id).await.map_err(ActionError::from)?);
    };
    let mut permit = None;
    let read = async || {
        // Until the provider has run the contract.
        permit = Some(Weight::Draft.hold(&request).await?);
        acting_wallet(&body.says()?)
    };
    let draft = actions.draft(&id, action, read).await?;
    drop(permit);
    let (transaction, tx_hash, signers) = unsigned(&draft.tx)?;
    let (summary, words) = (action_summary(&draft), draft.words);
    respond::private(&api_types::ActionDraft { transaction, tx_hash, signers, summary, words })
}

/// How is to be paid, from which wallet, what the transaction has to commit to, and whether its output is looked up.
struct Wanted {
    mode: DeliveryMode,
    wallet: Cip30Wallet,
    commitment: Option<Commitment>,
    check_inputs: bool,
}

impl Wanted {
    fn of(body: &WalletBody) -> Result<Self, ApiError> {
        let NewPaymentDraft { check_inputs, mode, change_address, utxos, collateral, addresses, commitment } =
            body.says()?;
        let commitment = commitment.map(|text| Commitment::parse(&text).ok_or(DraftingError::Commitment));
        Ok(Self {
            mode,
            commitment: commitment.transpose()?,
            wallet: wallet(&change_address, &utxos, collateral.as_deref(), addresses.as_deref())?,
            check_inputs: check_inputs.unwrap_or_default(),
        })
    }
}

/// What is to be done, if anything, by a wallet that can be read.
fn action_of(body: &WalletBody) -> Result<Option<Action>, ApiError> {
    let said: NewActionDraft = body.says()?;
    let action = |name: &str| PARTIES.into_iter().find(|action| action.name() == name).ok_or(DraftingError::Action);
    let action = said.action.as_deref().map(action).transpose()?;
    if action.is_some() {
        acting_wallet(&said)?;
    }
    Ok(action)
}

/// The wallet that is to act.
fn acting_wallet(said: &NewActionDraft) -> Result<Cip30Wallet, ApiError> {
    let NewActionDraft { action: _, change_address, utxos, collateral, addresses } = said;
    let change_address = change_address.as_deref().ok_or(FieldError::Missing("changeAddress"))?;
    let utxos = utxos.as_deref().ok_or(FieldError::Missing("utxos"))?;
    Ok(wallet(change_address, utxos, collateral.as_deref(), addresses.as_deref())?)
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

/// What is not the client's fault is a fault of the service.
impl From<ActionError> for ApiError {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::NoEscrow(NoEscrow::Unknown) => PurchaseError::Unknown.into(),
            ActionError::NoEscrow(NoEscrow::Port(error)) => error.into(),
            error => DraftingError::NotActed(error).into(),
        }
    }
}

fn possible(purchase: TxHash, possible: &PossibleActions) -> Result<Response, ApiError> {
    let (state, open) = match &possible.escrow {
        CurrentEscrow::Ended(status) => (*status, None),
        CurrentEscrow::Open(escrow) => (escrow.datum.state.into(), Some(escrow)),
    };
    respond::private(&api_types::PossibleActions {
        purchase,
        now: possible.now,
        state,
        buyer: open.map(|escrow| escrow.datum.buyer.to_string()),
        seller: open.map(|escrow| escrow.datum.seller.to_string()),
        locked_lovelace: open.map(|escrow| escrow.utxo.value.lovelace),
        actions: possible.actions.iter().map(possible_action).collect(),
    })
}

fn possible_action(it: &PossibleAction) -> api_types::PossibleAction {
    api_types::PossibleAction {
        action: it.action.name().into(),
        by: actions::party(it.by).into(),
        timing: match it.timing {
            Timing::Early(_) => ActionTiming::Early,
            Timing::Open => ActionTiming::Open,
            Timing::Over => ActionTiming::Over,
        },
        opens: it.window.opens,
        closes: it.window.closes,
        fee_lovelace: it.fee,
        words: it.words.clone(),
    }
}

fn action_summary(draft: &ActionDraft) -> ActionSummary {
    let change = draft.change();
    ActionSummary {
        action: draft.action.name().into(),
        by: actions::party(draft.by).into(),
        state: draft.state,
        becomes: draft.becomes,
        fee_lovelace: draft.tx.facts().fee,
        collateral_lovelace: draft.collateral,
        receives_lovelace: draft.receives,
        change_lovelace: change.lovelace,
        change_address: draft.change_to,
        change_assets: quantities(&change),
        valid_until: draft.valid_until,
        closes: draft.closes,
    }
}

/// A wallet as it was described.
fn wallet(
    change_address: &str,
    utxos: &[String],
    collateral: Option<&[String]>,
    addresses: Option<&[String]>,
) -> Result<Cip30Wallet, DraftingError> {
    fn texts(texts: &[String]) -> Vec<&str> {
        texts.iter().map(String::as_str).collect()
    }
    let described = WalletDescription {
        change_address,
        utxos: texts(utxos),
        collateral: collateral.map(texts).unwrap_or_default(),
        addresses: addresses.map(texts).unwrap_or_default(),
    };
    Ok(Cip30Wallet::read(&described)?)
}

/// What a wallet needs to sign: the transaction, its id, and the keys.
fn unsigned(tx: &UnsignedTx) -> Result<(String, TxHash, Vec<String>), ApiError> {
    let cbor = tx.unsigned_cbor().map_err(|error| Fault::Inconsistent(format!("draft: {error}")))?;
    Ok((hex::encode(cbor), tx.facts().tx_id, tx.keys().iter().map(ToString::to_string).collect()))
}

fn summary(draft: &PaymentDraft) -> PaymentSummary {
    let change = draft.change();
    PaymentSummary {
        mode: draft.mode,
        price_lovelace: draft.price,
        pay_to: draft.offered.requirements.pay_to.clone(),
        locked_lovelace: draft.locked,
        collateral_lovelace: draft.locked.saturating_sub(draft.price),
        fee_lovelace: draft.tx.facts().fee,
        change_lovelace: change.lovelace,
        change_address: draft.change_to,
        change_assets: quantities(&change),
        buyer_address: draft.buyer,
        valid_until: draft.valid_until,
        deadlines: draft.deadlines().map(Into::into),
    }
}

/// Quantities of tokens by their units, as decimal strings.
fn quantities(value: &chain::Value) -> BTreeMap<String, String> {
    value.assets.iter().map(|(unit, quantity)| (unit.clone(), quantity.to_string())).collect()
}
