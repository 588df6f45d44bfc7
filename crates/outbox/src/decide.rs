//! What to do with an entry: a pure function of the entry, of what the chain says, and of the time.

use cardano::{chain::Inclusion, slots::Millis};

use crate::entry::{Entry, EntryState};

/// How long after a submission without an answer the same bytes are submitted again.
pub const RESEND_UNANSWERED_MS: Millis = 5_000;
/// How long after an accepted submission, where no block has it: a node's mempool forgets when it restarts. Three blocks
/// of preprod's average 20 s.
pub const RESEND_UNSEEN_MS: Millis = 60_000;
/// How long after a request came in the answer to its submission is noted, or whoever serves it is dead.
pub const ANSWER_MS: Millis = 75_000;
/// Why a payment is refused that a block has.
pub(crate) const NOT_FROM_HERE: &str = "a block has it, and no node is known to have it from here";
/// Why a payment is refused whose time is over, and that a block may have all the same: from somebody else.
const NOT_HANDED_IN: &str = "it was in no block in time, and no node is known to have it from here";
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
pub enum Decision {
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
pub fn decide(entry: &Entry, says: &ChainSays, now: Millis) -> Decision {
    match (says, entry.state) {
        (ChainSays::Nothing, _) => Decision::Wait,
        (ChainSays::InBlock(block), EntryState::Included)
            if entry.block.map(|known| known.block) == Some(block.block) && block.valid =>
        {
            Decision::Wait
        }
        (ChainSays::InBlock(block), EntryState::Included) if block.valid => Decision::Move(*block),
        // Whoever handed it in may be about to note that a node had it from somebody else, or could not.
        (ChainSays::InBlock(_), EntryState::Claimed) if entry.unanswered => {
            if now < entry.attempted_at_ms.saturating_add(ANSWER_MS) {
                Decision::Wait
            } else {
                Decision::Refuse(NOT_FROM_HERE.into())
            }
        }
        (ChainSays::InBlock(block), _) if block.valid => Decision::Include(*block),
        (ChainSays::InBlock(_), EntryState::Included) => Decision::Reopen,
        (ChainSays::InBlock(_), EntryState::Refused) => Decision::Wait,
        (ChainSays::InBlock(_), _) => Decision::Refuse("its scripts failed: it took the collateral only".into()),
        (ChainSays::InNoBlock { .. }, EntryState::Included) => Decision::Reopen,
        (ChainSays::InNoBlock { tip_slot }, EntryState::Claimed | EntryState::Submitted) => {
            unseen(entry, *tip_slot, now)
        }
        (ChainSays::Accepted, EntryState::Claimed) => Decision::Accept,
        (ChainSays::Refused { reason, only_attempt: true }, EntryState::Claimed) if entry.kind.ends_by_refusal() => {
            Decision::Refuse(reason.clone())
        }
        // The ledger also refuses what an earlier attempt brought in: a refusal proves nothing then.
        (ChainSays::InNoBlock { .. } | ChainSays::Accepted | ChainSays::Refused { .. }, _) => Decision::Wait,
    }
}

fn unseen(entry: &Entry, tip_slot: Option<u64>, now: Millis) -> Decision {
    if tip_slot.is_some_and(|slot| slot >= entry.valid_until.saturating_add(EXPIRY_GRACE_SLOTS)) {
        let unanswered = entry.state == EntryState::Claimed && entry.unanswered;
        return if unanswered { Decision::Refuse(NOT_HANDED_IN.into()) } else { Decision::Expire };
    }
    let patience = if entry.state == EntryState::Claimed { RESEND_UNANSWERED_MS } else { RESEND_UNSEEN_MS };
    if now >= entry.attempted_at_ms.saturating_add(patience) { Decision::Submit } else { Decision::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Kind;
    use EntryState::{Claimed, Expired, Included, Refused, Submitted};
    use cardano::TxHash;

    const END: u64 = 1_000;
    const AT: Millis = 50_000;

    fn entry(kind: Kind, state: EntryState) -> Entry {
        let block = (state == Included).then_some(block(1, true));
        let tx = TxHash::new([9; 32]);
        Entry {
            tx,
            kind,
            cbor: vec![],
            state,
            valid_until: END,
            attempts: 1,
            in_doubt: 1,
            attempted_at_ms: AT,
            was_public: false,
            newest_height: None,
            unanswered: false,
            block,
        }
    }

    fn block(number: u8, valid: bool) -> Inclusion {
        Inclusion { block: TxHash::new([number; 32]), height: 7, slot: 900, time_ms: AT, valid }
    }

    fn step(state: EntryState, says: &ChainSays, now: Millis) -> Decision {
        decide(&entry(Kind::Payment, state), says, now)
    }

    #[test]
    fn every_state_meets_every_word_of_the_chain() {
        let here = |slot| ChainSays::InNoBlock { tip_slot: slot };
        let over = Some(END + EXPIRY_GRACE_SLOTS);
        let found = ChainSays::InBlock(block(2, true));
        let failed = ChainSays::InBlock(block(2, false));
        let refused = |only_attempt| ChainSays::Refused { reason: "no".into(), only_attempt };
        let fails = || Decision::Refuse("its scripts failed: it took the collateral only".into());
        let (unanswered, unseen) = (AT + RESEND_UNANSWERED_MS, AT + RESEND_UNSEEN_MS);
        let table = [
            (Claimed, ChainSays::Nothing, u64::MAX, Decision::Wait),
            (Claimed, here(None), unanswered - 1, Decision::Wait),
            (Claimed, here(None), unanswered, Decision::Submit),
            (Claimed, here(Some(END + EXPIRY_GRACE_SLOTS - 1)), AT, Decision::Wait),
            (Claimed, here(over), AT, Decision::Expire),
            (Claimed, found.clone(), AT, Decision::Include(block(2, true))),
            (Claimed, failed.clone(), AT, fails()),
            (Claimed, ChainSays::Accepted, AT, Decision::Accept),
            (Claimed, refused(true), AT, Decision::Refuse("no".into())),
            (Claimed, refused(false), AT, Decision::Wait),
            (Submitted, here(None), unseen - 1, Decision::Wait),
            (Submitted, here(None), unseen, Decision::Submit),
            (Submitted, here(over), AT, Decision::Expire),
            (Submitted, found.clone(), AT, Decision::Include(block(2, true))),
            (Submitted, failed.clone(), AT, fails()),
            (Submitted, ChainSays::Accepted, AT, Decision::Wait),
            (Submitted, refused(true), AT, Decision::Wait),
            (Included, here(over), unseen, Decision::Reopen),
            (Included, ChainSays::InBlock(block(1, true)), AT, Decision::Wait),
            (Included, found.clone(), AT, Decision::Move(block(2, true))),
            (Included, failed.clone(), AT, Decision::Reopen),
            (Included, ChainSays::Nothing, unseen, Decision::Wait),
            (Refused, here(over), unseen, Decision::Wait),
            (Refused, found.clone(), AT, Decision::Include(block(2, true))),
            (Refused, failed.clone(), AT, Decision::Wait),
            (Refused, refused(true), AT, Decision::Wait),
            (Expired, here(over), unseen, Decision::Wait),
            (Expired, found, AT, Decision::Include(block(2, true))),
            (Expired, failed, AT, fails()),
            (Expired, ChainSays::Accepted, AT, Decision::Wait),
        ];
        for (state, says, now, expected) in table {
            assert_eq!(step(state, &says, now), expected, "{state:?}, {says:?}, {now}");
        }
    }

    #[test]
    fn a_block_says_nothing_while_the_first_answer_may_still_be_noted() {
        let (found, first) =
            (ChainSays::InBlock(block(2, true)), Entry { unanswered: true, ..entry(Kind::Payment, Claimed) });
        assert_eq!(decide(&first, &found, AT + ANSWER_MS - 1), Decision::Wait);
        assert!(matches!(decide(&first, &found, AT + ANSWER_MS), Decision::Refuse(_)));
        let over = ChainSays::InNoBlock { tip_slot: Some(END + EXPIRY_GRACE_SLOTS) };
        assert!(matches!(decide(&first, &over, AT), Decision::Refuse(_)), "a block may have it from somebody else");
        let taken = Entry { state: Submitted, ..first };
        assert_eq!(decide(&taken, &found, AT), Decision::Include(block(2, true)));
    }

    #[test]
    fn a_refused_payout_stays_because_the_next_would_not_exclude_it() {
        let refused = ChainSays::Refused { reason: "no".into(), only_attempt: true };
        for kind in [Kind::Payment, Kind::Withdrawal, Kind::Collect, Kind::Settlement] {
            assert_eq!(decide(&entry(kind, Claimed), &refused, AT), Decision::Refuse("no".into()));
        }
        assert_eq!(decide(&entry(Kind::Payout, Claimed), &refused, AT), Decision::Wait);
    }
}
