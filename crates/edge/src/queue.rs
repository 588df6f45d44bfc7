//! Who may call the chain's provider next, before anything is paid: the client that called it least recently.
//!
//! An isolate makes so many such calls in ten seconds. A client alone has all of them. Where several wait, the one that asks
//! for least goes first. Payments that are claimed do not wait here.

use std::{cell::RefCell, collections::VecDeque, time::Duration};

use cardano::slots::Millis;
use market::network::{UNKNOWN, quota_prefix};

/// Calls in [`WINDOW_MS`]: a little less than the ten a second that the provider allows (<https://docs.blockfrost.io>).
const CALLS: usize = 90;
/// How long a call counts, in ms.
const WINDOW_MS: Millis = 10_000;
/// How long a call waits before it looks again whose turn it is, and how often: thirty seconds in all.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSES: usize = 600;

thread_local! {
    static QUEUE: RefCell<Queue> = const { RefCell::new(Queue { made: VecDeque::new(), waiting: Vec::new() }) };
}

/// The calls that count, with their times, and who waits.
#[derive(Debug)]
struct Queue {
    made: VecDeque<(Millis, String)>,
    waiting: Vec<String>,
}

impl Queue {
    fn recent_calls(&self, client: &str) -> usize {
        self.made.iter().filter(|(_, by)| by == client).count()
    }

    /// Makes a call of this client's, if it is its turn.
    fn take(&mut self, client: &str, now_ms: Millis) -> bool {
        while self.made.front().is_some_and(|(at, _)| now_ms.saturating_sub(*at) >= WINDOW_MS) {
            self.made.pop_front();
        }
        let own = self.recent_calls(client);
        let turn = self.made.len() < CALLS
            && self.waiting.iter().all(|other| other == client || self.recent_calls(other) >= own);
        if turn {
            self.made.push_back((now_ms, client.to_owned()));
        }
        turn
    }
}

/// A waiting client, until this is dropped.
struct Waiting<'a>(&'a str);

impl<'a> Waiting<'a> {
    fn begin(client: &'a str) -> Self {
        QUEUE.with_borrow_mut(|queue| queue.waiting.push(client.to_owned()));
        Self(client)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        QUEUE.with_borrow_mut(|queue| {
            if let Some(at) = queue.waiting.iter().position(|client| client == self.0) {
                queue.waiting.swap_remove(at);
            }
        });
    }
}

/// Waits for this client's turn; whether it came within thirty seconds. On a local stack, where all are one client, there are
/// no turns.
pub async fn wait_turn(client: &str) -> bool {
    if client == UNKNOWN {
        return true;
    }
    let client = quota_prefix(client);
    let _waiting = Waiting::begin(&client);
    for _ in 0..PAUSES {
        if QUEUE.with_borrow_mut(|queue| queue.take(&client, crate::now_ms())) {
            return true;
        }
        crate::sleep(PAUSE).await;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(client: &str, now_ms: Millis) -> bool {
        QUEUE.with_borrow_mut(|queue| queue.take(client, now_ms))
    }

    #[test]
    fn a_single_client_may_use_all_calls_and_again_after_ten_seconds() {
        assert_eq!((0..200).filter(|_| take("a", 1)).count(), CALLS);
        assert!(!take("a", WINDOW_MS));
        assert_eq!((0..200).filter(|_| take("a", WINDOW_MS + 1)).count(), CALLS);
    }

    #[test]
    fn a_client_with_few_calls_never_waits_behind_a_client_with_many() {
        let _attackers = ["a", "b", "c"].map(Waiting::begin);
        // They use up what there is, a call whenever one is free.
        let mut now = 0;
        while ["a", "b", "c"].iter().any(|client| take(client, now)) {
            now += 1;
        }
        let honest = Waiting::begin("d");
        now = WINDOW_MS + 10;
        assert!(!take("a", now), "behind the honest one");
        assert!(take("d", now) && take("d", now));
        drop(honest);
        assert!(take("a", now), "and goes on when no other client waits");
    }
}
