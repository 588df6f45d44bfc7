//! Carrying an award out: one transaction at a time, which lives in the outbox.

use std::collections::BTreeSet;

use cardano::{
    TxHash,
    chain::Chain,
    evaluation::Evaluate,
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{BuiltTx, Wallet},
};
use escrow::{
    AdminSignature,
    plan::{ChainTime, Planner, Step as EscrowStep},
    spend::Spent,
};
use outbox::{
    Decision, Draft, Entry, EntryState, Kind, Outbox, RESEND_UNANSWERED_MS, Sleep, Trust, WalletSnapshot, by_id,
    live_for, open, snapshot, write_down,
};
use sql::{Database, exactly};

use crate::{Arbiter, Award, DisputedEscrow, ResolveError, ResolveResult, divide, purpose};

/// Waits for another request that submits the award: together as long as a submission may take.
const ANSWER_MS: [Millis; 6] = [100, 200, 400, 800, 1_500, 2_000];
/// Waits before an award is built again, because another took its inputs first or has just spent them.
const REBUILD_MS: [Millis; 5] = [200, 400, 800, 1_600, 2_500];

/// Which request has written an award down.
enum WrittenBy {
    /// This one, which is to submit it.
    This(Entry, WalletSnapshot),
    Another(Entry),
}

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    const fn outbox(&self) -> Outbox<'_, D, C> {
        Outbox { database: self.database, chain: self.chain, hook: &|_, _| Ok(vec![]) }
    }

    /// Pays as awarded, or says when.
    pub(crate) async fn carry_out(
        &self,
        disputed: &DisputedEscrow,
        award: Award,
        standing: Option<Entry>,
    ) -> Result<ResolveResult, ResolveError> {
        if let Some(by) = disputed.spent_by {
            return self.spent(disputed, award, by).await;
        }
        if let Some(entry) = standing
            && let Some(tx) = self.drive(disputed, entry, self.now).await?
        {
            return Ok(award.paid(tx));
        }
        let opens = disputed.escrow.datum.deadlines.external_dispute_unlock;
        if disputed.tip.time_ms < opens {
            return Ok(award.signed(opens));
        }
        Ok(award.paid(self.pay(disputed, &award).await?))
    }

    /// How an escrow with an award ended. A dispute ends as signed in no other way; or the parties moved it on before
    /// the window.
    async fn spent(&self, disputed: &DisputedEscrow, award: Award, by: TxHash) -> Result<ResolveResult, ResolveError> {
        if let Some(mut entry) = Entry::first(&self.database.run(by_id(&by)).await?)? {
            if entry.state != EntryState::Included {
                self.outbox().refresh(&mut entry, Some(&disputed.tip), Trust::Unproven, self.now).await?;
            }
            return Ok(award.paid(by));
        }
        let outputs = self.utxos_of(&by).await?.made;
        Ok(match disputed.escrow.spent_into(&outputs) {
            Spent::Ended(_) => award.paid(by),
            Spent::Continues(_) => award.superseded(by),
        })
    }

    /// Goes on with an award that stands: waits for a request that may be submitting it, then does what the chain asks
    /// for.
    /// `None` where it has ended without effect.
    async fn drive(
        &self,
        disputed: &DisputedEscrow,
        mut entry: Entry,
        mut now: Millis,
    ) -> Result<Option<TxHash>, ResolveError> {
        for wait in ANSWER_MS {
            if entry.state != EntryState::Claimed || now >= entry.attempted_at_ms.saturating_add(RESEND_UNANSWERED_MS) {
                break;
            }
            self.sleep.sleep(wait).await;
            now = now.saturating_add(wait);
            entry = Entry::first(&self.database.run(by_id(&entry.tx)).await?)?.ok_or(ResolveError::Busy)?;
        }
        if self.outbox().refresh(&mut entry, Some(&disputed.tip), Trust::Unproven, now).await? == Decision::Unconfirm {
            self.outbox().refresh(&mut entry, Some(&disputed.tip), Trust::Unproven, now).await?;
        }
        taken(&entry)
    }

    /// Writes an award down and submits it, or goes on with the one that another request has written.
    async fn pay(&self, disputed: &DisputedEscrow, award: &Award) -> Result<TxHash, ResolveError> {
        let address = self.key.enterprise_address();
        let mut now = self.now;
        // Only this place frees outputs that earlier awards reserved.
        let earlier = Entry::all(&self.database.run(open(&address, Kind::Award)).await?)?;
        self.outbox().close(earlier, &disputed.tip, now).await?;
        let parameters = self.chain.protocol_parameters().await?;
        let mut waits = REBUILD_MS.into_iter();
        loop {
            match self.write(disputed, award, &parameters, now).await {
                Ok(WrittenBy::This(mut entry, wallet)) => {
                    let refusal = self.outbox().submit_first(&mut entry, Some(&wallet), now).await?;
                    return taken(&entry)?.ok_or_else(|| ResolveError::Refused(refusal.unwrap_or_default()));
                }
                Ok(WrittenBy::Another(entry)) => {
                    return self.drive(disputed, entry, now).await?.ok_or(ResolveError::Busy);
                }
                Err(error @ (ResolveError::Busy | ResolveError::Refused(_))) => {
                    let wait = waits.next().ok_or(error)?;
                    self.sleep.sleep(wait).await;
                    now = now.saturating_add(wait);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Builds an award and writes it down, unless another request was faster.
    async fn write(
        &self,
        disputed: &DisputedEscrow,
        award: &Award,
        parameters: &ProtocolParameters,
        now: Millis,
    ) -> Result<WrittenBy, ResolveError> {
        let purpose = purpose(&disputed.escrow.utxo.reference);
        let address = self.key.enterprise_address();
        let reads = vec![live_for(&purpose), snapshot(&address, disputed.tip.slot, now)];
        let [live, known] = exactly(self.database.batch(reads).await?)?;
        if let Some(entry) = Entry::first(&live)? {
            return Ok(WrittenBy::Another(entry));
        }
        let wallet = WalletSnapshot::read(&address, &known)?;
        let built = match self.build(disputed, award, parameters, &wallet).await {
            // Change of what is being submitted right now will be spendable in a moment.
            Err(ResolveError::Wallet(_)) if wallet.in_flight => return Err(ResolveError::Busy),
            built => built?,
        };
        let draft = Draft::built(Kind::Award, purpose.clone(), address, &built);
        let [written, live] = exactly(self.database.batch(vec![write_down(&draft, now), live_for(&purpose)]).await?)?;
        match (Entry::first(&written)?, Entry::first(&live)?) {
            (Some(entry), _) => Ok(WrittenBy::This(entry, wallet)),
            (None, Some(entry)) => Ok(WrittenBy::Another(entry)),
            (None, None) => Err(ResolveError::Busy),
        }
    }

    /// The transaction: signed for exactly this output and this split.
    async fn build(
        &self,
        disputed: &DisputedEscrow,
        award: &Award,
        parameters: &ProtocolParameters,
        wallet: &WalletSnapshot,
    ) -> Result<BuiltTx, ResolveError> {
        let (intent, _) = divide(&disputed.escrow, award.winner).ok_or(ResolveError::Unpayable)?;
        let address = self.key.enterprise_address();
        let signature = AdminSignature::sign(self.key, &address, &intent)?;
        let withdrawal = EscrowStep::WithdrawDisputed { intent, signatures: vec![signature] };
        let utxos = wallet.spendable(&self.chain.utxos_at(&address.to_string(), |_| false).await?);
        let wallet = Wallet { address, utxos: &utxos, reserved: &BTreeSet::new() };
        let planner = Planner { deployment: self.deployment, parameters, slots: self.slots };
        let time = ChainTime { tip_slot: disputed.tip.slot, now: disputed.now };
        let draft = planner.draft(self.chain, &disputed.escrow, &withdrawal, time, &wallet).await?;
        Ok(draft.sign(&[self.key])?)
    }
}

/// The transaction, if a node took it; `None` where it has ended without effect.
fn taken(entry: &Entry) -> Result<Option<TxHash>, ResolveError> {
    match entry.state {
        EntryState::Submitted | EntryState::Included => Ok(Some(entry.tx)),
        EntryState::Claimed => Err(ResolveError::Unanswered),
        EntryState::Refused | EntryState::Expired => Ok(None),
    }
}
