//! What a transaction of our wallets pays for, in its metadata: the id of a listing, or of the purchase whose creator is
//! paid. The chain then tells what a database restored from an older backup does not.
//!
//! The form is CIP-20's, which explorers show: label 674, `{"msg": [id]}`.

use cardano::{Address, tx::SignedTx};

/// CIP-20's label of transaction messages.
const LABEL: u64 = 674;
/// The tag and the maps around label 674 (Conway): `259({0: {674: ...}})`.
const AUXILIARY: [u8; 9] = *b"\xd9\x01\x03\xa1\x00\xa1\x19\x02\xa2";
/// `{"msg": [text]}`, up to the text's length in one byte.
const MESSAGE: [u8; 7] = *b"\xa1\x63msg\x81\x78";
/// Bytes of a text in metadata at most.
const MAX_TEXT: usize = 64;

/// The auxiliary data of a transaction that is for this. Ids are ASCII of 24 to 64 characters; `None` for another text.
#[must_use]
pub(crate) fn auxiliary_data(subject: &str) -> Option<Vec<u8>> {
    let length = u8::try_from(subject.len()).ok().filter(|_| (24..=MAX_TEXT).contains(&subject.len()))?;
    Some([&AUXILIARY[..], &MESSAGE, &[length], subject.as_bytes()].concat())
}

/// What this transaction is for, where the owner of an address signed it and it says so.
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
