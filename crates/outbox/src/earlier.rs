//! Transactions that ended without effect for all that is known. One of them may be in a block that the provider does not
//! show yet: it passed on what it refused, or is behind with what is in blocks. Before the same is paid for again, either
//! such a one is found, or the next one spends what it spends: then the ledger takes one of them.

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
    statements::{MAX_ENDED, by_id},
    wallet::{MAX_SENT, WalletSnapshot},
};

/// How many own transactions that built on each other are followed back: as many as a wallet's change is known of.
const MAX_BACK: usize = MAX_SENT;
/// Questions to the provider about all of them. They spend much the same: each next one spends what an earlier one spent.
const MAX_ASKED: usize = 24;
/// Earlier ones after which the next does not follow at once.
const FREE: usize = 8;
/// How much later it comes for each beyond these, in ms: so that [`crate::MAX_LATE_MS`] never have [`MAX_ENDED`] of them, beyond
/// which it would have to wait until the first of them is as old.
const LATER_MS: Millis = 14_000;

/// What is known of earlier transactions for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// None of them can be in a block with one that spends all of these.
    ReplacementInputs(Vec<Utxo>),
    /// This one is in a block.
    InBlock(TxHash),
    /// Nothing keeps this one out for now: the next one has to wait. It spends what another own entry reserves whose end is
    /// not known, or what the provider does not show.
    Unresolved(TxHash),
}

/// What is known of one of them.
enum Fate {
    /// It can be in no block: one has another that spends the same.
    Dead,
    /// It can be in no block with one that spends this.
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
        if let Some(beyond) = ended.get(MAX_ENDED) {
            return Ok(Earlier::Unresolved(beyond.tx));
        }
        let beyond = Millis::try_from(ended.len().saturating_sub(FREE)).unwrap_or(Millis::MAX);
        let later = |newest: &&Entry| now < newest.attempted_at_ms.saturating_add(beyond.saturating_mul(LATER_MS));
        let mut unresolved = ended.last().filter(later).filter(|_| beyond > 0).map(|newest| newest.tx);
        let mut without: Vec<Utxo> = vec![];
        let mut asked = Asked::default();
        for mut entry in ended {
            match self.fate(&entry, known, shown, &mut asked).await? {
                Fate::Dead => {}
                Fate::Input(utxo) if without.iter().any(|other| other.reference == utxo.reference) => {}
                Fate::Input(utxo) => without.push(utxo),
                Fate::InBlock => {
                    self.refresh(&mut entry, None, Trust::Payer, now).await?;
                    return Ok(Earlier::InBlock(entry.tx));
                }
                Fate::Unknown => unresolved = Some(entry.tx),
            }
        }
        Ok(unresolved.map_or(Earlier::ReplacementInputs(without), Earlier::Unresolved))
    }

    /// Where the provider does not show what it spends, what spends the same as one that it builds on keeps it out as well.
    async fn fate(
        &self,
        entry: &Entry,
        known: &WalletSnapshot,
        shown: &[Utxo],
        asked: &mut Asked,
    ) -> Result<Fate, OutboxError> {
        let (mut tx, mut inputs) = (entry.tx, inputs_of(entry)?);
        for _ in 0..MAX_BACK {
            if inputs.iter().any(|input| known.is_spent_in_block(input, &tx)) {
                return Ok(Fate::Dead);
            }
            let free = |utxo: &&Utxo| inputs.contains(&utxo.reference) && !known.reserved.contains(&utxo.reference);
            if let Some(utxo) = shown.iter().find(free) {
                return Ok(Fate::Input(utxo.clone()));
            }
            let known_of = |input: &&TxRef| found(&asked.outputs, input).is_some();
            let Some(first) = inputs.iter().find(known_of).or(inputs.first()) else { return Ok(Fate::Unknown) };
            if found(&asked.outputs, first).is_none() {
                if asked.outputs.len() >= MAX_ASKED {
                    return Ok(Fate::Unknown);
                }
                asked.outputs.push((*first, self.chain.output(first).await?));
            }
            match found(&asked.outputs, first).and_then(Option::as_ref) {
                Some(TracedOutput { spent_by: Some(by), .. }) if *by == entry.tx => return Ok(Fate::InBlock),
                // One that it builds on is in a block: it may be in the next.
                Some(TracedOutput { spent_by: Some(by), .. }) if *by == tx => return Ok(Fate::Unknown),
                Some(TracedOutput { spent_by: Some(_), .. }) => return Ok(Fate::Dead),
                Some(TracedOutput { spent_by: None, utxo, .. }) if !known.reserved.contains(first) => {
                    return Ok(Fate::Input(utxo.clone()));
                }
                Some(TracedOutput { spent_by: None, .. }) => return Ok(Fate::Unknown),
                None => {}
            }
            // Own change that is in no block yet, or in one that is not shown.
            if let Some(utxo) = known.change.iter().chain(&known.contested).find(free) {
                return Ok(Fate::Input(utxo.clone()));
            }
            let parent = first.tx;
            if found(&asked.parents, &parent).is_none() {
                if asked.parents.len() >= MAX_BACK {
                    return Ok(Fate::Unknown);
                }
                let entry = Entry::first(&self.database.run(by_id(&parent)).await?)?;
                let ended = |it: &Entry| matches!(it.state, EntryState::Refused | EntryState::Expired);
                let inputs =
                    entry.filter(|it| ended(it) && !it.cbor.is_empty()).map(|it| inputs_of(&it)).transpose()?;
                asked.parents.push((parent, inputs));
            }
            let Some(Some(spent)) = found(&asked.parents, &parent) else { return Ok(Fate::Unknown) };
            (tx, inputs) = (parent, spent.clone());
        }
        Ok(Fate::Unknown)
    }
}

/// What was asked about the outputs that they spend, and about what made these.
#[derive(Default)]
struct Asked {
    outputs: Vec<(TxRef, Option<TracedOutput>)>,
    /// What those spend that ended.
    parents: Vec<(TxHash, Option<Vec<TxRef>>)>,
}

/// What was answered about one of a few.
fn found<'a, K: PartialEq, V>(asked: &'a [(K, V)], key: &K) -> Option<&'a V> {
    asked.iter().find(|(known, _)| known == key).map(|(_, answer)| answer)
}

fn inputs_of(entry: &Entry) -> Result<Vec<TxRef>, DatabaseError> {
    let tx = SignedTx::parse(&entry.cbor).map_err(|_| DatabaseError(format!("{} cannot be read", entry.tx)))?;
    Ok(tx.inputs)
}
