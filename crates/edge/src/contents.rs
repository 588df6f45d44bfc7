//! The store of contents: an R2 bucket where one is bound, the database otherwise.

use std::{cell::RefCell, pin::Pin};

use cardano::{ContentHash, TxHash};
use market::contents::{Contents, ContentsError, InDatabase};
use sql::Statement;
use worker::{Bucket, Env};

use crate::{
    Usage,
    d1::D1,
    places::{Place, Places},
};

/// The binding of the bucket.
const BINDING: &str = "CONTENTS";

/// Contents that an isolate reads at once. One of a mebibyte takes several of the 128 MB that there are, as JSON, as
/// JavaScript's text and as this program's.
const AT_ONCE: usize = 8;

thread_local! {
    static READ: RefCell<Places> = const { RefCell::new(Places::new(AT_ONCE)) };
}

/// Bytes of a content that one charge is for.
pub const BYTES_PER_CHARGE: usize = 64 << 10;

/// Whether whoever asks may have so much more.
pub type Charge = Pin<Box<dyn Future<Output = bool>>>;

/// Asks that, of what a payment bought, or of anything.
type Asks = Box<dyn Fn(Option<&TxHash>) -> Charge>;

/// Where this worker keeps contents, and what is asked before one is read.
pub struct ContentStore {
    kept: Kept,
    client: String,
    charge: Option<Asks>,
}

enum Kept {
    /// In the table `contents`.
    Table(D1),
    /// In the bucket, by hash, with R2 checking the hash of what arrives.
    Bucket(Bucket, Usage),
}

impl ContentStore {
    /// The bucket, if it is bound; otherwise this database.
    #[must_use]
    pub fn bound(env: &Env, database: D1, usage: Usage) -> Self {
        let kept = match env.bucket(BINDING) {
            Ok(bucket) => Kept::Bucket(bucket, usage),
            Err(_) => Kept::Table(database),
        };
        Self { kept, client: String::new(), charge: None }
    }

    /// The same for whoever is charged for each [`BYTES_PER_CHARGE`] that are begun: the first before a content is read, the
    /// others after it, so that who has had too much reads no further one. What a payment bought is charged to the payment where
    /// whoever asks had too much.
    #[must_use]
    pub fn charging(self, client: String, charge: impl Fn(Option<&TxHash>) -> Charge + 'static) -> Self {
        Self { charge: Some(Box::new(charge)), client, ..self }
    }

    async fn charged(&self, hash: &ContentHash, payment: Option<&TxHash>) -> Result<Option<String>, ContentsError> {
        let place = Place::wait(&READ, &self.client).await;
        let _place = place.ok_or_else(|| failed("too many contents are read at once"))?;
        let Some(charge) = &self.charge else { return self.read(hash).await };
        if !charge(payment).await {
            return Err(ContentsError::TooMuch);
        }
        let content = self.read(hash).await?;
        let length = content.as_ref().map_or(0, String::len);
        for _ in 0..length.saturating_sub(1) / BYTES_PER_CHARGE {
            charge(payment).await;
        }
        Ok(content)
    }

    async fn read(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        match &self.kept {
            Kept::Table(database) => InDatabase(database).get(hash).await,
            Kept::Bucket(bucket, usage) => {
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

fn failed(error: impl std::fmt::Display) -> ContentsError {
    ContentsError::Store(error.to_string())
}

fn no_calls_left() -> ContentsError {
    ContentsError::Store("no outside calls are left".into())
}

impl Contents for ContentStore {
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError> {
        match &self.kept {
            Kept::Table(database) => InDatabase(database).put(hash, text).await,
            Kept::Bucket(bucket, usage) => {
                if !usage.call() {
                    return Err(no_calls_left());
                }
                let put = bucket.put(hash.to_string(), text.to_owned()).sha256(hash.as_bytes().to_vec());
                put.execute().await.map(drop).map_err(failed)
            }
        }
    }

    fn reading(&self, hash: &ContentHash) -> Option<Statement> {
        match &self.kept {
            Kept::Table(database) => InDatabase(database).reading(hash),
            Kept::Bucket(..) => None,
        }
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        self.charged(hash, None).await
    }

    async fn bought(&self, hash: &ContentHash, payment: &TxHash) -> Result<Option<String>, ContentsError> {
        self.charged(hash, Some(payment)).await
    }
}
