//! Places for so many at once as an isolate has memory for: whoever finds none waits.

use std::{cell::RefCell, thread::LocalKey, time::Duration};

use market::network::{UNKNOWN, site};

/// How long one place counts, in ms: of a request that was cut off nobody says that it ended. Longer than the database, or a
/// provider that runs a contract, lets anybody wait: what a place is for is held as long.
const HELD_MS: u64 = 35_000;
/// How long whoever finds no place waits before it looks again, and how often.
const PAUSE: Duration = Duration::from_millis(25);
const PAUSES: usize = 400;

/// So many places.
#[derive(Debug)]
pub struct Places {
    most: usize,
    taken: Vec<Taken>,
    begun: u64,
}

/// One that is taken: since when, POSIX ms, and from where.
#[derive(Debug)]
struct Taken {
    number: u64,
    began_ms: u64,
    site: String,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
#[must_use = "a place that is dropped is free again"]
pub struct Place {
    of: &'static LocalKey<RefCell<Places>>,
    number: u64,
}

impl Places {
    /// So many, all of them free.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most, taken: Vec::new(), begun: 0 }
    }

    /// One for this site, which has half of those at most that others leave: whoever asks from elsewhere finds one. On a local
    /// stack, where everybody is of one, all of them.
    fn take(&mut self, now_ms: u64, site: &str) -> Option<u64> {
        self.taken.retain(|taken| now_ms < taken.began_ms.saturating_add(HELD_MS));
        let own = self.taken.iter().filter(|taken| taken.site == site).count();
        let left = self.most.saturating_sub(self.taken.len().saturating_sub(own));
        let share = if site == UNKNOWN { left } else { left.div_ceil(2) };
        (own < share).then(|| {
            let number = self.begun;
            self.begun = number.wrapping_add(1);
            self.taken.push(Taken { number, began_ms: now_ms, site: site.to_owned() });
            number
        })
    }
}

impl Place {
    fn take(of: &'static LocalKey<RefCell<Places>>, now_ms: u64, site: &str) -> Option<Self> {
        of.with_borrow_mut(|places| places.take(now_ms, site)).map(|number| Self { of, number })
    }

    /// One of these places, as soon as one is free; `None` where none is for ten seconds.
    pub async fn wait(of: &'static LocalKey<RefCell<Places>>, client: &str) -> Option<Self> {
        let site = site(client);
        for _ in 0..PAUSES {
            if let Some(place) = Self::take(of, crate::now_ms(), &site) {
                return Some(place);
            }
            crate::sleep(PAUSE).await;
        }
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.with_borrow_mut(|places| places.taken.retain(|taken| taken.number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 8;
    thread_local! {
        static PLACES: RefCell<Places> = const { RefCell::new(Places::new(MOST)) };
    }

    #[test]
    fn so_many_are_taken_at_once_and_one_that_never_ends_does_not_count_for_ever() {
        let mut number = 0;
        let mut take = |now_ms| {
            number += 1;
            Place::take(&PLACES, now_ms, &number.to_string())
        };
        let mut places: Vec<_> = (0..MOST).map(|_| take(1_000).unwrap()).collect();
        assert!(take(1_000).is_none());
        places.pop();
        places.push(take(1_001).unwrap());
        assert!(take(999 + HELD_MS).is_none());
        let lost = places.split_off(1);
        std::mem::forget(places);
        assert!(take(1_000 + HELD_MS).is_some(), "the first was cut off");
        drop(lost);
    }

    #[test]
    fn one_site_leaves_half_of_what_is_left_to_others_and_a_local_stack_is_all_of_one() {
        thread_local! {
            static SHARED: RefCell<Places> = const { RefCell::new(Places::new(MOST)) };
        }
        let held: Vec<_> = ["a", "b", "c", "d"]
            .map(|site| std::iter::from_fn(|| Place::take(&SHARED, 1_000, site)).collect::<Vec<_>>())
            .into();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 1, 1]);
        drop(held);
        assert_eq!(std::iter::from_fn(|| Place::take(&SHARED, 1_000, UNKNOWN)).collect::<Vec<_>>().len(), MOST);
    }
}
