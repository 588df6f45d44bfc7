//! A wallet's unspent output as CIP-30 hands it over (`TransactionUnspentOutput`): CBOR of `[input, output]`.

use pallas_codec::minicbor::Decoder;

use super::{
    cbor::{Error, ItemCount, unsupported},
    input, output,
};
use crate::{chain::Utxo, tx::MAX_TX_BYTES};

/// Bytes of an unspent output at most: the transaction that made it was as large at least.
pub const MAX_UNSPENT_OUTPUT: usize = MAX_TX_BYTES;

/// Bytes that are no unspent output: too many, not `[input, output]`, or more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the CBOR of an unspent output, [input, output]")]
pub struct NotAnUnspentOutput;

/// Reads an unspent output. That it is on the chain is only the wallet's claim: the ledger decides.
///
/// # Errors
/// See [`NotAnUnspentOutput`].
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
