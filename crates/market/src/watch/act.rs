//! Acting: a transaction for each decision, written down with its inputs before it is sent.
//!
//! The platform's wallet, which is the seller's, pays the fees and the collateral of buyers' actions, too: a buyer whose
//! service wallet is empty still gets the whole escrow back.

use cardano::{
    Address, Lovelace, TxHash,
    chain::{Chain, Submission, Tip, Utxo},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use escrow::{
    Deployment,
    payout::creator_payout,
    plan::{ChainTime, DraftError, Escrow, PlanError, Planner, Step},
    result::result_hash,
};

use super::{
    Arbiter, Dispute, Report, TickError, Watch, confirm,
    decide::{ASK_AGAIN_MS, Decision, Facts, decide},
    due::{self, Due, Holder, Owed},
};
use crate::{
    catalogue,
    database::{Database, DatabaseError, Statement, outcomes},
    statement,
    wallet::{Promises, promises},
};

/// Outside calls that one action takes at most: the escrow, the evaluation, the submission, and a retry.
const CALLS_PER_ACTION: u32 = 5;
/// How long after a plan that failed it is tried again.
const RETRY_MS: Millis = 60_000;
/// How long a payout to a creator stays valid, in slots.
const PAYOUT_SLOTS: u64 = 240;

/// Whose keys the watcher holds.
pub trait Keys {
    /// The seller of record, where we act as such.
    fn seller(&self) -> Option<&SigningKey>;
    /// The key of a service wallet.
    fn buyer(&self, holder: &Holder) -> Option<SigningKey>;
}

/// What pays for actions, read once for each tick that acts.
struct Purse {
    parameters: ProtocolParameters,
    utxos: Vec<Utxo>,
}

/// An action to write down.
struct Deed<'a> {
    purpose: String,
    action: &'static str,
    purchase: &'a TxHash,
    built: &'a BuiltTx,
}

/// A decision with all that it needs.
struct Case {
    due: Due,
    decision: Decision,
    content: String,
}

impl<D: Database, C: Chain + History + Evaluate> Watch<'_, D, C> {
    /// Looks at what is due and acts, as far as the calls reach.
    pub(super) async fn act(
        &self,
        deployment: &Deployment,
        keys: &impl Keys,
        arbiter: &impl Arbiter,
        tip: &Tip,
        (due, owed): (Vec<Due>, Vec<Owed>),
        report: &mut Report,
    ) -> Result<(), TickError> {
        if due.is_empty() && owed.is_empty() {
            return Ok(());
        }
        let time = ChainTime { tip_slot: tip.slot, now: self.now.max(tip.time_ms) };
        let mut purse = None;
        for due in due {
            let case = self.judge(due, keys, time.now).await?;
            if let Decision::Wait(until) = case.decision {
                self.database.run(due::look_again(&case.due, until)).await?;
                continue;
            }
            if (self.calls_left)() < CALLS_PER_ACTION {
                return Ok(());
            }
            if case.decision == Decision::AskArbiter {
                self.ask(arbiter, &case, time.now, report).await?;
                continue;
            }
            let Some(platform) = keys.seller() else { continue };
            if purse.is_none() {
                purse = Some(self.purse(platform).await?);
            }
            let Some(purse) = purse.as_mut() else { continue };
            let planner = Planner { deployment, parameters: &purse.parameters.clone(), slots: &SlotConfig::PREPROD };
            self.act_on(&planner, &case, keys, platform, time, purse, report).await?;
        }
        for owed in owed {
            let Some(platform) = keys.seller() else { return Ok(()) };
            if (self.calls_left)() < CALLS_PER_ACTION {
                return Ok(());
            }
            if purse.is_none() {
                purse = Some(self.purse(platform).await?);
            }
            let Some(purse) = purse.as_mut() else { continue };
            self.pay_creator(&owed, platform, tip, purse, report).await?;
        }
        Ok(())
    }

    async fn judge(&self, due: Due, keys: &impl Keys, now: Millis) -> Result<Case, TickError> {
        let datum = due.datum()?;
        let content = self.database.run(catalogue::content(&due.listing_id)).await?.rows.into_iter().next();
        let content = content.ok_or_else(|| DatabaseError(format!("{} has no content", due.listing_id)))?;
        let seller = keys.seller().map(SigningKey::enterprise_address);
        let decision = decide(&Facts {
            datum: &datum,
            delivered: result_hash(&due.purchase, &content),
            mismatch: due.verification.as_deref() == Some("mismatch"),
            sells: self.sells && seller.is_some() && datum.seller.key_address() == seller,
            buys: due.holder.as_ref().is_some_and(|holder| datum.buyer.key_address() == Some(holder.wallet)),
            now,
        });
        Ok(Case { due, decision, content })
    }

    async fn ask(
        &self,
        arbiter: &impl Arbiter,
        case: &Case,
        now: Millis,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let Due { utxo, listing_id, content_hash, purchase, .. } = &case.due;
        let dispute = Dispute { escrow: *utxo, listing_id, content_hash: *content_hash, output: &case.content };
        match arbiter.resolve(&dispute).await {
            Ok(answer) => report.acted.push(format!("asked the arbiter about {purchase}: {answer}")),
            Err(error) => report.notes.push(format!("the arbiter cannot be asked about {purchase}: {error}")),
        }
        let again = now.saturating_add(ASK_AGAIN_MS);
        self.database.run(due::look_again(&case.due, again)).await?;
        Ok(())
    }

    /// What the platform's wallet may spend now.
    async fn purse(&self, platform: &SigningKey) -> Result<Purse, TickError> {
        let wallet = platform.enterprise_address();
        let parameters = self.chain.protocol_parameters().await?;
        let shown = self.chain.utxos_at(&wallet.to_string()).await?;
        let [sent, reserved] = outcomes(self.database.batch(promises(&wallet, self.now).into()).await?)?;
        let utxos = Promises::read(&wallet, &sent, &reserved)?.spendable(&shown);
        Ok(Purse { parameters, utxos })
    }

    #[allow(clippy::too_many_arguments, reason = "one action with all that it needs; they share no more than a tick")]
    async fn act_on(
        &self,
        planner: &Planner<'_>,
        case: &Case,
        keys: &impl Keys,
        platform: &SigningKey,
        time: ChainTime,
        purse: &mut Purse,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let Due { purchase, utxo, price, creator, holder, .. } = &case.due;
        let Some((action, step)) = step(case, purchase, *price, *creator) else { return Ok(()) };
        let outputs = self.chain.outputs_of(&utxo.tx).await?.unwrap_or_default();
        let output = outputs.into_iter().find(|output| output.utxo.reference == *utxo && output.spent_by.is_none());
        // Spent, or not known to the provider: the chain will tell.
        let Some(escrow) = output.and_then(|output| Escrow::read(output.utxo, planner.deployment).ok()) else {
            return Ok(());
        };
        let buyer = holder.as_ref().and_then(|holder| keys.buyer(holder));
        let signers: Vec<&SigningKey> = std::iter::once(platform).chain(&buyer).collect();
        let wallet = platform.enterprise_address();
        let none = std::collections::BTreeSet::new();
        let from = Wallet { address: wallet, utxos: &purse.utxos, reserved: &none };
        let draft = match planner.plan(&escrow, &step, time) {
            Ok(plan) => planner.draft_of(self.chain, &escrow, whole_to_buyer(plan, &escrow, &step), &from).await,
            // The newest block is not there yet: the next tick tries again.
            Err(PlanError::NotYet(_)) => return Ok(()),
            Err(error) => Err(DraftError::Plan(error)),
        };
        let built = match draft.map(|draft| draft.sign(&signers)) {
            Ok(Ok(built)) => built,
            Err(DraftError::Chain(error)) => return Err(error.into()),
            Ok(Err(error)) => return self.put_off(&case.due, &error.to_string(), time.now, report).await,
            Err(error) => return self.put_off(&case.due, &error.to_string(), time.now, report).await,
        };
        let deed = Deed { purpose: format!("escrow:{utxo}"), action, purchase, built: &built };
        self.send(&deed, &wallet, purse, report).await
    }

    async fn put_off(&self, due: &Due, why: &str, now: Millis, report: &mut Report) -> Result<(), TickError> {
        report.notes.push(format!("{}: {why}", due.purchase));
        self.database.run(due::look_again(due, now.saturating_add(RETRY_MS))).await?;
        Ok(())
    }

    /// The creator's part of a sale that was won in a dispute, as a payment of its own.
    async fn pay_creator(
        &self,
        owed: &Owed,
        platform: &SigningKey,
        tip: &Tip,
        purse: &mut Purse,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let wallet = platform.enterprise_address();
        let none = std::collections::BTreeSet::new();
        let from = Wallet { address: wallet, utxos: &purse.utxos, reserved: &none };
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(owed.creator, creator_payout(owed.price))],
            validity: Validity { from: None, until: tip.slot.saturating_add(PAYOUT_SLOTS) },
            ..TxPlan::default()
        };
        let built = build(&plan, &from, &purse.parameters).and_then(|draft| draft.sign(&[platform]));
        match built {
            Ok(built) => {
                let purpose = format!("payout:{}", owed.purchase);
                let deed = Deed { purpose, action: "payout", purchase: &owed.purchase, built: &built };
                self.send(&deed, &wallet, purse, report).await
            }
            Err(error) => {
                report.notes.push(format!("the creator of {} cannot be paid: {error}", owed.purchase));
                Ok(())
            }
        }
    }

    /// Writes down, then sends. Where another tick was first, nothing is sent.
    async fn send(
        &self,
        deed: &Deed<'_>,
        wallet: &Address,
        purse: &mut Purse,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let facts = &deed.built.facts;
        let taken = |utxo: &Utxo| facts.inputs.contains(&utxo.reference) || facts.collateral.contains(&utxo.reference);
        purse.utxos.retain(|utxo| !taken(utxo));
        let written = self.database.batch(write_down(deed, wallet, self.now)).await?;
        if written.first().is_none_or(|outcome| outcome.first().is_none()) {
            report.notes.push(format!("{} of {} is being done already", deed.action, deed.purchase));
            return Ok(());
        }
        report.acted.push(format!("{} of {}: {}", deed.action, deed.purchase, facts.tx_id));
        match self.chain.submit(&deed.built.cbor).await? {
            Submission::Accepted => {
                self.database.run(confirm::submitted(&facts.tx_id)).await?;
                purse.utxos.extend(facts.change.iter().cloned());
            }
            Submission::Refused(reason) => {
                report.notes.push(format!("the ledger refused {}: {reason}", facts.tx_id));
                self.database.run(refused(&facts.tx_id, &reason)).await?;
            }
        }
        Ok(())
    }
}

fn step(case: &Case, purchase: &TxHash, price: Lovelace, creator: Address) -> Option<(&'static str, Step)> {
    match case.decision {
        Decision::PostResult => Some(("result", Step::SubmitResult(result_hash(purchase, &case.content)))),
        Decision::Collect => Some(("withdraw", Step::Withdraw { payouts: vec![(creator, creator_payout(price))] })),
        Decision::Refund => Some(("refund", Step::WithdrawRefund)),
        Decision::Dispute => Some(("dispute", Step::SetRefundRequested)),
        Decision::AskArbiter | Decision::Wait(_) => None,
    }
}

/// Where the contract leaves open to whom a refund goes, the platform's wallet, which pays the fee, must not keep it.
fn whole_to_buyer(mut plan: TxPlan, escrow: &Escrow, step: &Step) -> TxPlan {
    if *step == Step::WithdrawRefund
        && escrow.datum.buyer_return_address.is_none()
        && let Some(buyer) = escrow.datum.buyer.key_address()
    {
        let mut output = NewOutput::pay(buyer, escrow.utxo.value.lovelace);
        output.value = escrow.utxo.value.clone();
        plan.outputs.push(output);
    }
    plan
}

fn write_down(deed: &Deed<'_>, wallet: &Address, now: Millis) -> Vec<Statement> {
    let facts = &deed.built.facts;
    let tx = facts.tx_id.to_string();
    let inputs: Vec<String> = facts.inputs.iter().chain(&facts.collateral).map(ToString::to_string).collect();
    let inputs = serde_json::json!(inputs).to_string();
    vec![
        statement!(
            "INSERT INTO settlements (tx_id, purpose, cbor, state, valid_until_slot, attempts, attempted_at_ms, \
               created_at_ms, wallet, purchase_id, action) SELECT ?1, ?2, ?3, 'claimed', ?4, 1, ?5, ?5, ?6, ?7, ?8 \
             WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE tx_in IN (SELECT value FROM json_each(?9))) \
             ON CONFLICT DO NOTHING RETURNING tx_id",
            tx.as_str(),
            deed.purpose.as_str(),
            hex::encode(&deed.built.cbor),
            facts.valid_until_slot,
            now,
            wallet.to_string(),
            deed.purchase.to_string(),
            deed.action,
            inputs.as_str(),
        ),
        statement!(
            "INSERT INTO reservations (tx_in, tx_id) SELECT j.value, s.tx_id FROM settlements s, json_each(?2) j \
             WHERE s.tx_id = ?1 AND s.state = 'claimed' ON CONFLICT DO NOTHING",
            tx.as_str(),
            inputs.as_str(),
        ),
    ]
}

/// Refused at its first attempt: nothing was done, and its inputs are free again.
fn refused(tx: &TxHash, reason: &str) -> Statement {
    statement!(
        "UPDATE settlements SET state = 'refused', reason = ?2 WHERE tx_id = ?1 AND attempts = 1 AND state = 'claimed'",
        tx.to_string(),
        reason
    )
}
