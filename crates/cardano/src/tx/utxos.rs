//! What a transaction of anyone did, read from its bytes: what it spent and what it made.
//!
//! [`SignedTx`] reads payments that are to be judged, and refuses what honest wallets do not write. What is in a block
//! has been judged by the ledger already. So this reader takes every encoding that a ledger takes. It passes over what
//! no caller asks for (certificates, votes, metadata, witnesses). Its work is bounded by the bytes of one transaction,
//! whatever that transaction refers to.
//!
//! Source: the Conway CDDL of the ledger (IntersectMBO/cardano-ledger, `eras/conway/impl/cddl-files/conway.cddl`), whose
//! keys are those of the eras since Shelley.
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

/// Bytes of a transaction that are read at most: four times what the ledger allows now, should a vote allow more.
pub const MAX_TX_IN_BLOCK: usize = 64 << 10;

/// What a transaction did to the ledger's outputs.
///
/// A transaction whose scripts failed spent its collateral and made its collateral's return, nothing else. Whether they
/// failed is the one thing here that the id does not vouch for: see [`TransactionUtxos::valid`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionUtxos {
    /// BLAKE2b-256 of the body's bytes as they came.
    pub id: TxHash,
    /// Whether its scripts succeeded, as these bytes say it. Outside the body, so not part of what the id names:
    /// [`Inclusion::valid`](crate::chain::Inclusion::valid) is the provider's word on the block.
    pub valid: bool,
    /// The first slot in which it is valid.
    pub validity_start: Option<u64>,
    /// The first slot in which it is no longer valid.
    pub ttl: Option<u64>,
    /// What it spent, in its order.
    pub spent: Vec<TxRef>,
    /// What of it Plutus scripts released, in the ledger's order: the inputs with a redeemer.
    pub by_script: Vec<TxRef>,
    /// What it made, in order.
    pub made: Vec<Utxo>,
}

/// Why bytes are not a transaction that a ledger since Shelley could have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionUtxosError {
    /// More than [`MAX_TX_IN_BLOCK`].
    #[error("the transaction is larger than {MAX_TX_IN_BLOCK} bytes")]
    TooLarge,
    /// A part that is not what it should be.
    #[error("the {0} of the transaction cannot be read")]
    Malformed(&'static str),
}

/// The id of a transaction: of its body's bytes as they came.
///
/// # Errors
/// Bytes that are too many or no transaction.
pub fn transaction_id(bytes: &[u8]) -> Result<TxHash, TransactionUtxosError> {
    let (_, body) = body_of(bytes)?;
    Ok(TxHash::of_body(body))
}

impl TransactionUtxos {
    /// Reads what a transaction did.
    ///
    /// # Errors
    /// Bytes that are too many, or that no ledger since Shelley could have taken as a transaction.
    pub fn read(bytes: &[u8]) -> Result<Self, TransactionUtxosError> {
        let (mut decoder, body_bytes) = body_of(bytes)?;
        let body = UtxosBody::read(body_bytes)?;
        let redeemed =
            witnesses::spending_redeemers(&mut decoder).map_err(|_| TransactionUtxosError::Malformed("witness set"))?;
        // Eras before Alonzo had no flag: three parts, the last of which is never a boolean.
        let valid = match decoder.datatype() {
            Ok(Type::Bool) => decoder.bool().map_err(|_| TransactionUtxosError::Malformed("validity flag"))?,
            Ok(_) => true,
            Err(_) => return Err(TransactionUtxosError::Malformed("end")),
        };
        body.utxos(TxHash::of_body(body_bytes), valid, &redeemed)
    }
}

/// A transaction's decoder behind its body, and the body.
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

/// What of a body is of interest.
#[derive(Default)]
struct UtxosBody<'b> {
    inputs: Vec<TxRef>,
    outputs: Vec<output::ProducedOutput>,
    collateral: Vec<TxRef>,
    /// As it came: what a transaction does not make, it may name in any way, and is not read.
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
        // A redeemer names its input by its index among all of them in order (Alonzo, `rdptr`).
        let in_order = self.inputs.iter().copied().filter(|_| valid).collect::<BTreeSet<_>>();
        let by_script = in_order.into_iter().enumerate().filter(|(index, _)| redeemed.contains(index));
        let by_script = by_script.map(|(_, input)| input).collect();
        let (spent, made) = if valid {
            (self.inputs, self.outputs.into_iter().zip(0_usize..).collect())
        } else {
            // Its index is behind the outputs that the transaction would have made (Babbage, `collateralReturn`).
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
            by_script,
            made: made.collect(),
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
