//! Transactions: read from bytes that somebody else made ([`SignedTx::parse`]), and built ([`build`]).

pub mod build;
mod decode;
mod utxos;

pub use decode::{
    AddressKind, AuxiliaryData, CborError, DecodeError, MAX_CBOR_DEPTH, MAX_TX_BYTES, Output, OutputDatum, SignedTx,
    TxPart, VkeyWitness,
};
pub use utxos::{MAX_TX_IN_BLOCK, TransactionUtxos, TransactionUtxosError, transaction_id};
