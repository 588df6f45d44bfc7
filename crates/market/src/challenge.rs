//! Challenges that nothing has to remember: what a wallet is to sign is made again when the answer comes.
//!
//! ```text
//! nonce  = HMAC-SHA256(key, label LF owner LF window) in hex, and the number of a place in the window
//! digest = SHA-256(label LF owner LF nonce)          what the wallet signs
//! ```
//!
//! An answer carries the digest, not the nonce: the server makes every digest that it can have given this owner in the
//! last five minutes (ten windows of 128 places: one MAC for each window, one hash for each place) and looks for it.
//! Nobody without the key knows any of them before it is given out. Each is answered once: its digest is the
//! unique key of a row that is written with what the answer gives.

use cardano::{Address, ContentHash, hash::blake2b};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Length of a window, in ms.
const WINDOW_MS: u64 = 30_000;
/// Windows in which a challenge can be answered: that in which it was given, and those after it.
const WINDOWS: u64 = 10;
/// Challenges of one owner in one window.
const PLACES: u8 = 128;
/// How long a challenge can be answered at most, in ms; at least one window less.
pub const CHALLENGE_MS: u64 = WINDOWS * WINDOW_MS;
/// Separates the key of challenges from anything else ever derived from the same secret.
const KEY_DOMAIN: &[u8] = b"surety:challenges:v1";

/// The first line of what is signed: what an answer is good for.
const LABEL: &str = "service:signin:v1";

/// What an owner's wallet is to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Whose wallet is to sign.
    pub owner: Address,
    /// What it is to sign.
    pub digest: ContentHash,
    /// Until when, POSIX ms.
    pub expires_at: u64,
}

/// Gives challenges and knows them again.
pub struct Challenger(Hmac<Sha256>);

impl Challenger {
    /// With a key that is derived from a secret of the platform.
    ///
    /// # Errors
    /// `None` where no key can be made of the secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<Self> {
        let mut key = zeroize::Zeroizing::new([0_u8; 32]);
        Hkdf::<Sha256>::new(None, secret).expand(KEY_DOMAIN, key.as_mut()).ok()?;
        Some(Self(Hmac::new_from_slice(key.as_ref()).ok()?))
    }

    /// A challenge for an owner. Places count modulo 128, and equal ones within
    /// half a minute give equal challenges: take the next one each time.
    #[must_use]
    pub fn give(&self, owner: &Address, place: u8, now_ms: u64) -> Challenge {
        let number = now_ms / WINDOW_MS;
        let digest = self.window(owner, number).digest(place % PLACES);
        Challenge { owner: *owner, digest, expires_at: end(number) }
    }

    /// The live challenge that a wallet signed, by the payload of its signature: the digest, or its BLAKE2b-224 where the
    /// wallet signs a hash of the message. `None` where no live challenge of this owner has it.
    #[must_use]
    pub fn find(&self, owner: &Address, payload: &[u8], now_ms: u64) -> Option<Challenge> {
        let newest = now_ms / WINDOW_MS;
        let windows = (newest.saturating_sub(WINDOWS.saturating_sub(1))..=newest).rev();
        let is_it = |digest: &ContentHash| match payload.len() {
            32 => digest.as_bytes().as_slice() == payload,
            28 => blake2b::<28>(digest.as_bytes()).as_slice() == payload,
            _ => false,
        };
        if !matches!(payload.len(), 28 | 32) {
            return None;
        }
        windows.filter(|number| end(*number) > now_ms).find_map(|number| {
            let window = self.window(owner, number);
            let digest = (0..PLACES).map(|place| window.digest(place)).find(is_it)?;
            Some(Challenge { owner: *owner, digest, expires_at: end(number) })
        })
    }

    fn window(&self, owner: &Address, number: u64) -> ChallengeWindow {
        let owner = owner.to_string();
        let mut mac = self.0.clone();
        for part in [LABEL, "\n", &owner, "\n"] {
            mac.update(part.as_bytes());
        }
        mac.update(&number.to_be_bytes());
        let nonce = hex::encode(mac.finalize().into_bytes());
        let mut signed = Sha256::new();
        for part in [LABEL, "\n", &owner, "\n", &nonce] {
            signed.update(part.as_bytes());
        }
        ChallengeWindow(signed)
    }
}

/// The end of the last window in which a challenge of this window can be answered, POSIX ms.
const fn end(number: u64) -> u64 {
    number.saturating_add(WINDOWS).saturating_mul(WINDOW_MS)
}

/// All challenges of one owner and window, hashed up to the number of their place.
struct ChallengeWindow(Sha256);

impl ChallengeWindow {
    fn digest(&self, place: u8) -> ContentHash {
        ContentHash::new(self.0.clone().chain_update(hex::encode([place])).finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::keys::SigningKey;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const NOW: u64 = 1_750_000_012_345;

    fn challenger() -> Challenger {
        Challenger::new(&[7; 32]).unwrap()
    }

    fn owner(seed: u8) -> Address {
        SigningKey::from_seed(&[seed; 32]).unwrap().enterprise_address()
    }

    fn found(given: &Challenge, by: &Challenger, now: u64) -> Option<Challenge> {
        by.find(&given.owner, given.digest.as_bytes(), now)
    }

    #[test]
    fn a_challenge_is_known_again_until_it_expires_and_not_after() {
        let given = challenger().give(&owner(1), 9, NOW);
        assert!(given.expires_at - NOW <= CHALLENGE_MS && given.expires_at - NOW > CHALLENGE_MS - WINDOW_MS);
        for now in [NOW, NOW + 60_000, NOW + 4 * 60_000, given.expires_at - 1] {
            assert_eq!(found(&given, &challenger(), now).as_ref(), Some(&given));
        }
        for now in [given.expires_at, given.expires_at + WINDOW_MS, given.expires_at + 50 * WINDOW_MS] {
            assert_eq!(found(&given, &challenger(), now), None, "{now}");
        }
        assert_eq!(found(&given, &challenger(), NOW - WINDOW_MS), None, "from a window to come");
    }

    #[test]
    fn a_wallet_that_signs_the_hash_of_a_message_is_understood() {
        let given = challenger().give(&owner(1), 255, NOW);
        let payload = blake2b::<28>(given.digest.as_bytes());
        assert_eq!(challenger().find(&owner(1), &payload, NOW), Some(given));
    }

    #[test]
    fn another_owner_or_key_has_other_challenges() {
        let given = challenger().give(&owner(1), 0, NOW);
        let ours = challenger();
        assert!(found(&given, &ours, NOW).is_some());
        assert!(found(&given, &Challenger::new(&[8; 32]).unwrap(), NOW).is_none());
        assert!(ours.find(&owner(2), given.digest.as_bytes(), NOW).is_none());
    }

    #[test]
    fn every_place_of_every_window_has_a_challenge_of_its_own() {
        let ours = challenger();
        let times = (0..10).map(|window| NOW + window * WINDOW_MS);
        let all = times.flat_map(|now| (0..PLACES).map(move |place| (place, now)));
        let digests: BTreeSet<String> =
            all.map(|(place, now)| ours.give(&owner(1), place, now).digest.to_string()).collect();
        assert_eq!(digests.len(), 1_280);
    }

    proptest! {
        #[test]
        fn what_was_not_given_is_not_found(payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(challenger().find(&owner(1), &payload, NOW), None);
        }
    }
}
