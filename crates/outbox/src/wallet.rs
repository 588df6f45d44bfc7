//! What an own wallet may spend.
//!
//! ```text
//! on the chain  +  change of what we sent recently  -  inputs of what we sent  =  what may be spent
//! ```
//!
//! Only this service spends from these wallets, and every spend is written down with its inputs first, so this sum holds
//! however late the provider's view is. Change is spendable once a node has taken the transaction that makes it.

use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    Address, TxHash, TxRef,
    blockfrost::keep_most_valuable,
    chain::Utxo,
    slots::Millis,
    tx::{AddressKind, Output, OutputDatum, SignedTx},
};
use serde::Deserialize;
use sql::{Database, DatabaseError, Rows, Statement, statement};

use crate::{
    decide::EXPIRY_GRACE_SLOTS,
    entry::{ENTRY_JSON, Entry, EntryState},
};

/// How far back a provider's view may be, in ms: own transactions that are older are in every view.
pub const MAX_LAG_MS: Millis = 60 * 60 * 1_000;
/// How long after it was stored an own wallet's transaction may show up in a block, in ms. That is the provider's lag,
/// and its validity of less than five minutes.
pub const MAX_LATE_MS: Millis = MAX_LAG_MS + 5 * 60 * 1_000;
/// Of these, as many are read, with their bytes: those that may build on each other before any provider shows the first. What
/// older ones spend is reserved, and what they made is spent once it is shown.
pub(crate) const MAX_SENT: usize = 32;
/// Transactions given up recently that are read, the oldest first: what later ones spend is
/// refused for what one of these spent.
const MAX_CONTESTED: usize = 32;
/// Transactions that are sent again for one that depends on them.
const MAX_PARENTS: usize = 16;

/// What the database knows of a wallet's money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalletSnapshot {
    /// Outputs that own transactions spend or put up.
    pub reserved: BTreeSet<TxRef>,
    /// Of these, what blocks have spent, and by what.
    spent: BTreeMap<TxRef, TxHash>,
    /// Change with few tokens of recent transactions that none of these spends, even if the provider does not show it
    /// yet. Tokens are bounded since many requests wait with such outputs in memory.
    pub change: Vec<Utxo>,
    /// Of such change, the inputs of one that was given up and may still be in a block. The next one for the same
    /// purpose may spend it, and nothing else.
    pub(crate) contested: Vec<Utxo>,
    /// Whether an entry is claimed and no node has answered for it: its change will be spendable soon.
    pub in_flight: bool,
    /// Transactions that a node took and no block is known to have, oldest first, with their CBOR.
    unconfirmed: Vec<(TxHash, Vec<u8>)>,
}

/// A row that [`snapshot`] reads.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SnapshotRow {
    /// A transaction of the wallet that was sent, or given up recently.
    Entry(Entry),
    /// An output that one of its transactions spends or puts up.
    Reserved(TxRef),
}

/// The statement that reads a [`WalletSnapshot`]: what was sent, what was given up recently, and what is reserved.
/// `tip_slot` is the newest known block's. Change of transactions that can enter no block any more is shown by the
/// provider, or will never exist.
pub fn snapshot(wallet: &Address, tip_slot: u64, now: Millis) -> Statement {
    statement!(
        format!(include_str!("snapshot.sql"), entry = ENTRY_JSON, sent = MAX_SENT, contested = MAX_CONTESTED),
        wallet,
        now.saturating_sub(MAX_LATE_MS),
        tip_slot.saturating_sub(EXPIRY_GRACE_SLOTS)
    )
}

impl WalletSnapshot {
    /// Reads what is known of a wallet now.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn load(
        database: &impl Database,
        wallet: &Address,
        tip_slot: u64,
        now: Millis,
    ) -> Result<Self, DatabaseError> {
        Self::read(wallet, &database.run(snapshot(wallet, tip_slot, now)).await?)
    }

    /// Reads the answer to [`snapshot`].
    ///
    /// # Errors
    /// What is stored is not what we store.
    pub fn read(wallet: &Address, rows: &Rows) -> Result<Self, DatabaseError> {
        let broken = || DatabaseError("the CBOR of a wallet's transaction cannot be read".into());
        let (mut read, mut entries) = (Self::default(), vec![]);
        for row in rows.all_json()? {
            match row {
                SnapshotRow::Entry(entry) => entries.push(entry),
                SnapshotRow::Reserved(output) => drop(read.reserved.insert(output)),
            }
        }
        let failed = |entry: &Entry| matches!(entry.state, EntryState::Refused | EntryState::Expired);
        let (contested, sent): (Vec<_>, Vec<_>) = entries.into_iter().partition(failed);
        // Oldest first.
        for entry in sent.into_iter().rev() {
            if entry.state == EntryState::Claimed {
                read.in_flight = true;
                continue;
            }
            let tx = SignedTx::parse(&entry.cbor).map_err(|_| broken())?;
            // An entry that was read from the chain after a restore has no reservations.
            read.reserved.extend(&tx.inputs);
            read.change.extend(outputs_to(wallet, &tx).filter(|utxo| !read.reserved.contains(&utxo.reference)));
            keep_most_valuable(&mut read.change);
            if entry.state == EntryState::Included {
                read.spent.extend(tx.inputs.iter().map(|input| (*input, tx.id)));
            }
            if entry.state == EntryState::Submitted {
                read.unconfirmed.push((tx.id, entry.cbor));
            }
        }
        // What no provider shows, and one that was refused spends, may be spent by it: it passed on what it refused.
        let mut is_contested = BTreeSet::new();
        for entry in contested {
            is_contested.extend(SignedTx::parse(&entry.cbor).map_err(|_| broken())?.inputs);
        }
        read.change.retain(|utxo| !read.reserved.contains(&utxo.reference));
        (read.contested, read.change) =
            read.change.into_iter().partition(|utxo| is_contested.contains(&utxo.reference));
        // It is shown, or spent, once a block has what made it.
        read.in_flight |= read.contested.iter().any(|utxo| read.is_unconfirmed(&utxo.reference));
        Ok(read)
    }

    /// What may be spent, of what the provider shows.
    #[must_use]
    pub fn spendable(&self, shown: &[Utxo]) -> Vec<Utxo> {
        let all = shown.iter().chain(&self.change).map(|utxo| (utxo.reference, utxo)).collect::<BTreeMap<_, _>>();
        all.into_values().filter(|utxo| !self.reserved.contains(&utxo.reference)).cloned().collect()
    }

    /// Whether an own transaction made this output that no block is known to have, whatever the provider shows.
    #[must_use]
    pub fn is_unconfirmed(&self, output: &TxRef) -> bool {
        self.unconfirmed.iter().any(|(tx, _)| *tx == output.tx)
    }

    /// Whether a block has an own transaction that spends this output, and that is not this one.
    pub(crate) fn is_spent_in_block(&self, output: &TxRef, unless: &TxHash) -> bool {
        self.spent.get(output).is_some_and(|by| by != unless)
    }

    /// The transactions to submit first, where this one spends change of transactions that nodes may have lost: all
    /// that it builds on, the earliest first.
    pub(crate) fn parents_of(&self, cbor: &[u8]) -> Vec<Vec<u8>> {
        let mut next = parents_in(cbor);
        let mut parents: Vec<(TxHash, &[u8], Vec<TxHash>)> = vec![];
        while let Some(tx) = next.pop() {
            let Some((_, cbor)) = self.unconfirmed.iter().find(|(known, _)| *known == tx) else { continue };
            if parents.iter().all(|(known, ..)| *known != tx) {
                let its_own = parents_in(cbor);
                next.extend(&its_own);
                parents.push((tx, cbor, its_own));
            }
        }
        let mut ordered = vec![];
        while ordered.len() < MAX_PARENTS {
            let waits = |it: &TxHash| parents.iter().any(|(tx, ..)| tx == it);
            let Some(ready) = parents.iter().position(|(.., its_own)| !its_own.iter().any(waits)) else { break };
            ordered.push(parents.swap_remove(ready).1.to_vec());
        }
        ordered
    }
}

/// The transactions that made what one spends.
fn parents_in(cbor: &[u8]) -> Vec<TxHash> {
    SignedTx::parse(cbor).map(|tx| tx.inputs.iter().map(|input| input.tx).collect()).unwrap_or_default()
}

/// The outputs of a transaction that belong to a wallet.
fn outputs_to(wallet: &Address, tx: &SignedTx) -> impl Iterator<Item = Utxo> {
    let own = move |(index, output): (u16, &Output)| {
        let datum_hash = output.datum.as_ref().map(|datum| match datum {
            OutputDatum::Hash(hash) => *hash,
            OutputDatum::Inline(cbor) => cardano::hash::blake2b(cbor),
        });
        let plain = output.reference_script.is_none();
        (output.owner == AddressKind::Key(*wallet) && plain).then(|| Utxo {
            reference: TxRef { tx: tx.id, index },
            address: wallet.to_string(),
            value: output.value.clone(),
            inline_datum: match &output.datum {
                Some(OutputDatum::Inline(cbor)) => Some(cbor.clone()),
                _ => None,
            },
            datum_hash,
            reference_script: None,
        })
    };
    (0_u16..).zip(&tx.outputs).filter_map(own)
}
