//! Amounts as positive decimal strings.

use std::{fmt, num::NonZeroU64, str::FromStr};

/// A positive number of an asset's smallest units (lovelace for ADA). In JSON, a decimal string without leading zeros:
/// each amount has only one encoding, so requirements can be compared and signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(NonZeroU64);

/// The text is not an [`Amount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an amount is a positive whole number as a decimal string without leading zeros")]
pub struct AmountError;

impl Amount {
    /// Creates an amount, or returns `None` for zero.
    #[must_use]
    pub fn new(units: u64) -> Option<Self> {
        NonZeroU64::new(units).map(Self)
    }

    /// Returns the number of smallest units.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let canonical = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        if !canonical {
            return Err(AmountError);
        }
        text.parse().ok().and_then(Self::new).ok_or(AmountError)
    }
}

as_text!(Amount);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_one_encoding() {
        assert_eq!("1000000".parse(), Ok(Amount::new(1_000_000).unwrap()));
        assert_eq!(u64::MAX.to_string().parse(), Ok(Amount::new(u64::MAX).unwrap()));
        for text in ["", "0", "00", "01", "+1", "-1", " 1", "1 ", "1.0", "1e3", "0x1", "١", "18446744073709551616"] {
            assert_eq!(text.parse::<Amount>(), Err(AmountError), "{text:?}");
        }
    }

    #[test]
    fn a_json_number_is_not_an_amount() {
        assert!(serde_json::from_str::<Amount>("5").is_err());
        assert_eq!(serde_json::from_str::<Amount>("\"5\"").unwrap().get(), 5);
    }
}
