//! Carrying a decision out: one transaction at a time, written down before it is sent.
//!
//! ```text
//! none ──build, sign, write down──> claimed ──taken by a provider──> submitted ──in a block──> spent, on the chain
//!   ^                                  │ refused at its only attempt     │
//!   └──────────── ended <──────────────┴──── its time is over ───────────┘
//! ```

use sql::{Database, exactly};
use std::collections::BTreeSet;

use cardano::{
    TxRef,
    chain::{Chain, Submission},
    evaluation::Evaluate,
    slots::Millis,
    tx::build::{BuildError, BuiltTx, Wallet},
};
use escrow::{
    AdminSignature,
    plan::{ChainTime, DraftError, PlanError, Planner, Step},
};
use market::{
    arbiter::{self as store, Payout},
    wallet::Promises,
};
use x402_cardano::settlement::Sleep;

use crate::{Arbiter, Decision, Resolution, ResolveError, Scene, settlement};

/// How long a submission of somebody else's is waited for, in ms: longer than the provider may take to answer one.
const SENDING_MS: Millis = 16_000;
/// Waits between looks at it.
const LOOKS_MS: [Millis; 6] = [100, 200, 400, 800, 1_500, 2_000];
/// Taken transactions are sent again after this long without a block: a provider may have lost them.
const RESEND_MS: Millis = 40_000;
/// How often a payout is built again because another took its inputs first.
const MAX_TRIES: u32 = 8;
/// After this many refusals by the provider it is not for the inputs.
const MAX_REFUSALS: u32 = 3;

/// What came of an attempt to build.
enum Begun {
    /// Written down by us: ours to send.
    Ours(Payout),
    /// Another request was faster.
    Other(Payout),
    /// Another payout took an input.
    InputsTaken,
    /// The provider refuses it: mostly because another payout has just spent what this one would.
    Refused(String),
    /// Too early, until this time.
    NotYet(Millis),
}

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Pays as decided, or says when.
    pub(crate) async fn carry_out(
        &self,
        scene: &Scene,
        decision: Decision,
        standing: Option<Payout>,
    ) -> Result<Resolution, ResolveError> {
        if let Some(by) = scene.spent_by {
            return match standing.filter(|payout| payout.tx == by) {
                Some(_) => Ok(Resolution::paid(decision, by)),
                None => self.spent(scene, decision, by).await,
            };
        }
        if let Some(payout) = standing {
            if scene.tip.slot < payout.valid_until {
                return self.see_through(scene, decision, payout).await;
            }
            self.database.run(store::end_expired(&payout.tx)).await?;
        }
        let opens = scene.escrow.datum.deadlines.external_dispute_unlock;
        if scene.now < opens {
            return Ok(Resolution::signed(decision, opens));
        }
        let mut refusals: u32 = 0;
        for attempt in 0..MAX_TRIES {
            match self.begin(scene, &decision).await? {
                Begun::Ours(payout) => return self.send(scene, decision, payout).await,
                Begun::Other(payout) => return self.see_through(scene, decision, payout).await,
                Begun::NotYet(opens) => return Ok(Resolution::signed(decision, opens)),
                Begun::InputsTaken => {}
                Begun::Refused(reason) => {
                    refusals = refusals.saturating_add(1);
                    if refusals >= MAX_REFUSALS {
                        return Err(ResolveError::Refused(reason));
                    }
                }
            }
            self.sleep.sleep(Millis::from(attempt).saturating_add(1).saturating_mul(150)).await;
        }
        Err(ResolveError::Busy)
    }

    /// Builds a payout and writes it down, unless another was faster.
    async fn begin(&self, scene: &Scene, decision: &Decision) -> Result<Begun, ResolveError> {
        let own = scene.escrow.utxo.reference;
        let address = self.key.enterprise_address();
        let [live, sent, reserved] = {
            let [sent, reserved] = store::promises(self.now, scene.tip.slot);
            exactly(self.database.batch(vec![store::live_payout(&own), sent, reserved]).await?)?
        };
        if let Some(payout) = store::payout(&live)? {
            return Ok(Begun::Other(payout));
        }
        let promised = Promises::read(&address, &sent, &reserved)?;
        let built = match self.build(scene, decision, &promised).await {
            Ok(built) => built,
            Err(DraftError::Plan(PlanError::NotYet(opens))) => return Ok(Begun::NotYet(opens)),
            // Change of a payout that is being sent right now will be spendable in a moment.
            Err(DraftError::Build(BuildError::Insufficient { .. } | BuildError::CollateralMissing { .. }))
                if promised.in_flight || !promised.reserved.is_empty() =>
            {
                return Ok(Begun::InputsTaken);
            }
            Err(DraftError::Refused(reason)) => return Ok(Begun::Refused(reason)),
            Err(error) => return Err(error.into()),
        };
        let [insert, reserve] = store::begin_payout(&own, &built, self.now);
        let [ours, _, live] = exactly(self.database.batch(vec![insert, reserve, store::live_payout(&own)]).await?)?;
        Ok(match (store::payout(&ours)?, store::payout(&live)?) {
            (Some(payout), _) => Begun::Ours(payout),
            (None, Some(payout)) => Begun::Other(payout),
            (None, None) => Begun::InputsTaken,
        })
    }

    /// The transaction: signed for exactly this output and this split.
    async fn build(&self, scene: &Scene, decision: &Decision, promised: &Promises) -> Result<BuiltTx, DraftError> {
        let unsettled = || DraftError::Plan(PlanError::PayoutTooHigh);
        let winner = decision.who_wins().ok_or_else(unsettled)?;
        let (intent, _) = settlement(&scene.escrow, winner).ok_or_else(unsettled)?;
        let address = self.key.enterprise_address();
        let signature = AdminSignature::sign(self.key, &address, &intent).map_err(|_| unsettled())?;
        let step = Step::WithdrawDisputed { intent, signatures: vec![signature] };
        let parameters = self.chain.protocol_parameters().await?;
        let shown = self.chain.utxos_at(&address.to_string()).await?;
        let utxos = promised.spendable(&shown);
        let none: BTreeSet<TxRef> = BTreeSet::new();
        let wallet = Wallet { address, utxos: &utxos, reserved: &none };
        let planner = Planner { deployment: self.deployment, parameters: &parameters, slots: self.slots };
        let time = ChainTime { tip_slot: scene.tip.slot, now: scene.now };
        let draft = planner.draft(self.chain, &scene.escrow, &step, time, &wallet).await?;
        Ok(draft.sign(&[self.key])?)
    }

    /// Goes on with a payout that stands: waits for whoever is sending it, and sends it again where that may have failed.
    async fn see_through(
        &self,
        scene: &Scene,
        decision: Decision,
        mut payout: Payout,
    ) -> Result<Resolution, ResolveError> {
        let own = scene.escrow.utxo.reference;
        let age = |payout: &Payout| self.now.saturating_sub(payout.attempted_at);
        for pause in LOOKS_MS {
            if payout.submitted || age(&payout) >= SENDING_MS {
                break;
            }
            self.sleep.sleep(pause).await;
            payout = store::payout(&self.database.run(store::live_payout(&own)).await?)?.ok_or(ResolveError::Busy)?;
        }
        if payout.submitted && age(&payout) < RESEND_MS {
            return Ok(Resolution::paid(decision, payout.tx));
        }
        match store::payout(&self.database.run(store::retry_payout(&payout, self.now)).await?)? {
            Some(payout) => self.send(scene, decision, payout).await,
            None => Err(ResolveError::Busy),
        }
    }

    /// Sends a payout whose attempt is written down.
    async fn send(&self, scene: &Scene, decision: Decision, payout: Payout) -> Result<Resolution, ResolveError> {
        let reason = match self.chain.submit(&payout.cbor).await? {
            Submission::Accepted => {
                self.database.run(store::mark_submitted(&payout.tx)).await?;
                return Ok(Resolution::paid(decision, payout.tx));
            }
            Submission::Refused(reason) => reason,
        };
        // Refused because it is done, by us or by somebody who sent what we signed?
        let own = scene.escrow.utxo.reference;
        let outputs = self.chain.outputs_of(&own.tx).await?.ok_or(ResolveError::Lagging)?;
        let spent_by = outputs.iter().find(|output| output.utxo.reference == own).and_then(|it| it.spent_by);
        match spent_by {
            Some(by) if by == payout.tx => {
                self.database.run(store::mark_submitted(&payout.tx)).await?;
                Ok(Resolution::paid(decision, by))
            }
            Some(by) => self.spent(scene, decision, by).await,
            // A provider refuses what waits in its mempool already. If it does not, the payout ends with its time.
            None if payout.submitted => Ok(Resolution::paid(decision, payout.tx)),
            None => {
                self.database.run(store::end_refused(&payout.tx, &reason)).await?;
                Err(ResolveError::Refused(reason))
            }
        }
    }
}
