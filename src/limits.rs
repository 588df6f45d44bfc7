//! How often something may be asked for, by Workers' rate limiting bindings.
//!
//! They are brakes for floods, counted in each of Cloudflare's locations
//! (<https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/>). Money and storage are limited by the database,
//! memory by `edge::semaphore`, and turns at the chain's provider by `edge::queue`. Many honest clients may share an address.

use std::fmt;

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

/// A rate, shared by actions of one kind. Each action of each client counts on its own.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// Its binding in wrangler.toml.
    binding: &'static str,
    /// So many of one action of one client.
    most: u32,
    /// In so many seconds: 10 or 60, the platform has no others.
    period_s: u32,
}

/// Requests with a session, and reads that reach the database: by client, or account.
const READ: Rate = Rate { binding: "READ", most: 3_000, period_s: 60 };
/// Offers, verdicts and drafts, by client.
const WRITE: Rate = Rate { binding: "WRITE", most: 300, period_s: 60 };
/// Challenges, their answers, and the steps of OAuth: by client.
const AUTH: Rate = Rate { binding: "AUTH", most: 600, period_s: 60 };
/// Payments and proofs by client; purchases and withdrawals by account.
const PAYMENT: Rate = Rate { binding: "PAYMENT", most: 1_200, period_s: 60 };
/// Calls of the chain's provider before anything is paid, of all clients: the provider allows ten a second.
const PROVIDER: Rate = Rate { binding: "PROVIDER", most: 100, period_s: PROVIDER_SECONDS };
/// Messages and tool calls, by agent; tool calls without an owner, by client.
const AGENT: Rate = Rate { binding: "AGENT", most: 600, period_s: 60 };

/// What is counted: its rate, its name in keys, and what it is called where there are too many.
#[derive(Clone, Copy, Debug)]
pub struct Counted(Rate, &'static str, &'static str);

impl Counted {
    pub const SESSION: Self = Self(READ, "session", "requests with a session");
    pub const ACCOUNT: Self = Self(READ, "account", "requests for this account");
    pub const READ: Self = Self(READ, "read", "reads");
    pub const SEARCH: Self = Self(READ, "search", "searches and pages");
    pub const OFFER: Self = Self(WRITE, "offer", "offers");
    pub const VERDICT: Self = Self(WRITE, "verdict", "verdicts");
    pub const DRAFT: Self = Self(WRITE, "draft", "drafts");
    pub const CHALLENGE: Self = Self(AUTH, "challenge", "challenges");
    pub const SIGN_IN: Self = Self(AUTH, "sign-in", "sign-in attempts");
    pub const REGISTER: Self = Self(AUTH, "register", "registrations");
    pub const CONSENT: Self = Self(AUTH, "consent", "consent pages");
    pub const TOKEN: Self = Self(AUTH, "token", "requests for tokens");
    pub const PAYMENT: Self = Self(PAYMENT, "payment", "payments");
    pub const PROOF: Self = Self(PAYMENT, "proof", "proofs of earlier payments");
    pub const BUY: Self = Self(PAYMENT, "buy", "purchases of this account");
    pub const WITHDRAW: Self = Self(PAYMENT, "withdraw", "withdrawals of this account");
    pub const MESSAGE: Self = Self(AGENT, "message", "messages of this agent");
    pub const TOOL: Self = Self(AGENT, "tool", "tool calls");
}

/// What there was too much of, and when there is room again, at the latest.
pub fn too_many(Counted(Rate { most, period_s, .. }, _, what): Counted) -> ErrorAnswer {
    let text = format!("too many {what}, more than {most} in {period_s} seconds: try again in {period_s} seconds");
    ErrorAnswer::too_many(period_s, text)
}

/// Counts one of an action of `who`; refuses it where nothing is left.
pub async fn take(env: &Env, action: Counted, who: &str) -> Result<(), ApiError> {
    let Counted(rate, name, _) = action;
    if is_left(env, rate, format_args!("{name}:{who}")).await? { Ok(()) } else { Err(too_many(action).into()) }
}

async fn is_left(env: &Env, rate: Rate, key: fmt::Arguments<'_>) -> Result<bool, ApiError> {
    let unbound = |_| SettingError { name: rate.binding.into(), problem: "is not bound (wrangler.toml)" };
    Ok(env.rate_limiter(rate.binding).map_err(unbound)?.limit(key.to_string()).await?.success)
}

/// Listings that are read at once for a short answer.
const WIDE: u32 = 50;

/// Bytes that an answer takes while it is made, in the database's words, in ours and in the runtime's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(usize);

impl Weight {
    /// More than [`WIDE`] listings or sales, of up to 2 MB.
    pub const LONG: Self = Self(8 << 20);
    /// Up to as many, half a megabyte at their longest.
    pub const SHORT: Self = Self(3 << 20);
    /// A draft: what a wallet says that it holds is read by then, and some of it kept while a provider runs the contract.
    pub const DRAFT: Self = Self(4 << 20);

    /// Of so many listings at most.
    pub const fn of_listings(most: u32) -> Self {
        if most > WIDE { Self::LONG } else { Self::SHORT }
    }

    /// Waits for room for it; refused where there is none for ten seconds.
    pub async fn hold(self, request: &Request) -> Result<Permit, ApiError> {
        let text = format_args!("too many large answers at once: try again in {RETRY_MEMORY_SECONDS} seconds");
        let crowded = ErrorAnswer::too_many(RETRY_MEMORY_SECONDS, text);
        Ok(Permit::hold(&client(request)?, self.0).await.ok_or(crowded)?)
    }
}

/// Bytes that a purchase from a service wallet takes while it is made and waited for: what is known of the wallet. One full of
/// tokens takes more.
pub const PURCHASE_BYTES: usize = 32 << 10;

/// Bytes that a payment takes while it is verified and waited for, by the length of its header. They hold the header,
/// its transaction, and the outbox entry with its bytes.
pub const fn payment_bytes(header: &str) -> usize {
    header.len().saturating_mul(3)
}

/// What an account is counted by: its owner for themselves, and its agents for all of them, so that none keeps its owner out.
pub fn of_account(account: &Account) -> String {
    match account.authorization {
        Some(Authorization::Grant(_)) => format!("agents of {}", account.owner),
        _ => account.owner.clone(),
    }
}

/// Waits for a client's turn at the chain's provider, which allows so many calls on a day, and counts the call.
pub async fn admit((env, client, plan): (Env, String, u64)) -> Result<(), ChainError> {
    let database = D1::new(&env, "DB", Usage::default());
    let left = queue::wait_turn(&client, &database, plan).await
        && is_left(&env, PROVIDER, format_args!("call:all")).await.map_err(failed)?;
    if left { Ok(()) } else { Err(ChainError::TooMany) }
}

fn failed(error: ApiError) -> ChainError {
    ChainError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits are brakes: more of them are harder to tell apart than to do without.
    const RATES: [Rate; 6] = [READ, WRITE, AUTH, PAYMENT, PROVIDER, AGENT];

    #[test]
    fn the_bindings_are_those_of_the_table() {
        let file = include_str!("../wrangler.toml");
        let (live, preview) = file.split_once("[env.preview]").expect("a preview environment");
        let mut ids = std::collections::BTreeSet::new();
        for (config, begin) in [(live, "[[ratelimits]]"), (preview, "{ name = ")] {
            assert_eq!(config.matches("namespace_id = ").count(), RATES.len());
            for Rate { binding, most, period_s } in RATES {
                let entry = config.split(begin).find(|entry| entry.contains(&format!("\"{binding}\"")));
                let simple = format!("simple = {{ limit = {most}, period = {period_s} }}");
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
