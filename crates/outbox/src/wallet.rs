//! Computes what a service wallet may spend.
//!
//! ```text
//! on the chain  +  change of recent transactions  -  their inputs  =  spendable
//! ```
//!
//! Only this service spends from these wallets, and every transaction is recorded with its inputs before submission.
//! The result is therefore right however stale the provider's view is. Change may be spent once a node has accepted the
//! transaction that creates it.

use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    Address, TxHash, TxRef,
    blockfrost::keep_most_valuable,
    chain::Utxo,
    slots::Millis,
    tx::{AddressKind, Output, OutputDatum, SignedTx},
};
use sql::{Database, DatabaseError, Read};

use crate::{
    decide::EXPIRY_GRACE_SLOTS,
    entry::{ENTRY, Entry, EntryState},
};

/// Maximum age of the chain state that a provider shows, in ms. The provider is assumed to show every transaction of
/// ours that was included longer ago.
pub const MAX_LAG_MS: Millis = 60 * 60 * 1_000;
/// Number of slots from now for which a service wallet's transaction is valid: about a dozen blocks.
pub const VALID_SLOTS: u64 = 240;
/// Maximum validity in ms of a recorded transaction, after which it can no longer be included.
pub const MAX_VALID_MS: Millis = 5 * 60 * 1_000;
/// Maximum time in ms from the recording of a wallet's transaction until the provider shows its inclusion.
pub const MAX_LATE_MS: Millis = MAX_LAG_MS + MAX_VALID_MS;
/// Maximum number of a wallet's recent transactions that are read with their CBOR, so that their change can be spent
/// before the provider shows it. The change of older transactions is spent only once the provider shows it.
pub(crate) const MAX_SENT: usize = 32;
/// Maximum number of a wallet's recently refused or expired transactions that are read, oldest first. Later ones mostly
/// spend the same inputs.
const MAX_FAILED: usize = 32;
/// Maximum number of unconfirmed transactions that are submitted again for a transaction that depends on them.
const MAX_PARENTS: usize = 16;

/// A wallet's reservations and change according to the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalletSnapshot {
    /// Outputs that recorded transactions of the wallet spend or use as collateral.
    pub reserved: BTreeSet<TxRef>,
    /// Outputs that included transactions of the wallet have spent, each with the spending transaction.
    spent: BTreeMap<TxRef, TxHash>,
    /// Unspent change of recent transactions, even if the provider does not show it yet. Outputs with many tokens are
    /// omitted, because many requests hold this list in memory.
    pub change: Vec<Utxo>,
    /// Change that a refused or expired transaction spends. Because that transaction may still be included, only the
    /// next transaction for the same purpose may spend the change.
    pub(crate) spent_by_failed: Vec<Utxo>,
    /// `true` if change may become spendable soon, because a submission has not been answered yet or a transaction is
    /// not included yet.
    pub in_flight: bool,
    /// Accepted transactions that are not known to be in a block, oldest first, with their CBOR.
    unconfirmed: Vec<(TxHash, Vec<u8>)>,
}

/// The queries of a [`WalletSnapshot`].
pub type SnapshotQuery = (Read<Vec<Entry>>, Read<Vec<TxRef>>);

/// Builds the queries for a [`WalletSnapshot`]: for the wallet's recent entries, and for its reserved outputs.
/// `tip_slot` is the slot of the newest known block. Open entries that expired before it are omitted: either the
/// provider shows their change, or the change will never exist.
pub fn snapshot(wallet: &Address, tip_slot: u64, now: Millis) -> SnapshotQuery {
    let since = now.saturating_sub(MAX_LATE_MS);
    let entries = sql::read!(
        "SELECT * FROM (SELECT {ENTRY} FROM outbox WHERE wallet = ?1 AND created_at_ms > ?2 \
             AND (state = 'included' OR phase = 'open' AND valid_until_slot > ?3) \
           ORDER BY created_at_ms DESC LIMIT {MAX_SENT}) \
         UNION ALL SELECT * FROM (SELECT {ENTRY} FROM outbox INDEXED BY outbox_not_included \
           WHERE wallet = ?1 AND state <> 'included' AND phase = 'given_up' AND created_at_ms > ?2 \
           ORDER BY created_at_ms LIMIT {MAX_FAILED})",
        wallet,
        since,
        tip_slot.saturating_sub(EXPIRY_GRACE_SLOTS)
    );
    let reserved = sql::read!(
        "SELECT r.tx_in FROM outbox o JOIN reservations r ON r.tx_id = o.tx_id \
         WHERE o.wallet = ?1 AND o.created_at_ms > ?2 \
         UNION SELECT r.tx_in FROM outbox o INDEXED BY outbox_not_included JOIN reservations r ON r.tx_id = o.tx_id \
         WHERE o.wallet = ?1 AND o.state <> 'included'",
        wallet,
        since
    );
    (entries, reserved)
}

impl WalletSnapshot {
    /// Reads a wallet's snapshot.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database is unavailable.
    pub async fn load(
        database: &impl Database,
        wallet: &Address,
        tip_slot: u64,
        now: Millis,
    ) -> Result<Self, DatabaseError> {
        Self::of(wallet, database.batch(snapshot(wallet, tip_slot, now)).await?)
    }

    /// Computes the snapshot from the rows of [`snapshot`].
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the stored data are invalid.
    pub fn of(wallet: &Address, (entries, reserved): (Vec<Entry>, Vec<TxRef>)) -> Result<Self, DatabaseError> {
        let broken = || DatabaseError("the CBOR of a wallet's transaction cannot be read".into());
        let mut read = Self { reserved: reserved.into_iter().collect(), ..Self::default() };
        let failed = |entry: &Entry| matches!(entry.state, EntryState::Refused | EntryState::Expired);
        let (failed, sent): (Vec<_>, Vec<_>) = entries.into_iter().partition(failed);
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
        // A provider may forward a transaction that it reports as rejected, so a given-up transaction may have spent
        // change that the provider does not show.
        let mut inputs_of_failed = BTreeSet::new();
        for entry in failed {
            inputs_of_failed.extend(SignedTx::parse(&entry.cbor).map_err(|_| broken())?.inputs);
        }
        read.change.retain(|utxo| !read.reserved.contains(&utxo.reference));
        (read.spent_by_failed, read.change) =
            read.change.into_iter().partition(|utxo| inputs_of_failed.contains(&utxo.reference));
        // The provider shows change of an included transaction, unless it is spent.
        read.in_flight |= read.spent_by_failed.iter().any(|utxo| read.is_unconfirmed(&utxo.reference));
        Ok(read)
    }

    /// Returns the wallet's spendable outputs. `shown` are its outputs according to the provider.
    #[must_use]
    pub fn spendable(&self, shown: &[Utxo]) -> Vec<Utxo> {
        let all = shown.iter().chain(&self.change).map(|utxo| (utxo.reference, utxo)).collect::<BTreeMap<_, _>>();
        all.into_values().filter(|utxo| !self.reserved.contains(&utxo.reference)).cloned().collect()
    }

    /// Returns `true` if a transaction of the wallet created this output and is not known to be in a block.
    #[must_use]
    pub fn is_unconfirmed(&self, output: &TxRef) -> bool {
        self.unconfirmed.iter().any(|(tx, _)| *tx == output.tx)
    }

    /// Returns `true` if an included transaction of the wallet, other than `unless`, spends this output.
    pub(crate) fn is_spent_in_block(&self, output: &TxRef, unless: &TxHash) -> bool {
        self.spent.get(output).is_some_and(|by| by != unless)
    }

    /// Returns the CBOR of the wallet's unconfirmed transactions on whose change this transaction depends, directly or
    /// indirectly, earliest first. A node that has lost these transactions must get them in this order.
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

/// Returns the ids of the transactions whose outputs this transaction spends.
fn parents_in(cbor: &[u8]) -> Vec<TxHash> {
    SignedTx::parse(cbor).map(|tx| tx.inputs.iter().map(|input| input.tx).collect()).unwrap_or_default()
}

/// Returns the outputs of a transaction that belong to a wallet.
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
