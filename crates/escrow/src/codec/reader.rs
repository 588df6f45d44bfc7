//! A strict reader of Plutus data, in definite and in indefinite encoding alike.

use pallas_codec::minicbor::{Decoder, data::Type};

use super::{MAX_DATA_BYTES, NotOurs};

/// Constructors 0 to 6 have the tags 121 to 127 (CDDL of the ledger, `plutus_data`). The contract has no others, and
/// nobody writes these in the general form (tag 102), so that form is refused.
const FIRST_CONSTRUCTOR_TAG: u64 = 121;
const LAST_CONSTRUCTOR_TAG: u64 = 127;

pub(crate) struct Reader<'b> {
    decoder: Decoder<'b>,
}

/// An opened constructor, list or map: how many items are still to come, where the encoding says so.
pub(crate) struct Open {
    what: &'static str,
    left: Option<u64>,
}

impl<'b> Reader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Result<Self, NotOurs> {
        if bytes.len() > MAX_DATA_BYTES {
            return Err(NotOurs::TooLong);
        }
        Ok(Self { decoder: Decoder::new(bytes) })
    }

    /// The beginning of a constructor: which one, and its fields.
    pub(crate) fn constr(&mut self, what: &'static str) -> Result<(u64, Open), NotOurs> {
        let shape = NotOurs::Shape(what);
        let tag = self.decoder.tag().map_err(|_| shape)?.as_u64();
        if !(FIRST_CONSTRUCTOR_TAG..=LAST_CONSTRUCTOR_TAG).contains(&tag) {
            return Err(shape);
        }
        let open = self.list(what)?;
        Ok((tag.saturating_sub(FIRST_CONSTRUCTOR_TAG), open))
    }

    /// The beginning of a constructor that must be this one.
    pub(crate) fn the_constr(&mut self, index: u64, what: &'static str) -> Result<Open, NotOurs> {
        match self.constr(what)? {
            (found, open) if found == index => Ok(open),
            _ => Err(NotOurs::Shape(what)),
        }
    }

    pub(crate) fn list(&mut self, what: &'static str) -> Result<Open, NotOurs> {
        let left = self.decoder.array().map_err(|_| NotOurs::Shape(what))?;
        Ok(Open { what, left })
    }

    pub(crate) fn map(&mut self, what: &'static str) -> Result<Open, NotOurs> {
        let left = self.decoder.map().map_err(|_| NotOurs::Shape(what))?;
        Ok(Open { what, left })
    }

    /// Whether another item (or pair) follows; counts it.
    pub(crate) fn more(&mut self, open: &mut Open) -> Result<bool, NotOurs> {
        match &mut open.left {
            Some(0) => Ok(false),
            Some(left) => {
                *left = left.saturating_sub(1);
                Ok(true)
            }
            None => match self.decoder.datatype() {
                Ok(Type::Break) => Ok(false),
                Ok(_) => Ok(true),
                Err(_) => Err(NotOurs::Shape(open.what)),
            },
        }
    }

    /// The next item must be there.
    pub(crate) fn next(&mut self, open: &mut Open) -> Result<&mut Self, NotOurs> {
        if self.more(open)? { Ok(self) } else { Err(NotOurs::Shape(open.what)) }
    }

    /// No item may follow.
    pub(crate) fn close(&mut self, open: Open) -> Result<(), NotOurs> {
        let Open { what, left } = open;
        match left {
            Some(0) => Ok(()),
            Some(_) => Err(NotOurs::Shape(what)),
            None => match self.decoder.datatype() {
                Ok(Type::Break) => {
                    self.decoder.set_position(self.decoder.position().saturating_add(1));
                    Ok(())
                }
                _ => Err(NotOurs::Shape(what)),
            },
        }
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<Vec<u8>, NotOurs> {
        let shape = NotOurs::Shape(what);
        let mut all = Vec::new();
        for chunk in self.decoder.bytes_iter().map_err(|_| shape)? {
            all.extend_from_slice(chunk.map_err(|_| shape)?);
        }
        Ok(all)
    }

    pub(crate) fn fixed_bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], NotOurs> {
        self.bytes(what)?.try_into().map_err(|_| NotOurs::Shape(what))
    }

    /// A number from 0 to `max`.
    pub(crate) fn number(&mut self, what: &'static str, max: u64) -> Result<u64, NotOurs> {
        let number: i128 = self.decoder.int().map_err(|_| NotOurs::Shape(what))?.into();
        match u64::try_from(number) {
            Ok(number) if number <= max => Ok(number),
            _ => Err(NotOurs::Range(what)),
        }
    }

    pub(crate) fn end(self) -> Result<(), NotOurs> {
        let all = self.decoder.input().len();
        if self.decoder.position() == all { Ok(()) } else { Err(NotOurs::Trailing) }
    }
}
