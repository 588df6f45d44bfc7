//! The content store: an R2 bucket if one is bound, otherwise the database.

use cardano::ContentHash;
use market::contents::{Contents, ContentsError, InDatabase};
use sql::Read;
use worker::{Bucket, Env};

use crate::{Usage, d1::D1, semaphore::Permit};

/// Name of the bucket's binding.
const BINDING: &str = "CONTENTS";

/// Memory in bytes to reserve for reading one listing's content, which exists three times while it is read: as JSON, as
/// a JavaScript string and as a Rust string.
const BYTES: usize = 5 << 20;

/// The content store of this worker.
pub struct ContentStore {
    /// Database whose table `contents` stores contents when no bucket is bound.
    database: D1,
    /// R2 bucket that stores contents under their hashes, which R2 verifies on upload; `None` if no bucket is bound.
    bucket: Option<Bucket>,
    usage: Usage,
    /// Client whose memory limit is charged during a read.
    client: String,
}

impl ContentStore {
    /// Creates the store on the R2 bucket if one is bound, else on this database. Memory for reads is charged to
    /// `client`.
    #[must_use]
    pub fn bound(env: &Env, database: D1, usage: Usage, client: String) -> Self {
        Self { database, bucket: env.bucket(BINDING).ok(), usage, client }
    }

    /// Returns the bucket, or `None` if no bucket is bound. Counts one outgoing call if there is a bucket, because the
    /// caller is about to use it.
    fn bucket(&self) -> Result<Option<&Bucket>, ContentsError> {
        match &self.bucket {
            Some(_) if !self.usage.call() => Err(failed("no outside calls are left")),
            bucket => Ok(bucket.as_ref()),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> ContentsError {
    ContentsError::Store(error.to_string())
}

impl Contents for ContentStore {
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError> {
        let Some(bucket) = self.bucket()? else { return InDatabase(&self.database).put(hash, text).await };
        let put = bucket.put(hash.to_string(), text.to_owned()).sha256(hash.as_bytes().to_vec());
        put.execute().await.map(drop).map_err(failed)
    }

    fn reading(&self, hash: &ContentHash) -> Option<Read<Option<String>>> {
        if self.bucket.is_some() { None } else { InDatabase(&self.database).reading(hash) }
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        let permit = Permit::hold(&self.client, BYTES).await;
        let _permit = permit.ok_or_else(|| failed("too many contents are read at once"))?;
        let Some(bucket) = self.bucket()? else { return InDatabase(&self.database).get(hash).await };
        let object = bucket.get(hash.to_string()).execute().await.map_err(failed)?;
        match object.as_ref().and_then(|object| object.body()) {
            Some(body) => body.text().await.map(Some).map_err(failed),
            None => Ok(None),
        }
    }
}
