//! What is checked before anything is signed. A draft comes from the service's address, which may lie. It is held
//! against the request and the wallet's outputs on the chain; its own words are not believed.
//!
//! ```text
//! draft ──> every transaction: network, parts, signers, inputs, fee, validity, nothing lost   (here)
//!       ├─> a payment: one output to the payee, all else back to the wallet                   (payment.rs)
//!       └─> an action: the escrow goes on as the contract has it, or comes home               (action.rs)
//! ```

pub mod action;
pub mod evidence;
pub mod payment;

use std::collections::BTreeMap;

use blueprint::BlueprintError;
use cardano::{
    Address, Lovelace, TxRef,
    chain::{Utxo, Value},
    slots::Millis,
    tx::{DecodeError, Output, SignedTx, TransactionUtxosError, TxPart},
};
use escrow::InvalidDatum;
use serde::Deserialize;
use serde_json::Value as Json;
use x402_cardano::{
    escrow::{AuthorizationError, LockError},
    request_commitment::{Commitment, OtherRequest},
};

/// How far ahead a transaction's validity may end: what was signed is usable until then.
const MAX_VALIDITY_MS: Millis = 10 * 60 * 1_000;

/// How what was drafted is not what was asked for.
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
    #[error("the draft has {0:?}, which it does not need")]
    Part(TxPart),
    /// Signatures, a mark that it fails, or metadata that were not asked for.
    #[error("the draft has {0}, which it does not need")]
    Extra(&'static str),
    #[error("the draft's metadata are not the commitment that this program asked for")]
    Commitment,
    /// The terms are for another request than this program makes.
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
    /// The payee is not paid, or more than once.
    #[error("the draft has {0} outputs to {1}, and must have one")]
    Payee(usize, String),
    #[error("the draft pays {}, and {} was asked for", paid.display_tada(), asked.display_tada())]
    Amount { paid: Lovelace, asked: Lovelace },
    /// A datum, a script or tokens where only money belongs.
    #[error("an output of the draft carries {0}, which it should not")]
    NotPlain(&'static str),
    /// The fee, and the most that such a transaction costs.
    #[error("the fee is {}, and such a transaction costs {} at most", .0.display_tada(), .1.display_tada())]
    Fee(Lovelace, Lovelace),
    #[error("what the draft spends is not what it pays")]
    NotConserved,
    /// Usable for too long, or without an end.
    #[error("the draft could be sent for longer than ten minutes")]
    Validity,
    #[error("the terms: {0}")]
    Terms(String),
    #[error("the deadlines are not those of terms made now: the money could be held for longer than it takes")]
    Deadlines,
    /// What the seller signed.
    #[error("the terms: {0}")]
    Authorization(#[from] AuthorizationError),
    #[error("the contract: {0}")]
    Blueprint(#[from] BlueprintError),
    /// The terms' address is not that of the blueprint's contract.
    #[error(
        "the money would be locked at {declared}, and the contract that this program knows is at {known}; for another \
         contract name its blueprint with --contract"
    )]
    Contract { declared: String, known: String },
    #[error("the terms promise something else than the listing does")]
    OtherContent,
    /// A rule of the escrow.
    #[error("the escrow: {0}")]
    Lock(#[from] LockError),
    /// What is locked or pledged beside the price, and the most that there can be need for.
    #[error("the draft has {} beside the price, and {} is the most that can be needed", .0.display_tada(), .1.display_tada())]
    TooMuchLocked(Lovelace, Lovelace),
    #[error("a refund would go to {0}, or in an output that this wallet would not sign for")]
    RefundElsewhere(String),
    #[error("the escrow's datum: {0}")]
    Datum(#[from] InvalidDatum),
    /// Another step than was asked for.
    #[error("the draft does something else with the escrow than {0}")]
    OtherAction(&'static str),
}

/// A draft as the service answers with it. What else it says is not looked at.
#[derive(Deserialize)]
pub struct Draft {
    /// Hex of the unsigned transaction's CBOR.
    pub transaction: String,
    /// Of a payment, the x402 payload, which only lacks the signed transaction.
    #[serde(default)]
    pub payment: Json,
}

/// The wallet that is to sign, as the chain has it.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    pub address: Address,
    pub utxos: &'a [Utxo],
    /// The clock of validities, POSIX ms.
    pub now: Millis,
}

/// What a kind of transaction may have.
pub(crate) struct Bounds<'a> {
    /// Beyond inputs, outputs, fee and validity.
    pub parts: &'a [TxPart],
    /// What it spends that is not the wallet's.
    pub others: &'a [&'a Utxo],
    pub most_fee: Lovelace,
    /// The only metadata that it may have, and then must.
    pub commitment: Option<Commitment>,
}

impl Draft {
    /// Its transaction.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(&self) -> Result<SignedTx, NotAsAsked> {
        let cbor = hex::decode(&self.transaction).map_err(|error| NotAsAsked::Unreadable(error.to_string()))?;
        Ok(SignedTx::parse(&cbor)?)
    }
}

/// What holds for every transaction; the outputs that are not the wallet's own are answered, to be judged.
///
/// # Errors
/// What is not as it should be.
pub(crate) fn common<'t>(tx: &'t SignedTx, own: &Own<'_>, bounds: &Bounds<'_>) -> Result<Vec<&'t Output>, NotAsAsked> {
    if tx.network_id.is_some_and(|id| id != 0) {
        return Err(NotAsAsked::Network);
    }
    if let Some(part) = tx.parts.keys().find(|part| !bounds.parts.contains(part)) {
        return Err(NotAsAsked::Part(*part));
    }
    let has_metadata = tx.auxiliary_data.is_some() || tx.auxiliary_data_hash.is_some();
    let extras = [
        (!tx.vkey_witnesses.is_empty(), "signatures"),
        (has_metadata && bounds.commitment.is_none(), "metadata"),
        (!tx.is_valid, "a mark that it fails"),
    ];
    if let Some((_, what)) = extras.into_iter().find(|(there, _)| *there) {
        return Err(NotAsAsked::Extra(what));
    }
    if bounds.commitment.is_some_and(|commitment| !commitment.is_all_metadata_of(tx)) {
        return Err(NotAsAsked::Commitment);
    }
    if tx.required_signers.iter().any(|signer| signer != own.address.payment_key()) {
        return Err(NotAsAsked::Signer);
    }
    if tx.fee > bounds.most_fee {
        return Err(NotAsAsked::Fee(tx.fee, bounds.most_fee));
    }
    let end = tx.ttl.and_then(|slot| api_types::SLOTS.slot_begins_at(slot)).ok_or(NotAsAsked::Validity)?;
    if end > own.now.saturating_add(MAX_VALIDITY_MS) {
        return Err(NotAsAsked::Validity);
    }
    conserved(tx, own, bounds)?;
    let home = own.address.to_bytes();
    let (ours, theirs): (Vec<_>, Vec<_>) = tx.outputs.iter().partition(|output| output.address == home);
    for output in ours {
        if output.datum.is_some() || output.reference_script.is_some() {
            return Err(NotAsAsked::NotPlain("a datum or a script"));
        }
    }
    Ok(theirs)
}

fn conserved(tx: &SignedTx, own: &Own<'_>, bounds: &Bounds<'_>) -> Result<(), NotAsAsked> {
    let known = own.utxos.iter().chain(bounds.others.iter().copied());
    let known: BTreeMap<TxRef, &Value> = known.map(|utxo| (utxo.reference, &utxo.value)).collect();
    let mut spent = Sum::default();
    for input in &tx.inputs {
        spent.add(known.get(input).ok_or(NotAsAsked::Input(*input))?);
    }
    for other in bounds.others {
        if !tx.inputs.contains(&other.reference) {
            return Err(NotAsAsked::NotSpent(other.reference));
        }
    }
    let mut made = Sum::default();
    for output in &tx.outputs {
        made.add(&output.value);
    }
    made.lovelace = made.lovelace.saturating_add(tx.fee.get().into());
    if spent == made { Ok(()) } else { Err(NotAsAsked::NotConserved) }
}

/// Amounts that cannot overflow: 2^64 outputs fit.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    lovelace: u128,
    assets: BTreeMap<String, u128>,
}

impl Sum {
    fn add(&mut self, value: &Value) {
        self.lovelace = self.lovelace.saturating_add(value.lovelace.get().into());
        for (unit, quantity) in &value.assets {
            let sum = self.assets.entry(unit.clone()).or_default();
            *sum = sum.saturating_add(u128::from(*quantity));
        }
    }
}

/// The only one of the outputs that are not the wallet's, which must be at this address.
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

/// The key's signature in the draft's witness set, which has none so far; its body stays byte for byte.
///
/// # Errors
/// Not a transaction, or signed already.
pub fn sign(draft: &SignedTx, key: &cardano::keys::SigningKey) -> Result<SignedTx, NotAsAsked> {
    use pallas_codec::minicbor::Decoder;
    let unreadable = || NotAsAsked::Unreadable("no place for the signature".into());
    let cbor = draft.cbor();
    let mut decoder = Decoder::new(cbor);
    decoder.array().map_err(|_| unreadable())?;
    decoder.skip().map_err(|_| unreadable())?;
    let (body, rest) = cbor.split_at_checked(decoder.position()).ok_or_else(unreadable)?;
    // A map of nothing, or of the redeemers alone (RFC 8949: 0xa0, 0xa1).
    let (head, rest) = match rest.split_first() {
        Some((0xa0, rest)) => (0xa1, rest),
        Some((0xa1, rest)) => (0xa2, rest),
        _ => return Err(unreadable()),
    };
    let mut signed = [body, &[head, 0x00, 0xd9, 0x01, 0x02, 0x81, 0x82, 0x58, 0x20]].concat();
    signed.extend_from_slice(&key.public_key());
    signed.extend_from_slice(&[0x58, 0x40]);
    signed.extend_from_slice(&key.sign(draft.id.as_bytes()));
    signed.extend_from_slice(rest);
    let signed = SignedTx::parse(&signed)?;
    let same = signed.id == draft.id && signed.vkey_witnesses.len() == 1;
    if same { Ok(signed) } else { Err(unreadable()) }
}

/// What comes back to the wallet.
pub fn change_of(tx: &SignedTx, own: &Address) -> Lovelace {
    let home = own.to_bytes();
    tx.outputs.iter().filter(|output| output.address == home).map(|output| output.value.lovelace).sum()
}
