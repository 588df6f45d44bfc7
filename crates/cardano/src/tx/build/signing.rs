//! Unsigned and signed transactions.

use std::collections::BTreeSet;

use pallas_codec::utils::{KeepRaw, NonEmptySet};
use pallas_primitives::{
    Bytes,
    conway::{Redeemers, VKeyWitness, WitnessSet},
};

use super::{error::BuildError, output::cbor};
use crate::{
    chain::Utxo,
    hash::{KeyHash, TxHash, TxRef},
    keys::SigningKey,
    money::Lovelace,
};

/// CBOR header of an array of four items, which a transaction is.
const ARRAY_OF_FOUR: u8 = 0x84;
/// The flag `is_valid`, always true: transactions whose scripts fail are never submitted.
const IS_VALID: u8 = 0xf5;
/// CBOR null, for no auxiliary data.
const NO_AUXILIARY_DATA: u8 = 0xf6;

/// A balanced transaction without signatures. Its id is final, because only witnesses are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsignedTx {
    pub(super) body: Vec<u8>,
    pub(super) redeemers: Option<Redeemers>,
    pub(super) auxiliary_data: Option<Vec<u8>>,
    pub(super) keys: BTreeSet<KeyHash>,
    pub(super) facts: TxFacts,
}

/// Facts about a transaction, for callers that record it, reserve its inputs or spend its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxFacts {
    /// Transaction id.
    pub tx_id: TxHash,
    /// Fee.
    pub fee: Lovelace,
    /// Spent outputs, in the ledger's order.
    pub inputs: Vec<TxRef>,
    /// Collateral inputs. Reserve them together with `inputs`.
    pub collateral: Vec<TxRef>,
    /// Created outputs, in order.
    pub outputs: Vec<Utxo>,
    /// Created outputs that the wallet can spend next.
    pub change: Vec<Utxo>,
    /// First slot in which the transaction is no longer valid.
    pub valid_until_slot: u64,
}

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltTx {
    /// Facts about the transaction.
    pub facts: TxFacts,
    /// CBOR of the whole transaction, to be submitted unchanged.
    pub cbor: Vec<u8>,
}

impl UnsignedTx {
    /// Returns facts about the transaction.
    #[must_use]
    pub const fn facts(&self) -> &TxFacts {
        &self.facts
    }

    /// Returns the keys that must sign.
    #[must_use]
    pub const fn keys(&self) -> &BTreeSet<KeyHash> {
        &self.keys
    }

    /// Returns the index of an input among all inputs, by which an evaluation names redeemers (`spend:<index>`).
    #[must_use]
    pub fn input_index(&self, reference: &TxRef) -> Option<usize> {
        self.facts.inputs.iter().position(|input| input == reference)
    }

    /// Encodes the transaction without signatures, for evaluation.
    ///
    /// # Errors
    /// None for a balanced transaction.
    pub fn unsigned_cbor(&self) -> Result<Vec<u8>, BuildError> {
        encode(&self.body, self.redeemers.clone(), Vec::new(), self.auxiliary_data.as_deref())
    }

    /// Signs the transaction. Signers whose keys are not needed are ignored.
    ///
    /// # Errors
    /// [`BuildError::SignerMissing`] for the first required key that is missing.
    pub fn sign(self, signers: &[&SigningKey]) -> Result<BuiltTx, BuildError> {
        let mut witnesses = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let signer = signers.iter().find(|signer| signer.key_hash() == *key);
            let signer = signer.ok_or(BuildError::SignerMissing(*key))?;
            witnesses.push((signer.public_key(), signer.sign(self.facts.tx_id.as_bytes())));
        }
        let cbor = encode(&self.body, self.redeemers, witnesses, self.auxiliary_data.as_deref())?;
        Ok(BuiltTx { facts: self.facts, cbor })
    }
}

/// Encodes a transaction from its body, redeemers, signatures and auxiliary data.
pub(super) fn encode(
    body: &[u8],
    redeemers: Option<Redeemers>,
    signatures: Vec<([u8; 32], [u8; 64])>,
    auxiliary_data: Option<&[u8]>,
) -> Result<Vec<u8>, BuildError> {
    let signature = |(key, signature): ([u8; 32], [u8; 64])| VKeyWitness {
        vkey: Bytes::from(key.to_vec()),
        signature: Bytes::from(signature.to_vec()),
    };
    let witnesses = WitnessSet {
        vkeywitness: NonEmptySet::from_vec(signatures.into_iter().map(signature).collect()),
        native_script: None,
        bootstrap_witness: None,
        plutus_v1_script: None,
        plutus_data: None,
        redeemer: redeemers.map(KeepRaw::from),
        plutus_v2_script: None,
        plutus_v3_script: None,
    };
    let mut tx = vec![ARRAY_OF_FOUR];
    tx.extend_from_slice(body);
    tx.append(&mut cbor(&witnesses)?);
    tx.push(IS_VALID);
    tx.extend_from_slice(auxiliary_data.unwrap_or(&[NO_AUXILIARY_DATA]));
    Ok(tx)
}
