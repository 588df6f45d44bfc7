//! The platform's wallet as one tick knows it: what it may spend, and in which order.

use std::collections::{BTreeSet, HashSet};

use cardano::{Address, TxRef, chain::Utxo, params::ProtocolParameters, tx::build::Wallet};
use outbox::WalletSnapshot;

use crate::platform::MIN_FUNDS;

/// So many outputs are not gathered, however small: results go at once with one of each.
const FEW: usize = 30;
/// How many of them one action gathers.
const MAX_DUST: usize = 3;

/// What pays for actions, read once for each tick that acts.
pub(super) struct SellerWallet {
    pub parameters: ProtocolParameters,
    pub address: Address,
    pub snapshot: WalletSnapshot,
    pub utxos: Vec<Utxo>,
    /// Its change that no block has: spent only where nothing else is enough. What overtakes the transaction that makes it
    /// takes along what spends it.
    pub unconfirmed: Vec<Utxo>,
    pub shown: HashSet<TxRef>,
    /// Whether change of what was sent in this tick may be spent: not where the node that runs scripts does not know it.
    pub chains: bool,
}

static NONE: BTreeSet<TxRef> = BTreeSet::new();

impl SellerWallet {
    pub const fn wallet(&self) -> Wallet<'_> {
        Wallet { address: self.address, utxos: self.utxos.as_slice(), reserved: &NONE }
    }

    /// What the database knows of it.
    pub const fn known(&self) -> &WalletSnapshot {
        &self.snapshot
    }

    /// What it may still spend in this tick.
    pub fn utxos(&self) -> Vec<Utxo> {
        self.utxos.clone()
    }

    /// The smallest of the wallet's outputs, where there are more than [`FEW`]. One more input costs little, and
    /// gathered outputs need not be read page after page in every tick that acts.
    pub fn dust(&self) -> Vec<Utxo> {
        let dust = self.utxos.iter().filter(|utxo| self.utxos.len() > FEW && is_dust(utxo));
        let mut dust: Vec<&Utxo> = dust.collect();
        dust.sort_by_key(|utxo| (utxo.value.lovelace, utxo.reference));
        dust.into_iter().take(MAX_DUST).cloned().collect()
    }

    /// Takes its unconfirmed change for as good as the rest. Whether there is any.
    pub fn spend_change(&mut self) -> bool {
        let any = !self.unconfirmed.is_empty();
        self.utxos.append(&mut self.unconfirmed);
        any
    }

    /// Leaves out what the provider does not show: unconfirmed change, or what the same key has spent elsewhere. Whether there
    /// was any.
    pub fn drop_unshown(&mut self) -> bool {
        let before = self.utxos.len();
        self.utxos.retain(|utxo| self.shown.contains(&utxo.reference));
        self.unconfirmed.retain(|utxo| self.shown.contains(&utxo.reference));
        self.utxos.len() < before
    }

    /// Leaves out, besides, what the provider's reason names: the node that runs scripts may not know what is in no block, or
    /// what another node has. Whether there was any.
    pub fn drop_named(&mut self, reason: &str) -> bool {
        let before = self.utxos.len();
        self.utxos.retain(|utxo| !is_named(reason, utxo));
        self.chains &= self.utxos.len() == before;
        self.drop_unshown() || self.utxos.len() < before
    }
}

/// Whether a refusal is about what made this output.
pub(super) fn is_named(reason: &str, utxo: &Utxo) -> bool {
    reason.contains(&utxo.reference.tx.to_string())
}

/// A datum costs nothing to spend, a script less than what the output must hold for it.
fn is_dust(utxo: &Utxo) -> bool {
    utxo.value.assets.is_empty() && utxo.value.lovelace < MIN_FUNDS
}
