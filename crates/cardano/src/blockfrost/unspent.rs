//! Outputs as Blockfrost lists them, and those that are unspent at an address.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Answer, json, malformed};
use crate::{
    chain::{Utxo, Value},
    hash::{ScriptHash, TxHash, TxRef},
    money::Lovelace,
};

/// Outputs of one transaction or page that are read at most; the ledger's size limit keeps real ones far below.
pub(super) const MAX_OUTPUTS: usize = 1_000;
/// Different tokens in one output that are read at most. Anyone may send an output with as many as the ledger allows to
/// any address, and one that is not read stops whoever must read it: 5,000 bytes of value (`maxValueSize`) hold fewer
/// than one for each 3 bytes.
const MAX_ASSETS: usize = 2_000;

#[derive(Deserialize)]
struct Amount {
    unit: String,
    quantity: String,
}

fn value(amounts: Vec<Amount>) -> Answer<Value> {
    if amounts.len() > MAX_ASSETS {
        return malformed("an output with too many assets");
    }
    let mut lovelace = None;
    let mut assets = BTreeMap::new();
    for Amount { unit, quantity } in amounts {
        if unit == "lovelace" {
            let amount: Lovelace = quantity.parse().or_else(|_| malformed("an amount of lovelace"))?;
            if lovelace.replace(amount).is_some() {
                return malformed("two amounts of lovelace in one output");
            }
            continue;
        }
        let is_unit = (56..=120).contains(&unit.len()) && unit.len() % 2 == 0 && hex::decode(&unit).is_ok();
        let quantity: u64 = quantity.parse().or_else(|_| malformed("a quantity of a token"))?;
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
pub(super) struct Output {
    pub(super) address: Option<String>,
    tx_hash: Option<TxHash>,
    amount: Vec<Amount>,
    output_index: u16,
    data_hash: Option<String>,
    inline_datum: Option<String>,
    reference_script_hash: Option<ScriptHash>,
    #[serde(default)]
    pub(super) collateral: bool,
    #[serde(default)]
    pub(super) consumed_by_tx: Option<TxHash>,
}

impl Output {
    pub(super) fn utxo(self, tx: TxHash, address: &str) -> Answer<Utxo> {
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

#[derive(Deserialize)]
struct AddressTotal {
    amount: Vec<Amount>,
}

/// `/addresses/{address}`: the lovelace there.
///
/// # Errors
/// Not of the documented shape.
pub fn balance(body: &[u8]) -> Answer<Lovelace> {
    let total: AddressTotal = json(body, "address")?;
    let mut lovelace = total.amount.iter().filter(|amount| amount.unit == "lovelace");
    match (lovelace.next(), lovelace.next()) {
        (None, _) => Ok(Lovelace::ZERO),
        (Some(amount), None) => amount.quantity.parse().or_else(|_| malformed("an amount of lovelace")),
        _ => malformed("two amounts of lovelace at one address"),
    }
}

/// `/addresses/{address}/utxos`: one page.
///
/// # Errors
/// Not of the documented shape.
pub fn utxos(body: &[u8], address: &str) -> Answer<Vec<Utxo>> {
    let outputs: Vec<Output> = json(body, "unspent outputs")?;
    if outputs.len() > MAX_OUTPUTS {
        return malformed("too many outputs");
    }
    let unspent = |output: Output| match output.tx_hash {
        Some(tx) => output.utxo(tx, address),
        None => malformed("an unspent output without its transaction"),
    };
    outputs.into_iter().map(unspent).collect()
}
