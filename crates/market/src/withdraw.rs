//! Withdraws a service wallet's money to its owner.

use std::collections::BTreeSet;

use api_types::Withdrawal;
use cardano::{
    Address, Lovelace,
    chain::{Chain, ChainError, Tip},
    keys::SigningKey,
    slots::Millis,
    tx::{
        AddressKind, SignedTx,
        build::{BuildError, BuiltTx, Sweep, Validity, Wallet, sweep},
    },
};
use outbox::{
    Attempt, Decision, Entry, EntryState, Kind, NewEntry, Next, NoPause, Outbox, OutboxError, RetryPolicy, Sent, Trust,
    VALID_SLOTS, WalletSnapshot, open, overdue,
};
use sql::{Database, DatabaseError};

use crate::{
    account::Account,
    port_error::{PortError, from_by_way_of},
    transitions,
};

/// Amount that stays in the service wallet, for the network fees of later purchases.
pub const RESERVE: Lovelace = Lovelace::from_ada(2);
/// Retry policy for a withdrawal: up to three immediate retries if another payment from the wallet spent an input
/// first.
const RETRIES: RetryPolicy<'_, NoPause> = RetryPolicy { sleep: &NoPause, pauses: &[0; 3] };

/// Reason why nothing was withdrawn, or why the outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    /// The account is the shared demo account, which has no owner to pay.
    #[error("this account has no wallet of its own to withdraw to")]
    NoOwner,
    #[error("nothing to withdraw: the Surety balance is {}, and about 2 tADA stay for fees", balance.display_tada())]
    Nothing { balance: Lovelace },
    #[error("the wallet is busy with payments; nothing was sent: try again in a few seconds")]
    Busy,
    #[error("the withdrawal failed; nothing was sent: {0}")]
    Build(BuildError),
    #[error("the ledger refused the withdrawal; nothing was sent: {0}")]
    Ledger(String),
    /// The database or the provider failed. If the transaction is already stored, the same call submits it again.
    #[error(transparent)]
    Port(#[from] PortError),
}

from_by_way_of!(WithdrawError, PortError: DatabaseError, ChainError, OutboxError);

struct WithdrawalRun<'a, D, C> {
    outbox: Outbox<'a, D, C>,
    wallet: Address,
    owner: Address,
    key: &'a SigningKey,
    tip: Tip,
    now: Millis,
}

/// Sends everything in the wallet, including tokens, to the owner, except [`RESERVE`] and the fee.
///
/// A withdrawal that no block includes yet is submitted again, and is returned if nothing else can be sent.
///
/// # Errors
/// See [`WithdrawError`]. Nothing was sent, unless the error is that the provider did not answer.
pub async fn withdraw(
    database: &impl Database,
    chain: &impl Chain,
    account: &Account,
    key: &SigningKey,
    now: Millis,
) -> Result<Withdrawal, WithdrawError> {
    let owner: Address = account.owner.parse().map_err(|_| WithdrawError::NoOwner)?;
    let wallet = account.wallet_address;
    let tip = chain.tip().await?;
    let outbox = Outbox { database, chain, hook: &transitions::statements };
    let (over, open) = database.batch((overdue(&wallet, tip.slot), open(&wallet, Kind::Withdrawal))).await?;
    outbox.close(over, &tip, now).await?;
    let withdrawal = WithdrawalRun { outbox, wallet, owner, key, tip, now };
    let unfinished = withdrawal.unfinished(open).await?;
    if let Some((EntryState::Claimed, withdrawn)) = unfinished {
        return Ok(withdrawn);
    }
    match withdrawal.outbox.send(&RETRIES, now, async |attempt| withdrawal.next(attempt).await).await {
        Err(WithdrawError::Nothing { balance }) => {
            unfinished.map(|(_, sent)| sent).ok_or(WithdrawError::Nothing { balance })
        }
        sent => sent?.ok_or(WithdrawError::Busy),
    }
}

impl<D: Database, C: Chain> WithdrawalRun<'_, D, C> {
    /// Looks up earlier withdrawals on the chain. Returns the oldest open one and its state.
    async fn unfinished(&self, entries: Vec<Entry>) -> Result<Option<(EntryState, Withdrawal)>, WithdrawError> {
        let mut oldest = None;
        for mut entry in entries {
            let decision = self.outbox.refresh(&mut entry, Some(&self.tip), Trust::Payer, self.now).await?;
            if entry.state.is_open() {
                // Submitted again at once, because its owner is waiting.
                if decision == Decision::Wait {
                    self.outbox.submit_again(&mut entry, Trust::Payer, self.now).await?;
                }
                oldest = oldest.or(Some((entry.state, self.withdrawn(&entry)?)));
            }
        }
        Ok(oldest)
    }

    /// Returns the amounts that an entry sends to the owner.
    fn withdrawn(&self, entry: &Entry) -> Result<Withdrawal, DatabaseError> {
        let broken = || DatabaseError(format!("the withdrawal {} cannot be read", entry.tx));
        let tx = SignedTx::parse(&entry.cbor).map_err(|_| broken())?;
        let owners = tx.outputs.iter().filter(|output| output.owner == AddressKind::Key(self.owner));
        let lovelace = Lovelace::checked_sum(owners.map(|output| output.value.lovelace)).ok_or_else(broken)?;
        Ok(Withdrawal { tx: entry.tx, lovelace })
    }

    async fn next(&self, attempt: Attempt) -> Result<Next<Withdrawal>, WithdrawError> {
        match attempt.sent {
            None => {}
            Some(Sent::NotRecorded) => return Ok(Next::Retry),
            Some(Sent::Rejected(entry, reason)) if entry.state == EntryState::Refused => {
                return Err(WithdrawError::Ledger(reason));
            }
            Some(Sent::Submitted(entry) | Sent::Rejected(entry, _)) => return Ok(Next::Done(self.withdrawn(&entry)?)),
        }
        let wallet = WalletSnapshot::load(self.outbox.database, &self.wallet, self.tip.slot, attempt.now).await?;
        let built = self.sweep(&wallet).await?;
        let purpose = format!("withdrawal:{}", built.facts.tx_id);
        let new = NewEntry::built(Kind::Withdrawal, purpose, self.wallet, &built);
        Ok(Next::Send(Box::new(new), Box::new(wallet)))
    }

    async fn sweep(&self, wallet: &WalletSnapshot) -> Result<BuiltTx, WithdrawError> {
        let chain = self.outbox.chain;
        let utxos = wallet.spendable(&chain.utxos_at(&self.wallet.to_string(), |_| false).await?);
        let parameters = chain.protocol_parameters().await?;
        let none = BTreeSet::new();
        let from = Wallet { address: self.wallet, utxos: &utxos, reserved: &none };
        let slot = api_types::SLOTS.slot_at(self.now).unwrap_or(0).max(self.tip.slot);
        let validity = Validity { from: None, until: slot.saturating_add(VALID_SLOTS) };
        match sweep(&from, self.owner, RESERVE, validity, &parameters) {
            Ok(Sweep { draft, .. }) => draft.sign(&[self.key]).map_err(WithdrawError::Build),
            Err(BuildError::NothingToSweep { .. } | BuildError::Insufficient { .. }) => {
                let balance = Lovelace::checked_sum(utxos.iter().map(|utxo| utxo.value.lovelace));
                Err(WithdrawError::Nothing { balance: balance.unwrap_or(Lovelace::MAX) })
            }
            Err(error) => Err(WithdrawError::Build(error)),
        }
    }
}
