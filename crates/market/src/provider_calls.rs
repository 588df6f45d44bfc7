//! Divides the daily quota of provider calls.
//!
//! ```text
//! half of the quota     at any rate
//! three tenths          spread evenly over the rest of the day
//! a fifth               reserved for claimed and paid work
//! ```
//!
//! A client that sends requests without end slows down others, but cannot use up the day's quota.

use cardano::slots::Millis;
use sql::{One, Write};

use crate::limits::{DAY_MS, day};

/// Builds the statement that adds `calls` to the count of the current UTC day, and returns the new count.
pub fn add(calls: u64, now: Millis) -> Write<One<u64>> {
    sql::write!(
        "INSERT INTO provider_calls (id, day, calls) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET \
           calls = iif(day = excluded.day, calls, 0) + excluded.calls, day = excluded.day \
         RETURNING calls",
        day(now),
        calls
    )
}

/// Returns the number of provider calls, at most `most`, that are allowed in the next `window` ms. `plan` is the daily
/// quota. `calls` is the number of calls already made on this day.
#[must_use]
pub fn allowed(calls: u64, plan: u64, now: Millis, window: Millis, most: u64) -> u64 {
    if calls < plan / 2 {
        return most;
    }
    let rest = (plan / 5).saturating_mul(4).saturating_sub(calls);
    let until_midnight = DAY_MS.saturating_sub(now % DAY_MS).max(1);
    rest.saturating_mul(window).div_ceil(until_midnight).min(most)
}

#[cfg(test)]
mod tests {
    use sql::{Database, sqlite::Sqlite};

    use super::*;

    const PLAN: u64 = 50_000;
    const WINDOW: Millis = 10_000;

    #[test]
    fn calls_of_a_day_add_up_and_begin_anew_at_midnight() {
        let database = Sqlite::of(crate::schema::MIGRATIONS).unwrap();
        let added = |calls, now| {
            let One(sum) = futures_lite::future::block_on(database.execute(add(calls, now))).unwrap();
            sum
        };
        let midnight = 20_000 * DAY_MS;
        assert_eq!(added(7, midnight - 2), 7);
        assert_eq!(added(5, midnight - 1), 12);
        assert_eq!(added(3, midnight), 3);
    }

    fn at(hour: u64, calls: u64) -> u64 {
        allowed(calls, PLAN, 20_000 * DAY_MS + hour * 3_600_000, WINDOW, 90)
    }

    #[test]
    fn half_of_a_plan_is_free_and_the_rest_is_spread_until_midnight() {
        assert_eq!((at(0, 0), at(0, PLAN / 2 - 1)), (90, 90));
        // 15,000 calls in 8,640 windows, and in 360.
        assert_eq!((at(0, PLAN / 2), at(23, PLAN / 2)), (2, 42));
        assert_eq!((at(0, PLAN * 4 / 5 - 1), at(0, PLAN * 4 / 5), at(23, PLAN)), (1, 0, 0));
    }

    #[test]
    fn a_client_that_asks_without_end_leaves_calls_for_every_window_of_the_day() {
        let mut calls = 0;
        for window in 0..DAY_MS / WINDOW {
            let allowed = allowed(calls, PLAN, window * WINDOW, WINDOW, 90);
            assert!(allowed > 0, "{window}: {calls} calls");
            calls += allowed;
        }
        assert!(calls <= PLAN * 4 / 5, "a fifth is left for what is paid: {calls}");
    }
}
