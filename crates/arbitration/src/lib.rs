//! How the arbiter settles a dispute, from a request to one payout.
//!
//! ```text
//! request ──> the output on the chain ──walk back──> its lock         (walk.rs)
//!               │ evidence, kept if it is what the seller posted       (weigh.rs)
//!               v
//!   no verdict <── verdict ──made permanent──> award ──> signed, until the window opens
//!                                                └──> split signed, written to the outbox, submitted   (payout.rs)
//! ```
//!
//! The chain is read each time. What is stored only makes sure that an output is decided once, and that one transaction
//! at a time stands for its payout. All of them spend the same output, so the ledger itself pays once.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod division;
mod error;
mod payout;
mod request;
mod resolution;
mod statements;
mod walk;
mod weigh;

use cardano::{
    TxHash, TxRef,
    chain::{Chain, Tip},
    evaluation::Evaluate,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
};
use escrow::{Deployment, plan::Escrow};
use outbox::{Entry, Sleep, live_for};
use sql::{Database, DatabaseError, exactly};

pub use api_types::arbiter::{DisputedListing, Finding, ResolveRequest, ResolveResult};
pub use division::divide;
pub use error::ResolveError;
pub use request::{MAX_OUTPUT_BYTES, MalformedRequest, parse};
use resolution::Award;
pub use statements::SCHEMA;

/// The arbiter at work on one request.
#[derive(Clone, Copy, Debug)]
pub struct Arbiter<'a, D, C, Z> {
    /// Its own database.
    pub database: &'a D,
    pub chain: &'a C,
    /// The port that waits: tests pass time, workers sleep.
    pub sleep: &'a Z,
    /// The contract.
    pub deployment: &'a Deployment,
    /// Its key: signs awards, and pays their fees.
    pub key: &'a SigningKey,
    /// How slots map to time.
    pub slots: &'a SlotConfig,
    /// The wall clock, POSIX ms.
    pub now: Millis,
}

/// The disputed output and the time, as the chain has them.
struct DisputedEscrow {
    escrow: Escrow,
    spent_by: Option<TxHash>,
    tip: Tip,
    /// The escrow's clock: the later of the wall clock and the newest block's time, POSIX ms.
    now: Millis,
}

/// What an award is for, in the outbox.
fn purpose(escrow: &TxRef) -> String {
    format!("award:{escrow}")
}

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Decides, and pays where the time for it has come.
    ///
    /// # Errors
    /// See [`ResolveError`]. The same request may be sent again after any of them.
    pub async fn resolve(&self, request: &ResolveRequest) -> Result<ResolveResult, ResolveError> {
        let own = request.escrow;
        let outputs = self.chain.outputs_of(&own.tx).await?.ok_or(ResolveError::Unknown)?;
        let made = outputs.into_iter().find(|output| output.utxo.reference == own && !output.collateral);
        let made = made.ok_or(ResolveError::Unknown)?;
        // What is signed is about what its maker's bytes say, whatever the provider says that it holds.
        let output = self.utxos_of(&own.tx).await?.made.into_iter().find(|output| output.reference == own);
        let escrow = Escrow::read(output.ok_or(ResolveError::Unknown)?, self.deployment)?;
        let reads = vec![statements::walk(&own), statements::award(&own), live_for(&purpose(&own))];
        let [walk, award, entry] = exactly(self.database.batch(reads).await?)?;
        let tip = self.chain.tip().await?;
        let disputed = DisputedEscrow { escrow, spent_by: made.spent_by, tip, now: self.now.max(tip.time_ms) };

        if let Some(award) = award.first_json::<Award>()? {
            return self.carry_out(&disputed, award, Entry::first(&entry)?).await;
        }
        let lock = self.lock_of(&own, walk.first_json()?).await?;
        let verdict = self.weigh(&disputed, lock, request).await?;
        let why = nothing_to_decide(&disputed);
        let Some(winner) = verdict.winner.filter(|_| why.is_none()) else {
            return Ok(resolution::undecided(verdict, why));
        };
        let (_, split) = divide(&disputed.escrow, winner).ok_or(ResolveError::Unpayable)?;
        let award = self.persist_award_once(&own, &Award::new(&verdict, winner, split)).await?;
        self.carry_out(&disputed, award, None).await
    }

    /// Fixes an award permanently; where another request was faster, its award.
    async fn persist_award_once(&self, own: &TxRef, award: &Award) -> Result<Award, ResolveError> {
        let batch = vec![statements::fix_award(own, award, self.now)?, statements::award(own)];
        let [_, fixed] = exactly(self.database.batch(batch).await?)?;
        Ok(fixed.first_json()?.ok_or_else(|| DatabaseError("an award was not kept".into()))?)
    }
}

/// Why there is nothing to decide about an escrow.
fn nothing_to_decide(disputed: &DisputedEscrow) -> Option<String> {
    if let Some(by) = disputed.spent_by {
        return Some(format!("the escrow was spent by {by}: ask about what it is now, if it goes on"));
    }
    let state = disputed.escrow.datum.state;
    (state != escrow::State::Disputed)
        .then(|| format!("the escrow is {}, not Disputed: nothing to decide", state.name()))
}
