//! Transactions: read from bytes that somebody else made ([`SignedTx::parse`]), and built ([`build`]).

pub mod build;
mod decode;

pub use decode::{
    AddressKind, AuxiliaryData, CborError, DecodeError, MAX_CBOR_DEPTH, MAX_TX_BYTES, Output, OutputDatum, Part,
    SignedTx, VkeyWitness,
};
