//! Reads the platform's wallet, and sends from it: written down first, with what it spends.

use cardano::{Lovelace, chain::Utxo, keys::SigningKey};
use outbox::{Draft, Entry, EntryState, WalletSnapshot, write_down};
use sql::Database;

use crate::{
    contents::Contents,
    platform::{PlatformWallet, is_named},
    port_error::PortError,
    watch::{ArbiterClient, Keys, Ledger, context::Tick},
};

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// The platform's wallet with as much as is needed, or all that it may spend now: read once in a tick.
    pub(super) async fn take_wallet(&mut self, key: &SigningKey, needs: Lovelace) -> Result<PlatformWallet, PortError> {
        if let Some(known) = self.wallet.take() {
            return Ok(known);
        }
        let (ports, tip_slot) = (self.ports, self.view.tip.slot);
        let address = key.enterprise_address();
        Ok(PlatformWallet::read(ports.database, ports.chain, address, tip_slot, ports.now, needs).await?)
    }

    /// Writes down, then sends. Where another tick was first, nothing is sent. Why the ledger refused it, if it did.
    pub(super) async fn send(
        &mut self,
        draft: &Draft,
        change: &[Utxo],
        platform: &mut PlatformWallet,
    ) -> Result<Option<String>, PortError> {
        let taken = |utxo: &Utxo| draft.spends.contains(&utxo.reference) || draft.collateral.contains(&utxo.reference);
        let taken: Vec<Utxo> = platform.utxos.extract_if(.., |utxo| taken(utxo)).collect();
        let Some((entry, refused)) = self.write_and_submit(draft, &platform.snapshot).await? else {
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
    async fn write_and_submit(
        &mut self,
        draft: &Draft,
        known: &WalletSnapshot,
    ) -> Result<Option<(Entry, Option<String>)>, PortError> {
        let names: Vec<String> = draft.acts_on.iter().map(ToString::to_string).collect();
        let what = match names.as_slice() {
            [] => draft.kind.name().to_owned(),
            names => format!("{} of {}", draft.kind.name(), names.join(", ")),
        };
        let written = self.ports.database.run(write_down(draft, self.ports.now)).await?;
        let Some(mut entry) = Entry::first(&written)? else {
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
