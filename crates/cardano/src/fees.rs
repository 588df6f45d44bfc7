//! Computes minimum fees and collateral in exact integer arithmetic.
//!
//! ```text
//! minimum fee = a * size + b                                   size without the is_valid byte
//!             + ceil(memory * price_mem + steps * price_step)   one ceiling over the sum
//!             + floor(sum over 25,600-byte tiers: bytes * base * 1.2^tier)
//! ```
//!
//! Source: cardano-ledger, `eras/conway/impl/src/Cardano/Ledger/Conway/Tx.hs` (`getConwayMinFeeTx`,
//! `tierRefScriptFee`), `eras/alonzo/impl/src/Cardano/Ledger/Alonzo/Tx.hs` (`alonzoMinFeeTx`,
//! `toCBORForSizeComputation`) and `.../Alonzo/Scripts.hs` (`txscriptfee`). Every function returns `None` if the exact
//! result is out of the ledger's range; no result wraps or saturates.

use crate::{
    money::Lovelace,
    params::{ProtocolParameters, Rational},
};

/// Number of bytes of reference scripts in one price tier (Conway, `refScriptCostStride`).
const REFERENCE_SCRIPT_TIER_BYTES: u64 = 25_600;
/// Ratio of a tier's price per byte to the previous tier's price: 6/5 (Conway, `refScriptCostMultiplier` = 1.2).
const TIER_MULTIPLIER: Rational = Rational { numerator: 6, denominator: 5 };
/// Maximum number of bytes of reference scripts in one transaction (Conway, `maxRefScriptSizePerTx`).
pub const MAX_REFERENCE_SCRIPT_BYTES: u64 = 200 * 1024;
/// Size in bytes of the flag `is_valid`, which the ledger does not count for a transaction's fee and maximum size
/// (Alonzo, `toCBORForSizeComputation`).
const IS_VALID_BYTES: usize = 1;

/// Execution units of scripts: memory and CPU steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExUnits {
    /// Memory units.
    pub mem: u64,
    /// CPU steps.
    pub steps: u64,
}

impl ExUnits {
    /// Adds memory units and CPU steps. Returns `None` on overflow.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { mem: self.mem.checked_add(other.mem)?, steps: self.steps.checked_add(other.steps)? })
    }
}

/// The properties of a transaction that determine its minimum fee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Size of the whole transaction as submitted, in bytes.
    pub tx_bytes: usize,
    /// Sum of the execution units that all redeemers declare.
    pub ex_units: ExUnits,
    /// Size in bytes of the reference scripts in spent and referenced UTxOs, each UTxO counted once.
    pub reference_script_bytes: u64,
}

/// Converts the size of a transaction as submitted to the size by which the ledger limits and charges for it. `None` if
/// `tx_bytes` is 0.
#[must_use]
pub fn ledger_size(tx_bytes: usize) -> Option<usize> {
    tx_bytes.checked_sub(IS_VALID_BYTES)
}

/// Returns the minimum fee of a transaction with these properties, or `None` if it is out of range.
#[must_use]
pub fn min_fee(params: &ProtocolParameters, weight: &Weight) -> Option<Lovelace> {
    let linear = params.min_fee(ledger_size(weight.tx_bytes)?)?.get();
    let scripts = execution_fee(params, weight.ex_units)?;
    let references =
        reference_script_fee(params.min_fee_ref_script_cost_per_byte, TIER_MULTIPLIER, weight.reference_script_bytes)?;
    linear.checked_add(scripts)?.checked_add(references).and_then(Lovelace::new)
}

/// Returns the minimum collateral of a transaction with scripts and this fee: `ceil(fee * percent / 100)` (Alonzo,
/// `validateInsufficientCollateral`). `None` if it is out of range.
#[must_use]
pub fn min_collateral(params: &ProtocolParameters, fee: Lovelace) -> Option<Lovelace> {
    fee.get().checked_mul(params.collateral_percent).map(|product| product.div_ceil(100)).and_then(Lovelace::new)
}

/// Returns the part of the fee for execution units: `ceil(memory * price_mem + steps * price_step)`.
fn execution_fee(params: &ProtocolParameters, units: ExUnits) -> Option<u64> {
    let mem = Fraction::from(params.price_mem).times(units.mem)?;
    let steps = Fraction::from(params.price_step).times(units.steps)?;
    mem.plus(steps)?.ceil()
}

/// Returns the part of the fee for reference scripts. The sum over all tiers is exact and rounded down once at the end,
/// as in the ledger's `tierRefScriptFee`.
fn reference_script_fee(base: Rational, multiplier: Rational, bytes: u64) -> Option<u64> {
    let mut total = Fraction::ZERO;
    let mut price = Fraction::from(base);
    let mut rest = bytes;
    while let Some(after) = rest.checked_sub(REFERENCE_SCRIPT_TIER_BYTES) {
        total = total.plus(price.times(REFERENCE_SCRIPT_TIER_BYTES)?)?;
        price = price.by(multiplier)?;
        rest = after;
    }
    total.plus(price.times(rest)?)?.floor()
}

/// A non-negative fraction in lowest terms, with 128-bit numerator and denominator.
#[derive(Clone, Copy, Debug)]
struct Fraction {
    numerator: u128,
    denominator: u128,
}

impl From<Rational> for Fraction {
    fn from(rational: Rational) -> Self {
        Self { numerator: rational.numerator.into(), denominator: rational.denominator.into() }.reduced()
    }
}

impl Fraction {
    const ZERO: Self = Self { numerator: 0, denominator: 1 };

    fn reduced(self) -> Self {
        let divisor = gcd(self.numerator, self.denominator);
        Self {
            numerator: self.numerator.checked_div(divisor).unwrap_or(self.numerator),
            denominator: self.denominator.checked_div(divisor).unwrap_or(self.denominator),
        }
    }

    fn times(self, factor: u64) -> Option<Self> {
        self.by(Rational { numerator: factor, denominator: 1 })
    }

    fn by(self, factor: Rational) -> Option<Self> {
        Some(
            Self {
                numerator: self.numerator.checked_mul(factor.numerator.into())?,
                denominator: self.denominator.checked_mul(factor.denominator.into())?,
            }
            .reduced(),
        )
    }

    fn plus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        let denominator = self.denominator.checked_mul(other.denominator)?;
        Some(Self { numerator: left.checked_add(right)?, denominator }.reduced())
    }

    fn floor(self) -> Option<u64> {
        self.numerator.checked_div(self.denominator)?.try_into().ok()
    }

    fn ceil(self) -> Option<u64> {
        let rest = u128::from(self.numerator.checked_rem(self.denominator)? != 0);
        self.numerator.checked_div(self.denominator)?.checked_add(rest)?.try_into().ok()
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reference_scripts_cost_what_the_ledgers_own_test_says() {
        // cardano-ledger eras/conway/impl/test/Test/Cardano/Ledger/Conway/Spec.hs: growth 1.5, base 15.
        let growth = Rational { numerator: 3, denominator: 2 };
        let base = Rational { numerator: 15, denominator: 1 };
        let expected =
            [0, 384_000, 960_000, 1_824_000, 3_120_000, 5_064_000, 7_980_000, 12_354_000, 18_915_000].map(Some);
        let sizes = (0..=8).map(|tiers| tiers * REFERENCE_SCRIPT_TIER_BYTES);
        assert!(sizes.map(|bytes| reference_script_fee(base, growth, bytes)).eq(expected));
    }

    #[test]
    fn reference_script_tiers_are_floored_once_at_the_end() {
        let base = Rational { numerator: 15, denominator: 1 };
        for (bytes, fee) in [
            (0, 0),
            (1, 15),
            (25_599, 383_985),
            (25_600, 384_000),
            (25_601, 384_018),
            // A fifth tier ends at 128,000: three bytes of the sixth at 37.3248 are 111.97, on top of 2,857,574.4.
            (128_003, 2_857_686),
        ] {
            assert_eq!(reference_script_fee(base, TIER_MULTIPLIER, bytes), Some(fee), "{bytes} bytes");
        }
    }

    #[test]
    fn execution_units_are_rounded_up_once() {
        let params = ProtocolParameters::preprod();
        for (mem, steps, fee) in [
            (0, 0, 0),
            (1, 0, 1),
            (1, 1, 1),
            (10_000, 10_000_000, 577 + 721),
            (10_001, 10_000_001, 577 + 721 + 1),
            (14_000_000, 10_000_000_000, 807_800 + 721_000),
        ] {
            assert_eq!(execution_fee(&params, ExUnits { mem, steps }), Some(fee), "{mem} memory, {steps} steps");
        }
    }

    #[test]
    fn the_is_valid_byte_is_not_paid_for() {
        let fee = |tx_bytes| {
            min_fee(&ProtocolParameters::preprod(), &Weight { tx_bytes, ..Weight::default() }).map(Lovelace::get)
        };
        assert_eq!(fee(301), Some(155_381 + 44 * 300));
        assert_eq!(fee(1), Some(155_381));
        assert_eq!(fee(0), None);
    }

    #[test]
    fn the_fee_is_the_sum_of_its_three_parts() {
        let weight = Weight {
            tx_bytes: 1001,
            ex_units: ExUnits { mem: 10_000, steps: 10_000_000 },
            reference_script_bytes: 2000,
        };
        assert_eq!(
            min_fee(&ProtocolParameters::preprod(), &weight).map(Lovelace::get),
            Some(155_381 + 44_000 + 577 + 721 + 30_000)
        );
    }

    #[test]
    fn collateral_is_rounded_up() {
        for (fee, collateral) in [(0, 0), (1, 2), (2, 3), (170_001, 255_002)] {
            let fee = Lovelace::new(fee).unwrap();
            assert_eq!(min_collateral(&ProtocolParameters::preprod(), fee).map(Lovelace::get), Some(collateral));
        }
    }

    #[test]
    fn a_price_without_an_exact_fraction_is_refused() {
        let mut params = ProtocolParameters::preprod();
        params.price_mem.denominator = 0;
        assert_eq!(min_fee(&params, &Weight { tx_bytes: 300, ..Weight::default() }), None);
        let units = ExUnits { mem: u64::MAX, steps: u64::MAX };
        assert_eq!(
            min_fee(
                &ProtocolParameters::preprod(),
                &Weight { tx_bytes: 300, ex_units: units, reference_script_bytes: 0 }
            ),
            None
        );
        assert_eq!(min_collateral(&ProtocolParameters::preprod(), Lovelace::MAX), None);
    }

    proptest! {
        #[test]
        fn the_fee_never_falls_as_size_units_or_scripts_grow(
            bytes in 1usize..16_384, mem in 0u64..14_000_000, steps in 0u64..10_000_000_000,
            scripts in 0..MAX_REFERENCE_SCRIPT_BYTES, more in 0u64..1000,
        ) {
            let params = ProtocolParameters::preprod();
            let weight = Weight { tx_bytes: bytes, ex_units: ExUnits { mem, steps }, reference_script_bytes: scripts };
            let fee = min_fee(&params, &weight).unwrap();
            let heavier = [
                Weight { tx_bytes: bytes + more as usize, ..weight },
                Weight { ex_units: ExUnits { mem: mem + more, steps }, ..weight },
                Weight { ex_units: ExUnits { mem, steps: steps + more }, ..weight },
                Weight { reference_script_bytes: scripts + more, ..weight },
            ];
            for heavier in heavier {
                prop_assert!(min_fee(&params, &heavier).unwrap() >= fee);
            }
        }

        #[test]
        fn without_growth_the_reference_script_fee_is_linear(bytes in 0..MAX_REFERENCE_SCRIPT_BYTES, base in 0u64..1000) {
            let one = Rational { numerator: 1, denominator: 1 };
            let fee = reference_script_fee(Rational { numerator: base, denominator: 7 }, one, bytes);
            prop_assert_eq!(fee, Some(base * bytes / 7));
        }
    }
}
