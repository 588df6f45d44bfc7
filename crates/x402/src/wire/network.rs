//! Cardano's networks, by the names of the scheme and by their CIP-34 aliases.

use std::{fmt, str::FromStr};

/// A Cardano network. Written in its canonical form; read in that and in the CIP-34 form, which is the same network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// `cardano:mainnet`, `cip34:1-764824073`.
    Mainnet,
    /// `cardano:preprod`, `cip34:0-1`.
    Preprod,
    /// `cardano:preview`, `cip34:0-2`.
    Preview,
}

/// Why a text is not a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a Cardano network: expected cardano:mainnet, cardano:preprod or cardano:preview")]
pub struct NetworkError;

impl Network {
    /// The canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainnet => "cardano:mainnet",
            Self::Preprod => "cardano:preprod",
            Self::Preview => "cardano:preview",
        }
    }

    /// The id in transaction bodies and addresses: 1 for mainnet, 0 for every test network.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::Mainnet => 1,
            Self::Preprod | Self::Preview => 0,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        match text {
            "cardano:mainnet" | "cip34:1-764824073" => Ok(Self::Mainnet),
            "cardano:preprod" | "cip34:0-1" => Ok(Self::Preprod),
            "cardano:preview" | "cip34:0-2" => Ok(Self::Preview),
            _ => Err(NetworkError),
        }
    }
}

as_text!(Network);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_the_same_network_and_is_written_canonically() {
        for (alias, network) in
            [("cip34:1-764824073", Network::Mainnet), ("cip34:0-1", Network::Preprod), ("cip34:0-2", Network::Preview)]
        {
            assert_eq!(alias.parse(), Ok(network));
            assert_eq!(network.name().parse(), Ok(network));
        }
        assert_eq!(serde_json::to_string(&Network::Preprod).unwrap(), "\"cardano:preprod\"");
    }

    #[test]
    fn no_other_form_is_a_network() {
        for text in ["", "cardano", "cardano:1", "cip34:0-3", "cip34:1-1", "preprod", "Cardano:preprod", "eip155:8453"]
        {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
    }
}
