//! Rule 6, inline datums: their byte strings must be short enough for the ledger.
//!
//! Within Plutus data, the ledger rejects byte strings of more than 64 bytes; longer ones must be split into chunks
//! (Conway CDDL, `bounded_bytes`). A more lenient check would accept payments that no block can include.

use cardano::tx::OutputDatum;
use pallas_codec::minicbor::{data::Token, decode::Tokenizer};

use super::PaymentContext;
use crate::Refusal;

const MAX_CHUNK_BYTES: usize = 64;

refusals! {
    /// A datum that the ledger rejects.
    #[derive(Copy)]
    pub enum InvalidDatum {
        /// A byte string of more than 64 bytes, in the datum of the output at this index, is not split into chunks.
        #[error("the datum of output {0} has a byte string of more than 64 bytes: write it in chunks of at most 64")]
        LongByteString(usize) => "invalid_exact_cardano_payload_datum_byte_string_too_long",
    }
}

/// Checks that no byte string or chunk in an output's inline datum has more than 64 bytes.
pub fn byte_strings_are_short(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let long = case.payment.tx.outputs.iter().position(|output| match &output.datum {
        Some(OutputDatum::Inline(cbor)) => has_long_bytes(cbor),
        _ => false,
    });
    long.map_or(Ok(()), |output| Err(InvalidDatum::LongByteString(output).into()))
}

/// Returns `true` if CBOR contains a byte string or chunk of more than 64 bytes. The CBOR is well formed, because
/// malformed CBOR was rejected when the transaction was decoded.
fn has_long_bytes(cbor: &[u8]) -> bool {
    Tokenizer::new(cbor).any(|token| matches!(token, Ok(Token::Bytes(bytes)) if bytes.len() > MAX_CHUNK_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: u8) -> Vec<u8> {
        let mut cbor = vec![0x58, length];
        cbor.resize(2 + usize::from(length), 7);
        cbor
    }

    #[test]
    fn a_byte_string_of_more_than_64_bytes_is_found_wherever_it_is() {
        let nested: fn(Vec<u8>) -> Vec<u8> =
            |inner| [&[0xd8, 0x79, 0x9f, 0x01, 0xa1, 0x00], &inner[..], &[0xff]].concat();
        let big_number: fn(Vec<u8>) -> Vec<u8> = |inner| [&[0xc2], &inner[..]].concat();
        let chunks: fn(Vec<u8>) -> Vec<u8> = |inner| [&[0x5f, 0x41, 0x07], &inner[..], &[0xff]].concat();
        for wrap in [|inner| inner, nested, big_number, chunks] {
            assert!(!has_long_bytes(&wrap(bytes(64))));
            assert!(has_long_bytes(&wrap(bytes(65))));
        }
        let long_in_chunks = [&[0x5f][..], &bytes(64), &bytes(64), &bytes(9), &[0xff]].concat();
        assert!(!has_long_bytes(&long_in_chunks));
    }
}
