//! The platform's wallet in one tick, and what is sent from it: written down first, with what it spends.

use std::collections::{BTreeSet, HashSet};

use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, Utxo},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    params::ProtocolParameters,
    slots::Millis,
    tx::build::Wallet,
};
use outbox::{Draft, Entry, EntryState, WalletSnapshot, snapshot, write_down};
use sql::{Database, exactly};

use super::super::{Report, TickError, TickView, Watch};
use crate::{
    contents::Contents,
    platform::{PAYS_ALONE, free_outputs, pays_alone},
    results::acts_on,
};

/// So many outputs are not gathered, however small: results go at once with one of each.
const FEW: usize = 30;
/// How many of them one action gathers.
const MAX_DUST: usize = 3;

/// What pays for actions, read once for each tick that acts.
pub(super) struct SellerWallet {
    pub parameters: ProtocolParameters,
    pub address: Address,
    snapshot: WalletSnapshot,
    utxos: Vec<Utxo>,
    /// Its change that no block has: spent where nothing else is enough, for whoever overtakes what makes it takes along what
    /// spends it.
    on_its_way: Vec<Utxo>,
    shown: HashSet<TxRef>,
    /// Whether change of what was sent in this tick may be spent: not where who runs scripts has shown not to know it.
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

    /// Takes its change that is on its way for as good as the rest. Whether there is any.
    pub fn spend_change(&mut self) -> bool {
        let any = !self.on_its_way.is_empty();
        self.utxos.append(&mut self.on_its_way);
        any
    }

    /// Leaves out what the provider does not show: change of ours that is on its way, or that somebody with the same key
    /// has spent elsewhere. Whether there was any.
    pub fn distrust(&mut self) -> bool {
        let before = self.utxos.len();
        self.utxos.retain(|utxo| self.shown.contains(&utxo.reference));
        self.on_its_way.retain(|utxo| self.shown.contains(&utxo.reference));
        self.utxos.len() < before
    }

    /// The same, and what the provider's reason names: who runs scripts may know nothing of what is in no block, or of what
    /// another node has. Whether there was any.
    pub fn distrust_what(&mut self, reason: &str) -> bool {
        let before = self.utxos.len();
        self.utxos.retain(|utxo| !is_named(reason, utxo));
        self.chains &= self.utxos.len() == before;
        self.distrust() || self.utxos.len() < before
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

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// What the platform's wallet may spend now: as much as is needed, or all.
    pub(super) async fn platform<'p>(
        &self,
        platform: &'p mut Option<SellerWallet>,
        key: &SigningKey,
        needs: Lovelace,
        view: &TickView,
    ) -> Result<&'p mut SellerWallet, TickError> {
        let known = match platform.take() {
            Some(known) => known,
            None => {
                let address = key.enterprise_address();
                let parameters = self.chain.protocol_parameters().await?;
                let reads = snapshot(&address, view.tip.slot, self.now);
                let read = exactly(self.database.batch(reads.into()).await?)?;
                let snapshot = WalletSnapshot::read(&address, &read)?;
                let enough = |shown: &[Utxo]| {
                    let free = free_outputs(shown, &snapshot).filter(|utxo| pays_alone(utxo));
                    free.map(|utxo| utxo.value.lovelace).sum::<Lovelace>() >= needs
                };
                let shown = self.chain.utxos_at(&address.to_string(), enough).await?;
                let spendable = snapshot.spendable(&shown);
                let shown: HashSet<TxRef> = shown.into_iter().map(|utxo| utxo.reference).collect();
                let (on_its_way, utxos) = spendable
                    .into_iter()
                    .partition(|utxo| !shown.contains(&utxo.reference) || snapshot.is_on_its_way(&utxo.reference));
                SellerWallet { parameters, address, snapshot, utxos, on_its_way, shown, chains: true }
            }
        };
        Ok(platform.insert(known))
    }

    /// Writes down, then sends. Where another tick was first, nothing is sent. Why the ledger refused it, if it did.
    pub(super) async fn send(
        &self,
        draft: &Draft,
        change: &[Utxo],
        purchases: &[TxHash],
        platform: &mut SellerWallet,
        report: &mut Report,
    ) -> Result<Option<String>, TickError> {
        let taken = |utxo: &Utxo| draft.spends.contains(&utxo.reference) || draft.collateral.contains(&utxo.reference);
        let taken: Vec<Utxo> = platform.utxos.extract_if(.., |utxo| taken(utxo)).collect();
        let known = Some(&platform.snapshot);
        let Some((entry, refused)) = self.hand_in(draft, purchases, known, self.now, report).await? else {
            return Ok(None);
        };
        if entry.state == EntryState::Submitted && platform.chains {
            platform.shown.extend(change.iter().map(|utxo| utxo.reference));
            platform.on_its_way.extend(change.iter().cloned());
        }
        if let Some(reason) = &refused {
            // What was refused for somebody else's step holds nothing of ours any more: the next may spend it.
            let free = taken.into_iter().filter(|utxo| entry.state == EntryState::Refused && !is_named(reason, utxo));
            platform.utxos.extend(free);
        }
        Ok(refused)
    }

    /// The same, whatever it spends: the entry, and why the ledger refused it; nothing where another tick was first.
    pub(super) async fn hand_in(
        &self,
        draft: &Draft,
        purchases: &[TxHash],
        known: Option<&WalletSnapshot>,
        now: Millis,
        report: &mut Report,
    ) -> Result<Option<(Entry, Option<String>)>, TickError> {
        let names: Vec<String> = purchases.iter().map(ToString::to_string).collect();
        let what = match names.as_slice() {
            [] => draft.kind.name().to_owned(),
            names => format!("{} of {}", draft.kind.name(), names.join(", ")),
        };
        let [entry, reserve] = write_down(draft, now);
        let written = self.database.batch(vec![entry, reserve, acts_on(draft, purchases)]).await?;
        let Some(mut entry) = written.first().map(Entry::first).transpose()?.flatten() else {
            report.notes.push(format!("{what} is being done already"));
            return Ok(None);
        };
        report.acted.push(format!("{what}: {}", draft.tx));
        let refused = self.outbox().submit_first(&mut entry, known, now).await?;
        if let Some(reason) = &refused {
            report.notes.push(format!("the ledger refused {}: {reason}", draft.tx));
        }
        Ok(Some((entry, refused)))
    }
}
