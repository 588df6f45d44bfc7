//! Reading CBOR in whichever form it comes: containers and byte strings of known or unknown length, numbers in any width.

use std::borrow::Cow;

use pallas_codec::minicbor::{
    Decoder,
    data::{IanaTag, Type},
    decode,
};

pub(super) type Error = decode::Error;

/// An item of another kind than expected.
pub(super) fn unsupported() -> Error {
    Error::message("an item of an unexpected kind")
}

/// What is left of an array, or of a map (counted in pairs); `None` until a break.
pub(super) struct ItemCount(Option<u64>);

impl ItemCount {
    pub(super) fn of_array(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.array().map(Self)
    }

    pub(super) fn of_map(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.map().map(Self)
    }

    /// Whether another item (or pair) follows; passes over the break.
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

    /// Another item (or pair) must follow.
    pub(super) fn expect(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Error> {
        if self.more(decoder)? { Ok(()) } else { Err(unsupported()) }
    }
}

/// All items of an array, or of what the ledger calls a set: an array with or without tag 258.
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

/// A byte string, in one piece or in chunks.
pub(super) fn bytes<'b>(decoder: &mut Decoder<'b>) -> Result<Cow<'b, [u8]>, Error> {
    if decoder.datatype()? == Type::Bytes {
        return decoder.bytes().map(Cow::Borrowed);
    }
    let chunks: Vec<&[u8]> = decoder.bytes_iter()?.collect::<Result<_, _>>()?;
    Ok(Cow::Owned(chunks.concat()))
}

/// A byte string of a known length.
pub(super) fn fixed<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[u8; N], Error> {
    bytes(decoder)?.as_ref().try_into().map_err(|_| unsupported())
}

/// CBOR in a byte string (tag 24): its bytes.
pub(super) fn embedded<'b>(decoder: &mut Decoder<'b>) -> Result<Cow<'b, [u8]>, Error> {
    if decoder.tag()? == IanaTag::Cbor.tag() { bytes(decoder) } else { Err(unsupported()) }
}

/// One item's bytes, whatever it is.
pub(super) fn raw<'b>(decoder: &mut Decoder<'b>) -> Result<&'b [u8], Error> {
    let start = decoder.position();
    decoder.skip()?;
    decoder.input().get(start..decoder.position()).ok_or_else(unsupported)
}
