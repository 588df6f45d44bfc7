//! Metadata of transactions by our own wallets: the id of the listing that is bought, or of the purchase whose creator
//! is paid.
//!
//! After a restore from an older backup, purchases are recovered from this metadata. The format is CIP-20, which
//! explorers display: label 674, `{"msg": [id]}`.

use cardano::{Address, tx::SignedTx};

/// Label of CIP-20 messages.
const LABEL: u64 = 674;
/// CBOR of a Conway transaction's auxiliary data, up to the value under label 674: `259({0: {674: ...}})`.
const AUXILIARY: [u8; 9] = *b"\xd9\x01\x03\xa1\x00\xa1\x19\x02\xa2";
/// CBOR of `{"msg": [text]}` up to the byte that gives the text's length.
const MESSAGE: [u8; 7] = *b"\xa1\x63msg\x81\x78";
/// Maximum bytes of a text in metadata.
const MAX_TEXT: usize = 64;

/// Encodes an id of 24 to 64 ASCII characters as auxiliary data. Returns `None` for other texts.
#[must_use]
pub(crate) fn auxiliary_data(subject: &str) -> Option<Vec<u8>> {
    let length = u8::try_from(subject.len()).ok().filter(|_| (24..=MAX_TEXT).contains(&subject.len()))?;
    Some([&AUXILIARY[..], &MESSAGE, &[length], subject.as_bytes()].concat())
}

/// Returns the id in a transaction's metadata. Returns `None` unless the owner of `signer` signed the transaction.
#[must_use]
pub(crate) fn read(tx: &SignedTx, signer: &Address) -> Option<String> {
    let signed = tx.vkey_witnesses.iter().any(|witness| witness.key_hash() == *signer.payment_key());
    let data = tx.auxiliary_data.as_ref().filter(|data| signed && tx.auxiliary_data_hash == Some(data.hash()))?;
    let (length, text) = data.label(LABEL).ok()??.strip_prefix(&MESSAGE)?.split_first()?;
    let text = std::str::from_utf8(text).ok()?;
    (usize::from(*length) == text.len()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_is_a_cip_20_message() {
        let id = "lst_01JD8ZC0000000000000000000";
        let expected = [b"\xd9\x01\x03\xa1\x00\xa1\x19\x02\xa2\xa1\x63msg\x81\x78\x1e", id.as_bytes()].concat();
        assert_eq!(auxiliary_data(id), Some(expected));
        assert!(auxiliary_data(&"a".repeat(64)).is_some());
        assert_eq!(auxiliary_data(&"a".repeat(65)), None);
        assert_eq!(auxiliary_data("short"), None);
    }
}
