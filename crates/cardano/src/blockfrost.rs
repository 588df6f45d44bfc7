//! Blockfrost's answers as types of ours: pure parsing, so that it is tested natively and fuzzed without a network.
//!
//! Source: Blockfrost's OpenAPI description of the Cardano API (`/blocks/latest`, `/epochs/latest/parameters`,
//! `/txs/{hash}`, `/txs/{hash}/utxos`, `/addresses/{address}/utxos`). Every number that matters is checked; an answer
//! of another shape is refused whole, because a provider can lie or lag.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    chain::{ChainError, Inclusion, Tip, TracedOutput, TracedTx, Utxo, Value},
    hash::{ScriptHash, TxHash, TxRef},
    history::{Effects, Place, Touch},
    money::Lovelace,
    params::{ProtocolParameters, Rational},
};

/// Outputs of one transaction or page that are read at most; the ledger's size limit keeps real ones far below.
const MAX_OUTPUTS: usize = 1_000;
/// Different tokens in one output that are read at most. Anyone may send an output with as many as the ledger allows to
/// any address, and one that is not read stops whoever must read it: 5,000 bytes of value (`maxValueSize`) hold fewer
/// than one for each 3 bytes.
const MAX_ASSETS: usize = 2_000;
/// Entries of a cost model that are read at most (Plutus V3 has 297 now).
const MAX_COST_MODEL: usize = 2_000;

type Answer<T> = Result<T, ChainError>;

fn malformed<T>(what: &str) -> Answer<T> {
    Err(ChainError::Malformed(what.to_owned()))
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8], what: &str) -> Answer<T> {
    serde_json::from_slice(body).map_err(|error| ChainError::Malformed(format!("{what}: {error}")))
}

fn seconds_to_ms(seconds: u64) -> Answer<u64> {
    seconds.checked_mul(1_000).map_or_else(|| malformed("a time out of range"), Ok)
}

#[derive(Deserialize)]
struct Block {
    hash: TxHash,
    height: u64,
    slot: u64,
    time: u64,
}

/// `/blocks/latest`.
///
/// # Errors
/// Not of the documented shape.
pub fn tip(body: &[u8]) -> Answer<Tip> {
    let block: Block = json(body, "block")?;
    Ok(Tip { hash: block.hash, height: block.height, slot: block.slot, time_ms: seconds_to_ms(block.time)? })
}

#[derive(Deserialize)]
struct Transaction {
    hash: TxHash,
    block: TxHash,
    block_height: u64,
    block_time: u64,
    slot: u64,
    valid_contract: bool,
}

/// `/txs/{hash}`.
///
/// # Errors
/// Not of the documented shape, or of another transaction than asked for.
pub fn inclusion(body: &[u8], asked: &TxHash) -> Answer<Inclusion> {
    let tx: Transaction = json(body, "transaction")?;
    if tx.hash != *asked {
        return malformed("another transaction than asked for");
    }
    Ok(Inclusion {
        block: tx.block,
        height: tx.block_height,
        slot: tx.slot,
        time_ms: seconds_to_ms(tx.block_time)?,
        valid: tx.valid_contract,
    })
}

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
struct Output {
    address: Option<String>,
    tx_hash: Option<TxHash>,
    amount: Vec<Amount>,
    output_index: u16,
    data_hash: Option<String>,
    inline_datum: Option<String>,
    reference_script_hash: Option<ScriptHash>,
    #[serde(default)]
    collateral: bool,
    /// Of an input: it is only read.
    #[serde(default)]
    reference: bool,
    #[serde(default)]
    consumed_by_tx: Option<TxHash>,
}

impl Output {
    fn utxo(self, tx: TxHash, address: &str) -> Answer<Utxo> {
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

#[derive(Deserialize)]
struct TransactionOutputs {
    hash: TxHash,
    outputs: Vec<Output>,
}

/// `/txs/{hash}/utxos`: the outputs.
///
/// # Errors
/// Not of the documented shape, or of another transaction than asked for.
pub fn outputs(body: &[u8], asked: &TxHash) -> Answer<Vec<TracedOutput>> {
    let TransactionOutputs { hash, outputs } = json(body, "transaction outputs")?;
    made(hash, outputs, asked)
}

fn made(hash: TxHash, outputs: Vec<Output>, asked: &TxHash) -> Answer<Vec<TracedOutput>> {
    if hash != *asked || outputs.len() > MAX_OUTPUTS {
        return malformed("another transaction than asked for, or too many outputs");
    }
    let traced = |output: Output| {
        if output.address.is_none() {
            return malformed("an output without an address");
        }
        let (spent_by, collateral) = (output.consumed_by_tx, output.collateral);
        Ok(TracedOutput { utxo: output.utxo(hash, "")?, spent_by, collateral })
    };
    outputs.into_iter().map(traced).collect()
}

#[derive(Deserialize)]
struct TransactionUtxos {
    hash: TxHash,
    inputs: Vec<Output>,
    outputs: Vec<Output>,
}

/// `/txs/{hash}/utxos`: what the transaction spent and made.
///
/// # Errors
/// As [`outputs`].
pub fn trace(body: &[u8], asked: &TxHash) -> Answer<TracedTx> {
    let tx: TransactionUtxos = json(body, "transaction inputs and outputs")?;
    if tx.inputs.len() > MAX_OUTPUTS {
        return malformed("too many inputs");
    }
    let spent = |input: Output| match (input.tx_hash, &input.address) {
        (Some(tx), Some(_)) => input.utxo(tx, ""),
        _ => malformed("an input without its transaction or address"),
    };
    let inputs = tx.inputs.into_iter().filter(|input| !input.collateral && !input.reference).map(spent);
    Ok(TracedTx { inputs: inputs.collect::<Answer<_>>()?, outputs: made(tx.hash, tx.outputs, asked)? })
}

#[derive(Deserialize)]
struct TransactionEffects {
    hash: TxHash,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Input {
    tx_hash: TxHash,
    output_index: u16,
    #[serde(default)]
    collateral: bool,
    #[serde(default)]
    reference: bool,
}

/// `/txs/{hash}/utxos`: what it spent and made, if its scripts succeeded.
///
/// # Errors
/// Not of the documented shape, or of another transaction than asked for.
pub fn effects(body: &[u8], asked: &TxHash) -> Answer<Effects> {
    let tx: TransactionEffects = json(body, "transaction effects")?;
    if tx.hash != *asked || tx.outputs.len() > MAX_OUTPUTS || tx.inputs.len() > MAX_OUTPUTS {
        return malformed("another transaction than asked for, or too many inputs or outputs");
    }
    let spent = tx.inputs.into_iter().filter(|input| !input.collateral && !input.reference);
    let spent = spent.map(|input| TxRef { tx: input.tx_hash, index: input.output_index }).collect();
    let made = tx.outputs.into_iter().filter(|output| !output.collateral).map(|output| match output.address {
        Some(_) => output.utxo(tx.hash, ""),
        None => malformed("an output without an address"),
    });
    Ok(Effects { spent, made: made.collect::<Answer<_>>()? })
}

#[derive(Deserialize)]
struct AddressTransaction {
    tx_hash: TxHash,
    tx_index: u64,
    block_height: u64,
    block_time: u64,
}

/// `/addresses/{address}/transactions`: one page in the chain's order.
///
/// # Errors
/// Not of the documented shape, or out of order.
pub fn touches(body: &[u8]) -> Answer<Vec<Touch>> {
    let listed: Vec<AddressTransaction> = json(body, "transactions of an address")?;
    if listed.len() > MAX_OUTPUTS {
        return malformed("too many transactions");
    }
    let touch = |tx: AddressTransaction| {
        let place = Place { height: tx.block_height, position: tx.tx_index };
        Ok(Touch { tx: tx.tx_hash, place, time_ms: seconds_to_ms(tx.block_time)? })
    };
    let touches: Vec<Touch> = listed.into_iter().map(touch).collect::<Answer<_>>()?;
    if touches.is_sorted_by(|earlier, later| earlier.place < later.place) {
        Ok(touches)
    } else {
        malformed("transactions of an address out of order")
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

/// A number that Blockfrost gives as a number or as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Number(serde_json::Number),
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            // The shortest decimal that reads back as the same double, never in scientific notation.
            Self::Number(number) => {
                number.as_u64().map_or_else(|| number.as_f64().unwrap_or(f64::NAN).to_string(), |n| n.to_string())
            }
        }
    }

    fn whole(&self, what: &str) -> Answer<u64> {
        self.text().parse().or_else(|_| malformed(what))
    }

    /// The exact decimal fraction that was written.
    fn fraction(&self, what: &str) -> Answer<Rational> {
        let text = self.text();
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 18 {
            return malformed(what);
        }
        let numerator: u64 = format!("{whole}{decimals}").parse().or_else(|_| malformed(what))?;
        let denominator = u32::try_from(decimals.len()).ok().and_then(|places| 10_u64.checked_pow(places));
        denominator.map_or_else(|| malformed(what), |denominator| Ok(Rational { numerator, denominator }))
    }
}

#[derive(Deserialize)]
struct Parameters {
    min_fee_a: Number,
    min_fee_b: Number,
    max_tx_size: Number,
    max_val_size: Number,
    coins_per_utxo_size: Number,
    collateral_percent: Number,
    max_collateral_inputs: Number,
    price_mem: Number,
    price_step: Number,
    max_tx_ex_mem: Number,
    max_tx_ex_steps: Number,
    min_fee_ref_script_cost_per_byte: Number,
    cost_models_raw: CostModels,
}

#[derive(Deserialize)]
struct CostModels {
    #[serde(rename = "PlutusV3")]
    v3: Vec<i64>,
}

/// `/epochs/latest/parameters`.
///
/// # Errors
/// Not of the documented shape, or a parameter with which nothing could be checked (such as a zero price per byte).
pub fn protocol_parameters(body: &[u8]) -> Answer<ProtocolParameters> {
    let p: Parameters = json(body, "protocol parameters")?;
    let parameters = ProtocolParameters {
        min_fee_a: p.min_fee_a.whole("min_fee_a")?,
        min_fee_b: p.min_fee_b.whole("min_fee_b")?,
        coins_per_utxo_byte: p.coins_per_utxo_size.whole("coins_per_utxo_size")?,
        max_tx_size: p.max_tx_size.whole("max_tx_size")?,
        max_value_size: p.max_val_size.whole("max_val_size")?,
        collateral_percent: p.collateral_percent.whole("collateral_percent")?,
        max_collateral_inputs: p.max_collateral_inputs.whole("max_collateral_inputs")?,
        price_mem: p.price_mem.fraction("price_mem")?,
        price_step: p.price_step.fraction("price_step")?,
        max_tx_ex_mem: p.max_tx_ex_mem.whole("max_tx_ex_mem")?,
        max_tx_ex_steps: p.max_tx_ex_steps.whole("max_tx_ex_steps")?,
        min_fee_ref_script_cost_per_byte: p.min_fee_ref_script_cost_per_byte.fraction("min_fee_ref_script")?,
        cost_model_v3: p.cost_models_raw.v3,
    };
    let sane = parameters.min_fee_a > 0
        && parameters.coins_per_utxo_byte > 0
        && parameters.max_tx_size > 0
        && parameters.cost_model_v3.len() <= MAX_COST_MODEL;
    if sane { Ok(parameters) } else { malformed("a protocol parameter that cannot be") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parameters() -> serde_json::Value {
        json!({
            "epoch": 240, "min_fee_a": 44, "min_fee_b": 155381, "max_tx_size": 16384, "max_val_size": "5000",
            "coins_per_utxo_size": "4310", "collateral_percent": 150, "max_collateral_inputs": 3, "price_mem": 0.0577,
            "price_step": 0.0000721, "max_tx_ex_mem": "14000000", "max_tx_ex_steps": "10000000000",
            "min_fee_ref_script_cost_per_byte": 15, "cost_models_raw": { "PlutusV3": [100788, 420, 1] },
        })
    }

    fn listed(height: u64, index: u64) -> serde_json::Value {
        json!({ "tx_hash": "ab".repeat(32), "tx_index": index, "block_height": height, "block_time": 1_700_000_000 })
    }

    /// Anyone may send it anywhere, and who cannot read it cannot go on.
    #[test]
    fn an_output_with_as_many_tokens_as_the_ledger_allows_is_read() {
        // The most in `maxValueSize` 5,000: one policy (30 bytes), each name with its quantity 3 bytes or 4.
        let most = 256 + (5_000 - 40 - 3 * 256) / 4;
        let token = |n: usize| json!({ "unit": format!("{}{n:04x}", "ab".repeat(28)), "quantity": "1" });
        let lovelace = json!({ "unit": "lovelace", "quantity": "25000000" });
        let amount: Vec<_> = std::iter::once(lovelace).chain((0..most).map(token)).collect();
        let output = json!({
            "address": "addr_test1...", "amount": amount, "output_index": 0, "data_hash": null, "inline_datum": null,
            "reference_script_hash": null,
        });
        let tx = TxHash::new([7; 32]);
        let body = json!({ "hash": tx, "inputs": [], "outputs": [output] }).to_string();
        let read = effects(body.as_bytes(), &tx).unwrap();
        assert_eq!(read.made[0].value.assets.len(), most);
    }

    #[test]
    fn an_addresss_transactions_are_read_in_the_chains_order_or_not_at_all() {
        let read = |list: Vec<serde_json::Value>| touches(json!(list).to_string().as_bytes());
        let places: Vec<Place> =
            read(vec![listed(7, 1), listed(7, 2), listed(9, 0)]).unwrap().iter().map(|touch| touch.place).collect();
        let place = |height, position| Place { height, position };
        assert_eq!(places, [place(7, 1), place(7, 2), place(9, 0)]);
        assert_eq!(read(vec![listed(7, 1)]).unwrap()[0].time_ms, 1_700_000_000_000);
        assert!(read(vec![listed(7, 2), listed(7, 1)]).is_err(), "backwards in a block");
        assert!(read(vec![listed(9, 0), listed(7, 1)]).is_err(), "backwards");
        assert!(read(vec![listed(7, 1), listed(7, 1)]).is_err(), "twice");
    }

    #[test]
    fn what_a_transaction_only_refers_to_or_puts_up_it_did_not_spend() {
        let tx: TxHash = "ab".repeat(32).parse().unwrap();
        let input = |index: u16, collateral: bool, reference: bool| json!({ "tx_hash": "cd".repeat(32), "output_index": index, "collateral": collateral, "reference": reference });
        let output = |index: u16, collateral: bool| {
            json!({ "address": "addr_test1x", "amount": [{ "unit": "lovelace", "quantity": "5" }], "output_index": index,
                "data_hash": null, "inline_datum": null, "reference_script_hash": null, "collateral": collateral })
        };
        let body = json!({ "hash": tx, "inputs": [input(0, false, false), input(1, true, false), input(2, false, true)],
            "outputs": [output(0, false), output(1, true)] });
        let read = effects(body.to_string().as_bytes(), &tx).unwrap();
        assert_eq!(read.spent, [TxRef { tx: "cd".repeat(32).parse().unwrap(), index: 0 }]);
        assert_eq!(read.made.iter().map(|utxo| utxo.reference).collect::<Vec<_>>(), [TxRef { tx, index: 0 }]);
        assert!(effects(body.to_string().as_bytes(), &TxHash::new([0; 32])).is_err(), "another transaction");
    }

    #[test]
    fn prices_keep_their_exact_fractions() {
        let read = protocol_parameters(parameters().to_string().as_bytes()).unwrap();
        assert_eq!(read.price_mem, Rational { numerator: 577, denominator: 10_000 });
        assert_eq!(read.price_step, Rational { numerator: 721, denominator: 10_000_000 });
        assert_eq!(read.min_fee_ref_script_cost_per_byte, Rational { numerator: 15, denominator: 1 });
    }

    #[test]
    fn parameters_that_cannot_be_are_refused() {
        for (field, value) in [
            ("min_fee_a", json!(0)),
            ("min_fee_a", json!(-1)),
            ("coins_per_utxo_size", json!("x")),
            ("coins_per_utxo_size", json!(null)),
            ("price_mem", json!(-0.5)),
            ("price_step", json!("1e-5")),
            ("cost_models_raw", json!({})),
        ] {
            let mut body = parameters();
            body[field] = value;
            assert!(protocol_parameters(body.to_string().as_bytes()).is_err(), "{field}");
        }
    }

    #[test]
    fn an_answer_about_another_transaction_is_refused() {
        let (asked, other) = (TxHash::new([1; 32]), TxHash::new([2; 32]));
        let body = json!({"hash": other, "outputs": []}).to_string();
        assert!(outputs(body.as_bytes(), &asked).is_err());
        assert_eq!(outputs(body.as_bytes(), &other), Ok(vec![]));
    }

    #[test]
    fn what_was_only_read_or_put_up_was_not_spent() {
        let tx = TxHash::new([1; 32]);
        let input = |index: u16, collateral: bool, reference: bool| {
            json!({"address": "addr_test1", "amount": [{"unit": "lovelace", "quantity": "5"}], "tx_hash": tx,
                "output_index": index, "data_hash": null, "inline_datum": null, "reference_script_hash": null,
                "collateral": collateral, "reference": reference})
        };
        let body = |inputs: serde_json::Value| json!({"hash": tx, "inputs": inputs, "outputs": []}).to_string();
        let all = body(json!([input(0, true, false), input(1, false, false), input(2, false, true)]));
        let spent: Vec<TxRef> = trace(all.as_bytes(), &tx).unwrap().inputs.iter().map(|utxo| utxo.reference).collect();
        assert_eq!(spent, [TxRef { tx, index: 1 }]);
        assert!(trace(all.as_bytes(), &TxHash::new([2; 32])).is_err());
        let mut nameless = input(0, false, false);
        nameless["tx_hash"] = json!(null);
        assert!(trace(body(json!([nameless])).as_bytes(), &tx).is_err());
    }

    #[test]
    fn an_output_that_counts_lovelace_twice_or_never_is_refused() {
        let tx = TxHash::new([1; 32]);
        let output = |amount: serde_json::Value| {
            json!({"hash": tx, "outputs": [{"address": "addr_test1", "amount": amount, "output_index": 0,
                "data_hash": null, "inline_datum": null, "reference_script_hash": null, "collateral": false}]})
            .to_string()
        };
        let ada = json!({"unit": "lovelace", "quantity": "5"});
        assert!(outputs(output(json!([ada])).as_bytes(), &tx).is_ok());
        assert!(outputs(output(json!([ada, ada])).as_bytes(), &tx).is_err());
        assert!(outputs(output(json!([])).as_bytes(), &tx).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_panics(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let tx = TxHash::new([0; 32]);
            let _ = (tip(&body), protocol_parameters(&body), utxos(&body, ""), outputs(&body, &tx), trace(&body, &tx));
        }
    }
}
