//! Settles disputes: from a request, which may come from anyone, to exactly one payout.
//!
//! ```text
//! request ──> the output on the chain ──trace back──> its lock        (trace.rs)
//!               │ evidence, stored if it matches the seller's result   (weigh.rs)
//!               v
//!   no verdict <── verdict ──made permanent──> award ──> signed, until the window opens
//!                                                └──> split signed, recorded in the outbox, submitted   (payout.rs)
//! ```
//!
//! Each request reads the chain. The database only guarantees that an escrow is decided once, and that at most one
//! payout transaction for it is live at a time. All payouts of an escrow spend the same output, so the ledger itself
//! pays only once.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod division;
mod error;
mod payout;
mod request;
mod resolution;
mod statements;
mod trace;
mod weigh;

use cardano::{
    TxHash, TxRef,
    chain::{Chain, Tip},
    evaluation::Evaluate,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
};
use escrow::{Deployment, plan::Escrow};
use outbox::{Sleep, live_for};
use sql::{Database, DatabaseError};

pub use api_types::arbiter::{DisputedListing, Finding, ResolveRequest, ResolveResult};
pub use division::divide;
pub use error::ResolveError;
pub use request::{MAX_OUTPUT_BYTES, parse};
use resolution::Award;
use statements::AwardRow;
pub use statements::SCHEMA;

/// The arbiter, with everything that it needs to handle one request.
#[derive(Clone, Copy, Debug)]
pub struct Arbiter<'a, D, C, Z> {
    /// The arbiter's own database.
    pub database: &'a D,
    pub chain: &'a C,
    /// Timer for the delays between polls. Tests replace it with a simulated clock.
    pub sleep: &'a Z,
    /// Deployed contract.
    pub deployment: &'a Deployment,
    /// The arbiter's key, which signs awards and pays their fees.
    pub key: &'a SigningKey,
    /// Conversion between slots and time.
    pub slots: &'a SlotConfig,
    /// Wall clock in POSIX milliseconds.
    pub now: Millis,
}

/// The disputed escrow, the transaction that spent it, if any, and the newest block.
struct DisputedEscrow {
    escrow: Escrow,
    spent_by: Option<TxHash>,
    tip: Tip,
    /// The later of the wall clock and the newest block's time, in POSIX milliseconds.
    now: Millis,
}

/// Returns the outbox purpose of the payout for this escrow. The outbox allows at most one open or included transaction
/// with the same purpose.
fn purpose(escrow: &TxRef) -> String {
    format!("award:{escrow}")
}

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Decides a dispute, and pays the award if arbiters may already settle the dispute. The contract allows that from
    /// the deadline `external_dispute_unlock` on.
    ///
    /// # Errors
    /// See [`ResolveError`]. After any error, the same request may be sent again.
    pub async fn resolve(&self, request: &ResolveRequest) -> Result<ResolveResult, ResolveError> {
        let own = request.escrow;
        let outputs = self.chain.outputs_of(&own.tx).await?.ok_or(ResolveError::Unknown)?;
        let made = outputs.into_iter().find(|output| output.utxo.reference == own && !output.not_on_ledger);
        let made = made.ok_or(ResolveError::Unknown)?;
        // The signature must cover what the output really holds, so it is read from the transaction's bytes rather than
        // from the provider's summary.
        let output = self.utxos_of(&own.tx).await?.created.into_iter().find(|output| output.reference == own);
        let escrow = Escrow::read(output.ok_or(ResolveError::Unknown)?, self.deployment)?;
        let reads = (statements::trace(&own), statements::award(&own), live_for(&purpose(&own)));
        let (trace, award, entry) = self.database.batch(reads).await?;
        let tip = self.chain.tip().await?;
        let disputed = DisputedEscrow { escrow, spent_by: made.spent_by, tip, now: self.now.max(tip.time_ms) };

        if let Some(AwardRow { award }) = award {
            return self.pay_or_announce(&disputed, award, entry).await;
        }
        let lock = self.lock_of(&own, trace).await?;
        let verdict = self.weigh(&disputed, lock, request).await?;
        let why = nothing_to_decide(&disputed);
        let Some(winner) = verdict.winner.filter(|_| why.is_none()) else {
            return Ok(resolution::undecided(verdict, why));
        };
        let (_, split) = divide(&disputed.escrow, winner).ok_or(ResolveError::Unpayable)?;
        let award = self.persist_award_once(&own, &Award::new(&verdict, winner, split)).await?;
        self.pay_or_announce(&disputed, award, None).await
    }

    /// Stores `award`, unless an award is already stored for the escrow. Returns the stored award.
    async fn persist_award_once(&self, own: &TxRef, award: &Award) -> Result<Award, ResolveError> {
        let batch = (statements::store_award(own, award, self.now)?, statements::award(own));
        let ((), fixed) = self.database.batch(batch).await?;
        Ok(fixed.ok_or_else(|| DatabaseError("an award was not kept".into()))?.award)
    }
}

/// Returns the reason why there is nothing to decide about an escrow, or `None` if it is an open dispute.
fn nothing_to_decide(disputed: &DisputedEscrow) -> Option<String> {
    if let Some(by) = disputed.spent_by {
        return Some(format!("the escrow was spent by {by}: ask about what it is now, if it goes on"));
    }
    let state = disputed.escrow.datum.state;
    (state != escrow::State::Disputed)
        .then(|| format!("the escrow is {}, not Disputed: nothing to decide", state.name()))
}
