//! What to do with an escrow: a pure function of what the chain shows, what was sold, whose keys we hold, and the time.
//!
//! ```text
//!            no result                 a result that is ours          another result, or a mismatch found
//!  seller    post it                   collect after unlock           put it right after unlock, if nobody disputes
//!  buyer     refund after its time     -                              dispute before unlock; then the arbiter
//! ```
//!
//! The seller never gives in by itself, and the buyer never gives money free by itself.

use cardano::{ContentHash, slots::Millis};
use escrow::{Datum, State};

/// The least time that must be left before a deadline: with less, a transaction would mostly be too late.
const LEAST_TIME_MS: Millis = 25_000;
/// How often the arbiter is asked again.
pub(super) const ASK_AGAIN_MS: Millis = 60_000;

/// What an escrow is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The escrow, as the chain has it.
    pub datum: &'a Datum,
    /// The hash of what was delivered.
    pub delivered: ContentHash,
    /// Whether the buyer found something else than what was listed.
    pub mismatch: bool,
    /// Whether we are its seller, and act as such.
    pub sells: bool,
    /// Whether we hold its buyer's key.
    pub buys: bool,
    /// The clock of escrow matters, POSIX ms.
    pub now: Millis,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The seller posts the hash of what was delivered.
    PostResult,
    /// The seller collects, and pays the creator.
    Collect,
    /// The buyer takes the money back.
    Refund,
    /// The buyer disputes.
    Dispute,
    /// The arbiter is asked.
    AskArbiter,
    /// Nothing before this time, POSIX ms, unless the chain shows something new.
    Wait(Millis),
}

/// Nothing to do unless the chain shows something new.
const REST: Decision = Decision::Wait(Millis::MAX);

/// Decides.
#[must_use]
pub fn decide(facts: &Facts<'_>) -> Decision {
    match facts.datum.state {
        State::FundsLocked | State::RefundRequested => without_result(facts),
        State::ResultSubmitted => with_result(facts),
        State::Disputed if facts.sells || facts.buys => {
            from(facts.datum.deadlines.external_dispute_unlock, facts, Decision::AskArbiter)
        }
        State::WithdrawAuthorized if facts.sells => Decision::Collect,
        State::RefundAuthorized if facts.buys => Decision::Refund,
        State::Disputed | State::WithdrawAuthorized | State::RefundAuthorized => REST,
    }
}

fn without_result(facts: &Facts<'_>) -> Decision {
    let Facts { datum, sells, buys, .. } = facts;
    let deadline = datum.deadlines.submit_result;
    if *sells && in_time(deadline, facts) {
        return from(datum.seller_cooldown, facts, Decision::PostResult);
    }
    if *buys { from(deadline, facts, Decision::Refund) } else { REST }
}

fn with_result(facts: &Facts<'_>) -> Decision {
    let Facts { datum, sells, buys, mismatch, .. } = facts;
    let right = datum.result_hash == facts.delivered.as_bytes();
    let unlock = datum.deadlines.unlock;
    if *buys && (!right || *mismatch) && in_time(unlock, facts) && in_time_after_cooldown(datum, unlock) {
        return from(datum.buyer_cooldown, facts, Decision::Dispute);
    }
    if !*sells {
        return REST;
    }
    let reposts = !right && in_time(datum.deadlines.external_dispute_unlock, facts);
    from(unlock, facts, if reposts { Decision::PostResult } else { Decision::Collect })
}

fn in_time_after_cooldown(datum: &Datum, unlock: Millis) -> bool {
    datum.buyer_cooldown.saturating_add(LEAST_TIME_MS) < unlock
}

fn in_time(deadline: Millis, facts: &Facts<'_>) -> bool {
    facts.now.saturating_add(LEAST_TIME_MS) < deadline
}

/// This from then on, and nothing before.
fn from(opens: Millis, facts: &Facts<'_>, decision: Decision) -> Decision {
    if facts.now < opens { Decision::Wait(opens) } else { decision }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Decision::{AskArbiter, Collect, Dispute, PostResult, Refund, Wait};
    use State::{Disputed, FundsLocked, RefundAuthorized, RefundRequested, ResultSubmitted, WithdrawAuthorized};
    use cardano::{Lovelace, ScriptHash};
    use escrow::{Deadlines, PlutusAddress};

    const SUBMIT: Millis = 1_000_000;
    const UNLOCK: Millis = 2_000_000;
    const WINDOW: Millis = 3_000_000;
    const RIGHT: ContentHash = ContentHash::new([7; 32]);
    /// Just too late for what must happen before a deadline.
    const LATE: Millis = LEAST_TIME_MS;

    fn datum(state: State, right: bool) -> Datum {
        let nobody = PlutusAddress::script(ScriptHash::new([1; 28]));
        let has_result = matches!(state, ResultSubmitted | Disputed | WithdrawAuthorized);
        Datum {
            buyer: nobody,
            buyer_return_address: None,
            seller: nobody,
            seller_return_address: None,
            reference_key: vec![],
            reference_signature: vec![],
            seller_nonce: vec![],
            buyer_nonce: vec![],
            agent_identifier: vec![],
            collateral_return: Lovelace::ZERO,
            input_hash: vec![],
            result_hash: if has_result { vec![if right { 7 } else { 8 }; 32] } else { vec![] },
            deadlines: Deadlines {
                pay_by: 500_000,
                submit_result: SUBMIT,
                unlock: UNLOCK,
                external_dispute_unlock: WINDOW,
            },
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state,
        }
    }

    /// State, whether the result is right, a mismatch was found, the time; what the seller, the buyer and both do.
    type Case = (State, bool, bool, Millis, [Decision; 3]);

    #[rustfmt::skip]
    const CASES: &[Case] = &[
        (FundsLocked,        true,  false, 0,             [PostResult, Wait(SUBMIT), PostResult]),
        (FundsLocked,        true,  true,  0,             [PostResult, Wait(SUBMIT), PostResult]),
        (FundsLocked,        true,  false, SUBMIT - LATE, [REST, Wait(SUBMIT), Wait(SUBMIT)]),
        (FundsLocked,        true,  false, SUBMIT,        [REST, Refund, Refund]),
        (FundsLocked,        true,  false, WINDOW * 2,    [REST, Refund, Refund]),
        (RefundRequested,    true,  false, 0,             [PostResult, Wait(SUBMIT), PostResult]),
        (RefundRequested,    true,  false, SUBMIT,        [REST, Refund, Refund]),
        (ResultSubmitted,    true,  false, 0,             [Wait(UNLOCK), REST, Wait(UNLOCK)]),
        (ResultSubmitted,    true,  false, UNLOCK,        [Collect, REST, Collect]),
        (ResultSubmitted,    true,  true,  0,             [Wait(UNLOCK), Dispute, Dispute]),
        (ResultSubmitted,    true,  true,  UNLOCK - LATE, [Wait(UNLOCK), REST, Wait(UNLOCK)]),
        (ResultSubmitted,    true,  true,  UNLOCK,        [Collect, REST, Collect]),
        (ResultSubmitted,    false, false, 0,             [Wait(UNLOCK), Dispute, Dispute]),
        (ResultSubmitted,    false, false, UNLOCK - LATE, [Wait(UNLOCK), REST, Wait(UNLOCK)]),
        (ResultSubmitted,    false, false, UNLOCK,        [PostResult, REST, PostResult]),
        (ResultSubmitted,    false, false, WINDOW - LATE, [Collect, REST, Collect]),
        (Disputed,           true,  false, 0,             [Wait(WINDOW), Wait(WINDOW), Wait(WINDOW)]),
        (Disputed,           false, false, WINDOW - 1,    [Wait(WINDOW), Wait(WINDOW), Wait(WINDOW)]),
        (Disputed,           true,  false, WINDOW,        [AskArbiter, AskArbiter, AskArbiter]),
        (Disputed,           false, true,  WINDOW * 2,    [AskArbiter, AskArbiter, AskArbiter]),
        (WithdrawAuthorized, true,  false, 0,             [Collect, REST, Collect]),
        (WithdrawAuthorized, false, true,  WINDOW,        [Collect, REST, Collect]),
        (RefundAuthorized,   true,  false, 0,             [REST, Refund, Refund]),
        (RefundAuthorized,   true,  true,  WINDOW,        [REST, Refund, Refund]),
    ];

    #[test]
    fn every_case_is_decided_as_in_the_table() {
        for &(state, right, mismatch, now, expected) in CASES {
            let datum = datum(state, right);
            let parties = [(true, false), (false, true), (true, true)];
            let decided = parties
                .map(|(sells, buys)| decide(&Facts { datum: &datum, delivered: RIGHT, mismatch, sells, buys, now }));
            assert_eq!(decided, expected, "{state:?}, right {right}, mismatch {mismatch}, at {now}");
        }
    }

    #[test]
    fn nothing_is_done_for_strangers() {
        for &(state, right, mismatch, now, _) in CASES {
            let datum = datum(state, right);
            let facts = Facts { datum: &datum, delivered: RIGHT, mismatch, sells: false, buys: false, now };
            assert_eq!(decide(&facts), REST, "{state:?} at {now}");
        }
    }

    #[test]
    fn a_cooldown_is_waited_for() {
        let cool = Datum { seller_cooldown: 50_000, buyer_cooldown: 60_000, ..datum(FundsLocked, true) };
        let facts = Facts { datum: &cool, delivered: RIGHT, mismatch: false, sells: true, buys: true, now: 0 };
        assert_eq!(decide(&facts), Wait(50_000));
        let cool = Datum { buyer_cooldown: 60_000, ..datum(ResultSubmitted, false) };
        assert_eq!(decide(&Facts { datum: &cool, ..facts }), Wait(60_000));
        let too_long = Datum { buyer_cooldown: UNLOCK - LATE, ..cool };
        assert_eq!(decide(&Facts { datum: &too_long, ..facts }), Wait(UNLOCK), "a dispute would come too late");
    }
}
