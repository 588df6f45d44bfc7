//! Evidence of a purchase: one file of public facts, each proven by one of several parties or by nobody.
//!
//! ```text
//! the chain         the transactions, their times, that none is missing; who paid how much to whom
//!                   the service and the listing, where the payment commits to its request (saltDigest)
//! the service       the listing with its content hash, price and seller; the newest step as of a time (statement)
//! the seller        of a protected purchase: the listing, content hash and price in the terms of the lock (quote)
//! nobody            what is left: a claim
//! ```
//!
//! [`check`] compares the parts of the file with each other; a contradiction is a [`Flaw`]. Only the chain can tell
//! whether it includes the transactions, and no further one ([`crate::evidence`]). Facts about the service are proven
//! only by keys that the verifier knows from elsewhere, because a file cannot vouch for its own key.

mod proofs;
mod signed;

use api_types::{ListingFacts, Purchase};
use blueprint::Blueprint;
use cardano::{
    Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef,
    keys::Native,
    slots::Millis,
    tx::{SignedTx, TransactionUtxos, TxPart},
};
use escrow::{
    AdminSignature, AssetValue, Datum, Deployment, PlutusAddress, Redeemer,
    admin::have_enough_votes,
    dispute::DisputeWithdrawal,
    evidence::Winner,
    plan::Escrow,
    rules::Rule,
    spend::{Ending, Spent},
};
use futures_lite::future::block_on;
use market::DeliveryMode;
use pallas_codec::minicbor;
use pallas_primitives::conway::{RedeemerTag, Redeemers};
use serde::{Deserialize, Serialize};
use x402_cardano::{
    escrow::EscrowExtra,
    request_commitment::{Commitment, HttpRequest, RequestDigest},
    wire::PaymentRequirements,
};

pub use proofs::{Proofs, Prover};
pub use signed::ServiceKey;

use super::{NotAsAsked, payment::authorized};
use crate::{
    redelivery::unlock,
    tell::{counted, time_of},
};

/// Version of the file format.
pub const VERSION: u8 = 2;
/// Status of a purchase's event in which the content's creator is paid. The event is left out of the evidence, because
/// it does not change the escrow.
const CREATOR_PAID: &str = "creator_paid";

/// Contents of an evidence file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Evidence {
    pub version: u8,
    /// Origin of the service that made the sale.
    pub service: String,
    pub listing: ListingFacts,
    pub purchase: PurchaseFacts,
    /// Terms that the seller of a protected purchase signed, in the form of an entry of `accepts` in a 402 answer;
    /// `None` for an instant purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<PaymentRequirements>,
    /// Digest of the salt with which the payment commits to its HTTP request; `None` without a commitment. The salt
    /// itself is left out, because it would let a reader of the file claim the purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt_digest: Option<ContentHash>,
    /// Transactions of the purchase in chain order: a single payment, or the lock of an escrow and every transaction
    /// that followed it.
    pub steps: Vec<Step>,
    /// The arbiters' award; `None` if no dispute was settled by an award.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The service's signed statement about the purchase: a compact JWS of a [`PurchaseStatement`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The receipt that the service signed on delivery (a compact JWS); `None` if the buyer did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
}

/// Facts about the purchase, including its status after the last step.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PurchaseFacts {
    /// Transaction id of the payment or lock.
    pub id: TxHash,
    pub mode: DeliveryMode,
    pub buyer_address: Address,
    pub status: String,
}

/// A transaction of the purchase, with the status of the purchase after it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    pub tx_hash: TxHash,
    pub status: String,
    /// Time of the block that includes the transaction, in POSIX ms.
    pub at: Millis,
    /// Datum of the escrow output that the transaction creates, in hexadecimal; `None` if it creates none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datum: Option<String>,
    /// SHA-256 of the bytes of `cbor`.
    pub sha256: ContentHash,
    /// The transaction's bytes, in hexadecimal.
    pub cbor: String,
}

/// The award that arbiters signed for a disputed escrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// Party with the larger share; `None` if the shares are equal.
    pub winner: Option<Winner>,
    pub buyer_lovelace: Lovelace,
    pub seller_lovelace: Lovelace,
    /// Hashes of the arbiters' keys that signed the award.
    pub arbiters: Vec<KeyHash>,
}

/// The first part of the file that is wrong, and the reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {why}")]
pub struct Flaw {
    pub part: String,
    pub why: String,
}

/// Facts about a purchase that are derived from the transactions in its evidence file.
pub struct Derived {
    /// For each step, the purchase's status after it, and the datum of the escrow output that the step creates, if any.
    pub steps: Vec<(String, Option<Vec<u8>>)>,
    pub decision: Option<Decision>,
    /// Reference of the current escrow output; `None` once the escrow has ended, and for an instant purchase.
    pub open: Option<TxRef>,
    /// The result hash that the seller posted on the chain; empty if the seller posted none.
    pub result: Vec<u8>,
    /// Human-readable description of the payment.
    payment: String,
    /// Whether a transaction contains the buyer's complete address. The buyer's signature alone shows only the payment
    /// key, not the stake part of the address.
    names_buyer: bool,
    /// Address of the seller that signed the terms; `None` for an instant purchase.
    seller: Option<String>,
}

/// An evidence file without contradictions, with the proofs of its fields.
pub struct Checked {
    pub derived: Derived,
    pub proofs: Proofs,
    /// Time of the service's statement, in POSIX ms; `None` unless the file has a statement with a verified signature.
    pub as_of: Option<Millis>,
}

pub fn flaw(part: impl Into<String>, why: impl Into<String>) -> Flaw {
    Flaw { part: part.into(), why: why.into() }
}

pub fn ensure(holds: bool, part: impl Into<String>, why: &str) -> Result<(), Flaw> {
    if holds { Ok(()) } else { Err(flaw(part, why)) }
}

/// A decoded step of the purchase.
struct ReadStep {
    tx: SignedTx,
    utxos: TransactionUtxos,
}

/// Returns the transactions of a purchase with the times of their blocks, according to the service.
pub fn transactions_of(purchase: &Purchase) -> Vec<(TxHash, Millis)> {
    let steps = purchase.events.iter().filter(|event| event.status != CREATOR_PAID);
    let mut steps: Vec<_> = steps.map(|event| (event.tx_hash, event.at)).collect();
    steps.dedup();
    steps
}

/// Checks that the parts of a file do not contradict each other, and determines who proves each field. `keys` are the
/// trusted keys of the service; if empty, no field is proven by the service.
///
/// # Errors
/// Returns the first part that contradicts another.
pub fn check(evidence: &Evidence, blueprint: &Blueprint, keys: &[ServiceKey]) -> Result<Checked, Flaw> {
    let Evidence { version, purchase, steps, .. } = evidence;
    ensure(*version == VERSION, "version", "this program reads version 2")?;
    let derived = derive(evidence, blueprint)?;
    for (index, (step, (status, datum))) in steps.iter().zip(&derived.steps).enumerate() {
        ensure(step.status == *status, format!("steps[{index}].status"), &format!("the transaction left {status}"))?;
        let same = step.datum == datum.as_ref().map(hex::encode);
        ensure(same, format!("steps[{index}].datum"), "the transaction made another escrow")?;
    }
    let last = derived.steps.last().map(|(status, _)| status);
    ensure(last == Some(&purchase.status), "purchase.status", "the last step left another")?;
    ensure(evidence.decision == derived.decision, "decision", "the last transaction divides the money otherwise")?;
    proofs(evidence, derived, keys)
}

/// Builds the table of the file's fields, each with the parties that prove it.
fn proofs(file: &Evidence, derived: Derived, keys: &[ServiceKey]) -> Result<Checked, Flaw> {
    use Prover::{Seller, Service, Signatures};
    let Evidence { listing, purchase, steps, decision, .. } = file;
    let statement = file.statement.as_deref().map(|jws| signed::statement(file, jws, keys)).transpose()?;
    let receipt = file.receipt.as_deref().map(|jws| signed::receipt(file, jws, keys)).transpose()?;
    let is_stated = statement.as_ref().is_some_and(|(_, proven)| *proven);
    let service = (Service, is_stated);
    let committed = (Signatures, file.salt_digest.is_some());
    let is_protected = purchase.mode == DeliveryMode::Protected;
    let seller = (Seller, is_protected);
    let newest = steps.last().map(|step| time_of(step.at)).unwrap_or_default();
    let steps = format!("{}, the newest of {newest}; none is missing", counted(steps.len(), "transaction"));
    let mut proofs = Proofs::default();
    proofs.add("service", &file.service, &[committed, service]);
    proofs.add("listing.id", &listing.id, &[committed, seller, service]);
    proofs.add("listing.contentHash", listing.content_hash, &[seller, service]);
    proofs.add("listing.priceLovelace", listing.price_lovelace.display_tada(), &[seller, service]);
    proofs.add("listing.sellerAddress", listing.seller_address, &[service]);
    proofs.add("purchase.id", purchase.id, &[(Signatures, true), service]);
    proofs.add("purchase.mode", purchase.mode.as_str(), &[(Signatures, is_protected), service]);
    proofs.add("purchase.buyerAddress", purchase.buyer_address, &[(Signatures, derived.names_buyer), service]);
    proofs.add("purchase.status", &purchase.status, &[service]);
    proofs.add("steps", steps, &[service]);
    proofs.add("payment", &derived.payment, &[(Signatures, true)]);
    if let Some(address) = &derived.seller {
        proofs.add("quote", format!("signed by {address}"), &[seller]);
    }
    if let Some(Decision { buyer_lovelace, seller_lovelace, .. }) = decision {
        let [buyer, seller] = [buyer_lovelace, seller_lovelace].map(|lovelace| lovelace.display_tada());
        let award = format!("the arbiters signed {buyer} to the buyer and {seller} to the seller");
        proofs.add("decision", award, &[(Signatures, true)]);
    }
    if file.salt_digest.is_some() {
        proofs.add("saltDigest", "the payment commits to the request of this listing at this service", &[committed]);
    }
    if let Some((said, proven)) = &statement {
        proofs.add("statement", format!("of {}", time_of(said.issued_at)), &[(Service, *proven)]);
    }
    if let Some(proven) = receipt {
        proofs.add("receipt", "the service delivered to the buyer", &[(Service, proven)]);
    }
    let as_of = statement.filter(|(_, proven)| *proven).map(|(said, _)| said.issued_at);
    Ok(Checked { derived, proofs, as_of })
}

/// Derives the facts of a purchase from the transactions of a file. The statuses, datums and decision that the file
/// states are ignored.
///
/// # Errors
/// Returns the first part that contradicts another.
pub fn derive(evidence: &Evidence, blueprint: &Blueprint) -> Result<Derived, Flaw> {
    let Evidence { service, listing, purchase, quote, salt_digest, steps, .. } = evidence;
    let read = steps.iter().enumerate().map(|(index, step)| read(index, step)).collect::<Result<Vec<_>, _>>()?;
    let ordered = steps.is_sorted_by(|before, after| before.at <= after.at);
    ensure(ordered, "steps", "a transaction's block is older than that of the one before it")?;
    let (first, rest) = read.split_first().ok_or_else(|| flaw("steps", "there is no transaction"))?;
    ensure(first.tx.id == purchase.id, "purchase.id", "the first transaction is another")?;
    let buyer = purchase.buyer_address.payment_key();
    let signed = first.tx.vkey_witnesses.iter().any(|witness| witness.key_hash() == *buyer);
    ensure(signed, "purchase.buyerAddress", "its payment key did not sign the payment")?;
    if let Some(salt) = salt_digest {
        let url = format!("{service}{}", unlock(&listing.id));
        let request = RequestDigest::of(&HttpRequest { method: "GET", url: &url, body: b"", headers: &[] });
        let committed = request.is_ok_and(|request| Commitment::in_tx(&first.tx) == Some(request.salted_under(salt)));
        ensure(committed, "saltDigest", &format!("the payment does not commit to the request of {url}"))?;
    }
    match (purchase.mode, quote) {
        (DeliveryMode::Instant, None) => {
            ensure(rest.is_empty(), "steps", "an instant purchase has one transaction")?;
            pays_seller(evidence, &first.utxos)?;
            let home = purchase.buyer_address.to_string();
            Ok(Derived {
                steps: vec![("settled".into(), None)],
                decision: None,
                open: None,
                result: vec![],
                payment: format!("{} to {}", listing.price_lovelace.display_tada(), listing.seller_address),
                names_buyer: first.utxos.created.iter().any(|output| output.address == home),
                seller: None,
            })
        }
        (DeliveryMode::Protected, Some(quote)) => {
            let (lock, deployment) = lock(evidence, quote, blueprint, first)?;
            follow(lock, &deployment, rest)
        }
        _ => Err(flaw("quote", "a protected purchase has one, and an instant one has none")),
    }
}

/// Decodes the step at `index` and verifies its signatures.
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

/// Checks that an instant payment has an output to the seller with the price. Also checks that buyer and seller differ,
/// because the buyer's change could count as the payment otherwise.
fn pays_seller(Evidence { listing, purchase, .. }: &Evidence, utxos: &TransactionUtxos) -> Result<(), Flaw> {
    let own = listing.seller_address.payment_key() == purchase.buyer_address.payment_key();
    ensure(!own, "listing.sellerAddress", "it is the buyer's own")?;
    let seller = listing.seller_address.to_string();
    let paid = utxos.created.iter().filter(|output| output.address == seller).map(|output| output.value.lovelace);
    let paid: Vec<Lovelace> = paid.collect();
    ensure(!paid.is_empty(), "listing.sellerAddress", "the payment has no output to it")?;
    ensure(paid.contains(&listing.price_lovelace), "listing.priceLovelace", "not paid")
}

/// Returns the escrow that the first transaction created under the seller's signed terms (`quote`), and the deployment
/// of its contract.
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
    // Neither the seller's signature nor a transaction contains these two fields.
    let unsigned = |extra: &EscrowExtra| extra.confirmation_policy.is_some() || extra.are_fees_sponsored.is_some();
    ensure(!quote.extra.escrow().is_some_and(unsigned), "quote", "it has terms that the seller did not sign")?;
    let price = quote.amount.get() == listing.price_lovelace.get();
    ensure(price, "listing.priceLovelace", "the quote has another amount")?;
    let escrows = first.utxos.created.iter().filter_map(|made| Escrow::read(made.clone(), &deployment).ok());
    let signature = quote.extra.escrow().map(|extra| &extra.reference_signature);
    let mut under = escrows.filter(|escrow| Some(&escrow.datum.reference_signature) == signature);
    let (Some(escrow), None) = (under.next(), under.next()) else {
        return Err(flaw("steps[0]", "it does not lock one escrow under the quote"));
    };
    let buyer = PlutusAddress::from(purchase.buyer_address);
    ensure(escrow.datum.buyer == buyer, "purchase.buyerAddress", "the escrow is another buyer's")?;
    // The buyer may choose return address and collateral.
    let Datum { buyer_return_address, collateral_return, .. } = escrow.datum;
    let locked = terms.datum_for(buyer, buyer_return_address, collateral_return);
    ensure(escrow.datum == locked, "steps[0]", "its datum does not have the quote's terms")?;
    let held = escrow.utxo.value.lovelace.checked_sub(escrow.datum.collateral_return);
    ensure(held == Some(listing.price_lovelace), "steps[0]", "it does not lock the price")?;
    Ok((escrow, deployment))
}

/// Follows an escrow from its lock through the remaining steps, and checks that the contract permits each.
fn follow(lock: Escrow, deployment: &Deployment, rest: &[ReadStep]) -> Result<Derived, Flaw> {
    let payment = format!("{} locked in {}", lock.utxo.value.lovelace.display_tada(), lock.utxo.address);
    let seller = Some(lock.datum.seller.to_string());
    let mut steps = vec![(lock.datum.state.name().to_owned(), lock.utxo.inline_datum.clone())];
    let (mut current, mut decision, mut result) = (Some(lock), None, vec![]);
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
        current = match escrow.spent_into(&step.utxos.created) {
            Spent::Continues(next) => {
                if !next.datum.result_hash.is_empty() {
                    result.clone_from(&next.datum.result_hash);
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
    let open = current.map(|escrow| escrow.utxo.reference);
    Ok(Derived { steps, decision, open, result, payment, names_buyer: true, seller })
}

/// Returns the arbiters' decision for the escrow output `own_ref`, or `None` if too few arbiters signed it.
fn decided(
    own_ref: TxRef,
    (buyer_value, seller_value): (AssetValue, AssetValue),
    signatures: &[AdminSignature],
    deployment: &Deployment,
    ending: Ending,
) -> Option<Decision> {
    let intent = DisputeWithdrawal { own_ref, buyer_value, seller_value };
    if !block_on(have_enough_votes(&Native, &deployment.parameters, &intent, signatures)) {
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

/// Returns the redeemer with which a transaction spends an input, or `None` if there is none or it cannot be decoded.
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
