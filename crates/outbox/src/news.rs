//! Skips polls that cannot see anything new.
//!
//! A request that waits for a block polls more often than blocks appear, so that it learns of a block soon. Most polls
//! need only the newest block, which all waiting requests of an isolate share ([`Chain::shared_tip`]). They also share
//! the list of a new block's transactions ([`Chain::block_includes`]), so a request asks for its own transaction only
//! when a block includes it. For example, thirty requests that wait ten seconds for the same block together make a
//! handful of calls for the newest block, one for its transactions, and at most one each for their own.

use cardano::{
    TxHash,
    chain::{Chain, ChainError, Tip},
};

/// Number of polls that look up the transaction after a new block whose list of transactions is not available. One is
/// not enough, because the provider may show a block before the block's transactions.
const ASKS_PER_BLOCK: u8 = 2;

/// The newest block that a waiting request has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewBlocks {
    tip: Option<Tip>,
    /// Whether this request has seen the block before `tip`, so that it has missed no block in between.
    is_next: bool,
    asks_left: u8,
}

impl NewBlocks {
    /// Creates the state of a request that begins to wait. Blocks that the request has already read are treated as
    /// seen.
    #[must_use]
    pub fn begin(chain: &impl Chain) -> Self {
        Self { tip: chain.last_read_tip(), is_next: false, asks_left: 0 }
    }

    /// Reads the newest block. Returns whether a new block appeared in this poll or the one before. Also returns `true`
    /// if the client has used up its share of provider calls, so that the caller's next call fails and ends the wait.
    pub async fn advanced(&mut self, chain: &impl Chain) -> bool {
        match self.read(chain).await {
            Ok(_) => self.ask(),
            Err(error) => error == ChainError::ClientRateLimited,
        }
    }

    /// Reads the newest block. Returns whether to look up the transaction in this poll, because a new block may include
    /// it. Also returns `true` if the client has used up its share of provider calls, so that the lookup fails and ends
    /// the wait.
    pub async fn may_include(&mut self, tx: &TxHash, chain: &impl Chain) -> bool {
        let tip = match self.read(chain).await {
            Ok(tip) => tip,
            Err(error) => return error == ChainError::ClientRateLimited,
        };
        if self.is_next
            && let Ok(Some(block_includes)) = chain.block_includes(tx, &tip).await
        {
            return block_includes;
        }
        self.ask()
    }

    async fn read(&mut self, chain: &impl Chain) -> Result<Tip, ChainError> {
        let tip = chain.shared_tip().await?;
        if self.tip.map(|known| known.hash) != Some(tip.hash) {
            let is_next = self.tip.and_then(|known| known.height.checked_add(1)) == Some(tip.height);
            *self = Self { tip: Some(tip), is_next, asks_left: ASKS_PER_BLOCK };
        }
        Ok(tip)
    }

    const fn ask(&mut self) -> bool {
        let asks = self.asks_left > 0;
        self.asks_left = self.asks_left.saturating_sub(1);
        asks
    }
}
