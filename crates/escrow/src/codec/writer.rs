//! Plutus data as `serialiseData` writes it on the chain: lists that are not empty in indefinite form, maps in
//! definite form, byte strings over 64 bytes in chunks. Signed intents depend on these exact bytes.

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

/// A number. Those of the contract's types fit 63 bits; a larger one would be written as the largest.
pub(crate) fn integer(number: u64) -> PlutusData {
    PlutusData::BigInt(BigInt::Int(i64::try_from(number).unwrap_or(i64::MAX).into()))
}

pub(crate) fn map(pairs: Vec<(PlutusData, PlutusData)>) -> PlutusData {
    PlutusData::Map(KeyValuePairs::Def(pairs))
}

pub(crate) fn to_cbor(data: &PlutusData) -> Vec<u8> {
    let mut cbor = Vec::new();
    // Infallible: a vector takes every write.
    let written = minicbor::encode(data, &mut cbor);
    debug_assert!(written.is_ok());
    cbor
}

pub(crate) fn list(items: Vec<PlutusData>) -> PlutusData {
    PlutusData::Array(if items.is_empty() { MaybeIndefArray::Def(items) } else { MaybeIndefArray::Indef(items) })
}
