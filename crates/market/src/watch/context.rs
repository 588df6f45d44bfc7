//! What one tick carries from part to part.

use std::collections::BTreeMap;

use cardano::{Address, TxHash, chain::Tip, slots::Millis};
use outbox::Outbox;
use sql::{Database, DatabaseError, Statement};

use super::{ArbiterClient, Keys, Ledger, Report, Watch};
use crate::{contents::Contents, escrow_steps::write_each, platform::PlatformWallet, transitions};

/// Outside calls that looking after entries leaves for what is due.
pub(super) const CALLS_KEPT: u32 = 16;
/// After so many questions that the provider did not serve, the rest of a part is left for the next tick.
pub(super) const MAX_UNSERVED: u32 = 3;

/// The chain and the stored progress as this tick found them.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub tip: Tip,
    /// The clock of escrow matters: the later of the wall clock and the newest block's time.
    pub clock: Millis,
    /// Rollbacks that were undone before: what this tick finds is written only while no other tick undoes one.
    pub rollbacks: u64,
    /// The block up to which the address's history was read.
    pub read_to: u64,
    /// The seller of record, if we act as such.
    pub seller: Option<Address>,
    /// Whether the platform's wallet is read though nothing is to be paid: its outputs may be too few.
    pub checks_wallet: bool,
}

pub(super) struct Tick<'a, D, C, K, S, A> {
    pub ports: &'a Watch<'a, D, C, K, S, A>,
    pub view: View,
    /// The platform's wallet, once it was read.
    pub wallet: Option<PlatformWallet>,
    /// Results whose time is nearly over, by their purchases: why they are not posted yet.
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

    /// Writes these in one batch, if there are any.
    pub async fn write(&self, statements: Vec<Statement>) -> Result<(), DatabaseError> {
        if !statements.is_empty() {
            self.ports.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Writes changes that do not depend on one another; what the database refuses is noted.
    pub async fn write_each(&mut self, changes: Vec<Vec<Statement>>) {
        let refused = write_each(self.ports.database, changes).await;
        self.report.notes.extend(refused);
    }
}
