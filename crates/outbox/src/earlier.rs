//! Entries for one purpose that were given up. One of them may be in a block that the provider does not show yet. The
//! provider forwarded it although it answered with a refusal, or it lags behind the chain. So the next entry for the
//! purpose spends an input of each of them: the ledger then takes only one.

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

/// How many own transactions that built on each other are followed back: as many as a wallet's change is known of.
const MAX_ANCESTORS: usize = MAX_SENT;
/// Outputs that the provider is asked about, for all of them together. Most of their inputs are the same.
const MAX_ASKED: usize = 24;
/// Given-up entries after which the next may follow at once.
const FREE_RETRIES: usize = 8;
/// How much later the next attempt comes for each beyond these, in ms. So [`crate::MAX_LATE_MS`] never have
/// [`MAX_GIVEN_UP`] of them; more would have to wait until the first is as old.
const RETRY_DELAY_MS: Millis = 14_000;

/// What is known of the entries that were given up for a purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// None of them can be in a block together with a transaction that spends all of these.
    ReplacementInputs(Vec<Utxo>),
    /// This one is in a block.
    InBlock(TxHash),
    /// This one may still get into a block, and nothing can exclude it now: the next has to wait. It spends what another
    /// open entry reserves, or what the provider does not show.
    Unresolved(TxHash),
}

/// What is known of one given-up entry.
enum EarlierStatus {
    /// It can be in no block: a block has another transaction with one of its inputs.
    Excluded,
    /// It cannot be in a block together with a transaction that spends this.
    Input(Utxo),
    /// It is in a block.
    InBlock,
    /// The provider cannot say.
    Unknown,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// What the next transaction of a wallet must spend so that these earlier ones cannot be in a block besides. `shown` is
    /// what the provider shows of the wallet. Asks for the first output that an earlier one spends only where nothing
    /// else shows how it ended.
    ///
    /// # Errors
    /// The database or the chain cannot be asked.
    pub async fn earlier(
        &self,
        ended: Vec<Entry>,
        known: &WalletSnapshot,
        shown: &[Utxo],
        now: Millis,
    ) -> Result<Earlier, OutboxError> {
        if let Some(beyond) = ended.get(MAX_GIVEN_UP) {
            return Ok(Earlier::Unresolved(beyond.tx));
        }
        let beyond = Millis::try_from(ended.len().saturating_sub(FREE_RETRIES)).unwrap_or(Millis::MAX);
        let later =
            |newest: &&Entry| now < newest.attempted_at_ms.saturating_add(beyond.saturating_mul(RETRY_DELAY_MS));
        let mut unresolved = ended.last().filter(later).filter(|_| beyond > 0).map(|newest| newest.tx);
        let mut inputs: Vec<Utxo> = vec![];
        let mut lookups = Lookups::default();
        for mut entry in ended {
            match self.status_of(&entry, known, shown, &mut lookups).await? {
                EarlierStatus::Excluded => {}
                EarlierStatus::Input(utxo) if inputs.iter().any(|other| other.reference == utxo.reference) => {}
                EarlierStatus::Input(utxo) => inputs.push(utxo),
                EarlierStatus::InBlock => {
                    self.refresh(&mut entry, None, Trust::Payer, now).await?;
                    return Ok(Earlier::InBlock(entry.tx));
                }
                EarlierStatus::Unknown => unresolved = Some(entry.tx),
            }
        }
        Ok(unresolved.map_or(Earlier::ReplacementInputs(inputs), Earlier::Unresolved))
    }

    /// The status of one. Where the provider does not show its inputs, an input of a transaction that it builds on excludes it as
    /// well.
    async fn status_of(
        &self,
        entry: &Entry,
        known: &WalletSnapshot,
        shown: &[Utxo],
        lookups: &mut Lookups,
    ) -> Result<EarlierStatus, OutboxError> {
        let (mut tx, mut inputs) = (entry.tx, inputs_of(entry)?);
        for _ in 0..MAX_ANCESTORS {
            if inputs.iter().any(|input| known.is_spent_in_block(input, &tx)) {
                return Ok(EarlierStatus::Excluded);
            }
            let free = |utxo: &&Utxo| inputs.contains(&utxo.reference) && !known.reserved.contains(&utxo.reference);
            if let Some(utxo) = shown.iter().find(free) {
                return Ok(EarlierStatus::Input(utxo.clone()));
            }
            let first = inputs.iter().find(|input| lookups.outputs.contains_key(input)).or(inputs.first());
            let Some(first) = first.copied() else { return Ok(EarlierStatus::Unknown) };
            if !lookups.outputs.contains_key(&first) {
                if lookups.outputs.len() >= MAX_ASKED {
                    return Ok(EarlierStatus::Unknown);
                }
                lookups.outputs.insert(first, self.chain.output(&first).await?);
            }
            match lookups.outputs.get(&first).and_then(Option::as_ref) {
                Some(TracedOutput { spent_by: Some(by), .. }) if *by == entry.tx => return Ok(EarlierStatus::InBlock),
                // One that it builds on is in a block: it may be in the next.
                Some(TracedOutput { spent_by: Some(by), .. }) if *by == tx => return Ok(EarlierStatus::Unknown),
                Some(TracedOutput { spent_by: Some(_), .. }) => return Ok(EarlierStatus::Excluded),
                Some(TracedOutput { spent_by: None, utxo, .. }) if !known.reserved.contains(&first) => {
                    return Ok(EarlierStatus::Input(utxo.clone()));
                }
                Some(TracedOutput { spent_by: None, .. }) => return Ok(EarlierStatus::Unknown),
                None => {}
            }
            // Own change that is in no block yet, or in one that is not shown.
            if let Some(utxo) = known.change.iter().chain(&known.contested).find(free) {
                return Ok(EarlierStatus::Input(utxo.clone()));
            }
            if !lookups.parents.contains_key(&first.tx) {
                if lookups.parents.len() >= MAX_ANCESTORS {
                    return Ok(EarlierStatus::Unknown);
                }
                let made_it = Entry::first(&self.database.run(by_id(&first.tx)).await?)?;
                let ended = |it: &Entry| matches!(it.state, EntryState::Refused | EntryState::Expired);
                let ended = made_it.filter(|it| ended(it) && !it.cbor.is_empty());
                lookups.parents.insert(first.tx, ended.map(|it| inputs_of(&it)).transpose()?);
            }
            let Some(Some(spent)) = lookups.parents.get(&first.tx) else { return Ok(EarlierStatus::Unknown) };
            (tx, inputs) = (first.tx, spent.clone());
        }
        Ok(EarlierStatus::Unknown)
    }
}

/// Answers about the outputs that they spend, and about the entries that made these.
#[derive(Default)]
struct Lookups {
    outputs: BTreeMap<TxRef, Option<TracedOutput>>,
    /// The inputs of those that were given up.
    parents: BTreeMap<TxHash, Option<Vec<TxRef>>>,
}

fn inputs_of(entry: &Entry) -> Result<Vec<TxRef>, DatabaseError> {
    let tx = SignedTx::parse(&entry.cbor).map_err(|_| DatabaseError(format!("{} cannot be read", entry.tx)))?;
    Ok(tx.inputs)
}
