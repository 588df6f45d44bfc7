//! Alarms that are repeated at every tick while their cause lasts: escrows that this watcher cannot finish, and
//! disputes that are not decided in time.
//!
//! The API sells with its own key and contract, which stand in each escrow. So a watcher that was given others, or none, is
//! known by the escrows that are open.

use cardano::{keys::SigningKey, slots::Millis};
use escrow::Datum;
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use super::{Keys, Watch};

/// How long after its window opened a dispute may be open: as long as the arbiter waits for evidence.
const RESOLVED_WITHIN_MS: Millis = 10 * 60_000;
/// How far ahead a dispute may be put off that failed: it still counts as undecided.
const PUT_OFF_MS: Millis = 5 * 60_000;
/// Escrows that are looked at in a tick, those that are due first.
const MAX_ESCROWS: u32 = 20;

/// An escrow that is open.
#[derive(Deserialize)]
struct Open {
    purchase: String,
    address: String,
    datum: String,
}

impl<D: Database, C, K, S: Keys, A> Watch<'_, D, C, K, S, A> {
    /// The alarms of the escrows as they are stored.
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

    /// Why this watcher, with its key and its contract, can act on none of these, or not on one of them.
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
            // One that cannot be read is told where it is due.
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

/// The statement that reads disputes that are not settled in time.
fn late(clock: Millis) -> Statement {
    statement!(
        "SELECT json_quote(e.purchase_id) FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
         WHERE e.utxo IS NOT NULL AND e.next_at_ms <= ?1 AND e.external_dispute_unlock_ms <= ?2 AND p.status = 'Disputed' \
         ORDER BY e.external_dispute_unlock_ms LIMIT {MAX_ESCROWS}",
        clock.saturating_add(PUT_OFF_MS),
        clock.saturating_sub(RESOLVED_WITHIN_MS)
    )
}
