//! Accounts: sign-in by wallet, sessions, limits, and what an account looks like.
//!
//! A challenge is a digest that only the owner's wallet can sign ([`crate::challenge`]). Asking for challenges in
//! an owner's name changes nothing for the owner; the first answer claims one by an insert.

use api_types::{Limits, Wallet};
pub use api_types::{MAX_DAILY_BUDGET_ADA, MAX_PER_PAYMENT_ADA};
use cardano::{Address, ContentHash, KeyHash, Lovelace};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use crate::{
    buyer, catalogue,
    challenge::Challenge,
    headroom::StorageHeadroom,
    limits::{Authorization, DAY_MS, day, spent_on},
    purchase::{MAX_LISTED, newest_of},
};

/// How long a session lasts, in ms.
pub const SESSION_MS: u64 = 7 * DAY_MS;
/// How long one lasts that begins while the database has little room left, in ms.
const SHORT_SESSION_MS: u64 = 60 * 60 * 1_000;
/// What a new account may spend per purchase.
pub const DEFAULT_MAX_PER_PAYMENT: Lovelace = Lovelace::from_ada(10);
/// What a new account may spend per day.
pub const DEFAULT_DAILY_BUDGET: Lovelace = Lovelace::from_ada(30);
/// The account of the shared demo wallet, whose limits are the defaults and cannot be changed.
pub const DEMO_OWNER: &str = "demo";
/// The version of the demo wallet's key, which has a secret of its own.
pub const DEMO_KEY_VERSION: u32 = 0;

/// How long a session lasts that begins now, in ms.
#[must_use]
pub const fn session_ms(room: StorageHeadroom) -> u64 {
    match room {
        StorageHeadroom::Ample => SESSION_MS,
        StorageHeadroom::Short => SHORT_SESSION_MS,
    }
}

/// A bearer token: shown once, kept as its SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new token of 256 random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// A token as presented, if it has the shape of one.
    #[must_use]
    pub fn presented(text: &str) -> Option<Self> {
        let shaped = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        shaped.then(|| Self(text.to_owned()))
    }

    /// The token itself, for its holder.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored and looked up.
    #[must_use]
    pub fn hash(&self) -> String {
        ContentHash::of(self.0.as_bytes()).to_string()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// An account, as far as requests need it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The address signed in with, or [`DEMO_OWNER`].
    pub owner: String,
    pub wallet_address: Address,
    /// The version of its derivation.
    pub key_version: u32,
    pub max_per_payment: Lovelace,
    /// Most per UTC day.
    pub daily_budget: Lovelace,
    /// What costs more waits for the owner's approval, if an agent buys it; `None`: nothing does.
    #[serde(default)]
    pub ask_above: Option<Lovelace>,
    /// What lets this request use it: after its end the account pays no more.
    #[serde(default)]
    pub authorization: Option<Authorization>,
}

impl Account {
    /// The payment keys under which it may own something: its service wallet's, and its owner's.
    #[must_use]
    pub fn keys(&self) -> Vec<KeyHash> {
        let owner = self.owner.parse::<Address>().ok();
        [Some(self.wallet_address), owner].iter().flatten().map(|address| *address.payment_key()).collect()
    }
}

const ACCOUNT_JSON: &str = "json_object('owner', owner, 'walletAddress', wallet_address, 'keyVersion', key_version, \
    'maxPerPayment', CAST(max_per_payment AS TEXT), 'dailyBudget', CAST(daily_budget AS TEXT), \
    'askAbove', CAST(ask_above AS TEXT))";

/// The owner of a live session, as a scalar subquery over `?1` (the token's hash) and `?2` (now).
pub(crate) const SESSION_OWNER: &str = "(SELECT owner FROM sessions WHERE token_hash = ?1 AND expires_at_ms > ?2)";

/// The service wallet that an account gets on its first sign-in. One that has a wallet keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewWallet {
    pub address: Address,
    /// The version of the master secret that its key is derived from.
    pub key_version: u32,
}

/// How long it is kept who answered a challenge, in ms: longer than the challenge can live by any clock.
const CLAIM_MS: u64 = 60 * 60 * 1_000;

/// Live sessions of an account that bought something: one more ends the one that would end first. All of them end in one statement.
pub const MAX_SESSIONS: usize = 64;
/// Of an account that bought nothing, which is free to have.
pub const MAX_SESSIONS_UNPAID: usize = 8;

/// Why a sign-in fails.
#[derive(Debug, thiserror::Error)]
pub enum NotSignedIn {
    #[error("this challenge was answered before: ask for a new one")]
    Answered,
    #[error("there is no room for a new account")]
    StorageFull,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The address among a wallet's with which its owner signed in before: the first, or else the oldest account's.
///
/// # Errors
/// The database cannot be asked.
pub async fn known_among(
    db: &impl Database,
    first: &Address,
    others: &[Address],
) -> Result<Option<Address>, DatabaseError> {
    let known = statement!(
        "SELECT json_quote(owner) FROM accounts WHERE owner = ?1 OR owner IN (SELECT value FROM json_each(?2)) \
         ORDER BY owner <> ?1, created_at_ms, owner LIMIT 1",
        first,
        json!(others).to_string()
    );
    db.run(known).await?.first_json()
}

/// Opens a session for the first answer to a challenge, with the account on the first sign-in. An owner with an account comes in
/// however little room there is, and a refusal leaves nothing.
///
/// # Errors
/// See [`NotSignedIn`].
pub async fn sign_in(
    db: &impl Database,
    challenge: &Challenge,
    wallet: &NewWallet,
    token: &Token,
    room: StorageHeadroom,
    now_ms: u64,
) -> Result<Account, NotSignedIn> {
    let (owner, hash, digest) = (challenge.owner.to_string(), token.hash(), challenge.digest.to_string());
    let claim = statement!(
        "INSERT INTO challenge_claims (digest, claimed_by, expires_at_ms) SELECT ?1, ?2, ?3 \
         WHERE ?4 OR EXISTS (SELECT 1 FROM accounts WHERE owner = ?5) ON CONFLICT DO NOTHING",
        digest.as_str(),
        hash.as_str(),
        now_ms.saturating_add(CLAIM_MS),
        room == StorageHeadroom::Ample,
        owner.as_str(),
    );
    let account = statement!(
        "INSERT INTO accounts (owner, wallet_address, key_version, max_per_payment, daily_budget, created_at_ms, owner_key, \
           wallet_key) \
         SELECT ?1, ?2, ?3, CAST(?4 AS INTEGER), CAST(?5 AS INTEGER), ?6, ?9, ?10 \
         WHERE EXISTS (SELECT 1 FROM challenge_claims WHERE digest = ?7 AND claimed_by = ?8) ON CONFLICT DO NOTHING",
        owner.as_str(),
        wallet.address.to_string(),
        i64::from(wallet.key_version),
        DEFAULT_MAX_PER_PAYMENT,
        DEFAULT_DAILY_BUDGET,
        now_ms,
        digest.as_str(),
        hash.as_str(),
        challenge.owner.payment_key(),
        wallet.address.payment_key(),
    );
    let session = statement!(
        "INSERT INTO sessions (token_hash, owner, expires_at_ms) SELECT ?1, ?2, ?3 \
         WHERE EXISTS (SELECT 1 FROM challenge_claims WHERE digest = ?4 AND claimed_by = ?1)",
        hash.as_str(),
        owner.as_str(),
        now_ms.saturating_add(session_ms(room)),
        digest.as_str(),
    );
    let known = statement!("SELECT owner FROM accounts WHERE owner = ?1", owner.as_str());
    let statements =
        vec![claim, account, session, end_oldest_sessions(&owner, &hash), by_session(&hash, now_ms), known];
    let [_, _, _, _, account, known] = exactly(db.batch(statements).await?)?;
    let refused = if known.first().is_some() || room == StorageHeadroom::Ample {
        NotSignedIn::Answered
    } else {
        NotSignedIn::StorageFull
    };
    account.first_json()?.ok_or(refused)
}

/// The statement that ends an account's oldest sessions beside this one, where there are more than it may have.
fn end_oldest_sessions(owner: &str, hash: &str) -> Statement {
    statement!(
        "DELETE FROM sessions WHERE owner = ?1 AND token_hash <> ?2 AND token_hash NOT IN (SELECT token_hash FROM sessions \
           WHERE owner = ?1 AND token_hash <> ?2 ORDER BY expires_at_ms DESC \
           LIMIT iif(EXISTS (SELECT 1 FROM payments p JOIN purchases ON id = p.tx_id WHERE p.owner = ?1), {MAX_SESSIONS}, {MAX_SESSIONS_UNPAID}) - 1)",
        owner,
        hash,
    )
}

/// The statement that reads the account of a live session as [`Account`].
pub fn by_session(token_hash: &str, now_ms: u64) -> Statement {
    statement!(
        "SELECT json_set({ACCOUNT_JSON}, '$.authorization', json_object('session', ?1)) FROM accounts WHERE owner = {SESSION_OWNER}",
        token_hash,
        now_ms
    )
}

/// The statement that reads the account of a service wallet as [`Account`].
pub(crate) fn by_wallet(wallet: &Address) -> Statement {
    statement!("SELECT {ACCOUNT_JSON} FROM accounts WHERE wallet_address = ?1", wallet)
}

/// The account of a live session, read in one statement; `None` where there is no such session.
///
/// # Errors
/// The database cannot be asked.
pub async fn of_session(db: &impl Database, token: &Token, now_ms: u64) -> Result<Option<Account>, DatabaseError> {
    db.run(by_session(&token.hash(), now_ms)).await?.first_json()
}

/// Ends a session, or all of its account, so that none that was copied lives on; whether there was one.
///
/// # Errors
/// The database cannot be asked.
pub async fn sign_out(db: &impl Database, token: &Token, everywhere: bool, now_ms: u64) -> Result<bool, DatabaseError> {
    let live = "token_hash = ?1 AND expires_at_ms > ?2";
    let these = if everywhere { format!("owner = (SELECT owner FROM sessions WHERE {live})") } else { live.to_owned() };
    let end = statement!("DELETE FROM sessions WHERE {these} RETURNING owner", token.hash(), now_ms);
    Ok(db.run(end).await?.first().is_some())
}

/// Limits out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    #[error("maxPerPaymentAda: must be a whole number from 1 to {MAX_PER_PAYMENT_ADA}")]
    PerPayment,
    #[error("dailyBudgetAda: must be a whole number from maxPerPaymentAda to {MAX_DAILY_BUDGET_ADA}")]
    Daily,
    #[error("askAboveAda: must be a whole number from 0 to {MAX_PER_PAYMENT_ADA}, which asks for none")]
    AskAbove,
}

/// The price above which an agent's purchase waits for its owner's approval, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskAbove(Option<Lovelace>);

impl AskAbove {
    /// From whole ADA; the most that a purchase may cost asks for no approval.
    ///
    /// # Errors
    /// Out of range.
    pub fn from_ada(ada: u32) -> Result<Self, LimitsError> {
        match ada {
            0..MAX_PER_PAYMENT_ADA => Ok(Self(Some(Lovelace::from_ada(ada)))),
            MAX_PER_PAYMENT_ADA => Ok(Self(None)),
            _ => Err(LimitsError::AskAbove),
        }
    }

    /// The price.
    #[must_use]
    pub const fn price(self) -> Option<Lovelace> {
        self.0
    }
}

/// The limits that an owner sets in whole ADA, per purchase and per day, in lovelace.
///
/// # Errors
/// Which of them is out of range.
pub fn limits(max_per_payment: u32, daily_budget: u32) -> Result<(Lovelace, Lovelace), LimitsError> {
    if !(1..=MAX_PER_PAYMENT_ADA).contains(&max_per_payment) {
        return Err(LimitsError::PerPayment);
    }
    if !(max_per_payment..=MAX_DAILY_BUDGET_ADA).contains(&daily_budget) {
        return Err(LimitsError::Daily);
    }
    Ok((Lovelace::from_ada(max_per_payment), Lovelace::from_ada(daily_budget)))
}

/// Sets the limits of a live session's account, and its approval price, if one is given. Returns the account then, if
/// there is such a session.
///
/// # Errors
/// The database cannot be asked.
pub async fn set_limits(
    db: &impl Database,
    token: &Token,
    (max_per_payment, daily_budget): (Lovelace, Lovelace),
    ask_above: Option<AskAbove>,
    now_ms: u64,
) -> Result<Option<Account>, DatabaseError> {
    let set = statement!(
        "UPDATE accounts SET max_per_payment = CAST(?3 AS INTEGER), daily_budget = CAST(?4 AS INTEGER), \
           ask_above = iif(?5, CAST(?6 AS INTEGER), ask_above) WHERE owner = {SESSION_OWNER} RETURNING {ACCOUNT_JSON}",
        token.hash(),
        now_ms,
        max_per_payment,
        daily_budget,
        ask_above.is_some(),
        ask_above.and_then(AskAbove::price),
    );
    db.run(set).await?.first_json()
}

/// The statement that reads what a service wallet's payments that are in no block yet take of what the chain shows, in
/// lovelace, as a JSON string.
pub fn pending(wallet: &str) -> Statement {
    statement!(
        "SELECT json_quote(CAST(coalesce(sum(p.amount_lovelace), 0) AS TEXT)) FROM outbox o JOIN payments p \
           ON p.tx_id = o.tx_id WHERE o.wallet = ?1 AND o.kind IN ('payment', 'lock') AND o.state IN ('claimed', 'submitted')",
        wallet,
    )
}

/// What a live session's owner sees of the account, but for the balance, which the chain knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    pub account: Account,
    /// Spent today, of the daily budget.
    pub spent_today: Lovelace,
    /// A JSON array of purchases, by the owner's wallet or the service wallet, newest first.
    pub purchases: String,
    /// A JSON array of what the account sells, newest first: as many as a creator's page shows.
    pub listings: String,
    /// JSON members of how the sales went: `"sales":1,"sellerReputation":{...}`.
    figures: String,
}

impl AccountView {
    /// The public JSON ([`api_types::Me`]), with what the wallet holds. The lists are finished JSON: they are put in as they are.
    #[must_use]
    pub fn json(&self, balance: Lovelace) -> String {
        let Self { account, spent_today, purchases, listings, figures } = self;
        let wallet = json!(Wallet { address: account.wallet_address, balance_lovelace: balance });
        let limits = json!(Limits {
            max_per_payment_lovelace: account.max_per_payment,
            daily_budget_lovelace: account.daily_budget,
            spent_today_lovelace: *spent_today,
            ask_above_lovelace: account.ask_above,
        });
        let owner = json!(account.owner);
        format!(
            "{{\"owner\":{owner},\"wallet\":{wallet},\"limits\":{limits},\"purchases\":{purchases},\
             \"listings\":{listings},{figures}}}"
        )
    }
}

/// Reads [`AccountView`] in one batch; `None` where there is no such session.
///
/// # Errors
/// The database cannot be asked.
pub async fn view(db: &impl Database, token: &Token, now_ms: u64) -> Result<Option<AccountView>, DatabaseError> {
    let hash = token.hash();
    let spent = format!("SELECT CAST({} AS TEXT)", spent_on(SESSION_OWNER, "?3"));
    let keys = format!(
        "(SELECT json_array(wallet_key, coalesce(owner_key, wallet_key)) FROM accounts WHERE owner = {SESSION_OWNER})"
    );
    let purchases = newest_of(&format!("WHERE buyer_key IN {}", buyer::keys(&keys)), MAX_LISTED);
    let listings = catalogue::newest::matching(&format!("seller_address = {SESSION_OWNER}"));
    let figures = catalogue::seller_figures(SESSION_OWNER);
    let [account, spent, purchases, listings, figures] = exactly(
        db.batch(vec![
            by_session(&hash, now_ms),
            statement!(spent, hash.as_str(), now_ms, day(now_ms)),
            statement!(purchases, hash.as_str(), now_ms),
            statement!(listings, hash.as_str(), now_ms),
            statement!(figures, hash.as_str(), now_ms),
        ])
        .await?,
    )?;
    let Some(account) = account.first_json()? else {
        return Ok(None);
    };
    let spent_today = spent.first().and_then(|text| text.parse().ok());
    Ok(Some(AccountView {
        account,
        spent_today: spent_today.ok_or_else(|| DatabaseError("today's sum cannot be read".into()))?,
        purchases: format!("[{}]", purchases.rows.join(",")),
        listings: catalogue::newest::page(&listings)?.json,
        figures: figures.first().unwrap_or(catalogue::NO_FIGURES).to_owned(),
    }))
}
