//! Webhooks: addresses to which the watcher sends an owner's events as signed messages, by the Standard Webhooks
//! specification 1.0.0 (standard-webhooks/standard-webhooks, `spec/standard-webhooks.md`).
//!
//! ```text
//! event ──trigger──> due ──claim (a lease)──> sent ──record──> idle, or due again, or off
//! ```
//!
//! A webhook remembers the position of the last event that was delivered. So events are sent in order, and each at
//! least once: the lease of a run of the watcher that dies expires, and two concurrent runs never claim the same
//! webhook.

mod address;
mod delivery;
mod signature;

pub use address::WebhookUrl;
pub use delivery::{Failure, Next, Outcome, Progress, outcome};
pub use signature::{Salt, Secret};

use api_types::{Event, Webhook};
use cardano::slots::Millis;
use serde::Deserialize;
use serde_json::json;
use sql::{Both, One, Read, Write};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// SQL list of the columns of a [`Webhook`], without its secret.
const WEBHOOK: &str = "url, CASE WHEN off_at_ms IS NOT NULL THEN 'off' WHEN failing_since_ms IS NOT NULL THEN 'failing' \
    ELSE 'active' END AS status, CAST(created_at_ms AS TEXT) AS createdAt, CAST(delivered_at_ms AS TEXT) AS deliveredAt, \
    CAST(failing_since_ms AS TEXT) AS failingSince, CAST(off_at_ms AS TEXT) AS offSince, failure, NULL AS secret";

/// SQL condition that holds if there are events that were not sent to a webhook yet.
const WAITING: &str = "EXISTS (SELECT 1 FROM events e WHERE e.owner = webhooks.owner AND e.seq > webhooks.sent_seq)";

/// Time in ms for which a run of the watcher has a claimed webhook to itself. If that run dies, another run can claim
/// the webhook afterwards.
pub const LEASE_MS: Millis = 3 * 60_000;
/// Minimum time in ms between two test messages to a webhook.
const TEST_PAUSE_MS: Millis = 60_000;

/// Builds the query that reads an owner's webhook.
pub fn read(owner: &str) -> Read<Option<Webhook>> {
    sql::read!("SELECT {WEBHOOK} FROM webhooks WHERE owner = ?1", owner)
}

/// Builds the statement that sets the address of an owner's webhook, and creates the webhook with this salt and key
/// version if there is none. A new webhook gets only events from now on. An existing webhook keeps its secret, is
/// switched on again, and continues with the first undelivered event. Returns the webhook's salt.
pub fn set(owner: &str, url: &WebhookUrl, salt: &Salt, key_version: u32, now: Millis) -> Write<One<String>> {
    sql::write!(
        "INSERT INTO webhooks (owner, url, salt, key_version, created_at_ms, sent_seq) \
         VALUES (?1, ?2, ?3, ?4, ?5, coalesce((SELECT max(seq) FROM events), 0)) \
         ON CONFLICT (owner) DO UPDATE SET url = excluded.url, off_at_ms = NULL, attempts = 0, failing_since_ms = NULL, \
           failure = NULL, leased = 0, next_at_ms = iif({WAITING}, ?5, NULL) \
         RETURNING salt",
        owner,
        url.as_str(),
        salt.as_str(),
        key_version,
        now,
    )
}

/// Builds the statement that removes an owner's webhook, and returns its owner if there was one.
pub fn remove(owner: &str) -> Write<Option<String>> {
    sql::write!("DELETE FROM webhooks WHERE owner = ?1 RETURNING owner", owner)
}

/// Builds the batch that requests a test message: an event that the watcher's next run sends to the owner's webhook,
/// after the events that are still undelivered. No message is added if one is still waiting or was requested within the
/// last minute. Earlier test messages are deleted.
pub fn test(owner: &str, now: Millis) -> (Write, Write, Write) {
    let earlier = sql::write!(
        "DELETE FROM events WHERE owner = ?1 AND kind = 'test' AND at_ms <= ?2 \
           AND seq <= (SELECT sent_seq FROM webhooks WHERE owner = ?1) AND seq < (SELECT max(seq) FROM events)",
        owner,
        now.saturating_sub(TEST_PAUSE_MS),
    );
    let ask = sql::write!(
        "INSERT INTO events (owner, kind, at_ms) SELECT owner, 'test', ?2 FROM webhooks WHERE owner = ?1 \
           AND off_at_ms IS NULL AND NOT EXISTS (SELECT 1 FROM events e WHERE e.owner = ?1 AND e.kind = 'test' \
             AND (e.seq > webhooks.sent_seq OR e.at_ms > ?3))",
        owner,
        now,
        now.saturating_sub(TEST_PAUSE_MS),
    );
    // The watcher's next run tries at once, however long the pause after a failure. A lease that has not ended is not
    // changed.
    let at_once = sql::write!(
        "UPDATE webhooks SET next_at_ms = ?2 WHERE owner = ?1 AND next_at_ms > ?2 AND attempts > 0 AND leased = 0",
        owner,
        now,
    );
    (earlier, ask, at_once)
}

/// A webhook that a run of the watcher has claimed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Claimed {
    pub owner: String,
    pub url: String,
    pub salt: String,
    pub key_version: u32,
    pub sent_seq: u64,
    pub attempts: u32,
    pub failing_since_ms: Option<Millis>,
    /// End of the lease, which identifies the claim.
    pub next_at_ms: Millis,
}

impl Claimed {
    fn progress(&self) -> Progress {
        Progress { sent_seq: self.sent_seq, attempts: self.attempts, failing_since: self.failing_since_ms }
    }

    /// Builds the query that reads the next events to send, oldest first, at most `most`.
    pub fn waiting(&self, most: u32) -> Read<Vec<Both<crate::event::Position, Event>>> {
        crate::event::after(&self.owner, self.sent_seq, most)
    }

    /// Decides the webhook's progress and next attempt after a run's attempts. See [`outcome`].
    #[must_use]
    pub fn outcome(&self, delivered: Option<u64>, failed: Option<(u64, Failure)>, now: Millis) -> Outcome {
        outcome(&self.progress(), delivered, failed, now)
    }

    /// Builds the statement that records an outcome. It writes nothing if another run of the watcher has claimed the
    /// webhook meanwhile, or if the owner has changed or removed it. In these cases events may be sent again.
    pub fn record(&self, outcome: &Outcome, now: Millis) -> Write {
        let (next, is_off) = match outcome.next {
            Next::WhenDue => (now, false),
            Next::At(at) => (at, false),
            Next::Off => (now, true),
        };
        sql::write!(
            "UPDATE webhooks SET sent_seq = ?4, attempts = ?5, failing_since_ms = ?6, failure = ?7, leased = 0, \
               delivered_at_ms = iif(?8, ?9, delivered_at_ms), off_at_ms = iif(?10, ?9, NULL), \
               next_at_ms = iif(NOT ?10 AND EXISTS (SELECT 1 FROM events e WHERE e.owner = ?1 AND e.seq > ?4), ?11, NULL) \
             WHERE owner = ?1 AND salt = ?2 AND next_at_ms = ?3 AND leased = 1",
            self.owner.as_str(),
            self.salt.as_str(),
            self.next_at_ms,
            outcome.progress.sent_seq,
            outcome.progress.attempts,
            outcome.progress.failing_since,
            outcome.failure.map(|failure| failure.to_string()),
            outcome.delivered,
            now,
            is_off,
            next,
        )
    }
}

/// Builds the statement that claims at most `most` due webhooks, those that have waited longest first, so that an owner
/// with many events does not delay the others.
pub fn claim(now: Millis, most: u32) -> Write<Vec<Claimed>> {
    sql::write!(
        "UPDATE webhooks SET next_at_ms = ?2, leased = 1 WHERE owner IN (SELECT owner FROM webhooks \
           WHERE next_at_ms <= max(?1, coalesce((SELECT tip_time_ms FROM chain_state), 0)) ORDER BY next_at_ms LIMIT ?3) \
         RETURNING owner, url, salt, key_version, sent_seq, attempts, failing_since_ms, next_at_ms",
        now,
        now.saturating_add(LEASE_MS),
        most,
    )
}

/// A message about an event, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// JSON with `type`, `timestamp` and `data`.
    pub body: String,
    /// Names and values of the headers.
    pub headers: [(&'static str, String); 4],
}

impl Message {
    /// Creates the signed message about an event. `now` is the time of this attempt, POSIX ms.
    #[must_use]
    pub fn new(event: &Event, secret: &Secret, now: Millis) -> Option<Self> {
        let at = i64::try_from(event.at / 1_000).ok().and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
        let at = at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default();
        let body = json!({ "type": event.kind, "timestamp": at, "data": event }).to_string();
        let timestamp = now / 1_000;
        let signature = secret.sign(&event.id, timestamp, &body)?;
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("webhook-id", event.id.clone()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signature),
        ];
        Some(Self { body, headers })
    }
}
