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
    /// Its table `contents`, where no bucket is bound.
    database: D1,
    /// By hash, with R2 checking the hash of what arrives.
    bucket: Option<Bucket>,
    usage: Usage,
    /// Whose share of the isolate's memory is held while one is read.
    client: String,
}

impl ContentStore {
    /// The bucket, if it is bound; otherwise this database. This client asks.
    #[must_use]
    pub fn bound(env: &Env, database: D1, usage: Usage, client: String) -> Self {
        Self { database, bucket: env.bucket(BINDING).ok(), usage, client }
    }

    /// The bucket, if there is one, for one outside call.
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

    fn reading(&self, hash: &ContentHash) -> Option<Statement> {
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
