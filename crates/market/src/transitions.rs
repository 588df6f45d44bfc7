//! What follows from a change of an entry of the outbox: purchases come and go, and what entries act on follows them. The
//! statements are written in one batch with the change, and take effect only where the change did.

use cardano::{TxHash, chain::Inclusion, tx::TransactionUtxos};
use escrow::{Datum, PlutusAddress};
use outbox::{Decision, Entry, Kind, TransitionHook};
use sql::{DatabaseError, Statement, statement};

use crate::purchase::{NewEscrow, Status, escrows_follow_steps, insert, purchases_follow, record_escrow};

/// The purchases that an entry acts on, by its transaction `?1`.
const ACTED_ON: &str = "SELECT purchase_id FROM outbox_purchases WHERE tx_id = ?1";

/// The market's rules of what follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transitions;

impl TransitionHook for Transitions {
    fn statements(&self, entry: &Entry, decision: &Decision) -> Result<Vec<Statement>, DatabaseError> {
        match entry.kind {
            Kind::Payment | Kind::Lock => payment(entry, decision),
            Kind::Withdrawal | Kind::Split => Ok(vec![]),
            Kind::Result | Kind::Collect | Kind::Refund | Kind::Dispute | Kind::Payout | Kind::Award => {
                Ok(action(&entry.tx, decision))
            }
        }
    }
}

fn payment(entry: &Entry, decision: &Decision) -> Result<Vec<Statement>, DatabaseError> {
    Ok(match decision {
        Decision::Include(block) => included(entry, block)?,
        Decision::Reanchor(block) => reanchored(&entry.tx, block),
        Decision::Unconfirm => delete_purchase(&entry.tx),
        Decision::Refuse(_) => vec![forget_identifiers(&entry.tx)],
        Decision::Wait | Decision::Submit | Decision::Accept | Decision::Expire => vec![],
    })
}

/// The purchase that a payment made; of a lock, with the escrow to watch. The bytes may be the block's, in which the
/// first to submit it has chosen how the signatures are written.
fn included(entry: &Entry, block: &Inclusion) -> Result<Vec<Statement>, DatabaseError> {
    let broken = || DatabaseError(format!("the payment {} cannot be read", entry.tx));
    let utxos = TransactionUtxos::read(&entry.cbor).ok().filter(|utxos| utxos.valid).ok_or_else(broken)?;
    let Some(escrow) = escrow_in(utxos) else {
        return Ok(vec![insert(&entry.tx, block, Status::Settled)]);
    };
    let mut statements = vec![insert(&entry.tx, block, Status::from(escrow.datum.state))];
    statements.extend(record_escrow(&entry.tx, block, &escrow));
    Ok(statements)
}

/// The escrow that a lock makes: a payment that was verified has one output at a script, and only if it locks.
fn escrow_in(utxos: TransactionUtxos) -> Option<NewEscrow> {
    utxos.made.into_iter().find_map(|output| {
        output.address.parse::<PlutusAddress>().ok()?.payment_script()?;
        let datum = Datum::from_cbor(&output.inline_datum?).ok()?;
        Some(NewEscrow { index: output.reference.index, address: output.address, datum, locked: output.value.lovelace })
    })
}

/// The statement that forgets the clients' names of a refused payment: the next claim of it may come under others.
fn forget_identifiers(tx: &TxHash) -> Statement {
    statement!(
        "DELETE FROM payment_identifiers WHERE tx_id = ?1 AND (SELECT state FROM outbox WHERE tx_id = ?1) = 'refused'",
        tx
    )
}

/// The statements for a payment that is in another block now.
fn reanchored(tx: &TxHash, block: &Inclusion) -> Vec<Statement> {
    vec![
        statement!("UPDATE purchases SET bought_at_ms = ?2 WHERE id = ?1", tx, block.time_ms),
        reanchor_steps(tx, block),
    ]
}

/// The statement that dates the steps of an entry anew: another block has it. A block that no tick saw may have had a lock
/// together with its result.
fn reanchor_steps(tx: &TxHash, block: &Inclusion) -> Statement {
    statement!(
        "UPDATE escrow_steps SET height = ?2, at_ms = ?3 WHERE tx_id = ?1 \
         AND (SELECT block_hash FROM outbox WHERE tx_id = ?1) = ?4",
        tx,
        block.height,
        block.time_ms,
        block.block
    )
}

/// The statements that delete the purchase of a payment that no block has any more.
fn delete_purchase(tx: &TxHash) -> Vec<Statement> {
    let of = |sql: &'static str| statement!(sql, tx);
    vec![
        of(
            "DELETE FROM escrow_steps WHERE purchase_id = ?1 AND (SELECT state FROM outbox WHERE tx_id = ?1) <> 'included'",
        ),
        of("DELETE FROM escrows WHERE purchase_id = ?1 AND (SELECT state FROM outbox WHERE tx_id = ?1) <> 'included'"),
        of("DELETE FROM purchases WHERE id = ?1 AND (SELECT state FROM outbox WHERE tx_id = ?1) <> 'included'"),
    ]
}

/// The statement that removes the steps that an action made which is in no block any more, and what came after them.
fn delete_steps(tx: &TxHash) -> Statement {
    statement!(
        "DELETE FROM escrow_steps WHERE (SELECT state FROM outbox WHERE tx_id = ?1) <> 'included' \
         AND (purchase_id, tx_id) IN (SELECT later.purchase_id, later.tx_id FROM escrow_steps own \
           JOIN escrow_steps later ON later.purchase_id = own.purchase_id AND later.position >= own.position \
           WHERE own.tx_id = ?1)",
        tx
    )
}

/// What an action does shows in the purchases that it acts on; one that was refused or expired is due again.
fn action(tx: &TxHash, decision: &Decision) -> Vec<Statement> {
    if matches!(decision, Decision::Wait | Decision::Submit) {
        return vec![];
    }
    let mut statements = vec![];
    if let Decision::Reanchor(block) = decision {
        statements.push(reanchor_steps(tx, block));
    }
    if *decision == Decision::Unconfirm {
        statements.push(delete_steps(tx));
        statements.extend(escrows_follow_steps(ACTED_ON, &tx.to_string()));
    } else {
        statements.extend(purchases_follow(ACTED_ON, &tx.to_string()));
    }
    if matches!(decision, Decision::Refuse(_) | Decision::Expire) {
        statements.push(statement!(
            format!(
                "UPDATE escrows SET next_at_ms = 0, failures = failures + ((SELECT state FROM outbox WHERE tx_id = ?1) = 'expired') \
                 WHERE purchase_id IN ({ACTED_ON}) AND (SELECT state FROM outbox WHERE tx_id = ?1) IN ('refused', 'expired')"
            ),
            tx
        ));
    }
    statements
}
