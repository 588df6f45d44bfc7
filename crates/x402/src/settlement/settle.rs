//! Claim, submit, observe.

use cardano::{
    chain::{Chain, ChainError, Submission},
    slots::Millis,
};

use super::{
    admission::{Admission, replay},
    evidence::Evidence,
    record::{Claimed, Record, SettlementStore, State},
};
use crate::{Refusal, exact::VerifyError, wire::ConfirmationPolicy};

/// How long after a submission without an answer the same bytes are submitted again.
const RESUBMIT_UNANSWERED_MS: Millis = 5_000;
/// How long after an accepted submission the same bytes are submitted again, where no block has them: a node's mempool
/// forgets when it restarts. Three blocks of preprod's average 20 s.
const RESUBMIT_UNSEEN_MS: Millis = 60_000;
/// Slots after the TTL before a payment is called expired, in case of a short fork: three blocks.
const EXPIRY_GRACE_SLOTS: u64 = 60;

/// How one attempt to settle ended. Asking again with the same header continues a pending one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The evidence meets the policy.
    Confirmed(Evidence),
    /// Not yet.
    Pending(Option<Evidence>),
    /// The ledger refused the transaction: nothing was paid.
    Refused(String),
    /// The transaction can no longer be included: nothing was paid.
    Expired,
}

/// Why a payment could not be settled, or not be settled now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettleError<E> {
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The chain could not be asked. The claim, if there is one, holds.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The store could not be asked.
    #[error("the store failed: {0}")]
    Store(E),
}

impl<E> From<VerifyError> for SettleError<E> {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Refused(refusal) => Self::Refused(refusal),
            VerifyError::Chain(error) => Self::Chain(error),
        }
    }
}

/// Waiting, as a port.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Sleep {
    /// Returns after this many milliseconds.
    async fn sleep(&self, ms: Millis);
}

/// What settles payments.
#[derive(Clone, Copy, Debug)]
pub struct Settler<'a, C, S, Z> {
    /// The chain.
    pub chain: &'a C,
    /// Where payments are written down.
    pub store: &'a S,
    /// How to wait.
    pub sleep: &'a Z,
    /// The evidence that is asked for.
    pub policy: ConfirmationPolicy,
    /// Waits in ms between looks at the chain: as many looks, and no more. Each costs up to three outside calls.
    pub schedule: &'a [Millis],
}

impl<C: Chain, S: SettlementStore, Z: Sleep> Settler<'_, C, S, Z> {
    /// Settles an admitted payment as far as the schedule allows. `now` is POSIX ms.
    ///
    /// # Errors
    /// A refusal, where the payment turns out to be claimed by others; a store that cannot be asked. A chain that
    /// cannot be asked leaves the payment pending.
    pub async fn settle(&self, admission: Admission, now: Millis) -> Result<Outcome, SettleError<S::Error>> {
        match admission {
            Admission::Known(record) => self.observe(*record, now, true).await,
            Admission::New(claim) => match self.store.claim(&claim, now).await.map_err(SettleError::Store)? {
                Claimed::Conflict(_) => Err(Refusal::DuplicateSettlement.into()),
                Claimed::Known(record) => {
                    replay(&record, &claim.resource, &claim.header)?;
                    self.observe(record, now, true).await
                }
                Claimed::New(record) => self.submit_first(record, now).await,
            },
        }
    }

    /// The attempt that the claim began. Whatever was attempted before this claim was refused for certain, or there
    /// would be no new claim.
    async fn submit_first(&self, mut record: Record, now: Millis) -> Result<Outcome, SettleError<S::Error>> {
        if let Ok(submission) = self.chain.submit(&record.cbor).await {
            match submission {
                Submission::Accepted => self.accepted(&mut record).await?,
                Submission::Refused(reason) => {
                    if self.refuse(&record, &reason).await? {
                        return Ok(Outcome::Refused(reason));
                    }
                }
            }
        }
        self.observe(record, now, false).await
    }

    /// Gives the claim up, if this was its only attempt and the transaction is not in a block after all.
    async fn refuse(&self, record: &Record, reason: &str) -> Result<bool, SettleError<S::Error>> {
        match self.chain.inclusion_of(&record.tx).await {
            Ok(None) => self.store.mark_refused(&record.tx, record.attempts, reason).await.map_err(SettleError::Store),
            Ok(Some(_)) | Err(_) => Ok(false),
        }
    }

    /// Looks at the chain as often as the schedule says, and submits the same bytes again where they may be lost.
    async fn observe(
        &self,
        mut record: Record,
        mut now: Millis,
        look_first: bool,
    ) -> Result<Outcome, SettleError<S::Error>> {
        let mut seen = (record.state == State::Submitted).then_some(Evidence::Mempool);
        if seen.is_some_and(|evidence| evidence.meets(self.policy)) {
            return Ok(Outcome::Confirmed(Evidence::Mempool));
        }
        let looks = look_first.then_some(0).into_iter().chain(self.schedule.iter().copied());
        let mut looks = looks.peekable();
        while let Some(wait) = looks.next() {
            if wait > 0 {
                self.sleep.sleep(wait).await;
                now = now.saturating_add(wait);
            }
            // The tip first: a block that it knows is a block in which the transaction would have been seen. Who comes
            // back after the end is told so at once.
            let resumed = wait == 0;
            let tip = if resumed || looks.peek().is_none() || self.policy.l1_confirmations() > 0 {
                self.chain.tip().await.ok()
            } else {
                None
            };
            match self.chain.inclusion_of(&record.tx).await {
                Ok(Some(inclusion)) if !inclusion.valid => {
                    return Ok(Outcome::Refused("its scripts failed, it took the collateral only".into()));
                }
                Ok(Some(inclusion)) => {
                    if record.state != State::Included {
                        self.store.mark_included(&record.tx, &inclusion).await.map_err(SettleError::Store)?;
                        record.state = State::Included;
                    }
                    let newer = tip.map_or(0, |tip| tip.height.saturating_sub(inclusion.height));
                    let evidence = Evidence::Block { inclusion, confirmations: newer };
                    if evidence.meets(self.policy) {
                        return Ok(Outcome::Confirmed(evidence));
                    }
                    seen = Some(evidence);
                }
                Ok(None) => {
                    let last_slot = record.valid_until.saturating_add(EXPIRY_GRACE_SLOTS);
                    if tip.is_some_and(|tip| tip.slot >= last_slot) {
                        self.store.mark_expired(&record.tx).await.map_err(SettleError::Store)?;
                        return Ok(Outcome::Expired);
                    }
                    self.resubmit_if_lost(&mut record, now).await?;
                }
                Err(_) => {}
            }
        }
        Ok(Outcome::Pending(seen))
    }

    async fn resubmit_if_lost(&self, record: &mut Record, now: Millis) -> Result<(), SettleError<S::Error>> {
        let patience = if record.state == State::Claimed { RESUBMIT_UNANSWERED_MS } else { RESUBMIT_UNSEEN_MS };
        if now < record.attempted_at_ms.saturating_add(patience) {
            return Ok(());
        }
        let begun = self.store.begin_attempt(&record.tx, record.attempts, now).await.map_err(SettleError::Store)?;
        record.attempts = record.attempts.saturating_add(1);
        record.attempted_at_ms = now;
        // A refusal says nothing now: the ledger also refuses what an earlier attempt brought in.
        if begun && self.chain.submit(&record.cbor).await == Ok(Submission::Accepted) {
            self.accepted(record).await?;
        }
        Ok(())
    }

    async fn accepted(&self, record: &mut Record) -> Result<(), SettleError<S::Error>> {
        self.store.mark_submitted(&record.tx).await.map_err(SettleError::Store)?;
        record.state = State::Submitted;
        Ok(())
    }
}
