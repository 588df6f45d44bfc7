//! Effects of an included payment: its purchase, and the escrow of a lock.
//!
//! Both are written in the batch that records the inclusion, and only if that is written. Triggers handle the other
//! effects of outbox entries (`d1-migrations/0005_purchases.sql`).

use cardano::{chain::Inclusion, tx::TransactionUtxos};
use escrow::{Datum, PlutusAddress, plan::Escrow};
use outbox::{Decision, Entry, Kind};
use sql::{DatabaseError, Statement};

use crate::purchase::{Status, insert, record_escrow};

/// Returns the statements for the effects of a decision: the market's [`outbox::Hook`].
///
/// # Errors
/// The payment's bytes cannot be decoded.
pub fn statements(entry: &Entry, decision: &Decision) -> Result<Vec<Statement>, DatabaseError> {
    match (entry.kind, decision) {
        (Kind::Payment | Kind::Lock, Decision::Include(block)) => included(entry, block),
        _ => Ok(vec![]),
    }
}

/// Returns the statements that insert a purchase, and the escrow of a lock. The bytes may be the block's, where the
/// signatures can be encoded differently.
fn included(entry: &Entry, block: &Inclusion) -> Result<Vec<Statement>, DatabaseError> {
    let broken = || DatabaseError(format!("the payment {} cannot be read", entry.tx));
    let utxos = TransactionUtxos::read(&entry.cbor).ok().filter(|utxos| utxos.valid).ok_or_else(broken)?;
    let Some(escrow) = escrow_in(utxos) else {
        return Ok(vec![insert(&entry.tx, block, Status::Settled)]);
    };
    Ok(vec![insert(&entry.tx, block, Status::from(escrow.datum.state)), record_escrow(&entry.tx, &escrow)])
}

/// Returns the escrow that a lock creates. A verified payment has one script output, and only if it is a lock.
fn escrow_in(utxos: TransactionUtxos) -> Option<Escrow> {
    utxos.made.into_iter().find_map(|utxo| {
        utxo.address.parse::<PlutusAddress>().ok()?.payment_script()?;
        let datum = Datum::from_cbor(utxo.inline_datum.as_ref()?).ok()?;
        Some(Escrow { utxo, datum })
    })
}
