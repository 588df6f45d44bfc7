//! What follows from the inclusion of a payment: its purchase, and of a lock the escrow. These are written in one batch with the
//! inclusion, and only where that is written. All else that follows from an entry of the outbox follows by trigger
//! (`d1-migrations/0005_purchases.sql`).

use cardano::{chain::Inclusion, tx::TransactionUtxos};
use escrow::{Datum, PlutusAddress, plan::Escrow};
use outbox::{Decision, Entry, Kind};
use sql::{DatabaseError, Statement};

use crate::purchase::{Status, insert, record_escrow};

/// The statements of what follows from a decision about an entry: the market's [`outbox::Hook`].
///
/// # Errors
/// The payment's bytes cannot be read.
pub fn statements(entry: &Entry, decision: &Decision) -> Result<Vec<Statement>, DatabaseError> {
    match (entry.kind, decision) {
        (Kind::Payment | Kind::Lock, Decision::Include(block)) => included(entry, block),
        _ => Ok(vec![]),
    }
}

/// The purchase that a payment made; of a lock, with the escrow to watch. The bytes may be the block's, in which the
/// first to submit it has chosen how the signatures are written.
fn included(entry: &Entry, block: &Inclusion) -> Result<Vec<Statement>, DatabaseError> {
    let broken = || DatabaseError(format!("the payment {} cannot be read", entry.tx));
    let utxos = TransactionUtxos::read(&entry.cbor).ok().filter(|utxos| utxos.valid).ok_or_else(broken)?;
    let Some(escrow) = escrow_in(utxos) else {
        return Ok(vec![insert(&entry.tx, block, Status::Settled)]);
    };
    Ok(vec![insert(&entry.tx, block, Status::from(escrow.datum.state)), record_escrow(&entry.tx, &escrow)])
}

/// The escrow that a lock makes: a payment that was verified has one output at a script, and only if it locks.
fn escrow_in(utxos: TransactionUtxos) -> Option<Escrow> {
    utxos.made.into_iter().find_map(|utxo| {
        utxo.address.parse::<PlutusAddress>().ok()?.payment_script()?;
        let datum = Datum::from_cbor(utxo.inline_datum.as_ref()?).ok()?;
        Some(Escrow { utxo, datum })
    })
}
