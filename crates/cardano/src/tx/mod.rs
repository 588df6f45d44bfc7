//! Transactions: read from bytes that somebody else made ([`SignedTx::parse`]), and built ([`build`]).

pub mod build;
mod decode;
mod effects;

pub use decode::{
    AddressKind, AuxiliaryData, CborError, DecodeError, MAX_CBOR_DEPTH, MAX_TX_BYTES, Output, OutputDatum, Part,
    SignedTx, VkeyWitness,
};
pub use effects::{EffectsError, MAX_TX_IN_BLOCK, TransactionEffects, transaction_id};
