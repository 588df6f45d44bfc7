//! Decodes auxiliary data (metadata and published scripts) in its three forms: Shelley's map, Allegra's pair, and the
//! tagged map since Alonzo.

use super::{
    DecodeError,
    cbor::{CborError, ItemHead, Reader},
};
use crate::hash::blake2b;

/// Maximum number of bytes of a string in metadata (ledger, `validMetadatum`).
const MAX_METADATA_STRING: usize = 64;
const NAME: &str = "auxiliary data";

/// A transaction's auxiliary data: metadata and published scripts, outside its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuxiliaryData {
    /// CBOR of the auxiliary data, as received.
    pub cbor: Vec<u8>,
    /// `true` if the auxiliary data contain scripts, or a field for scripts, even an empty one.
    pub has_scripts: bool,
}

impl AuxiliaryData {
    /// Returns the BLAKE2b-256 hash of the auxiliary data's bytes as received. The transaction body must contain this
    /// hash.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        blake2b(&self.cbor)
    }

    /// Returns the CBOR of the metadata under a label, or `None` if the label is absent.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`], which cannot happen for auxiliary data of a decoded transaction.
    pub fn label(&self, label: u64) -> Result<Option<&[u8]>, DecodeError> {
        let mut reader = Reader::new(&self.cbor);
        find(&mut reader, label).map_err(|_| DecodeError::Malformed(NAME))
    }
}

/// Finds the metadata under a label, in any of the three forms.
fn find<'a>(reader: &mut Reader<'a>, label: u64) -> Result<Option<&'a [u8]>, CborError> {
    match reader.peek()? {
        ItemHead::Map(_) => {}
        ItemHead::Array(_) => {
            reader.array()?;
        }
        _ => {
            reader.tag(259)?;
            let mut fields = reader.map()?;
            loop {
                if !reader.more(&mut fields)? {
                    return Ok(None);
                }
                if reader.uint()? == 0 {
                    break;
                }
                reader.skip()?;
            }
        }
    }
    let mut labels = reader.map()?;
    while reader.more(&mut labels)? {
        let found = reader.uint()? == label;
        let value = reader.skip()?;
        if found {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<AuxiliaryData>, DecodeError> {
    if reader.peek()? == ItemHead::Null {
        reader.head()?;
        return Ok(None);
    }
    let (has_scripts, bytes) = reader
        .spanned(|reader| match reader.peek()? {
            ItemHead::Map(_) => labels(reader).map(|()| false),
            ItemHead::Array(_) => pair_form(reader),
            ItemHead::Tag(259) => tagged_form(reader),
            _ => Err(CborError::Type),
        })
        .map_err(|_| DecodeError::Malformed(NAME))?;
    Ok(Some(AuxiliaryData { cbor: bytes.to_vec(), has_scripts }))
}

/// Decodes the form `[metadata, [native scripts]]`. Returns whether it contains scripts.
fn pair_form(reader: &mut Reader<'_>) -> Result<bool, CborError> {
    let mut fields = reader.array()?;
    reader.expect(&mut fields)?;
    labels(reader)?;
    reader.expect(&mut fields)?;
    let mut scripts = reader.array()?;
    let mut has_scripts = false;
    while reader.more(&mut scripts)? {
        reader.skip()?;
        has_scripts = true;
    }
    reader.end(&mut fields)?;
    Ok(has_scripts)
}

/// Decodes the form `259({0: metadata, 1: native scripts, 2..4: Plutus scripts})`. Returns whether there is a field for
/// scripts.
fn tagged_form(reader: &mut Reader<'_>) -> Result<bool, CborError> {
    reader.tag(259)?;
    let mut fields = reader.map()?;
    let mut has_scripts = false;
    while reader.more(&mut fields)? {
        match reader.uint()? {
            0 => labels(reader)?,
            1..=4 => {
                reader.skip()?;
                has_scripts = true;
            }
            _ => return Err(CborError::Type),
        }
    }
    Ok(has_scripts)
}

fn labels(reader: &mut Reader<'_>) -> Result<(), CborError> {
    let mut labels = reader.map()?;
    while reader.more(&mut labels)? {
        reader.uint()?;
        metadatum(reader)?;
    }
    Ok(())
}

/// Checks one item of metadata, and recursively its parts. Recursion is safe here because the CBOR's nesting depth has
/// been checked.
fn metadatum(reader: &mut Reader<'_>) -> Result<(), CborError> {
    match reader.peek()? {
        ItemHead::Uint(_) | ItemHead::Nint(_) => reader.head().map(|_| ()),
        ItemHead::Bytes(_) => short(reader.bytes()?),
        ItemHead::Text(_) => short(reader.text()?),
        ItemHead::Array(_) => {
            let mut items = reader.array()?;
            while reader.more(&mut items)? {
                metadatum(reader)?;
            }
            Ok(())
        }
        ItemHead::Map(_) => {
            let mut items = reader.map()?;
            while reader.more(&mut items)? {
                metadatum(reader)?;
                metadatum(reader)?;
            }
            Ok(())
        }
        _ => Err(CborError::Type),
    }
}

const fn short(string: &[u8]) -> Result<(), CborError> {
    if string.len() <= MAX_METADATA_STRING { Ok(()) } else { Err(CborError::Type) }
}
