//! Evidence of a purchase: one file of public facts that hold together, and that anyone can check.
//!
//! ```text
//! listing <──commits to── quote, signed by the seller <──repeated in── lock's datum
//!                                                                       │ spent by
//!                                                        step ──> step ──> end: paid, refunded, or as the arbiters signed
//! ```
//!
//! [`check`] reads the file alone. That the steps are on the chain, and that none is missing, only the chain can say
//! ([`crate::evidence`]).

mod receipt;

use blueprint::Blueprint;
use cardano::{
    Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef,
    keys::Native,
    slots::Millis,
    tx::{SignedTx, TransactionUtxos, TxPart},
};
use escrow::{
    AdminSignature, AssetValue, Datum, Deployment, PlutusAddress, Redeemer,
    admin::suffice,
    dispute::DisputeWithdrawal,
    evidence::Winner,
    plan::Escrow,
    result::result_hash,
    rules::Rule,
    spend::{Ending, Spent},
};
use futures_lite::future::block_on;
use market::DeliveryMode;
use pallas_codec::minicbor;
use pallas_primitives::conway::{RedeemerTag, Redeemers};
use serde::{Deserialize, Serialize};
use x402_cardano::wire::PaymentRequirements;

pub use receipt::Receipt;

use super::{NotAsAsked, payment::authorized};

/// The version of the file.
pub const VERSION: u8 = 1;

/// All that the file has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub version: u8,
    pub listing: ListingFacts,
    pub purchase: PurchaseFacts,
    /// Of a protected purchase: the terms that the seller signed, as the 402 offered them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<PaymentRequirements>,
    /// The payment, or the lock and each transaction of its escrow, in the chain's order.
    pub steps: Vec<Step>,
    /// Where arbiters settled a dispute: what they signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the service signed when it delivered, where the buyer kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// What was for sale.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListingFacts {
    pub id: String,
    /// SHA-256 of what is sold.
    pub content_hash: ContentHash,
    pub price_lovelace: Lovelace,
    /// Who is paid, of an instant purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_address: Option<Address>,
}

/// What was bought, and how it stands.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PurchaseFacts {
    /// The payment's or the lock's transaction id.
    pub id: TxHash,
    pub mode: DeliveryMode,
    pub buyer_address: Address,
    pub status: String,
}

/// A transaction, and how it left the purchase.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    pub tx_hash: TxHash,
    pub status: String,
    /// The block's number.
    pub height: u64,
    /// The block's time, POSIX ms.
    pub at: Millis,
    /// Hex of the datum in the escrow that it made, where it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datum: Option<String>,
    /// SHA-256 of the bytes in `cbor`.
    pub sha256: ContentHash,
    /// Hex of the transaction.
    pub cbor: String,
}

/// What arbiters signed of a disputed escrow.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// Who got the money; nothing where both got as much.
    pub winner: Option<Winner>,
    pub buyer_lovelace: Lovelace,
    pub seller_lovelace: Lovelace,
    /// The keys that signed.
    pub arbiters: Vec<KeyHash>,
}

/// The part of the file that does not hold, and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {why}")]
pub struct Flaw {
    pub part: String,
    pub why: String,
}

/// The arbiter's three checks, as far as the file and the content show them.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// The escrow commits to this listing. Instant purchases have no escrow.
    pub escrow_is_for_listing: Option<bool>,
    /// The result that the seller posted is of this content. Nothing without content or result.
    pub output_is_what_seller_posted: Option<bool>,
    /// The content is what was listed. Nothing without content.
    pub output_matches_listing: Option<bool>,
}

/// What a file shows that holds together.
pub struct Shown {
    pub checks: Checks,
    /// The statuses after the steps, with the datums of the escrows that they made.
    pub steps: Vec<(String, Option<Vec<u8>>)>,
    pub decision: Option<Decision>,
    /// The output that is the escrow now.
    pub open: Option<TxRef>,
}

pub fn flaw(part: impl Into<String>, why: impl Into<String>) -> Flaw {
    Flaw { part: part.into(), why: why.into() }
}

pub fn ensure(holds: bool, part: impl Into<String>, why: &str) -> Result<(), Flaw> {
    if holds { Ok(()) } else { Err(flaw(part, why)) }
}

/// A step's transaction.
struct ReadStep {
    tx: SignedTx,
    utxos: TransactionUtxos,
}

/// Holds a file together, and against the content where that is given.
///
/// # Errors
/// The first part that does not hold.
pub fn check(evidence: &Evidence, blueprint: &Blueprint, content: Option<&[u8]>) -> Result<Shown, Flaw> {
    let Evidence { version, listing, purchase, steps, .. } = evidence;
    ensure(*version == VERSION, "version", "this program reads version 1")?;
    let shown = shown(evidence, blueprint, content)?;
    for (index, (step, (status, datum))) in steps.iter().zip(&shown.steps).enumerate() {
        ensure(step.status == *status, format!("steps[{index}].status"), &format!("the transaction left {status}"))?;
        let same = step.datum == datum.as_ref().map(hex::encode);
        ensure(same, format!("steps[{index}].datum"), "the transaction made another escrow")?;
    }
    let last = shown.steps.last().map(|(status, _)| status);
    ensure(last == Some(&purchase.status), "purchase.status", "the last step left another")?;
    ensure(evidence.decision == shown.decision, "decision", "the last transaction divides the money otherwise")?;
    if let Some(receipt) = &evidence.receipt {
        receipt.check(&purchase.id, &listing.id, &purchase.buyer_address)?;
    }
    Ok(shown)
}

/// What the transactions of a file show, whatever it says beside them of statuses, datums and decision.
///
/// # Errors
/// The first part that does not hold.
pub fn shown(evidence: &Evidence, blueprint: &Blueprint, content: Option<&[u8]>) -> Result<Shown, Flaw> {
    let Evidence { listing, purchase, quote, steps, .. } = evidence;
    let read = steps.iter().enumerate().map(|(index, step)| read(index, step)).collect::<Result<Vec<_>, _>>()?;
    let ordered = steps.is_sorted_by(|before, after| before.height <= after.height && before.at <= after.at);
    ensure(ordered, "steps", "a transaction's block is older than that of the one before it")?;
    let (first, rest) = read.split_first().ok_or_else(|| flaw("steps", "there is no transaction"))?;
    ensure(first.tx.id == purchase.id, "purchase.id", "the first transaction is another")?;
    let buyer = purchase.buyer_address.payment_key();
    let signed = first.tx.vkey_witnesses.iter().any(|witness| witness.key_hash() == *buyer);
    ensure(signed, "purchase.buyerAddress", "its payment key did not sign the payment")?;
    let listed = content.map(|content| ContentHash::of(content) == listing.content_hash);
    match (purchase.mode, quote) {
        (DeliveryMode::Instant, None) => {
            ensure(rest.is_empty(), "steps", "an instant purchase has one transaction")?;
            pays_seller(listing, &first.utxos)?;
            let checks = Checks { output_matches_listing: listed, ..Checks::default() };
            Ok(Shown { checks, steps: vec![("settled".into(), None)], decision: None, open: None })
        }
        (DeliveryMode::Protected, Some(quote)) => {
            let (lock, deployment) = lock(evidence, quote, blueprint, first)?;
            let (mut shown, result) = follow(lock, &deployment, rest)?;
            shown.checks.output_matches_listing = listed;
            if let (Some(content), Some(result)) = (content, result) {
                let text = std::str::from_utf8(content).ok();
                let posted = text.is_some_and(|text| result == result_hash(&purchase.id, text).as_bytes());
                shown.checks.output_is_what_seller_posted = Some(posted);
            }
            Ok(shown)
        }
        _ => Err(flaw("quote", "a protected purchase has one, and an instant one has none")),
    }
}

/// A step's transaction, with its signatures checked.
fn read(index: usize, step: &Step) -> Result<ReadStep, Flaw> {
    let part = format!("steps[{index}].cbor");
    let bytes = hex::decode(&step.cbor).map_err(|error| flaw(&part, error.to_string()))?;
    ensure(hex::encode(&bytes) == step.cbor, &part, "it is not in lowercase")?;
    ensure(ContentHash::of(&bytes) == step.sha256, &part, "sha256 is of other bytes")?;
    let tx = SignedTx::parse(&bytes).map_err(|error| flaw(&part, error.to_string()))?;
    let utxos = TransactionUtxos::read(&bytes).map_err(|error| flaw(&part, error.to_string()))?;
    ensure(tx.id == step.tx_hash, format!("steps[{index}].txHash"), "cbor is another transaction")?;
    ensure(tx.is_valid, &part, "it says that its scripts fail")?;
    let hash = tx.auxiliary_data.as_ref().map(cardano::tx::AuxiliaryData::hash);
    ensure(hash == tx.auxiliary_data_hash, &part, "its metadata are not those that were signed")?;
    for witness in &tx.vkey_witnesses {
        let holds = Native::verify(&witness.key, tx.id.as_bytes(), &witness.signature).is_ok();
        ensure(holds, &part, &format!("the signature of the key {} does not hold", witness.key_hash()))?;
    }
    Ok(ReadStep { tx, utxos })
}

fn pays_seller(listing: &ListingFacts, utxos: &TransactionUtxos) -> Result<(), Flaw> {
    let seller = listing.seller_address.ok_or_else(|| flaw("listing.sellerAddress", "it is missing"))?.to_string();
    let paid = utxos.made.iter().filter(|output| output.address == seller).map(|output| output.value.lovelace);
    let paid: Vec<Lovelace> = paid.collect();
    ensure(!paid.is_empty(), "listing.sellerAddress", "the payment has no output to it")?;
    ensure(paid.contains(&listing.price_lovelace), "listing.priceLovelace", "not paid")
}

/// The escrow that the first transaction locked under the quote.
fn lock(
    evidence: &Evidence,
    quote: &PaymentRequirements,
    blueprint: &Blueprint,
    first: &ReadStep,
) -> Result<(Escrow, Deployment), Flaw> {
    let Evidence { listing, purchase, .. } = evidence;
    let (terms, deployment) =
        authorized(quote, (&listing.id, &listing.content_hash), blueprint).map_err(|error| match error {
            NotAsAsked::OtherContent => flaw("listing", "its id and content hash are not what the quote commits to"),
            other => flaw("quote", other.to_string()),
        })?;
    let price = quote.amount.get() == listing.price_lovelace.get();
    ensure(price, "listing.priceLovelace", "the quote has another amount")?;
    let escrows = first.utxos.made.iter().filter_map(|made| Escrow::read(made.clone(), &deployment).ok());
    let signature = quote.extra.escrow().map(|extra| &extra.reference_signature);
    let mut under = escrows.filter(|escrow| Some(&escrow.datum.reference_signature) == signature);
    let (Some(escrow), None) = (under.next(), under.next()) else {
        return Err(flaw("steps[0]", "it does not lock one escrow under the quote"));
    };
    let buyer = PlutusAddress::from(purchase.buyer_address);
    ensure(escrow.datum.buyer == buyer, "purchase.buyerAddress", "the escrow is another buyer's")?;
    // Return address and collateral are the buyer's to choose.
    let Datum { buyer_return_address, collateral_return, .. } = escrow.datum;
    let locked = terms.datum_for(buyer, buyer_return_address, collateral_return);
    ensure(escrow.datum == locked, "steps[0]", "its datum does not have the quote's terms")?;
    let held = escrow.utxo.value.lovelace.checked_sub(escrow.datum.collateral_return);
    ensure(held == Some(listing.price_lovelace), "steps[0]", "it does not lock the price")?;
    Ok((escrow, deployment))
}

/// Follows an escrow through the steps, and the newest result that was posted.
fn follow(lock: Escrow, deployment: &Deployment, rest: &[ReadStep]) -> Result<(Shown, Option<Vec<u8>>), Flaw> {
    let mut steps = vec![(lock.datum.state.name().to_owned(), lock.utxo.inline_datum.clone())];
    let (mut current, mut decision, mut result) = (Some(lock), None, None);
    for (index, step) in (1_usize..).zip(rest) {
        let part = format!("steps[{index}]");
        let Some(escrow) = current else { return Err(flaw(part, "the escrow ended before")) };
        let reference = escrow.utxo.reference;
        ensure(step.utxos.spent.contains(&reference), &part, "it does not spend what the step before it left")?;
        let redeemer = redeemer(&step.tx, &reference).ok_or_else(|| flaw(&part, "its redeemer cannot be read"))?;
        let rule = Rule::find(redeemer.action(), &escrow.datum);
        let unknown = || flaw(&part, "the contract does not know this action in the escrow's state");
        let named = rule.ok_or_else(unknown)?.signer(&escrow.datum).map_err(|error| flaw(&part, error.to_string()))?;
        let signed = named.is_none_or(|key| step.tx.vkey_witnesses.iter().any(|witness| witness.key_hash() == key));
        ensure(signed, &part, "who must sign this action did not")?;
        current = match escrow.spent_into(&step.utxos.made) {
            Spent::Continues(next) => {
                if !next.datum.result_hash.is_empty() {
                    result = Some(next.datum.result_hash.clone());
                }
                steps.push((next.datum.state.name().to_owned(), next.utxo.inline_datum.clone()));
                Some(*next)
            }
            Spent::Ended(ending) => {
                steps.push((ending.status().to_owned(), None));
                if let Redeemer::WithdrawDisputed { buyer_value, seller_value, admin_signatures } = redeemer {
                    let values = (buyer_value, seller_value);
                    let signed = decided(reference, values, &admin_signatures, deployment, ending);
                    decision = Some(signed.ok_or_else(|| flaw(&part, "too few of the arbiters signed it"))?);
                }
                None
            }
        };
    }
    let checks = Checks { escrow_is_for_listing: Some(true), ..Checks::default() };
    Ok((Shown { checks, steps, decision, open: current.map(|escrow| escrow.utxo.reference) }, result))
}

/// What enough arbiters signed of this output.
fn decided(
    own_ref: TxRef,
    (buyer_value, seller_value): (AssetValue, AssetValue),
    signatures: &[AdminSignature],
    deployment: &Deployment,
    ending: Ending,
) -> Option<Decision> {
    let intent = DisputeWithdrawal { own_ref, buyer_value, seller_value };
    if !block_on(suffice(&Native, &deployment.parameters, &intent, signatures)) {
        return None;
    }
    let keys = signatures.iter().filter_map(|signature| signature.verification_key.as_slice().try_into().ok());
    Some(Decision {
        winner: match ending {
            Ending::Refunded => Some(Winner::Buyer),
            Ending::Withdrawn => Some(Winner::Seller),
            Ending::Closed => None,
        },
        buyer_lovelace: intent.buyer_value.lovelace_of(),
        seller_lovelace: intent.seller_value.lovelace_of(),
        arbiters: keys.map(KeyHash::of_public_key).collect(),
    })
}

/// The redeemer that released an input.
fn redeemer(tx: &SignedTx, input: &TxRef) -> Option<Redeemer> {
    let mut inputs = tx.inputs.clone();
    inputs.sort_unstable();
    let index = u32::try_from(inputs.iter().position(|one| one == input)?).ok()?;
    let is_it = |tag, of| (tag, of) == (RedeemerTag::Spend, index);
    let data = match minicbor::decode(tx.parts.get(&TxPart::Redeemers)?).ok()? {
        Redeemers::List(list) => list.into_iter().find(|one| is_it(one.tag, one.index))?.data,
        Redeemers::Map(map) => map.into_iter().find(|(key, _)| is_it(key.tag, key.index))?.1.data,
    };
    Redeemer::from_cbor(&minicbor::to_vec(data).ok()?).ok()
}
