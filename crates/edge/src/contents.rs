//! The store of contents: an R2 bucket where one is bound, the database otherwise.

use cardano::ContentHash;
use market::contents::{Contents, ContentsError, InDatabase};
use sql::Statement;
use worker::{Bucket, Env};

use crate::{Usage, d1::D1, semaphore::Permit};

/// The binding of the bucket.
const BINDING: &str = "CONTENTS";

/// Bytes that reading a content may take: one of a mebibyte is JSON, a text of JavaScript's and one of this program's.
const BYTES: usize = 5 << 20;

/// Where this worker keeps contents.
pub struct ContentStore {
    kept: Kept,
    /// Whose share of the isolate's memory is held while one is read.
    client: String,
}

enum Kept {
    /// In the table `contents`.
    Table(D1),
    /// In the bucket, by hash, with R2 checking the hash of what arrives.
    Bucket(Bucket, Usage),
}

impl ContentStore {
    /// The bucket, if it is bound; otherwise this database. This client asks.
    #[must_use]
    pub fn bound(env: &Env, database: D1, usage: Usage, client: String) -> Self {
        let kept = match env.bucket(BINDING) {
            Ok(bucket) => Kept::Bucket(bucket, usage),
            Err(_) => Kept::Table(database),
        };
        Self { kept, client }
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
        let permit = Permit::hold(&self.client, BYTES).await;
        let _permit = permit.ok_or_else(|| failed("too many contents are read at once"))?;
        self.read(hash).await
    }
}
