//! Fourth part of a run of the watcher: performs the due tasks, one transaction each, stored before it is submitted.
//!
//! The platform's wallet pays fees and collateral of buyers' actions too, so that buyers with an empty service wallet
//! get the whole escrow back. An action that fails is postponed and does not delay others.

mod ask;
mod job;

use api_types::{Alarm, AlarmName};
use std::collections::VecDeque;

use cardano::{
    Lovelace, TxHash,
    chain::{ChainError, Utxo},
    keys::SigningKey,
    tx::build::{NewOutput, TxPlan, Validity, build},
};
use escrow::Deployment;
use outbox::{EntryState, Guard, Kind, NewEntry, Replacement, Sent, VALID_SLOTS, given_up_for};
use serde_json::json;
use sql::{Database, Write};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{MAX_PROVIDER_FAILURES, Tick},
    due::{self, DuePayout},
    plan::{DueAction, Task},
};
use crate::{
    contents::Contents,
    platform::{self, PlatformWallet},
    port_error::PortError,
    subject,
};

/// Maximum number of calls to the provider and the arbiter that it takes to ask the arbiter once.
const CALLS_TO_ASK: u32 = 4;
/// Maximum number of provider calls for an action that needs a second attempt, including the calls that read the
/// platform's wallet.
const CALLS_PER_JOB: u32 = 8;
/// Maximum number of provider calls for an action that needs a second attempt, if the platform's wallet was read
/// before. The second attempt reads it again.
const CALLS_WITH_WALLET: u32 = 6;
/// SQL query that returns a row if the creator of a purchase is no longer owed a payout; the payout is then not
/// recorded. A concurrent run of the watcher may have found that a rollback removed the arbiter's award. The creator's
/// share is then paid out of the escrow.
const NOT_OWED: &str = "SELECT 'not owed' WHERE NOT EXISTS (SELECT 1 FROM escrows WHERE purchase_id = ?1 ->> '$.purchase' AND creator_due = 1)";

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Performs tasks as long as provider calls are left. A task that fails because of the provider is postponed. After
    /// several such failures, the remaining tasks are left to the watcher's next run.
    pub(super) async fn act(
        &mut self,
        deployment: &Deployment,
        mut tasks: VecDeque<Task>,
        needs: Lovelace,
    ) -> Result<(), PortError> {
        let mut provider_failures = 0_u32;
        while let Some(task) = tasks.pop_front() {
            if self.is_put_aside(&task) {
                continue;
            }
            if self.calls_left() < self.calls_for(&task) {
                return Ok(());
            }
            let escrows = task.escrows();
            let purchases: Vec<TxHash> = escrows.iter().map(|action| action.due.purchase).collect();
            let late: Vec<Write> =
                escrows.iter().map(|action| due::retry_later(&action.due, self.view.clock)).collect();
            match self.perform(deployment, task, needs).await {
                Ok(instead) => {
                    provider_failures = 0;
                    instead.into_iter().rev().for_each(|job| tasks.push_front(Task::Act(job)));
                }
                Err(PortError::Chain(ChainError::BudgetExhausted | ChainError::TimeOver)) => return Ok(()),
                Err(error @ (PortError::Chain(_) | PortError::Contents(_))) => {
                    self.report.note(&"an action", &error);
                    for purchase in purchases {
                        self.late_results.entry(purchase).and_modify(|why| *why = error.to_string());
                    }
                    // The provider is at fault and not this task, so the next one would fail too.
                    if matches!(&error, PortError::Chain(error) if error.rejects_all_calls()) {
                        return Ok(());
                    }
                    self.write(late).await?;
                    provider_failures = provider_failures
                        .saturating_add(u32::from(!matches!(error, PortError::Chain(ChainError::TooLong))));
                    if provider_failures >= MAX_PROVIDER_FAILURES {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns whether to leave a task to a later run of the watcher, because too little time is left to ask the
    /// arbiter, or because the platform's wallet need not be checked now.
    fn is_put_aside(&self, task: &Task) -> bool {
        match task {
            Task::Ask(_) => !self.ports.arbiter.has_time(),
            Task::Split => self.wallet.is_none() && !self.view.checks_wallet,
            Task::Pay(_) | Task::Act(_) => false,
        }
    }

    fn calls_for(&self, task: &Task) -> u32 {
        match task {
            Task::Ask(_) => CALLS_TO_ASK,
            Task::Split => CALLS_WITH_WALLET,
            Task::Pay(_) | Task::Act(_) if self.wallet.is_some() => CALLS_WITH_WALLET,
            Task::Pay(_) | Task::Act(_) => CALLS_PER_JOB,
        }
    }

    /// Performs a task on one or more escrows. If several escrows could not share a transaction, returns smaller tasks
    /// to try instead.
    async fn perform(
        &mut self,
        deployment: &Deployment,
        task: Task,
        needs: Lovelace,
    ) -> Result<Vec<Vec<DueAction>>, PortError> {
        if let Task::Ask(action) = &task {
            return self.ask(action).await;
        }
        let Some(key) = self.ports.keys.seller() else { return Ok(vec![]) };
        let mut wallet = self.take_wallet(key, needs).await?;
        let done = match task {
            Task::Pay(payout) => self.pay_creator(&payout, key, &mut wallet).await.map(|()| vec![]),
            Task::Act(cases) => self.act_together(deployment, cases, key, &mut wallet).await,
            Task::Split => self.split_outputs(key, &mut wallet).await.map(|()| vec![]),
            Task::Ask(_) => Ok(vec![]),
        };
        self.wallet = Some(wallet);
        done
    }

    /// Splits the largest output of the platform's wallet if too few outputs are left for independent transactions.
    async fn split_outputs(&mut self, key: &SigningKey, platform: &mut PlatformWallet) -> Result<(), PortError> {
        let Some((from, outputs)) = platform::split(&platform.utxos, platform.address) else { return Ok(()) };
        let purpose = format!("split:{}", from.reference);
        let plan = TxPlan {
            outputs,
            inputs: vec![from],
            validity: Validity { from: None, until: self.view.tip.slot.saturating_add(VALID_SLOTS) },
            ..TxPlan::default()
        };
        match build(&plan, &platform.wallet(), &platform.parameters).and_then(|draft| draft.sign(&[key])) {
            Ok(built) => {
                let new = NewEntry::built(Kind::Split, purpose, platform.address, &built);
                self.send(&new, &built.facts.change, platform).await?;
            }
            Err(error) => self.report.note(&"splitting the wallet's outputs", &error),
        }
        Ok(())
    }

    /// Pays the creator's share of a sale that was won in a dispute.
    async fn pay_creator(
        &mut self,
        payout: &DuePayout,
        key: &SigningKey,
        platform: &mut PlatformWallet,
    ) -> Result<(), PortError> {
        // A payment is not evaluated before submission, so it may spend only outputs that the provider shows.
        platform.drop_unshown();
        let purpose = format!("payout:{}", payout.purchase);
        let ended = self.ports.database.fetch(given_up_for(&purpose, self.ports.now)).await?;
        let inputs = match self.outbox().replacement(ended, &platform.snapshot, &platform.utxos, self.ports.now).await?
        {
            Replacement::Inputs(utxos) => utxos,
            Replacement::InBlock(tx) => {
                self.report.note(&tx, &"it pays the seller, and the provider does not show its block");
                return Ok(());
            }
            Replacement::Unresolved(tx) => {
                self.report.note(&tx, &"it may still pay the seller: nothing keeps it out of a block for now");
                return Ok(());
            }
        };
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(payout.creator, payout.share)],
            auxiliary_data: subject::auxiliary_data(&payout.purchase.to_string()),
            inputs,
            validity: Validity { from: None, until: self.view.tip.slot.saturating_add(VALID_SLOTS) },
            ..TxPlan::default()
        };
        let built = build(&plan, &platform.wallet(), &platform.parameters).and_then(|draft| draft.sign(&[key]));
        match built {
            Ok(built) => {
                let guard = Some(Guard { blocked_by: NOT_OWED, facts: json!({ "purchase": payout.purchase }) });
                let acts_on = vec![payout.purchase];
                let new = NewEntry::built(Kind::Payout, purpose, platform.address, &built);
                let new = NewEntry { acts_on, guard, ..new };
                self.send(&new, &built.facts.change, platform).await?;
            }
            Err(error) => {
                let message = format!("the seller of {} cannot be paid: {error}", payout.purchase);
                self.report.alarms.push(Alarm::new(AlarmName::SellerUnpaid, message));
            }
        }
        Ok(())
    }

    async fn retry_later(&mut self, action: &DueAction, why: &dyn std::fmt::Display) -> Result<(), PortError> {
        self.note_late_result(&action.due.purchase, why);
        self.ports.database.execute(due::retry_later(&action.due, self.view.clock)).await?;
        Ok(())
    }

    fn note_late_result(&mut self, purchase: &TxHash, why: &dyn std::fmt::Display) {
        self.report.note(purchase, why);
        self.late_results.entry(*purchase).and_modify(|known| *known = why.to_string());
    }

    /// Returns the platform's wallet. If it was not read yet, reads outputs that hold at least `needs` in total, or all
    /// outputs if the wallet holds less.
    async fn take_wallet(&mut self, key: &SigningKey, needs: Lovelace) -> Result<PlatformWallet, PortError> {
        if let Some(known) = self.wallet.take() {
            return Ok(known);
        }
        let (ports, tip_slot) = (self.ports, self.view.tip.slot);
        let address = key.enterprise_address();
        Ok(PlatformWallet::read(ports.database, ports.chain, address, tip_slot, ports.now, needs).await?)
    }

    /// Records and submits a transaction, unless a concurrent run of the watcher has recorded one first. Returns the
    /// reason if the ledger rejects the transaction.
    pub(super) async fn send(
        &mut self,
        new: &NewEntry,
        change: &[Utxo],
        platform: &mut PlatformWallet,
    ) -> Result<Option<String>, PortError> {
        let taken = |utxo: &Utxo| new.spends.contains(&utxo.reference) || new.collateral.contains(&utxo.reference);
        platform.utxos.retain(|utxo| !taken(utxo));
        let names: Vec<String> = new.acts_on.iter().map(ToString::to_string).collect();
        let what = match names.as_slice() {
            [] => new.kind.name().to_owned(),
            names => format!("{} of {}", new.kind.name(), names.join(", ")),
        };
        let (entry, refused) = match self.outbox().send_once(new, &platform.snapshot, self.ports.now).await? {
            Sent::Submitted(entry) => (entry, None),
            Sent::Rejected(entry, reason) => (entry, Some(reason)),
            Sent::NotRecorded => {
                self.report.notes.push(format!("{what} is being done already"));
                return Ok(None);
            }
        };
        self.report.acted.push(format!("{what}: {}", new.tx));
        if entry.state == EntryState::Submitted && platform.may_spend_unconfirmed {
            platform.shown.extend(change.iter().map(|utxo| utxo.reference));
            platform.unconfirmed.extend(change.iter().cloned());
        }
        if let Some(reason) = &refused {
            self.report.notes.push(format!("the ledger refused {}: {reason}", new.tx));
            // The inputs that no other transaction has spent are free again.
            let (database, chain, now) = (self.ports.database, self.ports.chain, self.ports.now);
            platform.read_again(database, chain, self.view.tip.slot, now).await?;
        }
        Ok(refused)
    }
}

impl Task {
    /// Returns the escrows on which the task acts.
    fn escrows(&self) -> &[DueAction] {
        match self {
            Self::Pay(_) | Self::Split => &[],
            Self::Ask(action) => std::slice::from_ref(action),
            Self::Act(actions) => actions,
        }
    }
}
