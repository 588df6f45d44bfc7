//! Outputs in the ledger's form (Babbage's map), and the lovelace that their size asks for.

use pallas_codec::{
    minicbor,
    utils::{CborWrap, KeepRaw},
};
use pallas_primitives::{
    Bytes, PlutusScript,
    conway::{DatumOption, PlutusData, PostAlonzoTransactionOutput, ScriptRef, TransactionOutput},
};

use super::{bundle::Bundle, error::BuildError, plan::NewOutput};
use crate::{
    address::PaymentAddress,
    hash::{ScriptHash, blake2b},
    money::Lovelace,
    params::ProtocolParameters,
};

/// What the ledger puts before a Plutus V3 script when it hashes it (Conway, `hashScript`).
const PLUTUS_V3_TAG: u8 = 3;

/// The output as the ledger has it. Datum bytes stay as they are.
pub(super) fn encode_new<'a>(output: &'a NewOutput, value: &Bundle) -> Result<TransactionOutput<'a>, BuildError> {
    let datum = output.inline_datum.as_deref().map(read_data).transpose()?;
    let script = output.script.as_ref().map(|code| ScriptRef::PlutusV3Script(PlutusScript(Bytes::from(code.clone()))));
    Ok(TransactionOutput::PostAlonzo(KeepRaw::from(PostAlonzoTransactionOutput {
        address: Bytes::from(output.to.to_bytes()),
        value: value.to_ledger()?,
        datum_option: datum.map(|data| KeepRaw::from(DatumOption::Data(CborWrap(data)))),
        script_ref: script.map(CborWrap),
    })))
}

/// An output without datum or script.
pub(super) fn encode_plain(to: &PaymentAddress, value: &Bundle) -> Result<TransactionOutput<'static>, BuildError> {
    Ok(TransactionOutput::PostAlonzo(KeepRaw::from(PostAlonzoTransactionOutput {
        address: Bytes::from(to.to_bytes()),
        value: value.to_ledger()?,
        datum_option: None,
        script_ref: None,
    })))
}

/// The whole input as one item of Plutus data, its bytes kept.
pub(super) fn read_data(cbor: &[u8]) -> Result<KeepRaw<'_, PlutusData>, BuildError> {
    let data: KeepRaw<'_, PlutusData> =
        minicbor::decode(cbor).map_err(|_| BuildError::Malformed { what: "the CBOR of a datum or redeemer" })?;
    // Bytes after the first item would become part of the transaction.
    if data.raw_cbor().len() != cbor.len() {
        return Err(BuildError::Malformed { what: "the CBOR of a datum or redeemer" });
    }
    Ok(data)
}

/// CBOR of a value that cannot fail to be written to memory.
pub(super) fn cbor<T: minicbor::Encode<()>>(value: &T) -> Result<Vec<u8>, BuildError> {
    minicbor::to_vec(value).map_err(|_| BuildError::OutOfRange)
}

/// The least lovelace for the output that `encode` writes when it holds the given lovelace.
///
/// The amount is part of the size that it depends on; it settles because more lovelace never takes fewer bytes.
pub(super) fn min_lovelace<'a>(
    params: &ProtocolParameters,
    encode: impl Fn(u64) -> Result<TransactionOutput<'a>, BuildError>,
) -> Result<u64, BuildError> {
    let mut lovelace = 0;
    loop {
        let bytes = cbor(&encode(lovelace)?)?.len();
        let least = params.min_utxo(bytes).ok_or(BuildError::OutOfRange)?.get();
        if least <= lovelace {
            return Ok(lovelace);
        }
        lovelace = least;
    }
}

/// The least lovelace for a plain output with these assets.
pub(super) fn min_lovelace_plain(
    to: &PaymentAddress,
    assets: &Bundle,
    params: &ProtocolParameters,
) -> Result<u64, BuildError> {
    min_lovelace(params, |lovelace| encode_plain(to, &Bundle { lovelace, ..assets.clone() }))
}

/// The least lovelace for an output of a plan, whatever it holds now.
pub(super) fn min_lovelace_of(output: &NewOutput, params: &ProtocolParameters) -> Result<Lovelace, BuildError> {
    let value = Bundle::read(&output.value)?;
    let least = min_lovelace(params, |lovelace| encode_new(output, &Bundle { lovelace, ..value.clone() }))?;
    Lovelace::new(least).ok_or(BuildError::OutOfRange)
}

/// The hash of a Plutus V3 script, given what a blueprint calls its `compiledCode`.
pub(super) fn script_hash(code: &[u8]) -> ScriptHash {
    let mut tagged = vec![PLUTUS_V3_TAG];
    tagged.extend_from_slice(code);
    ScriptHash::new(blake2b(&tagged))
}
