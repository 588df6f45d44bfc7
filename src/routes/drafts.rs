//! Drafts transactions for wallets to sign.
//!
//! - `POST /listings/{id}/payment-draft`: drafts a payment. Once signed, it is sent to the paywall (`GET
//!   /listings/{id}/unlock`).
//! - `POST /purchases/{id}/action-draft`: lists the possible actions on an escrow, or drafts a transaction for one of
//!   them. The wallet submits the signed transaction, and the watcher finds it on the chain.

use std::collections::BTreeSet;

use api_types::{Error, ErrorCode, NewActionDraft, NewPaymentDraft};
use cardano::{TxHash, TxRef, chain::Chain, tx::build::UnsignedTx};
use edge::{
    answer::{ErrorAnswer, Fault},
    serve::Response,
};
use escrow::Action;
use market::{
    ListingId,
    actions::{ActionDraft, ActionError, NoEscrow},
    checkout::{self, DraftOrder, PaymentDraft, PaymentDraftError},
    cip30::{Cip30Wallet, WalletDescription},
};
use serde_json::json;
use x402_cardano::{request_commitment::Commitment, wire::request_binding};

use crate::{
    app::App,
    body::{FieldError, WalletBody},
    error::ApiError,
    limits::{AnswerMemory, Counted},
    paywall,
    read_cache::{self, ChainClock, Priced},
    respond,
    route::{Limit, Route, route},
    routes::{
        listings,
        purchases::{self, ApiActions},
    },
};

pub const ROUTES: &[Route] = &[
    route! {
        POST "/listings/{id}/payment-draft", Limit::Client(Counted::DRAFT) =>
            payment(ListingId, WalletBody<NewPaymentDraft>);
        docs |of| of
            .names("draftPayment", "Paid content", "Draft a payment for a wallet to sign")
            .more("For clients that do not build transactions themselves. Sign the drafted transaction, put it into `payment.payload.transaction`, and send `payment` to the paywall in the header `PAYMENT-SIGNATURE`.")
            .answers::<api_types::PaymentDraft>(200, "The draft.")
    },
    route! {
        POST "/purchases/{id}/action-draft", Limit::Client(Counted::DRAFT) => action(TxHash, WalletBody<NewActionDraft>);
        docs |of| of
            .names("draftAction", "Purchases", "List the actions on a protected purchase, or draft one for a wallet to sign")
            .more("Without `action`, the answer lists the actions that the contract allows each party, with their times and fees. With `action`, the answer is a transaction to sign and submit.")
            .answers::<api_types::Actions>(200, "The possible actions, or the draft of the requested one.")
            .fails(&[403, 409])
    },
];

/// Maps errors that the client did not cause to faults of the service.
impl From<ActionError> for ApiError {
    fn from(error: ActionError) -> Self {
        let answer = match error {
            ActionError::NoEscrow(NoEscrow::Port(error)) => return error.into(),
            ActionError::NoEscrow(NoEscrow::Unknown) => purchases::unknown(),
            ActionError::NoEscrow(NoEscrow::Busy) | ActionError::Later(_) => ErrorAnswer::unavailable(error),
            ActionError::NotYours { .. } | ActionError::OwnWallet(_) => ErrorAnswer::forbidden(error),
            ActionError::NoEscrow(NoEscrow::Instant | NoEscrow::OtherContract)
            | ActionError::Insufficient { .. }
            | ActionError::Collateral { .. }
            | ActionError::Build(_) => ErrorAnswer::bad_request(error),
            ActionError::Ended(_)
            | ActionError::NotNow { .. }
            | ActionError::OnItsWay(_)
            | ActionError::State { .. }
            | ActionError::TooEarly { .. }
            | ActionError::TooLate { .. }
            | ActionError::Refused(_)
            | ActionError::Plan(_) => ErrorAnswer::conflict(error),
        };
        answer.into()
    }
}

/// Drafts a payment for a listing.
///
/// The provider is asked for the protocol parameters, if they are not cached. If the body sets `checkInputs`, the
/// provider is also asked whether one of the wallet's outputs is unspent. Our pages set it, to detect a wallet on
/// another network before it signs.
async fn payment(app: &App, id: ListingId, body: WalletBody<NewPaymentDraft>) -> Result<Response, ApiError> {
    let priced = read_cache::priced(app, &id).await?.filter(|priced| !priced.terms.hidden);
    let Priced { terms, .. } = priced.ok_or_else(listings::unknown)?;
    let clock = ChainClock::read(app).await?.ms;
    let chain = app.chain()?;
    let parameters = chain.protocol_parameters().await?;
    let digest = paywall::unlock_digest(app, &terms.id);
    // Parsed last, so that a request that waits for the provider holds only the body in memory.
    let NewPaymentDraft { check_inputs, mode, change_address, utxos, collateral, addresses, commitment } =
        body.parse()?;
    let wallet = wallet(&change_address, &utxos, collateral.as_deref(), addresses.as_deref())?;
    let malformed = || {
        let rule = "must be 64 lowercase hexadecimal digits";
        ErrorAnswer::bad_request(Error::of_field(ErrorCode::InvalidValue, "commitment", rule))
    };
    let commitment = commitment.map(|text| Commitment::parse(&text).ok_or_else(malformed)).transpose()?;
    // Without an origin, commitments cannot be verified.
    let commitment = commitment.filter(|_| digest.is_some());
    let order = DraftOrder { terms: &terms, mode, nonce: edge::random()?, clock, commitment };
    let draft =
        checkout::draft(&app.methods()?.options(), &order, &wallet, &parameters).map_err(|error| match error {
            PaymentDraftError::Offer(_) | PaymentDraftError::CannotPay(_) => {
                ApiError::from(Fault::inconsistent("draft")(error))
            }
            error => ErrorAnswer::bad_request(error).into(),
        })?;
    if check_inputs == Some(true) && !is_unspent(&chain, &draft.nonce).await {
        return Err(not_there(app, &draft.nonce).into());
    }
    let mut extensions = request_binding::offered(&paywall::secret()?);
    if let Some(digest) = digest {
        extensions.extend(digest.offered());
    }
    let resource = paywall::resource_url(&app.public_origin()?, &terms.id);
    let payment = [
        ("x402Version", json!(2)),
        ("resource", json!(paywall::resource_info(&terms, resource))),
        ("accepted", json!(draft.offered.requirements)),
        ("payload", json!({ "nonce": draft.nonce.to_string() })),
        ("extensions", json!(extensions)),
    ];
    let payment = payment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let (transaction, tx_hash, signers) = unsigned(&draft.tx)?;
    let PaymentDraft { summary, words, .. } = draft;
    respond::private(&api_types::PaymentDraft { transaction, tx_hash, signers, payment, summary, words })
}

/// 400: an output of the wallet does not exist on this network. The wallet is on another network, or has not
/// synchronized.
fn not_there(app: &App, output: &TxRef) -> ErrorAnswer {
    let why = if app.is_on_local_ledger() {
        "is not on this shop's local ledger: your wallet's coins are on preprod and cannot pay here; choose the Surety \
         test wallet"
    } else {
        "is not on preprod to be spent: switch the wallet to preprod; if the money came or went just now, try again \
         after the next block"
    };
    ErrorAnswer::bad_request(Error::of_field(ErrorCode::OutputNotFound, "utxos", format_args!("{output} {why}")))
}

/// Returns whether an output is unspent. If the provider fails, the output is assumed to be unspent.
async fn is_unspent(chain: &impl Chain, reference: &TxRef) -> bool {
    match chain.outputs_among(&reference.tx, &BTreeSet::from([*reference]), 0).await {
        Ok(outputs) => outputs.iter().flatten().any(|output| output.spent_by.is_none()),
        Err(_) => true,
    }
}

/// Actions on an escrow that its buyer or seller may perform.
const PARTIES: [Action; 6] = [
    Action::SetRefundRequested,
    Action::AuthorizeWithdrawal,
    Action::WithdrawRefund,
    Action::SubmitResult,
    Action::AuthorizeRefund,
    Action::Withdraw,
];

/// Lists the possible actions on a purchase, or drafts one.
async fn action(app: &App, id: TxHash, body: WalletBody<NewActionDraft>) -> Result<Response, ApiError> {
    let Some(action) = action_of(&body)? else {
        purchases::catch_up(app, &id).await;
        let possible =
            async |actions: &ApiActions<'_>| Ok::<_, ApiError>(actions.possible(&id).await.map_err(ActionError::from)?);
        return respond::private(&purchases::acting(app, possible).await?);
    };
    let mut permit = None;
    let read = async || {
        // Held until the provider has evaluated the contract.
        permit = Some(AnswerMemory::DRAFT.hold(&app.request).await?);
        acting_wallet(&body.parse()?)
    };
    let draft: ActionDraft = purchases::acting(app, async |actions| actions.draft(&id, action, read).await).await?;
    drop(permit);
    let (transaction, tx_hash, signers) = unsigned(&draft.tx)?;
    let ActionDraft { summary, words, .. } = draft;
    respond::private(&api_types::ActionDraft { transaction, tx_hash, signers, summary, words })
}

/// Returns the action that the body requests, or `None` if it requests none. With an action, the body must have a valid
/// wallet.
fn action_of(body: &WalletBody<NewActionDraft>) -> Result<Option<Action>, ApiError> {
    let said = body.parse()?;
    let Some(name) = &said.action else { return Ok(None) };
    let action = PARTIES.into_iter().find(|action| action.name() == name).ok_or_else(|| {
        let names = PARTIES.map(|action| action.name()).join(", ");
        let rule = format_args!("must be one of {names}");
        ErrorAnswer::bad_request(Error::of_field(ErrorCode::InvalidValue, "action", rule))
    })?;
    acting_wallet(&said)?;
    Ok(Some(action))
}

/// Returns the wallet that performs the action.
fn acting_wallet(said: &NewActionDraft) -> Result<Cip30Wallet, ApiError> {
    let change_address = said.change_address.as_deref().ok_or(FieldError::Missing("changeAddress".into()))?;
    let utxos = said.utxos.as_deref().ok_or(FieldError::Missing("utxos".into()))?;
    Ok(wallet(change_address, utxos, said.collateral.as_deref(), said.addresses.as_deref())?)
}

/// Parses the wallet's outputs and addresses in a body.
fn wallet(
    change_address: &str,
    utxos: &[String],
    collateral: Option<&[String]>,
    addresses: Option<&[String]>,
) -> Result<Cip30Wallet, ErrorAnswer> {
    fn texts(texts: &[String]) -> Vec<&str> {
        texts.iter().map(String::as_str).collect()
    }
    let described = WalletDescription {
        change_address,
        utxos: texts(utxos),
        collateral: collateral.map(texts).unwrap_or_default(),
        addresses: addresses.map(texts).unwrap_or_default(),
    };
    Cip30Wallet::read(&described).map_err(ErrorAnswer::bad_request)
}

/// Returns an unsigned transaction in hexadecimal, its id, and the key hashes that must sign.
fn unsigned(tx: &UnsignedTx) -> Result<(String, TxHash, Vec<String>), ApiError> {
    let cbor = tx.unsigned_cbor().map_err(Fault::inconsistent("draft"))?;
    Ok((hex::encode(cbor), tx.facts().tx_id, tx.keys().iter().map(ToString::to_string).collect()))
}
