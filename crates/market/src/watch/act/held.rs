//! What a buyer holds back. A step of theirs whose time is over by the clock, but not by the slot after the newest block, which
//! is how nodes judge what they take, stays in a mempool and comes into no block. It costs nothing, and what conflicts with it
//! is refused until the next block. It has to be handed in anew for each block, and where its time is not over for the block
//! after, that block may have it, and it costs what it is worth: so there is a moment without it after most blocks.

use cardano::{TxHash, chain::Chain, evaluation::Evaluate, history::History, slots::Millis};
use outbox::{Draft, Kind, Sleep};
use sql::Database;

use super::super::{Report, TickError, Watch, due::Due};
use crate::contents::Contents;

/// When what is held back is handed in again, in ms after the time before: a few times in a tick that the next one follows.
const AGAIN_MS: [Millis; 4] = [9_000; 4];
/// Outside calls that handing in again takes.
const CALLS_PER_TRY: u32 = 3;

/// A result that is held back: as it is handed in again.
pub(in super::super) struct Held {
    draft: Draft,
    purchase: TxHash,
}

impl Held {
    /// A result, which alone is worth a tick's time, that was refused in a tick before this one, too: mostly the next block has
    /// what was in its way.
    pub(super) fn of(draft: Draft, due: &Due) -> Option<Self> {
        (draft.kind == Kind::Result && due.failures > 0).then_some(Self { draft, purchase: due.purchase })
    }
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Hands in again what is held back, as far as the calls reach.
    pub(in super::super) async fn insist(
        &self,
        mut held: Vec<Held>,
        sleep: &impl Sleep,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut now = self.now;
        for wait in AGAIN_MS {
            if held.is_empty() || (self.calls_left)() < CALLS_PER_TRY {
                break;
            }
            sleep.sleep(wait).await;
            now = now.saturating_add(wait);
            let mut still = vec![];
            for held in held {
                if (self.calls_left)() < CALLS_PER_TRY {
                    break;
                }
                let tried = self.hand_in(&held.draft, &[held.purchase], None, now, report).await?;
                if tried.is_some_and(|(_, refused)| refused.is_some()) {
                    still.push(held);
                }
            }
            held = still;
        }
        Ok(())
    }
}
