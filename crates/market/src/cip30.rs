//! External wallets, as they describe themselves with the methods of CIP-30.
//!
//! The description is not verified: a false one yields a draft that the ledger rejects.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use cardano::{
    Address, KeyHash, Lovelace,
    address::AddressError,
    blockfrost::keep_most_valuable_within,
    chain::{Utxo, Value},
    slots::Millis,
    tx::read_unspent,
};
use x402_cardano::exact::{MAX_INPUT_TOKENS, MAX_INPUT_TRANSACTIONS};

/// Maximum number of outputs in a wallet's description. Busy wallets have two thousand outputs.
pub const MAX_UTXOS: usize = 2_500;
/// Maximum number of tokens in a wallet's outputs. A token can take as few as four bytes in the request, but takes
/// about 150 in memory.
pub const MAX_TOKENS: usize = 10_000;
/// Maximum number of collateral outputs. The ledger allows three, and wallets usually have one.
pub const MAX_COLLATERAL: usize = 20;
/// Maximum number of addresses per wallet.
pub const MAX_ADDRESSES: usize = 200;

/// Maximum number of outputs that a draft spends.
pub const MAX_SPENT: usize = 32;

/// An external wallet, whose keys the service does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cip30Wallet {
    pub change: Address,
    /// Spendable outputs at addresses with payment keys. Outputs with reference scripts are excluded, because their fee
    /// is not known exactly and the paywall rejects them.
    pub utxos: Vec<Utxo>,
    /// Collateral outputs.
    pub collateral: Vec<Utxo>,
    /// Other addresses of the wallet.
    pub addresses: Vec<Address>,
}

/// A wallet's description of itself: the results of CIP-30's methods.
#[derive(Clone, Debug, Default)]
pub struct WalletDescription<'a> {
    /// `getChangeAddress()`: hex, or bech32.
    pub change_address: &'a str,
    /// `getUtxos()`: hex-encoded CBOR.
    pub utxos: Vec<&'a str>,
    /// `getCollateral()`, if available.
    pub collateral: Vec<&'a str>,
    /// Result of `getUsedAddresses()`; empty if the client sent none.
    pub addresses: Vec<&'a str>,
}

/// Invalid part of a description. The message names the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWallet {
    #[error("changeAddress: {0}")]
    ChangeAddress(AddressError),
    #[error("addresses[{0}]: {1}")]
    Address(usize, AddressError),
    /// A list has more than `most` items. `list` is the name of the request's field.
    #[error("{list}: at most {most} are read: send the largest")]
    TooMany { list: &'static str, most: usize },
    #[error("{list}[{index}]: not the hex of a CBOR unspent output, as CIP-30's getUtxos() gives it")]
    NotAnOutput { list: &'static str, index: usize },
    /// An output belongs to mainnet. `list` is the name of the request's field, and `index` the output's position in
    /// it.
    #[error("{list}[{index}]: {}", AddressError::WrongNetwork)]
    Mainnet { list: &'static str, index: usize },
}

impl Cip30Wallet {
    /// Parses a wallet's description of itself.
    ///
    /// # Errors
    /// Returns an error that names the first invalid part.
    pub fn read(described: &WalletDescription<'_>) -> Result<Self, InvalidWallet> {
        let change = Address::parse_cip30(described.change_address).map_err(InvalidWallet::ChangeAddress)?;
        at_most("addresses", &described.addresses, MAX_ADDRESSES)?;
        let address = |(index, text): (usize, &&str)| {
            Address::parse_cip30(text).map_err(|error| InvalidWallet::Address(index, error))
        };
        let addresses = described.addresses.iter().enumerate().map(address).collect::<Result<_, _>>()?;
        Ok(Self {
            change,
            utxos: outputs("utxos", &described.utxos, MAX_UTXOS)?,
            collateral: outputs("collateral", &described.collateral, MAX_COLLATERAL)?,
            addresses,
        })
    }

    /// Keeps only the largest outputs, as many as a draft may need. The payment keys of the dropped outputs are still
    /// known, as enterprise addresses.
    pub(crate) fn only_largest(self) -> Self {
        let few = |utxos: &[Utxo]| largest_few(&utxos.iter().collect::<Vec<_>>(), None, Utxo::is_plain).0;
        let (utxos, collateral) = (few(&self.utxos), few(&self.collateral));
        let keys = self.keys().into_iter().map(Address::enterprise);
        Self { change: self.change, utxos, collateral, addresses: keys.collect() }
    }

    /// Returns the wallet's payment keys.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<KeyHash> {
        let named = self.addresses.iter().chain([&self.change]).map(|address| *address.payment_key());
        named.chain(self.utxos.iter().chain(&self.collateral).filter_map(key_of)).collect()
    }
}

/// Selects at most [`MAX_SPENT`] of a wallet's outputs: those in `preferred` first, and larger ones before smaller
/// ones. `first` is an output that is spent in any case. Also returns the lovelace of all other outputs.
///
/// The selected outputs come from few enough transactions, and hold few enough tokens, that the paywall can look them
/// up.
pub(crate) fn largest_few(
    utxos: &[&Utxo],
    first: Option<&Utxo>,
    preferred: fn(&Utxo) -> bool,
) -> (Vec<Utxo>, Lovelace) {
    let mut sorted = utxos.to_vec();
    sorted.sort_by_key(|utxo| (!preferred(utxo), Reverse(utxo.value.lovelace), utxo.reference));
    let mut sources = first.iter().map(|utxo| utxo.reference.tx).collect::<BTreeSet<_>>();
    let mut tokens: usize = first.iter().map(|utxo| utxo.value.assets.len()).sum();
    let (mut few, mut left) = (vec![], vec![]);
    for utxo in sorted {
        let known = sources.contains(&utxo.reference.tx);
        let is_first = first.is_some_and(|first| first.reference == utxo.reference);
        let with = if is_first { tokens } else { tokens.saturating_add(utxo.value.assets.len()) };
        let is_light = is_first || with <= MAX_INPUT_TOKENS || (few.is_empty() && tokens == 0);
        if few.len() < MAX_SPENT && is_light && (known || sources.len() < MAX_INPUT_TRANSACTIONS) {
            tokens = with;
            sources.insert(utxo.reference.tx);
            few.push(utxo.clone());
        } else {
            left.push(utxo);
        }
    }
    (few, lovelace_of(&left))
}

pub(crate) fn lovelace_of(utxos: &[&Utxo]) -> Lovelace {
    utxos.iter().map(|utxo| utxo.value.lovelace).sum()
}

/// Sums the values of outputs for display. A sum that exceeds what a single output can hold is reduced to that maximum.
pub(crate) fn total_of(utxos: &[Utxo]) -> Value {
    let mut total = Value::default();
    for Value { lovelace, assets } in utxos.iter().map(|utxo| &utxo.value) {
        total.lovelace = [total.lovelace, *lovelace].into_iter().sum();
        for (unit, quantity) in assets {
            let sum = total.assets.entry(unit.clone()).or_default();
            *sum = sum.saturating_add(*quantity);
        }
    }
    total
}

/// Returns the quantity of each token as a decimal text, by the token's unit.
pub(crate) fn quantities(value: &Value) -> BTreeMap<String, String> {
    value.assets.iter().map(|(unit, quantity)| (unit.clone(), quantity.to_string())).collect()
}

/// Returns a note for the signer about the transaction's change; `None` if there is nothing to note.
pub(crate) fn change_words(change: &Value, to: &Address) -> Option<String> {
    let tokens = if change.assets.is_empty() { "" } else { ", and all tokens that were with it," };
    let lovelace = change.lovelace.display_tada();
    (*change != Value::default()).then(|| format!("{lovelace}{tokens} go back to you, to {to}."))
}

/// Returns the time from `now` until `until` in words, rounded down so that nobody is told more time than is left.
pub(crate) fn span(until: Millis, now: Millis) -> String {
    let seconds = until.saturating_sub(now) / 1_000;
    match seconds {
        1 => "1 second".to_owned(),
        0..120 => format!("{seconds} seconds"),
        120..7_200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3_600),
    }
}

/// Returns the payment key that must sign to spend an output. `None` if the output is at a script's address, or at one
/// without a payment key.
pub(crate) fn key_of(utxo: &Utxo) -> Option<KeyHash> {
    utxo.address.parse::<Address>().ok().map(|address| *address.payment_key())
}

fn at_most(list: &'static str, items: &[&str], most: usize) -> Result<(), InvalidWallet> {
    if items.len() > most { Err(InvalidWallet::TooMany { list, most }) } else { Ok(()) }
}

/// Parses a list of outputs and returns the spendable ones.
///
/// Omits outputs at script and Byron addresses, because the wallet's payment keys cannot spend these, and outputs with
/// reference scripts. If the outputs have more than [`MAX_TOKENS`] tokens in total, outputs with the least lovelace per
/// token are omitted too, because strangers can send such outputs to a wallet.
fn outputs(list: &'static str, items: &[&str], most: usize) -> Result<Vec<Utxo>, InvalidWallet> {
    at_most(list, items, most)?;
    let mut read = Vec::new();
    for (index, text) in items.iter().enumerate() {
        let utxo = output(list, index, text)?;
        let spendable = match utxo.address.parse::<Address>() {
            Ok(_) => utxo.reference_script.is_none(),
            Err(AddressError::WrongNetwork) => return Err(InvalidWallet::Mainnet { list, index }),
            Err(_) => false,
        };
        if spendable {
            read.push(utxo);
            keep_most_valuable_within(&mut read, MAX_TOKENS);
        }
    }
    Ok(read)
}

fn output(list: &'static str, index: usize, text: &str) -> Result<Utxo, InvalidWallet> {
    let bytes = hex::decode(text).ok();
    bytes.and_then(|bytes| read_unspent(&bytes).ok()).ok_or(InvalidWallet::NotAnOutput { list, index })
}
