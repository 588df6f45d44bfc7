//! The buyer's collateral: lovelace that is locked in addition to the price and returned to the buyer in the end
//! (scheme document, "Collateral").
//!
//! An escrow's datum grows when a result and cooldowns are written into it, and the ledger demands more lovelace for a
//! larger output. The collateral makes sure that enough lovelace is locked from the start.

use cardano::{Lovelace, params::ProtocolParameters};

use crate::datum::Datum;

/// Minimum collateral of an escrow (scheme document, "Lock invariants"). No collateral at all is also allowed.
pub const MIN_COLLATERAL: Lovelace = match Lovelace::new(1_435_230) {
    Some(least) => least,
    None => Lovelace::ZERO,
};

/// Length of a result hash, in bytes.
const RESULT_BYTES: usize = 32;
/// Placeholder for a time in a datum. Its encoding is as long as that of any real time.
const SOME_TIME: u64 = u64::MAX >> 11;
/// Maximum number of rounds in which the collateral is computed. The datum contains the collateral, so a higher
/// collateral can make the datum a byte longer, which requires a higher collateral again.
const ROUNDS: usize = 5;

/// Returns the minimum lovelace that the ledger will require of the escrow's output once its datum also contains a
/// result and both cooldowns. `None` if the amount is out of range.
#[must_use]
pub fn minimum_after_result(datum: &Datum, parameters: &ProtocolParameters) -> Option<Lovelace> {
    let grown = Datum {
        result_hash: vec![0; RESULT_BYTES.max(datum.result_hash.len())],
        seller_cooldown: SOME_TIME,
        buyer_cooldown: SOME_TIME,
        ..datum.clone()
    };
    parameters.min_utxo(output_bytes(grown.to_cbor().len()))
}

/// Returns the smallest collateral with which an escrow of this price always holds the minimum lovelace of its output.
/// `datum.collateral_return` is ignored. `None` if the amount is out of range.
#[must_use]
pub fn collateral_for(price: Lovelace, datum: &Datum, parameters: &ProtocolParameters) -> Option<Lovelace> {
    let mut datum = Datum { collateral_return: Lovelace::ZERO, ..datum.clone() };
    for _ in 0..ROUNDS {
        let missing = minimum_after_result(&datum, parameters)?.saturating_sub(price);
        let enough = if missing == Lovelace::ZERO { missing } else { missing.max(MIN_COLLATERAL) };
        if enough <= datum.collateral_return {
            return Some(datum.collateral_return);
        }
        datum.collateral_return = enough;
    }
    None
}

/// Size in bytes of the output that holds an escrow: `{0: address, 1: coin, 2: [1, #6.24(datum)]}` in the ledger's
/// CBOR.
const fn output_bytes(datum: usize) -> usize {
    // Map header and three keys, the address with its header, the widest coin, and `[1, #6.24(..)]` around the datum.
    const AROUND_THE_DATUM: usize = 4 + (2 + 29) + 9 + (2 + 2);
    let header = match datum {
        0..24 => 1,
        24..0x100 => 2,
        0x100..0x1_0000 => 3,
        _ => 5,
    };
    datum.saturating_add(header).saturating_add(AROUND_THE_DATUM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        PlutusAddress,
        datum::tests::{any_datum, published},
    };
    use cardano::{ScriptHash, params::Rational};
    use pallas_codec::minicbor;
    use proptest::prelude::*;

    fn parameters() -> ProtocolParameters {
        let one = Rational { numerator: 1, denominator: 1 };
        ProtocolParameters {
            price_mem: one,
            price_step: one,
            min_fee_ref_script_cost_per_byte: one,
            ..ProtocolParameters::preprod()
        }
    }

    /// Returns the size of the escrow's output as an independent encoder writes it, in bytes.
    fn real_size(datum: &Datum, coin: u64) -> usize {
        let datum = datum.to_cbor();
        let mut out = minicbor::Encoder::new(Vec::new());
        out.map(3).unwrap();
        out.u8(0).unwrap().bytes(&PlutusAddress::script(ScriptHash::new([7; 28])).to_bytes()).unwrap();
        out.u8(1).unwrap().u64(coin).unwrap();
        out.u8(2).unwrap().array(2).unwrap().u8(1).unwrap();
        out.tag(minicbor::data::Tag::new(24)).unwrap().bytes(&datum).unwrap();
        out.into_writer().len()
    }

    #[test]
    fn the_size_of_an_output_is_never_underestimated() {
        for bytes in [0, 1, 40, 300, 70_000] {
            let datum = Datum { reference_signature: vec![1; bytes], ..published() };
            let size = datum.to_cbor().len();
            assert_eq!(output_bytes(size), real_size(&datum, 1 << 40), "{bytes}");
            assert!(output_bytes(size) >= real_size(&datum, 5_000_000), "{bytes}");
        }
    }

    #[test]
    fn a_price_that_carries_the_result_needs_no_collateral() {
        let price = Lovelace::from_ada(5);
        assert_eq!(collateral_for(price, &published(), &parameters()), Some(Lovelace::ZERO));
    }

    #[test]
    fn a_missing_lovelace_costs_the_least_collateral() {
        let enough = minimum_after_result(&Datum { collateral_return: Lovelace::ZERO, ..published() }, &parameters());
        let price = enough.unwrap();
        assert_eq!(collateral_for(price, &published(), &parameters()), Some(Lovelace::ZERO));
        let short = price.saturating_sub(Lovelace::new(1).unwrap());
        assert_eq!(collateral_for(short, &published(), &parameters()), Some(MIN_COLLATERAL));
    }

    proptest! {
        #[test]
        fn a_lock_has_enough_lovelace_to_carry_the_result(datum in any_datum(), price in 0..20_000_000u64) {
            let price = Lovelace::new(price).unwrap();
            let collateral = collateral_for(price, &datum, &parameters()).unwrap();
            let locked = Datum { collateral_return: collateral, ..datum };
            let least = minimum_after_result(&locked, &parameters()).unwrap();
            prop_assert!(price.checked_add(collateral).unwrap() >= least);
            prop_assert!(collateral == Lovelace::ZERO || collateral >= MIN_COLLATERAL);
        }
    }
}
