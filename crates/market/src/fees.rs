//! How the creator and the platform share the price of a protected sale.

use cardano::Lovelace;

/// Minimum fee of a protected sale (1.5 tADA).
pub const MIN_FEE: Lovelace = match Lovelace::new(1_500_000) {
    Some(fee) => fee,
    None => Lovelace::ZERO,
};

/// Divisor of the price that gives the proportional fee of 10 %. The proportional fee applies if it exceeds
/// [`MIN_FEE`].
const FEE_DIVISOR: u64 = 10;

/// Returns the creator's share of a protected sale: price - max(1.5 tADA, 10 %), or zero if the price is below the
/// minimum fee. The 10 % are rounded down, in the creator's favour.
#[must_use]
pub fn creator_share(price: Lovelace) -> Lovelace {
    let tenth = price.get().checked_div(FEE_DIVISOR).and_then(Lovelace::new).unwrap_or(Lovelace::ZERO);
    price.saturating_sub(tenth.max(MIN_FEE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creator_gets_the_price_without_the_larger_fee() {
        for (price, share) in [
            (5_000_000, 3_500_000),
            (14_999_999, 13_499_999),
            (15_000_000, 13_500_000),
            (15_000_009, 13_500_009),
            (15_000_010, 13_500_009),
            (100_000_000, 90_000_000),
            (1_500_000, 0),
            (1_000_000, 0),
            (0, 0),
        ] {
            let (price, share) = (Lovelace::new(price).unwrap(), Lovelace::new(share).unwrap());
            assert_eq!(creator_share(price), share, "{price}");
        }
    }
}
