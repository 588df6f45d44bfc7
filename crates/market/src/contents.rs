//! What is sold, under the SHA-256 of its bytes: equal contents of different sellers are kept once.

use cardano::{ContentHash, TxHash};
use sql::{Database, DatabaseError, Statement, statement};

/// Contents cannot be had, or cannot be kept, now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("the store of contents: {0}")]
    Store(String),
    #[error("too much content was read: try again in a minute")]
    TooMuch,
}

/// A store of contents. What was put there stays, byte for byte.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Contents {
    /// Keeps a text under its hash. Keeping it again changes nothing.
    async fn put(&self, hash: &ContentHash, text: &str) -> Result<(), ContentsError>;

    /// The statement that reads the text of a hash in a batch, where it is kept in the database and has no more than
    /// [`MOST_HELD`] bytes; `None` where it is kept elsewhere.
    fn reading(&self, hash: &ContentHash) -> Option<Statement>;

    /// The text of a hash; `None` where there is none.
    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError>;

    /// The content for the buyer of this payment: some of it whatever their network read.
    async fn bought(&self, hash: &ContentHash, _: &TxHash) -> Result<Option<String>, ContentsError> {
        self.get(hash).await
    }
}

/// Bytes of a content that a payment's request holds while it waits for a block. With longer ones, many requests of one
/// network would take more memory than an isolate has; a seller who buys from themselves pays only a fee for each.
pub const MOST_HELD: usize = 64 << 10;

/// Contents in a table beside the catalogue: nothing else to configure, up to D1's 2 MB a row.
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
