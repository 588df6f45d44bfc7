//! How often something may be asked for, by Workers' rate limiting bindings.
//!
//! They keep a flood from one place off the database and the chain's provider; what may be spent, and how much may be
//! stored, is limited elsewhere, by the database itself. Rates are generous: many honest clients may share an address.

use std::{cell::RefCell, rc::Rc};

use cardano::chain::ChainError;
use edge::{
    places::{Place, Places},
    serve::Request,
    settings::SettingError,
};
use market::{account::Account, catalogue::Filter, limits::Authorization, network::site};
use worker::Env;

use crate::{app::App, error::ApiError};

pub use edge::{answer::PERIOD_SECONDS, client::client};

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Challenges, by client.
    Challenge,
    /// Answers to challenges, by client.
    SignIn,
    /// Reads of an account, which ask the chain, and changes of its limits; by account.
    Account,
    /// Purchases, by account.
    Buy,
    /// Withdrawals, by account.
    Withdraw,
    /// Requests with a session, before it is looked up, and agents' messages, before they are read: by client.
    Session,
    /// Offers, by client: one for each 64 KiB that are begun of what is sold.
    Offer,
    /// Contents that are read, by client: one for each 64 KiB that are begun.
    Content,
    /// Requests that carry a payment, by client.
    Payment,
    /// Requests that carry a proof of an earlier payment, by client.
    Proof,
    /// Verdicts, by client.
    Verdict,
    /// Drafts of payments and of actions, by client.
    Draft,
    /// Registrations of agents' programs, by client.
    Register,
    /// Consent pages, which may fetch a client's document; by client.
    Consent,
    /// Tokens, by client.
    Token,
    /// Messages of an agent with an owner, before its client's are counted: by agent.
    Agent,
    /// Tool calls, by agent; of those without an owner, by client.
    Tool,
    /// Reads of one thing by its name, where they reach the database: by client.
    Read,
    /// Calls of the chain's provider, [`edge::chain::CALLS_PER_TICKET`] at a time, whatever needs them: by client. Submissions are
    /// not counted.
    Provider,
    /// Reads of many, where they reach the database: searches, pages, lists; by client.
    Search,
    /// The same of more than [`WIDE`] listings or sales at once, of which a page may be 2 MB: by client.
    Page,
    /// What an account may take of its client's [`Self::Provider`]: agents of many accounts come from one platform's network.
    AccountProvider,
    /// The same of [`Self::Search`].
    AccountSearch,
    /// The same of [`Self::Content`].
    AccountContent,
    /// What can be read of what a payment bought, whatever else its client reads: the longest content twice.
    BoughtContent,
}

/// Listings that are read at once for what a search takes.
const WIDE: u32 = 50;

/// Every limit: its binding in wrangler.toml and how many are allowed in [`PERIOD_SECONDS`].
pub const LIMITS: [(Limiter, &str, u32); 25] = [
    (Limiter::Challenge, "LIMIT_CHALLENGE", 300),
    (Limiter::SignIn, "LIMIT_SIGN_IN", 300),
    (Limiter::Account, "LIMIT_ACCOUNT", 300),
    (Limiter::Buy, "LIMIT_BUY", 300),
    (Limiter::Withdraw, "LIMIT_WITHDRAW", 10),
    (Limiter::Session, "LIMIT_SESSION", 3_000),
    (Limiter::Offer, "LIMIT_OFFER", 600),
    (Limiter::Content, "LIMIT_CONTENT", 1_200),
    (Limiter::Payment, "LIMIT_PAYMENT", 1_200),
    (Limiter::Proof, "LIMIT_PROOF", 1_200),
    (Limiter::Verdict, "LIMIT_VERDICT", 600),
    (Limiter::Draft, "LIMIT_DRAFT", 300),
    (Limiter::Register, "LIMIT_REGISTER", 120),
    (Limiter::Consent, "LIMIT_CONSENT", 300),
    (Limiter::Token, "LIMIT_TOKEN", 600),
    (Limiter::Agent, "LIMIT_AGENT", 600),
    (Limiter::Tool, "LIMIT_TOOL", 300),
    (Limiter::Read, "LIMIT_READ", 3_000),
    (Limiter::Search, "LIMIT_SEARCH", 600),
    (Limiter::Page, "LIMIT_PAGE", 120),
    (Limiter::Provider, "LIMIT_PROVIDER", 200),
    (Limiter::AccountProvider, "LIMIT_ACCOUNT_PROVIDER", 50),
    (Limiter::AccountSearch, "LIMIT_ACCOUNT_SEARCH", 150),
    (Limiter::AccountContent, "LIMIT_ACCOUNT_CONTENT", 720),
    (Limiter::BoughtContent, "LIMIT_BOUGHT_CONTENT", 32),
];

impl Limiter {
    /// Of a read of so many listings at most.
    pub const fn of_listings(most: u32) -> Self {
        if most > WIDE { Self::Page } else { Self::Search }
    }

    /// The part of it that one account has.
    pub const fn of_account(self) -> Option<Self> {
        match self {
            Self::Provider => Some(Self::AccountProvider),
            Self::Search => Some(Self::AccountSearch),
            Self::Content => Some(Self::AccountContent),
            _ => None,
        }
    }

    fn binding(self) -> &'static str {
        LIMITS.iter().find(|(limiter, ..)| *limiter == self).map_or("", |(_, binding, _)| binding)
    }
}

/// What a read of the database costs a client, where it is not known from memory: one of what it may ask for, and one for each
/// further look through the full-text index.
#[derive(Clone, Copy)]
pub struct Cost {
    pub limiter: Limiter,
    looks: usize,
}

impl Cost {
    /// Of a page of listings.
    pub fn of(filter: &Filter) -> Self {
        Self::of_words(filter.most(), filter.looks())
    }

    /// Of so many listings at most that have any of so many words, or all.
    pub const fn of_words(most: u32, words: usize) -> Self {
        Self { limiter: Limiter::of_listings(most), looks: words.saturating_sub(1) }
    }

    /// Takes what the further looks cost.
    pub async fn of_looks(self, app: &App, request: &Request) -> Result<(), ApiError> {
        for _ in 0..self.looks {
            app.limit_client(Limiter::Search, request).await?;
        }
        Ok(())
    }
}

impl From<Limiter> for Cost {
    fn from(limiter: Limiter) -> Self {
        Self { limiter, looks: 0 }
    }
}

/// Takes one from what `key` may ask for; 429 when nothing is left.
pub async fn take(env: &Env, limiter: Limiter, key: &str) -> Result<(), ApiError> {
    let name = limiter.binding();
    let binding = env
        .rate_limiter(name)
        .map_err(|_| SettingError { name: name.into(), problem: "is not bound (wrangler.toml)" })?;
    let outcome = binding.limit(key.to_owned()).await?;
    if outcome.success { Ok(()) } else { Err(ApiError::TooMany) }
}

/// Long answers, of up to 2 MB each, that are made at once: one takes several times as much of the 128 MB that an isolate
/// has, in the database's words, in ours and in the runtime's. A minute's rate may come at once.
const LONG_AT_ONCE: usize = 4;
/// The same of up to [`WIDE`] listings, half a megabyte at their longest.
const SEARCHES_AT_ONCE: usize = 6;
/// Drafts of actions that are made at once: what a wallet says that it holds is read by then, and some of it kept while a
/// provider runs the contract.
const DRAFTS_AT_ONCE: usize = 8;

/// Bytes that a purchase from a service wallet takes while it is made and waited for: what is known of the wallet. One full of
/// tokens takes more.
pub const PURCHASE_BYTES: usize = 32 << 10;

/// Bytes that a payment takes while it is verified and waited for, by the text of its header: that, its transaction, and the
/// entry of the outbox with its bytes.
pub const fn payment_bytes(header: &str) -> usize {
    header.len().saturating_mul(3)
}

thread_local! {
    static LONG: RefCell<Places> = const { RefCell::new(Places::new(LONG_AT_ONCE)) };
    static SEARCHES: RefCell<Places> = const { RefCell::new(Places::new(SEARCHES_AT_ONCE)) };
    static DRAFTS: RefCell<Places> = const { RefCell::new(Places::new(DRAFTS_AT_ONCE)) };
    /// Of those who ask for the newest listings, at the rate of short answers: most have what another read.
    static NEWEST: RefCell<Places> = const { RefCell::new(Places::new(LONG_AT_ONCE)) };
}

/// A place among those who make an answer as long, as soon as one is free; 429 where none is for ten seconds. Who reads
/// little needs none.
pub async fn place(limiter: Limiter, request: &Request) -> Result<Option<Place>, ApiError> {
    let places = match limiter {
        Limiter::Page => &LONG,
        Limiter::Search => &SEARCHES,
        Limiter::Draft => &DRAFTS,
        _ => return Ok(None),
    };
    Place::wait(places, &client(request)?).await.ok_or(ApiError::TooMany).map(Some)
}

/// The same among those who ask what is new in the whole catalogue.
pub async fn place_for_newest(request: &Request) -> Result<Place, ApiError> {
    Place::wait(&NEWEST, &client(request)?).await.ok_or(ApiError::TooMany)
}

/// Whether a client may read so much more of what is sold; where it had too much, of what this payment bought. Nobody is kept
/// from it where the limit cannot be asked.
pub async fn charge((env, account, client): (Env, Option<Rc<str>>, String), payment: Option<String>) -> bool {
    let mut taken = take_of(&env, Limiter::Content, account.as_deref(), &client).await;
    if let (Err(ApiError::TooMany), Some(payment)) = (&taken, payment) {
        taken = take(&env, Limiter::BoughtContent, &payment).await;
    }
    !matches!(taken, Err(ApiError::TooMany))
}

/// What an account is counted by: its owner for themselves, and its agents for all of them, so that none keeps its owner out.
pub fn of_account(account: &Account) -> String {
    match account.authorization {
        Some(Authorization::Grant(_)) => format!("agents of {}", account.owner),
        _ => account.owner.clone(),
    }
}

/// Takes one from what a client may ask for, first from the part of an account, where one asks, and last from what its site
/// may: who is refused by a narrower one has taken nothing of the others'.
pub async fn take_of(env: &Env, limiter: Limiter, account: Option<&str>, client: &str) -> Result<(), ApiError> {
    if let (Some(part), Some(account)) = (limiter.of_account(), account) {
        take(env, part, account).await?;
    }
    take_apart(env, limiter, "", client).await
}

/// The same, apart from what else is counted there: `what` names it.
pub async fn take_apart(env: &Env, limiter: Limiter, what: &str, client: &str) -> Result<(), ApiError> {
    take(env, limiter, &format!("{what}{client}")).await?;
    let site = site(client);
    // An IPv6 site, a /48 of 65,536 clients, has as much as two of them: what each of these takes is of either half, by chance.
    if site != client {
        let half = if worker::js_sys::Math::random() < 0.5 { "one" } else { "other" };
        take(env, limiter, &format!("{what}{half} {site}")).await?;
    }
    Ok(())
}

/// Takes one from what an account's client may cost the chain's provider.
pub async fn admit((env, account, client): (Env, Option<Rc<str>>, String)) -> Result<(), ChainError> {
    take_of(&env, Limiter::Provider, account.as_deref(), &client).await.map_err(|error| match error {
        ApiError::TooMany => ChainError::TooMany,
        error => ChainError::Unavailable(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_reads_the_longest_content_to_its_end_in_a_minute() {
        let pages = market::listing::MAX_CONTENT_BYTES.div_ceil(agents::mcp::view::PAGE_CHARACTERS);
        let charges = market::listing::MAX_CONTENT_BYTES.div_ceil(edge::contents::BYTES_PER_CHARGE);
        let limit = LIMITS.iter().find(|(limiter, ..)| *limiter == Limiter::AccountContent).map(|(.., limit)| *limit);
        assert!(limit.is_some_and(|limit| pages * charges <= limit as usize), "{pages} pages of {charges} each");
    }

    #[test]
    fn the_bindings_are_those_of_the_table() {
        let file = include_str!("../wrangler.toml");
        let (live, preview) = file.split_once("[env.preview]").expect("a preview environment");
        let mut ids = std::collections::BTreeSet::new();
        for (config, begin) in [(live, "[[ratelimits]]"), (preview, "{ name = ")] {
            assert_eq!(config.matches("\"LIMIT_").count(), LIMITS.len());
            for (limiter, name, limit) in LIMITS {
                assert_eq!(limiter.binding(), name);
                let entry = config.split(begin).find(|entry| entry.contains(&format!("\"{name}\"")));
                let simple = format!("simple = {{ limit = {limit}, period = {PERIOD_SECONDS} }}");
                assert!(entry.is_some_and(|entry| entry.contains(&simple)), "{name}");
                let id = entry.and_then(|entry| entry.split_once("namespace_id = ")).map(|(_, rest)| &rest[..6]);
                assert!(id.is_some_and(|id| ids.insert(id.to_owned())), "each counts on its own: {name}");
            }
        }
    }
}
