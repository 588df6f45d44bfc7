//! Recovery phrases (BIP-39), and the first keys of their first account (CIP-1852, CIP-11), derived like in other
//! Cardano wallets (CIP-3, Icarus; BIP32-Ed25519).

use bip39::Mnemonic;
use cardano::{KeyHash, keys::SigningKey};
use ed25519_bip32::{DerivationScheme, XPRV_SIZE, XPrv};
use sha2::Sha512;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// Rounds of PBKDF2 (CIP-3, Icarus).
const ROUNDS: u32 = 4096;
/// Flag of hardened indexes, whose public keys cannot be derived from the parent's.
const HARDENED: u32 = 1 << 31;
/// `m / 1852' / 1815' / 0'`: purpose, ADA, the first account.
const ACCOUNT: [u32; 3] = [1852 | HARDENED, 1815 | HARDENED, HARDENED];
/// Paths below the account: the first external payment key, and the first stake key.
const PAYMENT: [u32; 2] = [0, 0];
const STAKE: [u32; 2] = [2, 0];

/// A recovery phrase. It is zeroized when dropped, and never printed.
pub struct Phrase(Mnemonic);

impl Phrase {
    /// Generates 24 words.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn random() -> Result<Self, Failure> {
        let entropy = Zeroizing::new(crate::random()?);
        Mnemonic::from_entropy(entropy.as_ref()).map(Self).map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Parses a phrase of 12, 15, 18, 21 or 24 English words with a valid checksum.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Mnemonic::parse(text).ok().map(Self)
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.to_string())
    }

    /// Derives the payment key, whose address has the account's stake credential.
    ///
    /// # Errors
    /// None is known for a valid phrase.
    pub fn key(&self) -> Result<SigningKey, Failure> {
        let entropy = Zeroizing::new(self.0.to_entropy());
        let mut root = Zeroizing::new([0; XPRV_SIZE]);
        pbkdf2::pbkdf2_hmac::<Sha512>(b"", &entropy, ROUNDS, root.as_mut());
        let account = derive(XPrv::normalize_bytes_force3rd(*root), &ACCOUNT);
        let stake = KeyHash::of_public_key(&derive(account.clone(), &STAKE).public().public_key());
        let key = SigningKey::from_extended(derive(account, &PAYMENT).extended_secret_key_bytes(), stake);
        key.map_err(|error| Failure::Refused(format!("these words make no key: {error}")))
    }
}

fn derive(key: XPrv, path: &[u32]) -> XPrv {
    path.iter().fold(key, |key, index| key.derive(DerivationScheme::V2, *index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A public phrase, and its address on preprod according to lucid-evolution 0.4.34 and Mesh 1.9.1.
    const WORDS: &str = "test test test test test test test test test test test test test test test test test test test test test test test sauce";
    const ADDRESS: &str =
        "addr_test1qryvgass5dsrf2kxl3vgfz76uhp83kv5lagzcp29tcana68ca5aqa6swlq6llfamln09tal7n5kvt4275ckwedpt4v7q48uhex";
    const PUBLIC: &str = "6ea31d27d585439ea8fd9cd8e6664ed83e605c06aec24d32dfaba488e49287d9";

    #[test]
    fn a_phrase_opens_the_wallet_that_other_libraries_open() {
        let phrase = Phrase::read(WORDS).unwrap();
        let key = phrase.key().unwrap();
        assert_eq!(key.address().to_string(), ADDRESS);
        assert_eq!(hex::encode(key.public_key()), PUBLIC);
        assert_eq!(phrase.words().as_str(), WORDS);
    }

    #[test]
    fn a_phrases_signatures_equal_those_of_other_libraries() {
        let key = Phrase::read(WORDS).unwrap().key().unwrap();
        // Mesh's signData of "hello" at the address: the Sig_structure (CIP-8), and its signature.
        let address = "00c8c47610a36034aac6fc58848bdae5c278d994ff502c05455e3b3ee8f8ed3a0eea0ef835ffa7bbfcde55f7fe9d2cc5d55ea62cecb42bab3c";
        let headers = format!("a30127045820{PUBLIC}67616464726573735839{address}");
        let signed = hex::decode(format!("846a5369676e6174757265315869{headers}404568656c6c6f")).unwrap();
        let theirs = "690759841f2fbae158868309fb2b0d0da04be41699e9d071151df34d606fc04b05096b4c97fe8793bf5ce37a86ecfcc82fec2268b58be6de7c19d29d9fb7c80f";
        assert_eq!(hex::encode(key.sign(&signed)), theirs);
    }

    #[test]
    fn new_phrases_have_24_words_and_differ() {
        let [one, other] = [Phrase::random().unwrap(), Phrase::random().unwrap()];
        assert_eq!(one.words().split(' ').count(), 24);
        assert_ne!(one.words(), other.words());
        assert_eq!(Phrase::read(&one.words()).unwrap().key().unwrap().address(), one.key().unwrap().address());
    }

    #[test]
    fn an_invalid_phrase_is_refused() {
        for bad in
            ["", "test", &WORDS.replace("sauce", "test"), &WORDS.replace("sauce", "suace"), &format!("{WORDS} test")]
        {
            assert!(Phrase::read(bad).is_none(), "{bad}");
        }
    }
}
