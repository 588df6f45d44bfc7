//! Challenges: digests that a wallet signs to prove ownership of an address, valid once and for five minutes.
//!
//! ```text
//! digest = SHA-256(label LF owner LF nonce)       signed by the wallet
//! key    = BLAKE2b-224(digest), hexadecimal       key of the entry in `Challenges`, Workers KV
//! ```
//!
//! A signature contains the digest, or its BLAKE2b-224 if the wallet signs a hash (CIP-8); both yield the key. Only the
//! requester learns the digest, so requests for the same owner do not affect each other.
//!
//! KV is eventually consistent and cannot ensure single use. An answer that arrives before the challenge's entry is
//! visible is rejected. A unique key in the database decides which answer is first: `challenge_claims.digest` for
//! sessions, `oauth_grants.request` for consents.

use cardano::{Address, ContentHash, hash::blake2b, slots::Millis};
use serde::{Deserialize, Serialize};

/// Lifetime of a challenge in ms.
pub const CHALLENGE_MS: Millis = 5 * 60 * 1_000;

/// Purpose of a challenge. The wallet's answer is valid for this purpose only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// Signing in to an account.
    SignIn,
    /// Giving an agent access. The text is the id of the agent's consent request.
    Connect(String),
}

impl Purpose {
    /// Returns the first line of the text whose digest is signed.
    const fn label(&self) -> &'static str {
        match self {
            Self::SignIn => "service:signin:v1",
            Self::Connect(_) => "service:connect:v1",
        }
    }
}

/// A challenge for an owner's wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Address whose key must sign.
    pub owner: Address,
    /// Nonce of the challenge: 256 random bits, hexadecimal.
    pub nonce: String,
    /// Digest to sign.
    pub digest: ContentHash,
    /// Expiry, POSIX ms.
    pub expires_at: Millis,
}

/// Store of unexpired challenges.
pub trait Challenges {
    /// Stores a value under a new key until `expires_at`.
    fn put(&self, key: &str, text: &str, expires_at: Millis) -> impl Future<Output = Result<(), ChallengesError>>;

    /// Returns the value of a key. `None` may also mean that a new value is not visible yet.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<String>, ChallengesError>>;
}

/// The challenge store failed or is full. The request can be retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("challenges: {0}")]
pub struct ChallengesError(pub String);

/// Stored form of a challenge. The digest is left out, so that the store does not reveal valid answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    purpose: Purpose,
    owner: Address,
    nonce: String,
    expires_at: Millis,
}

fn digest(purpose: &Purpose, owner: &Address, nonce: &str) -> ContentHash {
    ContentHash::of(format!("{}\n{owner}\n{nonce}", purpose.label()).as_bytes())
}

fn key(digest: &[u8]) -> String {
    hex::encode(blake2b::<28>(digest))
}

/// Creates and stores a challenge. `random` becomes its nonce.
///
/// # Errors
/// Returns an error if the store failed.
pub async fn give(
    store: &impl Challenges,
    purpose: Purpose,
    owner: Address,
    random: [u8; 32],
    now: Millis,
) -> Result<Challenge, ChallengesError> {
    let (nonce, expires_at) = (hex::encode(random), now.saturating_add(CHALLENGE_MS));
    let digest = digest(&purpose, &owner, &nonce);
    let entry = Entry { purpose, owner, nonce: nonce.clone(), expires_at };
    let text = serde_json::to_string(&entry).map_err(|error| ChallengesError(error.to_string()))?;
    store.put(&key(digest.as_bytes()), &text, expires_at).await?;
    Ok(Challenge { owner, nonce, digest, expires_at })
}

/// Finds an owner's unexpired challenge by the payload that a wallet signed, which is the challenge's digest or the
/// digest's BLAKE2b-224. Returns `None` if there is no such challenge.
///
/// # Errors
/// Returns an error if the store failed or its entry is malformed.
pub async fn find(
    store: &impl Challenges,
    purpose: &Purpose,
    owner: &Address,
    payload: &[u8],
    now: Millis,
) -> Result<Option<Challenge>, ChallengesError> {
    let key = match payload.len() {
        28 => hex::encode(payload),
        32 => key(payload),
        _ => return Ok(None),
    };
    let Some(text) = store.get(&key).await? else { return Ok(None) };
    let entry: Entry = serde_json::from_str(&text).map_err(|error| ChallengesError(error.to_string()))?;
    let digest = digest(&entry.purpose, &entry.owner, &entry.nonce);
    // The store may delete expired entries late.
    let live = now < entry.expires_at && entry.purpose == *purpose && entry.owner == *owner;
    Ok(live.then_some(Challenge { owner: *owner, nonce: entry.nonce, digest, expires_at: entry.expires_at }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::keys::SigningKey;
    use futures_lite::future::block_on;
    use std::{cell::RefCell, collections::BTreeMap};

    const NOW: Millis = 1_750_000_012_345;

    /// An in-memory store that can simulate the faults of a distributed one.
    #[derive(Default)]
    struct Store {
        kept: RefCell<BTreeMap<String, String>>,
        refuses: bool,
    }

    impl Challenges for Store {
        async fn put(&self, key: &str, text: &str, _: Millis) -> Result<(), ChallengesError> {
            if self.refuses {
                return Err(ChallengesError("429".into()));
            }
            assert!(self.kept.borrow_mut().insert(key.into(), text.into()).is_none(), "a key is written once");
            Ok(())
        }

        async fn get(&self, key: &str) -> Result<Option<String>, ChallengesError> {
            if self.refuses { Err(ChallengesError("429".into())) } else { Ok(self.kept.borrow().get(key).cloned()) }
        }
    }

    fn owner(seed: u8) -> Address {
        SigningKey::from_seed(&[seed; 32]).unwrap().enterprise_address()
    }

    fn given(store: &Store, purpose: &Purpose, random: u8) -> Challenge {
        block_on(give(store, purpose.clone(), owner(1), [random; 32], NOW)).unwrap()
    }

    fn found(store: &Store, purpose: &Purpose, owner: &Address, payload: &[u8], now: Millis) -> Option<Challenge> {
        block_on(find(store, purpose, owner, payload, now)).unwrap()
    }

    #[test]
    fn a_challenge_expires_after_five_minutes_though_the_store_still_has_it() {
        let store = Store::default();
        let challenge = given(&store, &Purpose::SignIn, 1);
        assert_eq!(challenge.expires_at, NOW + 300_000);
        let at = |now| found(&store, &Purpose::SignIn, &owner(1), challenge.digest.as_bytes(), now);
        assert_eq!(at(NOW), Some(challenge.clone()));
        assert_eq!(at(NOW + 299_999), Some(challenge.clone()));
        assert_eq!(at(NOW + 300_000), None);
    }

    #[test]
    fn the_store_does_not_hold_what_answers_a_challenge() {
        let store = Store::default();
        let digest = given(&store, &Purpose::SignIn, 1).digest.to_string();
        assert!(store.kept.borrow().iter().all(|(key, text)| !key.contains(&digest) && !text.contains(&digest)));
    }

    #[test]
    fn the_nonce_lets_a_client_check_what_it_signs() {
        let store = Store::default();
        for (purpose, label) in
            [(Purpose::SignIn, "service:signin:v1"), (Purpose::Connect("request".into()), "service:connect:v1")]
        {
            let challenge = given(&store, &purpose, 1);
            let text = format!("{label}\n{}\n{}", owner(1), challenge.nonce);
            assert_eq!(challenge.digest, ContentHash::of(text.as_bytes()));
        }
    }

    #[test]
    fn a_wallet_that_signs_the_messages_hash_is_accepted() {
        let store = Store::default();
        let challenge = given(&store, &Purpose::SignIn, 1);
        let hashed = blake2b::<28>(challenge.digest.as_bytes());
        assert_eq!(found(&store, &Purpose::SignIn, &owner(1), &hashed, NOW), Some(challenge));
    }

    #[test]
    fn a_challenge_is_accepted_for_its_owner_and_purpose_alone() {
        let store = Store::default();
        let purposes = [Purpose::SignIn, Purpose::Connect("one".into()), Purpose::Connect("two".into())];
        for (random, purpose) in (1..).zip(&purposes) {
            let challenge = given(&store, purpose, random);
            for other in &purposes {
                let found = found(&store, other, &owner(1), challenge.digest.as_bytes(), NOW);
                assert_eq!(found.is_some(), other == purpose);
            }
            assert_eq!(found(&store, purpose, &owner(2), challenge.digest.as_bytes(), NOW), None);
        }
    }

    #[test]
    fn another_request_for_the_same_owner_leaves_a_challenge_as_it_was() {
        let store = Store::default();
        let mine = given(&store, &Purpose::SignIn, 1);
        for random in 2..100 {
            given(&store, &Purpose::SignIn, random);
        }
        assert_eq!(found(&store, &Purpose::SignIn, &owner(1), mine.digest.as_bytes(), NOW), Some(mine));
    }

    #[test]
    fn an_unknown_or_not_yet_visible_challenge_is_not_found() {
        let store = Store::default();
        let challenge = given(&store, &Purpose::SignIn, 1);
        for payload in [&[][..], &[0; 27], &[0; 28], &[0; 32], &[0; 33]] {
            assert_eq!(found(&store, &Purpose::SignIn, &owner(1), payload, NOW), None);
        }
        store.kept.borrow_mut().clear();
        assert_eq!(found(&store, &Purpose::SignIn, &owner(1), challenge.digest.as_bytes(), NOW), None);
    }

    #[test]
    fn a_failing_store_issues_and_accepts_no_challenge() {
        let challenge = given(&Store::default(), &Purpose::SignIn, 1);
        let store = Store { refuses: true, ..Store::default() };
        assert!(block_on(give(&store, Purpose::SignIn, owner(1), [1; 32], NOW)).is_err());
        assert!(block_on(find(&store, &Purpose::SignIn, &owner(1), challenge.digest.as_bytes(), NOW)).is_err());
        let store = Store::default();
        store.kept.borrow_mut().insert(key(challenge.digest.as_bytes()), "{}".into());
        assert!(block_on(find(&store, &Purpose::SignIn, &owner(1), challenge.digest.as_bytes(), NOW)).is_err());
    }
}
