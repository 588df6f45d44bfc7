//! Checks transactions before the wallet signs them.
//!
//! The service drafts each transaction, and may lie. A draft is compared with the user's command and with the wallet's
//! outputs as the chain shows them. The service's description of the draft is ignored.
//!
//! ```text
//! draft ──> every transaction: network, fields, signers, inputs, fee, validity, balance       (here)
//!       ├─> a payment: one output to the payee, the rest back to the wallet                   (payment.rs)
//!       └─> an action: the escrow continues as the contract demands, or returns to the wallet (action.rs)
//! ```

pub mod action;
pub mod evidence;
pub mod payment;

use std::collections::{BTreeMap, BTreeSet};

use blueprint::BlueprintError;
use cardano::{
    Address, KeyHash, Lovelace, TxRef,
    chain::{Utxo, Value},
    slots::Millis,
    tx::{DecodeError, Output, SignedTx, TransactionUtxos, TransactionUtxosError, TxPart},
};
use escrow::InvalidDatum;
use pallas_codec::{minicbor, utils::NonEmptySet};
use pallas_primitives::conway::{Tx, VKeyWitness};
use serde::Deserialize;
use serde_json::Value as Json;
use x402_cardano::{
    escrow::{AuthorizationError, LockError},
    request_commitment::{Commitment, OtherRequest},
};

use crate::keys::Keys;

/// CBOR value of the flag `is_valid` in a transaction whose scripts fail.
const FAILED: u8 = 0xf4;
/// Maximum remaining validity of a transaction in ms. Anyone who sees the signed transaction can submit it until its
/// validity ends.
const MAX_VALIDITY_MS: Millis = 10 * 60 * 1_000;

/// Difference between a draft and the user's command.
#[derive(Debug, thiserror::Error)]
pub enum NotAsAsked {
    #[error("the draft is not a transaction ({0})")]
    Unreadable(String),
    #[error(transparent)]
    Transaction(#[from] DecodeError),
    #[error(transparent)]
    Collateral(#[from] TransactionUtxosError),
    #[error("the draft is for another network than preprod")]
    Network,
    /// The draft has an unnecessary part: a field, signatures, metadata, or the mark of a failing script.
    #[error("the draft has {0}, which it does not need")]
    Extra(String),
    #[error("the draft's metadata are not the commitment that this program asked for")]
    Commitment,
    /// The terms in the 402 response are for a different HTTP request than the one that this program will send.
    #[error("{0}: name the service's own address with --api")]
    OtherRequest(#[from] OtherRequest),
    #[error("the draft needs the signature of another key")]
    Signer,
    #[error("the draft spends {0}, which is not this wallet's")]
    Input(TxRef),
    #[error("the draft does not spend {0}")]
    NotSpent(TxRef),
    #[error("the draft sends {} to {address}, which you did not ask for", lovelace.display_tada())]
    Output { address: String, lovelace: Lovelace },
    /// The draft has no output to the payee, or more than one. The second value is the payee's address.
    #[error("the draft has {0} outputs to {1}, and must have one")]
    Payee(usize, String),
    #[error("the draft pays {} instead of {}", paid.display_tada(), asked.display_tada())]
    Amount { paid: Lovelace, asked: Lovelace },
    /// An output carries a datum, a script or tokens although it must not.
    #[error("an output of the draft carries {0}, which it should not")]
    NotPlain(&'static str),
    /// The draft's fee (first value) exceeds the maximum fee of a draft of its kind (second value).
    #[error("the fee is {}, and such a transaction costs {} at most", .0.display_tada(), .1.display_tada())]
    Fee(Lovelace, Lovelace),
    #[error("the draft's inputs do not equal its outputs and fee")]
    NotConserved,
    /// The transaction is valid for too long, or without an end.
    #[error("the draft is valid for longer than ten minutes, or without an end")]
    Validity,
    #[error("the terms: {0}")]
    Terms(String),
    #[error(
        "the deadlines do not match terms that are issued now, so the money could be held for longer than necessary"
    )]
    Deadlines,
    /// The seller's signed terms are invalid.
    #[error("the terms: {0}")]
    Authorization(#[from] AuthorizationError),
    #[error("the contract: {0}")]
    Blueprint(#[from] BlueprintError),
    /// The contract's address in the terms is not the address that this program knows.
    #[error(
        "the money would be locked at {declared}, and the contract that this program knows is at {known}; for another \
         contract name its blueprint with --contract"
    )]
    Contract { declared: String, known: String },
    #[error("the terms do not match the listing")]
    OtherContent,
    /// The lock breaks a rule of the scheme.
    #[error("the escrow: {0}")]
    Lock(#[from] LockError),
    /// The collateral (first value) exceeds the maximum (second value). The first value is the lovelace that a lock
    /// adds to the price, or the lovelace that the wallet would lose if the transaction's script failed.
    #[error("the draft locks {} beside the price, and at most {} can be needed", .0.display_tada(), .1.display_tada())]
    TooMuchCollateral(Lovelace, Lovelace),
    #[error("a refund would go to {0}, or in an output that this wallet would not sign for")]
    RefundElsewhere(String),
    #[error("the escrow's datum: {0}")]
    Datum(#[from] InvalidDatum),
    /// The draft does not perform the requested action. Contains the action's name.
    #[error("the draft does not perform {0} on the escrow")]
    OtherAction(&'static str),
}

/// A transaction drafted by the service. Further fields of the response are ignored.
#[derive(Deserialize)]
pub struct DraftedTx {
    /// The unsigned transaction, as hexadecimal CBOR.
    pub transaction: String,
    /// The x402 payload without its transaction, if the draft is a payment.
    #[serde(default)]
    pub payment: Json,
}

/// The signing wallet: its keys, and its outputs as read from the chain.
#[derive(Clone, Copy)]
pub struct SigningWallet<'a> {
    pub keys: &'a Keys,
    pub utxos: &'a [Utxo],
    /// Time in POSIX ms that validity intervals are compared with.
    pub now: Millis,
}

/// Limits that a draft must keep, depending on the kind of transaction.
pub(crate) struct DraftLimits<'a> {
    /// Transaction parts that are allowed in addition to the parts of a plain payment.
    pub parts: &'a [TxPart],
    /// Escrow output that the transaction must spend, although the wallet does not own it; `None` for a payment.
    pub escrow: Option<&'a Utxo>,
    pub most_fee: Lovelace,
    /// Request commitment that must be the transaction's only metadata; `None` if the transaction must have no
    /// metadata.
    pub commitment: Option<Commitment>,
}

impl DraftedTx {
    /// Decodes the drafted transaction.
    ///
    /// # Errors
    /// Returns an error if the bytes are malformed.
    pub(crate) fn read(&self) -> Result<SignedTx, NotAsAsked> {
        let cbor = hex::decode(&self.transaction).map_err(|error| NotAsAsked::Unreadable(error.to_string()))?;
        Ok(SignedTx::parse(&cbor)?)
    }
}

fn ensure(holds: bool, otherwise: NotAsAsked) -> Result<(), NotAsAsked> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Checks the rules that hold for every transaction. Returns the outputs to addresses other than the wallet's.
///
/// # Errors
/// Returns the first difference between the draft and the command.
pub(crate) fn common<'t>(
    tx: &'t SignedTx,
    own: &SigningWallet<'_>,
    limits: &DraftLimits<'_>,
) -> Result<Vec<&'t Output>, NotAsAsked> {
    ensure(tx.network_id.is_none_or(|id| id == 0), NotAsAsked::Network)?;
    if let Some(part) = tx.parts.keys().find(|part| !limits.parts.contains(part)) {
        return Err(NotAsAsked::Extra(format!("{part:?}")));
    }
    ensure(tx.vkey_witnesses.is_empty(), NotAsAsked::Extra("signatures".into()))?;
    ensure(tx.is_valid, NotAsAsked::Extra("a mark that it fails".into()))?;
    match limits.commitment {
        Some(commitment) => ensure(commitment.is_all_metadata_of(tx), NotAsAsked::Commitment)?,
        None => {
            let has_none = tx.auxiliary_data.is_none() && tx.auxiliary_data_hash.is_none();
            ensure(has_none, NotAsAsked::Extra("metadata".into()))?;
        }
    }
    ensure(tx.required_signers.iter().all(|signer| own.keys.of(signer).is_some()), NotAsAsked::Signer)?;
    ensure(tx.fee <= limits.most_fee, NotAsAsked::Fee(tx.fee, limits.most_fee))?;
    let end = tx.ttl.and_then(|slot| api_types::SLOTS.slot_begins_at(slot));
    let latest = own.now.saturating_add(MAX_VALIDITY_MS);
    ensure(end.is_some_and(|end| end <= latest), NotAsAsked::Validity)?;
    conserved(tx, own, limits)?;
    let homes: Vec<Vec<u8>> = own.keys.addresses().iter().map(Address::to_bytes).collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = tx.outputs.iter().partition(|output| homes.contains(&output.address));
    for output in ours {
        must_be_plain(output)?;
    }
    Ok(theirs)
}

fn must_be_plain(output: &Output) -> Result<(), NotAsAsked> {
    let is_plain = output.datum.is_none() && output.reference_script.is_none();
    ensure(is_plain, NotAsAsked::NotPlain("a datum or a script"))
}

/// Checks that inputs equal outputs plus fee in every asset. Lovelace counts as an asset with an empty name.
fn conserved<'a>(tx: &'a SignedTx, own: &'a SigningWallet<'_>, limits: &'a DraftLimits<'_>) -> Result<(), NotAsAsked> {
    let known = own.utxos.iter().chain(limits.escrow);
    let known: BTreeMap<TxRef, &Value> = known.map(|utxo| (utxo.reference, &utxo.value)).collect();
    if let Some(Utxo { reference, .. }) = limits.escrow {
        ensure(tx.inputs.contains(reference), NotAsAsked::NotSpent(*reference))?;
    }
    let mut left = BTreeMap::from([("", i128::from(tx.fee.get()).saturating_neg())]);
    let mut count = |value: &'a Value, sign: i128| {
        let tokens = value.assets.iter().map(|(unit, quantity)| (unit.as_str(), *quantity));
        for (unit, quantity) in tokens.chain([("", value.lovelace.get())]) {
            let sum = left.entry(unit).or_default();
            *sum = sum.saturating_add(sign.saturating_mul(quantity.into()));
        }
    };
    for input in &tx.inputs {
        count(known.get(input).ok_or(NotAsAsked::Input(*input))?, 1);
    }
    for output in &tx.outputs {
        count(&output.value, -1);
    }
    ensure(left.values().all(|sum| *sum == 0), NotAsAsked::NotConserved)
}

/// Returns the only output in `theirs`, and checks that it pays to `address`. `theirs` contains the outputs to
/// addresses other than the wallet's. `text` is `address` as it appears in messages.
pub(crate) fn only_to<'t>(theirs: &[&'t Output], address: &[u8], text: &str) -> Result<&'t Output, NotAsAsked> {
    if let Some(output) = theirs.iter().find(|output| output.address != address) {
        return Err(elsewhere(output));
    }
    match theirs {
        [only] => Ok(only),
        _ => Err(NotAsAsked::Payee(theirs.len(), text.to_owned())),
    }
}

pub(crate) fn elsewhere(output: &Output) -> NotAsAsked {
    NotAsAsked::Output { address: cardano::address::text_of(&output.address), lovelace: output.value.lovelace }
}

/// Signs a draft with the key of each wallet output that the draft spends, and with any other required keys. The
/// transaction's body stays the same, byte for byte.
///
/// # Errors
/// Returns an error if the draft has no place for signatures, or requires a key that the wallet does not have.
pub fn sign(draft: &SignedTx, own: &SigningWallet<'_>) -> Result<SignedTx, NotAsAsked> {
    let unreadable = || NotAsAsked::Unreadable("no place for the signature".into());
    let pledges = draft.parts.contains_key(&TxPart::CollateralInputs);
    let pledged = if pledges { TransactionUtxos::read(&failed(draft))?.spent } else { vec![] };
    let spent: BTreeSet<&TxRef> = draft.inputs.iter().chain(&pledged).collect();
    let owners = own.utxos.iter().filter(|utxo| spent.contains(&utxo.reference)).map(|utxo| {
        let address: Result<Address, _> = utxo.address.parse();
        address.map(|address| *address.payment_key()).map_err(|_| NotAsAsked::Signer)
    });
    let mut signers = owners.collect::<Result<BTreeSet<KeyHash>, _>>()?;
    signers.extend(&draft.required_signers);
    let signature = |signer: &KeyHash| {
        let key = own.keys.of(signer).ok_or(NotAsAsked::Signer)?;
        let signature = key.sign(draft.id.as_bytes()).to_vec();
        Ok(VKeyWitness { vkey: key.public_key().to_vec().into(), signature: signature.into() })
    };
    let witnesses = signers.iter().map(signature).collect::<Result<Vec<_>, NotAsAsked>>()?;
    let mut tx: Tx<'_> = minicbor::decode(draft.cbor()).map_err(|_| unreadable())?;
    tx.transaction_witness_set.vkeywitness = NonEmptySet::from_vec(witnesses);
    let signed = SignedTx::parse(&minicbor::to_vec(&tx).map_err(|_| unreadable())?)?;
    let is_same = signed.id == draft.id && signed.parts == draft.parts;
    ensure(is_same && signed.vkey_witnesses.len() == signers.len(), unreadable())?;
    Ok(signed)
}

/// Returns a copy of a transaction, marked as having failing scripts. A transaction with this mark spends only its
/// collateral.
pub(crate) fn failed(tx: &SignedTx) -> Vec<u8> {
    let mut cbor = tx.cbor().to_vec();
    // `is_valid`, in front of the auxiliary data.
    let after = tx.auxiliary_data.as_ref().map_or(1, |data| data.cbor.len());
    if let Some(valid) = cbor.len().checked_sub(after.saturating_add(1)).and_then(|at| cbor.get_mut(at)) {
        *valid = FAILED;
    }
    cbor
}
