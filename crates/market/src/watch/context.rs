//! State that is shared by the parts of a tick.

use std::collections::BTreeMap;

use cardano::{Address, TxHash, chain::Tip, slots::Millis};
use outbox::Outbox;
use sql::{Database, DatabaseError, Write};

use super::{ArbiterClient, Keys, Ledger, Report, Watch};
use crate::{contents::Contents, escrow_steps::write_each, platform::PlatformWallet, transitions};

/// Number of a tick's provider calls that are reserved for due escrows, so that looking up open transactions does not
/// use them.
pub(super) const CALLS_KEPT: u32 = 16;
/// Number of failed provider calls after which a part of the tick leaves its remaining work to the next tick.
pub(super) const MAX_UNSERVED: u32 = 3;

/// The state of the chain, and the stored progress of earlier ticks, as read at the start of a tick.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub tip: Tip,
    /// Clock for escrow deadlines: the later of the wall clock and the newest block's time.
    pub clock: Millis,
    /// Number of rollbacks recorded before this tick. If another tick records one meanwhile, this tick's writes have no
    /// effect.
    pub rollbacks: u64,
    /// Block height up to which the history of the contract's address has been read.
    pub read_to: u64,
    /// The platform's address, if this watcher acts as seller.
    pub seller: Option<Address>,
    /// Whether to check the platform's wallet for too few outputs.
    pub checks_wallet: bool,
}

pub(super) struct Tick<'a, D, C, K, S, A> {
    pub ports: &'a Watch<'a, D, C, K, S, A>,
    pub view: View,
    /// Hashes of the blocks below the newest one, by height, as far as this tick has read them.
    pub chain: BTreeMap<u64, TxHash>,
    /// The platform's wallet; `None` until it is read.
    pub wallet: Option<PlatformWallet>,
    /// Purchases for which the seller must soon post a result and has not, each with the reason why not.
    pub unposted: BTreeMap<TxHash, String>,
    pub report: Report,
}

impl<'a, D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'a, D, C, K, S, A> {
    pub fn calls_left(&self) -> u32 {
        (self.ports.calls_left)()
    }

    pub const fn outbox(&self) -> Outbox<'a, D, C> {
        Outbox { database: self.ports.database, chain: self.ports.chain, hook: &transitions::statements }
    }

    /// Writes statements in one batch, if there are any.
    pub async fn write(&self, statements: Vec<Write>) -> Result<(), DatabaseError> {
        if !statements.is_empty() {
            self.ports.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Writes independent changes and notes those that fail.
    pub async fn write_each(&mut self, changes: Vec<Vec<Write>>) {
        let refused = write_each(self.ports.database, changes).await;
        self.report.notes.extend(refused);
    }
}
