//! Transactions of the matrix as the Conway ledger writes them (`conway.cddl`), so that the script contexts are the
//! evaluator's own and nothing here decides what a script sees.

use std::convert::Infallible;

use cardano::{TxHash, TxRef, hash::blake2b, slots::SlotConfig};
use pallas_codec::minicbor::{Encoder, data::Tag, encode::Error};

use super::transaction::{Attached, Handed, Output, Transaction, Value};

/// Writing to memory cannot fail.
pub type Written<T = ()> = Result<T, Error<Infallible>>;

/// An encoder into memory.
type Cbor = Encoder<Vec<u8>>;

/// Data inside CBOR inside a byte string (RFC 8949, section 3.4.5.1).
const ENCODED_CBOR: Tag = Tag::new(24);
/// Units that each redeemer claims; the evaluator measures the real ones.
const CLAIMED_UNITS: (u64, u64) = (1_000_000, 1_000_000_000);
/// Where the script itself is referenced, as in production.
pub const REFERENCE_SCRIPT: TxRef = TxRef { tx: TxHash::new([0xee; 32]), index: 0 };
/// A native script that anybody satisfies: `all []`.
const TRIVIAL_SCRIPT: &[u8] = &[0x82, 0x01, 0x80];

/// A transaction with the outputs that it needs to be looked up, each as the pair of input and output.
pub struct Encoded {
    /// The transaction.
    pub transaction: Vec<u8>,
    /// What its inputs are.
    pub resolved: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The transaction, for a script whose reference output carries these bytes.
///
/// # Errors
/// Never: writing to memory cannot fail.
pub fn encode(transaction: &Transaction, script: &[u8]) -> Written<Encoded> {
    let mut inputs: Vec<_> = transaction.inputs.iter().collect();
    inputs.sort_by_key(|input| input.reference);

    let mut cbor = Encoder::new(Vec::new());
    cbor.array(4)?;
    body(&mut cbor, transaction, inputs.iter().map(|input| input.reference))?;

    let handed: Vec<_> =
        (0u32..).zip(&inputs).filter_map(|(index, input)| Some((index, input.handed.as_ref()?))).collect();
    let datums: Vec<_> = inputs.iter().filter_map(|input| hashed_datum(&input.output.attached)).collect();
    cbor.map(if datums.is_empty() { 1 } else { 2 })?;
    if !datums.is_empty() {
        cbor.u8(4)?.array(datums.len() as u64)?;
        datums.iter().for_each(|datum| cbor.writer_mut().extend_from_slice(datum));
    }
    cbor.u8(5)?.map(handed.len() as u64)?;
    for (index, handed) in handed {
        cbor.array(2)?.u8(0)?.u32(index)?.array(2)?;
        let data = match handed {
            Handed::Action(redeemer) => redeemer.to_cbor(),
            Handed::Other(data) => data.clone(),
        };
        cbor.writer_mut().extend_from_slice(&data);
        cbor.array(2)?.u64(CLAIMED_UNITS.0)?.u64(CLAIMED_UNITS.1)?;
    }
    cbor.bool(true)?.null()?;

    let mut resolved = vec![(reference(REFERENCE_SCRIPT)?, reference_output(script)?)];
    for input in inputs {
        resolved.push((reference(input.reference)?, whole(|cbor| output(cbor, &input.output))?));
    }
    Ok(Encoded { transaction: cbor.into_writer(), resolved })
}

fn body(cbor: &mut Cbor, transaction: &Transaction, inputs: impl ExactSizeIterator<Item = TxRef>) -> Written {
    let slot = |time| SlotConfig::PREPROD.slot_at(time);
    let (from, until) = (transaction.validity.from.and_then(slot), transaction.validity.until.and_then(slot));
    let fields = [from.is_some(), until.is_some(), !transaction.signers.is_empty()];
    let optional = fields.iter().filter(|present| **present).count() as u64;
    cbor.map(optional.saturating_add(4))?;
    cbor.u8(0)?.array(inputs.len() as u64)?;
    for input in inputs {
        write_reference(cbor, input)?;
    }
    cbor.u8(1)?.array(transaction.outputs.len() as u64)?;
    for each in &transaction.outputs {
        output(cbor, each)?;
    }
    cbor.u8(2)?.u32(300_000)?;
    if let Some(slot) = until {
        cbor.u8(3)?.u64(slot)?;
    }
    if let Some(slot) = from {
        cbor.u8(8)?.u64(slot)?;
    }
    if !transaction.signers.is_empty() {
        cbor.u8(14)?.array(transaction.signers.len() as u64)?;
        for signer in &transaction.signers {
            cbor.bytes(signer.as_bytes())?;
        }
    }
    cbor.u8(18)?.array(1)?;
    write_reference(cbor, REFERENCE_SCRIPT)
}

fn output(cbor: &mut Cbor, output: &Output) -> Written {
    let has_datum = output.attached != Attached::Nothing;
    cbor.map([true, true, has_datum, output.has_script].iter().filter(|present| **present).count() as u64)?;
    cbor.u8(0)?.bytes(&output.address.to_bytes())?;
    cbor.u8(1)?;
    value(cbor, &output.value)?;
    match &output.attached {
        Attached::Nothing => {}
        Attached::Escrow(datum) => inline_datum(cbor, &datum.to_cbor())?,
        Attached::Tag(own) => inline_datum(cbor, &tag(*own)?)?,
        Attached::Other(data) => inline_datum(cbor, data)?,
        Attached::HashedEscrow(datum) => {
            cbor.u8(2)?.array(2)?.u8(0)?.bytes(&blake2b::<32>(&datum.to_cbor()))?;
        }
    }
    if output.has_script {
        script_reference(
            cbor,
            &whole(|cbor| cbor.array(2)?.u8(0).map(|cbor| cbor.writer_mut().extend_from_slice(TRIVIAL_SCRIPT)))?,
        )?;
    }
    Ok(())
}

fn value(cbor: &mut Cbor, value: &Value) -> Written {
    if value.tokens.is_empty() {
        cbor.u64(value.lovelace)?;
        return Ok(());
    }
    cbor.array(2)?.u64(value.lovelace)?;
    let mut policies: Vec<_> = value.tokens.keys().map(|(policy, _)| policy).collect();
    policies.dedup();
    cbor.map(policies.len() as u64)?;
    for policy in policies {
        let assets: Vec<_> = value.tokens.iter().filter(|((of, _), _)| of == policy).collect();
        cbor.bytes(policy.as_bytes())?.map(assets.len() as u64)?;
        for ((_, name), quantity) in assets {
            cbor.bytes(name)?.u64(*quantity)?;
        }
    }
    Ok(())
}

/// An output reference as Plutus V3 data: what tags a payment.
///
/// # Errors
/// As [`encode`].
pub fn tag(own: TxRef) -> Written<Vec<u8>> {
    whole(|cbor| {
        cbor.tag(Tag::new(121))?.begin_array()?.bytes(own.tx.as_bytes())?.u16(own.index)?.end()?;
        Ok(())
    })
}

fn hashed_datum(attached: &Attached) -> Option<Vec<u8>> {
    match attached {
        Attached::HashedEscrow(datum) => Some(datum.to_cbor()),
        _ => None,
    }
}

fn inline_datum(cbor: &mut Cbor, data: &[u8]) -> Written {
    cbor.u8(2)?.array(2)?.u8(1)?.tag(ENCODED_CBOR)?.bytes(data)?;
    Ok(())
}

fn script_reference(cbor: &mut Cbor, script: &[u8]) -> Written {
    cbor.u8(3)?.tag(ENCODED_CBOR)?.bytes(script)?;
    Ok(())
}

fn reference_output(script: &[u8]) -> Written<Vec<u8>> {
    whole(|cbor| {
        cbor.map(3)?.u8(0)?.bytes(&[&[0x60], [0xee; 28].as_slice()].concat())?.u8(1)?.u64(40_000_000)?;
        script_reference(cbor, &whole(|cbor| cbor.array(2)?.u8(3)?.bytes(script).map(|_| ()))?)
    })
}

fn reference(reference: TxRef) -> Written<Vec<u8>> {
    whole(|cbor| write_reference(cbor, reference))
}

fn write_reference(cbor: &mut Cbor, reference: TxRef) -> Written {
    cbor.array(2)?.bytes(reference.tx.as_bytes())?.u16(reference.index)?;
    Ok(())
}

fn whole(write: impl FnOnce(&mut Cbor) -> Written) -> Written<Vec<u8>> {
    let mut cbor = Encoder::new(Vec::new());
    write(&mut cbor)?;
    Ok(cbor.into_writer())
}
