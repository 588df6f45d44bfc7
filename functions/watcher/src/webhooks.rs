//! Sends events to owners' webhooks at the end of a run of the watcher.
//!
//! A receiver that fails is logged as a number only, because its address may contain a secret. A failure does not stop
//! the run. The number of messages per run is bounded, and divided equally among the webhooks that are due.

use std::{cell::Cell, time::Duration};

use api_types::Event;
use edge::{Usage, d1::D1, http, keys::KeyStore, log};
use futures_util::{StreamExt, stream};
use market::{
    event::Position,
    webhook::{Claimed, Failure, Message, Salt, Secret, WebhookUrl, claim},
};
use sql::{Both, Database, DatabaseError};
use worker::{Headers, Method, Request, RequestInit, RequestRedirect};

/// Timeout of a message. The specification recommends 15 to 30 seconds.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time in ms after which a run of the watcher sends no further messages. The next run sends the remaining ones.
const SENDING_MS: u64 = 20_000;
/// Maximum number of messages that wait for an answer at the same time. Workers allow six connections.
const PARALLEL: usize = 4;
/// Number of messages that every run of the watcher may send, even if it has used up its outgoing calls. By default the
/// sum stays below the 50 subrequests of Workers' free plan.
const MESSAGES: u32 = 8;
/// Maximum number of messages per run of the watcher. Fewer are sent if few outgoing calls are left.
const MAX_MESSAGES: u32 = 100;
/// Maximum number of messages to one webhook per run of the watcher.
const MAX_PER_WEBHOOK: u32 = 10;

/// Numbers of messages that one run of the watcher sent, for the log.
#[derive(Debug, Default)]
pub struct Sent {
    delivered: Cell<u32>,
    failed: Cell<u32>,
}

impl Sent {
    /// Formats the numbers of delivered and failed messages; `None` if both are zero.
    pub fn words(&self) -> Option<String> {
        let (delivered, failed) = (self.delivered.get(), self.failed.get());
        (delivered > 0 || failed > 0).then(|| format!("{delivered} delivered, {failed} failed"))
    }
}

/// Sends events to the webhooks that are due.
pub struct Sender<'a> {
    pub database: &'a D1,
    pub keys: &'a KeyStore,
    /// Whether addresses on loopback are allowed.
    pub on_local_ledger: bool,
    pub usage: &'a Usage,
}

impl Sender<'_> {
    /// Claims the webhooks that are due, sends each an equal number of events, and records the outcomes.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if nothing was claimed, or if the outcomes could not be recorded. In the second case
    /// the messages are sent again.
    pub async fn send(&self) -> Result<Sent, DatabaseError> {
        let (sent, begun) = (Sent::default(), edge::now_ms());
        let most = self.usage.calls_left().saturating_add(MESSAGES).min(MAX_MESSAGES);
        let mut claimed = self.database.execute(claim(begun, most)).await?;
        let Some(each) = u32::try_from(claimed.len()).ok().and_then(|claimed| most.checked_div(claimed)) else {
            return Ok(sent);
        };
        // Receivers that failed may be slow, so the others come first.
        claimed.sort_by_key(|webhook| webhook.attempts);
        let each = each.clamp(1, MAX_PER_WEBHOOK);
        let reads: Vec<_> = claimed.iter().map(|webhook| webhook.waiting(each)).collect();
        let events = self.database.batch(reads).await?;
        let until = begun.saturating_add(SENDING_MS);
        let attempts = claimed.iter().zip(events).map(|(webhook, events)| self.deliver(webhook, events, until, &sent));
        let records: Vec<_> = stream::iter(attempts).buffer_unordered(PARALLEL).collect().await;
        self.database.batch(records).await?;
        Ok(sent)
    }

    /// Sends events in order until one fails or the time is over, and returns the statement that records the outcome.
    async fn deliver(
        &self,
        webhook: &Claimed,
        events: Vec<Both<Position, Event>>,
        until: u64,
        sent: &Sent,
    ) -> sql::Write {
        let (mut delivered, mut failed) = (None, None);
        if let Some(secret) = self.secret(webhook) {
            for Both(Position { seq }, event) in events {
                if edge::now_ms() >= until {
                    break;
                }
                match self.post(webhook, &event, &secret).await {
                    Ok(()) => {
                        delivered = Some(seq);
                        sent.delivered.set(sent.delivered.get().saturating_add(1));
                    }
                    Err(failure) => {
                        failed = Some((seq, failure));
                        sent.failed.set(sent.failed.get().saturating_add(1));
                        break;
                    }
                }
            }
        }
        let now = edge::now_ms();
        webhook.record(&webhook.outcome(delivered, failed, now), now)
    }

    /// Derives the webhook's secret. `None` if the operator's secret is missing, which is logged, and not counted as a
    /// failure of the receiver.
    fn secret(&self, webhook: &Claimed) -> Option<Secret> {
        let master = self.keys.master(webhook.key_version).map_err(|error| log::fault(&error)).ok()?;
        Secret::derive(master, webhook.key_version, &webhook.owner, &Salt::stored(webhook.salt.clone()))
    }

    async fn post(&self, webhook: &Claimed, event: &Event, secret: &Secret) -> Result<(), Failure> {
        // The rules may have changed since the address was stored.
        let url = WebhookUrl::parse(&webhook.url, self.on_local_ledger).map_err(|_| Failure::NotAllowed)?;
        let message = Message::new(event, secret, edge::now_ms()).ok_or(Failure::NoAnswer)?;
        let request = request(&url, &message).map_err(|_| Failure::NoAnswer)?;
        let head = http::head(request, TIMEOUT).await.map_err(|_| Failure::NoAnswer)?;
        match head.status {
            200..300 => Ok(()),
            status => {
                let retry_after_ms = head.retry_after.map(|seconds| seconds.saturating_mul(1_000));
                Err(Failure::Status { status, retry_after_ms })
            }
        }
    }
}

fn request(url: &WebhookUrl, message: &Message) -> worker::Result<Request> {
    let headers = Headers::new();
    headers.set("user-agent", "Surety-Webhooks")?;
    for (name, value) in &message.headers {
        headers.set(name, value)?;
    }
    let mut init = RequestInit::new();
    init.with_method(Method::Post).with_headers(headers).with_redirect(RequestRedirect::Manual);
    init.with_body(Some(message.body.as_str().into()));
    Request::new_with_init(url.as_str(), &init)
}
