//! Tests of payments into the escrow: they must follow the rules for every payment and the rules for locks.

use std::collections::BTreeMap;

use ::escrow::{Datum, State};
use cardano::{
    Lovelace, Network, TxHash, TxRef,
    chain::{Tip, Utxo, Value},
    keys::Native,
    slots::{Millis, SlotConfig},
};

use super::*;
use crate::{
    escrow::fixture::{
        Attached, NOW, TestLock, TestOutput, block_on, buyer, honest_datum, key, method, offered, parameters, sale,
        terms,
    },
    exact::{Facts, InputState, Moment, Payment, VerifiedPayment, verify_with_facts},
};

const FEE: u64 = 200_000;

/// A payment into the escrow, and the owner of the output that it spends.
struct EscrowPayment {
    lock: TestLock,
    now_ms: Millis,
    owner: String,
}

impl EscrowPayment {
    fn honest() -> Self {
        let mut lock = TestLock::of(&terms(), &honest_datum(&terms()));
        lock.ttl = SlotConfig::PREPROD.slot_at(NOW + 200_000);
        Self { lock, now_ms: NOW + 10_000, owner: buyer().to_string() }
    }

    fn facts(&self) -> Facts {
        let total: u64 = self.lock.outputs.iter().map(|output| output.lovelace).sum();
        let utxo = Utxo {
            reference: spent(),
            address: self.owner.clone(),
            value: Value { lovelace: Lovelace::new(total + FEE).unwrap(), assets: BTreeMap::new() },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        };
        let tip_ms = self.now_ms - 5_000;
        let slot = SlotConfig::PREPROD.slot_at(tip_ms).unwrap();
        Facts {
            inputs: BTreeMap::from([(spent(), InputState::Unspent(utxo))]),
            parameters: parameters(),
            tip: Tip { hash: TxHash::new([1; 32]), height: 7, slot, time_ms: tip_ms },
            in_mempool: false,
        }
    }

    fn verdict(&self) -> Result<VerifiedPayment, &'static str> {
        let payment = Payment { tx: self.lock.build(), nonce: spent() };
        let moment = Moment { now_ms: self.now_ms, slots: SlotConfig::PREPROD };
        let method = method(TransferMethod::Escrow);
        block_on(verify_with_facts(&method, &offered(), &payment, &self.facts(), &Native, moment))
            .map_err(|refusal| refusal.code())
    }
}

fn spent() -> TxRef {
    TxRef { tx: TxHash::new([9; 32]), index: 0 }
}

fn refused(change: impl FnOnce(&mut EscrowPayment)) -> &'static str {
    let mut case = EscrowPayment::honest();
    change(&mut case);
    case.verdict().unwrap_err()
}

#[test]
fn an_honest_lock_verifies_and_says_who_bought_what() {
    let verified = EscrowPayment::honest().verdict().unwrap();
    assert_eq!(verified.payer, buyer());
    assert_eq!(verified.amount.get(), 5_000_000);
    let lock = verified.lock.unwrap();
    assert_eq!(Some(lock.terms_digest), offered().terms_digest());
    assert_eq!((lock.output_index, lock.address), (1, crate::escrow::fixture::deployment().address()));
    assert_eq!(lock.datum, honest_datum(&terms()));
}

#[test]
fn the_rules_of_every_payment_hold_for_locks_too() {
    let plain = |code: &str| format!("invalid_exact_cardano_payload_{code}");
    assert_eq!(refused(|case| case.lock.witnesses.clear()), plain("unsigned"));
    assert_eq!(refused(|case| case.lock.witnesses = vec![key(7)]), plain("missing_signature"));
    assert_eq!(refused(|case| case.owner = key(7).enterprise_address().to_string()), plain("missing_signature"));
    assert_eq!(refused(|case| case.lock.ttl = None), plain("ttl_missing"));
    assert_eq!(refused(|case| case.lock.ttl = SlotConfig::PREPROD.slot_at(NOW)), plain("ttl_expired"));
    assert_eq!(refused(|case| case.lock.ttl = SlotConfig::PREPROD.slot_at(NOW + 311_000)), plain("ttl_too_far"));
    assert_eq!(refused(|case| case.lock.outputs[1].lovelace -= 1), plain("amount_insufficient"));
    assert_eq!(refused(|case| drop(case.lock.outputs.remove(1))), plain("recipient_mismatch"));
    assert_eq!(refused(|case| case.lock.outputs[0].lovelace = 1), plain("min_utxo_insufficient"));
    assert_eq!(refused(|case| case.lock.outputs[0].token = true), plain("value_not_conserved"));
}

#[test]
fn only_the_escrows_output_carries_a_datum() {
    let code = "invalid_exact_cardano_payload_output_not_plain";
    assert_eq!(refused(|case| case.lock.outputs[0].datum = Attached::Hash), code);
    assert_eq!(refused(|case| case.lock.outputs[0].reference_script = true), code);
}

#[test]
fn the_rules_of_the_escrow_hold() {
    let escrow = |code: &str| format!("invalid_exact_cardano_payload_masumi_{code}");
    let with_datum = |change: fn(&mut Datum)| {
        refused(|case| {
            let mut datum = honest_datum(&terms());
            change(&mut datum);
            case.lock.outputs[1].datum = Attached::Inline(datum.to_cbor());
        })
    };
    assert_eq!(with_datum(|datum| datum.state = State::Disputed), escrow("datum_state"));
    assert_eq!(with_datum(|datum| datum.buyer = key(7).enterprise_address().into()), escrow("datum_buyer"));
    assert_eq!(refused(|case| case.lock.outputs[1].datum = Attached::Nothing), escrow("datum_missing"));
    assert_eq!(refused(|case| case.lock.outputs[1].reference_script = true), escrow("reference_script"));
    assert_eq!(refused(|case| case.lock.outputs[1].lovelace += 1), escrow("value"));
    let twice = |case: &mut EscrowPayment| {
        let first = &case.lock.outputs[1];
        let again = TestOutput {
            address: first.address.clone(),
            lovelace: first.lovelace,
            token: false,
            datum: Attached::Nothing,
            reference_script: false,
        };
        case.lock.outputs.push(again);
    };
    assert_eq!(refused(twice), escrow("escrow_output_count"));
}

#[test]
fn a_datum_that_the_ledger_does_not_read_is_refused_before_it_is_broadcast() {
    // The reference signature, which has more than 64 bytes, in one piece instead of chunks.
    let whole = |case: &mut EscrowPayment| {
        let signature = honest_datum(&terms()).reference_signature;
        let cbor = honest_datum(&terms()).to_cbor();
        let chunks: Vec<u8> = signature.chunks(64).flat_map(encoded).collect();
        let chunked = [&[0x5f], &chunks[..], &[0xff]].concat();
        let at = cbor.windows(chunked.len()).position(|part| part == chunked).unwrap();
        let cbor = [&cbor[..at], &encoded(&signature), &cbor[at + chunked.len()..]].concat();
        assert_eq!(Datum::from_cbor(&cbor), Ok(honest_datum(&terms())), "the same datum to a lenient reader");
        case.lock.outputs[1].datum = Attached::Inline(cbor);
    };
    assert_eq!(refused(whole), "invalid_exact_cardano_payload_datum_byte_string_too_long");
}

/// Encodes a CBOR byte string of definite length.
fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = pallas_codec::minicbor::Encoder::new(Vec::new());
    encoder.bytes(bytes).unwrap();
    encoder.into_writer()
}

#[test]
fn a_quote_can_be_paid_until_its_time_to_pay_ends() {
    assert_eq!(refused(|case| case.now_ms = NOW + 240_000), "masumi_terms_expired");
    let mut last = EscrowPayment::honest();
    last.now_ms = NOW + 195_000;
    assert!(last.verdict().is_ok());
}

#[test]
fn requirements_of_one_method_are_not_verified_by_another() {
    let payment = Payment { tx: EscrowPayment::honest().lock.build(), nonce: spent() };
    let moment = Moment { now_ms: NOW + 10_000, slots: SlotConfig::PREPROD };
    let facts = EscrowPayment::honest().facts();
    let default = crate::method::DefaultMethod::new(Network::Preprod, ConfirmationPolicy::IN_BLOCK).unwrap();
    let masumi = method(TransferMethod::Masumi);
    for other in [&default as &dyn PaymentMethod, &masumi] {
        let verdict = block_on(verify_with_facts(other, &offered(), &payment, &facts, &Native, moment));
        assert_eq!(verdict.map_err(|refusal| refusal.code()), Err("invalid_exact_cardano_requirements"));
    }
    let without_terms = Offered { terms: None, ..offered() };
    let escrow = method(TransferMethod::Escrow);
    let verdict = block_on(verify_with_facts(&escrow, &without_terms, &payment, &facts, &Native, moment));
    assert_eq!(verdict.map_err(|refusal| refusal.code()), Err("invalid_exact_cardano_requirements"));
    assert_eq!(
        default.output(&offered(), &buyer(), None, &parameters(), &SlotConfig::PREPROD),
        Err(CannotPay::OtherMethod)
    );
    let instant = default.offer(&sale(), NOW, [0; 32]).unwrap();
    assert_eq!(
        escrow.output(&instant, &buyer(), None, &parameters(), &SlotConfig::PREPROD),
        Err(CannotPay::OtherMethod)
    );
}
