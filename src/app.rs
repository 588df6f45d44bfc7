//! What a route works with: the ports, made when they are first needed, and the request's counts.

use std::{borrow::Cow, rc::Rc};

use cardano::keys::{SigningKey, derive_wallet_key};
use edge::{
    Usage,
    chain::Blockfrost,
    challenges::Challenges,
    d1::D1,
    settings::{self, SettingError},
};
use market::account::{self, Account, DEMO_KEY_VERSION, DEMO_OWNER};
use worker::{Context, Env, Request};

use crate::{
    error::ApiError,
    limits::{self, Limiter},
    paywall::Methods,
};

/// Longest that a request asks the chain: purchases take 20 to 60 seconds.
const MAX_REQUEST_MS: u64 = 60_000;
/// The version of the master secret that `WALLET_MASTER_SECRET` holds; later ones carry their number in the name.
const FIRST_KEY_VERSION: u32 = 1;

/// The secret behind an owner's wallet: the master secret of a version, or the demo wallet's own.
fn master_secret(version: u32, owner: &str) -> Cow<'static, str> {
    match (version, owner) {
        (_, DEMO_OWNER) => "DEMO_SECRET".into(),
        (FIRST_KEY_VERSION, _) => "WALLET_MASTER_SECRET".into(),
        _ => format!("WALLET_MASTER_SECRET_{version}").into(),
    }
}

/// Waiting by the runtime's timer, but no longer than until a time.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// POSIX ms.
    until: u64,
}

impl outbox::Sleep for Timer {
    async fn sleep(&self, ms: u64) {
        let left = self.until.saturating_sub(edge::now_ms());
        edge::sleep(std::time::Duration::from_millis(ms.min(left))).await;
    }
}

/// One request's view of the worker's bindings.
pub struct App {
    env: Env,
    #[allow(dead_code, reason = "used by routes that finish work after the answer")]
    context: Context,
    usage: Usage,
    now_ms: u64,
}

impl App {
    pub fn new(env: Env, context: Context) -> Self {
        Self { env, context, usage: Usage::default(), now_ms: edge::now_ms() }
    }

    pub const fn usage(&self) -> &Usage {
        &self.usage
    }

    /// POSIX ms at which the request came in.
    pub const fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// POSIX ms at which the request stops asking the chain, and answers with what it knows.
    const fn until(&self) -> u64 {
        self.now_ms.saturating_add(MAX_REQUEST_MS)
    }

    /// Waiting, within the request's time.
    pub const fn timer(&self) -> Timer {
        Timer { until: self.until() }
    }

    /// Whether answers tell what they cost: a development setting.
    pub fn shows_usage(&self) -> bool {
        settings::optional(&self.env, "SHOW_USAGE").is_some()
    }

    pub fn database(&self) -> Result<D1, ApiError> {
        let database = self.env.d1("DB").map_err(|error| ApiError::internal("D1 binding", error))?;
        Ok(D1::new(database, self.usage.clone()))
    }

    pub fn chain(&self) -> Result<Blockfrost, ApiError> {
        let base =
            settings::required(&self.env, "BLOCKFROST_URL").map_err(|error| ApiError::internal("settings", error))?;
        let project = settings::optional(&self.env, "BLOCKFROST_PROJECT_ID");
        Ok(Blockfrost::new(&base, project, self.usage.clone()).until(self.until()))
    }

    /// The ways to pay that are configured.
    pub fn methods(&self) -> Result<Rc<Methods>, ApiError> {
        Methods::configured(&self.env).map_err(|error| ApiError::misconfigured(&error, ""))
    }

    pub fn challenges(&self) -> Result<Challenges, ApiError> {
        let store = self.env.kv("CHALLENGES").map_err(|error| ApiError::internal("KV binding", error))?;
        Ok(Challenges::new(store))
    }

    /// The version of the master secret from which new service wallets are made.
    pub fn key_version(&self) -> Result<u32, ApiError> {
        const NAME: &str = "WALLET_KEY_VERSION";
        let Some(text) = settings::optional(&self.env, NAME) else { return Ok(FIRST_KEY_VERSION) };
        let unusable = SettingError { name: NAME.into(), problem: "must be a whole number from 1" };
        let version = text.trim().parse().ok().filter(|version| *version >= FIRST_KEY_VERSION);
        version.ok_or_else(|| ApiError::misconfigured(&unusable, text))
    }

    /// The key of an owner's service wallet under a version of the master secret.
    pub fn wallet_key(&self, version: u32, owner: &str) -> Result<SigningKey, ApiError> {
        let name = master_secret(version, owner);
        let secret =
            settings::secret_bytes(&self.env, name.clone()).map_err(|error| ApiError::misconfigured(&error, ""))?;
        let unusable = SettingError { name, problem: "must be at least 64 hexadecimal characters (32 random bytes)" };
        derive_wallet_key(&secret, version, owner).map_err(|error| ApiError::misconfigured(&unusable, error))
    }

    /// The key of an account's service wallet, for the address on record and no other.
    pub fn account_key(&self, account: &Account) -> Result<SigningKey, ApiError> {
        let key = self.wallet_key(account.key_version, &account.owner)?;
        if key.enterprise_address() == account.wallet_address {
            return Ok(key);
        }
        let name = master_secret(account.key_version, &account.owner);
        let changed = SettingError { name, problem: "is not the one this wallet was made with" };
        Err(ApiError::misconfigured(&changed, account.wallet_address))
    }

    /// The account of the shared demo wallet.
    #[allow(dead_code, reason = "agents without an owner's wallet follow")]
    pub async fn demo_account(&self) -> Result<Account, ApiError> {
        let wallet = self.wallet_key(DEMO_KEY_VERSION, DEMO_OWNER)?.enterprise_address();
        Ok(account::demo(&self.database()?, &wallet, self.now_ms()).await?)
    }

    /// Takes one from what `key` may ask for.
    pub async fn limit(&self, limiter: Limiter, key: &str) -> Result<(), ApiError> {
        limits::take(&self.env, limiter, key).await
    }

    /// Where a request comes from.
    pub fn client(&self, request: &Request) -> String {
        limits::client(request)
    }
}
