//! Skips polls that cannot see anything new.
//!
//! A request that waits for a block polls more often than blocks appear, so that it learns of a block soon. Most polls
//! need only the newest block, which all waiting requests of an isolate share ([`Chain::shared_tip`]); a request asks
//! for its own transaction when there is a new block. For example, thirty requests that wait ten seconds for the same
//! block together make a handful of calls for the newest block, and one or two each for their transactions.

use cardano::{
    TxHash,
    chain::{Chain, ChainError},
};

/// Number of polls per new block in which the transaction is looked up. More than one is needed, because the provider
/// may show a block before the block's transactions.
const ASKS_PER_BLOCK: u8 = 2;

/// The newest block that a waiting request has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewBlocks {
    tip: Option<TxHash>,
    asks_left: u8,
}

impl NewBlocks {
    /// Creates the state of a request that begins to wait. Blocks that the request has already read are treated as
    /// seen.
    #[must_use]
    pub fn begin(chain: &impl Chain) -> Self {
        Self { tip: chain.last_read_tip().map(|tip| tip.hash), asks_left: 0 }
    }

    /// Reads the newest block. Returns whether to look up the transaction in this poll, because a new block appeared in
    /// this poll or the one before. Also `true` for a client that has used up its share of provider calls, so that the
    /// lookup fails and ends the wait.
    pub async fn may_show(&mut self, chain: &impl Chain) -> bool {
        let tip = match chain.shared_tip().await {
            Ok(tip) => tip,
            Err(error) => return error == ChainError::TooMany,
        };
        if self.tip != Some(tip.hash) {
            *self = Self { tip: Some(tip.hash), asks_left: ASKS_PER_BLOCK };
        }
        let may_show = self.asks_left > 0;
        self.asks_left = self.asks_left.saturating_sub(1);
        may_show
    }
}
