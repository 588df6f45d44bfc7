//! Builds and signs transactions from scenarios: one JSON object per line in, one per line out.
//!
//! Output: `{"tx": {"cbor": hex, "tx_id", "fee", "inputs", "collateral", "outputs", "change"}}`, for a sweep also
//! `sent` and `left`; or `{"error": text, "kind": name, "missing": lovelace}`. `tests/e2e/chain` submits the results to
//! the ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    io::{BufRead, Write, stdin, stdout},
};

use serde::Deserialize;
use serde_json::{Value as Json, json};
use surety_cardano::{
    Address, KeyHash, Lovelace, TxRef,
    address::PaymentAddress,
    chain::{Utxo, Value},
    fees::ExUnits,
    keys::SigningKey,
    params::ProtocolParameters,
    tx::build::{
        BuildError, BuiltTx, NewOutput, ReferenceInput, ScriptInput, TxPlan, UnsignedTx, Validity, Wallet, build, sweep,
    },
};

#[derive(Deserialize)]
struct TxScenario {
    params: ProtocolParameters,
    seeds: Vec<String>,
    wallet: Address,
    utxos: Vec<Utxo>,
    #[serde(default)]
    reserved: BTreeSet<TxRef>,
    valid_from: Option<u64>,
    valid_until: u64,
    /// Address to which everything in the wallet is sent, instead of making a payment.
    sweep_to: Option<String>,
    #[serde(default)]
    reserve: Lovelace,
    #[serde(default)]
    outputs: Vec<PlannedOutput>,
    #[serde(default)]
    inputs: Vec<Utxo>,
    #[serde(default)]
    script_inputs: Vec<PlannedScriptInput>,
    #[serde(default)]
    reference_inputs: Vec<(TxRef, u64)>,
    #[serde(default)]
    required_signers: Vec<KeyHash>,
}

#[derive(Deserialize)]
struct PlannedOutput {
    to: String,
    lovelace: Lovelace,
    #[serde(default)]
    assets: BTreeMap<String, u64>,
    datum: Option<String>,
    script: Option<String>,
}

#[derive(Deserialize)]
struct PlannedScriptInput {
    utxo: Utxo,
    redeemer: String,
    mem: u64,
    steps: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in stdin().lock().lines() {
        let scenario: TxScenario = serde_json::from_str(&line?)?;
        let answer = run(&scenario)?.unwrap_or_else(|error| {
            let kind: String = format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect();
            json!({ "error": error.to_string(), "kind": kind, "missing": missing(&error) })
        });
        writeln!(stdout(), "{answer}")?;
    }
    Ok(())
}

fn missing(error: &BuildError) -> Option<Lovelace> {
    match error {
        BuildError::Insufficient { missing }
        | BuildError::CollateralMissing { missing }
        | BuildError::NothingToSweep { missing, .. } => Some(*missing),
        _ => None,
    }
}

fn run(scenario: &TxScenario) -> Result<Result<Json, BuildError>, Box<dyn Error>> {
    let mut keys = Vec::new();
    for seed in &scenario.seeds {
        let seed: [u8; 32] = hex::decode(seed)?.try_into().map_err(|_| "a seed has 32 bytes")?;
        keys.push(SigningKey::from_seed(&seed)?);
    }
    let keys: Vec<&SigningKey> = keys.iter().collect();
    let wallet = Wallet { address: scenario.wallet, utxos: &scenario.utxos, reserved: &scenario.reserved };
    let validity = Validity { from: scenario.valid_from, until: scenario.valid_until };
    let sign = |draft: UnsignedTx| draft.sign(&keys);
    if let Some(to) = &scenario.sweep_to {
        let to: PaymentAddress = to.parse()?;
        let swept = sweep(&wallet, to, scenario.reserve, validity, &scenario.params);
        return Ok(swept.and_then(|swept| {
            let tx = describe(&sign(swept.draft)?);
            Ok(json!({ "tx": tx, "sent": swept.sent, "left": swept.left }))
        }));
    }
    let plan = plan(scenario, validity)?;
    Ok(build(&plan, &wallet, &scenario.params).and_then(sign).map(|tx| json!({ "tx": describe(&tx) })))
}

fn plan(scenario: &TxScenario, validity: Validity) -> Result<TxPlan, Box<dyn Error>> {
    let mut plan = TxPlan {
        inputs: scenario.inputs.clone(),
        required_signers: scenario.required_signers.clone(),
        validity,
        ..TxPlan::default()
    };
    for PlannedOutput { to, lovelace, assets, datum, script } in &scenario.outputs {
        plan.outputs.push(NewOutput {
            to: to.parse()?,
            value: Value { lovelace: *lovelace, assets: assets.clone() },
            inline_datum: datum.as_ref().map(hex::decode).transpose()?,
            script: script.as_ref().map(hex::decode).transpose()?,
        });
    }
    for PlannedScriptInput { utxo, redeemer, mem, steps } in &scenario.script_inputs {
        let ex_units = ExUnits { mem: *mem, steps: *steps };
        plan.script_inputs.push(ScriptInput { utxo: utxo.clone(), redeemer: hex::decode(redeemer)?, ex_units });
    }
    for (reference, script_bytes) in &scenario.reference_inputs {
        plan.reference_inputs.push(ReferenceInput { reference: *reference, script_bytes: *script_bytes });
    }
    Ok(plan)
}

fn describe(tx: &BuiltTx) -> Json {
    json!({
        "cbor": hex::encode(&tx.cbor),
        "tx_id": tx.facts.tx_id,
        "fee": tx.facts.fee,
        "inputs": tx.facts.inputs,
        "collateral": tx.facts.collateral,
        "outputs": tx.facts.outputs,
        "change": tx.facts.change,
    })
}
