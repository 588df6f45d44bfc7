//! Evaluation: running a transaction's scripts to find how many execution units they need. A provider does this.
//!
//! Source: Blockfrost's OpenAPI description of `/utils/txs/evaluate`. The endpoint forwards Ogmios 5's answer to
//! `EvaluateTx`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    chain::{ChainError, Utxo},
    fees::ExUnits,
};

/// Number of hexadecimal digits of a policy id.
const POLICY_HEX: usize = 56;
/// Maximum number of characters of a script's error message. Longer messages are truncated.
const MAX_REASON: usize = 2_000;

/// The provider's response to the evaluation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// Every script succeeded. Maps the index of each script input, in the ledger's order of all inputs, to the
    /// execution units that its script used.
    Accepted(BTreeMap<usize, ExUnits>),
    /// A script failed, or the transaction cannot be evaluated. Contains the provider's reason, truncated.
    Refused(String),
}

/// The port to a service that runs scripts. [`blockfrost::Client`](crate::blockfrost::Client) implements it over any
/// HTTP library.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Evaluate {
    /// Evaluates a transaction, signed or not.
    async fn evaluate(&self, cbor: &[u8]) -> Result<Evaluation, ChainError> {
        self.evaluate_chained(cbor, &[]).await
    }

    /// Evaluates a transaction that spends outputs of unconfirmed transactions, which the provider may not know.
    async fn evaluate_chained(&self, cbor: &[u8], unconfirmed: &[Utxo]) -> Result<Evaluation, ChainError>;
}

/// Builds the request body of `/utils/txs/evaluate/utxos` in Ogmios 5's form: a transaction, and unconfirmed outputs
/// that the provider may not know.
#[must_use]
pub fn evaluation_request(cbor: &[u8], unconfirmed: &[Utxo]) -> String {
    let output = |utxo: &Utxo| {
        let assets = utxo.value.assets.iter().map(|(unit, quantity)| {
            let (policy, name) = unit.split_at_checked(POLICY_HEX).unwrap_or((unit, ""));
            let named = if name.is_empty() { policy.to_owned() } else { format!("{policy}.{name}") };
            (named, Value::from(*quantity))
        });
        let value = json!({ "coins": utxo.value.lovelace.get(), "assets": assets.collect::<serde_json::Map<_, _>>() });
        let mut output = json!({ "address": utxo.address, "value": value });
        if let (Some(fields), Some(datum)) = (output.as_object_mut(), &utxo.inline_datum) {
            fields.insert("datum".into(), hex::encode(datum).into());
        }
        json!([{ "txId": utxo.reference.tx, "index": utxo.reference.index }, output])
    };
    let additional: Vec<Value> = unconfirmed.iter().map(output).collect();
    json!({ "cbor": hex::encode(cbor), "additionalUtxoSet": additional }).to_string()
}

#[derive(Deserialize)]
struct EvaluationResponse {
    result: Outcome,
}

#[derive(Deserialize)]
enum Outcome {
    EvaluationResult(BTreeMap<String, Units>),
    EvaluationFailure(Value),
}

#[derive(Deserialize)]
struct Units {
    memory: u64,
    steps: u64,
}

/// Parses the response of `/utils/txs/evaluate`.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape.
pub fn evaluation(body: &[u8]) -> Result<Evaluation, ChainError> {
    let malformed = |what: &str| ChainError::Malformed(format!("evaluation: {what}"));
    let answer: EvaluationResponse = serde_json::from_slice(body).map_err(|error| malformed(&error.to_string()))?;
    match answer.result {
        Outcome::EvaluationFailure(reason) => {
            Ok(Evaluation::Refused(reason.to_string().chars().take(MAX_REASON).collect()))
        }
        Outcome::EvaluationResult(redeemers) => {
            let mut spends = BTreeMap::new();
            for (name, Units { memory, steps }) in redeemers {
                let index = name.strip_prefix("spend:").and_then(|index| index.parse().ok());
                spends.insert(
                    index.ok_or_else(|| malformed("a redeemer that spends nothing"))?,
                    ExUnits { mem: memory, steps },
                );
            }
            Ok(Evaluation::Accepted(spends))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execution_units_are_matched_by_the_inputs_index() {
        let body = br#"{"type":"jsonwsp/response","result":{"EvaluationResult":
            {"spend:1":{"memory":1700,"steps":476468},"spend:0":{"memory":5,"steps":6}}}}"#;
        let units = BTreeMap::from([(0, ExUnits { mem: 5, steps: 6 }), (1, ExUnits { mem: 1700, steps: 476_468 })]);
        assert_eq!(evaluation(body), Ok(Evaluation::Accepted(units)));
    }

    #[test]
    fn a_refusal_keeps_its_reason_within_bounds() {
        let body = br#"{"result":{"EvaluationFailure":{"ScriptFailures":{"spend:0":["no"]}}}}"#;
        let reason = r#"{"ScriptFailures":{"spend:0":["no"]}}"#.to_owned();
        assert_eq!(evaluation(body), Ok(Evaluation::Refused(reason)));
        let long = format!(r#"{{"result":{{"EvaluationFailure":"{}"}}}}"#, "x".repeat(10_000));
        let Ok(Evaluation::Refused(reason)) = evaluation(long.as_bytes()) else { panic!("a refusal") };
        assert_eq!(reason.chars().count(), MAX_REASON);
    }

    #[test]
    fn other_answers_are_refused() {
        for body in [
            "",
            "{}",
            r#"{"result":{}}"#,
            r#"{"result":{"EvaluationResult":{"mint:0":{"memory":1,"steps":1}}}}"#,
            r#"{"result":{"EvaluationResult":{"spend:x":{"memory":1,"steps":1}}}}"#,
            r#"{"result":{"EvaluationResult":{"spend:0":{"memory":-1,"steps":1}}}}"#,
        ] {
            assert!(matches!(evaluation(body.as_bytes()), Err(ChainError::Malformed(_))), "{body}");
        }
    }
}
