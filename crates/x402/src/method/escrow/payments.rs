use std::collections::BTreeMap;

use ::escrow::State;
use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Tip, Utxo, Value},
    keys::Native,
    slots::{Millis, SlotConfig},
};

use super::*;
use crate::{
    escrow::{
        TransferMethod,
        fixture::{
            Attached, NOW, TestLock, TestOutput, block_on, buyer, honest_datum, key, parameters, quote, sale,
            with_issuer,
        },
    },
    exact::InputState,
};

const FEE: u64 = 200_000;

/// A lock and the money that it spends.
struct Case {
    lock: TestLock,
    offer: Option<Offer>,
    now_ms: Millis,
    owner: String,
}

impl Case {
    fn honest() -> Self {
        let quote = quote();
        let mut lock = TestLock::of(&quote, &honest_datum(&quote));
        lock.ttl = SlotConfig::PREPROD.slot_at(NOW + 200_000);
        Self { lock, offer: None, now_ms: NOW + 10_000, owner: buyer().to_string() }
    }

    fn offer(&self) -> Offer {
        self.offer.clone().unwrap_or_else(|| Offer {
            accepted: requirements(&quote()).unwrap(),
            tx: self.lock.build(),
            nonce: spent(),
        })
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
        }
    }

    fn verdict(&self) -> Result<VerifiedProtected, &'static str> {
        let offer = self.offer();
        let moment = Moment { now_ms: self.now_ms, slots: SlotConfig::PREPROD };
        with_issuer(TransferMethod::Escrow, |issuer| {
            let taken = Taken::recognise(issuer, &sale(), &offer)?;
            block_on(taken.verify_with_facts(&offer, &self.facts(), &Native, moment))
        })
        .map_err(|refusal| refusal.code())
    }
}

fn spent() -> TxRef {
    TxRef { tx: TxHash::new([9; 32]), index: 0 }
}

fn refused(change: impl FnOnce(&mut Case)) -> &'static str {
    let mut case = Case::honest();
    change(&mut case);
    case.verdict().unwrap_err()
}

#[test]
fn an_honest_lock_verifies_and_says_who_bought_what() {
    let verified = Case::honest().verdict().unwrap();
    assert_eq!(verified.payment.payer, buyer());
    assert_eq!(verified.payment.amount.get(), 5_000_000);
    assert_eq!(verified.lock.terms_digest, quote().terms_digest);
    let (index, _, datum) = escrow_of(&Case::honest().offer().tx).unwrap();
    assert_eq!((index, datum), (1, verified.lock.datum));
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
            let mut datum = honest_datum(&quote());
            change(&mut datum);
            case.lock.outputs[1].datum = Attached::Inline(datum.to_cbor());
        })
    };
    assert_eq!(with_datum(|datum| datum.state = State::Disputed), escrow("datum_state"));
    assert_eq!(with_datum(|datum| datum.buyer = key(7).enterprise_address().into()), escrow("datum_buyer"));
    assert_eq!(refused(|case| case.lock.outputs[1].datum = Attached::Nothing), escrow("datum_missing"));
    assert_eq!(refused(|case| case.lock.outputs[1].reference_script = true), escrow("reference_script"));
    assert_eq!(refused(|case| case.lock.outputs[1].lovelace += 1), escrow("value"));
    let twice = |case: &mut Case| {
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
fn a_quote_is_taken_as_it_was_given_and_in_its_time() {
    let taking = |change: fn(&mut PaymentRequirements)| {
        refused(|case| {
            let mut offer = case.offer();
            change(&mut offer.accepted);
            case.offer = Some(offer);
        })
    };
    let unknown = "masumi_terms_unknown";
    assert_eq!(taking(|accepted| accepted.amount = crate::wire::Amount::new(5_000_001).unwrap()), unknown);
    assert_eq!(taking(|accepted| accepted.max_timeout_seconds = 301), unknown);
    assert_eq!(taking(|accepted| accepted.pay_to = buyer().to_string()), unknown);
    assert_eq!(taking(|accepted| drop(accepted.extra.remove("terms"))), unknown);
    assert_eq!(taking(|accepted| drop(accepted.extra.insert("discount".into(), 1.into()))), unknown);
    assert_eq!(refused(|case| case.now_ms = NOW + 300_000), "masumi_terms_expired");
}

#[test]
fn a_quote_keeps_its_meaning_as_an_entry_of_accepts() {
    let quote = quote();
    let entry = serde_json::to_value(requirements(&quote).unwrap()).unwrap();
    assert_eq!(entry, quote.to_json().unwrap());
}
