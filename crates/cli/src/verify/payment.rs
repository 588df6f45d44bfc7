//! A payment's draft: straight to the seller, or into the contract under the seller's signed terms.

#[cfg(test)]
mod tests;

use api_types::Listing;
use blueprint::Blueprint;
use cardano::{
    ContentHash, Lovelace, TxHash, TxRef,
    keys::Native,
    params::ProtocolParameters,
    slots::Millis,
    tx::{Output, SignedTx},
};
use escrow::{Deployment, PlutusAddress};
use futures_lite::future::block_on;
use market::DeliveryMode;
use serde::Deserialize;
use serde_json::{Map, Value};
use x402_cardano::{
    escrow::{AuthorizedTerms, DeploymentWire, LockFacts, listing_input_hash, verify_lock},
    request_commitment::{RequestDigest, Salt},
    wire::PaymentRequirements,
};

use super::{Bounds, Draft, NotAsAsked, Own, common, ensure, must_be_plain, only_to, sign};

/// A payment of 32 inputs costs some 0.3 tADA, one of the ledger's largest size less than 1.
const MAX_FEE: Lovelace = Lovelace::from_ada(1);
/// Beyond the price, so that the escrow can be carried forward; it comes back.
const MAX_COLLATERAL: Lovelace = Lovelace::from_ada(5);
/// How long ago, or ahead, terms may be made, for clocks that differ.
const MAX_AGE_MS: Millis = 10 * 60_000;

/// The x402 payload of a draft, which lacks the transaction.
#[derive(Deserialize)]
struct Unpaid {
    accepted: PaymentRequirements,
    payload: Payload,
    #[serde(default)]
    extensions: Map<String, Value>,
}

#[derive(Deserialize)]
struct Payload {
    /// An output that the payment spends.
    nonce: TxRef,
}

/// A draft that is what was asked for, signed and not sent yet.
pub struct SignedDraft {
    pub tx: SignedTx,
    /// The entry of `accepts` that it pays.
    pub accepted: PaymentRequirements,
    /// Where the money goes.
    pub pay_to: String,
    /// What goes there.
    pub paid: Lovelace,
    /// Under which terms, where it is locked.
    pub terms: Option<AuthorizedTerms>,
    /// Whether it commits to its request.
    pub is_committed: bool,
}

/// What was asked for.
pub struct Asked<'a> {
    pub listing: &'a Listing,
    pub mode: DeliveryMode,
    /// The contract that money may be locked in.
    pub blueprint: &'a Blueprint,
    pub parameters: &'a ProtocolParameters,
    /// The request that will bring the payment, and the salt under which it commits to that.
    pub request: (RequestDigest, Salt),
}

/// Judges a draft (`POST /listings/{id}/payment-draft`), and signs it where it is what was asked for.
///
/// # Errors
/// It is not.
pub fn payment(
    draft: &Draft,
    asked: &Asked<'_>,
    own: &Own<'_>,
    key: &cardano::keys::SigningKey,
) -> Result<SignedDraft, NotAsAsked> {
    let tx = draft.read()?;
    let unpaid = Unpaid::deserialize(&draft.payment).map_err(|error| NotAsAsked::Terms(error.to_string()))?;
    let Unpaid { accepted, payload, extensions } = unpaid;
    // Nothing where the service does not check it.
    let (request, salt) = &asked.request;
    let commitment = request.is_declared_in(&extensions)?.then(|| request.salted(salt));
    let theirs = common(&tx, own, &Bounds { parts: &[], escrow: None, most_fee: MAX_FEE, commitment })?;
    ensure(accepted.network == api_types::NETWORK, NotAsAsked::Network)?;
    let (amount, price) = (Lovelace::new(accepted.amount.get()).unwrap_or(Lovelace::MAX), asked.listing.price_lovelace);
    ensure(amount == price, NotAsAsked::Amount { paid: amount, asked: price })?;
    // A payment that names another payer would be refused after it is signed.
    let other = NotAsAsked::Terms("payload.nonce is not an input of the transaction".into());
    ensure(tx.inputs.contains(&payload.nonce), other)?;
    let (pay_to, paid, terms) = match asked.mode {
        DeliveryMode::Instant => (asked.listing.seller_address.to_string(), instant(&theirs, asked)?, None),
        DeliveryMode::Protected => {
            let (terms, _) = authorized(&accepted, (&asked.listing.id, &asked.listing.content_hash), asked.blueprint)?;
            // Times that lie further ahead would hold the money for as long.
            let issued = terms.deadlines().issued_at();
            ensure(issued.is_some_and(|at| at.abs_diff(own.now) <= MAX_AGE_MS), NotAsAsked::Deadlines)?;
            let paid = protected(&theirs, &accepted, asked)?;
            (accepted.pay_to.clone(), paid, Some(terms))
        }
    };
    let tx = sign(&tx, key)?;
    // The rules of the escrow count on the buyer's signature.
    if let Some(terms) = &terms {
        let (payer, parameters) = (&own.address, asked.parameters);
        let lock = verify_lock(LockFacts { tx: &tx, terms, payer, parameters, slots: &api_types::SLOTS })?;
        let refund = lock.datum.buyer_payout_address();
        // With a return address, a refund would have to be an output with a datum, which is not signed later on.
        let is_plain = lock.datum.buyer_return_address.is_none() && lock.datum.buyer == refund;
        let is_home = is_plain && refund == PlutusAddress::from(own.address);
        ensure(is_home, NotAsAsked::RefundElsewhere(refund.to_string()))?;
    }
    Ok(SignedDraft { tx, accepted, pay_to, paid, terms, is_committed: commitment.is_some() })
}

fn instant(theirs: &[&Output], asked: &Asked<'_>) -> Result<Lovelace, NotAsAsked> {
    let seller = asked.listing.seller_address;
    let output = only_to(theirs, &seller.to_bytes(), &seller.to_string())?;
    must_be_plain(output)?;
    ensure(output.value.assets.is_empty(), NotAsAsked::NotPlain("tokens"))?;
    let (paid, price) = (output.value.lovelace, asked.listing.price_lovelace);
    ensure(paid == price, NotAsAsked::Amount { paid, asked: price })?;
    Ok(paid)
}

/// The output at the contract; what its datum says is judged once the transaction is signed.
fn protected(theirs: &[&Output], accepted: &PaymentRequirements, asked: &Asked<'_>) -> Result<Lovelace, NotAsAsked> {
    let known: PlutusAddress = accepted.pay_to.parse().map_err(|error| NotAsAsked::Terms(format!("payTo: {error}")))?;
    let output = only_to(theirs, &known.to_bytes(), &accepted.pay_to)?;
    let (paid, price) = (output.value.lovelace, asked.listing.price_lovelace);
    ensure(paid >= price, NotAsAsked::Amount { paid, asked: price })?;
    let beside = paid.saturating_sub(price);
    ensure(beside <= MAX_COLLATERAL, NotAsAsked::TooMuchLocked(beside, MAX_COLLATERAL))?;
    Ok(paid)
}

/// The terms that the seller signed for this listing, its id and content hash, and the contract that the blueprint makes
/// with the declared arbiters. Its address is derived, not believed.
///
/// # Errors
/// The entry declares no contract, or pays to another address; other content; what the seller did not sign.
pub fn authorized(
    entry: &PaymentRequirements,
    (id, content_hash): (&str, &ContentHash),
    blueprint: &Blueprint,
) -> Result<(AuthorizedTerms, Deployment), NotAsAsked> {
    let extra = entry.extra.escrow().ok_or_else(|| NotAsAsked::Terms("no escrow".into()))?;
    let parameters = extra.deployment.as_ref().and_then(DeploymentWire::parameters);
    let parameters = parameters.ok_or_else(|| NotAsAsked::Terms("no contract is declared".into()))?;
    let script = blueprint.apply(&parameters)?;
    let known = script.address().to_string();
    ensure(known == entry.pay_to, NotAsAsked::Contract { declared: entry.pay_to.clone(), known })?;
    // Where only the address and the parameters are looked at, no output needs to carry the script.
    let deployment = Deployment {
        script_hash: script.hash,
        parameters,
        reference_script: TxRef { tx: TxHash::new([0; 32]), index: 0 },
        reference_script_bytes: 0,
        blueprint_sha256: Some(blueprint.sha256()),
    };
    ensure(extra.terms.input_hash == listing_input_hash(id, content_hash), NotAsAsked::OtherContent)?;
    let terms = block_on(AuthorizedTerms::verify(&Native, entry, &deployment, extra.asset_transfer_method))?;
    Ok((terms, deployment))
}
