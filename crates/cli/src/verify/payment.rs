//! Checks a payment's draft: to the seller, or into the contract under the seller's signed terms.

#[cfg(test)]
mod tests;

use api_types::Listing;
use blueprint::Blueprint;
use cardano::{
    Address, ContentHash, Lovelace, TxHash, TxRef,
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

use super::{DraftLimits, DraftedTx, NotAsAsked, SigningWallet, common, ensure, must_be_plain, only_to, sign};

/// Maximum fee of a payment. A payment with 32 inputs costs about 0.3 tADA, and the largest possible one less than 1.
const MAX_FEE: Lovelace = Lovelace::from_ada(1);
/// Maximum collateral in a buyer's lock, that is, lovelace locked beyond the price. The buyer gets it back in the end.
const MAX_COLLATERAL: Lovelace = Lovelace::from_ada(5);
/// Maximum distance in ms between the current time and the time at which signed terms were issued.
const MAX_AGE_MS: Millis = 10 * 60_000;

/// The x402 payment payload that comes with an unsigned transaction, except for the transaction itself.
#[derive(Deserialize)]
struct Unpaid {
    accepted: PaymentRequirements,
    payload: Payload,
    #[serde(default)]
    extensions: Map<String, Value>,
}

#[derive(Deserialize)]
struct Payload {
    /// Reference of the spent output that identifies the payer.
    nonce: TxRef,
}

/// A payment whose draft was verified and signed, but not sent.
pub struct SignedDraft {
    pub tx: SignedTx,
    /// The wallet's address that pays and becomes the buyer.
    pub payer: Address,
    /// The offer that this payment accepts: an entry of `accepts` in the 402 response.
    pub accepted: PaymentRequirements,
    /// Address of the seller, or of the contract for a protected purchase.
    pub pay_to: String,
    /// Lovelace paid to `pay_to`.
    pub paid: Lovelace,
    /// The seller's signed terms of a protected purchase; `None` for an instant one.
    pub terms: Option<AuthorizedTerms>,
    /// Whether the transaction commits to the HTTP request that it pays for.
    pub is_committed: bool,
}

/// The purchase that the user asked for, with which a draft is compared.
pub struct RequestedPurchase<'a> {
    pub listing: &'a Listing,
    pub mode: DeliveryMode,
    /// Blueprint of the escrow contract, the only contract that may receive money.
    pub blueprint: &'a Blueprint,
    pub parameters: &'a ProtocolParameters,
    /// Digest of the HTTP request that will carry the payment, and the salt for the commitment to it.
    pub request: (RequestDigest, Salt),
}

/// Checks a draft returned by `POST /listings/{id}/payment-draft`, and signs it.
///
/// # Errors
/// Returns the first difference between the draft and the command.
pub fn payment(
    draft: &DraftedTx,
    requested: &RequestedPurchase<'_>,
    own: &SigningWallet<'_>,
) -> Result<SignedDraft, NotAsAsked> {
    let tx = draft.read()?;
    let unpaid = Unpaid::deserialize(&draft.payment).map_err(|error| NotAsAsked::Terms(error.to_string()))?;
    let Unpaid { accepted, payload, extensions } = unpaid;
    // `None` if the service does not support request commitments.
    let (request, salt) = &requested.request;
    let commitment = request.is_declared_in(&extensions)?.then(|| request.salted(salt));
    let theirs = common(&tx, own, &DraftLimits { parts: &[], escrow: None, most_fee: MAX_FEE, commitment })?;
    ensure(accepted.network == api_types::NETWORK, NotAsAsked::Network)?;
    let (amount, price) =
        (Lovelace::new(accepted.amount.get()).unwrap_or(Lovelace::MAX), requested.listing.price_lovelace);
    ensure(amount == price, NotAsAsked::Amount { paid: amount, asked: price })?;
    // The service would reject a payment of another payer after it is signed.
    let other = || NotAsAsked::Terms("payload.nonce is not an input of the transaction".into());
    ensure(tx.inputs.contains(&payload.nonce), other())?;
    let named = own.utxos.iter().find(|utxo| utxo.reference == payload.nonce);
    let payer: Address = named.and_then(|utxo| utxo.address.parse().ok()).ok_or_else(other)?;
    let (pay_to, paid, terms) = match requested.mode {
        DeliveryMode::Instant => (requested.listing.seller_address.to_string(), instant(&theirs, requested)?, None),
        DeliveryMode::Protected => {
            let (terms, _) =
                authorized(&accepted, (&requested.listing.id, &requested.listing.content_hash), requested.blueprint)?;
            // Later times would lock the money for longer.
            let issued = terms.deadlines().issued_at();
            ensure(issued.is_some_and(|at| at.abs_diff(own.now) <= MAX_AGE_MS), NotAsAsked::Deadlines)?;
            let paid = protected(&theirs, &accepted, requested)?;
            (accepted.pay_to.clone(), paid, Some(terms))
        }
    };
    let tx = sign(&tx, own)?;
    // The rules for locks need the buyer's signature.
    if let Some(terms) = &terms {
        let parameters = requested.parameters;
        let lock = verify_lock(LockFacts { tx: &tx, terms, payer: &payer, parameters, slots: &api_types::SLOTS })?;
        let refund = lock.datum.buyer_payout_address();
        // With a return address, a refund would need an output with a datum, which this program does not sign.
        let is_plain = lock.datum.buyer_return_address.is_none() && lock.datum.buyer == refund;
        let is_home = is_plain && refund == PlutusAddress::from(payer);
        ensure(is_home, NotAsAsked::RefundElsewhere(refund.to_string()))?;
    }
    Ok(SignedDraft { tx, payer, accepted, pay_to, paid, terms, is_committed: commitment.is_some() })
}

fn instant(theirs: &[&Output], requested: &RequestedPurchase<'_>) -> Result<Lovelace, NotAsAsked> {
    let seller = requested.listing.seller_address;
    let output = only_to(theirs, &seller.to_bytes(), &seller.to_string())?;
    must_be_plain(output)?;
    ensure(output.value.assets.is_empty(), NotAsAsked::NotPlain("tokens"))?;
    let (paid, price) = (output.value.lovelace, requested.listing.price_lovelace);
    ensure(paid == price, NotAsAsked::Amount { paid, asked: price })?;
    Ok(paid)
}

/// Checks the output to the contract and returns the locked lovelace. The datum is checked once the transaction is
/// signed.
fn protected(
    theirs: &[&Output],
    accepted: &PaymentRequirements,
    requested: &RequestedPurchase<'_>,
) -> Result<Lovelace, NotAsAsked> {
    let known: PlutusAddress = accepted.pay_to.parse().map_err(|error| NotAsAsked::Terms(format!("payTo: {error}")))?;
    let output = only_to(theirs, &known.to_bytes(), &accepted.pay_to)?;
    let (paid, price) = (output.value.lovelace, requested.listing.price_lovelace);
    ensure(paid >= price, NotAsAsked::Amount { paid, asked: price })?;
    let beside = paid.saturating_sub(price);
    ensure(beside <= MAX_COLLATERAL, NotAsAsked::TooMuchCollateral(beside, MAX_COLLATERAL))?;
    Ok(paid)
}

/// Verifies an entry of `accepts` for a protected purchase. Returns the seller's signed terms for this listing, and the
/// deployment of the contract. The contract's address is not trusted: it is computed from the blueprint and the
/// declared arbiters.
///
/// # Errors
/// Returns an error if the entry declares no contract, pays to another address, is for other content, or differs from
/// the signed terms.
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
    // The script's own output is not needed to verify address and parameters.
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
