//! Reading a signed transaction of the Conway era, strictly, keeping the bytes as they came.
//!
//! ```text
//! bytes ──bounded──> well formed CBOR ──> [body, witnesses, isValid, auxiliary data]
//!                    (well_formed.rs)      body.rs  witnesses.rs       auxiliary.rs
//!                                            │ output.rs
//!                                            └ id = BLAKE2b-256 of exactly these bytes
//! ```
//!
//! What a plain payment consists of is decoded into types. What else may be in a transaction is kept as bytes under its
//! name ([`TxPart`]): a caller can refuse, or look into, what it did not expect. The reader is stricter than the
//! ledger's, but only where honest wallets write otherwise: lengths longer than needed, duplicate keys in any map,
//! nesting over [`MAX_CBOR_DEPTH`].
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

/// Bytes of the largest transaction that is read: the ledger's `maxTxSize` since Alonzo, 16 KiB. Verification also
/// compares with the live parameter.
pub const MAX_TX_BYTES: usize = 16_384;

/// A signed transaction as received. Nothing about it has been judged yet but its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTx {
    /// BLAKE2b-256 of the body's bytes as received: what the ledger will call this transaction.
    pub id: TxHash,
    /// What it spends, in its order; never twice the same, never empty.
    pub inputs: Vec<TxRef>,
    /// What it makes, in its order.
    pub outputs: Vec<Output>,
    /// The fee that it offers.
    pub fee: Lovelace,
    /// The first slot in which it is no longer valid.
    pub ttl: Option<u64>,
    /// The first slot in which it is valid.
    pub validity_start: Option<u64>,
    /// The network that it names: 0 for every test network, 1 for mainnet.
    pub network_id: Option<u8>,
    /// Keys that must sign beyond the owners of the inputs.
    pub required_signers: Vec<KeyHash>,
    /// What the body says that the auxiliary data hashes to.
    pub auxiliary_data_hash: Option<[u8; 32]>,
    /// The auxiliary data: metadata, and scripts to publish.
    pub auxiliary_data: Option<AuxiliaryData>,
    /// The signatures, at most one for a key. Not verified yet.
    pub vkey_witnesses: Vec<VkeyWitness>,
    /// The flag that says whether its scripts are expected to succeed.
    pub is_valid: bool,
    /// Everything else that is in it: the CBOR of each such part.
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

/// Why bytes are not a transaction that we read. The message says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// More than [`MAX_TX_BYTES`].
    #[error("the transaction is larger than {MAX_TX_BYTES} bytes")]
    TooLarge,
    /// Not one well formed CBOR item.
    #[error("the transaction is not well formed CBOR: {0}")]
    Cbor(#[from] CborError),
    /// Not `[body, witnesses, isValid, auxiliary data]`.
    #[error(
        "not a transaction of the Conway era: expected an array of body, witness set, validity flag, auxiliary data"
    )]
    NotATransaction,
    /// Only eras before Conway had this.
    #[error("{0} no longer exists on the ledger since the Conway era")]
    OldEra(&'static str),
    /// A field that the ledger does not know.
    #[error("the {place} has an unknown field {key}")]
    UnknownField {
        /// Where.
        place: &'static str,
        /// Its key.
        key: u64,
    },
    /// A field that must be there.
    #[error("the transaction has no {0}")]
    Missing(&'static str),
    /// A field of another type, length or range than the ledger's.
    #[error("the {0} of the transaction is malformed")]
    Malformed(&'static str),
    /// One thing twice in a set.
    #[error("the transaction has the same {0} twice")]
    Duplicate(&'static str),
    /// A set or map that must not be empty.
    #[error("the {0} of the transaction is empty")]
    Empty(&'static str),
}

impl SignedTx {
    /// Reads a signed transaction.
    ///
    /// # Errors
    /// Bytes that are too many, not well formed, or not a Conway transaction, each with its reason.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_TX_BYTES {
            return Err(DecodeError::TooLarge);
        }
        well_formed::check(bytes)?;
        let mut reader = cbor::Reader::new(bytes);
        // The ledger's size, and so its fee, counts on the one byte of this array's head: no other form of it is read.
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

    /// The whole transaction, byte for byte as received.
    #[must_use]
    pub fn cbor(&self) -> &[u8] {
        &self.cbor
    }

    /// The size that the ledger bounds and charges for: the transaction without its validity flag, one byte. Source:
    /// cardano-ledger, `toCBORForSizeComputation` of Alonzo's `Tx`, kept so that sizes did not change from Mary.
    #[must_use]
    pub fn ledger_size(&self) -> usize {
        self.cbor.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests;
