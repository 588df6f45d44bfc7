//! The platform's wallet in one tick, and what is sent from it: written down first, with what it spends.

use std::collections::{BTreeSet, HashSet};

use cardano::{
    Address, Lovelace, TxHash, TxRef, chain::Utxo, keys::SigningKey, params::ProtocolParameters, tx::build::Wallet,
};
use outbox::{Draft, Entry, EntryState, WalletSnapshot, snapshot, write_down};
use sql::{Database, exactly};

use crate::{
    contents::Contents,
    platform::{PAYS_ALONE, free_outputs, pays_alone},
    results::acts_on,
    watch::{ArbiterClient, Keys, Ledger, TickError, tick::Tick},
};

/// So many outputs are not gathered, however small: results go at once with one of each.
const FEW: usize = 30;
/// How many of them one action gathers.
const MAX_DUST: usize = 3;

/// What pays for actions, read once for each tick that acts.
pub(in crate::watch) struct SellerWallet {
    pub parameters: ProtocolParameters,
    pub address: Address,
    snapshot: WalletSnapshot,
    utxos: Vec<Utxo>,
    /// Its change that no block has: spent only where nothing else is enough. What overtakes the transaction that makes it
    /// takes along what spends it.
    unconfirmed: Vec<Utxo>,
    shown: HashSet<TxRef>,
    /// Whether change of what was sent in this tick may be spent: not where the node that runs scripts does not know it.
    chains: bool,
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

    /// The smallest of its outputs, where there are more than [`FEW`]: one more input costs little, and what is gathered need not be
    /// read again, page after page, in every tick that acts.
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
fn is_named(reason: &str, utxo: &Utxo) -> bool {
    reason.contains(&utxo.reference.tx.to_string())
}

/// A datum costs nothing to spend, a script less than what the output must hold for it.
fn is_dust(utxo: &Utxo) -> bool {
    utxo.value.assets.is_empty() && utxo.value.lovelace < PAYS_ALONE
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// The platform's wallet with as much as is needed, or all that it may spend now: read once in a tick.
    pub(super) async fn take_wallet(&mut self, key: &SigningKey, needs: Lovelace) -> Result<SellerWallet, TickError> {
        if let Some(known) = self.wallet.take() {
            return Ok(known);
        }
        let (address, ports) = (key.enterprise_address(), self.ports);
        let parameters = ports.chain.protocol_parameters().await?;
        let reads = snapshot(&address, self.view.tip.slot, ports.now);
        let read = exactly(ports.database.batch(reads.into()).await?)?;
        let snapshot = WalletSnapshot::read(&address, &read)?;
        let enough = |shown: &[Utxo]| {
            let free = free_outputs(shown, &snapshot).filter(|utxo| pays_alone(utxo));
            free.map(|utxo| utxo.value.lovelace).sum::<Lovelace>() >= needs
        };
        let shown = ports.chain.utxos_at(&address.to_string(), enough).await?;
        let spendable = snapshot.spendable(&shown);
        let shown: HashSet<TxRef> = shown.into_iter().map(|utxo| utxo.reference).collect();
        let (unconfirmed, utxos) = spendable
            .into_iter()
            .partition(|utxo| !shown.contains(&utxo.reference) || snapshot.is_on_its_way(&utxo.reference));
        Ok(SellerWallet { parameters, address, snapshot, utxos, unconfirmed, shown, chains: true })
    }

    /// Writes down, then sends. Where another tick was first, nothing is sent. Why the ledger refused it, if it did.
    pub(super) async fn send(
        &mut self,
        draft: &Draft,
        change: &[Utxo],
        purchases: &[TxHash],
        platform: &mut SellerWallet,
    ) -> Result<Option<String>, TickError> {
        let taken = |utxo: &Utxo| draft.spends.contains(&utxo.reference) || draft.collateral.contains(&utxo.reference);
        let taken: Vec<Utxo> = platform.utxos.extract_if(.., |utxo| taken(utxo)).collect();
        let Some((entry, refused)) = self.hand_in(draft, purchases, &platform.snapshot).await? else {
            return Ok(None);
        };
        if entry.state == EntryState::Submitted && platform.chains {
            platform.shown.extend(change.iter().map(|utxo| utxo.reference));
            platform.unconfirmed.extend(change.iter().cloned());
        }
        if let Some(reason) = &refused {
            // What was refused for another's step is free again: the next action may spend it.
            let free = taken.into_iter().filter(|utxo| entry.state == EntryState::Refused && !is_named(reason, utxo));
            platform.utxos.extend(free);
        }
        Ok(refused)
    }

    /// The entry, and why the ledger refused it; nothing where another tick was first.
    async fn hand_in(
        &mut self,
        draft: &Draft,
        purchases: &[TxHash],
        known: &WalletSnapshot,
    ) -> Result<Option<(Entry, Option<String>)>, TickError> {
        let names: Vec<String> = purchases.iter().map(ToString::to_string).collect();
        let what = match names.as_slice() {
            [] => draft.kind.name().to_owned(),
            names => format!("{} of {}", draft.kind.name(), names.join(", ")),
        };
        let [entry, reserve] = write_down(draft, self.ports.now);
        let written = self.ports.database.batch(vec![entry, reserve, acts_on(draft, purchases)]).await?;
        let Some(mut entry) = written.first().map(Entry::first).transpose()?.flatten() else {
            self.report.notes.push(format!("{what} is being done already"));
            return Ok(None);
        };
        self.report.acted.push(format!("{what}: {}", draft.tx));
        let refused = self.outbox().submit_first(&mut entry, Some(known), self.ports.now).await?;
        if let Some(reason) = &refused {
            self.report.notes.push(format!("the ledger refused {}: {reason}", draft.tx));
        }
        Ok(Some((entry, refused)))
    }
}
