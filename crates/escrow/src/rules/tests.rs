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

/// An escrow in a state, with the result that the state has by honest ways.
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

/// A time at which a rule's action is possible.
fn inside(rule: &Rule, datum: &Datum) -> (Millis, Millis) {
    let Window { opens: from, closes } = rule.window(datum);
    let until = closes.map_or(from + 10_000, |closes| closes - 1);
    assert!(from < until, "{rule:?}");
    (from, until)
}

#[test]
fn each_action_is_possible_from_exactly_these_states() {
    let possible = |action| {
        State::ALL.into_iter().filter(move |state| Rule::find(action, &escrow(*state)).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(possible(Action::SubmitResult), [FundsLocked, ResultSubmitted, RefundRequested, Disputed]);
    assert_eq!(possible(Action::SetRefundRequested), [FundsLocked, ResultSubmitted, Disputed]);
    assert_eq!(possible(Action::AuthorizeWithdrawal), [Disputed]);
    assert_eq!(possible(Action::AuthorizeRefund), [FundsLocked, ResultSubmitted, RefundRequested, Disputed]);
    assert_eq!(possible(Action::Withdraw), [ResultSubmitted, WithdrawAuthorized]);
    assert_eq!(possible(Action::WithdrawRefund), [FundsLocked, RefundRequested, RefundAuthorized]);
    assert_eq!(possible(Action::WithdrawDisputed), [Disputed]);
}

#[test]
fn an_action_leads_to_this_state() {
    let result = ContentHash::new([7; 32]);
    for (action, from, to) in [
        (Action::SubmitResult, FundsLocked, ResultSubmitted),
        (Action::SubmitResult, ResultSubmitted, ResultSubmitted),
        (Action::SubmitResult, RefundRequested, Disputed),
        (Action::SubmitResult, Disputed, Disputed),
        (Action::SetRefundRequested, FundsLocked, RefundRequested),
        (Action::SetRefundRequested, ResultSubmitted, Disputed),
        (Action::SetRefundRequested, Disputed, Disputed),
        (Action::AuthorizeWithdrawal, Disputed, WithdrawAuthorized),
        (Action::AuthorizeRefund, Disputed, RefundAuthorized),
    ] {
        let old = escrow(from);
        let rule = Rule::find(action, &old).unwrap();
        let new = rule.next(&old, 5_000, PERIOD, Some(&result)).unwrap();
        assert_eq!(new.state, to, "{action:?} from {from:?}");
        assert!(rule.continues(&old, &new, 5_000, PERIOD));
        let own = if rule.by == Party::Seller { new.seller_cooldown } else { new.buyer_cooldown };
        assert_eq!((own, new.seller_cooldown.min(new.buyer_cooldown)), (65_000, 0), "{action:?}");
    }
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
fn every_rule_is_closed_one_millisecond_before_it_opens_and_when_it_closes() {
    let mut edges = 0;
    for state in State::ALL {
        let datum = escrow(state);
        for rule in Action::ALL.into_iter().filter_map(|action| Rule::find(action, &datum)) {
            let (from, until) = inside(rule, &datum);
            assert_eq!(permit(rule.action, &datum, from, until), Ok(rule), "{rule:?}");
            let Window { opens, closes } = rule.window(&datum);
            if !rule.starts.is_empty() {
                assert_eq!(
                    permit(rule.action, &datum, opens - 1, until),
                    Err(ContractRefusal::TooEarly(opens)),
                    "{rule:?}"
                );
                edges += 1;
            }
            if let Some(closes) = closes {
                assert_eq!(
                    permit(rule.action, &datum, from, closes),
                    Err(ContractRefusal::TooLate(closes)),
                    "{rule:?}"
                );
                edges += 1;
            }
        }
    }
    assert_eq!(edges, 23, "every moment of every rule was tried");
}

#[test]
fn a_first_result_comes_before_the_submit_time_and_a_better_one_before_the_dispute() {
    let deadlines = published().deadlines;
    let closes = |state| escrow(state).window(Action::SubmitResult).unwrap().closes;
    assert_eq!(closes(FundsLocked), Some(deadlines.submit_result));
    assert_eq!(closes(RefundRequested), Some(deadlines.submit_result));
    assert_eq!(closes(ResultSubmitted), Some(deadlines.external_dispute_unlock));
    assert_eq!(closes(Disputed), Some(deadlines.external_dispute_unlock));
}

#[test]
fn an_open_interval_is_refused() {
    let datum = escrow(ResultSubmitted);
    let locked = Lovelace::from_ada(7);
    let unlock = datum.deadlines.unlock;
    for validity in [
        ValidityRange { from: Some(unlock), until: None },
        ValidityRange { from: None, until: Some(unlock + 1) },
        ValidityRange { from: None, until: None },
    ] {
        let refused = Rule::permit(Action::Withdraw, &datum, locked, validity, &[SELLER]);
        assert_eq!(refused, Err(ContractRefusal::Unbounded), "{validity:?}");
    }
    let at_once = ValidityRange { from: None, until: Some(1) };
    assert!(Rule::permit(Action::Withdraw, &escrow(WithdrawAuthorized), locked, at_once, &[SELLER]).is_ok());
}

#[test]
fn only_the_party_may_act() {
    for state in State::ALL {
        let datum = escrow(state);
        for rule in Action::ALL.into_iter().filter_map(|action| Rule::find(action, &datum)) {
            let (from, until) = inside(rule, &datum);
            let validity = ValidityRange { from: Some(from), until: Some(until) };
            let signed_by =
                |keys: &[KeyHash]| Rule::permit(rule.action, &datum, Lovelace::from_ada(7), validity, keys).err();
            let not_signed = Some(ContractRefusal::NotSigned);
            let (buyer, seller, nobody) = match rule.by {
                Party::Buyer => (None, not_signed, not_signed),
                Party::Seller => (not_signed, None, not_signed),
                Party::Arbiters => (None, None, None),
            };
            assert_eq!(signed_by(&[BUYER]), buyer, "{rule:?}");
            assert_eq!(signed_by(&[SELLER]), seller, "{rule:?}");
            assert_eq!(signed_by(&[]), nobody, "{rule:?}");
        }
    }
}

#[test]
fn a_script_can_never_be_a_party() {
    let script = PlutusAddress::script(ScriptHash::new([0x22; 28]));
    let datum = Datum { seller: script, ..escrow(FundsLocked) };
    let from = datum.seller_cooldown;
    assert_eq!(permit(Action::SubmitResult, &datum, from, from + 1), Err(ContractRefusal::NoKey));
}

#[test]
fn a_short_reference_signature_strands_the_escrow() {
    let datum = Datum { reference_signature: vec![1; 15], ..escrow(RefundAuthorized) };
    assert_eq!(permit(Action::WithdrawRefund, &datum, 0, 1), Err(ContractRefusal::ReferenceSignature));
    let datum = Datum { reference_signature: vec![1; 16], ..datum };
    assert!(permit(Action::WithdrawRefund, &datum, 0, 1).is_ok());
}

#[test]
fn less_than_the_collateral_cannot_be_collected() {
    let datum = escrow(WithdrawAuthorized);
    let validity = ValidityRange { from: Some(0), until: Some(1) };
    let short = datum.collateral_return.saturating_sub(Lovelace::new(1).unwrap());
    let with = |locked| Rule::permit(Action::Withdraw, &datum, locked, validity, &[SELLER]);
    assert_eq!(with(short), Err(ContractRefusal::Collateral));
    assert!(with(datum.collateral_return).is_ok());
}

/// Of the escrow of these tests, in each state: what each party can do, from when (0: at once) until when.
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
    let table: [(State, Party, &[(Action, Millis, Option<Millis>)]); 18] = [
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
    let for_ever = Window { opens: 50, closes: None };
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
        (for_ever, 49, 1_000, Timing::Early(50)),
        (for_ever, Millis::MAX, 1_000, Timing::Open),
        (never, 0, 0, Timing::Over),
        (never, 100, 0, Timing::Over),
    ] {
        assert_eq!(window.timing(now, margin), timing, "{window:?} at {now} with {margin}");
    }
}

#[test]
fn a_script_can_do_nothing() {
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
    fn what_the_planner_makes_continues_and_any_other_change_does_not(
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
