//! Our own transactions whose end is not known: found in a block, sent again, or given up.

use cardano::{
    TxHash,
    chain::{Chain, Submission, Tip},
    history::History,
};
use sql::{Database, DatabaseError, Statement, statement};

use super::{
    CALLS_TO_ACT, Report, TickError, Watch,
    reading::{Open, Reading},
};
use crate::settlement::{self, EXPIRY_GRACE_SLOTS};

/// How long after a submission without an answer the same bytes are sent again.
const RESEND_UNANSWERED_MS: u64 = 5_000;
/// How long after an accepted submission: a node's mempool forgets when it restarts.
const RESEND_UNSEEN_MS: u64 = 60_000;
/// After so many that the provider said nothing about, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;

impl<D: Database, C: Chain + History> Watch<'_, D, C> {
    /// Looks after what was open when the tick began. A provider that does not answer about one keeps no other waiting:
    /// anyone can hand in payments.
    pub(super) async fn confirm(&self, reading: &Reading, tip: &Tip, report: &mut Report) -> Result<(), TickError> {
        let mut statements = Vec::new();
        let mut unserved = 0_u32;
        for open in &reading.open {
            if (self.calls_left)() <= CALLS_TO_ACT || unserved >= MAX_UNSERVED {
                break;
            }
            match self.look_after(open, tip, report).await {
                Ok(found) => statements.extend(found),
                Err(TickError::Chain(error)) => {
                    report.notes.push(format!("{}: {error}", open.tx));
                    unserved = unserved.saturating_add(1);
                }
                Err(error) => return Err(error),
            }
        }
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
    }

    async fn look_after(&self, open: &Open, tip: &Tip, report: &mut Report) -> Result<Vec<Statement>, TickError> {
        match self.chain.inclusion_of(&open.tx).await? {
            Some(inclusion) if inclusion.valid => {
                report.confirmed = report.confirmed.saturating_add(1);
                Ok(settlement::included(&open.tx, &inclusion, open.lock())?)
            }
            Some(_) => Ok(vec![over(&open.tx, "refused", "its scripts failed")]),
            None if tip.slot >= open.valid_until.saturating_add(EXPIRY_GRACE_SLOTS) => {
                report.notes.push(format!("{} expired", open.tx));
                Ok(vec![over(&open.tx, "expired", "it was in no block in time")])
            }
            None => self.resend(open).await.map(|()| Vec::new()),
        }
    }

    /// The same bytes again, where an answer or a mempool may have been lost. A refusal proves nothing: the ledger also
    /// refuses what an earlier attempt brought in.
    async fn resend(&self, open: &Open) -> Result<(), TickError> {
        let patience = if open.state == "claimed" { RESEND_UNANSWERED_MS } else { RESEND_UNSEEN_MS };
        if self.now < open.attempted_at_ms.saturating_add(patience) {
            return Ok(());
        }
        let begin = statement!(
            "UPDATE settlements SET attempts = attempts + 1, attempted_at_ms = ?3 WHERE tx_id = ?1 AND attempts = ?2 \
             AND state IN ('claimed', 'submitted') RETURNING tx_id",
            open.tx.to_string(),
            i64::from(open.attempts),
            self.now
        );
        if self.database.run(begin).await?.first().is_none() {
            return Ok(());
        }
        let cbor = hex::decode(&open.cbor).map_err(|_| DatabaseError(format!("{} cannot be read", open.tx)))?;
        if self.chain.submit(&cbor).await? == Submission::Accepted {
            self.database.run(submitted(&open.tx)).await?;
        }
        Ok(())
    }
}

impl Open {
    /// The bytes of a buyer's lock; `None` for every other transaction.
    pub(super) fn lock(&self) -> Option<&str> {
        (self.mode == Some(crate::DeliveryMode::Protected)).then_some(self.cbor.as_str())
    }
}

/// The statement that notes that a node took a transaction.
pub(super) fn submitted(tx: &TxHash) -> Statement {
    statement!("UPDATE settlements SET state = 'submitted' WHERE tx_id = ?1 AND state = 'claimed'", tx.to_string())
}

fn over(tx: &TxHash, state: &'static str, reason: &'static str) -> Statement {
    statement!(
        "UPDATE settlements SET state = ?2, reason = ?3 WHERE tx_id = ?1 AND state IN ('claimed', 'submitted')",
        tx.to_string(),
        state,
        reason
    )
}
