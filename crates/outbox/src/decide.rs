//! What to do with an entry: a pure function of the entry, of what the chain says, and of the time.

use cardano::{chain::Inclusion, slots::Millis};

use crate::entry::{Entry, State};

/// How long after a submission without an answer the same bytes are submitted again.
pub const RESEND_UNANSWERED_MS: Millis = 5_000;
/// How long after an accepted submission, where no block has it: a node's mempool forgets when it restarts. Three blocks
/// of preprod's average 20 s.
pub const RESEND_UNSEEN_MS: Millis = 60_000;
/// Slots after its end before a transaction is called expired, in case of a short fork: three blocks.
pub const EXPIRY_GRACE_SLOTS: u64 = 60;

/// What the chain says about a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainSays {
    /// The provider did not answer.
    Nothing,
    /// It is in no block up to the newest, whose slot this is, if that was asked for before.
    InNoBlock {
        /// The newest block's slot.
        tip_slot: Option<u64>,
    },
    /// It is in this block.
    InBlock(Inclusion),
    /// A node took it when it was submitted just now.
    Accepted,
    /// The ledger refused it when it was submitted just now, and it is in no block.
    Refused {
        /// The node's reason.
        reason: String,
        /// Whether that was the only attempt since it was written down.
        only_attempt: bool,
    },
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until the chain says something else.
    Wait,
    /// Begin another attempt and submit the same bytes.
    Submit,
    /// A node has it.
    Accept,
    /// It is in this block.
    Include(Inclusion),
    /// It is in another block than was noted.
    Move(Inclusion),
    /// The block that had it is gone, or it took no effect there: open again.
    Reopen,
    /// It has not taken effect and never will, for this reason.
    Refuse(String),
    /// Its time is over.
    Expire,
}

/// Decides. `now` is POSIX ms.
#[must_use]
pub fn decide(entry: &Entry, says: &ChainSays, now: Millis) -> Step {
    match (says, entry.state) {
        (ChainSays::Nothing, _) => Step::Wait,
        (ChainSays::InBlock(block), State::Included)
            if entry.block.map(|known| known.block) == Some(block.block) && block.valid =>
        {
            Step::Wait
        }
        (ChainSays::InBlock(block), State::Included) if block.valid => Step::Move(*block),
        (ChainSays::InBlock(block), _) if block.valid => Step::Include(*block),
        (ChainSays::InBlock(_), State::Included) => Step::Reopen,
        (ChainSays::InBlock(_), State::Refused) => Step::Wait,
        (ChainSays::InBlock(_), _) => Step::Refuse("its scripts failed: it took the collateral only".into()),
        (ChainSays::InNoBlock { .. }, State::Included) => Step::Reopen,
        (ChainSays::InNoBlock { tip_slot }, State::Claimed | State::Submitted) => unseen(entry, *tip_slot, now),
        (ChainSays::Accepted, State::Claimed) => Step::Accept,
        (ChainSays::Refused { reason, only_attempt: true }, State::Claimed) if entry.kind.ends_by_refusal() => {
            Step::Refuse(reason.clone())
        }
        // The ledger also refuses what an earlier attempt brought in: a refusal proves nothing then.
        (ChainSays::InNoBlock { .. } | ChainSays::Accepted | ChainSays::Refused { .. }, _) => Step::Wait,
    }
}

fn unseen(entry: &Entry, tip_slot: Option<u64>, now: Millis) -> Step {
    if tip_slot.is_some_and(|slot| slot >= entry.valid_until.saturating_add(EXPIRY_GRACE_SLOTS)) {
        return Step::Expire;
    }
    let patience = if entry.state == State::Claimed { RESEND_UNANSWERED_MS } else { RESEND_UNSEEN_MS };
    if now >= entry.attempted_at_ms.saturating_add(patience) { Step::Submit } else { Step::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Kind;
    use State::{Claimed, Expired, Included, Refused, Submitted};
    use cardano::TxHash;

    const END: u64 = 1_000;
    const AT: Millis = 50_000;

    fn entry(kind: Kind, state: State) -> Entry {
        let block = (state == Included).then_some(block(1, true));
        let tx = TxHash::new([9; 32]);
        Entry { tx, kind, cbor: vec![], state, valid_until: END, attempts: 1, attempted_at_ms: AT, block }
    }

    fn block(number: u8, valid: bool) -> Inclusion {
        Inclusion { block: TxHash::new([number; 32]), height: 7, slot: 900, time_ms: AT, valid }
    }

    fn step(state: State, says: &ChainSays, now: Millis) -> Step {
        decide(&entry(Kind::Payment, state), says, now)
    }

    #[test]
    fn every_state_meets_every_word_of_the_chain() {
        let here = |slot| ChainSays::InNoBlock { tip_slot: slot };
        let over = Some(END + EXPIRY_GRACE_SLOTS);
        let found = ChainSays::InBlock(block(2, true));
        let failed = ChainSays::InBlock(block(2, false));
        let refused = |only_attempt| ChainSays::Refused { reason: "no".into(), only_attempt };
        let fails = || Step::Refuse("its scripts failed: it took the collateral only".into());
        let (unanswered, unseen) = (AT + RESEND_UNANSWERED_MS, AT + RESEND_UNSEEN_MS);
        let table = [
            (Claimed, ChainSays::Nothing, u64::MAX, Step::Wait),
            (Claimed, here(None), unanswered - 1, Step::Wait),
            (Claimed, here(None), unanswered, Step::Submit),
            (Claimed, here(Some(END + EXPIRY_GRACE_SLOTS - 1)), AT, Step::Wait),
            (Claimed, here(over), AT, Step::Expire),
            (Claimed, found.clone(), AT, Step::Include(block(2, true))),
            (Claimed, failed.clone(), AT, fails()),
            (Claimed, ChainSays::Accepted, AT, Step::Accept),
            (Claimed, refused(true), AT, Step::Refuse("no".into())),
            (Claimed, refused(false), AT, Step::Wait),
            (Submitted, here(None), unseen - 1, Step::Wait),
            (Submitted, here(None), unseen, Step::Submit),
            (Submitted, here(over), AT, Step::Expire),
            (Submitted, found.clone(), AT, Step::Include(block(2, true))),
            (Submitted, failed.clone(), AT, fails()),
            (Submitted, ChainSays::Accepted, AT, Step::Wait),
            (Submitted, refused(true), AT, Step::Wait),
            (Included, here(over), unseen, Step::Reopen),
            (Included, ChainSays::InBlock(block(1, true)), AT, Step::Wait),
            (Included, found.clone(), AT, Step::Move(block(2, true))),
            (Included, failed.clone(), AT, Step::Reopen),
            (Included, ChainSays::Nothing, unseen, Step::Wait),
            (Refused, here(over), unseen, Step::Wait),
            (Refused, found.clone(), AT, Step::Include(block(2, true))),
            (Refused, failed.clone(), AT, Step::Wait),
            (Refused, refused(true), AT, Step::Wait),
            (Expired, here(over), unseen, Step::Wait),
            (Expired, found, AT, Step::Include(block(2, true))),
            (Expired, failed, AT, fails()),
            (Expired, ChainSays::Accepted, AT, Step::Wait),
        ];
        for (state, says, now, expected) in table {
            assert_eq!(step(state, &says, now), expected, "{state:?}, {says:?}, {now}");
        }
    }

    #[test]
    fn a_refused_payout_stays_because_the_next_would_not_exclude_it() {
        let refused = ChainSays::Refused { reason: "no".into(), only_attempt: true };
        for kind in [Kind::Payment, Kind::Withdrawal, Kind::Collect, Kind::Settlement] {
            assert_eq!(decide(&entry(kind, Claimed), &refused, AT), Step::Refuse("no".into()));
        }
        assert_eq!(decide(&entry(Kind::Payout, Claimed), &refused, AT), Step::Wait);
    }
}
