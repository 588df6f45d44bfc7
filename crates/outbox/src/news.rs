//! Skips polls that cannot see anything new.
//!
//! A request that waits for a block polls more often than blocks appear, so that it learns of a block soon. Most polls
//! need only the newest block, which all waiting requests of an isolate share ([`Chain::shared_tip`]); a request asks
//! for its own transaction when there is a new block. For example, thirty requests that wait ten seconds for the same
//! block together make a handful of calls for the newest block, and one or two each for their transactions.

use cardano::{
    TxHash,
    chain::{Chain, ChainError},
    slots::Millis,
};

/// Number of polls per new block that ask for the transaction. The provider may show a block before the transactions in
/// it.
const ASKS_PER_BLOCK: u8 = 2;

/// The newest block that a waiting request has seen.
#[derive(Clone, Copy, Debug)]
pub struct NewBlocks {
    tip: Option<TxHash>,
    asks_left: u8,
    since: Millis,
}

impl NewBlocks {
    /// Creates the state of a request that waits for a transaction since this time (POSIX ms). Blocks that were made
    /// before cannot include it.
    #[must_use]
    pub const fn since(since: Millis) -> Self {
        Self { tip: None, asks_left: 0, since }
    }

    /// Reads the newest block. Returns whether to ask for the transaction in this poll: there was a new block in this
    /// poll or the one before. Also `true` for a client that has used up its calls, so that its request ends.
    pub async fn may_show(&mut self, chain: &impl Chain) -> bool {
        let tip = match chain.shared_tip().await {
            Ok(tip) => tip,
            Err(error) => return error == ChainError::TooMany,
        };
        if self.tip != Some(tip.hash) {
            self.asks_left = if tip.time_ms < self.since { 0 } else { ASKS_PER_BLOCK };
            self.tip = Some(tip.hash);
        }
        let may_show = self.asks_left > 0;
        self.asks_left = self.asks_left.saturating_sub(1);
        may_show
    }
}
