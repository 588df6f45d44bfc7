//! A reader of Plutus data that is strict about the shape and accepts every encoding that the ledger accepts.
//!
//! The party that spends an escrow chooses how the next datum is encoded, and the contract compares data, not bytes. If
//! the ledger accepted an encoding that this reader rejects, a continuing escrow would look as if it had ended.

use pallas_codec::minicbor::{Decoder, data::Type};

use super::{InvalidDatum, MAX_DATA_BYTES};

/// CBOR tag of constructor 0. Constructors 0 to 6 have the tags 121 to 127 (`plutus_data` in the ledger's CDDL); the
/// contract uses no others.
const FIRST_CONSTRUCTOR_TAG: u64 = 121;
const LAST_CONSTRUCTOR_TAG: u64 = 127;
/// CBOR tag of a constructor in the general form `[index, [fields]]`, which the ledger accepts for any index.
const GENERAL_CONSTRUCTOR_TAG: u64 = 102;
/// CBOR tag of a non-negative integer in the form of bytes (RFC 8949, section 3.4.3). The ledger accepts this form for
/// small integers too.
const POSITIVE_TAG: u64 = 2;
const NEGATIVE_TAG: u64 = 3;

pub(crate) struct DataReader<'b> {
    decoder: Decoder<'b>,
}

/// A constructor, list or map whose items are being read. `left` is the number of unread items, or `None` if the CBOR
/// encoding has indefinite length.
pub(crate) struct OpenItem {
    what: &'static str,
    left: Option<u64>,
    /// `true` for the fields of a constructor in the form `[index, [fields]]` if the outer array has indefinite length.
    /// The outer array must then be closed after the fields.
    enclosed: bool,
}

impl<'b> DataReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Result<Self, InvalidDatum> {
        if bytes.len() > MAX_DATA_BYTES {
            return Err(InvalidDatum::TooLong);
        }
        Ok(Self { decoder: Decoder::new(bytes) })
    }

    /// Opens a constructor and returns its index and its list of fields. `what` names the data in errors.
    pub(crate) fn constr(&mut self, what: &'static str) -> Result<(u64, OpenItem), InvalidDatum> {
        let shape = InvalidDatum::Shape(what);
        let tag = self.decoder.tag().map_err(|_| shape)?.as_u64();
        if tag == GENERAL_CONSTRUCTOR_TAG {
            return self.general_constr(what);
        }
        if !(FIRST_CONSTRUCTOR_TAG..=LAST_CONSTRUCTOR_TAG).contains(&tag) {
            return Err(shape);
        }
        let open = self.list(what)?;
        Ok((tag.saturating_sub(FIRST_CONSTRUCTOR_TAG), open))
    }

    fn general_constr(&mut self, what: &'static str) -> Result<(u64, OpenItem), InvalidDatum> {
        let length = self.decoder.array().map_err(|_| InvalidDatum::Shape(what))?;
        if length.is_some_and(|length| length != 2) {
            return Err(InvalidDatum::Shape(what));
        }
        let index = self.decoder.u64().map_err(|_| InvalidDatum::Shape(what))?;
        let fields = self.list(what)?;
        Ok((index, OpenItem { enclosed: length.is_none(), ..fields }))
    }

    /// Opens a constructor that must have this index. `what` names the data in errors.
    pub(crate) fn the_constr(&mut self, index: u64, what: &'static str) -> Result<OpenItem, InvalidDatum> {
        match self.constr(what)? {
            (found, open) if found == index => Ok(open),
            _ => Err(InvalidDatum::Shape(what)),
        }
    }

    pub(crate) fn list(&mut self, what: &'static str) -> Result<OpenItem, InvalidDatum> {
        let left = self.decoder.array().map_err(|_| InvalidDatum::Shape(what))?;
        Ok(OpenItem { what, left, enclosed: false })
    }

    pub(crate) fn map(&mut self, what: &'static str) -> Result<OpenItem, InvalidDatum> {
        let left = self.decoder.map().map_err(|_| InvalidDatum::Shape(what))?;
        Ok(OpenItem { what, left, enclosed: false })
    }

    /// Returns whether another item (in a map, another pair) follows. If so, counts that item as read.
    pub(crate) fn more(&mut self, open: &mut OpenItem) -> Result<bool, InvalidDatum> {
        match &mut open.left {
            Some(0) => Ok(false),
            Some(left) => {
                *left = left.saturating_sub(1);
                Ok(true)
            }
            None => match self.decoder.datatype() {
                Ok(Type::Break) => Ok(false),
                Ok(_) => Ok(true),
                Err(_) => Err(InvalidDatum::Shape(open.what)),
            },
        }
    }

    /// Moves to the next item. Returns an error if there is none.
    pub(crate) fn next(&mut self, open: &mut OpenItem) -> Result<&mut Self, InvalidDatum> {
        if self.more(open)? { Ok(self) } else { Err(InvalidDatum::Shape(open.what)) }
    }

    /// Closes a container. Returns an error if the container has unread items.
    pub(crate) fn close(&mut self, open: OpenItem) -> Result<(), InvalidDatum> {
        let OpenItem { what, left, enclosed } = open;
        match left {
            Some(0) => {}
            Some(_) => return Err(InvalidDatum::Shape(what)),
            None => self.breaks(what)?,
        }
        if enclosed { self.breaks(what) } else { Ok(()) }
    }

    fn breaks(&mut self, what: &'static str) -> Result<(), InvalidDatum> {
        match self.decoder.datatype() {
            Ok(Type::Break) => {
                self.decoder.set_position(self.decoder.position().saturating_add(1));
                Ok(())
            }
            _ => Err(InvalidDatum::Shape(what)),
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<Vec<u8>, InvalidDatum> {
        let shape = InvalidDatum::Shape(what);
        let mut all = Vec::new();
        for chunk in self.decoder.bytes_iter().map_err(|_| shape)? {
            all.extend_from_slice(chunk.map_err(|_| shape)?);
        }
        Ok(all)
    }

    pub(crate) fn fixed_bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], InvalidDatum> {
        self.bytes(what)?.try_into().map_err(|_| InvalidDatum::Shape(what))
    }

    /// Reads an integer from 0 to `max`.
    pub(crate) fn number(&mut self, what: &'static str, max: u64) -> Result<u64, InvalidDatum> {
        let number = self.natural(what)?;
        if number <= max { Ok(number) } else { Err(InvalidDatum::Range(what)) }
    }

    /// Reads a non-negative integer. Values above `max` are returned as `max`.
    pub(crate) fn number_up_to(&mut self, what: &'static str, max: u64) -> Result<u64, InvalidDatum> {
        Ok(self.natural(what)?.min(max))
    }

    /// Reads a non-negative integer. Values that do not fit into 64 bits are returned as `u64::MAX`.
    fn natural(&mut self, what: &'static str) -> Result<u64, InvalidDatum> {
        let shape = InvalidDatum::Shape(what);
        if self.decoder.datatype().map_err(|_| shape)? != Type::Tag {
            let number: i128 = self.decoder.int().map_err(|_| shape)?.into();
            return u64::try_from(number).map_err(|_| InvalidDatum::Range(what));
        }
        match self.decoder.tag().map_err(|_| shape)?.as_u64() {
            POSITIVE_TAG => {}
            NEGATIVE_TAG => return Err(InvalidDatum::Range(what)),
            _ => return Err(shape),
        }
        let bytes = self.bytes(what)?;
        let digits = bytes.iter().position(|byte| *byte != 0).and_then(|first| bytes.get(first..)).unwrap_or_default();
        let number = digits.iter().try_fold(0_u64, |number, digit| {
            number.checked_mul(256).map(|number| number.saturating_add(u64::from(*digit)))
        });
        Ok(number.unwrap_or(u64::MAX))
    }

    pub(crate) fn end(self) -> Result<(), InvalidDatum> {
        let all = self.decoder.input().len();
        if self.decoder.position() == all { Ok(()) } else { Err(InvalidDatum::Trailing) }
    }
}
