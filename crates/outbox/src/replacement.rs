//! Prevents double payment after a transaction failed.
//!
//! A transaction that was refused or expired (*given up*) may still be included, because the provider forwarded it
//! although it reported a rejection, or because the provider lags. The next transaction for the same purpose therefore
//! spends an input of each such transaction, so that the ledger accepts only one of them.

use std::collections::BTreeMap;

use cardano::{
    TxHash, TxRef,
    chain::{Chain, TracedOutput, Utxo},
    slots::Millis,
    tx::SignedTx,
};
use sql::{Database, DatabaseError};

use crate::{
    decide::Trust,
    drive::{Outbox, OutboxError},
    entry::{Entry, EntryState},
    statements::{MAX_GIVEN_UP, by_id},
    wallet::{MAX_SENT, WalletSnapshot},
};

/// Maximum number of ancestors to examine for one transaction: transactions whose change it spends, directly or
/// indirectly.
const MAX_ANCESTORS: usize = MAX_SENT;
/// Maximum number of outputs that one call looks up on the chain. The limit is rarely reached, because failed
/// transactions for the same purpose mostly share their inputs.
const MAX_ASKED: usize = 24;
/// Number of failed transactions for one purpose after which each further failure delays the next attempt.
const FREE_RETRIES: usize = 8;
/// Delay in ms that each failed transaction beyond [`FREE_RETRIES`] adds before the next transaction is sent. With it,
/// fewer than [`MAX_GIVEN_UP`] transactions can fail during [`crate::MAX_LATE_MS`].
const RETRY_DELAY_MS: Millis = 14_000;

/// State of the earlier transactions for one purpose, all of which were refused or expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// No failed transaction is included. The next transaction must spend all these outputs, so that it cannot be
    /// included together with any of the failed ones.
    Inputs(Vec<Utxo>),
    /// A block includes the failed transaction with this id after all.
    InBlock(TxHash),
    /// The failed transaction with this id may still be included. No conflicting transaction can be made, because its
    /// inputs are reserved by another open entry or unknown to the provider. The next transaction for the purpose must
    /// wait.
    Unresolved(TxHash),
}

/// State of one transaction that was refused or expired.
enum FailedStatus {
    /// The transaction can no longer be included, because another included transaction spent one of its inputs.
    Conflicted,
    /// The transaction spends this output, so it cannot be included together with another transaction that spends the
    /// output.
    Input(Utxo),
    /// A block includes the transaction.
    InBlock,
    /// The transaction may still be included. No output is known that another transaction could spend to prevent that.
    Unknown,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// Returns the inputs that the wallet's next transaction must spend, so that none of the failed transactions
    /// `failed` can be included as well. `wallet` is the wallet's state in the database, and `provider_utxos` its
    /// outputs according to the provider. An input of a failed transaction is looked up on the chain only if neither of
    /// them contains it.
    ///
    /// # Errors
    /// Returns [`OutboxError`] if the database or the chain is unavailable.
    pub async fn replacement(
        &self,
        failed: Vec<Entry>,
        wallet: &WalletSnapshot,
        provider_utxos: &[Utxo],
        now: Millis,
    ) -> Result<Replacement, OutboxError> {
        if let Some(beyond) = failed.get(MAX_GIVEN_UP) {
            return Ok(Replacement::Unresolved(beyond.tx));
        }
        let beyond = Millis::try_from(failed.len().saturating_sub(FREE_RETRIES)).unwrap_or(Millis::MAX);
        let later =
            |newest: &&Entry| now < newest.attempted_at_ms.saturating_add(beyond.saturating_mul(RETRY_DELAY_MS));
        let mut unresolved = failed.last().filter(later).filter(|_| beyond > 0).map(|newest| newest.tx);
        let mut inputs: Vec<Utxo> = vec![];
        let mut lookups = Lookups::default();
        for mut entry in failed {
            match self.status_of(&entry, wallet, provider_utxos, &mut lookups).await? {
                FailedStatus::Conflicted => {}
                FailedStatus::Input(utxo) if inputs.iter().any(|other| other.reference == utxo.reference) => {}
                FailedStatus::Input(utxo) => inputs.push(utxo),
                FailedStatus::InBlock => {
                    self.refresh(&mut entry, None, Trust::Payer, now).await?;
                    return Ok(Replacement::InBlock(entry.tx));
                }
                FailedStatus::Unknown => unresolved = Some(entry.tx),
            }
        }
        Ok(unresolved.map_or(Replacement::Inputs(inputs), Replacement::Unresolved))
    }

    /// Returns the state of one failed transaction. If the provider does not know an output that the transaction
    /// spends, the transaction that created the output is examined in the same way: while it is not included, the
    /// failed transaction cannot be included either.
    async fn status_of(
        &self,
        entry: &Entry,
        wallet: &WalletSnapshot,
        provider_utxos: &[Utxo],
        lookups: &mut Lookups,
    ) -> Result<FailedStatus, OutboxError> {
        let (mut tx, mut inputs) = (entry.tx, inputs_of(entry)?);
        for _ in 0..MAX_ANCESTORS {
            if inputs.iter().any(|input| wallet.is_spent_in_block(input, &tx)) {
                return Ok(FailedStatus::Conflicted);
            }
            let free = |utxo: &&Utxo| inputs.contains(&utxo.reference) && !wallet.reserved.contains(&utxo.reference);
            if let Some(utxo) = provider_utxos.iter().find(free) {
                return Ok(FailedStatus::Input(utxo.clone()));
            }
            let first = inputs.iter().find(|input| lookups.outputs.contains_key(input)).or(inputs.first());
            let Some(first) = first.copied() else { return Ok(FailedStatus::Unknown) };
            if !lookups.outputs.contains_key(&first) {
                if lookups.outputs.len() >= MAX_ASKED {
                    return Ok(FailedStatus::Unknown);
                }
                lookups.outputs.insert(first, self.chain.output(&first).await?);
            }
            match lookups.outputs.get(&first).and_then(Option::as_ref) {
                Some(TracedOutput { spent_by: Some(by), .. }) if *by == entry.tx => return Ok(FailedStatus::InBlock),
                // Its ancestor `tx` is included, so the failed transaction may be in the next block.
                Some(TracedOutput { spent_by: Some(by), .. }) if *by == tx => return Ok(FailedStatus::Unknown),
                Some(TracedOutput { spent_by: Some(_), .. }) => return Ok(FailedStatus::Conflicted),
                Some(TracedOutput { spent_by: None, utxo, .. }) if !wallet.reserved.contains(&first) => {
                    return Ok(FailedStatus::Input(utxo.clone()));
                }
                Some(TracedOutput { spent_by: None, .. }) => return Ok(FailedStatus::Unknown),
                None => {}
            }
            // Change of the wallet that is in no block yet, or in a block that the provider does not show.
            if let Some(utxo) = wallet.change.iter().chain(&wallet.spent_by_failed).find(free) {
                return Ok(FailedStatus::Input(utxo.clone()));
            }
            if !lookups.parents.contains_key(&first.tx) {
                if lookups.parents.len() >= MAX_ANCESTORS {
                    return Ok(FailedStatus::Unknown);
                }
                let made_it = self.database.fetch(by_id(&first.tx)).await?;
                let ended = |it: &Entry| matches!(it.state, EntryState::Refused | EntryState::Expired);
                let ended = made_it.filter(|it| ended(it) && !it.cbor.is_empty());
                lookups.parents.insert(first.tx, ended.map(|it| inputs_of(&it)).transpose()?);
            }
            let Some(Some(spent)) = lookups.parents.get(&first.tx) else { return Ok(FailedStatus::Unknown) };
            (tx, inputs) = (first.tx, spent.clone());
        }
        Ok(FailedStatus::Unknown)
    }
}

/// Results of looking up spent outputs and the entries that created them.
#[derive(Default)]
struct Lookups {
    outputs: BTreeMap<TxRef, Option<TracedOutput>>,
    /// Inputs of each failed transaction that was looked up, by its id; `None` if the database has no failed
    /// transaction with this id.
    parents: BTreeMap<TxHash, Option<Vec<TxRef>>>,
}

fn inputs_of(entry: &Entry) -> Result<Vec<TxRef>, DatabaseError> {
    let tx = SignedTx::parse(&entry.cbor).map_err(|_| DatabaseError(format!("{} cannot be read", entry.tx)))?;
    Ok(tx.inputs)
}
