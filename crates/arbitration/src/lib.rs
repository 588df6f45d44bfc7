//! How the arbiter settles a dispute, from a request to one payout.
//!
//! ```text
//! request ──> the output on the chain ──walk back──> its lock         (walk.rs)
//!               │ evidence, kept if it is what the seller posted       (weigh.rs)
//!               v
//!   no verdict <── verdict ──fixed for good──> decision ──> signed, until the window opens
//!                                                 └──> split signed, transaction written down, sent   (payout.rs)
//! ```
//!
//! What the chain says is asked each time; what is stored only makes sure that an output is decided once, and that one
//! transaction at a time stands for its payout. All of them spend the same output, so the ledger itself pays once.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod answer;
mod error;
mod payout;
mod request;
mod settlement;
mod walk;
mod weigh;

use cardano::{
    TxHash, TxRef,
    chain::{Chain, Tip},
    evaluation::Evaluate,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
};
use escrow::{Deployment, evidence::Winner, plan::Escrow, spend::Spent};
use market::arbiter as store;
use sql::{Database, DatabaseError, exactly};
use x402_cardano::settlement::Sleep;

use answer::Decision;
pub use answer::Resolution;
pub use error::ResolveError;
pub use request::{MAX_LISTING_ID, MAX_OUTPUT_BYTES, Malformed, Request};
pub use settlement::settlement;

/// The arbiter at work on one request.
#[derive(Clone, Copy, Debug)]
pub struct Arbiter<'a, D, C, Z> {
    /// Its own database.
    pub database: &'a D,
    /// The chain.
    pub chain: &'a C,
    /// Waiting.
    pub sleep: &'a Z,
    /// The contract.
    pub deployment: &'a Deployment,
    /// Its key: signs settlements, and pays their fees.
    pub key: &'a SigningKey,
    /// How slots map to time.
    pub slots: &'a SlotConfig,
    /// The wall clock, POSIX ms.
    pub now: Millis,
}

/// The disputed output and the time, as the chain has them.
struct Scene {
    escrow: Escrow,
    spent_by: Option<TxHash>,
    tip: Tip,
    /// The escrow's clock: the later of the wall clock and the newest block's time, POSIX ms.
    now: Millis,
}

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Decides, and pays where the time for it has come.
    ///
    /// # Errors
    /// See [`ResolveError`]. The same request may be sent again after any of them.
    pub async fn resolve(&self, request: &Request) -> Result<Resolution, ResolveError> {
        let own = request.escrow;
        let outputs = self.chain.outputs_of(&own.tx).await?.ok_or(ResolveError::Unknown)?;
        let made = outputs.iter().find(|output| output.utxo.reference == own && !output.collateral);
        let made = made.ok_or(ResolveError::Unknown)?;
        let escrow = Escrow::read(made.utxo.clone(), self.deployment)?;
        let reads = vec![store::walk(&own), store::decision(&own), store::live_payout(&own)];
        let [walk, decision, payout] = exactly(self.database.batch(reads).await?)?;
        let tip = self.chain.tip().await?;
        let now = self.now.max(tip.time_ms);
        let scene = Scene { escrow, spent_by: made.spent_by, tip, now };

        if let Some(decision) = decision.first_json::<Decision>()? {
            return self.carry_out(&scene, decision, store::payout(&payout)?).await;
        }
        let lock = self.lock_of(&scene.escrow, walk.first_json()?).await?;
        let verdict = self.weigh(&scene, lock, request).await?;
        if let Some(why) = undecidable(&scene) {
            return Ok(Resolution::nothing_to_decide(&verdict, why));
        }
        let Some(winner) = verdict.winner else { return Ok(Resolution::no_verdict(&verdict)) };
        let (_, split) = settlement(&scene.escrow, winner).ok_or(ResolveError::Unpayable)?;
        let decision = self.fix(&own, winner, Decision::decided(&verdict, winner, split)).await?;
        self.carry_out(&scene, decision, None).await
    }

    /// Fixes a decision for good; where another request was faster, its decision.
    async fn fix(&self, own: &TxRef, winner: Winner, decision: Decision) -> Result<Decision, ResolveError> {
        let lost = |what: &str| DatabaseError(format!("a decision {what}"));
        let json = serde_json::to_string(&decision).map_err(|_| lost("that cannot be written"))?;
        let batch = vec![store::fix_decision(own, answer::name(winner), &json, self.now), store::decision(own)];
        let [_, fixed] = exactly(self.database.batch(batch).await?)?;
        Ok(fixed.first_json()?.ok_or_else(|| lost("was not kept"))?)
    }

    /// What became of an escrow that is decided and spent: settled as signed, for a dispute ends in no other way; or it
    /// went on before the window, by its parties.
    async fn spent(&self, scene: &Scene, decision: Decision, by: TxHash) -> Result<Resolution, ResolveError> {
        let outputs = self.chain.outputs_of(&by).await?.ok_or(ResolveError::Lagging)?;
        let outputs: Vec<_> = outputs.into_iter().map(|output| output.utxo).collect();
        Ok(match scene.escrow.spent_into(&outputs, self.deployment) {
            Spent::Ended(_) => Resolution::paid(decision, by),
            Spent::Continues(_) => Resolution::moved_on(decision, by),
        })
    }
}

/// Why there is nothing to decide about an escrow.
fn undecidable(scene: &Scene) -> Option<String> {
    if let Some(by) = scene.spent_by {
        return Some(format!("the escrow was spent by {by}: ask about what it is now, if it goes on"));
    }
    let state = scene.escrow.datum.state;
    (state != escrow::State::Disputed)
        .then(|| format!("the escrow is {}, not Disputed: nothing to decide", state.name()))
}
