//! Where an output goes: a key address of ours or of a buyer, or a script's address.

use std::{fmt, str::FromStr};

use bech32::{Bech32, Hrp};

use crate::{
    address::Address,
    hash::{KeyHash, ScriptHash},
};

const TESTNET_HRP: Hrp = Hrp::parse_unchecked("addr_test");
/// Header of an enterprise script address on a test network (CIP-19, type 7).
const ENTERPRISE_SCRIPT: u8 = 0x70;
/// The longest text that can be a base address in bech32, with some room.
const MAX_TEXT: usize = 128;

/// A Shelley payment address on a test network, base or enterprise, with a key or a script as payment credential
/// (CIP-19, types 0 to 3, 6 and 7). Pointer, Byron, stake and mainnet addresses are not of this type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(Kind);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Key(Address),
    /// The header, the script hash and the stake credential, if the header says so.
    Script(u8, ScriptHash, Option<[u8; 28]>),
}

/// A text or bytes that are not such an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a payment address of a test network: expected base or enterprise, starting with addr_test1")]
pub struct DestinationError;

impl Destination {
    /// The address of a script, without a stake credential.
    #[must_use]
    pub const fn script(hash: ScriptHash) -> Self {
        Self(Kind::Script(ENTERPRISE_SCRIPT, hash, None))
    }

    /// The key that spends from it, if a key does.
    #[must_use]
    pub const fn payment_key(&self) -> Option<&KeyHash> {
        match &self.0 {
            Kind::Key(address) => Some(address.payment_key()),
            Kind::Script(..) => None,
        }
    }

    /// The script that spends from it, if a script does.
    #[must_use]
    pub const fn payment_script(&self) -> Option<&ScriptHash> {
        match &self.0 {
            Kind::Key(_) => None,
            Kind::Script(_, hash, _) => Some(hash),
        }
    }

    /// The raw bytes (CIP-19).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Kind::Key(address) => address.to_bytes(),
            Kind::Script(header, hash, stake) => {
                let mut bytes = vec![*header];
                bytes.extend_from_slice(hash.as_bytes());
                bytes.extend_from_slice(stake.as_ref().map_or(&[], |stake| stake.as_slice()));
                bytes
            }
        }
    }

    /// The address with these raw bytes.
    ///
    /// # Errors
    /// Everything that is not of this type.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DestinationError> {
        if let Ok(address) = Address::from_bytes(bytes) {
            return Ok(address.into());
        }
        let (&header, rest) = bytes.split_first().ok_or(DestinationError)?;
        let (script, stake) = rest.split_at_checked(28).ok_or(DestinationError)?;
        let script = ScriptHash::from_slice(script).ok_or(DestinationError)?;
        let stake = match (header, stake) {
            (0x10 | 0x30, stake) => Some(stake.try_into().map_err(|_| DestinationError)?),
            (ENTERPRISE_SCRIPT, []) => None,
            _ => return Err(DestinationError),
        };
        Ok(Self(Kind::Script(header, script, stake)))
    }
}

impl From<Address> for Destination {
    fn from(address: Address) -> Self {
        Self(Kind::Key(address))
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        if text.len() > MAX_TEXT {
            return Err(DestinationError);
        }
        let checked =
            bech32::primitives::decode::CheckedHrpstring::new::<Bech32>(text).map_err(|_| DestinationError)?;
        if checked.hrp() != TESTNET_HRP {
            return Err(DestinationError);
        }
        Self::from_bytes(&checked.byte_iter().collect::<Vec<u8>>())
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bech32::encode_to_fmt::<Bech32, _>(f, TESTNET_HRP, &self.to_bytes()).map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_payment_addresses_of_cip_19_are_destinations() {
        // CIP-19 test vectors, network tag 0: types 0, 1, 2, 3, 6, 7.
        for (text, is_script) in [
            (
                "addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae",
                false,
            ),
            (
                "addr_test1zrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgsxj90mg",
                true,
            ),
            (
                "addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx",
                false,
            ),
            (
                "addr_test1xrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs4p04xh",
                true,
            ),
            ("addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz", false),
            ("addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr", true),
        ] {
            let destination: Destination = text.parse().unwrap();
            assert_eq!(destination.to_string(), text);
            assert_eq!(destination.payment_script().is_some(), is_script);
            assert_eq!(destination.payment_key().is_some(), !is_script);
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in [
            "",
            "addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky",
            "stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn",
            "addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx",
        ] {
            assert_eq!(text.parse::<Destination>(), Err(DestinationError), "{text}");
        }
    }

    #[test]
    fn a_script_without_stake_has_one_address() {
        let hash = ScriptHash::new([7; 28]);
        assert_eq!(Destination::script(hash).to_string().parse(), Ok(Destination::script(hash)));
    }

    proptest! {
        #[test]
        fn bytes_that_are_accepted_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..70)) {
            if let Ok(destination) = Destination::from_bytes(&bytes) {
                prop_assert_eq!(destination.to_bytes(), bytes);
                prop_assert_eq!(destination.to_string().parse(), Ok(destination));
            }
        }
    }
}
