//! The protocol parameters that fees, outputs and scripts depend on, as the chain has them now.

use serde::{Deserialize, Serialize};

use crate::money::Lovelace;

/// What we use of the ledger's protocol parameters. Always read from the chain, never assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtocolParameters {
    /// Lovelace per byte of transaction.
    pub min_fee_a: u64,
    /// Lovelace per transaction.
    pub min_fee_b: u64,
    /// Lovelace per byte of output.
    pub coins_per_utxo_byte: u64,
    /// Bytes of a whole transaction.
    pub max_tx_size: u64,
    /// Bytes of one output's serialised value.
    pub max_value_size: u64,
    /// Percent of the fee that collateral must cover.
    pub collateral_percent: u64,
    /// Inputs that may be given as collateral.
    pub max_collateral_inputs: u64,
    /// Lovelace per unit of memory, as a fraction.
    pub price_mem: Rational,
    /// Lovelace per unit of CPU steps, as a fraction.
    pub price_step: Rational,
    /// Memory units of a transaction.
    pub max_tx_ex_mem: u64,
    /// CPU steps of a transaction.
    pub max_tx_ex_steps: u64,
    /// Lovelace per byte of referenced script, first tier; each 25,600 bytes cost 1.2 times more than those before.
    pub min_fee_ref_script_cost_per_byte: Rational,
    /// The Plutus V3 cost model, in the ledger's order.
    pub cost_model_v3: Vec<i64>,
}

/// An exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rational {
    /// Above the line.
    pub numerator: u64,
    /// Below the line; never zero.
    pub denominator: u64,
}

/// Bytes that the ledger adds to each output for its entry in the UTxO map (Babbage, `utxoEntrySizeWithoutVal`).
pub const UTXO_ENTRY_OVERHEAD: u64 = 160;

/// For tests, which are many.
#[cfg(any(test, feature = "fixtures"))]
impl ProtocolParameters {
    /// Preprod's, epoch 240, as far as payments meet them: with a cost model that no ledger has.
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
    /// The least lovelace that an output of this many serialised bytes must hold; `None` out of range.
    #[must_use]
    pub fn min_utxo(&self, output_bytes: usize) -> Option<Lovelace> {
        let bytes = u64::try_from(output_bytes).ok()?.checked_add(UTXO_ENTRY_OVERHEAD)?;
        bytes.checked_mul(self.coins_per_utxo_byte).and_then(Lovelace::new)
    }

    /// The least fee of a transaction of this many bytes, as the ledger counts them, without scripts; `None` out of range.
    /// [`crate::fees::min_fee`] is the whole rule.
    #[must_use]
    pub fn min_fee(&self, tx_bytes: usize) -> Option<Lovelace> {
        let bytes = u64::try_from(tx_bytes).ok()?;
        bytes.checked_mul(self.min_fee_a)?.checked_add(self.min_fee_b).and_then(Lovelace::new)
    }
}
