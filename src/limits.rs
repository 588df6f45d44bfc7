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

/// A class's rate.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Its binding in wrangler.toml.
    binding: &'static str,
    /// So many of one action of one client.
    most: u32,
    /// In so many seconds: 10 or 60, the platform has no others.
    period_s: u32,
}

macro_rules! classes {
    ($($(#[$covers:meta])* $class:ident $binding:literal $most:literal in $period:expr;)+) => {
        /// A rate, shared by actions of one kind. Each action of each client counts on its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Class {
            $($(#[$covers])* $class,)+
        }

        impl Class {
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$class),+];

            const fn limit(self) -> Limit {
                let (binding, most, period_s) = match self {
                    $(Self::$class => ($binding, $most, $period),)+
                };
                Limit { binding, most, period_s }
            }
        }
    };
}

// The table of all limits: binding, how many, in how many seconds.
classes! {
    /// Requests with a session, and reads that reach the database: by client, or account.
    Read "READ" 3_000 in 60;
    /// Offers, verdicts and drafts, by client.
    Write "WRITE" 300 in 60;
    /// Challenges, their answers, and the steps of OAuth: by client.
    Auth "AUTH" 600 in 60;
    /// Payments and proofs by client; purchases and withdrawals by account.
    Payment "PAYMENT" 1_200 in 60;
    /// Calls of the chain's provider before anything is paid, of all clients: the provider allows ten a second.
    Provider "PROVIDER" 100 in PROVIDER_SECONDS;
    /// Messages and tool calls, by agent; tool calls without an owner, by client.
    Agent "AGENT" 600 in 60;
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Session,
    Account,
    Read,
    Search,
    Offer,
    Verdict,
    Draft,
    Challenge,
    SignIn,
    Register,
    Consent,
    Token,
    Payment,
    Proof,
    Buy,
    Withdraw,
    Message,
    Tool,
}

impl Counted {
    /// Its class, its name in keys, and what it is called where there are too many.
    const fn described(self) -> (Class, &'static str, &'static str) {
        match self {
            Self::Session => (Class::Read, "session", "requests with a session"),
            Self::Account => (Class::Read, "account", "requests for this account"),
            Self::Read => (Class::Read, "read", "reads"),
            Self::Search => (Class::Read, "search", "searches and pages"),
            Self::Offer => (Class::Write, "offer", "offers"),
            Self::Verdict => (Class::Write, "verdict", "verdicts"),
            Self::Draft => (Class::Write, "draft", "drafts"),
            Self::Challenge => (Class::Auth, "challenge", "challenges"),
            Self::SignIn => (Class::Auth, "sign-in", "sign-in attempts"),
            Self::Register => (Class::Auth, "register", "registrations"),
            Self::Consent => (Class::Auth, "consent", "consent pages"),
            Self::Token => (Class::Auth, "token", "requests for tokens"),
            Self::Payment => (Class::Payment, "payment", "payments"),
            Self::Proof => (Class::Payment, "proof", "proofs of earlier payments"),
            Self::Buy => (Class::Payment, "buy", "purchases of this account"),
            Self::Withdraw => (Class::Payment, "withdraw", "withdrawals of this account"),
            Self::Message => (Class::Agent, "message", "messages of this agent"),
            Self::Tool => (Class::Agent, "tool", "tool calls"),
        }
    }
}

/// What there was too much of, and when to come back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many {what}{most}: try again in {seconds} seconds")]
pub struct TooMany {
    what: &'static str,
    /// How many there may be, in words; empty where that is no number.
    most: String,
    /// Seconds after which there is room again, at the latest.
    seconds: u32,
}

impl TooMany {
    /// Of an action.
    pub fn of(action: Counted) -> Self {
        let (class, _, what) = action.described();
        let Limit { most, period_s: seconds, .. } = class.limit();
        Self { what, most: format!(", more than {most} in {seconds} seconds"), seconds }
    }
}

impl From<TooMany> for ApiError {
    fn from(error: TooMany) -> Self {
        ErrorAnswer::too_many(error.seconds, &error).into()
    }
}

/// Counts one of an action of `who`; refuses it where nothing is left.
pub async fn take(env: &Env, action: Counted, who: &str) -> Result<(), ApiError> {
    let (class, name, _) = action.described();
    if is_left(env, class, format_args!("{name}:{who}")).await? { Ok(()) } else { Err(TooMany::of(action).into()) }
}

async fn is_left(env: &Env, class: Class, key: fmt::Arguments<'_>) -> Result<bool, ApiError> {
    let name = class.limit().binding;
    let unbound = |_| SettingError { name: name.into(), problem: "is not bound (wrangler.toml)" };
    Ok(env.rate_limiter(name).map_err(unbound)?.limit(key.to_string()).await?.success)
}

/// Memory that an answer takes while it is made, in the database's words, in ours and in the runtime's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// More than [`WIDE`] listings or sales, of up to 2 MB.
    Long,
    /// Up to as many, half a megabyte at their longest.
    Short,
    /// A draft: what a wallet says that it holds is read by then, and some of it kept while a provider runs the contract.
    Draft,
}

/// Listings that are read at once for a short answer.
const WIDE: u32 = 50;

impl Weight {
    /// Of so many listings at most.
    pub const fn of_listings(most: u32) -> Self {
        if most > WIDE { Self::Long } else { Self::Short }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Long => 8 << 20,
            Self::Short => 3 << 20,
            Self::Draft => 4 << 20,
        }
    }

    /// Waits for room for it; refused where there is none for ten seconds.
    pub async fn hold(self, request: &Request) -> Result<Permit, ApiError> {
        let crowded = TooMany { what: "large answers at once", most: String::new(), seconds: RETRY_MEMORY_SECONDS };
        Ok(Permit::hold(&client(request)?, self.bytes()).await.ok_or(crowded)?)
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
        && is_left(&env, Class::Provider, format_args!("call:all")).await.map_err(failed)?;
    if left { Ok(()) } else { Err(ChainError::TooMany) }
}

fn failed(error: ApiError) -> ChainError {
    ChainError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bindings_are_those_of_the_table() {
        assert!(
            Class::ALL.len() <= 6,
            "the limits are brakes: more of them are harder to tell apart than to do without"
        );
        let file = include_str!("../wrangler.toml");
        let (live, preview) = file.split_once("[env.preview]").expect("a preview environment");
        let mut ids = std::collections::BTreeSet::new();
        for (config, begin) in [(live, "[[ratelimits]]"), (preview, "{ name = ")] {
            assert_eq!(config.matches("namespace_id = ").count(), Class::ALL.len());
            for Limit { binding, most, period_s } in Class::ALL.iter().map(|class| class.limit()) {
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
        let refused = TooMany::of(Counted::SignIn);
        let told = "too many sign-in attempts, more than 600 in 60 seconds: try again in 60 seconds";
        assert_eq!(refused.to_string(), told);
    }
}
