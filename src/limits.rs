//! Limits on how often something may be asked for, by Workers' rate limiting binding.
//!
//! They keep a flood from one place off the database; what may be spent is limited elsewhere, by the database itself.

use edge::settings;
use worker::{Env, Request};

use crate::error::ApiError;

/// What is limited. Each has its own binding in wrangler.toml, with its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Challenges, by client address.
    Challenge,
    /// Answers to challenges, by client address.
    SignIn,
    /// Purchases, by account.
    Buy,
    /// Withdrawals, by account.
    Withdraw,
}

impl Limiter {
    const fn binding(self) -> &'static str {
        match self {
            Self::Challenge => "LIMIT_CHALLENGE",
            Self::SignIn => "LIMIT_SIGN_IN",
            Self::Buy => "LIMIT_BUY",
            Self::Withdraw => "LIMIT_WITHDRAW",
        }
    }
}

/// Seconds in which all rates are counted (see wrangler.toml).
const PERIOD: u32 = 60;

/// Takes one from what `key` may ask for; 429 when nothing is left.
pub async fn take(env: &Env, limiter: Limiter, key: &str) -> Result<(), ApiError> {
    let binding = env.rate_limiter(limiter.binding()).map_err(|error| {
        ApiError::misconfigured(
            &settings::SettingError { name: limiter.binding().into(), problem: "is not bound" },
            error,
        )
    })?;
    let outcome = binding.limit(key.to_owned()).await?;
    if outcome.success { Ok(()) } else { Err(ApiError::too_many(PERIOD)) }
}

/// Where a request comes from, as Cloudflare says.
pub fn client(request: &Request) -> String {
    request.headers().get("cf-connecting-ip").ok().flatten().unwrap_or_else(|| "unknown".to_owned())
}
