//! The rules for a lock: one function each, except that one function checks all fields that the seller signed.

use super::{
    Datum, Field, KeyHash, Lock, LockError, MIN_REFERENCE_SIGNATURE_BYTES, PlutusAddress, State,
    collateral::MIN_COLLATERAL, collateral::minimum_after_result,
};
use ::escrow::Credential;

type LockResult = Result<(), LockError>;

/// A rule for locks: returns an error if the lock breaks it.
pub type LockRule = fn(&Lock<'_>) -> LockResult;

/// Every rule for locks, in the order in which they are checked.
pub const RULES: &[LockRule] = &[
    output_count,
    datum_missing,
    reference_script,
    datum_schema,
    state,
    result,
    cooldown,
    script_party,
    escrow_party,
    same_payout,
    buyer,
    buyer_witness,
    signed_terms,
    collateral,
    value,
    assets,
    min_utxo,
    ttl,
];

fn holds(condition: bool, error: LockError) -> LockResult {
    if condition { Ok(()) } else { Err(error) }
}

/// Applies a rule to the escrow's datum. A datum that cannot be decoded passes, because another rule rejects it.
fn of_datum(lock: &Lock<'_>, rule: impl FnOnce(&Datum) -> LockResult) -> LockResult {
    lock.datum().map_or(Ok(()), rule)
}

fn output_count(lock: &Lock<'_>) -> LockResult {
    holds(lock.outputs == 1, LockError::OutputCount(lock.outputs))
}

fn datum_missing(lock: &Lock<'_>) -> LockResult {
    holds(lock.output.is_none() || lock.datum.is_some(), LockError::DatumMissing)
}

fn reference_script(lock: &Lock<'_>) -> LockResult {
    let carries = lock.output.is_some_and(|(_, output)| output.reference_script.is_some());
    holds(!carries, LockError::ReferenceScript)
}

fn datum_schema(lock: &Lock<'_>) -> LockResult {
    match &lock.datum {
        Some(Err(reason)) => Err(LockError::DatumSchema(*reason)),
        _ => Ok(()),
    }
}

fn state(lock: &Lock<'_>) -> LockResult {
    of_datum(lock, |datum| holds(datum.state == State::FundsLocked, LockError::State))
}

fn result(lock: &Lock<'_>) -> LockResult {
    of_datum(lock, |datum| holds(!datum.has_result(), LockError::Result))
}

fn cooldown(lock: &Lock<'_>) -> LockResult {
    of_datum(lock, |datum| holds(datum.seller_cooldown == 0 && datum.buyer_cooldown == 0, LockError::Cooldown))
}

/// Returns the addresses in the datum that the buyer chooses, with the names of their fields. The seller's addresses
/// are left out, because they must equal those in the signed terms.
fn buyers(datum: &Datum) -> impl Iterator<Item = (&'static str, PlutusAddress)> {
    let return_address = datum.buyer_return_address.map(|address| ("buyer_return_address", address));
    [("buyer", datum.buyer)].into_iter().chain(return_address)
}

fn script_party(lock: &Lock<'_>) -> LockResult {
    let is_script = |address: &PlutusAddress| matches!(address.payment, Credential::Script(_));
    let escrow = lock.facts.terms.escrow;
    of_datum(lock, |datum| {
        let script = buyers(datum).find(|(_, party)| is_script(party) && *party != escrow);
        script.map_or(Ok(()), |(name, _)| Err(LockError::ScriptParty(name)))
    })
}

fn escrow_party(lock: &Lock<'_>) -> LockResult {
    let escrow = lock.facts.terms.escrow;
    of_datum(lock, |datum| {
        let itself = buyers(datum).find(|(_, party)| *party == escrow);
        itself.map_or(Ok(()), |(name, _)| Err(LockError::EscrowParty(name)))
    })
}

fn same_payout(lock: &Lock<'_>) -> LockResult {
    of_datum(lock, |datum| holds(datum.buyer_payout_address() != datum.seller_payout_address(), LockError::SamePayout))
}

fn buyer_key(datum: &Datum) -> Option<KeyHash> {
    match datum.buyer.payment {
        Credential::Key(key) => Some(key),
        Credential::Script(_) => None,
    }
}

/// Checks that the datum's buyer is the payer. Compares only the payment key, because the buyer may choose any stake
/// credential. Scripts are rejected by another rule.
fn buyer(lock: &Lock<'_>) -> LockResult {
    let payer = lock.facts.payer.payment_key();
    of_datum(lock, |datum| holds(buyer_key(datum).is_none_or(|key| key == *payer), LockError::Buyer))
}

/// Checks only that the buyer's signature is present, because the rules for all payments verify every signature.
fn buyer_witness(lock: &Lock<'_>) -> LockResult {
    let signed = |key: KeyHash| lock.facts.tx.vkey_witnesses.iter().any(|witness| witness.key_hash() == key);
    of_datum(lock, |datum| holds(buyer_key(datum).is_none_or(signed), LockError::BuyerWitness))
}

/// Checks that each field that the signed terms determine is as in the datum that an honest buyer makes from them. Also
/// checks the contract's minimum length of a reference signature, 16 bytes, which every valid signature exceeds.
fn signed_terms(lock: &Lock<'_>) -> LockResult {
    of_datum(lock, |datum| {
        let honest = lock.facts.terms.datum_for(datum.buyer, datum.buyer_return_address, datum.collateral_return);
        let is_signed = datum.reference_signature == honest.reference_signature
            && datum.reference_signature.len() >= MIN_REFERENCE_SIGNATURE_BYTES;
        let (deadlines, signed) = (datum.deadlines, honest.deadlines);
        let fields = [
            (Field::Seller, datum.seller == honest.seller),
            (Field::SellerReturnAddress, datum.seller_return_address == honest.seller_return_address),
            (Field::ReferenceKey, datum.reference_key == honest.reference_key),
            (Field::ReferenceSignature, is_signed),
            (Field::SellerNonce, datum.seller_nonce == honest.seller_nonce),
            (Field::BuyerNonce, datum.buyer_nonce == honest.buyer_nonce),
            (Field::AgentIdentifier, datum.agent_identifier == honest.agent_identifier),
            (Field::InputHash, datum.input_hash == honest.input_hash),
            (Field::PayByTime, deadlines.pay_by == signed.pay_by),
            (Field::SubmitResultTime, deadlines.submit_result == signed.submit_result),
            (Field::UnlockTime, deadlines.unlock == signed.unlock),
            (Field::ExternalDisputeUnlockTime, deadlines.external_dispute_unlock == signed.external_dispute_unlock),
        ];
        fields.into_iter().try_for_each(|(field, is_equal)| holds(is_equal, LockError::Mismatch(field)))
    })
}

fn collateral(lock: &Lock<'_>) -> LockResult {
    of_datum(lock, |datum| {
        let collateral = datum.collateral_return.get();
        holds(collateral == 0 || collateral >= MIN_COLLATERAL.get(), LockError::Collateral)
    })
}

fn value(lock: &Lock<'_>) -> LockResult {
    let (Some((_, output)), Some(datum)) = (lock.output, lock.datum()) else { return Ok(()) };
    let price = lock.facts.terms.price;
    // A sum above the maximum supply of ADA cannot be an output's value.
    let due = price.checked_add(datum.collateral_return).ok_or(LockError::Value(price))?;
    holds(output.value.lovelace == due, LockError::Value(due))
}

fn assets(lock: &Lock<'_>) -> LockResult {
    holds(lock.output.is_none_or(|(_, output)| output.value.assets.is_empty()), LockError::Assets)
}

fn min_utxo(lock: &Lock<'_>) -> LockResult {
    let (Some((_, output)), Some(datum)) = (lock.output, lock.datum()) else { return Ok(()) };
    let locked = output.value.lovelace;
    let least = minimum_after_result(datum, lock.facts.parameters).ok_or(LockError::MinUtxo(locked))?;
    holds(locked >= least, LockError::MinUtxo(least))
}

/// Checks that the first slot after the validity interval begins at or before the deadline `pay_by`.
fn ttl(lock: &Lock<'_>) -> LockResult {
    let ends = lock.facts.tx.ttl.and_then(|slot| lock.facts.slots.slot_begins_at(slot));
    let pay_by = lock.facts.terms.terms.deadlines.pay_by;
    holds(ends.is_some_and(|ends| ends <= pay_by), LockError::Ttl)
}
