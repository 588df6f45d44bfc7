//! Decodes CBOR in the encoding that wallets use.

use ciborium::Value;

use super::{Cip8Error, CosePart};

/// Maximum nesting depth of the CBOR. Wallets need three levels; the limit bounds recursion on hostile input.
const MAX_DEPTH: usize = 8;

/// Decodes one CBOR item, after checking that the bytes do not exceed the maximum length for `part`.
pub(super) fn decode(bytes: &[u8], part: CosePart) -> Result<Value, Cip8Error> {
    if bytes.len() > part.max_bytes() { Err(Cip8Error::TooLarge(part)) } else { item(bytes, part) }
}

/// Decodes bytes that consist of exactly one CBOR item in its canonical encoding.
///
/// The value is encoded again and compared with the input. The encoder writes definite lengths and shortest integers
/// and keeps the order of map keys, so only that encoding is accepted, without trailing bytes.
pub(super) fn item(bytes: &[u8], part: CosePart) -> Result<Value, Cip8Error> {
    let mut rest = bytes;
    let value: Value =
        ciborium::de::from_reader_with_recursion_limit(&mut rest, MAX_DEPTH).map_err(|_| Cip8Error::Malformed(part))?;
    let mut written = Vec::with_capacity(bytes.len());
    ciborium::into_writer(&value, &mut written).map_err(|_| Cip8Error::Malformed(part))?;
    if rest.is_empty() && written == bytes { Ok(value) } else { Err(Cip8Error::NotCanonical(part)) }
}
