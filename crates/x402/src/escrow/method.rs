//! The name under which payments into the escrow are offered.

use std::{fmt, str::FromStr};

/// One configured name. It is inside the signed terms: chosen when the quote is signed, checked on the retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransferMethod {
    /// The name in this service's API.
    #[default]
    Escrow,
    /// The name in the scheme document: what stock clients pay.
    Masumi,
}

/// Neither of the two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the escrow's transfer method is `escrow` or `masumi`")]
pub struct UnknownMethod;

impl TransferMethod {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Escrow => "escrow",
            Self::Masumi => "masumi",
        }
    }
}

impl FromStr for TransferMethod {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        [Self::Escrow, Self::Masumi].into_iter().find(|method| method.name() == name).ok_or(UnknownMethod)
    }
}

impl fmt::Display for TransferMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_names_are_methods() {
        for method in [TransferMethod::Escrow, TransferMethod::Masumi] {
            assert_eq!(method.name().parse(), Ok(method));
        }
        for other in ["", "default", "script", "Escrow", "escrow "] {
            assert_eq!(other.parse::<TransferMethod>(), Err(UnknownMethod), "{other:?}");
        }
    }
}
