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

/// CBOR header of an array of four items, with which a transaction begins.
const ARRAY_OF_FOUR: u8 = 0x84;
/// CBOR of the flag `is_valid`, which is always true, because transactions whose scripts fail are never submitted.
const IS_VALID: u8 = 0xf5;
/// CBOR null, which stands for the auxiliary data if there are none.
const NO_AUXILIARY_DATA: u8 = 0xf6;

/// A balanced transaction without signatures. Its id is final, because the id does not cover the signatures.
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
    /// Fee of the transaction.
    pub fee: Lovelace,
    /// Spent outputs, in the ledger's order.
    pub inputs: Vec<TxRef>,
    /// Collateral inputs, which must be reserved together with `inputs`.
    pub collateral: Vec<TxRef>,
    /// Outputs that the transaction creates, in order.
    pub outputs: Vec<Utxo>,
    /// Created outputs that belong to the wallet and can be spent by its next transaction.
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

    /// Returns the hashes of the keys that must sign.
    #[must_use]
    pub const fn keys(&self) -> &BTreeSet<KeyHash> {
        &self.keys
    }

    /// Returns the index of an input in the ledger's order of all inputs, or `None` if the transaction does not spend
    /// it. An evaluation refers to redeemers by this index (`spend:<index>`).
    #[must_use]
    pub fn input_index(&self, reference: &TxRef) -> Option<usize> {
        self.facts.inputs.iter().position(|input| input == reference)
    }

    /// Encodes the transaction without signatures, as evaluation needs it.
    ///
    /// # Errors
    /// Never returns an error in practice, because a balanced transaction can be encoded.
    pub fn unsigned_cbor(&self) -> Result<Vec<u8>, BuildError> {
        encode(&self.body, self.redeemers.clone(), Vec::new(), self.auxiliary_data.as_deref())
    }

    /// Signs the transaction with every required key. Keys among `signers` that are not required do not sign.
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
