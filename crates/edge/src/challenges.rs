//! The challenge store in Workers KV.
//!
//! A new KV key is visible at once where it was written, and within a minute elsewhere
//! (<https://developers.cloudflare.com/kv/concepts/how-kv-works/>). A client that answers through another location must
//! request a new challenge.

use cardano::slots::Millis;
use market::challenge::{Challenges, ChallengesError};
use worker::{Env, KvError, KvStore};

use crate::{kv, settings::SettingError};

/// Name of the binding of the KV namespace that stores challenges.
const BINDING: &str = "CHALLENGES";

/// The Workers KV namespace that stores sign-in challenges.
pub struct KvChallenges(KvStore);

impl KvChallenges {
    /// Returns the challenge store of this worker.
    ///
    /// # Errors
    /// [`SettingError`] if no KV namespace is bound for challenges.
    pub fn bound(env: &Env) -> Result<Self, SettingError> {
        let unbound = |_| SettingError { name: BINDING.into(), problem: "is not bound (wrangler.toml)" };
        env.kv(BINDING).map(Self).map_err(unbound)
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, KvError>>) -> Result<T, ChallengesError> {
    kv::in_time(asked).await.map_err(ChallengesError)
}

impl Challenges for KvChallenges {
    async fn put(&self, key: &str, text: &str, expires_at: Millis) -> Result<(), ChallengesError> {
        in_time(async {
            // KV expires keys at whole seconds; rounding up keeps a challenge until it has expired.
            self.0.put(key, text)?.expiration(expires_at.div_ceil(1_000)).execute().await
        })
        .await
    }

    async fn get(&self, key: &str) -> Result<Option<String>, ChallengesError> {
        in_time(self.0.get(key).text()).await
    }
}
