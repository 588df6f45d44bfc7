//! Where payments are written down: the x402 crate's store in SQL. Each method is one atomic batch.

use cardano::{Address, ContentHash, Lovelace, TxHash, TxRef, chain::Inclusion, slots::Millis, tx::SignedTx};
use escrow::PlutusAddress;
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, exactly, statement};
use x402_cardano::{
    exact::protected::escrow_of,
    settlement::{Claim, Claimed, Record, SettlementStore, State},
    wire::Amount,
};

use crate::{
    listing::DeliveryMode,
    purchase::{self, NewEscrow},
};

/// The settlements of this database.
#[derive(Clone, Copy, Debug)]
pub struct Settlements<'a, D>(pub &'a D);

pub(crate) const RECORD_JSON: &str = "json_object('tx', tx_id, 'resource', listing_id, 'header', header_digest, 'payer', payer, \
    'amount', CAST(amount_lovelace AS TEXT), 'cbor', cbor, 'validUntil', valid_until_slot, 'state', state, \
    'attempts', attempts, 'attemptedAtMs', attempted_at_ms, 'delivered', json(iif(delivered_at_ms IS NULL, 'false', 'true')))";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    tx: TxHash,
    resource: String,
    header: ContentHash,
    payer: Address,
    amount: Lovelace,
    cbor: String,
    valid_until: u64,
    state: String,
    attempts: u32,
    attempted_at_ms: Millis,
    delivered: bool,
}

impl TryFrom<Row> for Record {
    type Error = DatabaseError;

    fn try_from(row: Row) -> Result<Self, DatabaseError> {
        let broken = || DatabaseError(format!("settlement {} cannot be read", row.tx));
        Ok(Self {
            tx: row.tx,
            resource: row.resource,
            header: row.header,
            payer: row.payer,
            amount: Amount::new(row.amount.get()).ok_or_else(broken)?,
            cbor: hex::decode(&row.cbor).map_err(|_| broken())?,
            valid_until: row.valid_until,
            state: row.state.parse().map_err(|_| broken())?,
            attempts: row.attempts,
            attempted_at_ms: row.attempted_at_ms,
            delivered: row.delivered,
        })
    }
}

pub(crate) fn record(row: &sql::Rows) -> Result<Option<Record>, DatabaseError> {
    row.first_json::<Row>()?.map(Record::try_from).transpose()
}

pub(crate) fn by_id(tx: &TxHash) -> Statement {
    statement!(format!("SELECT {RECORD_JSON} FROM settlements WHERE tx_id = ?1 AND payer IS NOT NULL"), tx.to_string())
}

/// The statement that writes a claim down, unless the terms belong to another transaction, or the transaction has a live
/// record. With a `wallet` of ours it is written only if its spend was granted.
pub(crate) fn insert_claim(claim: &Claim, now: Millis, wallet: Option<&str>) -> Statement {
    let mode = if claim.terms_digest.is_some() { DeliveryMode::Protected } else { DeliveryMode::Instant };
    let payment = &claim.payment;
    let tx = payment.tx_id.to_string();
    statement!(
        format!(
            "INSERT INTO settlements (tx_id, purpose, cbor, state, valid_until_slot, attempts, attempted_at_ms, \
               created_at_ms, listing_id, mode, payer, amount_lovelace, header_digest, terms_digest, wallet) \
             SELECT ?1, ?2, ?3, 'claimed', ?4, 1, ?5, ?5, ?6, ?7, ?8, CAST(?9 AS INTEGER), ?10, ?11, ?12 \
             WHERE NOT EXISTS (SELECT 1 FROM settlements WHERE terms_digest = ?11 AND tx_id <> ?1) \
             AND (?12 IS NULL OR EXISTS (SELECT 1 FROM spends WHERE tx_id = ?1 AND state = 'open')) \
             ON CONFLICT (tx_id) DO UPDATE SET cbor = excluded.cbor, state = 'claimed', \
               valid_until_slot = excluded.valid_until_slot, attempts = attempts + 1, \
               attempted_at_ms = excluded.attempted_at_ms, reason = NULL, listing_id = excluded.listing_id, \
               mode = excluded.mode, payer = excluded.payer, amount_lovelace = excluded.amount_lovelace, \
               header_digest = excluded.header_digest, terms_digest = excluded.terms_digest \
             WHERE settlements.state = 'refused' AND settlements.listing_id = excluded.listing_id \
               AND settlements.header_digest = excluded.header_digest RETURNING {RECORD_JSON}"
        ),
        tx.as_str(),
        format!("payment:{tx}"),
        hex::encode(&payment.cbor),
        payment.valid_until,
        now,
        claim.resource.as_str(),
        mode.as_str(),
        payment.payer.to_string(),
        payment.amount.to_string(),
        claim.header.to_string(),
        claim.terms_digest.map(|digest| digest.to_string()),
        wallet,
    )
}

impl<D: Database> SettlementStore for Settlements<'_, D> {
    type Error = DatabaseError;

    async fn find(&self, tx: &TxHash) -> Result<Option<Record>, DatabaseError> {
        record(&self.0.run(by_id(tx)).await?)
    }

    async fn claim(&self, claim: &Claim, now: Millis) -> Result<Claimed, DatabaseError> {
        let tx = claim.payment.tx_id;
        let holder = statement!(
            "SELECT tx_id FROM settlements WHERE terms_digest = ?1 AND tx_id <> ?2",
            claim.terms_digest.map(|digest| digest.to_string()),
            tx.to_string(),
        );
        let [new, known, holder] =
            exactly(self.0.batch(vec![insert_claim(claim, now, None), by_id(&tx), holder]).await?)?;
        if let Some(record) = record(&new)? {
            return Ok(Claimed::New(record));
        }
        if let Some(other) = holder.first() {
            let other = other.parse().map_err(|_| DatabaseError("a transaction id cannot be read".into()))?;
            return Ok(Claimed::Conflict(other));
        }
        match record(&known)? {
            Some(record) => Ok(Claimed::Known(record)),
            None => Err(DatabaseError(format!("the claim of {tx} wrote nothing and found nothing"))),
        }
    }

    async fn begin_attempt(&self, tx: &TxHash, attempts: u32, now: Millis) -> Result<bool, DatabaseError> {
        let begin = statement!(
            "UPDATE settlements SET attempts = attempts + 1, attempted_at_ms = ?3 WHERE tx_id = ?1 AND attempts = ?2 \
             AND state IN ('claimed', 'submitted') RETURNING tx_id",
            tx.to_string(),
            i64::from(attempts),
            now,
        );
        Ok(self.0.run(begin).await?.first().is_some())
    }

    async fn mark_submitted(&self, tx: &TxHash) -> Result<(), DatabaseError> {
        let mark = statement!(
            "UPDATE settlements SET state = 'submitted' WHERE tx_id = ?1 AND state = 'claimed'",
            tx.to_string()
        );
        self.0.run(mark).await.map(|_| ())
    }

    /// With the purchase that the payment makes, its event and its figures.
    async fn mark_included(&self, tx: &TxHash, inclusion: &Inclusion) -> Result<(), DatabaseError> {
        let lock = statement!("SELECT cbor FROM settlements WHERE tx_id = ?1 AND mode = 'protected'", tx.to_string());
        let lock = self.0.run(lock).await?;
        self.0.batch(included(tx, inclusion, lock.first())?).await.map(|_| ())
    }

    async fn mark_refused(&self, tx: &TxHash, attempts: u32, reason: &str) -> Result<bool, DatabaseError> {
        let mark = statement!(
            "UPDATE settlements SET state = 'refused', reason = ?3 \
             WHERE tx_id = ?1 AND attempts = ?2 AND state = 'claimed' RETURNING tx_id",
            tx.to_string(),
            i64::from(attempts),
            reason,
        );
        Ok(self.0.run(mark).await?.first().is_some())
    }

    async fn mark_expired(&self, tx: &TxHash) -> Result<(), DatabaseError> {
        let mark = statement!(
            "UPDATE settlements SET state = 'expired' WHERE tx_id = ?1 AND state IN ('claimed', 'submitted')",
            tx.to_string()
        );
        self.0.run(mark).await.map(|_| ())
    }
}

/// The statements that note that a transaction of ours is in a block, with the purchase that a payment makes. `lock` is
/// the hex of a lock's bytes. Where another block is noted already, that stays, with the times that were told: whoever
/// finds that block gone moves all of them.
///
/// # Errors
/// A lock that cannot be read.
pub fn included(tx: &TxHash, inclusion: &Inclusion, lock: Option<&str>) -> Result<Vec<Statement>, DatabaseError> {
    let mut statements = vec![statement!(
        "UPDATE settlements SET state = 'included', block_hash = ?2, block_height = ?3, block_slot = ?4, \
         block_time_ms = ?5 WHERE tx_id = ?1 AND state <> 'included'",
        tx.to_string(),
        inclusion.block.to_string(),
        inclusion.height,
        inclusion.slot,
        inclusion.time_ms,
    )];
    match lock {
        None => statements.extend(purchase::record_instant(tx, inclusion)),
        Some(cbor) => statements.extend(purchase::record_protected(tx, inclusion, &escrow_in(tx, cbor)?)),
    }
    Ok(statements)
}

/// The statement that gives up an action of ours that would have spent what `by` has spent: it can be in no block now,
/// and what else it was to do must not wait until its time is over.
#[must_use]
pub fn overtaken(by: &TxHash, spent: &TxRef) -> Statement {
    statement!(
        "UPDATE settlements SET state = 'expired', reason = 'another transaction spent ' || ?2 \
         WHERE tx_id = (SELECT tx_id FROM reservations WHERE tx_in = ?2) AND tx_id <> ?1 AND action IS NOT NULL \
           AND state IN ('claimed', 'submitted')",
        by.to_string(),
        spent.to_string()
    )
}

/// Slots after its end before a transaction is called expired, in case of a short fork: three blocks.
pub(crate) const EXPIRY_GRACE_SLOTS: u64 = 60;

/// The escrow in a lock that was verified before it was written down.
pub(crate) fn escrow_in(tx: &TxHash, cbor: &str) -> Result<NewEscrow, DatabaseError> {
    let broken = || DatabaseError(format!("the lock {tx} cannot be read"));
    let cbor = hex::decode(cbor).map_err(|_| broken())?;
    let tx = SignedTx::parse(&cbor).map_err(|_| broken())?;
    let (index, script, datum) = escrow_of(&tx).ok_or_else(broken)?;
    let locked = tx.outputs.get(usize::from(index)).map(|output| output.value.lovelace).ok_or_else(broken)?;
    Ok(NewEscrow { index, address: PlutusAddress::script(script).to_string(), datum, locked })
}

/// The statement that notes that content was handed out for a payment: from now on the payment alone opens nothing.
#[must_use]
pub fn mark_delivered(tx: &TxHash, now: Millis) -> Statement {
    statement!(
        "UPDATE settlements SET delivered_at_ms = ?2 WHERE tx_id = ?1 AND delivered_at_ms IS NULL",
        tx.to_string(),
        now
    )
}

/// The statement that reads this payer's payments for a listing whose end is not known, newest first: transaction ids.
#[must_use]
pub fn open_payments(listing: &str, payer: &Address) -> Statement {
    statement!(
        "SELECT tx_id FROM settlements WHERE payer = ?2 AND listing_id = ?1 AND state IN ('claimed', 'submitted') \
         ORDER BY created_at_ms DESC LIMIT 3",
        listing,
        payer.to_string()
    )
}

/// States in which a payment's end is not known.
#[must_use]
pub const fn is_open(state: State) -> bool {
    matches!(state, State::Claimed | State::Submitted)
}
