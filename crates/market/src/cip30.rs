//! A wallet in a browser or a program, as it describes itself (CIP-30): the service does not hold its keys.
//!
//! What it says is taken as it comes. What is not true gives a draft that the ledger refuses, and costs no one anything.

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

/// Outputs that are read of a wallet at most: busy ones hold two thousand, and reading one takes some microseconds.
pub const MAX_UTXOS: usize = 2_500;
/// Tokens in them that are read, of some hundred and fifty bytes each: four bytes of a body say one.
pub const MAX_TOKENS: usize = 10_000;
/// Outputs that a wallet may set aside as collateral: wallets hold one, the ledger takes three.
pub const MAX_COLLATERAL: usize = 20;
/// Addresses that a wallet may name as its own.
pub const MAX_ADDRESSES: usize = 200;

/// Outputs that one draft spends at most: with many tokens in each, trying more would take long.
pub const MAX_SPENT: usize = 32;

/// A wallet whose keys the service does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cip30Wallet {
    pub change: Address,
    /// What it may spend: outputs of keys. Those that carry scripts stay where they are, for their bytes would cost a
    /// fee that cannot be known exactly, and a paywall takes no such input.
    pub utxos: Vec<Utxo>,
    /// What it set aside as collateral.
    pub collateral: Vec<Utxo>,
    /// Addresses that it named as its own beyond these.
    pub addresses: Vec<Address>,
}

/// A wallet's description as it came: texts of CIP-30's methods.
#[derive(Clone, Debug, Default)]
pub struct WalletDescription<'a> {
    /// `getChangeAddress()`: hex, or bech32.
    pub change_address: &'a str,
    /// `getUtxos()`: hex of CBOR.
    pub utxos: Vec<&'a str>,
    /// `getCollateral()`, where it was asked.
    pub collateral: Vec<&'a str>,
    /// `getUsedAddresses()`, where it was asked.
    pub addresses: Vec<&'a str>,
}

/// What of a description cannot be used. The text names the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWallet {
    #[error("changeAddress: {0}")]
    ChangeAddress(AddressError),
    #[error("addresses[{0}]: {1}")]
    Address(usize, AddressError),
    /// `list` is its name in the request, as in the next two.
    #[error("{list}: at most {most} are read: send the largest")]
    TooMany { list: &'static str, most: usize },
    #[error("{list}[{index}]: not the hex of a CBOR unspent output, as CIP-30's getUtxos() gives it")]
    NotAnOutput { list: &'static str, index: usize },
    /// An output of mainnet, so that the wallet is there.
    #[error("{list}[{index}]: {}", AddressError::WrongNetwork)]
    Mainnet { list: &'static str, index: usize },
}

impl Cip30Wallet {
    /// Reads a description.
    ///
    /// # Errors
    /// The first part that cannot be used.
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

    /// It with the largest of its outputs alone, as many as a draft may need, and with the keys of all.
    pub(crate) fn only_largest(self) -> Self {
        let few = |utxos: &[Utxo]| largest_few(&utxos.iter().collect::<Vec<_>>(), None, Utxo::is_plain).0;
        let (utxos, collateral) = (few(&self.utxos), few(&self.collateral));
        let keys = self.keys().into_iter().map(Address::enterprise);
        Self { change: self.change, utxos, collateral, addresses: keys.collect() }
    }

    /// The keys that it says it has.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<KeyHash> {
        let named = self.addresses.iter().chain([&self.change]).map(|address| *address.payment_key());
        named.chain(self.utxos.iter().chain(&self.collateral).filter_map(key_of)).collect()
    }
}

/// The largest of these outputs, the preferred ones first: no more than [`MAX_SPENT`], with the one that is spent in
/// any case. They are from no more transactions and, beyond one output, with no more tokens than a paywall looks up.
/// Second: what is in the others.
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

/// What outputs hold together. Sums beyond what one output can hold are cut: they are shown, not paid.
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

/// Quantities of tokens by their units, as decimal texts.
pub(crate) fn quantities(value: &Value) -> BTreeMap<String, String> {
    value.assets.iter().map(|(unit, quantity)| (unit.clone(), quantity.to_string())).collect()
}

/// What is said of change.
pub(crate) fn change_words(change: &Value, to: &Address) -> Option<String> {
    let tokens = if change.assets.is_empty() { "" } else { ", and all tokens that were with it," };
    let lovelace = change.lovelace.display_tada();
    (*change != Value::default()).then(|| format!("{lovelace}{tokens} go back to you, to {to}."))
}

/// How long it is until then, for people: rounded down, as one who must hurry has to hear it.
pub(crate) fn span(until: Millis, now: Millis) -> String {
    let seconds = until.saturating_sub(now) / 1_000;
    match seconds {
        1 => "1 second".to_owned(),
        0..120 => format!("{seconds} seconds"),
        120..7_200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3_600),
    }
}

/// The key that spends an output of a wallet.
pub(crate) fn key_of(utxo: &Utxo) -> Option<KeyHash> {
    utxo.address.parse::<Address>().ok().map(|address| *address.payment_key())
}

fn at_most(list: &'static str, items: &[&str], most: usize) -> Result<(), InvalidWallet> {
    if items.len() > most { Err(InvalidWallet::TooMany { list, most }) } else { Ok(()) }
}

/// The outputs in a list that may be spent. Left out are those of scripts and of Byron's addresses, which no key of the
/// wallet spends here. Left out, too, are those with the least lovelace for each token, where all together have more
/// tokens than are kept. Strangers give such to a wallet, and its page hands over whatever it has.
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
