//! Escrow actions of buyers and sellers.
//!
//! ```text
//! purchase ──> its escrow on the chain ──> possible: each action with its party, times and estimated fee
//!                                      ├─> draft: the transaction of one action, for the party's wallet to sign and submit
//!                                      └─> perform: the same for a service wallet, signed and submitted here
//! ```
//!
//! The contract's rules decide which actions are possible. If a party's own wallet submits an action, the watcher finds
//! the transaction on the chain.

mod draft;
mod perform;
mod words;

use std::collections::BTreeSet;

use api_types::{ActionTiming, BuyerAction, PossibleAction, PossibleActions};
use cardano::{
    Address, ContentHash, Lovelace, TxHash, TxRef,
    chain::{Chain, ChainError, Tip, Utxo, Value},
    fees::ExUnits,
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{Validity, Wallet, build},
};
use escrow::{
    Action, Datum, Deadlines, Deployment, State,
    plan::{Escrow, LEAST_WINDOW_MS, Planner, Step},
    rules::{Effect, Party, Rule, Timing},
    spend::Spent,
};
use serde::Deserialize;
use sql::{Database, DatabaseError, Read};

pub use self::{
    draft::{ActionDraft, ActionError},
    perform::Owner,
};
use crate::{
    chain_state::ClockLead,
    contents::ContentsError,
    escrow_steps::{Recorded, StepRecorder, rollbacks},
    listing::DeliveryMode,
    port_error::{PortError, from_by_way_of},
    purchase::Status,
};

/// Maximum number of an escrow's transactions that one request looks up on the chain, starting after the last one that
/// the watcher has stored.
const MAX_STEPS: usize = 4;
/// Number of slots for which the transaction built to estimate a fee is valid.
const ESTIMATE_VALID_SLOTS: u64 = 180;

/// Operations on escrows during one request, with the ports and times that they use.
pub struct Actions<'a, D, C, K> {
    pub database: &'a D,
    pub chain: &'a C,
    /// Store of the listings' contents. The hash that a seller posts as the result is computed from the content.
    pub contents: &'a K,
    pub deployment: &'a Deployment,
    /// Wall clock in POSIX milliseconds.
    pub now: Millis,
    /// How far the newest block's time may be ahead of the wall clock.
    pub lead: ClockLead,
}

/// The stored data of a protected purchase.
#[derive(Clone, Debug, Deserialize)]
struct LockedPurchase {
    mode: DeliveryMode,
    utxo: Option<TxRef>,
    status: Status,
    content_hash: ContentHash,
    creator: Address,
    share: Lovelace,
    buyer: Address,
    /// Result (hash) that the seller must post in the escrow as proof of delivery; `None` if it is not known yet. A
    /// seller who has posted this hash wins every dispute.
    expected_result: Option<ContentHash>,
}

/// Reason why the escrow of a purchase is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEscrow {
    #[error("no such purchase")]
    Unknown,
    #[error("this purchase was paid directly to the seller: nothing is locked, so nothing can be asked back here")]
    Instant,
    #[error("this purchase's escrow is of a contract that the service no longer runs")]
    OtherContract,
    /// The provider does not show the escrow's output, for example after a rollback, or more new transactions have
    /// spent the escrow than one request follows.
    #[error("the chain's provider does not show this purchase's escrow at the moment: try again in a minute")]
    Busy,
    /// The database or the provider failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

from_by_way_of!(NoEscrow, PortError: DatabaseError, ChainError, ContentsError);

/// Current state of a purchase's escrow.
enum CurrentEscrow {
    /// The escrow has not ended. Contains its unspent output.
    Open(Box<Escrow>),
    /// The escrow has ended, and the purchase has this final status.
    Ended(Status),
}

impl<D: Database, C: Chain, K> Actions<'_, D, C, K> {
    /// Lists the actions that are possible now, and those that become possible later if the escrow's state does not
    /// change.
    ///
    /// # Errors
    /// See [`NoEscrow`].
    pub async fn possible(&self, purchase: &TxHash) -> Result<PossibleActions, NoEscrow> {
        let known = self.locked_purchase(purchase).await?;
        let (escrow, tip) = (self.current_escrow(&known).await?, self.chain.recent_tip().await?);
        let now = self.lead.clock(tip.time_ms, self.now);
        let ended = |state| PossibleActions {
            purchase: *purchase,
            now,
            state,
            buyer: None,
            seller: None,
            locked_lovelace: None,
            actions: vec![],
        };
        let escrow = match escrow {
            CurrentEscrow::Ended(status) => return Ok(ended(status)),
            CurrentEscrow::Open(escrow) => escrow,
        };
        let parameters = self.chain.protocol_parameters().await?;
        Ok(PossibleActions {
            buyer: Some(escrow.datum.buyer.to_string()),
            seller: Some(escrow.datum.seller.to_string()),
            locked_lovelace: Some(escrow.utxo.value.lovelace),
            actions: self.possible_in(&escrow, &known, &tip, &parameters, now),
            ..ended(escrow.datum.state.into())
        })
    }

    /// Records the next step of a purchase's escrow if a block already includes it, so that the stored status is
    /// current before the next run of the watcher. Makes at most four provider calls, and none unless a transaction of
    /// the service is pending.
    ///
    /// # Errors
    /// Returns [`PortError`] if the database or the chain does not answer. The stored state stays as it is.
    pub async fn catch_up(&self, purchase: &TxHash) -> Result<(), PortError> {
        match self.database.fetch(output_with_pending_step(purchase)).await? {
            Some(from) => self.follow(&from).await,
            None => Ok(()),
        }
    }

    /// Looks up the transaction that spent an output of an escrow, and records it as the next step of the escrow if a
    /// block includes it.
    ///
    /// # Errors
    /// See [`Actions::catch_up`].
    pub async fn follow(&self, from: &TxRef) -> Result<(), PortError> {
        let tip = self.chain.recent_tip().await?;
        let rollbacks = Some(self.database.fetch(rollbacks()).await?.0);
        let recorder = StepRecorder { database: self.database, chain: self.chain, tip, rollbacks, seller: None };
        recorder.follow(from, &mut Recorded::default()).await?;
        Ok(())
    }

    async fn locked_purchase(&self, purchase: &TxHash) -> Result<LockedPurchase, NoEscrow> {
        self.stored_purchase(purchase).await?.protected()
    }

    async fn stored_purchase(&self, purchase: &TxHash) -> Result<LockedPurchase, NoEscrow> {
        self.database.fetch(read(purchase)).await?.ok_or(NoEscrow::Unknown)
    }

    /// Follows the escrow from the last step that the watcher has stored to its current output.
    async fn current_escrow(&self, known: &LockedPurchase) -> Result<CurrentEscrow, NoEscrow> {
        let Some(mut at) = known.utxo else { return Ok(CurrentEscrow::Ended(known.status)) };
        let mut outputs = self.chain.outputs_of(&at.tx).await?;
        for _ in 0..MAX_STEPS {
            let traced = outputs.unwrap_or_default().into_iter().find(|output| output.utxo.reference == at);
            let traced = traced.ok_or(NoEscrow::Busy)?;
            let escrow = Escrow::read(traced.utxo, self.deployment).map_err(|_| NoEscrow::OtherContract)?;
            let Some(by) = traced.spent_by else { return Ok(CurrentEscrow::Open(Box::new(escrow))) };
            outputs = self.chain.outputs_of(&by).await?;
            let made: Vec<Utxo> = outputs.iter().flatten().map(|output| output.utxo.clone()).collect();
            at = match escrow.spent_into(&made) {
                Spent::Continues(next) => next.utxo.reference,
                Spent::Ended(ending) => return Ok(CurrentEscrow::Ended(ending.into())),
            };
        }
        Err(NoEscrow::Busy)
    }

    fn possible_in(
        &self,
        escrow: &Escrow,
        known: &LockedPurchase,
        tip: &Tip,
        parameters: &ProtocolParameters,
        now: Millis,
    ) -> Vec<PossibleAction> {
        let parties = [Party::Buyer, Party::Seller].into_iter();
        let windows = parties.flat_map(|by| escrow.datum.windows_of(by).map(move |window| (by, window)));
        let useful = windows.filter(|(_, (action, _))| !is_pointless(*action, &escrow.datum, now));
        let possible = useful.filter_map(|(by, (action, window))| {
            let step = known.step(action, || Some(ContentHash::of(&[])))?;
            Some(PossibleAction {
                action: action.name().into(),
                name: buyers_name(action, &escrow.datum),
                by: words::party(by).into(),
                timing: match window.timing(now, LEAST_WINDOW_MS) {
                    Timing::Early(_) => ActionTiming::Early,
                    Timing::Open => ActionTiming::Open,
                    Timing::Over => ActionTiming::Over,
                },
                opens: window.opens,
                closes: window.closes,
                fee_lovelace: self.estimate(escrow, (by, &step), tip, parameters),
                words: words::of(action, escrow, known, now),
                expected_winner: known.expected_winner(action, &escrow.datum).map(|winner| words::party(winner).into()),
            })
        });
        possible.collect()
    }

    /// Estimates an action's network fee, for a wallet that pays it from one output.
    fn estimate(
        &self,
        escrow: &Escrow,
        (by, step): (Party, &Step),
        tip: &Tip,
        parameters: &ProtocolParameters,
    ) -> Option<Lovelace> {
        /// Execution units of an action that continues the escrow (`GOES_ON`), and of one that ends it (`ENDS`). They
        /// were measured on the local ledger and rounded up; another contract may need more.
        const GOES_ON: ExUnits = ExUnits { mem: 285_000, steps: 107_000_000 };
        const ENDS: ExUnits = ExUnits { mem: 240_000, steps: 86_000_000 };
        let planner = self.planner(parameters);
        let validity = Validity { from: Some(tip.slot), until: tip.slot.saturating_add(ESTIMATE_VALID_SLOTS) };
        let mut plan = planner.plan_within(escrow, step, validity).ok()?;
        let goes_on =
            Rule::find(step.action(), &escrow.datum).is_some_and(|rule| matches!(rule.effect, Effect::Continue { .. }));
        plan.script_inputs.iter_mut().for_each(|input| input.ex_units = if goes_on { GOES_ON } else { ENDS });
        let address = address_of(by, escrow)?;
        let some = Utxo {
            reference: TxRef { tx: TxHash::new([0; 32]), index: 0 },
            address: address.to_string(),
            value: Value { lovelace: Lovelace::from_ada(1_000), ..Value::default() },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        };
        let wallet = Wallet { address, utxos: std::slice::from_ref(&some), reserved: &BTreeSet::new() };
        build(&plan, &wallet, parameters).ok().map(|tx| tx.facts().fee)
    }

    const fn planner<'p>(&'p self, parameters: &'p ProtocolParameters) -> Planner<'p> {
        Planner { deployment: self.deployment, parameters, slots: &api_types::SLOTS }
    }
}

/// Returns whether an action that the contract allows would achieve nothing but cost a fee: a second dispute, or a
/// refund request when the refund can already be taken.
fn is_pointless(action: Action, datum: &Datum, now: Millis) -> bool {
    let Deadlines { submit_result, unlock, .. } = datum.deadlines;
    let refundable = || !datum.has_result() && (submit_result..unlock).contains(&now);
    action == Action::SetRefundRequested && (datum.state == State::Disputed || refundable())
}

/// Returns the API's name for a buyer's action on this escrow.
fn buyers_name(action: Action, datum: &Datum) -> Option<BuyerAction> {
    match action {
        Action::SetRefundRequested if datum.has_result() => Some(BuyerAction::Dispute),
        Action::SetRefundRequested => Some(BuyerAction::RequestRefund),
        Action::WithdrawRefund => Some(BuyerAction::TakeRefund),
        Action::AuthorizeWithdrawal => Some(BuyerAction::Release),
        _ => None,
    }
}

impl LockedPurchase {
    fn protected(self) -> Result<Self, NoEscrow> {
        if self.mode == DeliveryMode::Instant { Err(NoEscrow::Instant) } else { Ok(self) }
    }

    /// Returns the party that would win the dispute that this action starts. `None` if the action starts no dispute, or
    /// if the correct result is not known.
    fn expected_winner(&self, action: Action, datum: &Datum) -> Option<Party> {
        let starts_dispute = action == Action::SetRefundRequested && datum.has_result();
        let delivered = self.expected_result.filter(|_| starts_dispute)?;
        Some(if datum.result_hash == delivered.as_bytes() { Party::Seller } else { Party::Buyer })
    }

    /// Returns the step that performs an action, or `None` for an action that no party performs. `result` computes the
    /// hash to post, and is called only if the action posts a hash.
    fn step(&self, action: Action, result: impl FnOnce() -> Option<ContentHash>) -> Option<Step> {
        Some(match action {
            Action::SubmitResult => Step::SubmitResult(result()?),
            Action::SetRefundRequested => Step::SetRefundRequested,
            Action::AuthorizeWithdrawal => Step::AuthorizeWithdrawal,
            Action::AuthorizeRefund => Step::AuthorizeRefund,
            Action::Withdraw => Step::Withdraw { payouts: vec![(self.creator, self.share)] },
            Action::WithdrawRefund => Step::WithdrawRefund,
            Action::WithdrawDisputed => return None,
        })
    }
}

/// Returns the address of a party to an escrow. `None` for arbiters, and for a party with a script address.
fn address_of(by: Party, escrow: &Escrow) -> Option<Address> {
    match by {
        Party::Buyer => escrow.datum.buyer.key_address(),
        Party::Seller => escrow.datum.seller.key_address(),
        Party::Arbiters => None,
    }
}

/// Builds the query that reads a [`LockedPurchase`].
fn read(purchase: &TxHash) -> Read<Option<LockedPurchase>> {
    sql::read!(
        "SELECT p.mode, p.status, e.utxo, l.content_hash, p.seller_address AS creator, \
           CAST(p.creator_lovelace AS TEXT) AS share, p.buyer_address AS buyer, \
           coalesce((SELECT delivered_hash FROM escrow_watch WHERE purchase_id = e.purchase_id), (SELECT e.result_hash \
             FROM outbox WHERE tx_id = substr(e.utxo, 1, 64) AND kind = 'result' AND state = 'included')) \
           AS expected_result \
         FROM purchases p JOIN listings l ON l.id = p.listing_id LEFT JOIN escrows e ON e.purchase_id = p.id \
         WHERE p.id = ?1",
        purchase
    )
}

/// Builds the query that reads an escrow's last recorded output. Returns a row only if the outbox has a transaction for
/// the escrow that has not failed and is not recorded as an escrow step yet.
pub fn output_with_pending_step(purchase: &TxHash) -> Read<Option<TxRef>> {
    sql::read!(
        "SELECT e.utxo FROM escrows e WHERE e.purchase_id = ?1 AND e.utxo IS NOT NULL AND EXISTS (SELECT 1 \
           FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id WHERE op.purchase_id = ?1 \
           AND o.phase <> 'given_up' AND NOT EXISTS (SELECT 1 FROM escrow_steps s \
             WHERE s.purchase_id = ?1 AND s.tx_id = o.tx_id))",
        purchase
    )
}
