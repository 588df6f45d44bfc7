//! A draft that its keys have yet to sign, and the signed result.

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

/// CBOR head of the array of four that a transaction is.
const ARRAY_OF_FOUR: u8 = 0x84;
/// `is_valid`: true. A transaction whose scripts fail is never ours to send.
const IS_VALID: u8 = 0xf5;
/// No auxiliary data.
const NO_AUXILIARY_DATA: u8 = 0xf6;

/// A balanced transaction without signatures. Its id is final: only witnesses are still to come.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsignedTx {
    pub(super) body: Vec<u8>,
    pub(super) redeemers: Option<Redeemers>,
    pub(super) auxiliary_data: Option<Vec<u8>>,
    pub(super) keys: BTreeSet<KeyHash>,
    pub(super) facts: TxFacts,
}

/// What a transaction does, for callers that write it down, reserve its inputs or spend its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxFacts {
    /// Its id.
    pub tx_id: TxHash,
    /// What it pays.
    pub fee: Lovelace,
    /// What it spends, in the ledger's order.
    pub inputs: Vec<TxRef>,
    /// What it puts up for its scripts. Reserve them together with the inputs.
    pub collateral: Vec<TxRef>,
    /// All that it makes, in order.
    pub outputs: Vec<Utxo>,
    /// Those of the outputs that the wallet can spend next.
    pub change: Vec<Utxo>,
    /// The first slot at which the ledger takes it no more.
    pub valid_until_slot: u64,
}

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltTx {
    /// What it does.
    pub facts: TxFacts,
    /// All its bytes, to be submitted as they are.
    pub cbor: Vec<u8>,
}

impl UnsignedTx {
    /// What it does.
    #[must_use]
    pub const fn facts(&self) -> &TxFacts {
        &self.facts
    }

    /// The keys that must sign.
    #[must_use]
    pub const fn keys(&self) -> &BTreeSet<KeyHash> {
        &self.keys
    }

    /// The index of a script input among the inputs: an evaluation names redeemers by it (`spend:<index>`).
    #[must_use]
    pub fn input_index(&self, reference: &TxRef) -> Option<usize> {
        self.facts.inputs.iter().position(|input| input == reference)
    }

    /// Its bytes without signatures, for a provider that evaluates its scripts.
    ///
    /// # Errors
    /// None that a balanced draft can have.
    pub fn unsigned_cbor(&self) -> Result<Vec<u8>, BuildError> {
        encode(&self.body, self.redeemers.clone(), Vec::new(), self.auxiliary_data.as_deref())
    }

    /// The signed transaction. Signers of no needed key are not asked.
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

/// A transaction of this body with these redeemers, signatures and auxiliary data.
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
