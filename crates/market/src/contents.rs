//! Stores contents by the SHA-256 of their bytes. A content that several sellers offer is stored once.

use cardano::{ContentHash, TxHash};
use sql::{Database, DatabaseError, Read, Write};

/// The content store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("content store: {0}")]
    Store(String),
    #[error("too much content was read: try again in a minute")]
    TooMuch,
}

/// A store of listings' contents, which never change.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Contents {
    /// Stores the text of a listing's content under its hash. Idempotent.
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError>;

    /// Builds the query that reads the content with this hash in a batch; `None` if contents are not stored in the
    /// database. The query returns no content of more than [`MAX_HELD`] bytes.
    fn reading(&self, hash: &ContentHash) -> Option<Read<Option<String>>>;

    /// Returns the content with this hash; `None` if the store does not have it.
    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError>;

    /// Returns the content that a payment bought. Implementations may limit the memory used per buyer.
    async fn bought(&self, hash: &ContentHash, _: &TxHash) -> Result<Option<String>, ContentsError> {
        self.get(hash).await
    }
}

/// Maximum size in bytes of the content that a request holds in memory while it waits for a block.
///
/// Many concurrent requests with larger contents would exceed the memory of a Workers isolate. Sellers could cause this
/// by buying their own listings, at the cost of one fee per purchase.
pub const MAX_HELD: usize = 64 << 10;

/// A content store in a database table. D1 limits a row, and so a listing's content, to 2 MB.
pub struct InDatabase<'a, D>(pub &'a D);

impl<D: Database> Contents for InDatabase<'_, D> {
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError> {
        let keep: Write =
            sql::write!("INSERT INTO contents (hash, content) VALUES (?1, ?2) ON CONFLICT DO NOTHING", hash, text);
        Ok(self.0.execute(keep).await?)
    }

    fn reading(&self, hash: &ContentHash) -> Option<Read<Option<String>>> {
        let short = format!("octet_length(content) <= {MAX_HELD}");
        Some(sql::read!("SELECT content FROM contents WHERE hash = ?1 AND {short}", hash))
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        Ok(self.0.fetch(sql::read!("SELECT content FROM contents WHERE hash = ?1", hash)).await?)
    }
}
