//! A semaphore for an isolate's memory, which counts the bytes that each client's requests hold.
//!
//! A client may hold half of the memory that the other clients leave free: the first client may hold a half of all,
//! the second then a quarter, and so on. Small requests do not wait and have a separate limit per client. On a local
//! stack, where all requests have the same client, one client may hold everything.

use std::{cell::RefCell, time::Duration};

use cardano::slots::Millis;
use market::network::{UNKNOWN, quota_prefix};

/// Maximum number of bytes held at once by all clients. The rest of an isolate's 128 MB is for the program and its
/// caches.
pub const CAPACITY: usize = 48 << 20;
/// Maximum size in bytes of a small request, which does not wait for memory that other clients hold.
pub const SMALL: usize = 32 << 10;
/// Maximum number of bytes held by one client's small requests, enough for more than a hundred requests at once.
const SMALL_SHARE: usize = 8 << 20;
/// Time in ms after which a permit expires. It is longer than any request runs. Permits expire because the runtime does
/// not report that it has cancelled a request.
const PERMIT_MS: Millis = 150_000;
/// Time in ms after which a permit of [`Permit::hold`] expires. It is longer than a database query or an evaluation of
/// a script may take.
const SHORT_PERMIT_MS: Millis = 35_000;
/// Interval at which a waiting request checks for free memory. A request waits for at most ten seconds.
const PAUSE: Duration = Duration::from_millis(25);
const PAUSES: usize = 400;

thread_local! {
    static SEMAPHORE: RefCell<Semaphore> = const { RefCell::new(Semaphore { held: Vec::new(), begun: 0 }) };
}

#[derive(Debug)]
struct Semaphore {
    held: Vec<MemoryReservation>,
    begun: u64,
}

#[derive(Debug)]
struct MemoryReservation {
    number: u64,
    client: String,
    bytes: usize,
    until_ms: Millis,
}

impl Semaphore {
    /// Returns whether this client may hold `more` bytes in addition to those it holds.
    fn has_room(&self, client: &str, more: usize) -> bool {
        let sum = |own: bool| {
            let of = self.held.iter().filter(|held| (held.client == client) == own);
            of.fold(0_usize, |sum, held| sum.saturating_add(held.bytes))
        };
        let (own, left) = (sum(true).saturating_add(more), CAPACITY.saturating_sub(sum(false)));
        let share = if client == UNKNOWN { left } else { left / 2 };
        own <= share || (more <= SMALL && own <= SMALL_SHARE)
    }
}

/// A reservation of memory, which ends when the permit is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped holds nothing"]
pub struct Permit {
    number: u64,
}

impl Permit {
    /// Reserves memory for this client, or returns `None` if that would exceed the client's share of the free memory.
    pub fn try_hold(client: &str, bytes: usize) -> Option<Self> {
        Self::at(client, bytes, crate::now_ms(), PERMIT_MS)
    }

    /// Reserves memory for this client as soon as enough is free. Returns `None` after ten seconds.
    pub async fn hold(client: &str, bytes: usize) -> Option<Self> {
        for _ in 0..PAUSES {
            if let Some(permit) = Self::at(client, bytes, crate::now_ms(), SHORT_PERMIT_MS) {
                return Some(permit);
            }
            crate::sleep(PAUSE).await;
        }
        None
    }

    fn at(client: &str, bytes: usize, now_ms: Millis, counts_ms: Millis) -> Option<Self> {
        let client = quota_prefix(client);
        SEMAPHORE.with_borrow_mut(|semaphore| {
            semaphore.held.retain(|held| now_ms < held.until_ms);
            semaphore.has_room(&client, bytes).then(|| {
                let number = semaphore.begun;
                semaphore.begun = number.wrapping_add(1);
                let until_ms = now_ms.saturating_add(counts_ms);
                semaphore.held.push(MemoryReservation { number, client: client.into_owned(), bytes, until_ms });
                Self { number }
            })
        })
    }

    /// Enlarges the reservation by `bytes`. Returns `false` and changes nothing if that would exceed the client's share
    /// of the free memory.
    pub fn grow(&self, bytes: usize) -> bool {
        SEMAPHORE.with_borrow_mut(|semaphore| {
            let client = semaphore.held.iter().find(|held| held.number == self.number).map(|held| held.client.clone());
            let room = client.is_some_and(|client| semaphore.has_room(&client, bytes));
            if room && let Some(held) = semaphore.held.iter_mut().find(|held| held.number == self.number) {
                held.bytes = held.bytes.saturating_add(bytes);
            }
            room
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        SEMAPHORE.with_borrow_mut(|semaphore| semaphore.held.retain(|held| held.number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = 3 << 20;

    fn all(client: &str, bytes: usize) -> Vec<Permit> {
        std::iter::from_fn(|| Permit::at(client, bytes, 1, PERMIT_MS)).collect()
    }

    #[test]
    fn a_client_may_hold_half_of_the_permits_and_a_local_stack_all() {
        let held: Vec<_> = ["a", "b", "c"].map(|client| all(client, LONG)).into();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [8, 4, 2]);
        drop(held);
        assert_eq!(all(UNKNOWN, LONG).len(), CAPACITY / LONG);
    }

    #[test]
    fn small_permits_do_not_wait_and_are_bounded_for_each_client() {
        let _full: Vec<_> = (0..9).map(|client| all(&client.to_string(), 1 << 20)).collect();
        assert!(Permit::at("new", LONG, 1, PERMIT_MS).is_none());
        assert_eq!(all("new", SMALL).len(), SMALL_SHARE / SMALL);
        assert!(Permit::at("other", SMALL, 1, PERMIT_MS).is_some());
    }

    #[test]
    fn a_permit_grows_within_its_clients_share_and_gives_all_back() {
        let permit = Permit::at("a", 0, 1, PERMIT_MS).unwrap();
        assert!(permit.grow(CAPACITY / 2));
        assert!(!permit.grow(1 + SMALL));
        drop(permit);
        assert!(Permit::at("a", CAPACITY / 2, 1, PERMIT_MS).is_some());
    }

    #[test]
    fn networks_of_one_site_share_one_clients_bound() {
        let _held = all("2001:db8:1:1::/64", LONG);
        assert!(Permit::at("2001:db8:1:2::/64", LONG, 1, PERMIT_MS).is_none());
        assert!(Permit::at("2001:db8:2:1::/64", LONG, 1, PERMIT_MS).is_some());
    }

    #[test]
    fn a_permit_of_a_request_that_the_runtime_ended_expires() {
        all("a", LONG).into_iter().for_each(std::mem::forget);
        assert!(Permit::at("a", LONG, PERMIT_MS, PERMIT_MS).is_none());
        assert!(Permit::at("a", LONG, PERMIT_MS + 1, PERMIT_MS).is_some());
    }
}
