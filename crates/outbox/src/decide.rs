//! Decides what to do with an entry: a pure function of the entry, the state of the chain, the requester, and the time.

use cardano::{chain::Inclusion, slots::Millis};

use crate::entry::{Entry, EntryState, Kind, Provenance};

/// Milliseconds to wait for the answer to a submission before the same bytes are submitted again.
pub const RESEND_UNANSWERED_MS: Millis = 5_000;
/// Milliseconds to wait for a block that includes an accepted transaction before the same bytes are submitted again,
/// because a node loses its mempool when it restarts. Three times preprod's average block time.
pub const RESEND_UNCONFIRMED_MS: Millis = 60_000;
/// Maximum time in ms from the start of a submission until its result is recorded. If no result is recorded by then,
/// the request that submitted the transaction is assumed to have died.
pub const ANSWER_RECORDED_MS: Millis = 75_000;
/// Reason for refusing a payment that a block includes: no node accepted it from this service, so somebody else
/// submitted it.
pub const NOT_OUR_SUBMISSION: &str = "a block has it, and no node accepted it from this service";
/// Reason for refusing a payment that expired before any node answered its submission.
const NEVER_ANSWERED: &str = "it was in no block before it expired, and no node accepted it from this service";
/// Number of slots from the end of a transaction's validity interval until the transaction is marked as expired: about
/// three blocks, because a short fork may still include it.
pub const EXPIRY_GRACE_SLOTS: u64 = 60;

/// State of a transaction on the chain, as the provider shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainObservation {
    /// The provider did not answer.
    Unavailable,
    /// No block up to the tip includes the transaction.
    InNoBlock {
        /// Slot of the newest block, read before the transaction was looked up; `None` if it was not read.
        tip_slot: Option<u64>,
    },
    /// This block includes the transaction.
    InBlock(Inclusion),
    /// A node accepted the transaction, which was submitted just now.
    Accepted,
    /// A node rejected the transaction, which was submitted just now, and no block includes it. Contains the node's
    /// reason.
    Refused(String),
}

/// Whether the request that submits or polls a transaction is proven to come from the payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// There is no proof that the request comes from the payer, or there is no request because the watcher polls.
    Unproven,
    /// The request is the one that recorded and first submitted the transaction. It need not wait for another request
    /// to record a node's answer, but it is not proven to come from the payer.
    Submitter,
    /// The request comes from the payer, as proven by a signature over the request, by a commitment to the request in
    /// the transaction's metadata, or by a session of the paying account.
    Payer,
}

/// Action to take for an outbox entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Do nothing for now.
    Wait,
    /// Begin another attempt: submit the same bytes again.
    Submit,
    /// Record that a node accepted the transaction.
    Accept,
    /// Record that this block includes the transaction.
    Include(Inclusion),
    /// Record that a different block than before includes the transaction.
    ChangeBlock(Inclusion),
    /// Reopen the entry, because a rollback removed the transaction from its block. The transaction is now in no block,
    /// or in one in which its scripts failed.
    Reopen,
    /// Mark the entry as refused, for this reason.
    Refuse(String),
    /// Record that the validity interval ended before any block included the transaction.
    Expire,
}

/// Decides what to do with an outbox entry at `now` (POSIX milliseconds), given the observed state of its transaction
/// and whether the request is proven to come from the payer.
#[must_use]
pub fn decide(entry: &Entry, observation: &ChainObservation, trust: Trust, now: Millis) -> Decision {
    match (observation, entry.state) {
        (ChainObservation::Unavailable, _) => Decision::Wait,
        (ChainObservation::InBlock(block), EntryState::Included)
            if entry.block.map(|known| known.block) == Some(block.block) && block.valid =>
        {
            Decision::Wait
        }
        (ChainObservation::InBlock(block), EntryState::Included) if block.valid => Decision::ChangeBlock(*block),
        (ChainObservation::InBlock(_), EntryState::Claimed) if awaits_answer(entry, trust, now) => Decision::Wait,
        (ChainObservation::InBlock(_), EntryState::Claimed) if needs_payer(entry, trust) => {
            Decision::Refuse(NOT_OUR_SUBMISSION.into())
        }
        (ChainObservation::InBlock(block), _) if block.valid => Decision::Include(*block),
        (ChainObservation::InBlock(_), EntryState::Included) => Decision::Reopen,
        (ChainObservation::InBlock(_), EntryState::Refused) => Decision::Wait,
        (ChainObservation::InBlock(_), _) => {
            Decision::Refuse("its scripts failed: only the collateral was taken".into())
        }
        (ChainObservation::InNoBlock { .. }, EntryState::Included) => Decision::Reopen,
        (ChainObservation::InNoBlock { tip_slot }, EntryState::Claimed | EntryState::Submitted) => {
            unconfirmed(entry, *tip_slot, trust, now)
        }
        (ChainObservation::Accepted, EntryState::Claimed) => Decision::Accept,
        // A transaction whose earlier attempt was included is rejected too, so with several attempts a rejection proves
        // nothing.
        (ChainObservation::Refused(reason), EntryState::Claimed)
            if entry.is_only_attempt() && entry.kind.ends_by_refusal() =>
        {
            Decision::Refuse(reason.clone())
        }
        (ChainObservation::InNoBlock { .. } | ChainObservation::Accepted | ChainObservation::Refused(_), _) => {
            Decision::Wait
        }
    }
}

/// Returns whether only the payer can say what this transaction pays for. A plain payment does not name its listing, so
/// somebody could claim a copy of it for another listing. A lock names its listing in the signed terms.
///
/// The payer of a settlement (a payment to another server) has no way to sign, and would lose the money if the entry
/// ended because a node's answer was lost. The settlement was in no block when it was recorded. If it may have reached
/// a node, it therefore counts for the requirements with which it was recorded. If it certainly reached none, somebody
/// else submitted it.
fn needs_payer(entry: &Entry, trust: Trust) -> bool {
    let depends = match entry.kind {
        Kind::Payment => true,
        Kind::Settlement => entry.attempts == 0,
        _ => false,
    };
    depends && entry.provenance == Provenance::Unknown && trust != Trust::Payer
}

/// Returns whether to wait until the request that submitted the transaction has recorded the node's answer. The answer
/// shows whether somebody else submitted the transaction before; for a settlement, only the answer to the first attempt
/// does.
fn awaits_answer(entry: &Entry, trust: Trust, now: Millis) -> bool {
    let matters = match entry.kind {
        Kind::Payment => true,
        Kind::Settlement => entry.is_only_attempt(),
        _ => false,
    };
    matters
        && entry.provenance == Provenance::Unknown
        && trust == Trust::Unproven
        && now < entry.attempted_at_ms.saturating_add(ANSWER_RECORDED_MS)
}

fn unconfirmed(entry: &Entry, tip_slot: Option<u64>, trust: Trust, now: Millis) -> Decision {
    if tip_slot.is_some_and(|slot| slot >= entry.valid_until.saturating_add(EXPIRY_GRACE_SLOTS)) {
        let unanswered = entry.state == EntryState::Claimed && needs_payer(entry, trust);
        return if unanswered { Decision::Refuse(NEVER_ANSWERED.into()) } else { Decision::Expire };
    }
    let pause = if entry.state == EntryState::Claimed { RESEND_UNANSWERED_MS } else { RESEND_UNCONFIRMED_MS };
    if now >= entry.attempted_at_ms.saturating_add(pause) { Decision::Submit } else { Decision::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            attempted_at_ms: AT,
            provenance: Provenance::Ours,
            block,
        }
    }

    fn block(number: u8, valid: bool) -> Inclusion {
        Inclusion { block: TxHash::new([number; 32]), height: 7, slot: 900, time_ms: AT, valid }
    }

    fn step(state: EntryState, seen: &ChainObservation, now: Millis) -> Decision {
        decide(&entry(Kind::Payment, state), seen, Trust::Unproven, now)
    }

    #[test]
    fn every_state_handles_every_observation() {
        let here = |slot| ChainObservation::InNoBlock { tip_slot: slot };
        let over = Some(END + EXPIRY_GRACE_SLOTS);
        let found = ChainObservation::InBlock(block(2, true));
        let failed = ChainObservation::InBlock(block(2, false));
        let refused = ChainObservation::Refused("no".into());
        let fails = || Decision::Refuse("its scripts failed: only the collateral was taken".into());
        let (unanswered, unseen) = (AT + RESEND_UNANSWERED_MS, AT + RESEND_UNCONFIRMED_MS);
        let table = [
            (Claimed, ChainObservation::Unavailable, u64::MAX, Decision::Wait),
            (Claimed, here(None), unanswered - 1, Decision::Wait),
            (Claimed, here(None), unanswered, Decision::Submit),
            (Claimed, here(Some(END + EXPIRY_GRACE_SLOTS - 1)), AT, Decision::Wait),
            (Claimed, here(over), AT, Decision::Expire),
            (Claimed, found.clone(), AT, Decision::Include(block(2, true))),
            (Claimed, failed.clone(), AT, fails()),
            (Claimed, ChainObservation::Accepted, AT, Decision::Accept),
            (Claimed, refused.clone(), AT, Decision::Refuse("no".into())),
            (Submitted, here(None), unseen - 1, Decision::Wait),
            (Submitted, here(None), unseen, Decision::Submit),
            (Submitted, here(over), AT, Decision::Expire),
            (Submitted, found.clone(), AT, Decision::Include(block(2, true))),
            (Submitted, failed.clone(), AT, fails()),
            (Submitted, ChainObservation::Accepted, AT, Decision::Wait),
            (Submitted, refused.clone(), AT, Decision::Wait),
            (Included, here(over), unseen, Decision::Reopen),
            (Included, ChainObservation::InBlock(block(1, true)), AT, Decision::Wait),
            (Included, found.clone(), AT, Decision::ChangeBlock(block(2, true))),
            (Included, failed.clone(), AT, Decision::Reopen),
            (Included, ChainObservation::Unavailable, unseen, Decision::Wait),
            (Refused, here(over), unseen, Decision::Wait),
            (Refused, found.clone(), AT, Decision::Include(block(2, true))),
            (Refused, failed.clone(), AT, Decision::Wait),
            (Refused, refused.clone(), AT, Decision::Wait),
            (Expired, here(over), unseen, Decision::Wait),
            (Expired, found, AT, Decision::Include(block(2, true))),
            (Expired, failed, AT, fails()),
            (Expired, ChainObservation::Accepted, AT, Decision::Wait),
        ];
        for (state, seen, now, expected) in table {
            assert_eq!(step(state, &seen, now), expected, "{state:?}, {seen:?}, {now}");
        }
    }

    #[test]
    fn a_refusal_after_another_attempt_proves_nothing() {
        let again = Entry { attempts: 2, ..entry(Kind::Payment, Claimed) };
        assert_eq!(decide(&again, &ChainObservation::Refused("no".into()), Trust::Unproven, AT), Decision::Wait);
    }

    #[test]
    fn an_unanswered_payment_in_a_block_waits_for_its_answer_and_then_for_its_payer() {
        let found = ChainObservation::InBlock(block(2, true));
        let expired = ChainObservation::InNoBlock { tip_slot: Some(END + EXPIRY_GRACE_SLOTS) };
        let unanswered = |kind| Entry { provenance: Provenance::Unknown, ..entry(kind, Claimed) };
        let include = Decision::Include(block(2, true));
        let (payment, lock) = (unanswered(Kind::Payment), unanswered(Kind::Lock));
        assert_eq!(decide(&payment, &found, Trust::Unproven, AT + ANSWER_RECORDED_MS - 1), Decision::Wait);
        assert!(matches!(decide(&payment, &found, Trust::Unproven, AT + ANSWER_RECORDED_MS), Decision::Refuse(_)));
        assert_eq!(decide(&payment, &found, Trust::Payer, AT), include);
        assert!(
            matches!(decide(&payment, &expired, Trust::Unproven, AT), Decision::Refuse(_)),
            "its payer may claim it"
        );
        assert_eq!(decide(&lock, &found, Trust::Unproven, AT), include, "its terms name the listing");
        assert_eq!(decide(&lock, &expired, Trust::Unproven, AT), Decision::Expire);
        let accepted = Entry { state: Submitted, ..payment };
        assert_eq!(decide(&accepted, &found, Trust::Unproven, AT), include);
        let signed = Entry { provenance: Provenance::Foreign, ..unanswered(Kind::Payment) };
        assert_eq!(decide(&signed, &found, Trust::Unproven, AT), include, "its payer signed the claim");
    }

    #[test]
    fn an_unanswered_settlement_in_a_block_counts_once_no_answer_can_come() {
        let found = ChainObservation::InBlock(block(2, true));
        let expired = ChainObservation::InNoBlock { tip_slot: Some(END + EXPIRY_GRACE_SLOTS) };
        let include = Decision::Include(block(2, true));
        let once = Entry { provenance: Provenance::Unknown, ..entry(Kind::Settlement, Claimed) };
        assert_eq!(decide(&once, &found, Trust::Unproven, AT + ANSWER_RECORDED_MS - 1), Decision::Wait);
        assert_eq!(decide(&once, &found, Trust::Unproven, AT + ANSWER_RECORDED_MS), include);
        assert_eq!(decide(&once, &found, Trust::Submitter, AT), include, "its answer was lost");
        assert_eq!(decide(&once, &expired, Trust::Unproven, AT), Decision::Expire);
        let unsent = Entry { attempts: 0, ..once.clone() };
        let refused = decide(&unsent, &found, Trust::Submitter, AT);
        assert!(matches!(refused, Decision::Refuse(_)), "somebody else submitted it");
        let twice = Entry { attempts: 2, ..once };
        assert_eq!(decide(&twice, &found, Trust::Unproven, AT), include, "a rejection would prove nothing");
    }

    #[test]
    fn a_refused_payout_stays_because_the_next_would_not_exclude_it() {
        let refused = ChainObservation::Refused("no".into());
        for kind in [Kind::Payment, Kind::Lock, Kind::Withdrawal, Kind::Collect, Kind::Award] {
            let decision = decide(&entry(kind, Claimed), &refused, Trust::Unproven, AT);
            assert_eq!(decision, Decision::Refuse("no".into()));
        }
        assert_eq!(decide(&entry(Kind::Payout, Claimed), &refused, Trust::Unproven, AT), Decision::Wait);
    }
}
