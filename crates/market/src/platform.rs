//! The platform's wallet. It pays the network fees of results (the transactions that post the hash of a delivered
//! content in an escrow), and of the watcher's other actions.
//!
//! The wallet is split into [`OUTPUTS`] outputs, so that results of different sales do not depend on each other's
//! change.

use std::collections::{BTreeSet, HashSet};

use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, Utxo},
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{NewOutput, Wallet},
};
use outbox::{OutboxError, WalletSnapshot};
use sql::Database;

/// Minimum amount of an output that can pay for an action alone: fee, collateral and change.
pub(crate) const MIN_FUNDS: Lovelace = Lovelace::from_ada(3);
/// Amount of each output that is created when the platform's wallet is split. One output pays the fees of about a dozen
/// escrow transactions.
const SPLIT: Lovelace = Lovelace::from_ada(8);
/// Number of outputs that the wallet is split into, and so the number of independent transactions that can be pending
/// at once.
pub(crate) const OUTPUTS: usize = 60;
/// Maximum number of new outputs per transaction, which keeps the transaction below the size limit.
const MAX_SPLIT: usize = 50;
/// Amount that is kept in one output, for payouts to creators and for the fees of one run of the watcher.
const UNSPLIT_RESERVE: Lovelace = Lovelace::from_ada(50);
/// Number of blocks after which the watcher checks the wallet's outputs even if nothing is to be paid: about an hour.
const WALLET_CHECK_BLOCKS: u64 = 180;

/// Returns whether this run of the watcher checks the wallet even if nothing is to be paid. The first run does, and
/// then about one per hour. `before` is the newest block of the previous run.
pub(crate) fn is_wallet_check_due(before: Option<u64>, now: u64) -> bool {
    let period = |height: u64| height.checked_div(WALLET_CHECK_BLOCKS);
    before.is_none_or(|before| period(before) != period(now))
}

/// Returns whether an output can pay for an action alone. Outputs with tokens or scripts are excluded.
pub(crate) fn pays_alone(utxo: &Utxo) -> bool {
    utxo.is_plain() && utxo.value.lovelace >= MIN_FUNDS
}

/// Plans to split the wallet's largest output if fewer than half of [`OUTPUTS`] remain. Returns the output to spend and
/// the new outputs.
pub(crate) fn split(utxos: &[Utxo], address: Address) -> Option<(Utxo, Vec<NewOutput>)> {
    let separate = utxos.iter().filter(|utxo| pays_alone(utxo)).count();
    if separate.saturating_mul(2) >= OUTPUTS {
        return None;
    }
    let largest = utxos.iter().filter(|utxo| utxo.is_plain()).max_by_key(|utxo| utxo.value.lovelace)?;
    let spare = largest.value.lovelace.saturating_sub(UNSPLIT_RESERVE).get().checked_div(SPLIT.get())?;
    let count = usize::try_from(spare).unwrap_or(usize::MAX).min(OUTPUTS.saturating_sub(separate)).min(MAX_SPLIT);
    (count >= 2).then(|| (largest.clone(), vec![NewOutput::pay(address, SPLIT); count]))
}

/// Number of outputs above which actions merge small outputs of the wallet.
const MERGE_ABOVE: usize = 30;
/// Maximum number of small outputs that one action merges.
const MAX_DUST: usize = 3;

/// The platform's wallet, as read for posting a result or for a run of the watcher.
pub(crate) struct PlatformWallet {
    pub parameters: ProtocolParameters,
    pub address: Address,
    pub snapshot: WalletSnapshot,
    /// Outputs that are included in a block and not reserved.
    pub utxos: Vec<Utxo>,
    /// Change of unconfirmed transactions, which is spent only if nothing else suffices. A transaction that spends such
    /// change can be included only if the transaction that creates it is included.
    pub unconfirmed: Vec<Utxo>,
    pub shown: HashSet<TxRef>,
    /// Whether change of unconfirmed transactions may be spent. `false` once the node has rejected a transaction,
    /// because the node may not know this change.
    pub may_spend_unconfirmed: bool,
    /// The amount that was passed to [`PlatformWallet::read`], kept for reading the wallet again.
    amount_to_read: Lovelace,
}

static NONE: BTreeSet<TxRef> = BTreeSet::new();

impl PlatformWallet {
    /// Reads the wallet page by page. Stops when the unreserved outputs that can each pay for an action alone hold
    /// `needs` in total, or after the last page.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn read(
        database: &impl Database,
        chain: &impl Chain,
        address: Address,
        tip_slot: u64,
        now: Millis,
        needs: Lovelace,
    ) -> Result<Self, OutboxError> {
        let snapshot = WalletSnapshot::load(database, &address, tip_slot, now).await?;
        let shown = chain.utxos_at(&address.to_string(), |shown| holds(shown, &snapshot, needs)).await?;
        Self::of(chain, address, snapshot, shown, needs).await
    }

    /// Reads the wallet like [`PlatformWallet::read`], for one action. Concurrent requests share one response of the
    /// provider until the next block. An output that a request spends is reserved in the database, so no other request
    /// spends it.
    ///
    /// # Errors
    /// See [`PlatformWallet::read`].
    pub async fn read_shared(
        database: &impl Database,
        chain: &impl Chain,
        address: Address,
        tip_slot: u64,
        now: Millis,
    ) -> Result<Self, OutboxError> {
        let snapshot = WalletSnapshot::load(database, &address, tip_slot, now).await?;
        let enough = |shown: &[Utxo]| holds(shown, &snapshot, MIN_FUNDS);
        let shown = chain.shared_utxos_at(&address.to_string(), enough).await?;
        Self::of(chain, address, snapshot, shown, MIN_FUNDS).await
    }

    /// Creates the wallet from the outputs that the provider shows.
    async fn of(
        chain: &impl Chain,
        address: Address,
        snapshot: WalletSnapshot,
        shown: Vec<Utxo>,
        needs: Lovelace,
    ) -> Result<Self, OutboxError> {
        let parameters = chain.protocol_parameters().await?;
        let spendable = snapshot.spendable(&shown);
        let shown: HashSet<TxRef> = shown.into_iter().map(|utxo| utxo.reference).collect();
        let (unconfirmed, utxos) = spendable
            .into_iter()
            .partition(|utxo| !shown.contains(&utxo.reference) || snapshot.is_unconfirmed(&utxo.reference));
        Ok(Self {
            parameters,
            address,
            snapshot,
            utxos,
            unconfirmed,
            shown,
            may_spend_unconfirmed: true,
            amount_to_read: needs,
        })
    }

    /// Reads the wallet again after a rejection. The rejection may mean that a request has spent one of its outputs, or
    /// that the node does not know unconfirmed change. From then on, only outputs that the provider shows are spent.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn read_again(
        &mut self,
        database: &impl Database,
        chain: &impl Chain,
        tip_slot: u64,
        now: Millis,
    ) -> Result<(), OutboxError> {
        *self = Self::read(database, chain, self.address, tip_slot, now, self.amount_to_read).await?;
        self.drop_unshown();
        self.may_spend_unconfirmed = false;
        Ok(())
    }

    pub const fn wallet(&self) -> Wallet<'_> {
        Wallet { address: self.address, utxos: self.utxos.as_slice(), reserved: &NONE }
    }

    /// Returns the smallest outputs to merge; none if the wallet has at most [`MERGE_ABOVE`] outputs. Merging is cheap,
    /// and shortens later reads of the wallet.
    pub fn dust(&self) -> Vec<Utxo> {
        let dust = self.utxos.iter().filter(|utxo| self.utxos.len() > MERGE_ABOVE && is_dust(utxo));
        let mut dust: Vec<&Utxo> = dust.collect();
        dust.sort_by_key(|utxo| (utxo.value.lovelace, utxo.reference));
        dust.into_iter().take(MAX_DUST).cloned().collect()
    }

    /// Makes unconfirmed change spendable. Returns whether there was any.
    pub fn spend_change(&mut self) -> bool {
        let any = !self.unconfirmed.is_empty();
        self.utxos.append(&mut self.unconfirmed);
        any
    }

    /// Drops outputs that the provider does not show. They are unconfirmed change, or were spent by another holder of
    /// the key.
    pub fn drop_unshown(&mut self) {
        self.utxos.retain(|utxo| self.shown.contains(&utxo.reference));
        self.unconfirmed.retain(|utxo| self.shown.contains(&utxo.reference));
    }

    /// Returns an output that pays for an action alone, if there is one. The choice depends on the purchase and on the
    /// number of the attempt, so that concurrent requests rarely choose the same output.
    pub fn output_for(&self, purchase: &TxHash, attempt: usize) -> Option<&Utxo> {
        let alone: Vec<&Utxo> = self.utxos.iter().filter(|utxo| pays_alone(utxo)).collect();
        let spread =
            purchase.as_bytes().iter().fold(attempt, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
        spread.checked_rem(alone.len()).and_then(|at| alone.get(at)).copied()
    }
}

/// Returns whether the unreserved outputs that can each pay for an action alone hold `amount` in total.
fn holds(shown: &[Utxo], snapshot: &WalletSnapshot, amount: Lovelace) -> bool {
    let free = shown.iter().filter(|utxo| pays_alone(utxo) && !snapshot.reserved.contains(&utxo.reference));
    free.map(|utxo| utxo.value.lovelace).sum::<Lovelace>() >= amount
}

/// Returns whether an output is small enough to be worth merging. A datum or a script in it does not matter: spending a
/// datum costs nothing, and a script costs less than the ADA that its output must hold.
fn is_dust(utxo: &Utxo) -> bool {
    utxo.value.assets.is_empty() && utxo.value.lovelace < MIN_FUNDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::{TxHash, TxRef, chain::Value, keys::SigningKey};

    fn outputs(ada: &[u32]) -> Vec<Utxo> {
        let of = |(index, ada): (u16, &u32)| Utxo {
            reference: TxRef { tx: TxHash::new([1; 32]), index },
            address: String::new(),
            value: Value { lovelace: Lovelace::from_ada(*ada), ..Value::default() },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        };
        (0..).zip(ada).map(of).collect()
    }

    #[test]
    fn a_wallet_is_checked_first_and_then_about_every_hour() {
        assert!(is_wallet_check_due(None, 7));
        assert!(!is_wallet_check_due(Some(7), 7));
        assert!(!is_wallet_check_due(Some(180), 359));
        assert!(is_wallet_check_due(Some(359), 360));
    }

    #[test]
    fn a_wallet_with_few_outputs_splits_its_largest() {
        let address = SigningKey::from_seed(&[1; 32]).unwrap().enterprise_address();
        let count = |ada: &[u32]| split(&outputs(ada), address).map(|(from, made)| (from.reference.index, made.len()));
        assert_eq!(count(&[]), None);
        assert_eq!(count(&[60]), None, "nothing to spare");
        assert_eq!(count(&[2, 100, 90]), Some((1, 6)), "of what it holds beyond the part that stays whole");
        assert_eq!(count(&[10_000]), Some((0, MAX_SPLIT)));
        assert_eq!(count(&[[8; 29].as_slice(), &[10_000]].concat()), None, "half of them are enough");
        assert_eq!(count(&[[8; 28].as_slice(), &[10_000]].concat()), Some((28, 31)));
    }
}
