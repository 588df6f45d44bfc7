//! Parses the response of `/epochs/latest/parameters`.

use serde::Deserialize;

use super::{ChainResult, json, malformed};
use crate::params::{ProtocolParameters, Rational};

/// Maximum number of entries to read from a cost model. Plutus V3 has 297 at present.
const MAX_COST_MODEL: usize = 2_000;

/// Maximum number of decimals of a price. With more decimals, the computation of a fee could overflow.
const MAX_DECIMALS: usize = 15;

/// A number that some providers send as a JSON number and others as a string.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Text(String),
    Number(serde_json::Number),
}

impl Number {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            // Formats the shortest decimal that parses to the same double, never in scientific notation.
            Self::Number(number) => {
                number.as_u64().map_or_else(|| number.as_f64().unwrap_or(f64::NAN).to_string(), |n| n.to_string())
            }
        }
    }

    fn whole(&self, what: &str) -> ChainResult<u64> {
        self.text().parse().or_else(|_| malformed(what))
    }

    /// Parses a decimal fraction exactly; `what` names the value in errors. A fraction with more than [`MAX_DECIMALS`]
    /// decimals is rounded up, because a fee that is one lovelace too high is still accepted.
    fn fraction(&self, what: &str) -> ChainResult<Rational> {
        let text = self.text();
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(decimals) {
            return malformed(what);
        }
        let (decimals, beyond) = decimals.split_at_checked(MAX_DECIMALS).unwrap_or((decimals, ""));
        let numerator: u64 = format!("{whole}{decimals}").parse().or_else(|_| malformed(what))?;
        let numerator = numerator.saturating_add(u64::from(beyond.bytes().any(|digit| digit != b'0')));
        let denominator = u32::try_from(decimals.len()).ok().and_then(|places| 10_u64.checked_pow(places));
        denominator.map_or_else(|| malformed(what), |denominator| Ok(Rational { numerator, denominator }))
    }
}

#[derive(Deserialize)]
struct ParametersJson {
    min_fee_a: Number,
    min_fee_b: Number,
    max_tx_size: Number,
    max_val_size: Number,
    coins_per_utxo_size: Option<Number>,
    /// Older name of `coins_per_utxo_size`. Since Babbage it contains the same price per byte.
    coins_per_utxo_word: Option<Number>,
    collateral_percent: Number,
    max_collateral_inputs: Number,
    price_mem: Number,
    price_step: Number,
    max_tx_ex_mem: Number,
    max_tx_ex_steps: Number,
    min_fee_ref_script_cost_per_byte: Number,
    #[serde(default)]
    cost_models_raw: Option<CostModels>,
}

/// The cost models in a response. Some providers send none, or none for Plutus V3; transactions without scripts do not
/// need them.
#[derive(Default, Deserialize)]
struct CostModels {
    #[serde(default, rename = "PlutusV3")]
    v3: Option<Vec<i64>>,
}

/// Parses the response of `/epochs/latest/parameters`.
///
/// # Errors
/// [`ChainError`](crate::chain::ChainError) if the response does not have the documented shape, or if a parameter is
/// invalid, such as a price of zero per byte.
pub fn protocol_parameters(body: &[u8]) -> ChainResult<ProtocolParameters> {
    let p: ParametersJson = json(body, "protocol parameters")?;
    let coins_per_utxo_byte = p.coins_per_utxo_size.or(p.coins_per_utxo_word);
    let parameters = ProtocolParameters {
        min_fee_a: p.min_fee_a.whole("min_fee_a")?,
        min_fee_b: p.min_fee_b.whole("min_fee_b")?,
        coins_per_utxo_byte: coins_per_utxo_byte
            .map_or_else(|| malformed("coins_per_utxo_size"), |it| it.whole("coins_per_utxo_size"))?,
        max_tx_size: p.max_tx_size.whole("max_tx_size")?,
        max_value_size: p.max_val_size.whole("max_val_size")?,
        collateral_percent: p.collateral_percent.whole("collateral_percent")?,
        max_collateral_inputs: p.max_collateral_inputs.whole("max_collateral_inputs")?,
        price_mem: p.price_mem.fraction("price_mem")?,
        price_step: p.price_step.fraction("price_step")?,
        max_tx_ex_mem: p.max_tx_ex_mem.whole("max_tx_ex_mem")?,
        max_tx_ex_steps: p.max_tx_ex_steps.whole("max_tx_ex_steps")?,
        min_fee_ref_script_cost_per_byte: p.min_fee_ref_script_cost_per_byte.fraction("min_fee_ref_script")?,
        cost_model_v3: p.cost_models_raw.unwrap_or_default().v3.unwrap_or_default(),
    };
    let sane = parameters.min_fee_a > 0
        && parameters.coins_per_utxo_byte > 0
        && parameters.max_tx_size > 0
        && parameters.cost_model_v3.len() <= MAX_COST_MODEL;
    if sane { Ok(parameters) } else { malformed("a protocol parameter that cannot be") }
}
