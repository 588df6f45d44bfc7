//! Transactions of escrow actions, drafted for a party's own wallet.

use std::collections::BTreeSet;

use api_types::{ActionSummary, BuyerAction};
use cardano::{
    Address, ContentHash, Lovelace, TxHash,
    chain::{Chain, ChainError, Tip},
    evaluation::Evaluate,
    fees,
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{BuildError, UnsignedTx, Wallet},
};
use escrow::{
    Action,
    plan::{ChainTime, DraftError, Escrow, PlanError, Step},
    result::result_hash,
    rules::{ContractRefusal, Effect, PayoutRule, Rule},
};
use sql::{Database, DatabaseError};

use super::{Actions, CurrentEscrow, LockedPurchase, NoEscrow, address_of, words};
use crate::{
    cip30::{Cip30Wallet, change_words, quantities, span, total_of},
    contents::Contents,
    port_error::from_by_way_of,
    purchase::Status,
};

/// An unsigned transaction that performs an escrow action.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionDraft {
    pub tx: UnsignedTx,
    pub summary: ActionSummary,
    /// Description of the transaction for its signer.
    pub words: Vec<String>,
}

/// Reason why an action cannot be drafted, worded for the API's client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The purchase's escrow is not available.
    #[error(transparent)]
    NoEscrow(#[from] NoEscrow),
    #[error("this purchase's escrow has ended ({0}): nothing more can be done with it")]
    Ended(&'static str),
    #[error("{} is not possible in the state {state}: send the request without action to list what is possible", action.name())]
    State {
        action: Action,
        /// Name of the escrow's state in the API.
        state: &'static str,
    },
    #[error("too early: {} is possible in {}, from {from} (Unix ms) on", action.name(), span(*from, *now))]
    TooEarly {
        action: Action,
        /// Time from which the action is possible, POSIX ms.
        from: Millis,
        now: Millis,
    },
    #[error("too late: {} had to be in a block before {until} (Unix ms)", action.name())]
    TooLate {
        action: Action,
        /// Time before which a block had to include the action, POSIX ms.
        until: Millis,
    },
    #[error(
        "{} must be signed by the {party}, {address}: connect that wallet; if it has several addresses, send them as \
         addresses (CIP-30's getUsedAddresses)", action.name()
    )]
    NotYours {
        action: Action,
        /// Party that must sign the action: "buyer" or "seller".
        party: &'static str,
        address: Address,
    },
    #[error("not enough tADA in the wallet: {} more is needed for the fee; send it to {wallet}", missing.display_tada())]
    Insufficient { missing: Lovelace, wallet: Address },
    #[error(
        "no collateral: the wallet needs an output that holds only tADA, {} or more, as a deposit in case the contract fails; \
         send it to {wallet}, or set collateral in the wallet's settings", missing.display_tada()
    )]
    Collateral { missing: Lovelace, wallet: Address },
    #[error("utxos: {0}")]
    Build(BuildError),
    /// The ledger rejects the transaction. The reason is only for the log, because the client cannot act on it.
    #[error("the network refuses this transaction: read the wallet's outputs again, some may be spent, and try again")]
    Refused(String),
    #[error(
        "a wallet of your own paid for this purchase, {0}: draft the action for it (POST /purchases/{{id}}/action-draft), \
         and sign that with the wallet"
    )]
    OwnWallet(Address),
    #[error("{} is not possible: {}", action.name(), not_possible(*action, state))]
    NotNow {
        action: BuyerAction,
        /// Name of the escrow's state in the API.
        state: &'static str,
    },
    #[error("another transaction of this purchase is pending ({0}): look at its status in a minute")]
    OnItsWay(&'static str),
    #[error("this action cannot be submitted at the moment, and nothing was sent: try again in a minute")]
    Later(String),
    #[error("this escrow cannot be acted on: {0}")]
    Plan(PlanError),
}

from_by_way_of!(ActionError, NoEscrow: DatabaseError, ChainError);

/// Returns a message that says why a buyer's action is not possible in a state, and which action is possible instead.
fn not_possible(action: BuyerAction, state: &str) -> String {
    let instead = match (action, state) {
        (BuyerAction::Dispute, "FundsLocked") => "there is no proof of delivery to dispute yet: use request_refund",
        (BuyerAction::RequestRefund, "ResultSubmitted") => {
            "the proof of delivery is on the chain: what is wrong with it is for a dispute"
        }
        (BuyerAction::Dispute | BuyerAction::RequestRefund, "Disputed") => {
            "it is disputed already: the arbiter decides"
        }
        (BuyerAction::Release, "ResultSubmitted") => "there is no dispute: the seller is paid without it",
        (BuyerAction::TakeRefund, "ResultSubmitted" | "Disputed") => {
            "there is a proof of delivery: the money goes back if the arbiter, or the seller, says so"
        }
        _ => return format!("the purchase is {state}"),
    };
    format!("the purchase is {state}, {instead}")
}

/// An action that the contract allows in the escrow's current state.
struct Permitted {
    known: LockedPurchase,
    escrow: Escrow,
    rule: &'static Rule,
    /// Address of the party that may perform the action.
    address: Address,
    step: Step,
}

impl Permitted {
    /// Checks that the wallet belongs to the party that may perform the action.
    fn is_for(&self, wallet: &Cip30Wallet) -> Result<(), ActionError> {
        let Self { rule, address, .. } = self;
        if wallet.keys().contains(address.payment_key()) {
            return Ok(());
        }
        Err(ActionError::NotYours { action: rule.action, party: words::party(rule.by), address: *address })
    }
}

impl<D: Database, C: Chain + Evaluate, K: Contents> Actions<'_, D, C, K> {
    /// Drafts an action on a purchase for the wallet of its buyer or seller.
    ///
    /// Makes at most four provider calls, and one more for each step that the watcher has not stored yet. `wallet` is
    /// called just before the last one, the evaluation of the transaction's scripts, so that requests hold little
    /// memory while they wait for the provider.
    ///
    /// # Errors
    /// Returns the reason for a refusal, worded for the API's client.
    pub async fn draft<E: From<ActionError>>(
        &self,
        purchase: &TxHash,
        action: Action,
        wallet: impl AsyncFnOnce() -> Result<Cip30Wallet, E>,
    ) -> Result<ActionDraft, E> {
        let permitted = self.permitted(purchase, action).await?;
        let tip = self.chain.recent_tip().await.map_err(ActionError::from)?;
        let parameters = self.chain.protocol_parameters().await.map_err(ActionError::from)?;
        let wallet = wallet().await?.only_largest();
        Ok(self.drafted(&permitted, action, &wallet, (tip, &parameters)).await?)
    }

    async fn drafted(
        &self,
        permitted: &Permitted,
        action: Action,
        wallet: &Cip30Wallet,
        (tip, parameters): (Tip, &ProtocolParameters),
    ) -> Result<ActionDraft, ActionError> {
        permitted.is_for(wallet)?;
        let now = self.lead.clock(tip.time_ms, self.now);
        let planner = self.planner(parameters);
        let time = ChainTime { tip_slot: tip.slot, now };
        let mut plan =
            planner.plan(&permitted.escrow, &permitted.step, time).map_err(|error| unplanned(error, action, now))?;
        plan.wallet_keys = wallet.keys();
        plan.collateral.clone_from(&wallet.collateral);
        let pays = Wallet { address: wallet.change, utxos: &wallet.utxos, reserved: &BTreeSet::new() };
        let tx = planner.draft_of(self.chain, plan, &pays).await.map_err(|error| refusal(error, wallet.change))?;
        told(tx, permitted, wallet, parameters, now)
    }

    /// Checks that the contract allows the action in the escrow's state.
    async fn permitted(&self, purchase: &TxHash, action: Action) -> Result<Permitted, ActionError> {
        let known = self.locked_purchase(purchase).await?;
        let escrow = match self.current_escrow(&known).await? {
            CurrentEscrow::Ended(status) => return Err(ActionError::Ended(status.name())),
            CurrentEscrow::Open(escrow) => *escrow,
        };
        let state = || ActionError::State { action, state: Status::from(escrow.datum.state).name() };
        let rule = Rule::find(action, &escrow.datum).ok_or_else(state)?;
        let address = address_of(rule.by, &escrow).ok_or_else(state)?;
        let result = match action {
            Action::SubmitResult => Some(self.result(purchase, &known).await?),
            _ => None,
        };
        let step = known.step(action, || result).ok_or_else(state)?;
        Ok(Permitted { known, escrow, rule, address, step })
    }

    /// Returns the hash that the seller must post as the result of a purchase.
    async fn result(&self, purchase: &TxHash, known: &LockedPurchase) -> Result<ContentHash, NoEscrow> {
        let content = self.contents.get(&known.content_hash).await?;
        let gone = || DatabaseError(format!("the content that {purchase} bought is missing"));
        Ok(result_hash(purchase, &content.ok_or_else(gone)?))
    }
}

/// Converts a planning error to an error for the API's client.
pub(super) fn unplanned(error: PlanError, action: Action, now: Millis) -> ActionError {
    match error {
        PlanError::NotYet(from) => ActionError::TooEarly { action, from, now },
        PlanError::Refused(ContractRefusal::TooLate(until)) => ActionError::TooLate { action, until },
        error => ActionError::Plan(error),
    }
}

fn refusal(error: DraftError, wallet: Address) -> ActionError {
    match error {
        DraftError::Plan(error) => ActionError::Plan(error),
        DraftError::Build(BuildError::Insufficient { missing }) => ActionError::Insufficient { missing, wallet },
        DraftError::Build(BuildError::CollateralMissing { missing }) => ActionError::Collateral { missing, wallet },
        DraftError::Build(error) => ActionError::Build(error),
        DraftError::Refused(reason) => ActionError::Refused(reason),
        DraftError::Chain(error) => error.into(),
    }
}

/// Adds a summary and a description to a draft.
fn told(
    tx: UnsignedTx,
    permitted: &Permitted,
    wallet: &Cip30Wallet,
    parameters: &ProtocolParameters,
    now: Millis,
) -> Result<ActionDraft, ActionError> {
    let Permitted { known, escrow, rule, .. } = permitted;
    let facts = tx.facts();
    let range = || ActionError::Build(BuildError::OutOfRange);
    let valid_until = api_types::SLOTS.slot_begins_at(facts.valid_until_slot).ok_or_else(range)?;
    let collateral = fees::min_collateral(parameters, facts.fee).ok_or_else(range)?;
    let held = escrow.utxo.value.lovelace;
    let (becomes, receives) = match rule.effect {
        Effect::Continue { to, .. } => (Status::from(to), Lovelace::ZERO),
        Effect::End(PayoutRule::SellerCollects) => {
            (Status::Withdrawn, held.saturating_sub(escrow.datum.collateral_return).saturating_sub(known.share))
        }
        Effect::End(PayoutRule::BuyerRefunded | PayoutRule::AsSigned) => (Status::Refunded, held),
    };
    let change = total_of(&facts.change);
    let mut words = vec![words::of(rule.action, escrow, known, now)];
    let (fee, pledged) = (facts.fee.display_tada(), collateral.display_tada());
    words.push(format!(
        "The network's fee is {fee}. {pledged} are put up as collateral, taken only if the contract failed."
    ));
    words.extend(change_words(&change, &wallet.change));
    words.push(format!("Sign and submit it within {}; after that it can no longer be used.", span(valid_until, now)));
    let summary = ActionSummary {
        action: rule.action.name().into(),
        by: words::party(rule.by).into(),
        state: escrow.datum.state.into(),
        becomes,
        fee_lovelace: facts.fee,
        collateral_lovelace: collateral,
        receives_lovelace: receives,
        change_lovelace: change.lovelace,
        change_address: wallet.change,
        change_assets: quantities(&change),
        valid_until,
        closes: rule.window(&escrow.datum).closes,
    };
    Ok(ActionDraft { tx, summary, words })
}
