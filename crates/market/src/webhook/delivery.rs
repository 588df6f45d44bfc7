//! Decides what follows from attempts to deliver events to a webhook: a pure function.
//!
//! Events are sent in order. A failed one is retried with growing pauses for about a day and then given up, so that an
//! event which a receiver always rejects does not hold up the others. A webhook to which nothing could be delivered for
//! three days is switched off, and so is one that answers 410 Gone.

use cardano::slots::Millis;

use crate::limits::DAY_MS;

/// Pause in ms after the first failed attempt. Each further failure doubles it.
const FIRST_PAUSE_MS: Millis = 60_000;
/// Maximum pause in ms between two attempts.
const MAX_PAUSE_MS: Millis = 60 * 60_000;
/// Maximum number of attempts to send one event. With the pauses between them, they take about a day.
pub const MAX_ATTEMPTS: u32 = 29;
/// Time in ms of uninterrupted failures after which a webhook is switched off.
pub const OFF_AFTER_MS: Millis = 3 * DAY_MS;

/// Reason why an event could not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There was no answer in time, or no connection. The two cases are not distinguished, so that an owner cannot use
    /// a webhook to find out which hosts and ports exist.
    #[error("the address did not answer")]
    NoAnswer,
    /// The answer's status is not 2xx.
    #[error("the address answered with status {status}")]
    Status {
        status: u16,
        /// The header `Retry-After` in ms, if there is one.
        retry_after_ms: Option<Millis>,
    },
    /// The address is no longer allowed.
    #[error("the address is not allowed: it must be public and https")]
    NotAllowed,
}

/// Delivery state of a webhook, before or after a run's attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Position of the last event that was delivered or given up.
    pub sent_seq: u64,
    /// Number of failed attempts to send the next event.
    pub attempts: u32,
    /// Time of the first failure since the last delivery, POSIX ms; `None` if the last attempt succeeded.
    pub failing_since: Option<Millis>,
}

/// Time of the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As soon as there is an event to send.
    WhenDue,
    /// At this time, POSIX ms.
    At(Millis),
    /// Never, until the owner switches the webhook on again.
    Off,
}

/// Result of one run's attempts to deliver events to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub progress: Progress,
    pub next: Next,
    /// Failure that ended the attempts; `None` if no attempt failed.
    pub failure: Option<Failure>,
    /// Whether an event was delivered.
    pub delivered: bool,
}

/// Decides what follows from one run's attempts to deliver events. `delivered` is the position of the last delivered
/// event. `failed` is the event that ended the attempts, by its position, with the reason; `None` if no attempt failed.
#[must_use]
pub fn outcome(before: &Progress, delivered: Option<u64>, failed: Option<(u64, Failure)>, now: Millis) -> Outcome {
    let progress = match delivered {
        Some(sent_seq) => Progress { sent_seq, attempts: 0, failing_since: None },
        None => before.clone(),
    };
    let delivered = delivered.is_some();
    let Some((seq, failure)) = failed else {
        return Outcome { progress, next: Next::WhenDue, failure: None, delivered };
    };
    let since = progress.failing_since.unwrap_or(now);
    let attempts = progress.attempts.saturating_add(1);
    let is_gone = matches!(failure, Failure::Status { status: 410, .. });
    let failed = |sent_seq, attempts, next| Outcome {
        progress: Progress { sent_seq, attempts, failing_since: Some(since) },
        next,
        failure: Some(failure),
        delivered,
    };
    if is_gone || now.saturating_sub(since) >= OFF_AFTER_MS {
        return failed(progress.sent_seq, attempts, Next::Off);
    }
    if attempts >= MAX_ATTEMPTS {
        return failed(seq, 0, Next::At(now.saturating_add(MAX_PAUSE_MS)));
    }
    let doubled = FIRST_PAUSE_MS.saturating_mul(1_u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX));
    let asked = match failure {
        Failure::Status { retry_after_ms, .. } => retry_after_ms.unwrap_or_default(),
        _ => 0,
    };
    failed(progress.sent_seq, attempts, Next::At(now.saturating_add(doubled.max(asked).min(MAX_PAUSE_MS))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_750_000_000_000;
    const MINUTE: Millis = 60_000;
    const DOWN: Failure = Failure::NoAnswer;

    fn fresh() -> Progress {
        Progress { sent_seq: 7, attempts: 0, failing_since: None }
    }

    fn status(status: u16, retry_after_ms: Option<Millis>) -> Failure {
        Failure::Status { status, retry_after_ms }
    }

    #[test]
    fn what_was_delivered_is_not_sent_again_and_a_failure_after_it_is_retried() {
        let done = outcome(&fresh(), Some(9), None, NOW);
        assert_eq!((done.progress.sent_seq, done.next, done.delivered), (9, Next::WhenDue, true));
        let half = outcome(&fresh(), Some(8), Some((9, DOWN)), NOW);
        assert_eq!(half.progress, Progress { sent_seq: 8, attempts: 1, failing_since: Some(NOW) });
        assert_eq!(half.next, Next::At(NOW + MINUTE));
        let again = Progress { attempts: 5, failing_since: Some(1), ..fresh() };
        assert_eq!(outcome(&again, Some(8), None, NOW).progress, Progress { sent_seq: 8, ..fresh() }, "it works again");
        assert_eq!(outcome(&again, None, None, NOW).progress, again, "nothing was tried");
    }

    #[test]
    fn pauses_grow_to_an_hour_or_as_the_receiver_asks_within_it() {
        for (attempts, pause) in [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (20, 60), (27, 60)] {
            let before = Progress { attempts, failing_since: Some(NOW), ..fresh() };
            assert_eq!(outcome(&before, None, Some((8, DOWN)), NOW).next, Next::At(NOW + pause * MINUTE), "{attempts}");
        }
        for (asked, pause) in [(30_000, 1), (10 * MINUTE, 10), (u64::MAX, 60)] {
            let told = outcome(&fresh(), None, Some((8, status(429, Some(asked)))), NOW);
            assert_eq!(told.next, Next::At(NOW + pause * MINUTE), "{asked}");
        }
    }

    #[test]
    fn one_event_is_tried_for_about_a_day_and_then_given_up_and_a_dead_receiver_is_left_after_three() {
        let (mut progress, mut now, mut given_up, mut tries) = (fresh(), NOW, vec![], 0);
        loop {
            tries += 1;
            let seq = progress.sent_seq + 1;
            let after = outcome(&progress, None, Some((seq, status(500, None))), now);
            if after.progress.sent_seq == seq {
                given_up.push(now - NOW);
            }
            progress = after.progress;
            match after.next {
                Next::At(at) => now = at,
                Next::Off => break,
                Next::WhenDue => panic!("a failure"),
            }
        }
        assert!((OFF_AFTER_MS..OFF_AFTER_MS + 2 * MAX_PAUSE_MS).contains(&(now - NOW)), "{}", (now - NOW) / MINUTE);
        assert!(given_up.iter().all(|after| *after > 20 * MAX_PAUSE_MS) && given_up.len() <= 3, "{given_up:?}");
        assert!(tries < 100, "{tries}");
        assert_eq!(progress.failing_since, Some(NOW));
    }

    #[test]
    fn a_receiver_that_is_gone_is_left_at_once_and_a_redirect_is_a_failure() {
        assert_eq!(outcome(&fresh(), None, Some((8, status(410, None))), NOW).next, Next::Off);
        for code in [301, 302, 307, 308, 400, 404, 500, 503] {
            assert_eq!(outcome(&fresh(), None, Some((8, status(code, None))), NOW).next, Next::At(NOW + MINUTE));
        }
    }
}
