//! Decodes signed transactions of the Conway era strictly, and keeps the bytes as received.
//!
//! ```text
//! bytes ──bounded──> well formed CBOR ──> [body, witnesses, isValid, auxiliary data]
//!                    (well_formed.rs)      body.rs  witnesses.rs       auxiliary.rs
//!                                            │ output.rs
//!                                            └ id = BLAKE2b-256 of exactly these bytes
//! ```
//!
//! The parts of a plain payment are decoded into types. All other parts are kept as bytes under their name
//! ([`TxPart`]), so that a caller can reject or inspect them. The decoder is stricter than the ledger's, but only where
//! wallets never write otherwise: over-long lengths, duplicate keys in any map, nesting deeper than [`MAX_CBOR_DEPTH`].
//!
//! Source: the Conway CDDL of the ledger (IntersectMBO/cardano-ledger, `eras/conway/impl/cddl-files/conway.cddl`).

mod auxiliary;
mod body;
mod cbor;
mod output;
mod well_formed;
mod witnesses;

use std::collections::BTreeMap;

pub use auxiliary::AuxiliaryData;
pub use cbor::{CborError, MAX_CBOR_DEPTH};
pub use output::{AddressKind, Output, OutputDatum};
pub use witnesses::VkeyWitness;

use crate::{
    hash::{KeyHash, TxHash, TxRef},
    money::Lovelace,
};

/// Maximum size of a transaction, in bytes: the ledger's `maxTxSize` since Alonzo, 16 KiB. A verifier must also check
/// the size against the current protocol parameter.
pub const MAX_TX_BYTES: usize = 16_384;

/// A signed transaction, decoded but not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTx {
    /// Transaction id: BLAKE2b-256 of the body's bytes as received.
    pub id: TxHash,
    /// Spent outputs in the order in which the body lists them, without duplicates; never empty.
    pub inputs: Vec<TxRef>,
    /// Created outputs, in order.
    pub outputs: Vec<Output>,
    /// Fee in lovelace.
    pub fee: Lovelace,
    /// First slot in which the transaction is no longer valid (TTL); `None` if its validity does not end.
    pub ttl: Option<u64>,
    /// First slot in which the transaction is valid; `None` if there is no such limit.
    pub validity_start: Option<u64>,
    /// Network id: 0 for every test network, 1 for mainnet; `None` if the body does not contain it.
    pub network_id: Option<u8>,
    /// Hashes of keys that must sign in addition to the keys of the inputs.
    pub required_signers: Vec<KeyHash>,
    /// Hash of the auxiliary data, as stated in the body; `None` if the body states none.
    pub auxiliary_data_hash: Option<[u8; 32]>,
    /// Auxiliary data: metadata and published scripts; `None` if there are none.
    pub auxiliary_data: Option<AuxiliaryData>,
    /// Signatures with their public keys, at most one per key. They have not been verified.
    pub vkey_witnesses: Vec<VkeyWitness>,
    /// `true` if the transaction says that its scripts will succeed.
    pub is_valid: bool,
    /// CBOR of every part of the transaction that a plain payment does not have.
    pub parts: BTreeMap<TxPart, Vec<u8>>,
    cbor: Vec<u8>,
}

/// A part of a transaction that a plain payment does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are those of the ledger's CDDL")]
pub enum TxPart {
    Certificates,
    Withdrawals,
    Mint,
    ScriptDataHash,
    CollateralInputs,
    CollateralReturn,
    TotalCollateral,
    ReferenceInputs,
    VotingProcedures,
    ProposalProcedures,
    TreasuryValue,
    Donation,
    NativeScripts,
    BootstrapWitnesses,
    PlutusV1Scripts,
    PlutusV2Scripts,
    PlutusV3Scripts,
    PlutusData,
    Redeemers,
}

/// Reason why bytes cannot be decoded as a transaction. The message says where the error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The transaction has more than [`MAX_TX_BYTES`] bytes.
    #[error("the transaction is larger than {MAX_TX_BYTES} bytes")]
    TooLarge,
    /// The bytes are not exactly one well-formed CBOR item.
    #[error("the transaction is not well formed CBOR: {0}")]
    Cbor(#[from] CborError),
    /// The CBOR item is not `[body, witnesses, isValid, auxiliary data]`.
    #[error(
        "not a transaction of the Conway era: expected an array of body, witness set, validity flag, auxiliary data"
    )]
    NotATransaction,
    /// This field or form exists only in eras before Conway.
    #[error("{0} no longer exists on the ledger since the Conway era")]
    OldEra(&'static str),
    /// The transaction contains a field that the ledger does not know.
    #[error("the {place} has an unknown field {key}")]
    UnknownField {
        /// The map that contains the field.
        place: &'static str,
        /// Key of the unknown field in the map.
        key: u64,
    },
    /// This mandatory field is missing.
    #[error("the transaction has no {0}")]
    Missing(&'static str),
    /// The ledger does not allow the type, length or value of this field.
    #[error("the {0} of the transaction is malformed")]
    Malformed(&'static str),
    /// This set contains the same element twice.
    #[error("the transaction has the same {0} twice")]
    Duplicate(&'static str),
    /// This set or map is empty although it must not be.
    #[error("the {0} of the transaction is empty")]
    Empty(&'static str),
}

impl SignedTx {
    /// Decodes a signed transaction.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_TX_BYTES {
            return Err(DecodeError::TooLarge);
        }
        well_formed::check(bytes)?;
        let mut reader = cbor::Reader::new(bytes);
        // The ledger computes the size, and so the fee, with a one-byte header for this array, so no other encoding of
        // the header is accepted.
        if reader.array().map_err(|_| DecodeError::NotATransaction)? != cbor::Items::exactly(4) {
            return Err(DecodeError::NotATransaction);
        }
        let body_bytes = reader.skip()?;
        let mut parts = BTreeMap::new();
        let body = body::read(body_bytes, &mut parts)?;
        let vkey_witnesses = witnesses::read(&mut reader, &mut parts)?;
        let is_valid = reader.bool().map_err(|_| DecodeError::NotATransaction)?;
        let auxiliary_data = auxiliary::read(&mut reader)?;
        Ok(Self {
            id: TxHash::of_body(body_bytes),
            inputs: body.inputs,
            outputs: body.outputs,
            fee: body.fee,
            ttl: body.ttl,
            validity_start: body.validity_start,
            network_id: body.network_id,
            required_signers: body.required_signers,
            auxiliary_data_hash: body.auxiliary_data_hash,
            auxiliary_data,
            vkey_witnesses,
            is_valid,
            parts,
            cbor: bytes.to_vec(),
        })
    }

    /// Returns the whole transaction, byte for byte as received.
    #[must_use]
    pub fn cbor(&self) -> &[u8] {
        &self.cbor
    }

    /// Returns the size in bytes that the ledger limits and charges for: the transaction's size without its one-byte
    /// validity flag. Source: cardano-ledger, Alonzo's `toCBORForSizeComputation`.
    #[must_use]
    pub fn ledger_size(&self) -> usize {
        self.cbor.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests;
