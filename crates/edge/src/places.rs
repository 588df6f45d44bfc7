//! Places for so many at once as an isolate has memory for: whoever finds none waits.

use std::{cell::RefCell, collections::BTreeMap, thread::LocalKey, time::Duration};

/// How long one place counts, in ms: of a request that was cut off nobody says that it ended.
const HELD_MS: u64 = 5_000;
/// How long whoever finds no place waits before it looks again, and how often.
const PAUSE: Duration = Duration::from_millis(25);
const PAUSES: usize = 400;

/// So many places.
#[derive(Debug)]
pub struct Places {
    most: usize,
    /// When those began that are taken, POSIX ms, by their numbers.
    taken: BTreeMap<u64, u64>,
    begun: u64,
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
        Self { most, taken: BTreeMap::new(), begun: 0 }
    }

    fn take(&mut self, now_ms: u64) -> Option<u64> {
        self.taken.retain(|_, began| now_ms < began.saturating_add(HELD_MS));
        (self.taken.len() < self.most).then(|| {
            let number = self.begun;
            self.begun = number.wrapping_add(1);
            self.taken.insert(number, now_ms);
            number
        })
    }
}

impl Place {
    fn take(of: &'static LocalKey<RefCell<Places>>, now_ms: u64) -> Option<Self> {
        of.with_borrow_mut(|places| places.take(now_ms)).map(|number| Self { of, number })
    }

    /// One of these places, as soon as one is free; `None` where none is for ten seconds.
    pub async fn wait(of: &'static LocalKey<RefCell<Places>>) -> Option<Self> {
        for _ in 0..PAUSES {
            if let Some(place) = Self::take(of, crate::now_ms()) {
                return Some(place);
            }
            crate::sleep(PAUSE).await;
        }
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.with_borrow_mut(|places| places.taken.remove(&self.number));
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
        let take = |now_ms| Place::take(&PLACES, now_ms);
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
}
