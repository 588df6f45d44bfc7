//! Decodes the transaction body, a map with small integer keys.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    DecodeError, TxPart,
    cbor::{CborError, Reader},
    output::{self, Output, lovelace},
};
use crate::{
    hash::{KeyHash, TxHash, TxRef},
    money::Lovelace,
};

/// The fields of a transaction body that occur in payments.
pub(super) struct Body {
    pub(super) inputs: Vec<TxRef>,
    pub(super) outputs: Vec<Output>,
    pub(super) fee: Lovelace,
    pub(super) ttl: Option<u64>,
    pub(super) validity_start: Option<u64>,
    pub(super) network_id: Option<u8>,
    pub(super) required_signers: Vec<KeyHash>,
    pub(super) auxiliary_data_hash: Option<[u8; 32]>,
}

pub(super) fn read(bytes: &[u8], parts: &mut BTreeMap<TxPart, Vec<u8>>) -> Result<Body, DecodeError> {
    let mut reader = Reader::new(bytes);
    let reader = &mut reader;
    let (mut inputs, mut outputs, mut fee) = (None, None, None);
    let (mut ttl, mut validity_start, mut network_id, mut auxiliary_data_hash) = (None, None, None, None);
    let mut required_signers = Vec::new();
    let mut fields = reader.record(Reader::map).map_err(|_| DecodeError::Malformed("body"))?;
    while reader.more(&mut fields)? {
        let key = reader.uint().map_err(|_| DecodeError::Malformed("body"))?;
        let part = match key {
            0 => {
                inputs = Some(set(reader, "input", input)?);
                continue;
            }
            1 => {
                outputs = Some(output_list(reader)?);
                continue;
            }
            2 => {
                fee = Some(lovelace(reader, "fee")?);
                continue;
            }
            3 => {
                ttl = Some(reader.uint().map_err(|_| DecodeError::Malformed("TTL"))?);
                continue;
            }
            7 => {
                auxiliary_data_hash = Some(reader.hash().map_err(|_| DecodeError::Malformed("auxiliary data hash"))?);
                continue;
            }
            8 => {
                validity_start = Some(reader.uint().map_err(|_| DecodeError::Malformed("validity start"))?);
                continue;
            }
            14 => {
                required_signers = set(reader, "required signer", |reader| reader.hash().map(KeyHash::new))?;
                continue;
            }
            15 => {
                network_id = Some(network(reader)?);
                continue;
            }
            6 => return Err(DecodeError::OldEra("a protocol parameter update in a transaction")),
            4 => TxPart::Certificates,
            5 => TxPart::Withdrawals,
            9 => TxPart::Mint,
            11 => TxPart::ScriptDataHash,
            13 => TxPart::CollateralInputs,
            16 => TxPart::CollateralReturn,
            17 => TxPart::TotalCollateral,
            18 => TxPart::ReferenceInputs,
            19 => TxPart::VotingProcedures,
            20 => TxPart::ProposalProcedures,
            21 => TxPart::TreasuryValue,
            22 => TxPart::Donation,
            key => return Err(DecodeError::UnknownField { place: "transaction body", key }),
        };
        parts.insert(part, reader.skip()?.to_vec());
    }
    Ok(Body {
        inputs: inputs.ok_or(DecodeError::Missing("inputs"))?,
        outputs: outputs.ok_or(DecodeError::Missing("outputs"))?,
        fee: fee.ok_or(DecodeError::Missing("fee"))?,
        ttl,
        validity_start,
        network_id,
        required_signers,
        auxiliary_data_hash,
    })
}

/// Decodes a set, which must not be empty and must not contain an element twice. `name` names it in errors.
pub(super) fn set<T: Ord + Copy>(
    reader: &mut Reader<'_>,
    name: &'static str,
    element: impl Fn(&mut Reader<'_>) -> Result<T, CborError>,
) -> Result<Vec<T>, DecodeError> {
    let mut items = reader.set().map_err(|_| DecodeError::Malformed(name))?;
    let (mut list, mut seen) = (Vec::new(), BTreeSet::new());
    while reader.more(&mut items)? {
        let value = element(reader).map_err(|_| DecodeError::Malformed(name))?;
        if !seen.insert(value) {
            return Err(DecodeError::Duplicate(name));
        }
        list.push(value);
    }
    if list.is_empty() { Err(DecodeError::Empty(name)) } else { Ok(list) }
}

fn input(reader: &mut Reader<'_>) -> Result<TxRef, CborError> {
    let mut pair = reader.record(Reader::array)?;
    reader.expect(&mut pair)?;
    let tx = TxHash::new(reader.hash()?);
    reader.expect(&mut pair)?;
    let index = u16::try_from(reader.uint()?).map_err(|_| CborError::Type)?;
    reader.end(&mut pair)?;
    Ok(TxRef { tx, index })
}

fn output_list(reader: &mut Reader<'_>) -> Result<Vec<Output>, DecodeError> {
    let mut items = reader.array().map_err(|_| DecodeError::Malformed("outputs"))?;
    let mut list = Vec::new();
    while reader.more(&mut items)? {
        list.push(output::read(reader)?);
    }
    Ok(list)
}

fn network(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    match reader.uint() {
        Ok(0) => Ok(0),
        Ok(1) => Ok(1),
        _ => Err(DecodeError::Malformed("network id")),
    }
}
