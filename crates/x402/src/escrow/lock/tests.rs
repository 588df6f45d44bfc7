use cardano::{KeyHash, ScriptHash, address::Credential, slots::SlotConfig};
use proptest::prelude::*;

use super::*;
use crate::escrow::fixture::{Attached, TestLock, buyer, deployment, honest_datum, key, parameters, terms};
use ::escrow::{Deadlines, PlutusAddress, collateral::MIN_COLLATERAL};

/// A valid lock with its terms and payer, of which each test changes one thing.
struct LockCase {
    terms: AuthorizedTerms,
    datum: Datum,
    payer: Address,
}

impl LockCase {
    fn honest() -> Self {
        let terms = terms();
        Self { datum: honest_datum(&terms), payer: buyer(), terms }
    }

    fn lock(&self) -> TestLock {
        TestLock::of(&self.terms, &self.datum)
    }

    /// Returns the codes of every rule that this lock breaks.
    fn broken(&self, lock: &TestLock) -> Vec<&'static str> {
        self.judge(lock, |lock| RULES.iter().filter_map(|rule| rule(lock).err()).map(|error| error.code()).collect())
    }

    fn judge<T>(&self, lock: &TestLock, judge: impl FnOnce(&Lock<'_>) -> T) -> T {
        let (tx, parameters) = (lock.build(), parameters());
        judge(&Lock::read(LockFacts {
            tx: &tx,
            terms: &self.terms,
            payer: &self.payer,
            parameters: &parameters,
            slots: &SlotConfig::PREPROD,
        }))
    }
}

fn broken_with_datum(change: impl FnOnce(&mut Datum)) -> Vec<&'static str> {
    let mut case = LockCase::honest();
    change(&mut case.datum);
    case.broken(&case.lock())
}

fn broken_with_lock(change: impl FnOnce(&mut TestLock)) -> Vec<&'static str> {
    let case = LockCase::honest();
    let mut lock = case.lock();
    change(&mut lock);
    case.broken(&lock)
}

fn broken_with_terms(change: impl FnOnce(&mut LockCase)) -> Vec<&'static str> {
    let mut case = LockCase::honest();
    change(&mut case);
    case.broken(&case.lock())
}

fn code(name: &str) -> [String; 1] {
    [format!("invalid_exact_cardano_payload_masumi_{name}")]
}

#[test]
fn an_honest_lock_breaks_no_rule_and_says_what_was_bought() {
    let case = LockCase::honest();
    let verified = case.judge(&case.lock(), |lock| lock.clone().verify()).unwrap();
    assert_eq!(verified.buyer, buyer());
    assert_eq!(verified.datum, case.datum);
    assert_eq!(verified.terms_digest, case.terms.terms_digest);
    assert_eq!((verified.output_index, verified.locked), (1, Lovelace::from_ada(5)));
    assert_eq!(verified.address, deployment().address());
    assert_eq!(verified.collateral, Lovelace::ZERO);
}

#[test]
fn choices_of_the_buyer_break_no_rule() {
    let none: [&str; 0] = [];
    let with_stake = Address::base(*buyer().payment_key(), Credential::Key(KeyHash::new([5; 28])));
    assert_eq!(broken_with_datum(|d| d.buyer = with_stake.into()), none, "another stake credential");
    let elsewhere = key(9).enterprise_address();
    assert_eq!(broken_with_datum(|d| d.buyer_return_address = Some(elsewhere.into())), none, "a return address");
    assert_eq!(broken_with_datum(|d| d.collateral_return = MIN_COLLATERAL), none, "collateral");
    assert_eq!(broken_with_lock(|lock| lock.ttl = lock.ttl.map(|ttl| ttl - 100)), none, "an earlier TTL");
    assert_eq!(broken_with_lock(|lock| lock.outputs.swap(0, 1)), none, "the order of outputs");
    assert_eq!(broken_with_lock(|lock| lock.witnesses.push(key(7))), none, "another signature");
}

#[test]
fn more_or_fewer_than_one_escrow_output_is_refused() {
    assert_eq!(broken_with_lock(|lock| drop(lock.outputs.remove(1))), code("escrow_output_count"));
    let twice = broken_with_lock(|lock| {
        let second = LockCase::honest().lock().outputs.remove(1);
        lock.outputs.push(second);
    });
    assert_eq!(twice, code("escrow_output_count"));
    // The escrow's script with another stake credential is another address.
    let elsewhere = broken_with_lock(|lock| {
        let address = PlutusAddress { stake: Some(deployment().address().payment), ..deployment().address() };
        lock.outputs[1].address = address.to_bytes();
    });
    assert_eq!(elsewhere, code("escrow_output_count"));
}

#[test]
fn an_escrow_output_without_an_inline_datum_is_refused() {
    assert_eq!(broken_with_lock(|lock| lock.outputs[1].datum = Attached::Nothing), code("datum_missing"));
    assert_eq!(broken_with_lock(|lock| lock.outputs[1].datum = Attached::Hash), code("datum_missing"));
}

#[test]
fn a_reference_script_on_the_escrow_output_is_refused() {
    assert_eq!(broken_with_lock(|lock| lock.outputs[1].reference_script = true), code("reference_script"));
    let elsewhere = broken_with_lock(|lock| lock.outputs[0].reference_script = true);
    assert!(elsewhere.is_empty(), "an output that is not the escrow is judged by the rules for every payment");
}

#[test]
fn a_datum_of_another_shape_is_refused() {
    let other = broken_with_lock(|lock| lock.outputs[1].datum = Attached::Inline(vec![0xd8, 0x79, 0x80]));
    assert_eq!(other, code("datum_invalid"));
}

#[test]
fn an_escrow_that_does_not_start_as_funds_locked_is_refused() {
    for state in State::ALL.into_iter().skip(1) {
        assert_eq!(broken_with_datum(|d| d.state = state), code("datum_state"), "{state:?}");
    }
    assert_eq!(broken_with_datum(|d| d.result_hash = vec![1]), code("datum_result"));
    assert_eq!(broken_with_datum(|d| d.seller_cooldown = 1), code("datum_cooldown"));
    assert_eq!(broken_with_datum(|d| d.buyer_cooldown = 1), code("datum_cooldown"));
}

#[test]
fn a_script_as_a_party_is_refused() {
    let script = PlutusAddress::script(ScriptHash::new([1; 28]));
    assert_eq!(broken_with_datum(|d| d.buyer = script), code("datum_script_party"));
    assert_eq!(broken_with_datum(|d| d.buyer_return_address = Some(script)), code("datum_script_party"));
}

#[test]
fn the_escrow_as_a_party_is_refused() {
    let escrow = deployment().address();
    assert_eq!(broken_with_datum(|d| d.buyer = escrow), code("datum_escrow_party"));
    assert_eq!(broken_with_datum(|d| d.buyer_return_address = Some(escrow)), code("datum_escrow_party"));
}

#[test]
fn one_payout_address_for_both_parties_is_refused() {
    let same = broken_with_datum(|d| d.buyer_return_address = Some(d.seller));
    assert_eq!(same, code("datum_same_payout"));
}

#[test]
fn a_buyer_who_does_not_own_the_nonce_is_refused() {
    assert_eq!(broken_with_terms(|case| case.payer = key(7).enterprise_address()), code("datum_buyer"));
}

#[test]
fn a_buyer_who_has_not_signed_is_refused() {
    assert_eq!(broken_with_lock(|lock| lock.witnesses.clear()), code("buyer_witness"));
    assert_eq!(broken_with_lock(|lock| lock.witnesses = vec![key(7)]), code("buyer_witness"));
}

#[test]
fn every_field_that_the_seller_signed_must_be_in_the_datum_as_signed() {
    type DatumChange = fn(&mut Datum);
    let changes: [(&str, DatumChange); 16] = [
        ("seller", |d| d.seller = key(7).enterprise_address().into()),
        ("seller", |d| {
            d.seller =
                Address::base(*key(1).enterprise_address().payment_key(), Credential::Key(KeyHash::new([5; 28]))).into()
        }),
        ("seller_return_address", |d| d.seller_return_address = Some(d.seller)),
        ("reference_key", |d| d.reference_key[5] ^= 1),
        ("reference_key", |d| d.reference_key.push(0)),
        ("reference_signature", |d| d.reference_signature[5] ^= 1),
        ("reference_signature", |d| d.reference_signature.truncate(16)),
        ("seller_nonce", |d| d.seller_nonce[0] ^= 1),
        ("seller_nonce", |d| d.seller_nonce.clear()),
        ("buyer_nonce", |d| d.buyer_nonce = vec![1; 7]),
        ("agent_identifier", |d| d.agent_identifier = vec![1]),
        ("input_hash", |d| d.input_hash[0] ^= 1),
        ("pay_by_time", |d| d.deadlines.pay_by += 1),
        ("submit_result_time", |d| d.deadlines.submit_result -= 1),
        ("unlock_time", |d| d.deadlines.unlock += 1),
        ("external_dispute_unlock_time", |d| d.deadlines.external_dispute_unlock += 1),
    ];
    for (field, change) in changes {
        assert_eq!(broken_with_datum(change), code(&format!("datum_{field}")), "{field}");
    }
}

#[test]
fn a_declared_return_address_must_be_in_the_datum() {
    let declared = key(8).enterprise_address();
    let broken = |in_datum| {
        broken_with_terms(|case| {
            case.terms.terms.seller_return = Some(declared);
            case.datum.seller_return_address = in_datum;
        })
    };
    assert!(broken(Some(declared.into())).is_empty());
    assert_eq!(broken(None), code("datum_seller_return_address"));
    assert_eq!(broken(Some(key(7).enterprise_address().into())), code("datum_seller_return_address"));
}

#[test]
fn collateral_between_nothing_and_the_least_is_refused() {
    let one = Lovelace::new(1).unwrap();
    assert_eq!(broken_with_datum(|d| d.collateral_return = one), code("collateral"));
    assert_eq!(broken_with_datum(|d| d.collateral_return = MIN_COLLATERAL.saturating_sub(one)), code("collateral"));
}

#[test]
fn anything_but_exactly_price_and_collateral_is_refused() {
    assert_eq!(broken_with_lock(|lock| lock.outputs[1].lovelace += 1), code("value"));
    assert_eq!(broken_with_lock(|lock| lock.outputs[1].lovelace -= 1), code("value"));
}

#[test]
fn tokens_in_the_escrow_are_refused() {
    assert_eq!(broken_with_lock(|lock| lock.outputs[1].token = true), code("asset"));
    assert!(broken_with_lock(|lock| lock.outputs[0].token = true).is_empty(), "the buyer's change may hold tokens");
}

#[test]
fn too_little_to_carry_the_result_is_refused() {
    let broken = |price| {
        broken_with_terms(|case| {
            case.terms.price = price;
            case.datum.collateral_return = MIN_COLLATERAL;
        })
    };
    let least = ::escrow::collateral::minimum_after_result(
        &Datum { collateral_return: MIN_COLLATERAL, ..LockCase::honest().datum },
        &parameters(),
    );
    let price = least.unwrap().saturating_sub(MIN_COLLATERAL);
    assert!(broken(price).is_empty());
    assert_eq!(broken(price.saturating_sub(Lovelace::new(1).unwrap())), code("min_utxo"));
}

#[test]
fn a_lock_that_could_settle_after_its_deadline_is_refused() {
    assert_eq!(broken_with_lock(|lock| lock.ttl = None), code("deadline"));
    assert_eq!(broken_with_lock(|lock| lock.ttl = lock.ttl.map(|ttl| ttl + 1)), code("deadline"), "one slot later");
    assert_eq!(broken_with_lock(|lock| lock.ttl = Some(u64::MAX)), code("deadline"));
    // A deadline within a slot: its slot begins before the deadline, the next one after it.
    let inside = |ttl: u64| {
        let mut case = LockCase::honest();
        let deadlines = &mut case.terms.terms.deadlines;
        *deadlines = Deadlines { pay_by: deadlines.pay_by + 500, ..*deadlines };
        case.datum.deadlines = *deadlines;
        let mut lock = case.lock();
        lock.ttl = lock.ttl.map(|slot| slot + ttl);
        case.broken(&lock)
    };
    assert!(inside(0).is_empty());
    assert_eq!(inside(1), code("deadline"));
}

proptest! {
    #[test]
    fn a_changed_byte_of_the_datum_is_always_refused(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let case = LockCase::honest();
        let mut cbor = case.datum.to_cbor();
        let at = at.index(cbor.len());
        prop_assume!(cbor[at] != to);
        cbor[at] = to;
        // The buyer may choose a stake credential, a return address, and collateral, which changes the value.
        if let Ok(datum) = Datum::from_cbor(&cbor) {
            prop_assume!(datum.buyer.payment != case.datum.buyer.payment || datum.buyer == case.datum.buyer);
            prop_assume!(datum != case.datum);
        }
        let mut lock = case.lock();
        lock.outputs[1].datum = Attached::Inline(cbor);
        prop_assert!(lock.try_build().is_err() || !case.broken(&lock).is_empty());
    }
}
