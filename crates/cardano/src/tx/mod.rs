//! Transactions: decodes those that others made ([`SignedTx::parse`]), builds our own ([`build`]), and decodes a
//! wallet's unspent outputs ([`read_unspent`]).

pub mod build;
mod decode;
mod utxos;

pub use decode::{
    AddressKind, AuxiliaryData, CborError, DecodeError, MAX_CBOR_DEPTH, MAX_TX_BYTES, Output, OutputDatum, SignedTx,
    TxPart, VkeyWitness,
};
pub use utxos::{
    MAX_TX_IN_BLOCK, MAX_UNSPENT_OUTPUT, NotAnUnspentOutput, TransactionUtxos, TransactionUtxosError, read_unspent,
    transaction_id,
};
