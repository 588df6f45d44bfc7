//! The watcher: brings every escrow to its end.
//!
//! ```text
//! tick:  what is stored ─> newest block ─> rollback? undo ─> entries of ours: in a block, sent again, over
//!        ─> escrows that are due: decide, act ─> what spent those that only wait ─> the address's history, as far as
//!        calls are left; what it tells is acted on at once
//! ```
//!
//! Every change of a purchase follows from what the chain shows; every action goes through the outbox. A tick may be killed
//! at any point, and two may run at once: what one leaves undone the next one does. What strangers put at the address is
//! read last and within bounds: escrows of ours are followed by their own outputs, so nothing there can hide what became
//! of them.

mod act;
mod alarms;
mod counted;
pub mod decide;
mod due;
mod follow;
mod history;
mod housekeeping;
mod look;
mod reading;
mod restore;
mod rollback;
mod unsure;

use cardano::{
    Address, ContentHash, TxRef,
    chain::{Chain, ChainError, Inclusion, Tip},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    slots::Millis,
};
use escrow::Deployment;
use outbox::{Outbox, OutboxError, recheck};
use serde::Serialize;
use sql::{Database, DatabaseError, Statement};

use crate::{
    chain_state::{self, Lead},
    contents::{Contents, ContentsError},
    escrow_steps::{Recorded, write_each},
    platform,
    transitions::Transitions,
};
use counted::Counted;
pub use due::Holder;
use due::{Due, Owed};
use reading::{Reading, SeenBlock};
use restore::Restore;
use unsure::Unsure;

/// Escrows that are due, and creators who are owed.
type Work = (Vec<Due>, Vec<Owed>);

/// The same, and what a rollback may have removed, or another fork's node have shown: blocks with entries of ours, and steps of
/// others.
type Begun = (Work, Vec<SeenBlock>, Vec<Unsure>);

/// Outside calls that looking after entries leaves for what is due.
const CALLS_KEPT: u32 = 16;

/// Alarms, and notes, that a report has at most: who makes sales that fail makes as many of them.
const MAX_WORDS: usize = 50;

/// Blocks below the newest one that an earlier tick saw whose entries are asked for once more: a node on another fork may
/// have shown one of that height, and a slower tick, or a request, may have written it down since.
const UNSURE_BLOCKS: u64 = 6;

/// Why a tick ended early. What it wrote stays; the next goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TickError {
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// What is sold cannot be read.
    #[error(transparent)]
    Contents(#[from] ContentsError),
}

impl From<OutboxError> for TickError {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::Database(error) => Self::Database(error),
            OutboxError::Chain(error) => Self::Chain(error),
        }
    }
}

/// What one tick did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Transactions of the escrow address that were read.
    pub read: u32,
    /// Transactions of others that could not be read, or not now: reading went on after them.
    pub skipped: u32,
    /// Steps of escrows that were found.
    pub steps: u32,
    /// Whether a rollback was undone.
    pub rolled_back: bool,
    /// Entries of ours that were found in a block.
    pub confirmed: u32,
    /// Outside calls.
    pub calls: u32,
    /// Statements that the database ran.
    pub statements: u32,
    /// Actions that were sent: what, and for which purchase.
    pub acted: Vec<String>,
    /// What an operator must know at once: money or a score is about to be lost by our own fault, or was.
    pub alarms: Vec<String>,
    /// What else is worth knowing, in words, for the log.
    pub notes: Vec<String>,
}

impl Report {
    /// The first of what it says, and how much more there was: a line of the log has an end.
    fn shorten(&mut self) {
        for said in [&mut self.alarms, &mut self.notes] {
            let more = said.len().saturating_sub(MAX_WORDS);
            if more > 0 {
                said.truncate(MAX_WORDS);
                said.push(format!("and {more} more"));
            }
        }
    }

    fn absorb(&mut self, recorded: Recorded) {
        self.steps = self.steps.saturating_add(recorded.steps);
        self.skipped = self.skipped.saturating_add(recorded.unreadable);
        self.alarms.extend(recorded.alarms);
        self.notes.extend(recorded.notes);
    }

    fn note(&mut self, what: &dyn std::fmt::Display, why: &dyn std::fmt::Display) {
        self.notes.push(format!("{what}: {why}"));
    }
}

/// A dispute to be settled.
#[derive(Clone, Copy, Debug)]
pub struct Dispute<'a> {
    /// The disputed escrow.
    pub escrow: TxRef,
    /// What was sold.
    pub listing_id: &'a str,
    /// The listing's content hash.
    pub content_hash: ContentHash,
    /// What was delivered.
    pub output: &'a str,
}

/// The port to the arbiter.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait ArbiterClient {
    /// Whether there is time to ask: each may take a minute to be answered, and what comes after must be done in the same tick.
    fn has_time(&self) -> bool {
        true
    }

    /// Asks for a settlement. What the arbiter said, in words for the log; the chain tells what came of it.
    ///
    /// # Errors
    /// In words for the log.
    async fn resolve(&self, dispute: &Dispute<'_>) -> Result<String, String>;
}

/// Whose keys the watcher holds.
pub trait Keys {
    /// The seller of record, where we act as such.
    fn seller(&self) -> Option<&SigningKey>;
    /// The key of a service wallet.
    fn buyer(&self, holder: &Holder) -> Option<SigningKey>;
    /// Names the keys of service wallets that there are, and gives nothing of them away: when it changes, every open
    /// escrow is looked at again.
    fn versions(&self) -> String {
        String::new()
    }
}

/// One tick's view of the world.
pub struct Watch<'a, D, C, K> {
    pub database: &'a D,
    pub chain: &'a C,
    /// What is sold.
    pub contents: &'a K,
    /// The escrow of protected sales, where one is deployed.
    pub deployment: Option<&'a Deployment>,
    /// Whether to act as the seller of record: to post results and to collect.
    pub sells: bool,
    /// How far the newest block's time may be ahead of the wall clock: a provider that tells more is not believed.
    pub lead: Lead,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// How many outside calls are left.
    pub calls_left: &'a dyn Fn() -> u32,
}

/// What all parts of a tick go by.
#[derive(Clone, Copy)]
struct TickView {
    tip: Tip,
    /// The clock of escrow matters: the later of the wall clock and the newest block's time.
    clock: Millis,
    /// Rollbacks that were undone before: what this tick finds is written only while no other tick undoes one.
    rollbacks: u64,
    /// The block up to which the address's history was read.
    read_to: u64,
    /// The seller of record, if we act as such.
    seller: Option<Address>,
    /// Whether the platform's wallet is read though nothing is to be paid: its outputs may be too few.
    looks_at_wallet: bool,
}

impl TickView {
    /// Whether this tick's chain can have a block: it is older than the tip, or the tip itself. A node on another fork may
    /// show another block of the tip's height.
    fn knows(&self, block: &Inclusion) -> bool {
        block.height < self.tip.height || block.block == self.tip.hash
    }
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Reads what is new and does what is due, as far as the calls reach.
    ///
    /// # Errors
    /// What could not be asked, where nothing can be done without it.
    pub async fn tick(&self, keys: &impl Keys, arbiter: &impl ArbiterClient) -> Result<Report, TickError> {
        let database = Counted::new(self.database);
        let before = (self.calls_left)();
        let mut report = Report::default();
        let counted = self.on(&database);
        counted.run(keys, arbiter, &mut report).await?;
        report.alarms.extend(counted.alarms(keys).await?);
        report.shorten();
        report.calls = before.saturating_sub((self.calls_left)());
        report.statements = database.statements();
        Ok(report)
    }

    const fn on<'b, E>(&'b self, database: &'b E) -> Watch<'b, E, C, K> {
        Watch {
            database,
            chain: self.chain,
            contents: self.contents,
            deployment: self.deployment,
            sells: self.sells,
            lead: self.lead,
            now: self.now,
            calls_left: self.calls_left,
        }
    }

    fn seller(&self, keys: &impl Keys) -> Option<Address> {
        keys.seller().filter(|_| self.sells).map(SigningKey::enterprise_address)
    }

    async fn run(&self, keys: &impl Keys, arbiter: &impl ArbiterClient, report: &mut Report) -> Result<(), TickError> {
        let mut reading = Reading::load(self.database).await?;
        let tip = self.chain.tip().await?;
        let clock = self.lead.clock(tip.time_ms, self.now);
        if clock < tip.time_ms {
            let ahead = tip.time_ms.saturating_sub(self.now) / 1_000;
            report
                .alarms
                .push(format!("the provider's newest block is {ahead} s ahead of the clock: it is not believed"));
            return Ok(());
        }
        if !self.still_there(&mut reading, &tip, report).await? {
            return Ok(());
        }
        let view = TickView {
            tip,
            clock,
            rollbacks: reading.rollbacks,
            read_to: reading.next.map_or(0, |next| next.height),
            seller: self.seller(keys),
            looks_at_wallet: platform::is_looked_at(reading.newest.map(|newest| newest.height), tip.height),
        };
        let Some((mut work, doubtful, unsure)) = self.begin(&view, &reading, keys, report).await? else {
            return Ok(());
        };
        // What is ours and waits for a block first: whoever overtook one of these is looked for before what strangers can have
        // asked for by what they hand in.
        let acted = self.look_after(std::mem::take(&mut reading.actions), &view, report).await?;
        let back = self.make_sure(unsure, &view, report).await?;
        let gone = self.gone_with(doubtful, &tip, report).await?;
        let moved = self.look_after(gone, &view, report).await?;
        let opened = self.look_after(std::mem::take(&mut reading.open), &view, report).await?;
        if acted || back || moved || opened {
            work = self.read_due(&view).await?;
        }
        let restore = Restore {
            database: self.database,
            chain: self.chain,
            deployment: self.deployment,
            seller: keys.seller().filter(|_| self.sells),
            tip,
            clock,
            now: self.now,
            calls_left: self.calls_left,
        };
        restore.read_wallets(report).await?;
        let Some(deployment) = self.deployment else {
            restore.adopt_escrows(report).await?;
            return Ok(());
        };
        let waiting = self.act(deployment, keys, arbiter, &view, work, report).await?;
        self.follow_all(waiting, &view, report).await?;
        let known = report.steps;
        let read_to = self.read_history(deployment, &reading, &view, report).await?;
        let adopted = match restore.adopt_escrows(report).await {
            Err(TickError::Chain(error)) => {
                report.note(&"an unknown escrow", &error);
                false
            }
            adopted => adopted?,
        };
        if adopted || report.steps > known {
            let view = TickView { read_to, looks_at_wallet: false, ..view };
            let work = self.read_due(&view).await?;
            let waiting = self.act(deployment, keys, arbiter, &view, work, report).await?;
            self.follow_all(waiting, &view, report).await?;
        }
        Ok(())
    }

    /// Notes the newest block, before anything is written that depends on it, and reads what is due and what a rollback may have
    /// removed; `None` where another tick undid a rollback, or saw another block,
    /// meanwhile.
    async fn begin(
        &self,
        view: &TickView,
        reading: &Reading,
        keys: &impl Keys,
        report: &mut Report,
    ) -> Result<Option<Begun>, TickError> {
        let signers =
            format!("{} {}", view.seller.map(|seller| seller.to_string()).unwrap_or_default(), keys.versions());
        let [again, noted] = due::signers_changed(&signers);
        let statements = vec![
            recheck(reading.known_to.saturating_sub(UNSURE_BLOCKS), view.tip.height),
            reading::note_block(&view.tip, reading),
            rollback::seen(view.tip.height.saturating_sub(UNSURE_BLOCKS)),
            again,
            noted,
            due::due(view.clock, 0),
            due::owed(),
            rollback::doubtful(),
            unsure::unsure(view.tip.height),
            chain_state::note(&view.tip),
        ];
        let clearing = housekeeping::statements(self.now, &view.tip);
        let done = match self.database.batch([statements.as_slice(), &clearing].concat()).await {
            Ok(done) => done,
            // What cannot be cleared away must not keep from acting; nor what can from being so, where there is no room for
            // anything new.
            Err(_) => {
                self.write_each(clearing.into_iter().map(|statement| vec![statement]).collect(), report).await;
                self.database.batch(statements).await?
            }
        };
        let [_, block, _, _, _, due, owed, doubtful, unsure, ..] = done.as_slice() else {
            return Err(DatabaseError("a batch answered too little".into()).into());
        };
        if block.first().is_none() {
            report.notes.push("another tick undid a rollback, or saw another block, meanwhile".into());
            return Ok(None);
        }
        Ok(Some(((due.all_json()?, owed.all_json()?), doubtful.all_json()?, unsure.all_json()?)))
    }

    async fn read_due(&self, view: &TickView) -> Result<Work, TickError> {
        let [due, owed] = sql::exactly(self.database.batch(vec![due::due(view.clock, 0), due::owed()]).await?)?;
        Ok((due.all_json()?, owed.all_json()?))
    }

    const fn outbox(&self) -> Outbox<'_, D, C> {
        Outbox { database: self.database, chain: self.chain, hook: &Transitions }
    }

    /// Writes changes that do not depend on one another; what the database refuses is noted.
    async fn write_each(&self, changes: Vec<Vec<Statement>>, report: &mut Report) {
        report.notes.extend(write_each(self.database, changes).await);
    }
}
