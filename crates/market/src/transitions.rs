//! Writes the consequences of a decision about an outbox entry: the terms of a lock, and the steps and schedules of
//! escrows. They are written in the batch that records the decision. Triggers then update the projections
//! (`d1-migrations/0008_projections.sql`).

use cardano::tx::TransactionUtxos;
use escrow::{Datum, PlutusAddress, plan::Escrow};
use outbox::{Decision, Entry, Kind};
use sql::{DatabaseError, Write};

use crate::purchase::record_lock;

/// Builds the statements for the consequences of a decision about an entry. This is the market's [`outbox::Hook`].
///
/// # Errors
/// Returns [`DatabaseError`] if the lock's bytes cannot be read.
pub fn statements(entry: &Entry, decision: &Decision) -> Result<Vec<Write>, DatabaseError> {
    let acts = acts_on_escrows(entry.kind);
    Ok(match decision {
        Decision::Include(_) if entry.kind == Kind::Lock => record_lock(&entry.tx, &locked_by(entry)?).into(),
        Decision::Include(_) if acts => vec![copy_block_to_steps(entry)],
        Decision::ChangeBlock(_) if acts || entry.kind == Kind::Lock => vec![copy_block_to_steps(entry)],
        Decision::Reopen if acts => vec![remove_steps(entry)],
        Decision::Refuse(_) | Decision::Expire if acts || entry.kind == Kind::Payout => {
            vec![retry_at_once(entry, *decision == Decision::Expire)]
        }
        _ => vec![],
    })
}

/// Returns whether a transaction of this kind is an action of the seller or the buyer that spends an escrow's output.
pub(crate) const fn acts_on_escrows(kind: Kind) -> bool {
    match kind {
        Kind::Result | Kind::Collect | Kind::Refund | Kind::Dispute | Kind::Release => true,
        Kind::Payment | Kind::Lock | Kind::Withdrawal | Kind::Payout | Kind::Split | Kind::Award | Kind::Settlement => {
            false
        }
    }
}

/// Decodes the escrow that a lock created. The entry's CBOR may come from the block, because another party may have
/// submitted the lock with a different encoding of its signatures.
fn locked_by(entry: &Entry) -> Result<Escrow, DatabaseError> {
    let utxos = TransactionUtxos::read(&entry.cbor).ok().filter(|utxos| utxos.valid);
    let mut made = utxos.into_iter().flat_map(|utxos| utxos.created);
    let escrow = made.find_map(|utxo| {
        utxo.address.parse::<PlutusAddress>().ok()?.payment_script()?;
        let datum = Datum::from_cbor(utxo.inline_datum.as_ref()?).ok()?;
        Some(Escrow { utxo, datum })
    });
    escrow.ok_or_else(|| DatabaseError(format!("the lock {} cannot be read", entry.tx)))
}

/// Builds the statement that copies an entry's block to the escrow steps that its transaction made, because steps may
/// be recorded before their block is known.
fn copy_block_to_steps(entry: &Entry) -> Write {
    sql::write!(
        "UPDATE escrow_steps SET height = o.block_height, at_ms = o.block_time_ms, recheck = 0 FROM outbox o \
         WHERE o.tx_id = ?1 AND o.state = 'included' AND escrow_steps.tx_id = ?1",
        entry.tx
    )
}

/// Builds the statement that deletes the escrow steps of an entry's transaction, after a rollback removed its block.
/// All later steps of these escrows are deleted as well.
fn remove_steps(entry: &Entry) -> Write {
    sql::write!(
        "DELETE FROM escrow_steps WHERE (purchase_id, tx_id) IN (SELECT later.purchase_id, later.tx_id \
           FROM escrow_steps own JOIN escrow_steps later ON later.purchase_id = own.purchase_id \
           AND later.position >= own.position WHERE own.tx_id = ?1) \
         AND NOT EXISTS (SELECT 1 FROM outbox WHERE tx_id = ?1 AND state = 'included')",
        entry.tx
    )
}

/// Builds the statement that makes escrows due at once after the action in this outbox entry was rejected or expired.
/// If `failed`, the statement also counts a failure for each escrow. It must follow the statement that changes the
/// entry, and writes nothing if the entry did not change.
fn retry_at_once(entry: &Entry, failed: bool) -> Write {
    sql::write!(include_str!("retry_at_once.sql"), entry.tx, failed)
}

#[cfg(test)]
mod tests {
    use cardano::TxHash;
    use outbox::{EntryState, Provenance};

    use super::*;

    #[test]
    fn an_action_that_a_rollback_removes_takes_its_step_along_and_a_failed_one_is_due_again() {
        let actions = [Kind::Result, Kind::Collect, Kind::Refund, Kind::Dispute, Kind::Release];
        for kind in actions.into_iter().chain([Kind::Withdrawal, Kind::Split]) {
            let entry = Entry {
                tx: TxHash::new([7; 32]),
                kind,
                cbor: vec![],
                state: EntryState::Included,
                valid_until: 9,
                attempts: 1,
                attempted_at_ms: 0,
                provenance: Provenance::Ours,
                block: None,
            };
            for decision in [Decision::Reopen, Decision::Expire, Decision::Refuse("no".into())] {
                let follows = !statements(&entry, &decision).unwrap().is_empty();
                assert_eq!(follows, actions.contains(&kind), "{kind:?} {decision:?}");
            }
        }
    }
}
