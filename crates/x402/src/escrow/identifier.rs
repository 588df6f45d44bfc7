//! `blockchainIdentifier`: a lookup key with which tools of other Masumi services find a payment.
//!
//! ```text
//! hex(LZString.compressToUint8Array(sellerNonce agentIdentifier "." buyerNonce "." signature "." key "." escrow))
//! ```

use cardano::hash::to_hex;

/// Maximum size of a compressed identifier in bytes. The decompressed size can grow with the square of the compressed
/// size.
const MAX_COMPRESSED_BYTES: usize = 2_048;
const SELLER_NONCE_CHARS: usize = 64;

/// The parts of a `blockchainIdentifier`, each encoded as in the JSON of the requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockchainIdentifier {
    /// Seller's nonce, 64 hexadecimal characters.
    pub seller_nonce: String,
    /// Agent identifier in hex; empty for an unregistered seller.
    pub agent_identifier: String,
    /// Buyer's nonce in hex; may be empty.
    pub buyer_nonce: String,
    /// The seller's COSE_Sign1 signature in hex.
    pub reference_signature: String,
    /// The seller's COSE_Key in hex.
    pub reference_key: String,
    /// Address of the contract in bech32.
    pub contract_address: String,
}

/// The text is not a `blockchainIdentifier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a blockchainIdentifier")]
pub struct NotAnIdentifier;

impl BlockchainIdentifier {
    /// Returns the identifier's text before compression: the parts, concatenated as the module's comment shows.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { seller_nonce, agent_identifier, buyer_nonce, reference_signature, reference_key, contract_address } =
            self;
        format!(
            "{seller_nonce}{agent_identifier}.{buyer_nonce}.{reference_signature}.{reference_key}.{contract_address}"
        )
    }

    /// Encodes the identifier: compressed, in lowercase hex.
    #[must_use]
    pub fn encode(&self) -> String {
        to_hex(lz_str::compress_to_uint8_array(&self.text()))
    }

    /// Decodes an identifier from lowercase hex.
    ///
    /// # Errors
    /// [`NotAnIdentifier`] if the text is not an identifier, or has more than 2,048 compressed bytes.
    pub fn decode(text: &str) -> Result<Self, NotAnIdentifier> {
        if text.len() > MAX_COMPRESSED_BYTES.saturating_mul(2) || text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(NotAnIdentifier);
        }
        let compressed = hex::decode(text).map_err(|_| NotAnIdentifier)?;
        let units = lz_str::decompress_from_uint8_array(&compressed).ok_or(NotAnIdentifier)?;
        let text = String::from_utf16(&units).map_err(|_| NotAnIdentifier)?;
        let mut segments = text.split('.').map(str::to_owned);
        let mut next = || segments.next().ok_or(NotAnIdentifier);
        let (seller, buyer_nonce, reference_signature, reference_key, contract_address) =
            (next()?, next()?, next()?, next()?, next()?);
        if segments.next().is_some() {
            return Err(NotAnIdentifier);
        }
        let (nonce, agent) = seller.split_at_checked(SELLER_NONCE_CHARS).ok_or(NotAnIdentifier)?;
        Ok(Self {
            seller_nonce: nonce.to_owned(),
            agent_identifier: agent.to_owned(),
            buyer_nonce,
            reference_signature,
            reference_key,
            contract_address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ESCROW: &str = "addr_test1wzs4e6wc95hkwezlccjw9mdvq0r0rsgx6zk34avptga3ftgn37w4g";

    /// Returns both test vectors of scheme_exact_cardano.md, "Identity and compatibility identifier".
    fn vectors() -> [(BlockchainIdentifier, String, &'static str); 2] {
        let identifier = |nonce: &str, agent: String, buyer: &str, signature: &str, key: &str| BlockchainIdentifier {
            seller_nonce: nonce.repeat(32),
            agent_identifier: agent,
            buyer_nonce: buyer.to_owned(),
            reference_signature: signature.repeat(16),
            reference_key: key.to_owned(),
            contract_address: ESCROW.to_owned(),
        };
        let unregistered = identifier("11", String::new(), "", "55", "a10101");
        let registered = identifier("22", format!("{}01", "aa".repeat(28)), "01020304050607", "66", "a10102");
        [
            (
                unregistered,
                format!("{}..{}.a10101.{ESCROW}", "11".repeat(32), "55".repeat(16)),
                "230d7c6574f41d1c0acc96ade8eae04360019f607004d8809c07d005c053019cae007700bce8058680d89818c04e44002c035931a2c00daf5e00ac9bf00b6c401b80473c6535d00e6003cb8b110199db615001ca8eecc6019b58076c603b13763a80",
            ),
            (
                registered,
                format!("{}{}01.01020304050607.{}.a10102.{ESCROW}", "22".repeat(32), "aa".repeat(28), "66".repeat(16)),
                "130d7c6574f4218314e4b56f46e00602300e972d82c0662c0162c0562c0362c0763d6975b7d8f3b6f3874381e004d0402700fa005c0298067093803b802f19e4a6d05018c02715001601ac154a5006d36680560bb405b4100dc0239611ae64073001eb494192e4700e000e121e70240066610076240c0ae41e400000",
            ),
        ]
    }

    #[test]
    fn both_vectors_of_the_scheme_come_out_exactly_in_both_directions() {
        for (identifier, text, wire) in vectors() {
            assert_eq!(identifier.text(), text);
            assert_eq!(identifier.encode(), wire);
            assert_eq!(BlockchainIdentifier::decode(wire), Ok(identifier));
        }
    }

    #[test]
    fn malformed_identifiers_are_refused() {
        let compressed = |text: &str| hex::encode(lz_str::compress_to_uint8_array(text));
        let good = vectors()[0].2;
        for other in [
            String::new(),
            "zz".into(),
            "abc".into(),
            good.to_uppercase(),
            good[..good.len() - 8].to_owned(),
            "00".repeat(3_000),
            compressed("a.b.c.d.e"),
            compressed(&format!("{}....", "1".repeat(63))),
            compressed(&format!("{}...", "1".repeat(64))),
            compressed(&format!("{}.....", "1".repeat(64))),
        ] {
            assert_eq!(BlockchainIdentifier::decode(&other), Err(NotAnIdentifier), "{other}");
        }
        assert!(BlockchainIdentifier::decode(&compressed(&format!("{}....", "1".repeat(64)))).is_ok());
    }

    proptest! {
        #[test]
        fn an_identifier_round_trips(
            nonce in "[0-9a-f]{64}",
            agent in "([0-9a-f]{2}){0,60}",
            buyer in "([0-9a-f]{2}){0,13}",
            signature in "([0-9a-f]{2}){16,300}",
            key in "([0-9a-f]{2}){1,60}",
        ) {
            let identifier = BlockchainIdentifier {
                seller_nonce: nonce,
                agent_identifier: agent,
                buyer_nonce: buyer,
                reference_signature: signature,
                reference_key: key,
                contract_address: ESCROW.to_owned(),
            };
            prop_assert_eq!(BlockchainIdentifier::decode(&identifier.encode()), Ok(identifier));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = BlockchainIdentifier::decode(&hex::encode(bytes));
        }
    }
}
