//! Challenges that wait for their answer, in KV: they vanish by themselves.

use serde::{Serialize, de::DeserializeOwned};
use worker::kv::{KvError, KvStore};

/// KV's shortest time to live, in seconds.
const MIN_TTL: u64 = 60;

/// A namespace of waiting challenges. KV may forget late and answer late; single use is claimed elsewhere.
pub struct Challenges(KvStore);

impl Challenges {
    /// The challenges in this namespace.
    #[must_use]
    pub const fn new(store: KvStore) -> Self {
        Self(store)
    }

    /// Keeps a challenge under a key for some seconds.
    ///
    /// # Errors
    /// KV does not answer.
    pub async fn keep(&self, key: &str, challenge: &impl Serialize, seconds: u64) -> Result<(), KvError> {
        let json = serde_json::to_string(challenge)?;
        self.0.put(key, json)?.expiration_ttl(seconds.max(MIN_TTL)).execute().await
    }

    /// What is kept under a key.
    ///
    /// # Errors
    /// KV does not answer, or holds something else.
    pub async fn find<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, KvError> {
        let json = self.0.get(key).text().await?;
        Ok(json.map(|json| serde_json::from_str(&json)).transpose()?)
    }
}
