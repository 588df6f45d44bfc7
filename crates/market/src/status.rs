//! Operator's status: the watcher's last tick, the chain, open escrows, and alarms.

use api_types::{KnownBlock, LastTick, OpenDeadline, Restoring, WalletBalance};
use cardano::{Lovelace, slots::Millis};
use serde::{Deserialize, Serialize};
use sql::{DatabaseError, Rows, Statement, statement};

use crate::{chain_state::Lead, limits::day};

/// Maximum number of stored notes, and of stored alarms, per tick.
const MOST_KEPT: usize = 10;
/// Time in ms without a tick after which the watcher counts as stopped. Five ticks were due.
const SILENT_MS: Millis = 5 * 60_000;
/// Minimum balance of the platform's wallet for its fees and collateral.
const PLATFORM: Lovelace = Lovelace::from_ada(10);
const ARBITER: Lovelace = Lovelace::from_ada(5);
const MINUTE_MS: Millis = 60_000;

/// Result of a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickOutcome {
    /// Error that ended the tick early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    pub alarms: Vec<String>,
    pub notes: Vec<String>,
}

/// Statement that stores the result of a tick, its start (POSIX ms), and its number of provider calls.
pub fn note_tick(mut outcome: TickOutcome, calls: u32, at: Millis) -> Statement {
    outcome.alarms.truncate(MOST_KEPT);
    outcome.notes.truncate(MOST_KEPT);
    statement!(
        "INSERT INTO last_tick (id, at_ms, day, calls, outcome) VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET \
           calls = iif(day = excluded.day, calls, 0) + excluded.calls, at_ms = excluded.at_ms, day = excluded.day, \
           outcome = excluded.outcome",
        at,
        day(at),
        calls,
        serde_json::json!(outcome).to_string()
    )
}

/// Status that is stored in the database.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredStatus {
    tick: Option<Tick>,
    pub newest_block: Option<KnownBlock>,
    pub open_escrows: u64,
    /// The earliest deadline of an open escrow.
    pub oldest_deadline: Option<OpenDeadline>,
    /// Progress of reading the chain after a restore.
    pub restore: Option<Restoring>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Tick {
    at: Millis,
    calls: u64,
    outcome: TickOutcome,
}

/// Statement that reads the [`StoredStatus`].
pub fn read(now: Millis) -> Statement {
    statement!(include_str!("status.sql"), day(now))
}

impl StoredStatus {
    /// Parses the row of [`read`].
    ///
    /// # Errors
    /// The row is malformed.
    pub fn of(rows: &Rows) -> Result<Self, DatabaseError> {
        rows.first_json()?.ok_or_else(|| DatabaseError("no status".into()))
    }

    /// Returns the watcher's last tick.
    #[must_use]
    pub fn last_tick(&self) -> Option<LastTick> {
        self.tick.as_ref().map(|tick| LastTick { at: tick.at, notes: tick.outcome.notes.clone() })
    }

    /// Returns the number of provider calls of today's ticks.
    #[must_use]
    pub fn watcher_calls(&self) -> u64 {
        self.tick.as_ref().map_or(0, |tick| tick.calls)
    }

    /// Returns the alarms of the last tick, and those that a tick cannot raise.
    #[must_use]
    pub fn alarms(&self, wallets: &[WalletBalance], lead: Lead, now: Millis) -> Vec<String> {
        let minutes = |since: Millis| now.saturating_sub(since).div_euclid(MINUTE_MS);
        let mut alarms = vec![];
        match &self.tick {
            None => alarms.push("no tick of the watcher yet".to_owned()),
            Some(tick) if tick.at.saturating_add(SILENT_MS) < now => {
                alarms.push(format!("no tick of the watcher for {} minutes", minutes(tick.at)));
            }
            Some(Tick { outcome: TickOutcome { failed: Some(why), .. }, .. }) => {
                alarms.push(format!("the last tick failed: {why}"));
            }
            Some(_) => {}
        }
        if let Some(block) = self.newest_block.filter(|block| lead.is_behind(block.at, now)) {
            alarms.push(format!("the newest known block is {} minutes old", minutes(block.at)));
        }
        for WalletBalance { name, address, balance_lovelace } in wallets {
            let least = if name == "arbiter" { ARBITER } else { PLATFORM };
            if let Some(balance) = balance_lovelace.filter(|balance| *balance < least) {
                alarms.push(format!("the {name}'s wallet holds {}: {address}", balance.display_tada()));
            }
        }
        alarms.extend(self.tick.iter().flat_map(|tick| tick.outcome.alarms.clone()));
        alarms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_750_000_000_000;

    fn at(tick: Option<(Millis, TickOutcome)>, block: Option<Millis>) -> StoredStatus {
        StoredStatus {
            tick: tick.map(|(at, outcome)| Tick { at, calls: 7, outcome }),
            newest_block: block.map(|at| KnownBlock { height: 5, at }),
            open_escrows: 0,
            oldest_deadline: None,
            restore: None,
        }
    }

    #[test]
    fn a_watcher_that_ticks_without_alarms_raises_none() {
        let well = at(Some((NOW - MINUTE_MS, TickOutcome::default())), Some(NOW - MINUTE_MS));
        assert_eq!(well.alarms(&[], Lead::Bounded, NOW), Vec::<String>::new());
        assert_eq!(well.watcher_calls(), 7);
    }

    #[test]
    fn a_watcher_that_stopped_ticking_raises_an_alarm() {
        let of = |status: StoredStatus| status.alarms(&[], Lead::Bounded, NOW);
        assert_eq!(of(at(None, None)), ["no tick of the watcher yet"]);
        let silent = at(Some((NOW - 7 * MINUTE_MS, TickOutcome::default())), Some(NOW - 7 * MINUTE_MS));
        let expected = ["no tick of the watcher for 7 minutes", "the newest known block is 7 minutes old"];
        assert_eq!(of(silent), expected);
        let failed =
            TickOutcome { failed: Some("503".into()), alarms: vec!["an alarm".into()], ..TickOutcome::default() };
        assert_eq!(of(at(Some((NOW, failed)), Some(NOW))), ["the last tick failed: 503", "an alarm"]);
    }

    #[test]
    fn a_wallet_that_cannot_pay_fees_for_long_is_an_alarm() {
        let address = cardano::keys::SigningKey::from_seed(&[1; 32]).unwrap().enterprise_address();
        let holds = |name: &str, ada: u32| {
            let balance_lovelace = Some(Lovelace::from_ada(ada));
            let wallet = WalletBalance { name: name.into(), address, balance_lovelace };
            at(Some((NOW, TickOutcome::default())), None).alarms(&[wallet], Lead::Bounded, NOW)
        };
        assert_eq!(holds("platform", 9), [format!("the platform's wallet holds 9 tADA: {address}")]);
        assert_eq!(holds("arbiter", 4).len(), 1);
        assert_eq!(holds("platform", 10).len() + holds("arbiter", 5).len(), 0);
    }
}
