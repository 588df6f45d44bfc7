//! A fair queue for the calls to the chain provider that are made before a payment is submitted.
//!
//! An isolate makes a limited number of such calls in ten seconds, fewer once half of the provider's daily quota is
//! used up. A single client may use all of them. If several clients wait, the one with the fewest recent calls goes
//! first, and among equals the one whose last call is the longest ago. Calls after the submission do not queue.

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    mem,
    time::Duration,
};

use cardano::slots::Millis;
use market::{
    network::{UNKNOWN, quota_prefix},
    provider_calls,
};
use sql::{Database, One};

/// Maximum number of calls in [`WINDOW_MS`], slightly below the provider's limit of ten a second
/// (<https://docs.blockfrost.io>).
const CALLS: u64 = 90;
/// Time in ms during which a past call counts against the limit.
const WINDOW_MS: Millis = 10_000;
/// Time in ms for which the time of a client's last call is remembered.
const KEPT_MS: Millis = 10 * 60_000;
/// Interval at which a waiting call checks for its turn. A call waits for at most thirty seconds.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSES: usize = 600;

thread_local! {
    static QUEUE: RefCell<Queue> = const { RefCell::new(Queue::new()) };
}

/// Recent provider calls, and the clients that wait to make one.
#[derive(Debug)]
struct Queue {
    made: VecDeque<(Millis, String)>,
    waiting: Vec<String>,
    /// Time of each client's last call in POSIX ms, remembered for [`KEPT_MS`].
    last_calls: BTreeMap<String, Millis>,
    /// Number of calls allowed in [`WINDOW_MS`], computed from the number of calls that the database has counted today;
    /// 0 until the database has answered once.
    allowed: u64,
    /// Number of calls that are not yet added to the database's count.
    unsaved: u64,
    saved_ms: Millis,
}

impl Queue {
    const fn new() -> Self {
        Self {
            made: VecDeque::new(),
            waiting: Vec::new(),
            last_calls: BTreeMap::new(),
            allowed: 0,
            unsaved: 0,
            saved_ms: 0,
        }
    }

    /// Returns the number of calls that are not yet added to the database's count, and resets it to 0. Returns `None`
    /// unless [`WINDOW_MS`] have passed since the last reset.
    fn take_unsaved(&mut self, now_ms: Millis) -> Option<u64> {
        let is_due = now_ms.saturating_sub(self.saved_ms) >= WINDOW_MS;
        is_due.then(|| {
            self.saved_ms = now_ms;
            self.last_calls.retain(|_, at| now_ms.saturating_sub(*at) < KEPT_MS);
            mem::take(&mut self.unsaved)
        })
    }

    /// Returns a waiting client's rank: its number of calls in [`WINDOW_MS`], then the time of its last call. The
    /// client with the lowest rank goes first.
    fn rank(&self, client: &str) -> (usize, Millis) {
        let recent = self.made.iter().filter(|(_, by)| by == client).count();
        (recent, self.last_calls.get(client).copied().unwrap_or_default())
    }

    /// Returns whether it is this client's turn. If so, records a call by the client.
    fn take(&mut self, client: &str, now_ms: Millis) -> bool {
        while self.made.front().is_some_and(|(at, _)| now_ms.saturating_sub(*at) >= WINDOW_MS) {
            self.made.pop_front();
        }
        let own = self.rank(client);
        let recent = u64::try_from(self.made.len()).unwrap_or(u64::MAX);
        let turn = recent < self.allowed && self.waiting.iter().all(|other| other == client || self.rank(other) >= own);
        if turn {
            self.made.push_back((now_ms, client.to_owned()));
            self.last_calls.insert(client.to_owned(), now_ms);
            self.unsaved = self.unsaved.saturating_add(1);
        }
        turn
    }
}

/// A guard that keeps a client in the list of waiting clients until it is dropped.
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

/// Adds this isolate's unsaved calls to the day's count in the database, and computes the limit for the next seconds
/// from the total. If the database is unavailable, the limit stays unchanged.
async fn save(database: &impl Database, plan: u64, now_ms: Millis) {
    let Some(calls) = QUEUE.with_borrow_mut(|queue| queue.take_unsaved(now_ms)) else { return };
    let today = database.execute(provider_calls::add(calls, now_ms)).await.ok();
    QUEUE.with_borrow_mut(|queue| match today {
        Some(One(today)) => queue.allowed = provider_calls::allowed(today, plan, now_ms, WINDOW_MS, CALLS),
        None => queue.unsaved = queue.unsaved.saturating_add(calls),
    });
}

/// Waits for this client's turn to call the chain provider. Returns `false` if the turn did not come within thirty
/// seconds. `plan` is the provider's daily quota. On a local stack, where all requests have the same client, there is
/// no queue.
pub async fn wait_turn(client: &str, database: &impl Database, plan: u64) -> bool {
    if client == UNKNOWN {
        return true;
    }
    let client = quota_prefix(client);
    let _waiting = Waiting::begin(&client);
    for _ in 0..PAUSES {
        save(database, plan, crate::now_ms()).await;
        if QUEUE.with_borrow_mut(|queue| queue.take(&client, crate::now_ms())) {
            return true;
        }
        crate::sleep(PAUSE).await;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;
    use market::limits::DAY_MS;
    use sql::{DatabaseError, Param, Statement};

    use super::*;

    /// A database that returns this count of the day's calls, or is unavailable if it is `None`.
    struct Day(Cell<Option<u64>>);

    impl Database for Day {
        async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
            let before = self.0.get().ok_or_else(|| DatabaseError("away".into()))?;
            let Some(Param::Integer(calls)) = statements[0].params.last().cloned() else {
                panic!("no number of calls")
            };
            let calls = before.saturating_add(u64::try_from(calls).unwrap());
            self.0.set(Some(calls));
            Ok(vec![format!("[{{\"calls\":{calls}}}]")])
        }
    }

    fn allow(calls: u64) {
        QUEUE.with_borrow_mut(|queue| queue.allowed = calls);
    }

    fn take(client: &str, now_ms: Millis) -> bool {
        QUEUE.with_borrow_mut(|queue| queue.take(client, now_ms))
    }

    #[test]
    fn a_single_client_may_use_all_calls_and_again_after_ten_seconds() {
        assert!(!take("a", 0), "the database was not asked yet");
        allow(CALLS);
        assert_eq!((0..200).filter(|_| take("a", 1)).count(), 90);
        assert!(!take("a", WINDOW_MS));
        assert_eq!((0..200).filter(|_| take("a", WINDOW_MS + 1)).count(), 90);
    }

    #[test]
    fn calls_are_saved_once_in_ten_seconds_and_again_where_that_failed() {
        let (database, plan) = (Day(Cell::new(None)), 1_000);
        let now = 20_000 * DAY_MS;
        let save = |now_ms| save(&database, plan, now_ms).now_or_never().expect("the database answers at once");
        allow(CALLS);
        assert!((0..3).all(|_| take("a", now)));
        save(now);
        assert_eq!(QUEUE.with_borrow(|queue| (queue.unsaved, queue.allowed)), (3, CALLS), "the database was away");
        database.0.set(Some(496));
        save(now + WINDOW_MS - 1);
        assert_eq!(database.0.get(), Some(496), "within ten seconds");
        save(now + WINDOW_MS);
        assert_eq!(
            (database.0.get(), QUEUE.with_borrow(|queue| (queue.unsaved, queue.allowed))),
            (Some(499), (0, CALLS))
        );
        assert!(take("a", now + WINDOW_MS));
        save(now + 2 * WINDOW_MS);
        assert_eq!(QUEUE.with_borrow(|queue| queue.allowed), 1, "the second half is spread over the day");
    }

    #[test]
    fn a_client_with_few_calls_never_waits_behind_a_client_with_many() {
        allow(CALLS);
        let _attackers = ["a", "b", "c"].map(Waiting::begin);
        // These clients use up the limit, with a call whenever one is free.
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

    #[test]
    fn where_ten_seconds_have_one_call_clients_take_turns() {
        allow(1);
        let _waiting = ["a", "a", "b"].map(Waiting::begin);
        let calls = (1..7).map(|window| ["a", "b"].map(|client| take(client, window * WINDOW_MS)));
        assert!(calls.enumerate().all(|(at, [a, b])| a != b && b == (at % 2 == 1)));
    }
}
