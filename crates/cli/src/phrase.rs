//! A wallet as people store it: a recovery phrase (BIP-39). The keys of its first account are derived as Cardano
//! wallets do (CIP-1852, CIP-11; CIP-3, Icarus; BIP32-Ed25519).

use std::fmt;

use bip39::{Language, Mnemonic};
use cardano::{KeyHash, keys::SigningKey};
use ed25519_bip32::{DerivationScheme, XPRV_SIZE, XPrv};
use serde::{Deserialize, Serialize};
use sha2::Sha512;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// Number of rounds of PBKDF2 (CIP-3, Icarus).
const ROUNDS: u32 = 4096;
/// Flag that marks a hardened index. The public key of a hardened key cannot be derived from its parent's public key.
const HARDENED: u32 = 1 << 31;
/// Path of the first account, `m / 1852' / 1815' / 0'`: purpose, ADA, account.
const ACCOUNT: [u32; 3] = [1852 | HARDENED, 1815 | HARDENED, HARDENED];
/// Position of the staking key below an account.
const STAKE: Position = Position { role: 2, index: 0 };

/// The position of a key below its account (CIP-1852).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Role of the key's address: 0 to receive payments, 1 to receive change.
    pub role: u32,
    pub index: u32,
}

impl Position {
    /// Position of the first address of an account.
    pub const FIRST: Self = Self { role: 0, index: 0 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m/1852'/1815'/0'/{}/{}", self.role, self.index)
    }
}

/// Reason why a text is not a recovery phrase. The message does not quote any word of the text, because a misspelt word
/// of a real phrase would reveal it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPhrase {
    #[error("a recovery phrase has 12, 15, 18, 21 or 24 words, and this text has {0}")]
    Count(usize),
    /// The word at this position, counted from 1, is not in BIP-39's list.
    #[error("word {0} is not one of the English words of recovery phrases (BIP-39): check its spelling")]
    Unknown(usize),
    #[error(
        "every word is known, but their checksum does not fit: one of them is another word, or they are in another order"
    )]
    Checksum,
}

/// A recovery phrase (BIP-39). Its memory is zeroized on drop. It is printed only on request.
pub struct Phrase(Mnemonic);

/// Account 0 of a recovery phrase (CIP-1852). This program uses no other account.
pub struct Account {
    key: XPrv,
    stake: KeyHash,
}

impl Phrase {
    /// Generates a recovery phrase of 24 words.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no randomness.
    pub fn random() -> Result<Self, Failure> {
        let entropy = Zeroizing::new(crate::random()?);
        Mnemonic::from_entropy(entropy.as_ref()).map(Self).map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Parses a recovery phrase as people write it. Ignores case, and accepts any white space between words.
    ///
    /// # Errors
    /// Returns [`NoPhrase`] if the text is not a recovery phrase.
    pub fn read(text: &str) -> Result<Self, NoPhrase> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let plain = Zeroizing::new(words.join(" ").to_lowercase());
        Mnemonic::parse_in(Language::English, plain.as_str()).map(Self).map_err(|error| match error {
            bip39::Error::BadWordCount(_) => NoPhrase::Count(words.len()),
            bip39::Error::UnknownWord(index) => NoPhrase::Unknown(index.saturating_add(1)),
            _ => NoPhrase::Checksum,
        })
    }

    /// Returns the words, separated by spaces.
    #[must_use]
    pub fn words(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.to_string())
    }

    /// Derives the keys of account number 0.
    #[must_use]
    pub fn account(&self) -> Account {
        let entropy = Zeroizing::new(self.0.to_entropy());
        let mut root = Zeroizing::new([0; XPRV_SIZE]);
        pbkdf2::pbkdf2_hmac::<Sha512>(b"", &entropy, ROUNDS, root.as_mut());
        let key = derive(XPrv::normalize_bytes_force3rd(*root), &ACCOUNT);
        let stake = derive(key.clone(), &[STAKE.role, STAKE.index]);
        Account { stake: KeyHash::of_public_key(&stake.public().public_key()), key }
    }
}

impl Account {
    /// Derives the key at a position. The address of the key includes the account's stake credential.
    ///
    /// # Errors
    /// Never returns an error in practice for a valid phrase.
    pub fn key(&self, Position { role, index }: Position) -> Result<SigningKey, Failure> {
        let key = derive(self.key.clone(), &[role, index]);
        let key = SigningKey::from_extended(key.extended_secret_key_bytes(), self.stake);
        key.map_err(|error| Failure::Refused(format!("these words make no key: {error}")))
    }
}

fn derive(key: XPrv, path: &[u32]) -> XPrv {
    path.iter().fold(key, |key, index| key.derive(DerivationScheme::V2, *index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A publicly known phrase. The libraries lucid-evolution 0.4.34 and Mesh 1.9.1 derive the same first address on
    /// preprod.
    const WORDS: &str = "test test test test test test test test test test test test test test test test test test test test test test test sauce";
    const ADDRESS: &str =
        "addr_test1qryvgass5dsrf2kxl3vgfz76uhp83kv5lagzcp29tcana68ca5aqa6swlq6llfamln09tal7n5kvt4275ckwedpt4v7q48uhex";
    const PUBLIC: &str = "6ea31d27d585439ea8fd9cd8e6664ed83e605c06aec24d32dfaba488e49287d9";

    #[test]
    fn a_phrase_opens_the_wallet_that_other_libraries_open() {
        let phrase = Phrase::read(WORDS).unwrap();
        let key = phrase.account().key(Position::FIRST).unwrap();
        assert_eq!(key.address().to_string(), ADDRESS);
        assert_eq!(hex::encode(key.public_key()), PUBLIC);
        assert_eq!(phrase.words().as_str(), WORDS);
    }

    #[test]
    fn a_phrases_signatures_equal_those_of_other_libraries() {
        let key = Phrase::read(WORDS).unwrap().account().key(Position::FIRST).unwrap();
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
        assert_eq!(
            Phrase::read(&one.words()).unwrap().account().key(Position::FIRST).unwrap().address(),
            one.account().key(Position::FIRST).unwrap().address()
        );
    }

    #[test]
    fn a_phrase_in_capitals_or_on_several_lines_is_the_same() {
        let written = WORDS.to_uppercase().replace(' ', " \r\n\t");
        assert_eq!(Phrase::read(&format!("\n {written} ")).unwrap().words().as_str(), WORDS);
    }

    #[test]
    fn an_invalid_phrase_is_refused_with_the_reason() {
        for (bad, why) in [
            (String::new(), NoPhrase::Count(0)),
            ("test".into(), NoPhrase::Count(1)),
            (format!("{WORDS} test"), NoPhrase::Count(25)),
            (WORDS.replace("sauce", "suace"), NoPhrase::Unknown(24)),
            (WORDS.replacen("test", "tset", 1), NoPhrase::Unknown(1)),
            (WORDS.replace("sauce", "test"), NoPhrase::Checksum),
        ] {
            assert_eq!(Phrase::read(&bad).err(), Some(why), "{bad}");
            assert!(!why.to_string().contains("suace"));
        }
    }
}
