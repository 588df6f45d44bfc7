//! Amounts in lovelace with checked arithmetic; decimal strings in JSON.

use std::{fmt, iter, str::FromStr};

/// An amount in lovelace (1 ADA = 1,000,000 lovelace), at most the maximum supply of ADA.
///
/// JSON: a string of decimal digits (`^[0-9]+$`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lovelace(u64);

/// Reason why a string is not an amount of lovelace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LovelaceError {
    /// The text does not match `^[0-9]+$`.
    #[error("must be an amount of lovelace as a string of decimal digits")]
    NotDecimal,
    /// The amount exceeds the maximum supply of ADA.
    #[error("must be at most 45000000000000000 lovelace (45,000,000,000 ADA), which is all that can exist")]
    TooLarge,
}

impl Lovelace {
    /// 0 lovelace.
    pub const ZERO: Self = Self(0);
    /// 45 billion ADA: the maximum supply (Shelley genesis, `maxLovelaceSupply`).
    pub const MAX: Self = Self(45_000_000_000_000_000);

    /// Creates an amount from a number of whole ADA, for use in constants.
    #[must_use]
    #[allow(clippy::arithmetic_side_effects, reason = "2^32 million is far below 2^64")]
    pub const fn from_ada(ada: u32) -> Self {
        Self(ada as u64 * 1_000_000)
    }

    /// Creates an amount, or returns `None` if it exceeds the maximum supply.
    #[must_use]
    pub const fn new(lovelace: u64) -> Option<Self> {
        if lovelace <= Self::MAX.0 { Some(Self(lovelace)) } else { None }
    }

    /// Returns the number of lovelace.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Adds two amounts. Returns `None` if the sum exceeds the maximum supply.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).and_then(Self::new)
    }

    /// Subtracts an amount. Returns `None` if the result would be negative.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Subtracts an amount. Returns zero if the result would be negative.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Sums amounts. Returns `None` if the sum exceeds the maximum supply.
    pub fn checked_sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        amounts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }

    /// Formats the amount for display, such as `12.5 tADA`.
    #[must_use]
    pub fn display_tada(self) -> String {
        let (whole, fraction) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{fraction:06}");
        match digits.trim_end_matches('0') {
            "" => format!("{whole} tADA"),
            fraction => format!("{whole}.{fraction} tADA"),
        }
    }
}

impl iter::Sum for Lovelace {
    /// Sums amounts. The sum is capped at the maximum supply. The amounts on one ledger never add up to more.
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |sum, next| sum.checked_add(next).unwrap_or(Self::MAX))
    }
}

impl fmt::Display for Lovelace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Lovelace {
    type Err = LovelaceError;

    fn from_str(text: &str) -> Result<Self, LovelaceError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(LovelaceError::NotDecimal);
        }
        text.parse().ok().and_then(Self::new).ok_or(LovelaceError::TooLarge)
    }
}

serialized_as_text!(Lovelace);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_decimal_digits_are_an_amount() {
        for text in ["", "-1", "+1", " 1", "1 ", "1.0", "0x10", "1e6", "١"] {
            assert_eq!(text.parse::<Lovelace>(), Err(LovelaceError::NotDecimal), "{text:?}");
        }
    }

    #[test]
    fn an_amount_over_the_supply_is_refused_at_any_length() {
        assert_eq!("45000000000000001".parse::<Lovelace>(), Err(LovelaceError::TooLarge));
        assert_eq!("9".repeat(400).parse::<Lovelace>(), Err(LovelaceError::TooLarge));
        assert_eq!("45000000000000000".parse(), Ok(Lovelace::MAX));
    }

    #[test]
    fn leading_zeros_do_not_change_an_amount() {
        assert_eq!("0005".parse(), Ok(Lovelace(5)));
    }

    #[test]
    fn arithmetic_never_wraps() {
        assert_eq!(Lovelace::MAX.checked_add(Lovelace(1)), None);
        assert_eq!(Lovelace::ZERO.checked_sub(Lovelace(1)), None);
    }

    #[test]
    fn amounts_are_shown_in_tada() {
        assert_eq!(Lovelace(12_500_000).display_tada(), "12.5 tADA");
        assert_eq!(Lovelace(3_000_000).display_tada(), "3 tADA");
        assert_eq!(Lovelace(1).display_tada(), "0.000001 tADA");
    }

    proptest! {
        #[test]
        fn json_round_trips(n in 0..=Lovelace::MAX.0) {
            let json = serde_json::to_string(&Lovelace(n)).unwrap();
            prop_assert_eq!(&json, &format!("\"{n}\""));
            prop_assert_eq!(serde_json::from_str::<Lovelace>(&json).unwrap(), Lovelace(n));
        }
    }
}
