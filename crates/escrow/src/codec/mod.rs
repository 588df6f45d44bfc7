//! Plutus data as the ledger writes it.
//!
//! Reading follows the expected shape and nothing else. No tree is built from outside bytes, so their nesting and
//! length cost nothing. What has another shape is [`InvalidDatum`], an answer and not a failure: anyone may send
//! anything to a script's address.

mod reader;
mod writer;

pub(crate) use reader::{DataReader, OpenItem};
pub(crate) use writer::{bytes, constr, integer, list, map, to_cbor};

/// The most bytes of a datum or redeemer that are looked at: a whole transaction's (Conway, `maxTxSize`).
pub const MAX_DATA_BYTES: usize = 16_384;

/// Why some Plutus data is not of this contract's types. It never concerns anyone else's escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatum {
    /// More bytes than a transaction can hold.
    #[error("longer than any transaction")]
    TooLong,
    /// Another constructor, another number of fields, another kind of data, or no Plutus data at all.
    #[error("{0} is not of the contract's shape")]
    Shape(&'static str),
    /// A number that no honest escrow holds: negative, or past the year 287,396 (2^53 ms), or more than all ADA.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// More bytes after the data.
    #[error("followed by other bytes")]
    Trailing,
}
