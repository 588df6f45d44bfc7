//! Rate limits, by Workers' rate limiting bindings.
//!
//! Rate limits slow floods down, and are counted approximately in each of Cloudflare's locations
//! (<https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/>). They are generous, because many
//! honest clients may share an address. The database limits money and storage, `edge::semaphore` limits memory, and
//! `edge::queue` limits calls of the chain's provider.

use std::fmt;

use api_types::{Error, ErrorCode};
use cardano::chain::ChainError;
use edge::{
    answer::{ErrorAnswer, PROVIDER_SECONDS},
    d1::D1,
    http::RETRY_MEMORY_SECONDS,
    queue,
    semaphore::Permit,
    serve::Request,
    settings::SettingError,
    usage::Usage,
};
use market::{account::Account, limits::Authorization};
use worker::Env;

use crate::error::ApiError;

pub use edge::client::client;

/// A rate limit that several kinds of actions use. Each kind is counted separately for each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    /// Name of the binding in wrangler.toml.
    binding: &'static str,
    /// Maximum number of actions of one kind per client and period.
    max: u32,
    /// Period in seconds. The platform supports 10 and 60.
    period_s: u32,
}

/// Rate limit per client or account for requests with a session, and for reads of the database.
const READ: Rate = Rate { binding: "READ", max: 3_000, period_s: 60 };
/// Rate limit per client for offering listings, sending verdicts, and drafting transactions, and per account for
/// changing its name or webhook.
const WRITE: Rate = Rate { binding: "WRITE", max: 300, period_s: 60 };
/// Rate limit per client for requesting and answering sign-in challenges, and for the steps of OAuth.
const AUTH: Rate = Rate { binding: "AUTH", max: 600, period_s: 60 };
/// Rate limit for payments and proofs per client, and for purchases, withdrawals and actions on purchases per account.
const PAYMENT: Rate = Rate { binding: "PAYMENT", max: 1_200, period_s: 60 };
/// Rate limit on provider calls of all clients together, except calls after a transaction was submitted. The provider
/// allows ten per second.
const PROVIDER: Rate = Rate { binding: "PROVIDER", max: 100, period_s: PROVIDER_SECONDS };
/// Rate limit for messages and tool calls per agent, and for tool calls without sign-in per client.
const AGENT: Rate = Rate { binding: "AGENT", max: 600, period_s: 60 };

/// A kind of action with a rate limit. The first text identifies it in keys of the counters, the second describes it in
/// errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted(Rate, &'static str, &'static str);

impl Counted {
    pub const SESSION: Self = Self(READ, "session", "requests with a session");
    pub const ACCOUNT: Self = Self(READ, "account", "requests for this account");
    pub const READ: Self = Self(READ, "read", "reads");
    pub const SEARCH: Self = Self(READ, "search", "searches and pages");
    pub const OFFER: Self = Self(WRITE, "offer", "offers");
    pub const NAME: Self = Self(WRITE, "name", "changes of this account's name");
    pub const VERDICT: Self = Self(WRITE, "verdict", "verdicts");
    pub const WEBHOOK: Self = Self(WRITE, "webhook", "changes of this account's webhook");
    pub const DRAFT: Self = Self(WRITE, "draft", "drafts");
    pub const CHALLENGE: Self = Self(AUTH, "challenge", "challenges");
    pub const SIGN_IN: Self = Self(AUTH, "sign-in", "sign-in attempts");
    pub const REGISTER: Self = Self(AUTH, "register", "registrations");
    pub const CONSENT: Self = Self(AUTH, "consent", "consent pages");
    pub const TOKEN: Self = Self(AUTH, "token", "requests for tokens");
    pub const PAYMENT: Self = Self(PAYMENT, "payment", "payments");
    pub const FACILITATOR: Self = Self(PAYMENT, "facilitator", "payments of other servers");
    pub const PROOF: Self = Self(PAYMENT, "proof", "proofs of earlier payments");
    pub const BUY: Self = Self(PAYMENT, "buy", "purchases of this account");
    pub const ACT: Self = Self(PAYMENT, "act", "actions on this account's purchases");
    pub const WITHDRAW: Self = Self(PAYMENT, "withdraw", "withdrawals of this account");
    pub const MESSAGE: Self = Self(AGENT, "message", "messages of this agent");
    pub const TOOL: Self = Self(AGENT, "tool", "tool calls");
}

/// 429: the client exceeded the rate limit of this kind of action.
pub fn too_many(Counted(Rate { max, period_s, .. }, _, what): Counted) -> ErrorAnswer {
    let text = format!("too many {what}, more than {max} in {period_s} seconds: try again in {period_s} seconds");
    ErrorAnswer::too_many(period_s, Error::new(ErrorCode::RateLimited, text))
}

/// Counts an action against the rate limit of `who`.
pub async fn take(env: &Env, action: Counted, who: &str) -> Result<(), ApiError> {
    let Counted(rate, name, _) = action;
    if is_left(env, rate, format_args!("{name}:{who}")).await? { Ok(()) } else { Err(too_many(action).into()) }
}

async fn is_left(env: &Env, rate: Rate, key: fmt::Arguments<'_>) -> Result<bool, ApiError> {
    let unbound = |_| SettingError { name: rate.binding.into(), problem: "is not bound (wrangler.toml)" };
    Ok(env.rate_limiter(rate.binding).map_err(unbound)?.limit(key.to_string()).await?.success)
}

/// Maximum number of listings in an answer for which [`AnswerMemory::SHORT`] is reserved.
const MAX_SHORT_LISTINGS: u32 = 50;

/// Number of bytes of memory that an answer takes while it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerMemory(usize);

impl AnswerMemory {
    /// Memory for an answer with more than [`MAX_SHORT_LISTINGS`] listings or sales, which is up to 2 MB of JSON.
    pub const LONG: Self = Self(8 << 20);
    /// Memory for an answer with up to [`MAX_SHORT_LISTINGS`] listings or sales, which is at most half a megabyte of
    /// JSON.
    pub const SHORT: Self = Self(3 << 20);
    /// Memory for building a draft, including the wallet's outputs and the evaluation of the contract.
    pub const DRAFT: Self = Self(4 << 20);

    /// Returns the memory needed for an answer with at most this many listings.
    pub const fn of_listings(most: u32) -> Self {
        if most > MAX_SHORT_LISTINGS { Self::LONG } else { Self::SHORT }
    }

    /// Reserves this memory for the client. Waits for at most ten seconds until enough is free.
    pub async fn hold(self, request: &Request) -> Result<Permit, ApiError> {
        let text = format_args!("too many large answers at once: try again in {RETRY_MEMORY_SECONDS} seconds");
        let crowded = ErrorAnswer::too_many(RETRY_MEMORY_SECONDS, Error::new(ErrorCode::Busy, text));
        Ok(Permit::hold(&client(request)?, self.0).await.ok_or(crowded)?)
    }
}

/// Number of bytes of memory that a purchase from a service wallet takes while it waits for a block. Wallets with many
/// tokens take more.
pub const PURCHASE_BYTES: usize = 32 << 10;

/// Returns the number of bytes of memory that a payment takes until a block includes it: the header, its transaction,
/// and the outbox entry.
pub const fn payment_bytes(header: &str) -> usize {
    header.len().saturating_mul(3)
}

/// Returns the key under which an account's requests are counted. The owner and the agents have separate keys, so that
/// agents cannot lock the owner out. All agents of the account share one.
pub fn of_account(account: &Account) -> String {
    match account.authorization {
        Some(Authorization::Grant(_)) => format!("agents of {}", account.owner),
        _ => account.owner.clone(),
    }
}

/// Waits for a client's turn to call the chain's provider, and counts the call. `plan` is the provider's daily quota.
pub async fn admit((env, client, plan): (Env, String, u64)) -> Result<(), ChainError> {
    let database = D1::new(&env, "DB", Usage::default());
    let left = queue::wait_turn(&client, &database, plan).await
        && is_left(&env, PROVIDER, format_args!("call:all")).await.map_err(failed)?;
    if left { Ok(()) } else { Err(ChainError::ClientRateLimited) }
}

fn failed(error: ApiError) -> ChainError {
    ChainError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rate limits. They are deliberately few, because more would be hard to tell apart.
    const RATES: [Rate; 6] = [READ, WRITE, AUTH, PAYMENT, PROVIDER, AGENT];

    #[test]
    fn the_bindings_are_those_of_the_table() {
        let file = include_str!("../wrangler.toml");
        let (live, preview) = file.split_once("[env.preview]").expect("a preview environment");
        let mut ids = std::collections::BTreeSet::new();
        for (config, begin) in [(live, "[[ratelimits]]"), (preview, "{ name = ")] {
            assert_eq!(config.matches("namespace_id = ").count(), RATES.len());
            for Rate { binding, max, period_s } in RATES {
                let entry = config.split(begin).find(|entry| entry.contains(&format!("\"{binding}\"")));
                let simple = format!("simple = {{ limit = {max}, period = {period_s} }}");
                assert!(entry.is_some_and(|entry| entry.contains(&simple)), "{binding}");
                let id = entry.and_then(|entry| entry.split("namespace_id = ").nth(1)?.split('"').nth(1));
                assert!(id.is_some_and(|id| ids.insert(id.to_owned())), "each counts on its own: {binding}");
            }
        }
    }

    #[test]
    fn a_rate_limit_refusal_names_the_limit_and_the_wait() {
        let refused = too_many(Counted::SIGN_IN);
        let told = "too many sign-in attempts, more than 600 in 60 seconds: try again in 60 seconds";
        assert_eq!(refused.to_string(), told);
    }
}
