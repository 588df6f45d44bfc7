//! Tests of the table of rules alone. `tests/contract/matrix` checks that the contract agrees with the table.

use super::*;
use crate::{
    Deadlines,
    address::PlutusAddress,
    datum::tests::{any_datum, published},
};
use cardano::ScriptHash;
use proptest::{prelude::*, sample::select};

const PERIOD: Millis = 60_000;
const BUYER: KeyHash = KeyHash::new([0x11; 28]);
const SELLER: KeyHash = KeyHash::new([0x22; 28]);

/// Returns the datum of an escrow in this state, with a result hash if honest parties would have submitted a result by
/// then.
fn escrow(state: State) -> Datum {
    let result_hash = match state {
        ResultSubmitted | Disputed | WithdrawAuthorized => vec![0x99; 32],
        FundsLocked | RefundRequested | RefundAuthorized => vec![],
    };
    let deadlines = published().deadlines;
    Datum {
        state,
        result_hash,
        seller_cooldown: deadlines.pay_by + 1_000,
        buyer_cooldown: deadlines.pay_by + 2_000,
        ..published()
    }
}

fn permit(action: Action, datum: &Datum, from: Millis, until: Millis) -> Result<&'static Rule, ContractRefusal> {
    let validity = ValidityRange { from: Some(from), until: Some(until) };
    Rule::permit(action, datum, Lovelace::from_ada(7), validity, &[BUYER, SELLER])
}

#[test]
fn the_result_is_set_kept_or_cleared() {
    let posted = ContentHash::new([7; 32]);
    let disputed = escrow(Disputed);
    let next = |action| Rule::find(action, &disputed).unwrap().next(&disputed, 0, PERIOD, Some(&posted)).unwrap();
    assert_eq!(next(Action::SubmitResult).result_hash, posted.as_bytes());
    assert_eq!(next(Action::SetRefundRequested).result_hash, disputed.result_hash);
    assert_eq!(next(Action::AuthorizeWithdrawal).result_hash, disputed.result_hash);
    assert!(next(Action::AuthorizeRefund).result_hash.is_empty());
    assert_eq!(Rule::find(Action::SubmitResult, &disputed).unwrap().next(&disputed, 0, PERIOD, None), None);
}

#[test]
fn a_short_reference_signature_strands_the_escrow() {
    let datum = Datum { reference_signature: vec![1; 15], ..escrow(RefundAuthorized) };
    assert_eq!(permit(Action::WithdrawRefund, &datum, 0, 1), Err(ContractRefusal::ReferenceSignature));
    let datum = Datum { reference_signature: vec![1; 16], ..datum };
    assert!(permit(Action::WithdrawRefund, &datum, 0, 1).is_ok());
}

/// An action, with the start (0: at once) and the end of its time window.
type WindowRow = (Action, Millis, Option<Millis>);

/// Checks the windows of each party in each state.
#[test]
fn each_partys_windows_are_as_in_the_table() {
    use Action::{
        AuthorizeRefund, AuthorizeWithdrawal, SetRefundRequested, SubmitResult, Withdraw, WithdrawDisputed,
        WithdrawRefund,
    };
    use Party::{Arbiters, Buyer, Seller};
    let Datum { seller_cooldown: sells, buyer_cooldown: buys, deadlines, .. } = escrow(FundsLocked);
    let Deadlines { submit_result: submit, unlock, external_dispute_unlock: dispute, .. } = deadlines;
    #[rustfmt::skip]
    let table: [(State, Party, &[WindowRow]); 18] = [
        (FundsLocked, Buyer, &[(SetRefundRequested, buys, Some(unlock)), (WithdrawRefund, submit, None)]),
        (FundsLocked, Seller, &[(SubmitResult, sells, Some(submit)), (AuthorizeRefund, sells, None)]),
        (FundsLocked, Arbiters, &[]),
        (ResultSubmitted, Buyer, &[(SetRefundRequested, buys, Some(unlock))]),
        (ResultSubmitted, Seller, &[(Withdraw, unlock, None), (SubmitResult, sells, Some(dispute)), (AuthorizeRefund, sells, None)]),
        (ResultSubmitted, Arbiters, &[]),
        (RefundRequested, Buyer, &[(WithdrawRefund, submit, None)]),
        (RefundRequested, Seller, &[(SubmitResult, sells, Some(submit)), (AuthorizeRefund, sells, None)]),
        (RefundRequested, Arbiters, &[]),
        (Disputed, Buyer, &[(SetRefundRequested, buys, Some(unlock)), (AuthorizeWithdrawal, buys, None)]),
        (Disputed, Seller, &[(SubmitResult, sells, Some(dispute)), (AuthorizeRefund, sells, None)]),
        (Disputed, Arbiters, &[(WithdrawDisputed, dispute, None)]),
        (WithdrawAuthorized, Buyer, &[]),
        (WithdrawAuthorized, Seller, &[(Withdraw, 0, None)]),
        (WithdrawAuthorized, Arbiters, &[]),
        (RefundAuthorized, Buyer, &[(WithdrawRefund, 0, None)]),
        (RefundAuthorized, Seller, &[]),
        (RefundAuthorized, Arbiters, &[]),
    ];
    for (state, party, expected) in table {
        let datum = escrow(state);
        let windows: Vec<_> =
            datum.windows_of(party).map(|(action, Window { opens, closes })| (action, opens, closes)).collect();
        assert_eq!(windows, expected, "{state:?} {party:?}");
        for (action, opens, closes) in windows {
            assert_eq!(datum.window(action), Some(Window { opens, closes }));
            let open_at = |now| datum.open_to(party, now).any(|open| open == (action, closes));
            assert!(open_at(opens) && (opens == 0 || !open_at(opens - 1)), "{action:?} from {state:?} opens");
            assert!(closes.is_none_or(|closes| open_at(closes - 1) && !open_at(closes)), "{action:?} closes");
        }
    }
}

#[test]
fn a_window_is_early_open_or_over() {
    let until_100 = Window { opens: 50, closes: Some(100) };
    let unending = Window { opens: 50, closes: None };
    let never = Window { opens: 100, closes: Some(100) };
    for (window, now, margin, timing) in [
        (until_100, 49, 0, Timing::Early(50)),
        (until_100, 50, 0, Timing::Open),
        (until_100, 99, 0, Timing::Open),
        (until_100, 100, 0, Timing::Over),
        (until_100, 79, 20, Timing::Open),
        (until_100, 80, 20, Timing::Over),
        (until_100, 0, 49, Timing::Early(50)),
        (until_100, 0, 50, Timing::Over),
        (unending, 49, 1_000, Timing::Early(50)),
        (unending, Millis::MAX, 1_000, Timing::Open),
        (never, 0, 0, Timing::Over),
        (never, 100, 0, Timing::Over),
    ] {
        assert_eq!(window.timing(now, margin), timing, "{window:?} at {now} with {margin}");
    }
}

#[test]
fn a_script_party_may_take_no_action() {
    let script = PlutusAddress::script(ScriptHash::new([0x22; 28]));
    let datum = Datum { seller: script, ..escrow(ResultSubmitted) };
    assert_eq!(datum.windows_of(Party::Seller).count(), 0);
    assert_eq!(datum.windows_of(Party::Buyer).count(), 1);
}

proptest! {
    #[test]
    fn at_most_one_rule_fits(datum in any_datum(), action in select(&Action::ALL[..])) {
        let fits = RULES.iter().filter(|rule| {
            rule.action == action && rule.from.contains(&datum.state) && rule.result.fits(datum.has_result())
        });
        prop_assert!(fits.count() <= 1);
    }

    #[test]
    fn the_planners_output_continues_the_escrow_and_any_other_change_does_not(
        datum in any_datum(),
        action in select(&Action::ALL[..]),
        other in any_datum(),
        field in 0usize..16,
    ) {
        let Some(rule) = Rule::find(action, &datum) else { return Ok(()) };
        let posted = ContentHash::new([7; 32]);
        let Some(new) = rule.next(&datum, 1_000, PERIOD, Some(&posted)) else { return Ok(()) };
        prop_assert!(rule.continues(&datum, &new, 1_000, PERIOD));
        prop_assert!(!rule.continues(&datum, &new, 1_001, PERIOD), "the cooldown is one ms short");
        let mut changed = new.clone();
        match field {
            0 => changed.buyer = other.buyer,
            1 => changed.buyer_return_address = other.buyer_return_address,
            2 => changed.seller = other.seller,
            3 => changed.seller_return_address = other.seller_return_address,
            4 => changed.reference_key = other.reference_key,
            5 => changed.reference_signature = other.reference_signature,
            6 => changed.seller_nonce = other.seller_nonce,
            7 => changed.buyer_nonce = other.buyer_nonce,
            8 => changed.agent_identifier = other.agent_identifier,
            9 => changed.collateral_return = other.collateral_return,
            10 => changed.input_hash = other.input_hash,
            11 => changed.deadlines.pay_by = other.deadlines.pay_by,
            12 => changed.deadlines.submit_result = other.deadlines.submit_result,
            13 => changed.deadlines.unlock = other.deadlines.unlock,
            14 => changed.deadlines.external_dispute_unlock = other.deadlines.external_dispute_unlock,
            _ => changed.state = other.state,
        }
        prop_assert_eq!(rule.continues(&datum, &changed, 1_000, PERIOD), changed == new);
    }
}
