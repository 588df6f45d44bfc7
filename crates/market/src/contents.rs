//! Stored contents, by the SHA-256 of their bytes. Equal contents of different sellers are stored once.

use cardano::{ContentHash, TxHash};
use sql::{Database, DatabaseError, Statement, statement};

/// The content store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("the store of contents: {0}")]
    Store(String),
    #[error("too much content was read: try again in a minute")]
    TooMuch,
}

/// A store of immutable contents.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Contents {
    /// Stores a text under its hash. Idempotent.
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError>;

    /// Builds the statement that reads a text within a batch, if contents are stored in the database; `None` for texts
    /// above [`MOST_HELD`] bytes and other stores.
    fn reading(&self, hash: &ContentHash) -> Option<Statement>;

    /// Returns the text with this hash.
    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError>;

    /// Returns the content that a payment bought. Implementations may limit the memory used per buyer.
    async fn bought(&self, hash: &ContentHash, _: &TxHash) -> Result<Option<String>, ContentsError> {
        self.get(hash).await
    }
}

/// Maximum size of a content that a request holds while it waits for a block.
///
/// With larger ones, many requests from one network would exceed an isolate's memory; a seller who buys from themselves
/// pays only a fee for each.
pub const MOST_HELD: usize = 64 << 10;

/// Contents in a table, limited by D1's maximum of 2 MB per row.
pub struct InDatabase<'a, D>(pub &'a D);

impl<D: Database> Contents for InDatabase<'_, D> {
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError> {
        let keep =
            statement!("INSERT INTO contents (hash, content) VALUES (?1, ?2) ON CONFLICT DO NOTHING", hash, text);
        self.0.run(keep).await?;
        Ok(())
    }

    fn reading(&self, hash: &ContentHash) -> Option<Statement> {
        let short = format!("octet_length(content) <= {MOST_HELD}");
        Some(statement!("SELECT content FROM contents WHERE hash = ?1 AND {short}", hash))
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        let read = statement!("SELECT content FROM contents WHERE hash = ?1", hash);
        Ok(self.0.run(read).await?.rows.into_iter().next())
    }
}
