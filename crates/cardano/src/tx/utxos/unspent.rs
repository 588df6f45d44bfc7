//! Decodes a wallet's unspent output in CIP-30's form (`TransactionUnspentOutput`): CBOR of `[input, output]`.

use pallas_codec::minicbor::Decoder;

use super::{
    cbor::{Error, ItemCount, unsupported},
    input, output,
};
use crate::{chain::Utxo, tx::MAX_TX_BYTES};

/// Maximum size of an encoded unspent output, in bytes. The transaction that created the output was at least as large.
pub const MAX_UNSPENT_OUTPUT: usize = MAX_TX_BYTES;

/// The bytes are too long, or not exactly one pair `[input, output]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the CBOR of an unspent output, [input, output]")]
pub struct NotAnUnspentOutput;

/// Decodes an unspent output that a wallet sent. Does not check that the output exists; the ledger does so when the
/// output is spent.
///
/// # Errors
/// [`NotAnUnspentOutput`] if the bytes are too long or not exactly one pair `[input, output]`.
pub fn read_unspent(bytes: &[u8]) -> Result<Utxo, NotAnUnspentOutput> {
    if bytes.len() > MAX_UNSPENT_OUTPUT {
        return Err(NotAnUnspentOutput);
    }
    let mut decoder = Decoder::new(bytes);
    let read = pair(&mut decoder).map_err(|_| NotAnUnspentOutput)?;
    if decoder.position() == bytes.len() { Ok(read) } else { Err(NotAnUnspentOutput) }
}

fn pair(decoder: &mut Decoder<'_>) -> Result<Utxo, Error> {
    let mut pair = ItemCount::of_array(decoder)?;
    pair.expect(decoder)?;
    let reference = input(decoder)?;
    pair.expect(decoder)?;
    let output = output::read(decoder)?;
    if pair.more(decoder)? { Err(unsupported()) } else { Ok(output.at(reference)) }
}
