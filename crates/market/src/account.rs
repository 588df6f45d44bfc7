//! Accounts: sign-in with a wallet, sessions, spending limits, and the view of an account.
//!
//! An owner signs in by signing a challenge ([`crate::challenge`]). Anyone may request a challenge for an address,
//! because a challenge alone changes nothing. The first signed answer claims the challenge by a unique key in the
//! database, so that the same answer is rejected from then on.

use std::fmt;

use api_types::{AgentRules, Error, ErrorCode, Limits, MAX_REPUTATION, Me, SellerFigures, Wallet};
pub use api_types::{MAX_DAILY_BUDGET_ADA, MAX_PER_PAYMENT_ADA};
use cardano::{Address, ContentHash, KeyHash, Lovelace};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, One, Read, Write};

use crate::{
    buyer, catalogue,
    challenge::Challenge,
    headroom::StorageHeadroom,
    limits::{Authorization, DAY_MS, day, spent_on},
    purchase::newest_of,
    seller_name::SellerName,
};

/// Lifetime of a session in ms.
pub const SESSION_MS: u64 = 7 * DAY_MS;
/// Lifetime of a session that begins while the database is nearly full, in ms.
const SHORT_SESSION_MS: u64 = 60 * 60 * 1_000;
/// Default spending limit per purchase of a new account.
pub const DEFAULT_MAX_PER_PAYMENT: Lovelace = Lovelace::from_ada(10);
/// Default spending limit per UTC day of a new account.
pub const DEFAULT_DAILY_BUDGET: Lovelace = Lovelace::from_ada(30);
/// Owner of the shared demo account, whose limits cannot be changed.
pub const DEMO_OWNER: &str = "demo";
/// Version of the secret from which the demo wallet's key is derived. The versions for all other wallets start at 1.
pub const DEMO_KEY_VERSION: u32 = 0;

/// Returns the lifetime in ms of a new session, which is shorter if the database is nearly full.
#[must_use]
pub const fn session_ms(room: StorageHeadroom) -> u64 {
    match room {
        StorageHeadroom::Ample => SESSION_MS,
        StorageHeadroom::Short => SHORT_SESSION_MS,
    }
}

/// Bearer token of a session. Only its SHA-256 is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token from 256 random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// Parses the token that a request presents. Returns `None` if the text does not have the form of a token.
    #[must_use]
    pub fn presented(text: &str) -> Option<Self> {
        let shaped = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        shaped.then(|| Self(text.to_owned()))
    }

    /// Returns the token's text, for sending it to its holder.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the hash that is stored.
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

/// An account as stored in the database. Does not include the balance of its wallet, which must be read from the chain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "AccountRow")]
pub struct Account {
    /// Address with which the owner signed in, or [`DEMO_OWNER`].
    pub owner: String,
    pub wallet_address: Address,
    /// Version of the master secret from which the wallet's key is derived.
    pub key_version: u32,
    pub max_per_payment: Lovelace,
    /// Maximum amount that the account may spend per UTC day.
    pub daily_budget: Lovelace,
    /// Price above which an agent's purchase needs the owner's approval; `None` if no purchase does.
    pub ask_above: Option<Lovelace>,
    /// Rules for the account's agents.
    pub rules: AgentRules,
    /// Session or agent's grant by which the current request uses the account; `None` if the account was read without
    /// one. Payments are rejected once the session or grant has ended.
    pub authorization: Option<Authorization>,
}

/// Database row of an [`Account`], with the session or agent's grant that authorized the request.
#[derive(Deserialize)]
struct AccountRow {
    owner: String,
    wallet_address: Address,
    key_version: u32,
    max_per_payment: Lovelace,
    daily_budget: Lovelace,
    ask_above: Option<Lovelace>,
    #[serde(deserialize_with = "sql::flag")]
    protected_only: bool,
    min_reputation: u8,
    #[serde(deserialize_with = "sql::flag")]
    agents_paused: bool,
    session: Option<String>,
    grant_id: Option<String>,
}

impl From<AccountRow> for Account {
    fn from(row: AccountRow) -> Self {
        let AccountRow { owner, wallet_address, key_version, max_per_payment, daily_budget, ask_above, .. } = row;
        let AccountRow { protected_only, min_reputation, agents_paused, .. } = row;
        let rules = AgentRules { protected_only, min_reputation, agents_paused };
        let grant = row.grant_id.map(Authorization::Grant);
        let authorization = row.session.map(Authorization::Session).or(grant);
        Self { owner, wallet_address, key_version, max_per_payment, daily_budget, ask_above, rules, authorization }
    }
}

impl Account {
    /// Returns the payment keys whose purchases belong to this account: the service wallet's key and the owner's key.
    #[must_use]
    pub fn keys(&self) -> Vec<KeyHash> {
        let owner = self.owner.parse::<Address>().ok();
        [Some(self.wallet_address), owner].iter().flatten().map(|address| *address.payment_key()).collect()
    }
}

/// SQL list of the columns of an [`AccountRow`], except `session` and `grant_id`, which each query appends.
const ACCOUNT: &str = "owner, wallet_address, key_version, CAST(max_per_payment AS TEXT) AS max_per_payment, \
    CAST(daily_budget AS TEXT) AS daily_budget, CAST(ask_above AS TEXT) AS ask_above, protected_only, min_reputation, agents_paused";

/// SQL expression for the owner of a session that has not expired; `?1` is the hash of its token, `?2` the current
/// time.
pub(crate) const SESSION_OWNER: &str = "(SELECT owner FROM sessions WHERE token_hash = ?1 AND expires_at_ms > ?2)";

/// Service wallet for an account that is about to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewWallet {
    pub address: Address,
    /// The version of the master secret from which the wallet's key is derived.
    pub key_version: u32,
}

/// Time in ms for which an answered challenge is stored, so that it cannot be answered again. Longer than the lifetime
/// of a challenge plus any difference between clocks.
const CHALLENGE_CLAIM_MS: u64 = 60 * 60 * 1_000;

/// Maximum number of unexpired sessions of an account that has made a purchase. Opening another session ends the
/// oldest.
pub const MAX_SESSIONS: usize = 64;
/// Maximum number of unexpired sessions of an account that has not made a purchase.
pub const MAX_SESSIONS_UNPAID: usize = 8;

/// Reason why a sign-in fails.
#[derive(Debug, thiserror::Error)]
pub enum NotSignedIn {
    #[error("this challenge was answered before: ask for a new one")]
    Answered,
    #[error("there is no room for a new account")]
    StorageFull,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Returns the address with which a wallet signs in, or `None` if none of its addresses has an account. Prefers
/// `first`; among `others`, chooses the address whose account is the oldest.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn sign_in_address(
    db: &impl Database,
    first: &Address,
    others: &[Address],
) -> Result<Option<Address>, DatabaseError> {
    let known = sql::read!(
        "SELECT owner FROM accounts WHERE owner = ?1 OR owner IN (SELECT value FROM json_each(?2)) \
         ORDER BY owner <> ?1, created_at_ms, owner LIMIT 1",
        first,
        json!(others).to_string()
    );
    db.fetch(known).await
}

/// Opens a session for a wallet's owner who has signed `challenge`. Each challenge can be used only once. An owner's
/// first sign-in creates the account.
///
/// If the database is nearly full, only owners who already have an account can sign in. A rejected sign-in creates
/// neither an account nor a session.
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
    let claim: Write = sql::write!(
        "INSERT INTO challenge_claims (digest, claimed_by, expires_at_ms) SELECT ?1, ?2, ?3 \
         WHERE ?4 OR EXISTS (SELECT 1 FROM accounts WHERE owner = ?5) ON CONFLICT DO NOTHING",
        digest.as_str(),
        hash.as_str(),
        now_ms.saturating_add(CHALLENGE_CLAIM_MS),
        room == StorageHeadroom::Ample,
        owner.as_str(),
    );
    let account: Write = sql::write!(
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
    let session: Write = sql::write!(
        "INSERT INTO sessions (token_hash, owner, expires_at_ms) SELECT ?1, ?2, ?3 \
         WHERE EXISTS (SELECT 1 FROM challenge_claims WHERE digest = ?4 AND claimed_by = ?1)",
        hash.as_str(),
        owner.as_str(),
        now_ms.saturating_add(session_ms(room)),
        digest.as_str(),
    );
    let known: Read<Option<String>> = sql::read!("SELECT owner FROM accounts WHERE owner = ?1", owner.as_str());
    let writes = (claim, account, session, end_oldest_sessions(&owner, &hash));
    let (_, account, known) = db.batch((writes, by_session(&hash, now_ms), known)).await?;
    let is_answered = known.is_some() || room == StorageHeadroom::Ample;
    account.ok_or(if is_answered { NotSignedIn::Answered } else { NotSignedIn::StorageFull })
}

/// Builds the statement that deletes an account's oldest sessions beyond the maximum number. The new session, whose
/// token has this `hash`, is kept.
fn end_oldest_sessions(owner: &str, hash: &str) -> Write {
    sql::write!(
        "DELETE FROM sessions WHERE owner = ?1 AND EXISTS (SELECT 1 FROM sessions WHERE token_hash = ?2) \
           AND token_hash <> ?2 AND token_hash NOT IN (SELECT token_hash FROM sessions \
           WHERE owner = ?1 AND token_hash <> ?2 ORDER BY expires_at_ms DESC \
           LIMIT iif(EXISTS (SELECT 1 FROM payments p JOIN purchases ON id = p.tx_id WHERE p.owner = ?1), {MAX_SESSIONS}, {MAX_SESSIONS_UNPAID}) - 1)",
        owner,
        hash,
    )
}

/// Builds the query that reads the account of an unexpired session.
pub fn by_session(token_hash: &str, now_ms: u64) -> Read<Option<Account>> {
    sql::read!(
        "SELECT {ACCOUNT}, ?1 AS session, NULL AS grant_id FROM accounts WHERE owner = {SESSION_OWNER}",
        token_hash,
        now_ms
    )
}

/// Builds the query that reads the account to which an agent's grant belongs. The caller must have checked that the
/// grant is valid.
pub fn by_grant(grant: &str) -> Read<Option<Account>> {
    sql::read!(
        "SELECT {ACCOUNT}, NULL AS session, ?1 AS grant_id FROM accounts \
         WHERE owner = (SELECT owner FROM oauth_grants WHERE id = ?1)",
        grant
    )
}

/// Builds the query that reads the account of a service wallet. The returned account has no `authorization`.
pub(crate) fn by_wallet(wallet: &Address) -> Read<Option<Account>> {
    sql::read!("SELECT {ACCOUNT}, NULL AS session, NULL AS grant_id FROM accounts WHERE wallet_address = ?1", wallet)
}

/// Reads the account of an unexpired session; `None` if there is no such session.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn of_session(db: &impl Database, token: &Token, now_ms: u64) -> Result<Option<Account>, DatabaseError> {
    db.fetch(by_session(&token.hash(), now_ms)).await
}

/// Ends a session, or all sessions of its account if `everywhere` is set. Returns whether a session was ended.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn sign_out(db: &impl Database, token: &Token, everywhere: bool, now_ms: u64) -> Result<bool, DatabaseError> {
    let live = "token_hash = ?1 AND expires_at_ms > ?2";
    let these = if everywhere { format!("owner = (SELECT owner FROM sessions WHERE {live})") } else { live.to_owned() };
    let end: Write<Vec<String>> =
        sql::write!("DELETE FROM sessions WHERE {these} RETURNING owner", token.hash(), now_ms);
    Ok(!db.execute(end).await?.is_empty())
}

fn out_of_range(field: &str, range: fmt::Arguments<'_>) -> Error {
    Error::of_field(ErrorCode::InvalidValue, field, format_args!("must be a whole number {range}"))
}

/// Changes to an owner's rules for agents. `None` leaves a rule unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleChanges {
    /// Price above which an agent's purchase needs its owner's approval. `Some(None)`: no purchase needs approval.
    pub ask_above: Option<Option<Lovelace>>,
    /// Whether agents may make protected purchases only.
    pub protected_only: Option<bool>,
    /// Minimum reputation of sellers from whom agents may buy; 0 allows every seller.
    pub min_reputation: Option<u8>,
}

impl RuleChanges {
    /// Parses the changes that an owner sent. [`MAX_PER_PAYMENT_ADA`] as `ask_above_ada` means that no purchase needs
    /// approval.
    ///
    /// # Errors
    /// Returns an error that names the field that is out of range.
    pub fn parse(
        ask_above_ada: Option<u32>,
        protected_only: Option<bool>,
        min_reputation: Option<u32>,
    ) -> Result<Self, Error> {
        let ask_above = |ada: u32| match ada {
            0..MAX_PER_PAYMENT_ADA => Ok(Some(Lovelace::from_ada(ada))),
            MAX_PER_PAYMENT_ADA => Ok(None),
            _ => {
                let range = format_args!("from 0 to {MAX_PER_PAYMENT_ADA}, which asks for none");
                Err(out_of_range("askAboveAda", range))
            }
        };
        let reputation = |score: u32| {
            let score = u8::try_from(score).ok().filter(|score| u32::from(*score) <= MAX_REPUTATION);
            score.ok_or_else(|| {
                out_of_range("minReputation", format_args!("from 0, which allows every seller, to {MAX_REPUTATION}"))
            })
        };
        Ok(Self {
            ask_above: ask_above_ada.map(ask_above).transpose()?,
            protected_only,
            min_reputation: min_reputation.map(reputation).transpose()?,
        })
    }
}

/// Converts spending limits, per purchase and per day, from whole ADA to lovelace.
///
/// # Errors
/// Returns an error that names the limit that is out of range.
pub fn limits(max_per_payment: u32, daily_budget: u32) -> Result<(Lovelace, Lovelace), Error> {
    if !(1..=MAX_PER_PAYMENT_ADA).contains(&max_per_payment) {
        return Err(out_of_range("maxPerPaymentAda", format_args!("from 1 to {MAX_PER_PAYMENT_ADA}")));
    }
    if !(max_per_payment..=MAX_DAILY_BUDGET_ADA).contains(&daily_budget) {
        let range = format_args!("from maxPerPaymentAda to {MAX_DAILY_BUDGET_ADA}");
        return Err(out_of_range("dailyBudgetAda", range));
    }
    Ok((Lovelace::from_ada(max_per_payment), Lovelace::from_ada(daily_budget)))
}

/// Sets the spending limits of the signed-in account, and changes its rules for agents. Returns the changed account, or
/// `None` if `token` belongs to no unexpired session.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn set_limits(
    db: &impl Database,
    token: &Token,
    (max_per_payment, daily_budget): (Lovelace, Lovelace),
    rules: RuleChanges,
    now_ms: u64,
) -> Result<Option<Account>, DatabaseError> {
    let set = sql::write!(
        "UPDATE accounts SET max_per_payment = CAST(?3 AS INTEGER), daily_budget = CAST(?4 AS INTEGER), \
           ask_above = iif(?5, CAST(?6 AS INTEGER), ask_above), \
           protected_only = coalesce(?7, protected_only), min_reputation = coalesce(?8, min_reputation) WHERE owner = {SESSION_OWNER} \
         RETURNING {ACCOUNT}, NULL AS session, NULL AS grant_id",
        token.hash(),
        now_ms,
        max_per_payment,
        daily_budget,
        rules.ask_above.is_some(),
        rules.ask_above.flatten(),
        rules.protected_only,
        rules.min_reputation.map(u32::from),
    );
    db.execute(set).await
}

/// Pauses or resumes all agents of the signed-in account. Returns the changed account, or `None` if `token` belongs to
/// no unexpired session.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn pause_agents(
    db: &impl Database,
    token: &Token,
    paused: bool,
    now_ms: u64,
) -> Result<Option<Account>, DatabaseError> {
    let set = sql::write!(
        "UPDATE accounts SET agents_paused = ?3 WHERE owner = {SESSION_OWNER} \
         RETURNING {ACCOUNT}, NULL AS session, NULL AS grant_id",
        token.hash(),
        now_ms,
        paused,
    );
    db.execute(set).await
}

/// Sets the name under which the signed-in owner sells, or removes the name. Returns `false` if `token` belongs to no
/// unexpired session.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn set_seller_name(
    db: &impl Database,
    token: &Token,
    name: Option<&SellerName>,
    now_ms: u64,
) -> Result<bool, DatabaseError> {
    let set: Write<Option<String>> = sql::write!(
        "UPDATE accounts SET name = ?3 WHERE owner = {SESSION_OWNER} RETURNING owner",
        token.hash(),
        now_ms,
        name.map(SellerName::as_str)
    );
    Ok(db.execute(set).await?.is_some())
}

/// Builds the query that sums a service wallet's payments that no block includes yet, in lovelace. The wallet's balance
/// on the chain does not reflect these payments.
pub fn pending(wallet: &str) -> Read<One<Lovelace>> {
    sql::read!(
        "SELECT CAST(coalesce(sum(p.amount_lovelace), 0) AS TEXT) FROM outbox o JOIN payments p \
           ON p.tx_id = o.tx_id WHERE o.wallet = ?1 AND o.kind IN ('payment', 'lock') AND o.phase = 'open'",
        wallet,
    )
}

/// Reads the signed-in account as its owner sees it, in one batch; `None` if `token` belongs to no unexpired session.
/// `balance` is the service wallet's balance.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn view(
    db: &impl Database,
    token: &Token,
    balance: Lovelace,
    now_ms: u64,
) -> Result<Option<Me>, DatabaseError> {
    let hash = token.hash();
    let spent = spent_on(SESSION_OWNER, "?3");
    let spent: Read<One<Lovelace>> = sql::read!("SELECT CAST({spent} AS TEXT)", hash.as_str(), now_ms, day(now_ms));
    let keys = format!(
        "(SELECT json_array(wallet_key, coalesce(owner_key, wallet_key)) FROM accounts WHERE owner = {SESSION_OWNER})"
    );
    let session = || vec![hash.as_str().into(), now_ms.into()];
    let purchases = newest_of(&format!("WHERE buyer_key IN {}", buyer::keys(&keys)), session());
    let listings = catalogue::newest::matching(&format!("seller_address = {SESSION_OWNER}"), session());
    let figures = catalogue::seller_figures(SESSION_OWNER, session());
    let (account, One(spent_today), purchases, listings, figures) =
        db.batch((by_session(&hash, now_ms), spent, purchases, listings, figures)).await?;
    let Some(account) = account else { return Ok(None) };
    let listings =
        catalogue::newest::parse(listings).map_err(|error| DatabaseError(format!("an account's listings: {error}")))?;
    let SellerFigures { seller_name, sales, seller_reputation, disputes } =
        figures.map(SellerFigures::from).unwrap_or_default();
    Ok(Some(Me {
        owner: account.owner,
        wallet: Wallet { address: account.wallet_address, balance_lovelace: balance },
        limits: Limits {
            max_per_payment_lovelace: account.max_per_payment,
            daily_budget_lovelace: account.daily_budget,
            spent_today_lovelace: spent_today,
            ask_above_lovelace: account.ask_above,
            rules: account.rules,
        },
        purchases: purchases.into_iter().map(Into::into).collect(),
        listings,
        seller_name,
        sales,
        seller_reputation,
        disputes,
    }))
}
