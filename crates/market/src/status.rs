//! Status for the operator: the watcher's last run, the chain, open escrows, and alarms.

use api_types::{Alarm, AlarmName, KnownBlock, LastTick, OpenDeadline, Restoring, WalletBalance};
use cardano::{Address, Lovelace, chain::Chain, keys::SigningKey, slots::Millis};
use escrow::Deployment;
use serde::{Deserialize, Serialize};
use sql::{Database, DatabaseError, One, Read, Write};

use crate::{chain_state::ClockLead, limits::day, notice::Notified};

/// Maximum number of notes, and also of alarms, that are stored per run of the watcher.
const MAX_STORED: usize = 10;
/// Time in ms without a run of the watcher after which it counts as stopped. Five runs should have begun in this time.
const SILENT_MS: Millis = 5 * 60_000;
/// Minimum balance of the platform's wallet, for fees and collateral. A lower balance raises an alarm.
const PLATFORM: Lovelace = Lovelace::from_ada(10);
const ARBITER: Lovelace = Lovelace::from_ada(5);
const MINUTE_MS: Millis = 60_000;

/// Outcome of one run of the watcher (a *tick*), as stored for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickOutcome {
    /// Error that ended the run early; `None` if the run was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Alarm>,
    pub alarms: Vec<Alarm>,
    pub notes: Vec<String>,
}

/// Record of earlier runs of the watcher, as [`note_tick`] returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TickRecord {
    /// Number of consecutive runs of the watcher that ended early, including this one.
    pub failures: u32,
    #[serde(deserialize_with = "sql::json")]
    pub notified: Notified,
    #[serde(deserialize_with = "sql::json")]
    pub wallets: Vec<WalletBalance>,
}

/// Reads the balances of the wallets that pay network fees: the platform's wallet, which is that of the seller of
/// record, and the wallet of the escrow contract's first arbiter. `balance_lovelace` is `None` if the provider did not
/// answer, which is no error here, because the watcher raises an alarm if the provider fails.
pub async fn balances(
    chain: &impl Chain,
    seller: Option<&SigningKey>,
    deployment: Option<&Deployment>,
) -> Vec<WalletBalance> {
    let seller = seller.map(|key| ("platform", key.enterprise_address()));
    let arbiter = deployment.and_then(|deployment| deployment.parameters.admin_vkeys.first());
    let arbiter = arbiter.map(|key| ("arbiter", Address::enterprise(*key)));
    let mut wallets = vec![];
    for (name, address) in seller.into_iter().chain(arbiter) {
        let balance_lovelace = chain.balance_of(&address.to_string()).await.ok();
        wallets.push(WalletBalance { name: name.to_owned(), address, balance_lovelace });
    }
    wallets
}

/// Builds the statement that records a run of the watcher: its outcome, its start `at` (POSIX ms), its number of
/// outgoing calls, and the wallet balances if it read any.
pub fn note_tick(
    mut outcome: TickOutcome,
    wallets: Option<&[WalletBalance]>,
    calls: u32,
    at: Millis,
) -> Write<One<TickRecord>> {
    outcome.alarms.truncate(MAX_STORED);
    outcome.notes.truncate(MAX_STORED);
    sql::write!(
        "INSERT INTO last_tick (id, number, at_ms, day, calls, outcome, failures, wallets) \
         VALUES (1, 1, ?1, ?2, ?3, ?4, ?5, coalesce(?6, '[]')) ON CONFLICT (id) DO UPDATE SET \
           calls = iif(day = excluded.day, calls, 0) + excluded.calls, at_ms = excluded.at_ms, day = excluded.day, \
           outcome = excluded.outcome, failures = iif(excluded.failures = 0, 0, failures + 1), \
           wallets = coalesce(?6, wallets) \
         RETURNING failures, notified, wallets",
        at,
        day(at),
        calls,
        serde_json::json!(outcome).to_string(),
        outcome.failed.is_some(),
        wallets.map(|wallets| serde_json::json!(wallets).to_string())
    )
}

/// Part of the stored status from which alarms are derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmSources {
    tick: Option<Tick>,
    pub newest_block: Option<KnownBlock>,
}

/// Stored part of the operator's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStatus {
    pub vitals: AlarmSources,
    pub open_escrows: u64,
    /// The earliest deadline of an open escrow.
    pub oldest_deadline: Option<OpenDeadline>,
    /// Progress of reading the chain after the database was restored; `None` if nothing remains to be read.
    pub restore: Option<Restoring>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Tick {
    at: Millis,
    calls: u64,
    #[serde(deserialize_with = "sql::json")]
    outcome: TickOutcome,
    #[serde(deserialize_with = "sql::json")]
    wallets: Vec<WalletBalance>,
}

/// Reads the stored status at this time, POSIX ms.
///
/// # Errors
/// Returns [`DatabaseError`] if the database is unavailable.
pub async fn read(db: &impl Database, now: Millis) -> Result<StoredStatus, DatabaseError> {
    let open_escrows: Read<One<u64>> = sql::read!("SELECT count(*) FROM escrows WHERE utxo IS NOT NULL");
    let oldest_deadline = sql::read!(
        "SELECT e.purchase_id AS purchase, p.status, CAST(CASE \
           WHEN p.status IN ('FundsLocked', 'RefundRequested') THEN e.submit_result_ms \
           WHEN p.status = 'Disputed' THEN e.external_dispute_unlock_ms ELSE e.unlock_ms END AS TEXT) AS at \
         FROM escrows e JOIN purchases p ON p.id = e.purchase_id WHERE e.utxo IS NOT NULL \
         ORDER BY CAST(at AS INTEGER) LIMIT 1"
    );
    let restore = sql::read!(
        "SELECT (SELECT count(*) FROM unread_wallets) AS walletsLeft FROM restored \
         WHERE platform IS NULL OR EXISTS (SELECT 1 FROM unread_wallets)"
    );
    let ((tick, newest_block), One(open_escrows), oldest_deadline, restore) =
        db.batch((read_vitals(now), open_escrows, oldest_deadline, restore)).await?;
    Ok(StoredStatus { vitals: AlarmSources { tick, newest_block }, open_escrows, oldest_deadline, restore })
}

fn read_vitals(now: Millis) -> (Read<Option<Tick>>, Read<Option<KnownBlock>>) {
    let tick = sql::read!(
        "SELECT at_ms AS at, iif(day = ?1, calls, 0) AS calls, outcome, wallets FROM last_tick WHERE id = 1",
        day(now)
    );
    let newest_block =
        sql::read!("SELECT tip_height AS height, CAST(tip_time_ms AS TEXT) AS at FROM chain_state WHERE id = 1");
    (tick, newest_block)
}

impl AlarmSources {
    /// Reads the status from which alarms are derived, at the time `now` (POSIX ms). The cost does not grow with the
    /// number of open escrows.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database is unavailable.
    pub async fn read(db: &impl Database, now: Millis) -> Result<Self, DatabaseError> {
        let (tick, newest_block) = db.batch(read_vitals(now)).await?;
        Ok(Self { tick, newest_block })
    }

    /// Returns the last run of the watcher.
    #[must_use]
    pub fn last_tick(&self) -> Option<LastTick> {
        self.tick.as_ref().map(|tick| LastTick { at: tick.at, notes: tick.outcome.notes.clone() })
    }

    /// Returns the number of outgoing calls that the watcher has made today (UTC).
    #[must_use]
    pub fn watcher_calls(&self) -> u64 {
        self.tick.as_ref().map_or(0, |tick| tick.calls)
    }

    /// Returns the balances of the wallets that pay fees, as the watcher last read them.
    #[must_use]
    pub fn wallets(&self) -> &[WalletBalance] {
        self.tick.as_ref().map_or(&[], |tick| &tick.wallets)
    }

    /// Returns the alarms of the watcher's last run, and the alarms that the watcher cannot raise itself, such as that
    /// it has stopped.
    #[must_use]
    pub fn alarms(&self, wallets: &[WalletBalance], lead: ClockLead, now: Millis) -> Vec<Alarm> {
        let mut alarms = vec![];
        match &self.tick {
            None => alarms.push(Alarm::new(AlarmName::NoTick, "no tick of the watcher yet")),
            Some(tick) if tick.at.saturating_add(SILENT_MS) < now => {
                let message = format!("no tick of the watcher for {} minutes", minutes(tick.at, now));
                alarms.push(Alarm::new(AlarmName::NoTick, message));
            }
            Some(tick) => alarms.extend(tick.outcome.failed.clone()),
        }
        let old_block = self.newest_block.and_then(|block| old_block(block.at, lead, now));
        let raised: Vec<Alarm> = self.tick.iter().flat_map(|tick| tick.outcome.alarms.clone()).collect();
        // A run of the watcher raises this alarm as well.
        alarms.extend(old_block.filter(|_| raised.iter().all(|alarm| alarm.name != AlarmName::OldBlock)));
        alarms.extend(low_wallets(wallets));
        alarms.extend(raised);
        alarms
    }
}

const fn minutes(since: Millis, now: Millis) -> Millis {
    now.saturating_sub(since).div_euclid(MINUTE_MS)
}

/// Returns an alarm if the newest known block is too old.
#[must_use]
pub fn old_block(block: Millis, lead: ClockLead, now: Millis) -> Option<Alarm> {
    let message = || format!("the newest known block is {} minutes old", minutes(block, now));
    lead.is_behind(block, now).then(|| Alarm::new(AlarmName::OldBlock, message()))
}

/// Returns an alarm for each wallet whose balance will soon be too low to pay fees.
#[must_use]
pub fn low_wallets(wallets: &[WalletBalance]) -> Vec<Alarm> {
    let mut alarms = vec![];
    for WalletBalance { name, address, balance_lovelace } in wallets {
        let (kind, least) = match name.as_str() {
            "arbiter" => (AlarmName::ArbiterWalletLow, ARBITER),
            _ => (AlarmName::PlatformWalletLow, PLATFORM),
        };
        if let Some(balance) = balance_lovelace.filter(|balance| *balance < least) {
            let message = format!("the {name}'s wallet holds {}: {address}", balance.display_tada());
            alarms.push(Alarm::new(kind, message));
        }
    }
    alarms
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_750_000_000_000;

    fn at(tick: Option<(Millis, TickOutcome)>, block: Option<Millis>) -> AlarmSources {
        AlarmSources {
            tick: tick.map(|(at, outcome)| Tick { at, calls: 7, outcome, wallets: vec![] }),
            newest_block: block.map(|at| KnownBlock { height: 5, at }),
        }
    }

    fn messages(alarms: &[Alarm]) -> Vec<String> {
        alarms.iter().map(|alarm| alarm.message.clone()).collect()
    }

    #[test]
    fn a_watcher_that_ticks_without_alarms_raises_none() {
        let well = at(Some((NOW - MINUTE_MS, TickOutcome::default())), Some(NOW - MINUTE_MS));
        assert_eq!(well.alarms(&[], ClockLead::Bounded, NOW), []);
        assert_eq!(well.watcher_calls(), 7);
    }

    #[test]
    fn a_watcher_that_stopped_ticking_raises_an_alarm() {
        let of = |status: AlarmSources| messages(&status.alarms(&[], ClockLead::Bounded, NOW));
        assert_eq!(of(at(None, None)), ["no tick of the watcher yet"]);
        let silent = at(Some((NOW - 7 * MINUTE_MS, TickOutcome::default())), Some(NOW - 7 * MINUTE_MS));
        let expected = ["no tick of the watcher for 7 minutes", "the newest known block is 7 minutes old"];
        assert_eq!(of(silent), expected);
        let failed = TickOutcome {
            failed: Some(Alarm::new(AlarmName::TickFailed, "the last tick failed: 503")),
            alarms: vec![Alarm::new(AlarmName::DisputeLate, "a dispute")],
            ..TickOutcome::default()
        };
        assert_eq!(of(at(Some((NOW, failed)), Some(NOW))), ["the last tick failed: 503", "a dispute"]);
    }

    #[test]
    fn a_wallet_that_cannot_pay_fees_for_long_is_an_alarm() {
        let address = cardano::keys::SigningKey::from_seed(&[1; 32]).unwrap().enterprise_address();
        let holds = |name: &str, ada: u32| {
            let balance_lovelace = Some(Lovelace::from_ada(ada));
            let wallet = WalletBalance { name: name.into(), address, balance_lovelace };
            messages(&at(Some((NOW, TickOutcome::default())), None).alarms(&[wallet], ClockLead::Bounded, NOW))
        };
        assert_eq!(holds("platform", 9), [format!("the platform's wallet holds 9 tADA: {address}")]);
        assert_eq!(holds("arbiter", 4).len(), 1);
        assert_eq!(holds("platform", 10).len() + holds("arbiter", 5).len(), 0);
    }
}
