//! Encodes outputs in the ledger's form (Babbage's map) and computes their minimum lovelace.

use std::convert::Infallible;

use pallas_codec::{
    minicbor::{self, Encode, Encoder, data::IanaTag, encode},
    utils::KeepRaw,
};
use pallas_primitives::conway::PlutusData;

use super::{bundle::Bundle, error::BuildError, plan::NewOutput};
use crate::{
    address::PaymentAddress,
    hash::{ScriptHash, blake2b},
    money::Lovelace,
    params::ProtocolParameters,
};

/// Byte that precedes a Plutus V3 script when the ledger hashes it (Conway, `hashScript`).
const PLUTUS_V3_TAG: u8 = 3;
/// Key of the address in an output's CBOR map; the keys of the other fields follow (Babbage's CDDL,
/// `post_alonzo_transaction_output`).
const ADDRESS: u8 = 0;
const VALUE: u8 = 1;
const DATUM: u8 = 2;
const SCRIPT: u8 = 3;
/// Number that marks an inline datum, as opposed to a datum hash (Babbage's CDDL, `datum_option`).
const INLINE: u8 = 1;

/// CBOR of an output, in canonical order (CIP-21).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output(Vec<u8>);

impl Output {
    /// Encodes an output that holds this value. The bytes of its datum are not changed.
    pub(super) fn new(output: &NewOutput, value: &Bundle) -> Result<Self, BuildError> {
        let datum = output.inline_datum.as_deref();
        if let Some(datum) = datum {
            read_data(datum)?;
        }
        Self::written(&output.to, value, datum, output.script.as_deref())
    }

    /// Encodes an output without datum or script.
    pub(super) fn plain(to: &PaymentAddress, value: &Bundle) -> Result<Self, BuildError> {
        Self::written(to, value, None, None)
    }

    fn written(
        to: &PaymentAddress,
        value: &Bundle,
        datum: Option<&[u8]>,
        script: Option<&[u8]>,
    ) -> Result<Self, BuildError> {
        let value = value.to_cbor()?;
        let fields = [datum, script].iter().flatten().fold(2_u64, |fields, _| fields.saturating_add(1));
        let mut encoder = Encoder::new(Vec::new());
        let mut write = || {
            encoder.map(fields)?.u8(ADDRESS)?.bytes(&to.to_bytes())?.u8(VALUE)?.writer_mut().extend_from_slice(&value);
            if let Some(datum) = datum {
                encoder.u8(DATUM)?.array(2)?.u8(INLINE)?.tag(IanaTag::Cbor)?.bytes(datum)?;
            }
            if let Some(code) = script {
                let mut script = Encoder::new(Vec::new());
                script.array(2)?.u8(PLUTUS_V3_TAG)?.bytes(code)?;
                encoder.u8(SCRIPT)?.tag(IanaTag::Cbor)?.bytes(script.writer())?;
            }
            Ok::<_, encode::Error<Infallible>>(())
        };
        write().map_err(|_| BuildError::OutOfRange)?;
        Ok(Self(encoder.into_writer()))
    }

    const fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl<C> Encode<C> for Output {
    fn encode<W: encode::Write>(&self, encoder: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        encoder.writer_mut().write_all(&self.0).map_err(encode::Error::write)
    }
}

/// Checks that CBOR is exactly one item of Plutus data, and keeps its bytes unchanged.
pub(super) fn read_data(cbor: &[u8]) -> Result<KeepRaw<'_, PlutusData>, BuildError> {
    let data: KeepRaw<'_, PlutusData> =
        minicbor::decode(cbor).map_err(|_| BuildError::Malformed { what: "the CBOR of a datum or redeemer" })?;
    // Trailing bytes would become part of the transaction.
    if data.raw_cbor().len() != cbor.len() {
        return Err(BuildError::Malformed { what: "the CBOR of a datum or redeemer" });
    }
    Ok(data)
}

pub(super) fn cbor<T: minicbor::Encode<()>>(value: &T) -> Result<Vec<u8>, BuildError> {
    minicbor::to_vec(value).map_err(|_| BuildError::OutOfRange)
}

/// Returns the minimum lovelace of an output, given a function that encodes the output with a certain amount.
///
/// The minimum depends on the output's size, which in turn depends on the amount in it. The loop converges because more
/// lovelace never takes fewer bytes.
pub(super) fn min_lovelace(
    params: &ProtocolParameters,
    encode: impl Fn(u64) -> Result<Output, BuildError>,
) -> Result<u64, BuildError> {
    let mut lovelace = 0;
    loop {
        let bytes = encode(lovelace)?.bytes();
        let least = params.min_utxo(bytes).ok_or(BuildError::OutOfRange)?.get();
        if least <= lovelace {
            return Ok(lovelace);
        }
        lovelace = least;
    }
}

/// Returns the minimum lovelace of an output with the assets in this value, without datum and script.
pub(super) fn min_lovelace_plain(
    to: &PaymentAddress,
    assets: &Bundle,
    params: &ProtocolParameters,
) -> Result<u64, BuildError> {
    min_lovelace(params, |lovelace| Output::plain(to, &Bundle { lovelace, ..assets.clone() }))
}

impl NewOutput {
    /// Returns the minimum lovelace that the ledger requires of this output. The output's current lovelace does not
    /// affect the result.
    ///
    /// # Errors
    /// [`BuildError::Malformed`] if the datum or an asset is malformed; [`BuildError::OutOfRange`] if the amount is out
    /// of range.
    pub fn min_lovelace(&self, params: &ProtocolParameters) -> Result<Lovelace, BuildError> {
        let value = Bundle::read(&self.value)?;
        let least = min_lovelace(params, |lovelace| Output::new(self, &Bundle { lovelace, ..value.clone() }))?;
        Lovelace::new(least).ok_or(BuildError::OutOfRange)
    }
}

/// Computes the hash of a Plutus V3 script from its bytes (`compiledCode` in a blueprint).
pub(super) fn script_hash(code: &[u8]) -> ScriptHash {
    let mut tagged = vec![PLUTUS_V3_TAG];
    tagged.extend_from_slice(code);
    ScriptHash::new(blake2b(&tagged))
}
