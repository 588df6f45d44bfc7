//! Transactions: read from foreign bytes ([`SignedTx::parse`]), and built ([`build`]); and what a wallet says
//! that it holds ([`read_unspent`]).

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
