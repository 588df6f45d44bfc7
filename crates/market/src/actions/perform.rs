//! Performs a buyer's action on a purchase that an account's service wallet paid for.
//!
//! Only the service has this wallet's key, so a session of the account, or a grant of its agent, authorizes the action.
//! (If the escrow named the owner's own wallet as buyer, the watcher could not protect the purchase.)
//! The transaction goes through the outbox, like those of the watcher: it is recorded, and the escrow's output
//! reserved, before it is submitted. Concurrent requests of the buyer and an agent, and the watcher's own protection of
//! the buyer, therefore lead to one transaction.

use std::collections::BTreeSet;

use api_types::BuyerAction;
use cardano::{
    TxHash, TxRef,
    chain::Chain,
    evaluation::Evaluate,
    keys::SigningKey,
    tx::build::{BuiltTx, Wallet},
};
use escrow::{
    Action, State,
    plan::{ChainTime, DraftError, Escrow, Step},
    rules::Rule,
};
use outbox::{ENTRY, Entry, EntryState, Kind, NewEntry, Outbox, OutboxError, Sent};
use sql::{Database, Read};

use super::{ActionError, Actions, CurrentEscrow, NoEscrow, buyers_name, draft::unplanned};
use crate::{
    account::Account,
    contents::Contents,
    escrow_tx,
    platform::{MIN_FUNDS, PlatformWallet},
    port_error::PortError,
    purchase::Status,
    result_poster::purpose,
    transitions,
};

/// Maximum number of attempts, in case other transactions spend the inputs first.
const MAX_TRIES: usize = 4;

/// An account that performs an action on a purchase, with the keys that sign the transaction.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    pub account: &'a Account,
    /// The service wallet's key.
    pub key: &'a SigningKey,
    /// The platform's key. The platform's wallet pays the network fee, so that buyers can act even if their Surety
    /// balance is empty.
    pub platform: &'a SigningKey,
}

/// Maps a buyer's action to the contract's action, the escrow step, and the kind of outbox entry.
const fn contracts(action: BuyerAction) -> (Action, Step, Kind) {
    match action {
        BuyerAction::RequestRefund | BuyerAction::Dispute => {
            (Action::SetRefundRequested, Step::SetRefundRequested, Kind::Dispute)
        }
        BuyerAction::TakeRefund => (Action::WithdrawRefund, Step::WithdrawRefund, Kind::Refund),
        BuyerAction::Release => (Action::AuthorizeWithdrawal, Step::AuthorizeWithdrawal, Kind::Release),
    }
}

/// Returns whether a purchase with this status already shows the effect of the action.
const fn is_done(action: BuyerAction, state: Status) -> bool {
    match action {
        BuyerAction::RequestRefund => matches!(state, Status::RefundRequested),
        BuyerAction::Dispute => matches!(state, Status::Disputed),
        BuyerAction::TakeRefund => matches!(state, Status::Refunded),
        BuyerAction::Release => matches!(state, Status::WithdrawAuthorized | Status::Withdrawing | Status::Withdrawn),
    }
}

/// Describes a pending transaction of this kind to the buyer.
const fn pending_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Result => "the seller's proof of delivery",
        Kind::Collect => "the seller's collection",
        Kind::Refund => "your refund",
        Kind::Dispute => "your dispute",
        Kind::Release => "your release of the money",
        _ => "a payment",
    }
}

impl<D: Database, C: Chain + Evaluate, K: Contents> Actions<'_, D, C, K> {
    /// Performs an action on a purchase that the account's service wallet paid for, and returns the transaction.
    /// Idempotent: if the action is already pending or done, returns the existing transaction.
    ///
    /// # Errors
    /// Returns [`NoEscrow::Unknown`] if the account has no purchase with this id. Otherwise, returns the reason why the
    /// action cannot be performed, and what to do instead.
    pub async fn perform(
        &self,
        purchase: &TxHash,
        action: BuyerAction,
        owner: &Owner<'_>,
    ) -> Result<TxHash, ActionError> {
        let known = self.stored_purchase(purchase).await?;
        if known.buyer != owner.account.wallet_address {
            let is_own = owner.account.keys().contains(known.buyer.payment_key());
            return Err(if is_own { ActionError::OwnWallet(known.buyer) } else { NoEscrow::Unknown.into() });
        }
        let known = known.protected()?;
        let kind = contracts(action).2;
        for attempt in 0..MAX_TRIES {
            let (escrow, state) = match self.current_escrow(&known).await? {
                CurrentEscrow::Ended(status) => (None, status),
                CurrentEscrow::Open(escrow) => {
                    let state = Status::from(escrow.datum.state);
                    (Some(*escrow), state)
                }
            };
            if is_done(action, state)
                && let Some(entry) = self.database.fetch(newest_of(purchase, kind)).await?
            {
                return Ok(entry.tx);
            }
            let Some(escrow) = escrow else { return Err(ActionError::Ended(state.name())) };
            // The state may have changed meanwhile. A request for a refund must not start a dispute, although the
            // contract has only one action for both.
            let fits = Rule::find(contracts(action).0, &escrow.datum)
                .is_some_and(|rule| buyers_name(rule.action, &escrow.datum) == Some(action));
            if !fits || escrow.datum.state == State::Disputed && action == BuyerAction::Dispute {
                return Err(ActionError::NotNow { action, state: state.name() });
            }
            if let Some(entry) = self.database.fetch(spending(&escrow.utxo.reference)).await? {
                return if entry.kind == kind {
                    Ok(entry.tx)
                } else {
                    Err(ActionError::OnItsWay(pending_words(entry.kind)))
                };
            }
            if let Some(tx) = self.attempt(purchase, action, &escrow, owner, attempt).await? {
                return Ok(tx);
            }
        }
        Err(ActionError::Later("other transactions took its inputs first".into()))
    }

    /// Builds, records and submits one transaction. Returns `None` if another transaction spent an input first.
    async fn attempt(
        &self,
        purchase: &TxHash,
        action: BuyerAction,
        escrow: &Escrow,
        owner: &Owner<'_>,
        attempt: usize,
    ) -> Result<Option<TxHash>, ActionError> {
        let tip_slot = self.chain.recent_tip().await?.slot;
        let address = owner.platform.enterprise_address();
        let platform = PlatformWallet::read(self.database, self.chain, address, tip_slot, self.now, MIN_FUNDS).await;
        let platform = platform.map_err(unsent)?;
        let built = match self.built(purchase, action, escrow, (owner, &platform), attempt).await {
            // Another transaction spends an input, but the provider does not show it yet. The next attempt chooses
            // another input, or finds the escrow's new step.
            Err(ActionError::Refused(_)) if attempt.saturating_add(1) < MAX_TRIES => return Ok(None),
            built => built?,
        };
        let new = NewEntry::built(contracts(action).2, purpose(&escrow.utxo.reference), address, &built);
        let new = NewEntry { acts_on: vec![*purchase], ..new };
        let outbox = Outbox { database: self.database, chain: self.chain, hook: &transitions::statements };
        Ok(match outbox.send_once(&new, &platform.snapshot, self.now).await? {
            Sent::Submitted(entry) => Some(entry.tx),
            // If an earlier request already submitted this transaction, it may still be included in spite of the
            // rejection.
            Sent::Rejected(entry, _) => Some(entry.tx).filter(|_| entry.state != EntryState::Refused),
            Sent::NotRecorded => None,
        })
    }

    async fn built(
        &self,
        purchase: &TxHash,
        action: BuyerAction,
        escrow: &Escrow,
        (owner, platform): (&Owner<'_>, &PlatformWallet),
        attempt: usize,
    ) -> Result<BuiltTx, ActionError> {
        let tip = self.chain.recent_tip().await?;
        let now = self.lead.clock(tip.time_ms, self.now);
        let planner = self.planner(&platform.parameters);
        let time = ChainTime { tip_slot: tip.slot, now };
        let (contracts, step, _) = contracts(action);
        let plan = escrow_tx::plan(planner, escrow, &step, time).map_err(|error| unplanned(error, contracts, now))?;
        let from =
            platform.output_for(purchase, attempt).map_or_else(|| platform.utxos.clone(), |utxo| vec![utxo.clone()]);
        let wallet = Wallet { address: platform.address, utxos: &from, reserved: &BTreeSet::new() };
        let keys = [owner.platform, owner.key];
        let built = escrow_tx::build(planner, self.chain, vec![plan], &wallet, &[], &keys).await;
        built.map_err(|error| match error {
            DraftError::Chain(error) => error.into(),
            DraftError::Refused(reason) => ActionError::Refused(reason),
            // The buyer cannot fix the other errors, such as too little money in the platform's wallet.
            error => ActionError::Later(error.to_string()),
        })
    }
}

fn unsent(error: OutboxError) -> ActionError {
    NoEscrow::from(PortError::from(error)).into()
}

/// Builds the query that reads the outbox entry whose transaction spends an output.
fn spending(output: &TxRef) -> Read<Option<Entry>> {
    sql::read!("SELECT {ENTRY} FROM reservations r JOIN outbox ON outbox.tx_id = r.tx_id WHERE r.tx_in = ?1", output)
}

/// Builds the query that reads the newest outbox entry of this kind for a purchase. Failed entries are ignored.
fn newest_of(purchase: &TxHash, kind: Kind) -> Read<Option<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox_purchases op JOIN outbox ON outbox.tx_id = op.tx_id WHERE op.purchase_id = ?1 \
           AND outbox.kind = ?2 AND outbox.phase <> 'given_up' ORDER BY created_at_ms DESC LIMIT 1",
        purchase,
        kind.name()
    )
}
