//! `POST /listings/{id}/payment-draft`: the transaction by which a wallet in somebody's browser or program pays, for its owner
//! to sign. The signed one comes back to the paywall (`GET /listings/{id}/unlock`).

use cardano::{
    chain::{self, Chain},
    tx::build::UnsignedTx,
};
use edge::answer::{self, Fault};
use edge::serve::{Request, Response};
use escrow::Deadlines;
use market::{
    DeliveryMode, ListingId,
    checkout::{self, DraftError, DraftOrder, PaymentDraft},
    cip30::{Cip30Wallet, Described, InvalidWallet},
};
use serde_json::{Map, Value, json};

use crate::{
    app::App,
    body::{FieldError, JsonBody},
    error::ApiError,
    limits::Limiter,
    paywall::{self, Priced},
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
    /// A wallet that cannot be read.
    #[error(transparent)]
    Wallet(#[from] InvalidWallet),
    /// Nothing can be drafted; the text says why and what to do.
    #[error(transparent)]
    NotDrafted(DraftError),
}

/// A payment for a listing. Asks nobody outside but for the protocol's parameters, where this isolate has none.
pub async fn payment(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Limiter::Draft, &request).await?;
    let id: ListingId = id.parse().map_err(|_| DraftingError::UnknownListing)?;
    let body = JsonBody::read_with_wallet(&mut request).await?;
    let mode: DeliveryMode = body.text("mode")?.parse().map_err(|()| DraftingError::Mode)?;
    let wallet = wallet(&body)?;
    let database = app.database()?;
    let priced = paywall::priced(app, &database, &id).await?.filter(|priced| !priced.terms.hidden);
    let Priced { terms, .. } = priced.ok_or(DraftingError::UnknownListing)?;
    let clock = paywall::clock(app, &database).await?;
    let parameters = app.chain()?.protocol_parameters().await?;
    let order = DraftOrder { terms: &terms, mode, nonce: edge::random()?, clock };
    let draft = checkout::draft(&app.methods()?.ways(), &order, &wallet, &parameters).map_err(|error| match error {
        DraftError::Offer(_) | DraftError::CannotPay(_) => Fault::Inconsistent(format!("draft: {error}")).into(),
        error => ApiError::from(DraftingError::NotDrafted(error)),
    })?;
    let payment = json!({
        "x402Version": 2,
        "resource": paywall::resource_info(&terms, paywall::resource_url(&app.public_origin(&request)?, &terms.id)),
        "accepted": draft.offered.requirements,
        "payload": { "nonce": draft.nonce.to_string() },
    });
    let told = [("payment", payment), ("summary", summary(&draft)), ("words", json!(draft.words(clock)))];
    answer(&draft.tx, told)
}

/// The wallet in a body.
fn wallet(body: &JsonBody) -> Result<Cip30Wallet, ApiError> {
    let described = Described {
        change_address: body.text("changeAddress")?,
        utxos: body.texts("utxos")?,
        collateral: body.texts("collateral")?,
        addresses: body.texts("addresses")?,
    };
    if described.utxos.is_empty() {
        return Err(FieldError::Missing("utxos").into());
    }
    Ok(Cip30Wallet::read(&described).map_err(DraftingError::from)?)
}

/// What a wallet needs to sign, and what else is told.
fn answer<const N: usize>(tx: &UnsignedTx, told: [(&str, Value); N]) -> Result<Response, ApiError> {
    let cbor = tx.unsigned_cbor().map_err(|error| Fault::Inconsistent(format!("draft: {error}")))?;
    let signed = [
        ("transaction", json!(hex::encode(cbor))),
        ("txHash", json!(tx.facts().tx_id)),
        ("signers", json!(tx.keys().iter().map(ToString::to_string).collect::<Vec<_>>())),
    ];
    let fields: Map<String, Value> =
        signed.into_iter().chain(told).map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(answer::private_json(Value::Object(fields).to_string())?)
}

fn summary(draft: &PaymentDraft) -> Value {
    let change = draft.change();
    let mut summary = json!({
        "mode": draft.mode,
        "priceLovelace": draft.price,
        "payTo": draft.offered.requirements.pay_to,
        "lockedLovelace": draft.locked,
        "collateralLovelace": draft.locked.saturating_sub(draft.price),
        "feeLovelace": draft.tx.facts().fee,
        "changeLovelace": change.lovelace,
        "changeAddress": draft.change_to,
        "changeAssets": quantities(&change),
        "buyerAddress": draft.buyer,
        "validUntil": draft.valid_until.to_string(),
    });
    if let (Some(summary), Some(deadlines)) = (summary.as_object_mut(), draft.deadlines()) {
        let Deadlines { pay_by, submit_result, unlock, external_dispute_unlock } = deadlines;
        let deadlines = json!({
            "payBy": pay_by.to_string(),
            "submitResult": submit_result.to_string(),
            "unlock": unlock.to_string(),
            "externalDisputeUnlock": external_dispute_unlock.to_string(),
        });
        summary.insert("deadlines".into(), deadlines);
    }
    summary
}

/// Quantities of tokens by their units, as decimal strings.
fn quantities(value: &chain::Value) -> Map<String, Value> {
    value.assets.iter().map(|(unit, quantity)| (unit.clone(), json!(quantity.to_string()))).collect()
}
