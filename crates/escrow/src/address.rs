//! Addresses as a script sees them: two credentials. Wider than [`cardano::Address`], because anyone may write
//! anything into a datum; what may be a party is decided where a lock is verified.

use std::fmt;

use bech32::{Bech32, Hrp};
use cardano::{Address, KeyHash, ScriptHash, address::Stake};
use pallas_primitives::PlutusData;

use crate::codec::{self, NotOurs, Reader, bytes, constr};

const TESTNET_HRP: Hrp = Hrp::parse_unchecked("addr_test");

/// A payment or stake credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A key: whoever signs with it.
    Key(KeyHash),
    /// A script. Can never be a party of the escrow: nobody signs for it.
    Script(ScriptHash),
}

/// An address with a payment credential and, maybe, a stake credential (CIP-19 header types 0 to 3, 6 and 7).
/// Pointer addresses are not of this type: the ledger no longer makes new ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlutusAddress {
    /// Who spends from it.
    pub payment: Credential,
    /// Who delegates its stake.
    pub stake: Option<Credential>,
}

impl Credential {
    fn hash(&self) -> &[u8; 28] {
        match self {
            Self::Key(hash) => hash.as_bytes(),
            Self::Script(hash) => hash.as_bytes(),
        }
    }

    const fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    fn to_data(self) -> PlutusData {
        constr(u8::from(self.is_script()), vec![bytes(self.hash())])
    }

    fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, NotOurs> {
        let (index, mut fields) = reader.constr(what)?;
        let hash = reader.next(&mut fields)?.fixed_bytes(what)?;
        reader.close(fields)?;
        match index {
            0 => Ok(Self::Key(KeyHash::new(hash))),
            1 => Ok(Self::Script(ScriptHash::new(hash))),
            _ => Err(NotOurs::Shape(what)),
        }
    }
}

impl PlutusAddress {
    /// A script's address without a stake credential: where escrows are.
    #[must_use]
    pub const fn script(hash: ScriptHash) -> Self {
        Self { payment: Credential::Script(hash), stake: None }
    }

    /// The address of a person, where the payment credential is a key.
    #[must_use]
    pub fn key_address(&self) -> Option<Address> {
        let Credential::Key(payment) = self.payment else { return None };
        Some(match self.stake {
            None => Address::enterprise(payment),
            Some(Credential::Key(stake)) => Address::base(payment, Stake::Key(*stake.as_bytes())),
            Some(Credential::Script(stake)) => Address::base(payment, Stake::Script(*stake.as_bytes())),
        })
    }

    /// The raw bytes on a test network (CIP-19).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let payment = u8::from(self.payment.is_script());
        let kind = match self.stake {
            None => 6 | payment,
            Some(stake) => (u8::from(stake.is_script()) << 1) | payment,
        };
        let mut raw = Vec::with_capacity(57);
        raw.push(kind << 4);
        raw.extend_from_slice(self.payment.hash());
        if let Some(stake) = self.stake {
            raw.extend_from_slice(stake.hash());
        }
        raw
    }

    /// The address from its raw bytes; `None` where they are not of a test network or not of this type.
    #[must_use]
    pub fn from_bytes(raw: &[u8]) -> Option<Self> {
        let (&header, rest) = raw.split_first()?;
        let kind = header >> 4;
        if header & 0x0f != 0 || !matches!(kind, 0..=3 | 6 | 7) {
            return None;
        }
        let credential = |script: bool, hash: &[u8]| {
            let hash = <[u8; 28]>::try_from(hash).ok()?;
            Some(if script { Credential::Script(ScriptHash::new(hash)) } else { Credential::Key(KeyHash::new(hash)) })
        };
        let (payment, stake) = if kind < 4 {
            let (payment, stake) = rest.split_at_checked(28)?;
            (payment, Some(credential(kind & 2 != 0, stake)?))
        } else {
            (rest, None)
        };
        Some(Self { payment: credential(kind & 1 != 0, payment)?, stake })
    }

    pub(crate) fn to_data(self) -> PlutusData {
        let stake = match self.stake {
            None => constr(1, vec![]),
            Some(stake) => constr(0, vec![constr(0, vec![stake.to_data()])]),
        };
        constr(0, vec![self.payment.to_data(), stake])
    }

    pub(crate) fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, NotOurs> {
        let mut fields = reader.the_constr(0, what)?;
        let payment = Credential::read(reader.next(&mut fields)?, what)?;
        let stake = read_option(reader.next(&mut fields)?, what, |reader| {
            let mut inline = reader.the_constr(0, what)?;
            let stake = Credential::read(reader.next(&mut inline)?, what)?;
            reader.close(inline)?;
            Ok(stake)
        })?;
        reader.close(fields)?;
        Ok(Self { payment, stake })
    }

    pub(crate) fn option_to_data(address: Option<Self>) -> PlutusData {
        match address {
            Some(address) => constr(0, vec![address.to_data()]),
            None => constr(1, vec![]),
        }
    }

    pub(crate) fn read_option(reader: &mut Reader<'_>, what: &'static str) -> Result<Option<Self>, NotOurs> {
        read_option(reader, what, |reader| Self::read(reader, what))
    }
}

fn read_option<T>(
    reader: &mut Reader<'_>,
    what: &'static str,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, NotOurs>,
) -> Result<Option<T>, NotOurs> {
    let (index, mut fields) = reader.constr(what)?;
    let value = match index {
        0 => Some(read(reader.next(&mut fields)?)?),
        1 => None,
        _ => return Err(codec::NotOurs::Shape(what)),
    };
    reader.close(fields)?;
    Ok(value)
}

impl From<Address> for PlutusAddress {
    fn from(address: Address) -> Self {
        let stake = address.stake().map(|stake| match stake {
            Stake::Key(hash) => Credential::Key(KeyHash::new(*hash)),
            Stake::Script(hash) => Credential::Script(ScriptHash::new(*hash)),
        });
        Self { payment: Credential::Key(*address.payment_key()), stake }
    }
}

impl fmt::Display for PlutusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bech32::encode_to_fmt::<Bech32, _>(f, TESTNET_HRP, &self.to_bytes()).map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for PlutusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlutusAddress({self})")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_credential() -> impl Strategy<Value = Credential> {
        (any::<bool>(), any::<[u8; 28]>()).prop_map(|(script, hash)| {
            if script { Credential::Script(ScriptHash::new(hash)) } else { Credential::Key(KeyHash::new(hash)) }
        })
    }

    pub(crate) fn any_address() -> impl Strategy<Value = PlutusAddress> {
        (any_credential(), proptest::option::of(any_credential()))
            .prop_map(|(payment, stake)| PlutusAddress { payment, stake })
    }

    #[test]
    fn the_escrow_address_of_the_scheme_document_is_a_script_address() {
        // Both identifier vectors of scheme_exact_cardano.md name this address.
        let text = "addr_test1wzs4e6wc95hkwezlccjw9mdvq0r0rsgx6zk34avptga3ftgn37w4g";
        let hash: ScriptHash = "a15ce9d82d2f67645fc624e2edac03c6f1c106d0ad1af5815a3b14ad".parse().unwrap();
        assert_eq!(PlutusAddress::script(hash).to_string(), text);
        assert_eq!(PlutusAddress::script(hash).key_address(), None);
    }

    proptest! {
        #[test]
        fn bytes_and_data_round_trip(address in any_address()) {
            prop_assert_eq!(PlutusAddress::from_bytes(&address.to_bytes()), Some(address));
            let cbor = codec::to_cbor(&address.to_data());
            let mut reader = Reader::new(&cbor).unwrap();
            prop_assert_eq!(PlutusAddress::read(&mut reader, "address"), Ok(address));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn a_key_address_is_the_same_address(address in any_address()) {
            match (address.key_address(), address.payment) {
                (Some(key), Credential::Key(_)) => {
                    prop_assert_eq!(key.to_bytes(), address.to_bytes());
                    prop_assert_eq!(PlutusAddress::from(key), address);
                }
                (None, Credential::Script(_)) => {}
                other => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn no_bytes_panic(raw in proptest::collection::vec(any::<u8>(), 0..70)) {
            if let Some(address) = PlutusAddress::from_bytes(&raw) {
                prop_assert_eq!(address.to_bytes(), raw);
            }
        }
    }
}
