//! Transactions that ended without effect for all that is known. One of them may be in a block that the provider does not
//! show yet: it passed on what it refused, or is behind with what is in blocks. Before the same is paid for again, either
//! such a one is found, or the next one spends what it spends: then the ledger takes one of them.

use cardano::{
    TxHash,
    chain::{Chain, TracedOutput, Utxo},
    slots::Millis,
    tx::SignedTx,
};
use sql::{Database, DatabaseError};

use crate::{
    drive::{Outbox, OutboxError},
    entry::Entry,
    wallet::WalletSnapshot,
};

/// What is known of earlier transactions for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// None of them can be in a block with one that spends all of these.
    Without(Vec<Utxo>),
    /// This one is in a block.
    InBlock(TxHash),
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// What the next transaction of a wallet must spend so that these earlier ones cannot be in a block besides. `shown` is
    /// what the provider shows of the wallet. Asks for the first output that an earlier one spends only where nothing
    /// else says what became of it.
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
        let mut without: Vec<Utxo> = vec![];
        for mut entry in ended {
            let first = SignedTx::parse(&entry.cbor).ok().and_then(|tx| tx.inputs.first().copied());
            let first = first.ok_or_else(|| DatabaseError(format!("{} cannot be read", entry.tx)))?;
            let it = |utxo: &&Utxo| utxo.reference == first;
            let there = match shown.iter().find(it) {
                Some(utxo) => Some(utxo.clone()),
                None => match self.chain.output(&first).await? {
                    Some(TracedOutput { spent_by: Some(by), .. }) if by == entry.tx => {
                        self.look(&mut entry, None, now).await?;
                        return Ok(Earlier::InBlock(entry.tx));
                    }
                    Some(TracedOutput { spent_by: Some(_), .. }) => None,
                    Some(TracedOutput { spent_by: None, utxo, .. }) => Some(utxo),
                    // Change of ours that is in no block yet.
                    None => known.change.iter().find(it).cloned(),
                },
            };
            // What another of ours spends now keeps it out as well.
            without.extend(there.filter(|_| !known.reserved.contains(&first) && !without.iter().any(|utxo| it(&utxo))));
        }
        Ok(Earlier::Without(without))
    }
}
