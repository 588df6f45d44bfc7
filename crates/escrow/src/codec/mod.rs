//! Reads and writes Plutus data in the ledger's encoding.
//!
//! The reader follows the shape of the expected type and builds no tree, so deeply nested or long input from outside
//! costs nothing. Input of any other shape yields [`InvalidDatum`], which is an expected answer rather than a failure,
//! because anyone may send an output with any datum to a script's address.

mod reader;
mod writer;

pub(crate) use reader::{DataReader, OpenItem};
pub(crate) use writer::{bytes, constr, integer, list, map, to_cbor};

/// Maximum length of a datum or redeemer that is read, in bytes: the size limit of a whole transaction (`maxTxSize`).
pub const MAX_DATA_BYTES: usize = 16_384;

/// Reason why bytes are not a datum or redeemer of this contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatum {
    /// The data has more bytes than a whole transaction may have.
    #[error("longer than any transaction")]
    TooLong,
    /// The bytes are not Plutus data, or a constructor, number of fields or kind of data differs from the contract's
    /// type.
    #[error("{0} is not of the contract's shape")]
    Shape(&'static str),
    /// The data contains a number that no valid escrow contains: negative, a time past 2^53 milliseconds, or an amount
    /// above the maximum supply of ADA.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// Further bytes follow the data.
    #[error("followed by other bytes")]
    Trailing,
}
