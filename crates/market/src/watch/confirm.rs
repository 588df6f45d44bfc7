//! Our own transactions whose end is not known: found in a block, sent again, or given up.

use cardano::{
    TxHash,
    chain::{Chain, Submission, Tip},
    history::History,
};

use super::{
    Report, TickError, Watch,
    reading::{Open, Reading},
};
use crate::{
    database::{Database, DatabaseError, Statement},
    settlement::{self, EXPIRY_GRACE_SLOTS},
    statement,
};

/// How long after a submission without an answer the same bytes are sent again.
const RESEND_UNANSWERED_MS: u64 = 5_000;
/// How long after an accepted submission: a node's mempool forgets when it restarts.
const RESEND_UNSEEN_MS: u64 = 60_000;

impl<D: Database, C: Chain + History> Watch<'_, D, C> {
    /// Looks after what was open when the tick began.
    pub(super) async fn confirm(&self, reading: &Reading, tip: &Tip, report: &mut Report) -> Result<(), TickError> {
        let mut statements = Vec::new();
        for open in &reading.open {
            match self.chain.inclusion_of(&open.tx).await? {
                Some(inclusion) if inclusion.valid => {
                    statements.extend(settlement::included(&open.tx, &inclusion, open.lock())?);
                    report.confirmed = report.confirmed.saturating_add(1);
                }
                Some(_) => statements.push(over(&open.tx, "refused", "its scripts failed")),
                None if tip.slot >= open.valid_until.saturating_add(EXPIRY_GRACE_SLOTS) => {
                    statements.push(over(&open.tx, "expired", "it was in no block in time"));
                    report.notes.push(format!("{} expired", open.tx));
                }
                None => self.resend(open).await?,
            }
        }
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
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
