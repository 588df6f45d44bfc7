//! The store of contents: an R2 bucket where one is bound, the database otherwise.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use cardano::ContentHash;
use market::contents::{Contents, ContentsError, InDatabase};
use sql::Statement;
use worker::{Bucket, Env};

use crate::{Usage, d1::D1};

/// The binding of the bucket.
const BINDING: &str = "CONTENTS";

/// Contents that an isolate reads at once. One of a mebibyte takes several of the 128 MB that there are, as JSON, as
/// JavaScript's text and as this program's.
const AT_ONCE: usize = 8;
/// How long one that is read counts, in ms: of a request that was cut off nobody says that it ended.
const READ_MS: u64 = 5_000;
/// How long whoever finds no place waits before it looks again, and how often.
const PAUSE: Duration = Duration::from_millis(25);
const PAUSES: usize = 400;

thread_local! {
    /// When those began that are read now, POSIX ms, by their numbers.
    static READ: RefCell<BTreeMap<u64, u64>> = const { RefCell::new(BTreeMap::new()) };
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// A place among those who read a content.
#[derive(Debug)]
struct Place(u64);

impl Place {
    /// One, if one is left at this time.
    fn take(now_ms: u64) -> Option<Self> {
        READ.with_borrow_mut(|read| {
            read.retain(|_, began| now_ms < began.saturating_add(READ_MS));
            (read.len() < AT_ONCE).then(|| {
                let number = BEGUN.get();
                BEGUN.set(number.wrapping_add(1));
                read.insert(number, now_ms);
                Self(number)
            })
        })
    }

    /// One, as soon as one is left.
    async fn wait() -> Result<Self, ContentsError> {
        for _ in 0..PAUSES {
            if let Some(place) = Self::take(crate::now_ms()) {
                return Ok(place);
            }
            crate::sleep(PAUSE).await;
        }
        Err(ContentsError::Store("too many contents are read at once".into()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        READ.with_borrow_mut(|read| read.remove(&self.0));
    }
}

/// Where this worker keeps contents.
pub enum ContentStore {
    /// In the table `contents`.
    Table(D1),
    /// In the bucket, by hash, with R2 checking the hash of what arrives.
    Bucket(Bucket, Usage),
}

impl ContentStore {
    /// The bucket, if it is bound; otherwise this database.
    #[must_use]
    pub fn bound(env: &Env, database: D1, usage: Usage) -> Self {
        match env.bucket(BINDING) {
            Ok(bucket) => Self::Bucket(bucket, usage),
            Err(_) => Self::Table(database),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> ContentsError {
    ContentsError::Store(error.to_string())
}

fn no_calls_left() -> ContentsError {
    ContentsError::Store("no outside calls are left".into())
}

impl Contents for ContentStore {
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError> {
        match self {
            Self::Table(database) => InDatabase(database).put(hash, text).await,
            Self::Bucket(bucket, usage) => {
                if !usage.call() {
                    return Err(no_calls_left());
                }
                let put = bucket.put(hash.to_string(), text.to_owned()).sha256(hash.as_bytes().to_vec());
                put.execute().await.map(drop).map_err(failed)
            }
        }
    }

    fn reading(&self, hash: &ContentHash) -> Option<Statement> {
        match self {
            Self::Table(database) => InDatabase(database).reading(hash),
            Self::Bucket(..) => None,
        }
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        let _place = Place::wait().await?;
        match self {
            Self::Table(database) => InDatabase(database).get(hash).await,
            Self::Bucket(bucket, usage) => {
                if !usage.call() {
                    return Err(no_calls_left());
                }
                let Some(object) = bucket.get(hash.to_string()).execute().await.map_err(failed)? else {
                    return Ok(None);
                };
                match object.body() {
                    Some(body) => body.text().await.map(Some).map_err(failed),
                    None => Ok(None),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_contents_are_read_at_once_and_one_that_never_ends_does_not_count_for_ever() {
        let mut places: Vec<_> = (0..AT_ONCE).map(|_| Place::take(1_000).unwrap()).collect();
        assert!(Place::take(1_000).is_none());
        places.pop();
        places.push(Place::take(1_001).unwrap());
        assert!(Place::take(999 + READ_MS).is_none());
        let lost = places.split_off(1);
        std::mem::forget(places);
        assert!(Place::take(1_000 + READ_MS).is_some(), "the first was cut off");
        drop(lost);
    }
}
