//! What a route works with: the ports, made when they are first needed, and the request's counts.

use edge::{Usage, chain::Blockfrost, d1::D1, settings};
use worker::{Context, Env};

use crate::error::ApiError;

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
}
