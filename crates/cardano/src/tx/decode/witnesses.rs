//! Decodes the witness set: signatures, scripts, and the data that scripts get.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    DecodeError, TxPart,
    cbor::{CborError, Reader},
};
use crate::hash::KeyHash;

/// A public key with its signature of a transaction id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VkeyWitness {
    /// Ed25519 public key.
    pub key: [u8; 32],
    /// Signature of the 32 bytes of the transaction id.
    pub signature: [u8; 64],
}

impl VkeyWitness {
    /// Returns the hash of the public key.
    #[must_use]
    pub fn key_hash(&self) -> KeyHash {
        KeyHash::of_public_key(&self.key)
    }
}

pub(super) fn read(
    reader: &mut Reader<'_>,
    parts: &mut BTreeMap<TxPart, Vec<u8>>,
) -> Result<Vec<VkeyWitness>, DecodeError> {
    let mut witnesses = Vec::new();
    let mut fields = reader.record(Reader::map).map_err(|_| DecodeError::Malformed("witness set"))?;
    while reader.more(&mut fields)? {
        let part = match reader.uint().map_err(|_| DecodeError::Malformed("witness set"))? {
            0 => {
                witnesses = vkey_witnesses(reader)?;
                continue;
            }
            1 => TxPart::NativeScripts,
            2 => TxPart::BootstrapWitnesses,
            3 => TxPart::PlutusV1Scripts,
            4 => TxPart::PlutusData,
            5 => TxPart::Redeemers,
            6 => TxPart::PlutusV2Scripts,
            7 => TxPart::PlutusV3Scripts,
            key => return Err(DecodeError::UnknownField { place: "witness set", key }),
        };
        parts.insert(part, reader.skip()?.to_vec());
    }
    Ok(witnesses)
}

fn vkey_witnesses(reader: &mut Reader<'_>) -> Result<Vec<VkeyWitness>, DecodeError> {
    const NAME: &str = "signature";
    let mut items = reader.set().map_err(|_| DecodeError::Malformed(NAME))?;
    let (mut list, mut keys) = (Vec::new(), BTreeSet::new());
    while reader.more(&mut items)? {
        let witness = vkey_witness(reader).map_err(|_| DecodeError::Malformed(NAME))?;
        if !keys.insert(witness.key) {
            return Err(DecodeError::Duplicate(NAME));
        }
        list.push(witness);
    }
    if list.is_empty() { Err(DecodeError::Empty("list of signatures")) } else { Ok(list) }
}

fn vkey_witness(reader: &mut Reader<'_>) -> Result<VkeyWitness, CborError> {
    let mut pair = reader.record(Reader::array)?;
    reader.expect(&mut pair)?;
    let key = reader.hash()?;
    reader.expect(&mut pair)?;
    let signature = reader.hash()?;
    reader.end(&mut pair)?;
    Ok(VkeyWitness { key, signature })
}
