//! The protocol parameters on which fees, outputs and scripts depend.

use serde::{Deserialize, Serialize};

use crate::money::Lovelace;

/// The subset of the ledger's protocol parameters that this crate uses. They are always read from the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtocolParameters {
    /// Fee per byte of transaction, in lovelace.
    pub min_fee_a: u64,
    /// Fixed fee per transaction, in lovelace.
    pub min_fee_b: u64,
    /// Minimum lovelace per byte of output.
    pub coins_per_utxo_byte: u64,
    /// Maximum size of a transaction, in bytes.
    pub max_tx_size: u64,
    /// Maximum size of the serialised value of one output, in bytes.
    pub max_value_size: u64,
    /// Percentage of the fee that collateral must cover.
    pub collateral_percent: u64,
    /// Maximum number of collateral inputs.
    pub max_collateral_inputs: u64,
    /// Price per memory unit, in lovelace.
    pub price_mem: Rational,
    /// Price per CPU step, in lovelace.
    pub price_step: Rational,
    /// Maximum memory units of a transaction.
    pub max_tx_ex_mem: u64,
    /// Maximum CPU steps of a transaction.
    pub max_tx_ex_steps: u64,
    /// Price in lovelace per byte of reference script in the first tier of 25,600 bytes. Each further tier is 1.2 times
    /// as expensive per byte.
    pub min_fee_ref_script_cost_per_byte: Rational,
    /// Plutus V3 cost model, in the ledger's order.
    pub cost_model_v3: Vec<i64>,
}

/// An exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rational {
    /// Numerator.
    pub numerator: u64,
    /// Denominator; never zero.
    pub denominator: u64,
}

/// Number of bytes that the ledger adds to an output's size when it computes the minimum lovelace, for the output's
/// entry in the UTxO map (Babbage, `utxoEntrySizeWithoutVal`).
pub(crate) const UTXO_ENTRY_OVERHEAD: u64 = 160;

#[cfg(any(test, feature = "fixtures"))]
impl ProtocolParameters {
    /// Returns preprod's protocol parameters of epoch 240, with an abbreviated cost model.
    #[must_use]
    pub fn preprod() -> Self {
        Self {
            min_fee_a: 44,
            min_fee_b: 155_381,
            coins_per_utxo_byte: 4_310,
            max_tx_size: 16_384,
            max_value_size: 5_000,
            collateral_percent: 150,
            max_collateral_inputs: 3,
            price_mem: Rational { numerator: 577, denominator: 10_000 },
            price_step: Rational { numerator: 721, denominator: 10_000_000 },
            max_tx_ex_mem: 14_000_000,
            max_tx_ex_steps: 10_000_000_000,
            min_fee_ref_script_cost_per_byte: Rational { numerator: 15, denominator: 1 },
            cost_model_v3: vec![1, -2, 3],
        }
    }
}

impl ProtocolParameters {
    /// Returns the minimum lovelace of an output that has this many bytes when serialised, or `None` if it is out of
    /// range.
    #[must_use]
    pub fn min_utxo(&self, output_bytes: usize) -> Option<Lovelace> {
        let bytes = u64::try_from(output_bytes).ok()?.checked_add(UTXO_ENTRY_OVERHEAD)?;
        bytes.checked_mul(self.coins_per_utxo_byte).and_then(Lovelace::new)
    }

    /// Returns the minimum fee of a transaction without scripts, given its size as the ledger counts it. `None` if it
    /// is out of range. [`crate::fees::min_fee`] covers scripts too.
    #[must_use]
    pub fn min_fee(&self, tx_bytes: usize) -> Option<Lovelace> {
        let bytes = u64::try_from(tx_bytes).ok()?;
        bytes.checked_mul(self.min_fee_a)?.checked_add(self.min_fee_b).and_then(Lovelace::new)
    }
}
