//! Alarms that every tick raises while their cause lasts: escrows that this watcher cannot act on, and undecided
//! disputes.
//!
//! The API sells with its own key and contract, which each escrow contains. So a watcher with other ones, or none, is
//! detected by the open escrows.

use cardano::{keys::SigningKey, slots::Millis};
use escrow::Datum;
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use super::{Keys, Watch};

/// Maximum duration of an open dispute in ms: the arbiter's time for evidence.
const RESOLVED_WITHIN_MS: Millis = 10 * 60_000;
/// Time in ms by which a failing dispute may be postponed and still count as undecided.
const PUT_OFF_MS: Millis = 5 * 60_000;
/// Maximum number of escrows to check per tick, due ones first.
const MAX_ESCROWS: u32 = 20;

/// An open escrow.
#[derive(Deserialize)]
struct Open {
    purchase: String,
    address: String,
    datum: String,
}

impl<D: Database, C, K, S: Keys, A> Watch<'_, D, C, K, S, A> {
    /// Returns the alarms about stored escrows.
    ///
    /// # Errors
    /// The database query failed.
    pub(super) async fn alarms(&self, clock: Millis) -> Result<Vec<String>, DatabaseError> {
        let [open, late] = exactly(self.database.batch(vec![open(), late(clock)]).await?)?;
        let mut alarms: Vec<String> = late
            .all_json::<String>()?
            .into_iter()
            .map(|purchase| {
                format!("the dispute of {purchase} is not settled in time: see ARBITER_TOKEN, and the arbiter's log")
            })
            .collect();
        if self.sells {
            alarms.extend(self.cannot_act(&open.all_json()?));
        }
        Ok(alarms)
    }

    /// Returns why this watcher cannot act on an escrow, by its key and contract.
    fn cannot_act(&self, open: &[Open]) -> Option<String> {
        let count = open.len();
        if count == 0 {
            return None;
        }
        let Some(seller) = self.keys.seller().map(SigningKey::enterprise_address) else {
            return Some(format!("SELLER_SECRET is not set here, and {count} escrows or more are open"));
        };
        let Some(contract) = self.deployment.map(|deployment| deployment.address().to_string()) else {
            return Some(format!("ESCROW_DEPLOYMENT is not set here, and {count} escrows or more are open"));
        };
        open.iter().find_map(|Open { purchase, address, datum }| {
            if *address != contract {
                return Some(format!("the escrow of {purchase} is in another contract than ESCROW_DEPLOYMENT here"));
            }
            // An undecodable datum raises an alarm when the escrow is due.
            let datum = hex::decode(datum).ok().and_then(|cbor| Datum::from_cbor(&cbor).ok())?;
            let is_other = datum.seller.key_address() != Some(seller);
            is_other.then(|| format!("the escrow of {purchase} is sold by another key than SELLER_SECRET here"))
        })
    }
}

fn open() -> Statement {
    statement!(
        "SELECT json_object('purchase', purchase_id, 'address', address, 'datum', datum) FROM escrows \
         WHERE utxo IS NOT NULL AND next_at_ms >= 0 ORDER BY next_at_ms LIMIT {MAX_ESCROWS}"
    )
}

/// Statement that reads disputes that are not settled in time.
fn late(clock: Millis) -> Statement {
    statement!(
        "SELECT json_quote(e.purchase_id) FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
         WHERE e.utxo IS NOT NULL AND e.next_at_ms <= ?1 AND e.external_dispute_unlock_ms <= ?2 AND p.status = 'Disputed' \
         ORDER BY e.external_dispute_unlock_ms LIMIT {MAX_ESCROWS}",
        clock.saturating_add(PUT_OFF_MS),
        clock.saturating_sub(RESOLVED_WITHIN_MS)
    )
}
