//! Stores the number of the watcher's last run in Workers KV.

use edge::kv::{self, KvStore};
use market::watch::number::NumberStore;
use worker::Env;

/// Name of the binding of the KV namespace that stores the number of the watcher's last run.
const BINDING: &str = "TICKS";
const KEY: &str = "number";

/// The KV namespace that stores the number of the watcher's last run, or the reason why it is not available.
pub struct KvNumber(Result<KvStore, String>);

impl KvNumber {
    /// Looks up the binding of the KV namespace.
    #[must_use]
    pub fn bound(env: &Env) -> Self {
        Self(env.kv(BINDING).map_err(|_| format!("{BINDING} is not bound (wrangler.toml)")))
    }

    fn store(&self) -> Result<&KvStore, String> {
        self.0.as_ref().map_err(Clone::clone)
    }
}

impl NumberStore for KvNumber {
    async fn read(&self) -> Result<Option<u64>, String> {
        let text = kv::in_time(self.store()?.get(KEY).text()).await?;
        text.map(|text| text.parse().map_err(|_| format!("{BINDING} holds no number"))).transpose()
    }

    async fn write(&self, number: u64) -> Result<(), String> {
        let put = self.store()?.put(KEY, number.to_string()).map_err(|error| error.to_string())?;
        kv::in_time(put.execute()).await
    }
}
