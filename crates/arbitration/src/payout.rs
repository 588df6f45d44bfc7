//! Pays an award. Records the payout in the outbox before it is submitted, and never has two open payouts of one award.

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
    Attempt, Decision, Entry, EntryState, Kind, NewEntry, Next, Outbox, RESEND_UNANSWERED_MS, RetryPolicy, Sent, Sleep,
    Trust, WalletSnapshot, by_id, live_for, open, snapshot,
};
use sql::Database;

use crate::{Arbiter, Award, DisputedEscrow, ResolveError, ResolveResult, divide, purpose};

/// Delays in milliseconds between checks of a payout that another request is submitting. Their sum exceeds
/// [`RESEND_UNANSWERED_MS`], after which this request may submit the payout again.
const OTHER_REQUEST_MS: [Millis; 6] = [100, 200, 400, 800, 1_500, 2_000];
/// Delays in milliseconds before a payout is built again, because another transaction has reserved or spent its inputs.
const REBUILD_MS: [Millis; 5] = [200, 400, 800, 1_600, 2_500];

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    const fn outbox(&self) -> Outbox<'_, D, C> {
        Outbox { database: self.database, chain: self.chain, hook: &|_, _| Ok(vec![]) }
    }

    /// Pays the award, or returns the time from which arbiters may settle the dispute.
    pub(crate) async fn pay_or_announce(
        &self,
        disputed: &DisputedEscrow,
        award: Award,
        recorded: Option<Entry>,
    ) -> Result<ResolveResult, ResolveError> {
        if let Some(by) = disputed.spent_by {
            return self.spent(disputed, award, by).await;
        }
        if let Some(entry) = recorded
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

    /// Returns the outcome of a dispute whose escrow the transaction `by` has already spent. If the transaction ended
    /// the escrow, it paid the award, because a disputed escrow can end in no other way. If it created a new output of
    /// the escrow, a party has acted, and the award can no longer be paid.
    async fn spent(&self, disputed: &DisputedEscrow, award: Award, by: TxHash) -> Result<ResolveResult, ResolveError> {
        if let Some(mut entry) = self.database.fetch(by_id(&by)).await? {
            if entry.state != EntryState::Included {
                self.outbox().refresh(&mut entry, Some(&disputed.tip), Trust::Unproven, self.now).await?;
            }
            return Ok(award.paid(by));
        }
        let outputs = self.utxos_of(&by).await?.created;
        Ok(match disputed.escrow.spent_into(&outputs) {
            Spent::Ended(_) => award.paid(by),
            Spent::Continues(_) => award.superseded(by),
        })
    }

    /// Follows a payout that is already recorded. Waits in case another request is submitting it, and then polls the
    /// chain. Returns `None` if the payout was rejected or has expired.
    async fn drive(
        &self,
        disputed: &DisputedEscrow,
        mut entry: Entry,
        mut now: Millis,
    ) -> Result<Option<TxHash>, ResolveError> {
        for wait in OTHER_REQUEST_MS {
            if entry.state != EntryState::Claimed || now >= entry.attempted_at_ms.saturating_add(RESEND_UNANSWERED_MS) {
                break;
            }
            self.sleep.sleep(wait).await;
            now = now.saturating_add(wait);
            entry = self.database.fetch(by_id(&entry.tx)).await?.ok_or(ResolveError::Busy)?;
        }
        if self.outbox().refresh(&mut entry, Some(&disputed.tip), Trust::Unproven, now).await? == Decision::Reopen {
            self.outbox().refresh(&mut entry, Some(&disputed.tip), Trust::Unproven, now).await?;
        }
        accepted_tx(&entry)
    }

    /// Pays an award and returns the id of the transaction. If another request has recorded a payout of this award,
    /// follows that payout instead.
    async fn pay(&self, disputed: &DisputedEscrow, award: &Award) -> Result<TxHash, ResolveError> {
        // Outputs reserved by earlier awards are released only here.
        let earlier = self.database.fetch(open(&self.key.enterprise_address(), Kind::Award)).await?;
        self.outbox().close(earlier, &disputed.tip, self.now).await?;
        let parameters = self.chain.protocol_parameters().await?;
        let (policy, mut rejected) = (RetryPolicy { sleep: self.sleep, pauses: &REBUILD_MS }, None);
        let intent = async |attempt: Attempt| {
            let builds = attempt.sent.is_none();
            match self.next(disputed, award, &parameters, attempt).await {
                Err(ResolveError::Refused(reason)) if builds => {
                    rejected = Some(reason);
                    Ok(Next::Retry)
                }
                next => next,
            }
        };
        let paid = self.outbox().send(&policy, self.now, intent).await?;
        paid.ok_or_else(|| rejected.map_or(ResolveError::Busy, ResolveError::Refused))
    }

    async fn next(
        &self,
        disputed: &DisputedEscrow,
        award: &Award,
        parameters: &ProtocolParameters,
        attempt: Attempt,
    ) -> Result<Next<TxHash>, ResolveError> {
        match attempt.sent {
            None => {}
            Some(Sent::NotRecorded) => return Ok(Next::Retry),
            Some(Sent::Submitted(entry)) => return accepted_tx(&entry)?.map(Next::Done).ok_or(ResolveError::Busy),
            Some(Sent::Rejected(entry, reason)) => {
                return accepted_tx(&entry)?.map(Next::Done).ok_or(ResolveError::Refused(reason));
            }
        }
        let purpose = purpose(&disputed.escrow.utxo.reference);
        let address = self.key.enterprise_address();
        let reads = (live_for(&purpose), snapshot(&address, disputed.tip.slot, attempt.now));
        let (live, known) = self.database.batch(reads).await?;
        if let Some(entry) = live {
            // Another request has recorded it.
            return self.drive(disputed, entry, attempt.now).await?.map(Next::Done).ok_or(ResolveError::Busy);
        }
        let wallet = WalletSnapshot::of(&address, known)?;
        match self.build(disputed, award, parameters, &wallet).await {
            // Change of a transaction that is being submitted will be spendable soon.
            Err(ResolveError::Wallet(_)) if wallet.in_flight => Ok(Next::Retry),
            built => {
                let new = NewEntry::built(Kind::Award, purpose, address, &built?);
                Ok(Next::Send(Box::new(new), Box::new(wallet)))
            }
        }
    }

    /// Builds and signs the transaction that pays the award. The arbiter's signature covers the escrow's output
    /// reference and both amounts, so it cannot be reused for another escrow.
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

/// Returns the transaction id of a payout that a node has accepted, or `None` if the payout was rejected or has
/// expired.
fn accepted_tx(entry: &Entry) -> Result<Option<TxHash>, ResolveError> {
    match entry.state {
        EntryState::Submitted | EntryState::Included => Ok(Some(entry.tx)),
        EntryState::Claimed => Err(ResolveError::Unanswered),
        EntryState::Refused | EntryState::Expired => Ok(None),
    }
}
