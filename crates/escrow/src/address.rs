//! Addresses as a script sees them: a payment and an optional stake credential, encoded as Plutus data.
//!
//! [`PlutusAddress`] accepts more than [`cardano::Address`], because anyone may write any credentials into a datum.
//! Whether an address may be a party of an escrow is decided when its lock is verified.

use cardano::{
    KeyHash, ScriptHash,
    address::{Credential, PaymentAddress},
};
use pallas_primitives::PlutusData;

use crate::codec::{self, DataReader, InvalidDatum, bytes, constr};

/// An address in a datum: a payment credential and an optional stake credential, without a network id.
pub type PlutusAddress = PaymentAddress;

/// Converts credentials and addresses from and to Plutus data, in the form of Plutus V3's `Credential` and `Address`.
pub(crate) trait AsData: Sized {
    fn to_data(self) -> PlutusData;
    fn read(reader: &mut DataReader<'_>, what: &'static str) -> Result<Self, InvalidDatum>;
}

impl AsData for Credential {
    fn to_data(self) -> PlutusData {
        constr(u8::from(self.is_script()), vec![bytes(self.hash())])
    }

    fn read(reader: &mut DataReader<'_>, what: &'static str) -> Result<Self, InvalidDatum> {
        let (index, mut fields) = reader.constr(what)?;
        let hash = reader.next(&mut fields)?.fixed_bytes(what)?;
        reader.close(fields)?;
        match index {
            0 => Ok(Self::Key(KeyHash::new(hash))),
            1 => Ok(Self::Script(ScriptHash::new(hash))),
            _ => Err(InvalidDatum::Shape(what)),
        }
    }
}

impl AsData for PaymentAddress {
    fn to_data(self) -> PlutusData {
        let stake = match self.stake {
            None => constr(1, vec![]),
            Some(stake) => constr(0, vec![constr(0, vec![stake.to_data()])]),
        };
        constr(0, vec![self.payment.to_data(), stake])
    }

    fn read(reader: &mut DataReader<'_>, what: &'static str) -> Result<Self, InvalidDatum> {
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
}

impl<T: AsData> AsData for Option<T> {
    fn to_data(self) -> PlutusData {
        match self {
            Some(value) => constr(0, vec![value.to_data()]),
            None => constr(1, vec![]),
        }
    }

    fn read(reader: &mut DataReader<'_>, what: &'static str) -> Result<Self, InvalidDatum> {
        read_option(reader, what, |reader| T::read(reader, what))
    }
}

fn read_option<T>(
    reader: &mut DataReader<'_>,
    what: &'static str,
    read: impl FnOnce(&mut DataReader<'_>) -> Result<T, InvalidDatum>,
) -> Result<Option<T>, InvalidDatum> {
    let (index, mut fields) = reader.constr(what)?;
    let value = match index {
        0 => Some(read(reader.next(&mut fields)?)?),
        1 => None,
        _ => return Err(codec::InvalidDatum::Shape(what)),
    };
    reader.close(fields)?;
    Ok(value)
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

    proptest! {
        #[test]
        fn data_round_trips(address in any_address()) {
            let cbor = codec::to_cbor(&address.to_data());
            let mut reader = DataReader::new(&cbor).unwrap();
            prop_assert_eq!(PlutusAddress::read(&mut reader, "address"), Ok(address));
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }
}
