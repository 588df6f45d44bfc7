//! Reads the effects of an included transaction from its bytes: the outputs that it spent and created.
//!
//! [`SignedTx`] decodes payments that are still to be judged and rejects encodings that wallets do not write. A
//! transaction in a block has already passed the ledger's rules, so this reader accepts every encoding that the ledger
//! accepts and skips the parts that no caller needs (certificates, votes, metadata, witnesses). Its work is bounded by
//! the size of one transaction.
//!
//! Source: the Conway CDDL of the ledger (IntersectMBO/cardano-ledger, `eras/conway/impl/cddl-files/conway.cddl`),
//! whose keys have been the same in all eras since Shelley.
//!
//! [`SignedTx`]: super::SignedTx

mod cbor;
mod output;
#[cfg(test)]
mod tests;
mod unspent;
mod witnesses;

use std::collections::BTreeSet;

use pallas_codec::minicbor::{Decoder, data::Type};

use crate::{
    chain::Utxo,
    hash::{TxHash, TxRef},
};
use cbor::{ItemCount, unsupported};
pub use unspent::{MAX_UNSPENT_OUTPUT, NotAnUnspentOutput, read_unspent};

/// Maximum size in bytes of an included transaction that is decoded: four times the ledger's present limit, in case the
/// limit is raised.
pub const MAX_TX_IN_BLOCK: usize = 64 << 10;

/// The outputs that an included transaction spent and created.
///
/// If the transaction's scripts failed, it spent its collateral and created the collateral return, and nothing else.
/// The transaction id does not cover whether the scripts failed: see [`TransactionUtxos::valid`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionUtxos {
    /// Transaction id: BLAKE2b-256 of the body's bytes as received.
    pub id: TxHash,
    /// Whether the transaction's scripts succeed, according to the flag in the transaction itself. The flag is outside
    /// the body, so the transaction id does not cover it. The provider's statement about the included transaction is
    /// [`Inclusion::valid`](crate::chain::Inclusion::valid).
    pub valid: bool,
    /// First slot in which the transaction is valid; `None` if there is no such limit.
    pub validity_start: Option<u64>,
    /// First slot in which the transaction is no longer valid; `None` if its validity does not end.
    pub ttl: Option<u64>,
    /// Spent outputs, in the order in which the body lists them.
    pub spent: Vec<TxRef>,
    /// Spent outputs that have a redeemer, and are therefore spent with a Plutus script. In the ledger's order.
    pub spent_by_script: Vec<TxRef>,
    /// Created outputs, in order.
    pub created: Vec<Utxo>,
}

/// Reason why bytes are not a transaction of an era since Shelley.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionUtxosError {
    /// The transaction has more than [`MAX_TX_IN_BLOCK`] bytes.
    #[error("the transaction is larger than {MAX_TX_IN_BLOCK} bytes")]
    TooLarge,
    /// This part of the transaction is malformed.
    #[error("the {0} of the transaction cannot be read")]
    Malformed(&'static str),
}

/// Computes the id of a transaction from the bytes of its body, as received.
///
/// # Errors
/// [`TransactionUtxosError`] if the bytes are too long or not a transaction.
pub fn transaction_id(bytes: &[u8]) -> Result<TxHash, TransactionUtxosError> {
    let (_, body) = body_of(bytes)?;
    Ok(TxHash::of_body(body))
}

impl TransactionUtxos {
    /// Reads the effects of an included transaction from its bytes.
    ///
    /// # Errors
    /// [`TransactionUtxosError`] if the bytes are too long or not a transaction of an era since Shelley.
    pub fn read(bytes: &[u8]) -> Result<Self, TransactionUtxosError> {
        let (mut decoder, body_bytes) = body_of(bytes)?;
        let body = UtxosBody::read(body_bytes)?;
        let redeemed =
            witnesses::spending_redeemers(&mut decoder).map_err(|_| TransactionUtxosError::Malformed("witness set"))?;
        // Before Alonzo, a transaction had three parts and no flag. The third part is never a boolean.
        let valid = match decoder.datatype() {
            Ok(Type::Bool) => decoder.bool().map_err(|_| TransactionUtxosError::Malformed("validity flag"))?,
            Ok(_) => true,
            Err(_) => return Err(TransactionUtxosError::Malformed("end")),
        };
        body.utxos(TxHash::of_body(body_bytes), valid, &redeemed)
    }
}

/// Returns the bytes of a transaction's body, and a decoder positioned after the body.
fn body_of(bytes: &[u8]) -> Result<(Decoder<'_>, &[u8]), TransactionUtxosError> {
    if bytes.len() > MAX_TX_IN_BLOCK {
        return Err(TransactionUtxosError::TooLarge);
    }
    let mut decoder = Decoder::new(bytes);
    let parts = decoder.array().map_err(|_| TransactionUtxosError::Malformed("array"))?;
    if parts.is_some_and(|parts| !(3..=4).contains(&parts)) {
        return Err(TransactionUtxosError::Malformed("array"));
    }
    let start = decoder.position();
    decoder.skip().map_err(|_| TransactionUtxosError::Malformed("body"))?;
    let body = bytes.get(start..decoder.position()).ok_or(TransactionUtxosError::Malformed("body"))?;
    Ok((decoder, body))
}

/// The fields of a transaction body that determine its effects.
#[derive(Default)]
struct UtxosBody<'b> {
    inputs: Vec<TxRef>,
    outputs: Vec<output::ProducedOutput>,
    collateral: Vec<TxRef>,
    /// CBOR of the collateral return. It is decoded only if the scripts failed, because otherwise the output is not
    /// created and the field may contain anything.
    collateral_return: Option<&'b [u8]>,
    validity_start: Option<u64>,
    ttl: Option<u64>,
}

impl<'b> UtxosBody<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, TransactionUtxosError> {
        let mut decoder = Decoder::new(bytes);
        let mut body = Self::default();
        let mut fields = ItemCount::of_map(&mut decoder).map_err(|_| TransactionUtxosError::Malformed("body"))?;
        while fields.more(&mut decoder).map_err(|_| TransactionUtxosError::Malformed("body"))? {
            let key = decoder.u64().map_err(|_| TransactionUtxosError::Malformed("body"))?;
            let d = &mut decoder;
            let (read, name) = match key {
                0 => (inputs(d).map(|inputs| body.inputs = inputs), "inputs"),
                1 => (outputs(d).map(|outputs| body.outputs = outputs), "outputs"),
                3 => (d.u64().map(|slot| body.ttl = Some(slot)), "time to live"),
                8 => (d.u64().map(|slot| body.validity_start = Some(slot)), "validity start"),
                13 => (inputs(d).map(|inputs| body.collateral = inputs), "collateral inputs"),
                16 => (cbor::raw(d).map(|made| body.collateral_return = Some(made)), "collateral return"),
                _ => (d.skip(), "body"),
            };
            read.map_err(|_| TransactionUtxosError::Malformed(name))?;
        }
        Ok(body)
    }

    fn utxos(
        self,
        id: TxHash,
        valid: bool,
        redeemed: &BTreeSet<usize>,
    ) -> Result<TransactionUtxos, TransactionUtxosError> {
        let returned = self.outputs.len();
        // A redeemer names its input by the index among all sorted inputs (Alonzo, `rdptr`).
        let in_order = self.inputs.iter().copied().filter(|_| valid).collect::<BTreeSet<_>>();
        let by_script = in_order.into_iter().enumerate().filter(|(index, _)| redeemed.contains(index));
        let by_script = by_script.map(|(_, input)| input).collect();
        let (spent, made) = if valid {
            (self.inputs, self.outputs.into_iter().zip(0_usize..).collect())
        } else {
            // Its index follows those of the outputs that the transaction would have created (Babbage,
            // `collateralReturn`).
            let made = self.collateral_return.map(|made| output::read(&mut Decoder::new(made))).transpose();
            let made = made.map_err(|_| TransactionUtxosError::Malformed("collateral return"))?;
            (self.collateral, made.into_iter().map(|made| (made, returned)).collect::<Vec<_>>())
        };
        let made = made.into_iter().filter_map(|(made, index)| {
            let index = u16::try_from(index).ok()?;
            Some(made.at(TxRef { tx: id, index }))
        });
        Ok(TransactionUtxos {
            id,
            valid,
            validity_start: self.validity_start,
            ttl: self.ttl,
            spent,
            spent_by_script: by_script,
            created: made.collect(),
        })
    }
}

fn inputs(decoder: &mut Decoder<'_>) -> Result<Vec<TxRef>, cbor::Error> {
    cbor::list(decoder, input)
}

fn input(decoder: &mut Decoder<'_>) -> Result<TxRef, cbor::Error> {
    let mut pair = ItemCount::of_array(decoder)?;
    pair.expect(decoder)?;
    let tx = TxHash::new(cbor::fixed(decoder)?);
    pair.expect(decoder)?;
    let index = decoder.u16()?;
    if pair.more(decoder)? { Err(unsupported()) } else { Ok(TxRef { tx, index }) }
}

fn outputs(decoder: &mut Decoder<'_>) -> Result<Vec<output::ProducedOutput>, cbor::Error> {
    cbor::list(decoder, output::read)
}
