//! Cardano's networks and the constants in which they differ.

use std::{fmt, str::FromStr};

use crate::slots::SlotConfig;

/// A Cardano network. In text, its CAIP-2 name; CIP-34's chain id is accepted as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// The main network: `cardano:mainnet`, or `cip34:1-764824073` in CIP-34.
    Mainnet,
    /// The test network preprod: `cardano:preprod`, or `cip34:0-1` in CIP-34.
    Preprod,
    /// The test network preview: `cardano:preview`, or `cip34:0-2` in CIP-34.
    Preview,
}

/// The text is not the name of a Cardano network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a Cardano network: expected cardano:mainnet, cardano:preprod or cardano:preview")]
pub struct NetworkError;

impl Network {
    /// Every supported network.
    pub const ALL: [Self; 3] = [Self::Mainnet, Self::Preprod, Self::Preview];

    /// Returns the CAIP-2 name, which x402's Cardano scheme uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainnet => "cardano:mainnet",
            Self::Preprod => "cardano:preprod",
            Self::Preview => "cardano:preview",
        }
    }

    /// Returns the network id in transaction bodies and addresses (CIP-19): 1 for mainnet, 0 for every test network.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::Mainnet => 1,
            Self::Preprod | Self::Preview => 0,
        }
    }

    /// Returns the protocol magic (`networkMagic` in the Shelley genesis).
    #[must_use]
    pub const fn magic(self) -> u32 {
        match self {
            Self::Mainnet => 764_824_073,
            Self::Preprod => 1,
            Self::Preview => 2,
        }
    }

    /// Returns the bech32 prefix of payment addresses (CIP-19).
    #[must_use]
    pub const fn address_prefix(self) -> &'static str {
        match self {
            Self::Mainnet => "addr",
            Self::Preprod | Self::Preview => "addr_test",
        }
    }

    /// Returns the conversion between slots and time, valid since the network's Shelley era.
    #[must_use]
    pub const fn slots(self) -> SlotConfig {
        match self {
            Self::Mainnet => SlotConfig::MAINNET,
            Self::Preprod => SlotConfig::PREPROD,
            Self::Preview => SlotConfig::PREVIEW,
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

serialized_as_text!(Network);

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources of the constants: CIP-34's registry for ids and magics; CIP-19 for prefixes; each network's Byron and
    /// Shelley genesis for known slots, as in `SLOT_CONFIG_NETWORK` of lucid (spacebudz/lucid, src/plutus/time.ts) and
    /// `SlotConfigs` of cardano-client-lib (bloxbean).
    #[test]
    fn each_network_has_the_constants_of_its_genesis_and_the_standards() {
        type Figures = (&'static str, &'static str, u8, u32, &'static str, u64, u64);
        const FIGURES: [Figures; 3] = [
            ("cardano:mainnet", "cip34:1-764824073", 1, 764_824_073, "addr", 4_492_800, 1_596_059_091_000),
            ("cardano:preprod", "cip34:0-1", 0, 1, "addr_test", 86_400, 1_655_769_600_000),
            ("cardano:preview", "cip34:0-2", 0, 2, "addr_test", 0, 1_666_656_000_000),
        ];
        for (network, (name, alias, id, magic, prefix, slot, began)) in Network::ALL.into_iter().zip(FIGURES) {
            assert_eq!((network.name(), network.id(), network.magic()), (name, id, magic));
            assert_eq!(network.address_prefix(), prefix, "{name}");
            assert_eq!((name.parse(), alias.parse()), (Ok(network), Ok(network)), "an alias is the same network");
            assert_eq!(serde_json::to_string(&network).unwrap(), format!("\"{name}\""), "in its canonical form");
            assert_eq!(alias, format!("cip34:{id}-{magic}"));
            assert_eq!(network.slots().slot_begins_at(slot), Some(began), "{name}");
            assert_eq!(network.slots().slot_at(began + 1_999), Some(slot + 1), "{name}: a slot is a second");
            assert_eq!(network.slots().slot_at(began - 1), None, "{name}: not before its Shelley era");
        }
    }

    #[test]
    fn no_other_form_is_a_network() {
        for text in ["", "cardano", "cardano:1", "cip34:0-3", "cip34:1-1", "preprod", "Cardano:preprod", "eip155:8453"]
        {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
    }
}
