//! What a route works with: the ports, made when they are first needed, and the request's counts.

use cardano::keys::{SigningKey, derive_wallet_key};
use edge::{
    Usage,
    chain::Blockfrost,
    challenges::Challenges,
    d1::D1,
    settings::{self, SettingError},
};
use market::account::Account;
use worker::{Context, Env, Request};

use crate::{
    error::ApiError,
    limits::{self, Limiter},
    paywall::Protection,
};

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
        Ok(Blockfrost::new(&base, settings::optional(&self.env, "BLOCKFROST_PROJECT_ID"), self.usage.clone()))
    }

    /// The escrow of protected sales, where one is deployed.
    pub fn protection(&self) -> Result<Option<Protection>, ApiError> {
        Protection::configured(&self.env).map_err(|error| ApiError::misconfigured(&error, ""))
    }

    pub fn challenges(&self) -> Result<Challenges, ApiError> {
        let store = self.env.kv("CHALLENGES").map_err(|error| ApiError::internal("KV binding", error))?;
        Ok(Challenges::new(store))
    }

    /// The key of an account's service wallet.
    pub fn wallet_key(&self, version: u32, owner: &str) -> Result<SigningKey, ApiError> {
        const NAME: &str = "WALLET_MASTER_SECRET";
        const PROBLEM: &str = "must be at least 64 hexadecimal characters (32 random bytes)";
        let unusable = SettingError { name: NAME, problem: PROBLEM };
        let secret = settings::secret_bytes(&self.env, NAME).map_err(|error| ApiError::misconfigured(&error, ""))?;
        derive_wallet_key(&secret, version, owner).map_err(|error| ApiError::misconfigured(&unusable, error))
    }

    /// The key of an account's service wallet, for the address on record and no other.
    pub fn account_key(&self, account: &Account) -> Result<SigningKey, ApiError> {
        let key = self.wallet_key(account.key_version, &account.owner)?;
        if key.enterprise_address() == account.wallet_address {
            return Ok(key);
        }
        let changed =
            SettingError { name: "WALLET_MASTER_SECRET", problem: "is not the one this wallet was made with" };
        Err(ApiError::misconfigured(&changed, account.wallet_address))
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
