//! Reads CBOR in every encoding that the ledger accepts: containers and strings of definite or indefinite length,
//! integers of any width.

use std::borrow::Cow;

use pallas_codec::minicbor::{
    Decoder,
    data::{IanaTag, Type},
    decode,
};

pub(super) type Error = decode::Error;

/// Creates the error for an item of an unexpected kind.
pub(super) fn unsupported() -> Error {
    Error::message("an item of an unexpected kind")
}

/// Number of unread items of an array, or of unread pairs of a map; `None` if the length is indefinite.
pub(super) struct ItemCount(Option<u64>);

impl ItemCount {
    pub(super) fn of_array(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.array().map(Self)
    }

    pub(super) fn of_map(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.map().map(Self)
    }

    /// Returns whether another item (in a map, another pair) follows. Skips the break that ends a container of
    /// indefinite length.
    pub(super) fn more(&mut self, decoder: &mut Decoder<'_>) -> Result<bool, Error> {
        match &mut self.0 {
            Some(0) => Ok(false),
            Some(left) => {
                *left = left.saturating_sub(1);
                Ok(true)
            }
            None if decoder.datatype()? == Type::Break => decoder.skip().map(|()| false),
            None => Ok(true),
        }
    }

    /// Returns an error unless another item (in a map, another pair) follows.
    pub(super) fn expect(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Error> {
        if self.more(decoder)? { Ok(()) } else { Err(unsupported()) }
    }
}

/// Reads all items of an array or a set. A set is an array with or without CBOR tag 258.
pub(super) fn list<T>(
    decoder: &mut Decoder<'_>,
    mut item: impl FnMut(&mut Decoder<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    const SET: u64 = 258;
    if decoder.datatype()? == Type::Tag && decoder.tag()?.as_u64() != SET {
        return Err(unsupported());
    }
    let mut items = ItemCount::of_array(decoder)?;
    let mut all = Vec::new();
    while items.more(decoder)? {
        all.push(item(decoder)?);
    }
    Ok(all)
}

/// Reads a byte string, in one piece or in chunks.
pub(super) fn bytes<'b>(decoder: &mut Decoder<'b>) -> Result<Cow<'b, [u8]>, Error> {
    if decoder.datatype()? == Type::Bytes {
        return decoder.bytes().map(Cow::Borrowed);
    }
    let chunks: Vec<&[u8]> = decoder.bytes_iter()?.collect::<Result<_, _>>()?;
    Ok(Cow::Owned(chunks.concat()))
}

/// Reads a byte string that must have `N` bytes.
pub(super) fn fixed<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[u8; N], Error> {
    bytes(decoder)?.as_ref().try_into().map_err(|_| unsupported())
}

/// Returns the CBOR that is embedded in a byte string (tag 24).
pub(super) fn embedded<'b>(decoder: &mut Decoder<'b>) -> Result<Cow<'b, [u8]>, Error> {
    if decoder.tag()? == IanaTag::Cbor.tag() { bytes(decoder) } else { Err(unsupported()) }
}

/// Reads one item of any kind and returns its bytes.
pub(super) fn raw<'b>(decoder: &mut Decoder<'b>) -> Result<&'b [u8], Error> {
    let start = decoder.position();
    decoder.skip()?;
    decoder.input().get(start..decoder.position()).ok_or_else(unsupported)
}
