//! CBOR as wallets write it.

use ciborium::Value;

use super::{Cip8Error, CosePart};

/// Nesting that wallets need, with room: array, map, value. Bounds recursion on hostile input.
const MAX_DEPTH: usize = 8;

/// The CBOR item that these bytes are, if there are not too many.
pub(super) fn decode(bytes: &[u8], part: CosePart) -> Result<Value, Cip8Error> {
    if bytes.len() > part.max_bytes() { Err(Cip8Error::TooLarge(part)) } else { item(bytes, part) }
}

/// The one CBOR item that these bytes are, in the encoding that they must have: its own, read back.
///
/// Writing uses definite lengths and shortest integers, and keeps the order of map keys. So equality leaves each item
/// one encoding of its length and numbers, and none for bytes after the end.
pub(super) fn item(bytes: &[u8], part: CosePart) -> Result<Value, Cip8Error> {
    let mut rest = bytes;
    let value: Value =
        ciborium::de::from_reader_with_recursion_limit(&mut rest, MAX_DEPTH).map_err(|_| Cip8Error::Malformed(part))?;
    let mut written = Vec::with_capacity(bytes.len());
    ciborium::into_writer(&value, &mut written).map_err(|_| Cip8Error::Malformed(part))?;
    if rest.is_empty() && written == bytes { Ok(value) } else { Err(Cip8Error::NotCanonical(part)) }
}
