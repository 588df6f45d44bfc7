//! Writes Plutus data exactly as `serialiseData` does in a Plutus script: non-empty lists in indefinite form, maps in
//! definite form, byte strings over 64 bytes in chunks. Arbiters sign a hash of these bytes, so they must not differ.

use pallas_codec::{
    minicbor,
    utils::{KeyValuePairs, MaybeIndefArray},
};
use pallas_primitives::{BigInt, Constr, PlutusData};

pub(crate) fn constr(index: u8, fields: Vec<PlutusData>) -> PlutusData {
    let fields = if fields.is_empty() { MaybeIndefArray::Def(fields) } else { MaybeIndefArray::Indef(fields) };
    PlutusData::Constr(Constr { tag: 121u64.saturating_add(index.into()), any_constructor: None, fields })
}

pub(crate) fn bytes(bytes: &[u8]) -> PlutusData {
    PlutusData::BoundedBytes(bytes.to_vec().into())
}

/// Encodes an integer. All integers of the contract's types fit into 63 bits; a larger value is written as `i64::MAX`.
pub(crate) fn integer(number: u64) -> PlutusData {
    PlutusData::BigInt(BigInt::Int(i64::try_from(number).unwrap_or(i64::MAX).into()))
}

pub(crate) fn map(pairs: Vec<(PlutusData, PlutusData)>) -> PlutusData {
    PlutusData::Map(KeyValuePairs::Def(pairs))
}

pub(crate) fn to_cbor(data: &PlutusData) -> Vec<u8> {
    let mut cbor = Vec::new();
    // Writing to a vector cannot fail.
    let written = minicbor::encode(data, &mut cbor);
    debug_assert!(written.is_ok());
    cbor
}

pub(crate) fn list(items: Vec<PlutusData>) -> PlutusData {
    PlutusData::Array(if items.is_empty() { MaybeIndefArray::Def(items) } else { MaybeIndefArray::Indef(items) })
}
