//! Decides what to do with an escrow, given its state on the chain, the delivered content, our keys and the time.
//!
//! [`Datum::window`] says when the contract allows an action.
//!
//! ```text
//!            no result                 our result                 another result, or a reported mismatch
//!  seller    post it                   collect after unlock       correct it after unlock, if undisputed
//!  buyer     refund after the deadline -                          dispute before unlock; then ask the arbiter
//! ```
//!
//! The watcher never authorizes a refund for the seller, nor a withdrawal for the buyer.

use cardano::slots::Millis;
use escrow::{Action, Datum, State, rules::Timing};

/// Minimum time in ms before a deadline at which an action is still tried. A later transaction would usually miss the
/// deadline.
pub(super) const LEAST_TIME_MS: Millis = 25_000;

/// Facts about an escrow on which the watcher's decision depends.
#[derive(Clone, Copy, Debug)]
pub struct EscrowFacts<'a> {
    /// The escrow's current datum.
    pub datum: &'a Datum,
    /// Whether the result posted in the escrow is the hash of the content that was delivered.
    pub result_matches: bool,
    /// Whether the buyer has reported a mismatch.
    pub mismatch: bool,
    /// Whether this watcher has the key of the escrow's seller and acts for it.
    pub sells: bool,
    /// Whether this service has the buyer's key, so that it can act for the buyer.
    pub buys: bool,
    /// Time in POSIX ms that escrow deadlines are compared with.
    pub now: Millis,
}

/// The next action on an escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// As the seller, post the result.
    PostResult,
    /// As the seller, collect the money and pay the creator.
    Collect,
    /// As the buyer, take the money back.
    Refund,
    /// As the buyer, dispute the result.
    Dispute,
    /// Ask the arbiter.
    AskArbiter,
    /// Do nothing before this time, POSIX ms, unless the escrow changes.
    Wait(Millis),
}

/// The decision to do nothing unless the escrow changes.
const IDLE: NextStep = NextStep::Wait(Millis::MAX);

#[must_use]
pub fn decide(facts: &EscrowFacts<'_>) -> NextStep {
    let EscrowFacts { sells, buys, .. } = *facts;
    match facts.datum.state {
        State::FundsLocked | State::RefundRequested => without_result(facts),
        State::ResultSubmitted => with_result(facts),
        State::Disputed if sells || buys => facts.when(Action::WithdrawDisputed, NextStep::AskArbiter).unwrap_or(IDLE),
        State::WithdrawAuthorized if sells => facts.when(Action::Withdraw, NextStep::Collect).unwrap_or(IDLE),
        State::RefundAuthorized if buys => facts.when(Action::WithdrawRefund, NextStep::Refund).unwrap_or(IDLE),
        State::Disputed | State::WithdrawAuthorized | State::RefundAuthorized => IDLE,
    }
}

fn without_result(facts: &EscrowFacts<'_>) -> NextStep {
    let posts = facts.sells.then(|| facts.when(Action::SubmitResult, NextStep::PostResult)).flatten();
    let refunds = || facts.buys.then(|| facts.when(Action::WithdrawRefund, NextStep::Refund)).flatten();
    posts.or_else(refunds).unwrap_or(IDLE)
}

fn with_result(facts: &EscrowFacts<'_>) -> NextStep {
    let disputes = facts.buys && (!facts.result_matches || facts.mismatch);
    if disputes && let Some(step) = facts.when(Action::SetRefundRequested, NextStep::Dispute) {
        return step;
    }
    if !facts.sells {
        return IDLE;
    }
    let collects = facts.when(Action::Withdraw, NextStep::Collect).unwrap_or(IDLE);
    if collects == NextStep::Collect && !facts.result_matches {
        return facts.when(Action::SubmitResult, NextStep::PostResult).unwrap_or(collects);
    }
    collects
}

impl EscrowFacts<'_> {
    /// Returns `step` if the contract allows the action now, and [`NextStep::Wait`] if it allows the action later.
    /// Returns `None` if it never does, or if too little time is left.
    fn when(&self, action: Action, step: NextStep) -> Option<NextStep> {
        match self.datum.window(action)?.timing(self.now, LEAST_TIME_MS) {
            Timing::Open => Some(step),
            Timing::Early(opens) => Some(NextStep::Wait(opens)),
            Timing::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NextStep::{AskArbiter, Collect, Dispute, PostResult, Refund, Wait};
    use State::{Disputed, FundsLocked, RefundAuthorized, RefundRequested, ResultSubmitted, WithdrawAuthorized};
    use cardano::{Lovelace, ScriptHash};
    use escrow::{Deadlines, PlutusAddress};

    const SUBMIT: Millis = 1_000_000;
    const UNLOCK: Millis = 2_000_000;
    const WINDOW: Millis = 3_000_000;
    /// Time in ms before a deadline from which an action is too late.
    const LATE: Millis = LEAST_TIME_MS;

    fn datum(state: State) -> Datum {
        let party = PlutusAddress::script(ScriptHash::new([1; 28]));
        let has_result = matches!(state, ResultSubmitted | Disputed | WithdrawAuthorized);
        Datum {
            buyer: party,
            buyer_return_address: None,
            seller: party,
            seller_return_address: None,
            reference_key: vec![],
            reference_signature: vec![],
            seller_nonce: vec![],
            buyer_nonce: vec![],
            agent_identifier: vec![],
            collateral_return: Lovelace::ZERO,
            input_hash: vec![],
            result_hash: if has_result { vec![7; 32] } else { vec![] },
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

    /// A row of the table of test cases: the escrow's state, whether its result matches the content, whether the buyer
    /// reported a mismatch, and the time. The last part holds the expected decisions of a watcher that acts as seller,
    /// as buyer, and as both.
    type DecisionRow = (State, bool, bool, Millis, [NextStep; 3]);

    #[rustfmt::skip]
    const CASES: &[DecisionRow] = &[
        (FundsLocked,        true,  false, 0,             [PostResult, Wait(SUBMIT), PostResult]),
        (FundsLocked,        true,  true,  0,             [PostResult, Wait(SUBMIT), PostResult]),
        (FundsLocked,        true,  false, SUBMIT - LATE, [IDLE, Wait(SUBMIT), Wait(SUBMIT)]),
        (FundsLocked,        true,  false, SUBMIT,        [IDLE, Refund, Refund]),
        (FundsLocked,        true,  false, WINDOW * 2,    [IDLE, Refund, Refund]),
        (RefundRequested,    true,  false, 0,             [PostResult, Wait(SUBMIT), PostResult]),
        (RefundRequested,    true,  false, SUBMIT,        [IDLE, Refund, Refund]),
        (ResultSubmitted,    true,  false, 0,             [Wait(UNLOCK), IDLE, Wait(UNLOCK)]),
        (ResultSubmitted,    true,  false, UNLOCK,        [Collect, IDLE, Collect]),
        (ResultSubmitted,    true,  true,  0,             [Wait(UNLOCK), Dispute, Dispute]),
        (ResultSubmitted,    true,  true,  UNLOCK - LATE, [Wait(UNLOCK), IDLE, Wait(UNLOCK)]),
        (ResultSubmitted,    true,  true,  UNLOCK,        [Collect, IDLE, Collect]),
        (ResultSubmitted,    false, false, 0,             [Wait(UNLOCK), Dispute, Dispute]),
        (ResultSubmitted,    false, false, UNLOCK - LATE, [Wait(UNLOCK), IDLE, Wait(UNLOCK)]),
        (ResultSubmitted,    false, false, UNLOCK,        [PostResult, IDLE, PostResult]),
        (ResultSubmitted,    false, false, WINDOW - LATE, [Collect, IDLE, Collect]),
        (Disputed,           true,  false, 0,             [Wait(WINDOW), Wait(WINDOW), Wait(WINDOW)]),
        (Disputed,           false, false, WINDOW - 1,    [Wait(WINDOW), Wait(WINDOW), Wait(WINDOW)]),
        (Disputed,           true,  false, WINDOW,        [AskArbiter, AskArbiter, AskArbiter]),
        (Disputed,           false, true,  WINDOW * 2,    [AskArbiter, AskArbiter, AskArbiter]),
        (WithdrawAuthorized, true,  false, 0,             [Collect, IDLE, Collect]),
        (WithdrawAuthorized, false, true,  WINDOW,        [Collect, IDLE, Collect]),
        (RefundAuthorized,   true,  false, 0,             [IDLE, Refund, Refund]),
        (RefundAuthorized,   true,  true,  WINDOW,        [IDLE, Refund, Refund]),
    ];

    #[test]
    fn every_case_is_decided_as_in_the_table() {
        for &(state, right, mismatch, now, expected) in CASES {
            let datum = datum(state);
            let parties = [(true, false), (false, true), (true, true)];
            let decided = parties.map(|(sells, buys)| {
                decide(&EscrowFacts { datum: &datum, result_matches: right, mismatch, sells, buys, now })
            });
            assert_eq!(decided, expected, "{state:?}, right {right}, mismatch {mismatch}, at {now}");
        }
    }

    #[test]
    fn foreign_escrows_get_no_action() {
        for &(state, right, mismatch, now, _) in CASES {
            let datum = datum(state);
            let facts = EscrowFacts { datum: &datum, result_matches: right, mismatch, sells: false, buys: false, now };
            assert_eq!(decide(&facts), IDLE, "{state:?} at {now}");
        }
    }

    #[test]
    fn an_action_waits_for_its_cooldown() {
        let cool = Datum { seller_cooldown: 50_000, buyer_cooldown: 60_000, ..datum(FundsLocked) };
        let facts =
            EscrowFacts { datum: &cool, result_matches: true, mismatch: false, sells: true, buys: true, now: 0 };
        assert_eq!(decide(&facts), Wait(50_000));
        let cool = Datum { buyer_cooldown: 60_000, ..datum(ResultSubmitted) };
        assert_eq!(decide(&EscrowFacts { datum: &cool, result_matches: false, ..facts }), Wait(60_000));
        let too_long = Datum { buyer_cooldown: UNLOCK - LATE, ..cool };
        assert_eq!(
            decide(&EscrowFacts { datum: &too_long, result_matches: false, ..facts }),
            Wait(UNLOCK),
            "a dispute would come too late"
        );
    }
}
