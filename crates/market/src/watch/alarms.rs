//! Alarms that every run of the watcher raises for as long as their cause lasts: escrows that this watcher cannot
//! finish, and disputes that are not decided in time.
//!
//! Each escrow contains the seller's key and the contract with which the API sold. A watcher that was configured with
//! another key or contract, or with none, can therefore be recognised by the open escrows.

use api_types::{Alarm, AlarmName};
use cardano::{keys::SigningKey, slots::Millis};
use escrow::{Datum, evidence::EVIDENCE_GRACE_MS};
use serde::Deserialize;
use sql::{Database, DatabaseError, Read};

use super::{Keys, ServiceWallet, Watch, due::SERVICE_WALLET};

/// Time in ms. An overdue dispute raises an alarm only if its next check is due within this time. After a failure the
/// next check is due sooner; a dispute that only waits for evidence is checked later.
const MAX_RETRY_WAIT_MS: Millis = 5 * 60_000;
/// Maximum number of escrows that one run of the watcher examines for alarms. The escrows that are due first are
/// examined.
const MAX_ESCROWS: u32 = 20;

/// An open escrow, with the facts from which alarms are derived.
#[derive(Deserialize)]
struct Open {
    purchase: String,
    address: String,
    datum: String,
    /// Service wallet that made the purchase; `None` if an external wallet did.
    #[serde(deserialize_with = "sql::json")]
    service_wallet: Option<ServiceWallet>,
}

impl<D: Database, C, K, S: Keys, A> Watch<'_, D, C, K, S, A> {
    /// Returns the alarms that follow from the stored state of the open escrows.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the escrows cannot be read.
    pub(super) async fn alarms(&self, clock: Millis) -> Result<Vec<Alarm>, DatabaseError> {
        let (open, late) = self.database.batch((open(), late(clock))).await?;
        let late = late.into_iter().map(|purchase| {
            let message =
                format!("the dispute of {purchase} is not settled in time: see ARBITER_TOKEN, and the arbiter's log");
            Alarm::new(AlarmName::DisputeLate, message)
        });
        Ok(late.chain(self.cannot_sell(&open)).chain(self.cannot_protect(&open)).collect())
    }

    /// Returns an alarm if this watcher cannot act as the seller of some of these escrows, because it has another key
    /// or contract.
    fn cannot_sell(&self, open: &[Open]) -> Option<Alarm> {
        let count = open.len();
        if count == 0 {
            return None;
        }
        let with = |name, what: &str| Some(Alarm::new(name, format!("{what}, and {count} escrows or more are open")));
        if !self.sells {
            return with(AlarmName::SellerAgentOff, "SELLER_AGENT is off");
        }
        let Some(seller) = self.keys.seller().map(SigningKey::enterprise_address) else {
            return with(AlarmName::SellerSecretMissing, "SELLER_SECRET is not set here");
        };
        let Some(contract) = self.deployment.map(|deployment| deployment.address().to_string()) else {
            return with(AlarmName::DeploymentMissing, "ESCROW_DEPLOYMENT is not set here");
        };
        open.iter().find_map(|Open { purchase, address, datum, .. }| {
            if *address != contract {
                let message =
                    format!("the escrow of {purchase} is at another contract than the watcher's ESCROW_DEPLOYMENT");
                return Some(Alarm::new(AlarmName::OtherContract, message));
            }
            // An unreadable datum is reported when the escrow is due.
            let datum = hex::decode(datum).ok().and_then(|cbor| Datum::from_cbor(&cbor).ok())?;
            let message = || format!("the escrow of {purchase} has another seller than the watcher's SELLER_SECRET");
            (datum.seller.key_address() != Some(seller)).then(|| Alarm::new(AlarmName::OtherSeller, message()))
        })
    }

    /// Returns an alarm for the first service wallet whose key this watcher cannot derive.
    fn cannot_protect(&self, open: &[Open]) -> Option<Alarm> {
        open.iter().find_map(|Open { purchase, service_wallet, .. }| {
            let wallet = service_wallet.as_ref().filter(|wallet| self.keys.buyer(wallet).is_none())?;
            let (address, version) = (wallet.address, wallet.key_version);
            let message = format!(
                "the service wallet {address} cannot be protected in purchase {purchase}: the master secret of its key \
                 version {version} is not set here, or another one"
            );
            Some(Alarm::new(AlarmName::MasterSecretMissing, message))
        })
    }
}

fn open() -> Read<Vec<Open>> {
    sql::read!(
        "SELECT e.purchase_id AS purchase, e.address, e.datum, {SERVICE_WALLET} AS service_wallet \
         FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
         WHERE e.utxo IS NOT NULL AND e.next_at_ms >= 0 ORDER BY e.next_at_ms LIMIT {MAX_ESCROWS}"
    )
}

/// Builds the query that reads the purchases whose disputes were not settled in time.
fn late(clock: Millis) -> Read<Vec<String>> {
    sql::read!(
        "SELECT e.purchase_id FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
         WHERE e.utxo IS NOT NULL AND e.next_at_ms <= ?1 AND e.external_dispute_unlock_ms <= ?2 AND p.status = 'Disputed' \
         ORDER BY e.external_dispute_unlock_ms LIMIT {MAX_ESCROWS}",
        clock.saturating_add(MAX_RETRY_WAIT_MS),
        clock.saturating_sub(EVIDENCE_GRACE_MS)
    )
}
