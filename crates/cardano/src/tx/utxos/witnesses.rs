//! Finds the inputs that have a redeemer, the only part of the witness set that matters for a transaction's effects.

use std::collections::BTreeSet;

use pallas_codec::minicbor::{Decoder, data::Type};

use super::cbor::{Error, ItemCount};

const REDEEMERS: u64 = 5;
/// Number that marks the redeemer of an input (CDDL, `redeemer_tag`).
const SPEND: u64 = 0;

/// Returns the indexes, in the ledger's order of all inputs, of the inputs that have a redeemer.
pub(super) fn spending_redeemers(decoder: &mut Decoder<'_>) -> Result<BTreeSet<usize>, Error> {
    let mut indices = BTreeSet::new();
    let mut fields = ItemCount::of_map(decoder)?;
    while fields.more(decoder)? {
        if decoder.u64()? == REDEEMERS {
            indices = redeemers(decoder)?;
        } else {
            decoder.skip()?;
        }
    }
    Ok(indices)
}

/// Reads redeemers in the form `[[tag, index, data, units], ...]`, or since Conway `{[tag, index]: [data, units],
/// ...}`. Returns the indexes of the redeemers that spend an input.
fn redeemers(decoder: &mut Decoder<'_>) -> Result<BTreeSet<usize>, Error> {
    let keyed = matches!(decoder.datatype()?, Type::Map | Type::MapIndef);
    let mut all = if keyed { ItemCount::of_map(decoder)? } else { ItemCount::of_array(decoder)? };
    let mut indices = BTreeSet::new();
    while all.more(decoder)? {
        let mut fields = ItemCount::of_array(decoder)?;
        fields.expect(decoder)?;
        let tag = decoder.u64()?;
        fields.expect(decoder)?;
        let index = decoder.u64()?;
        while fields.more(decoder)? {
            decoder.skip()?;
        }
        if keyed {
            decoder.skip()?;
        }
        if tag == SPEND {
            indices.extend(usize::try_from(index).ok());
        }
    }
    Ok(indices)
}
