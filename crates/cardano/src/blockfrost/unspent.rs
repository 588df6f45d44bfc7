//! Parses outputs as Blockfrost lists them, and collects the unspent outputs of an address.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    ChainResult, json, malformed,
    parameters::Number,
    stream::{self, Collect},
};
use crate::{
    chain::{Utxo, Value},
    hash::{ScriptHash, TxHash, TxRef},
    money::Lovelace,
};

/// Maximum number of outputs to read from one transaction or page. Because the ledger limits a transaction's size, real
/// transactions have far fewer.
pub(super) const MAX_OUTPUTS: usize = 1_000;
/// Maximum number of different tokens to read from one output. An output's value has at most 5,000 bytes
/// (`maxValueSize`) and each token at least 3, so every valid output can be read. Otherwise a stranger could block a
/// wallet's payments by sending an output that cannot be read.
const MAX_ASSETS: usize = 2_000;

/// Maximum number of tokens that one request holds in memory (about 400 kB), because dozens of requests may run at
/// once. At least one output always fits, because an output holds at most 1,600 tokens.
const MAX_TOKENS: usize = 2_000;

#[derive(Deserialize)]
struct QuantityJson {
    unit: String,
    quantity: Number,
}

fn value(amounts: Vec<QuantityJson>) -> ChainResult<Value> {
    if amounts.len() > MAX_ASSETS {
        return malformed("an output with too many assets");
    }
    let mut lovelace = None;
    let mut assets = BTreeMap::new();
    for QuantityJson { unit, quantity } in amounts {
        if unit == "lovelace" {
            let amount: Lovelace = quantity.text().parse().or_else(|_| malformed("an amount of lovelace"))?;
            if lovelace.replace(amount).is_some() {
                return malformed("two amounts of lovelace in one output");
            }
            continue;
        }
        let is_unit = (56..=120).contains(&unit.len()) && unit.len() % 2 == 0 && hex::decode(&unit).is_ok();
        let quantity: u64 = quantity.text().parse().or_else(|_| malformed("a quantity of a token"))?;
        if !is_unit || quantity == 0 || assets.insert(unit, quantity).is_some() {
            return malformed("a token of an output");
        }
    }
    match lovelace {
        Some(lovelace) => Ok(Value { lovelace, assets }),
        None => malformed("an output without lovelace"),
    }
}

#[derive(Deserialize)]
pub(super) struct OutputJson {
    pub(super) address: Option<String>,
    tx_hash: Option<TxHash>,
    amount: Vec<QuantityJson>,
    output_index: u16,
    data_hash: Option<String>,
    inline_datum: Option<String>,
    reference_script_hash: Option<ScriptHash>,
    pub(super) collateral: Option<bool>,
    #[serde(default)]
    pub(super) consumed_by_tx: Option<TxHash>,
}

impl OutputJson {
    pub(super) fn utxo(self, tx: TxHash, address: &str) -> ChainResult<Utxo> {
        let datum_hash = match self.data_hash.map(hex::decode) {
            None => None,
            Some(Ok(bytes)) => Some(bytes.try_into().or_else(|_| malformed("a datum hash"))?),
            Some(Err(_)) => return malformed("a datum hash"),
        };
        let inline_datum = self.inline_datum.map(hex::decode).transpose().or_else(|_| malformed("an inline datum"))?;
        Ok(Utxo {
            reference: TxRef { tx, index: self.output_index },
            address: self.address.unwrap_or_else(|| address.to_owned()),
            value: value(self.amount)?,
            inline_datum,
            datum_hash,
            reference_script: self.reference_script_hash,
        })
    }
}

/// Reader for the response of `/addresses/{address}`: yields the lovelace at an address and skips the tokens.
#[derive(Debug, Default)]
pub struct LovelaceReader(Option<Lovelace>);

impl Collect for LovelaceReader {
    type Out = Lovelace;
    const LIST: Option<&'static str> = Some("amount");

    fn element(&mut self, text: &[u8]) -> ChainResult<bool> {
        let QuantityJson { unit, quantity } = json(text, "an amount at an address")?;
        if unit == "lovelace" {
            self.0 = Some(quantity.text().parse().or_else(|_| malformed("an amount of lovelace"))?);
        }
        Ok(self.0.is_none())
    }

    fn out(self) -> ChainResult<Lovelace> {
        Ok(self.0.unwrap_or(Lovelace::ZERO))
    }
}

/// Reader for one page of the response of `/addresses/{address}/utxos`.
#[derive(Debug)]
pub struct UnspentPage {
    address: String,
    has_datums: bool,
    page: UnspentOutputs,
}

/// The unspent outputs on one page.
#[derive(Debug, Default)]
pub struct UnspentOutputs {
    /// Outputs on the page, except outputs that were dropped because they hold many tokens.
    pub utxos: Vec<Utxo>,
    /// References of all outputs on the page, including dropped ones.
    pub listed: Vec<TxRef>,
}

impl UnspentPage {
    /// Creates a reader for a page of outputs at this address (bech32).
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self { address: address.to_owned(), has_datums: true, page: UnspentOutputs::default() }
    }

    /// Makes the reader skip inline datums, which can amount to megabytes. They are not needed to spend outputs at key
    /// addresses.
    #[must_use]
    pub fn without_datums(self) -> Self {
        Self { has_datums: false, ..self }
    }
}

impl Collect for UnspentPage {
    type Out = UnspentOutputs;
    const LIST: Option<&'static str> = None;

    fn element(&mut self, text: &[u8]) -> ChainResult<bool> {
        if self.page.listed.len() >= MAX_OUTPUTS {
            return malformed("too many outputs");
        }
        let output: OutputJson = json(text, "an unspent output")?;
        let Some(tx) = output.tx_hash else { return malformed("an unspent output without its transaction") };
        let mut utxo = output.utxo(tx, &self.address)?;
        utxo.inline_datum = utxo.inline_datum.filter(|_| self.has_datums);
        self.page.listed.push(utxo.reference);
        self.page.utxos.push(utxo);
        keep_most_valuable(&mut self.page.utxos);
        Ok(true)
    }

    fn out(self) -> ChainResult<UnspentOutputs> {
        Ok(self.page)
    }
}

/// Parses a complete page of unspent outputs. The field `utxos` of the result can be passed to a
/// [`Wallet`](crate::tx::build::Wallet). [`Client`](super::Client) reads all pages of an address
/// ([`Chain::utxos_at`](crate::chain::Chain::utxos_at)).
///
/// # Errors
/// [`ChainError`](crate::chain::ChainError) if the response does not have the documented shape.
pub fn unspent_outputs(body: &[u8], address: &str) -> ChainResult<UnspentOutputs> {
    stream::whole(body, UnspentPage::at(address))
}

/// The unspent outputs of a wallet that have been read so far. Pages are read alternately from both ends of the list,
/// so that a stranger who fills one end with outputs cannot hide the outputs at the other end.
#[derive(Debug, Default)]
pub struct Holdings {
    utxos: Vec<Utxo>,
    seen: BTreeMap<TxRef, End>,
}

/// An end of the list of unspent outputs at an address. The list is in chain order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end with the outputs of the earliest blocks.
    Oldest,
    /// The end with the outputs of the latest blocks.
    Newest,
}

impl End {
    /// Returns the value of Blockfrost's parameter `order` for a list that begins at this end.
    #[must_use]
    pub const fn order(self) -> &'static str {
        match self {
            Self::Oldest => "asc",
            Self::Newest => "desc",
        }
    }
}

impl Holdings {
    /// Returns the number and end of each page to request, alternating between the ends, up to `most` pages from each.
    /// Pages are numbered from 1.
    pub fn pages(most: usize) -> impl Iterator<Item = (usize, End)> {
        (1..=most).flat_map(|page| [(page, End::Oldest), (page, End::Newest)])
    }

    /// Adds a page that was read from one end of the list. Returns whether unread outputs may remain. `full` is the
    /// number of outputs on a full page.
    pub fn take(&mut self, end: End, page: UnspentOutputs, full: usize) -> bool {
        let met = page.listed.iter().any(|listed| self.seen.get(listed).is_some_and(|other| *other != end));
        let more = page.listed.len() >= full && !met;
        self.utxos.extend(page.utxos.into_iter().filter(|utxo| !self.seen.contains_key(&utxo.reference)));
        self.seen.extend(page.listed.into_iter().map(|listed| (listed, end)));
        keep_most_valuable(&mut self.utxos);
        more
    }

    /// Returns the outputs that have been read so far, except outputs that were dropped because they hold many tokens.
    #[must_use]
    pub fn utxos(&self) -> &[Utxo] {
        &self.utxos
    }

    /// Converts to the outputs that have been read so far, except outputs that were dropped because they hold many
    /// tokens.
    #[must_use]
    pub fn into_utxos(self) -> Vec<Utxo> {
        self.utxos
    }
}

/// Drops the outputs with the least lovelace per token until at most `MAX_TOKENS` tokens remain. A dropped output can
/// be read again once other outputs have been spent.
pub fn keep_most_valuable(utxos: &mut Vec<Utxo>) {
    keep_most_valuable_within(utxos, MAX_TOKENS);
}

/// Drops outputs like [`keep_most_valuable`] until at most `most` tokens remain.
pub fn keep_most_valuable_within(utxos: &mut Vec<Utxo>, most: usize) {
    let tokens = |utxo: &Utxo| utxo.value.assets.len();
    let mut held: usize = utxos.iter().map(tokens).sum();
    let worth = |utxo: &Utxo| u128::from(utxo.value.lovelace.get()).checked_div(tokens(utxo) as u128);
    while held > most {
        let laden = utxos.iter().enumerate().filter_map(|(index, utxo)| Some((worth(utxo)?, index)));
        let Some((_, worst)) = laden.min() else { break };
        held = held.saturating_sub(tokens(&utxos.swap_remove(worst)));
    }
}
