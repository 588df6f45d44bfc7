//! Preprod addresses of people: a payment key, with or without a stake credential.

use std::{fmt, str::FromStr};

use bech32::{Bech32, Hrp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::hash::KeyHash;

/// The longest text that can be an address: hex of a base address, with room for bech32's prefix.
const MAX_ADDRESS_TEXT: usize = 128;
const TESTNET_HRP: Hrp = Hrp::parse_unchecked("addr_test");

/// A Shelley address on a test network whose payment credential is a key: base (with a stake credential,
/// key or script) or enterprise. Script, pointer, Byron, stake and mainnet addresses are not of this type.
///
/// Text: bech32 `addr_test1...`; [`Address::parse_cip30`] also takes the hex form of wallets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    payment: KeyHash,
    stake: Option<Stake>,
}

/// The stake part of a base address (CIP-19, header types 0 and 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stake {
    /// A stake key's hash.
    Key([u8; 28]),
    /// A stake script's hash.
    Script([u8; 28]),
}

/// Why a text is not an address of this type. The message says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither bech32 nor hex, or of the wrong length.
    #[error("not a Cardano address: expected bech32 starting with addr_test1")]
    Malformed,
    /// An address of mainnet.
    #[error("not a preprod address: this address is for mainnet; switch the wallet to preprod")]
    WrongNetwork,
    /// Payment credential is a script: nobody can sign with it.
    #[error("not an address with a payment key: script addresses cannot sign")]
    Script,
    /// Stake, pointer or Byron address.
    #[error("not a payment address with a key: use a base or enterprise address (addr_test1...)")]
    Unsupported,
}

impl Address {
    /// An enterprise address: a payment key and no stake credential.
    #[must_use]
    pub const fn enterprise(payment: KeyHash) -> Self {
        Self { payment, stake: None }
    }

    /// A base address.
    #[must_use]
    pub const fn base(payment: KeyHash, stake: Stake) -> Self {
        Self { payment, stake: Some(stake) }
    }

    /// The hash of the key that spends from the address.
    #[must_use]
    pub const fn payment_key(&self) -> &KeyHash {
        &self.payment
    }

    /// The stake credential, if the address has one.
    #[must_use]
    pub const fn stake(&self) -> Option<&Stake> {
        self.stake.as_ref()
    }

    /// The address from its raw bytes (CIP-19).
    ///
    /// # Errors
    /// Each way in which the bytes are not a preprod key address.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        let (&header, rest) = bytes.split_first().ok_or(AddressError::Malformed)?;
        let kind = header >> 4;
        match kind {
            0..=3 | 6 | 7 => {}
            4 | 5 | 8 | 14 | 15 => return Err(AddressError::Unsupported),
            _ => return Err(AddressError::Malformed),
        }
        match header & 0x0f {
            0 => {}
            1 => return Err(AddressError::WrongNetwork),
            _ => return Err(AddressError::Malformed),
        }
        let credential = |part: &[u8]| <[u8; 28]>::try_from(part).map_err(|_| AddressError::Malformed);
        let (payment, stake) = match kind {
            6 | 7 => (credential(rest)?, None),
            _ => {
                let (payment, stake) = rest.split_at_checked(28).ok_or(AddressError::Malformed)?;
                let stake = credential(stake)?;
                let stake = if kind & 2 == 0 { Stake::Key(stake) } else { Stake::Script(stake) };
                (credential(payment)?, Some(stake))
            }
        };
        if kind & 1 == 1 {
            return Err(AddressError::Script);
        }
        Ok(Self { payment: KeyHash::new(payment), stake })
    }

    /// The raw bytes (CIP-19): a header, the payment key hash, the stake hash.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (header, stake): (u8, &[u8]) = match &self.stake {
            None => (0x60, &[]),
            Some(Stake::Key(hash)) => (0x00, hash),
            Some(Stake::Script(hash)) => (0x20, hash),
        };
        let mut bytes = Vec::with_capacity(57);
        bytes.push(header);
        bytes.extend_from_slice(self.payment.as_bytes());
        bytes.extend_from_slice(stake);
        bytes
    }

    /// An address as wallets hand it over (CIP-30): hex of the raw bytes, or bech32.
    ///
    /// # Errors
    /// As [`Address::from_bytes`].
    pub fn parse_cip30(text: &str) -> Result<Self, AddressError> {
        if text.len() > MAX_ADDRESS_TEXT {
            return Err(AddressError::Malformed);
        }
        match hex::decode(text) {
            Ok(bytes) => Self::from_bytes(&bytes),
            Err(_) => text.parse(),
        }
    }
}

/// An address in the chain's own text form: bech32, or base58 for one of Byron's. `None` for bytes that are no address.
#[must_use]
pub fn text_of(address: &[u8]) -> Option<String> {
    const BYRON: u8 = 8;
    /// Bytes of an address at most: those of a base address, and of Byron ones what is ever seen, amply.
    const MAX_ADDRESS: usize = 256;
    const MAINNET_HRP: Hrp = Hrp::parse_unchecked("addr");
    let (kind, network) = address.first().map(|header| (header >> 4, header & 0x0f))?;
    match (kind, network) {
        _ if address.len() > MAX_ADDRESS => None,
        (BYRON, _) => Some(bs58::encode(address).into_string()),
        (_, 0) => bech32::encode::<Bech32>(TESTNET_HRP, address).ok(),
        (_, 1) => bech32::encode::<Bech32>(MAINNET_HRP, address).ok(),
        _ => None,
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.len() > MAX_ADDRESS_TEXT {
            return Err(AddressError::Malformed);
        }
        let checked =
            bech32::primitives::decode::CheckedHrpstring::new::<Bech32>(text).map_err(|_| AddressError::Malformed)?;
        match checked.hrp().as_str() {
            "addr_test" => {}
            "addr" => return Err(AddressError::WrongNetwork),
            "stake" | "stake_test" => return Err(AddressError::Unsupported),
            _ => return Err(AddressError::Malformed),
        }
        Self::from_bytes(&checked.byte_iter().collect::<Vec<u8>>())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bech32::encode_to_fmt::<Bech32, _>(f, TESTNET_HRP, &self.to_bytes()).map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // CIP-19 test vectors (network tag 0).
    const BASE_KEY_KEY: &str =
        "addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae";
    const ENTERPRISE_KEY: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
    const BASE_KEY_SCRIPT: &str =
        "addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx";

    #[test]
    fn key_addresses_of_cip_19_are_accepted_in_both_forms() {
        for text in [BASE_KEY_KEY, ENTERPRISE_KEY, BASE_KEY_SCRIPT] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(Address::parse_cip30(&hex::encode(address.to_bytes())), Ok(address));
            assert_eq!(Address::parse_cip30(&hex::encode_upper(address.to_bytes())), Ok(address));
        }
    }

    #[test]
    fn other_addresses_of_cip_19_are_refused_with_the_reason() {
        for (text, reason) in [
            ("addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr", AddressError::Script),
            ("addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky", AddressError::Unsupported),
            ("stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn", AddressError::Unsupported),
            ("addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8", AddressError::WrongNetwork),
            ("", AddressError::Malformed),
            ("addr_test1", AddressError::Malformed),
            ("6", AddressError::Malformed),
        ] {
            assert_eq!(Address::parse_cip30(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn a_mainnet_payload_under_the_testnet_prefix_is_refused() {
        let mut bytes = ENTERPRISE_KEY.parse::<Address>().unwrap().to_bytes();
        bytes[0] |= 1;
        let text = bech32::encode::<Bech32>(TESTNET_HRP, &bytes).unwrap();
        assert_eq!(text.parse::<Address>(), Err(AddressError::WrongNetwork));
    }

    #[test]
    fn an_overlong_text_is_refused_before_it_is_decoded() {
        assert_eq!(Address::parse_cip30(&"60".repeat(100_000)), Err(AddressError::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_accepted_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..70)) {
            if let Ok(address) = Address::from_bytes(&bytes) {
                prop_assert_eq!(address.to_bytes(), bytes);
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,140}") {
            let _ = Address::parse_cip30(&text);
        }
    }
}
