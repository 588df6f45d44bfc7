//! Alarms that are repeated at every tick while their cause lasts: escrows that this watcher cannot finish, and
//! disputes that are not decided in time.
//!
//! The API sells with its own key and contract, which stand in each escrow. So a watcher that was given others, or none, is
//! known by the escrows that are open.

use cardano::{Address, slots::Millis};
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
#[serde(rename_all = "camelCase")]
struct Open {
    purchase: String,
    address: String,
    datum: String,
}

/// The seller and the contract that this watcher is configured for.
struct OwnIdentity {
    seller: Option<Address>,
    contract: Option<String>,
}

impl<D: Database, C, K, S: Keys, A> Watch<'_, D, C, K, S, A> {
    /// The alarms of the escrows as they are stored.
    ///
    /// # Errors
    /// The database cannot be asked.
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
            let seller = self.keys.seller().map(cardano::keys::SigningKey::enterprise_address);
            let contract = self.deployment.map(|deployment| deployment.address().to_string());
            alarms.extend(cannot_act(&open.all_json()?, &OwnIdentity { seller, contract }));
        }
        Ok(alarms)
    }
}

/// Why this watcher can act on none of these, or not on one of them.
fn cannot_act(open: &[Open], own: &OwnIdentity) -> Option<String> {
    let count = open.len();
    let (first, rest) = open.split_first()?;
    if own.seller.is_none() {
        return Some(format!("SELLER_SECRET is not set here, and {count} escrows or more are open"));
    }
    if own.contract.is_none() {
        return Some(format!("ESCROW_DEPLOYMENT is not set here, and {count} escrows or more are open"));
    }
    std::iter::once(first).chain(rest).find_map(|escrow| {
        if Some(&escrow.address) != own.contract.as_ref() {
            return Some(format!(
                "the escrow of {} is in another contract than ESCROW_DEPLOYMENT here",
                escrow.purchase
            ));
        }
        let datum = hex::decode(&escrow.datum).ok().and_then(|cbor| Datum::from_cbor(&cbor).ok());
        let sold_by = datum.map(|datum| datum.seller.key_address());
        // One that cannot be read is told where it is due.
        let other = sold_by.is_some_and(|seller| seller != own.seller);
        other.then(|| format!("the escrow of {} is sold by another key than SELLER_SECRET here", escrow.purchase))
    })
}

/// The statement that reads open escrows.
fn open() -> Statement {
    statement!(format!(
        "SELECT json_object('purchase', purchase_id, 'address', address, 'datum', datum) FROM escrows \
         WHERE utxo IS NOT NULL AND next_at_ms >= 0 ORDER BY next_at_ms LIMIT {MAX_ESCROWS}"
    ))
}

/// The statement that reads disputes that are not settled in time.
fn late(clock: Millis) -> Statement {
    statement!(
        format!(
            "SELECT json_quote(e.purchase_id) FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
             WHERE e.utxo IS NOT NULL AND e.next_at_ms <= ?1 AND e.external_dispute_unlock_ms <= ?2 AND p.status = 'Disputed' \
             ORDER BY e.external_dispute_unlock_ms LIMIT {MAX_ESCROWS}"
        ),
        clock.saturating_add(PUT_OFF_MS),
        clock.saturating_sub(RESOLVED_WITHIN_MS)
    )
}
