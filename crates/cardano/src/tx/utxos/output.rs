//! Reads outputs in both of the ledger's forms: the array of the eras before Babbage, and the map.

use pallas_codec::minicbor::{Decoder, data::Type};

use super::cbor::{self, Error, ItemCount, unsupported};
use crate::{
    address,
    chain::{Utxo, Value},
    hash::{ScriptHash, TxRef, blake2b},
    money::Lovelace,
};

/// An output whose transaction id is not known yet.
#[derive(Default)]
pub(super) struct ProducedOutput {
    address: String,
    value: Value,
    inline_datum: Option<Vec<u8>>,
    datum_hash: Option<[u8; 32]>,
    reference_script: Option<ScriptHash>,
}

impl ProducedOutput {
    pub(super) fn at(self, reference: TxRef) -> Utxo {
        let Self { address, value, inline_datum, datum_hash, reference_script } = self;
        Utxo { reference, address, value, inline_datum, datum_hash, reference_script }
    }
}

pub(super) fn read(decoder: &mut Decoder<'_>) -> Result<ProducedOutput, Error> {
    match decoder.datatype()? {
        Type::Map | Type::MapIndef => map_form(decoder),
        _ => array_form(decoder),
    }
}

fn array_form(decoder: &mut Decoder<'_>) -> Result<ProducedOutput, Error> {
    let mut fields = ItemCount::of_array(decoder)?;
    let mut made = ProducedOutput::default();
    fields.expect(decoder)?;
    made.address = owner(decoder)?;
    fields.expect(decoder)?;
    made.value = value(decoder)?;
    if fields.more(decoder)? {
        made.datum_hash = Some(cbor::fixed(decoder)?);
        if fields.more(decoder)? {
            return Err(unsupported());
        }
    }
    Ok(made)
}

fn map_form(decoder: &mut Decoder<'_>) -> Result<ProducedOutput, Error> {
    let mut fields = ItemCount::of_map(decoder)?;
    let mut made = ProducedOutput::default();
    while fields.more(decoder)? {
        match decoder.u64()? {
            0 => made.address = owner(decoder)?,
            1 => made.value = value(decoder)?,
            2 => (made.inline_datum, made.datum_hash) = datum(decoder)?,
            3 => made.reference_script = Some(script_hash(&cbor::embedded(decoder)?)?),
            _ => return Err(unsupported()),
        }
    }
    // A map, unlike an array, can lack the address.
    if made.address.is_empty() { Err(unsupported()) } else { Ok(made) }
}

fn owner(decoder: &mut Decoder<'_>) -> Result<String, Error> {
    let address = cbor::bytes(decoder)?;
    if address.is_empty() { Err(unsupported()) } else { Ok(address::text_of(&address)) }
}

fn value(decoder: &mut Decoder<'_>) -> Result<Value, Error> {
    let mut value = Value::default();
    if !matches!(decoder.datatype()?, Type::Array | Type::ArrayIndef) {
        value.lovelace = lovelace(decoder)?;
        return Ok(value);
    }
    let mut fields = ItemCount::of_array(decoder)?;
    fields.expect(decoder)?;
    value.lovelace = lovelace(decoder)?;
    fields.expect(decoder)?;
    let mut policies = ItemCount::of_map(decoder)?;
    while policies.more(decoder)? {
        let policy = hex::encode(cbor::fixed::<28>(decoder)?);
        let mut names = ItemCount::of_map(decoder)?;
        while names.more(decoder)? {
            let name = hex::encode(cbor::bytes(decoder)?);
            let quantity = decoder.u64()?;
            if quantity > 0 {
                value.assets.insert(format!("{policy}{name}"), quantity);
            }
        }
    }
    if fields.more(decoder)? { Err(unsupported()) } else { Ok(value) }
}

fn lovelace(decoder: &mut Decoder<'_>) -> Result<Lovelace, Error> {
    Lovelace::new(decoder.u64()?).ok_or_else(unsupported)
}

/// The inline datum, or `None` if the datum is not inline; and the datum's hash, or `None` if there is no datum.
type DatumParts = (Option<Vec<u8>>, Option<[u8; 32]>);

fn datum(decoder: &mut Decoder<'_>) -> Result<DatumParts, Error> {
    let mut fields = ItemCount::of_array(decoder)?;
    fields.expect(decoder)?;
    let kind = decoder.u64()?;
    fields.expect(decoder)?;
    let datum = match kind {
        0 => (None, Some(cbor::fixed(decoder)?)),
        1 => {
            let datum = cbor::embedded(decoder)?.into_owned();
            let hash = blake2b(&datum);
            (Some(datum), Some(hash))
        }
        _ => return Err(unsupported()),
    };
    if fields.more(decoder)? { Err(unsupported()) } else { Ok(datum) }
}

/// Computes the hash of a script in the form `[language, script]`. The hash covers the language's tag and the script's
/// bytes. The bytes of a native script are its CBOR (CDDL, `script_hash`).
fn script_hash(script: &[u8]) -> Result<ScriptHash, Error> {
    const NATIVE: u8 = 0;
    let decoder = &mut Decoder::new(script);
    let mut fields = ItemCount::of_array(decoder)?;
    fields.expect(decoder)?;
    let language = decoder.u8()?;
    fields.expect(decoder)?;
    let mut tagged = vec![language];
    match language {
        NATIVE => tagged.extend_from_slice(cbor::raw(decoder)?),
        _ => tagged.extend_from_slice(&cbor::bytes(decoder)?),
    }
    Ok(ScriptHash::new(blake2b(&tagged)))
}
