//! Claims a payment: binds a transaction to a listing, unless a condition of `claim.sql` blocks it.
//!
//! ```text
//! parameters ──claim.sql──> NULL: entry, reserved outputs and payment are inserted in one batch
//!                           the first condition that applies: nothing is inserted
//! ```

use std::sync::LazyLock;

use cardano::{Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef, slots::Millis};
use outbox::{Entry, Guard, Kind, MAX_LATE_MS, NewEntry, Provenance, write_down};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;
use sql::{Database, DatabaseError, Read, Write};

use crate::{
    account::Account,
    buyer,
    fees::creator_share,
    limits::{Authorization, SpendRefused, day, spent_on},
    listing::{DeliveryMode, ListingId},
    purchase_request::{self, UNUSED},
};

/// SQL query for the condition that blocks a claim, given the [`Facts`] in `?1`. Returns one row, in which `condition`
/// is NULL if nothing blocks the claim. `{spent}`, `{buyer}` and `{unused}` stand for [`spent_on`], [`buyer::keys`] and
/// [`UNUSED`].
static CONDITIONS: LazyLock<String> = LazyLock::new(|| {
    let sql = include_str!("claim.sql").replace("{spent}", &spent_on("a.owner", "facts.day"));
    sql.replace("{buyer}", &buyer::keys("(SELECT buyers FROM facts)")).replace("{unused}", UNUSED)
});
/// SQL query for the name of the condition that blocks a claim; NULL if nothing blocks it.
static BLOCKED_BY: LazyLock<String> = LazyLock::new(|| format!("SELECT condition FROM ({})", *CONDITIONS));
/// Maximum number of payment identifiers per transaction.
const MAX_IDENTIFIERS: u32 = 8;

/// A client's `payment-identifier` (an extension of x402), with the hash of the payload in which it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    pub id: String,
    /// SHA-256 of the payload.
    pub payload: ContentHash,
}

/// A verified payment that is to be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayment<'a> {
    pub tx: TxHash,
    pub cbor: &'a [u8],
    /// First slot in which the transaction is no longer valid.
    pub valid_until: u64,
    /// Party that first submitted the transaction, as far as known before this service submits it.
    pub provenance: Provenance,
    pub listing_id: &'a ListingId,
    pub mode: DeliveryMode,
    pub payer: Address,
    /// Price that is paid for the listing.
    pub amount: Lovelace,
    /// SHA-256 of the header that contained the payment.
    pub header: ContentHash,
    /// Digest of the terms that the seller signed; `None` for instant payments.
    pub terms_digest: Option<ContentHash>,
    /// The client's payment identifier.
    pub identifier: Option<Identifier>,
    /// Inputs of the paying transaction.
    pub inputs: &'a [TxRef],
    /// The account whose service wallet pays; `None` for an external payer.
    pub account: Option<&'a Account>,
    /// Hash of the content whose presence the claim must check; `None` if contents are not stored in the database.
    pub content: Option<ContentHash>,
    /// Number of the buyer's failed payments for the listing that were looked up on the chain and found in no block.
    pub checked: usize,
    /// Number of the wallet's recent failed payments for the listing. None of them can be included together with this
    /// payment.
    pub replaced: usize,
}

/// Result of trying to claim a payment. `B` is the type of the blocking condition: [`Blocked`] for external payers,
/// [`WalletBlocked`] for service wallets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim<B> {
    /// The payment was inserted. The caller must submit this outbox entry.
    New(Entry),
    /// A condition blocks the claim. Nothing was written.
    Blocked(B),
    /// Another outbox entry has reserved an input. Nothing was written.
    InputsTaken,
}

/// Condition that blocks a claim by any payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BlockedRow")]
pub enum Blocked {
    /// The transaction was already claimed.
    Claimed,
    /// The payment identifier belongs to another payload.
    IdentifierTaken,
    /// The buyer owns the listing.
    Owned { purchase: TxHash },
    /// The buyer has another payment for the listing that no block includes yet.
    PaymentOpen { tx: TxHash },
    /// The listing was taken off sale.
    OffSale,
    /// An earlier payment of the buyer for the listing was rejected or expired, but a block may include it
    /// nevertheless. It must be looked up on the chain first.
    Unresolved,
    /// The signed terms are bound to another transaction.
    TermsTaken,
    /// The payment's amount is not the listing's present price. A service wallet must pay the present price. Other
    /// payers may pay a former price as long as an offer at that price is valid.
    PriceNotOffered,
    /// The content is not in the database.
    ContentMissing,
}

/// Condition that blocks a claim of a payment from a service wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BlockedRow")]
pub enum WalletBlocked {
    /// Condition that applies to every payer.
    Any(Blocked),
    /// The database was restored from a backup, and the service wallet's later purchases have not been read from the
    /// chain yet.
    Restoring,
    /// Another payment of this wallet for the listing has failed since this payment was built. The two share no input,
    /// so both could be included.
    NewFailure,
    /// The account may not spend the amount.
    SpendRefused(SpendRefused),
}

/// A blocking condition as `claim.sql` returns it.
#[derive(Deserialize)]
struct BlockedRow {
    condition: String,
    purchase: Option<TxHash>,
    paying: Option<TxHash>,
    max_per_payment: Option<Lovelace>,
    daily_budget: Option<Lovelace>,
    spent: Option<Lovelace>,
    min_reputation: Option<u8>,
}

impl TryFrom<BlockedRow> for Blocked {
    type Error = String;

    fn try_from(row: BlockedRow) -> Result<Self, String> {
        let blocked = match row.condition.as_str() {
            "claimed" => Some(Self::Claimed),
            "identifierTaken" => Some(Self::IdentifierTaken),
            "owned" => row.purchase.map(|purchase| Self::Owned { purchase }),
            "paying" => row.paying.map(|tx| Self::PaymentOpen { tx }),
            "offSale" => Some(Self::OffSale),
            "unresolved" => Some(Self::Unresolved),
            "termsTaken" => Some(Self::TermsTaken),
            "priceEnded" => Some(Self::PriceNotOffered),
            "contentMissing" => Some(Self::ContentMissing),
            _ => None,
        };
        blocked.ok_or_else(|| format!("a claim is blocked by {}", row.condition))
    }
}

impl TryFrom<BlockedRow> for WalletBlocked {
    type Error = String;

    fn try_from(row: BlockedRow) -> Result<Self, String> {
        let refused = match (row.condition.as_str(), row.max_per_payment, row.daily_budget.zip(row.spent)) {
            ("restoring", ..) => return Ok(Self::Restoring),
            ("newFailure", ..) => return Ok(Self::NewFailure),
            ("signedOut", ..) => SpendRefused::SignedOut,
            ("paused", ..) => SpendRefused::Paused,
            ("protectedOnly", ..) => SpendRefused::ProtectedOnly,
            ("reputation", ..) => SpendRefused::Reputation { least: row.min_reputation.unwrap_or(100) },
            ("perPayment", Some(limit), _) => SpendRefused::PerPayment { limit },
            ("daily", _, Some((limit, spent))) => SpendRefused::Daily { limit, spent },
            ("unapproved", ..) => SpendRefused::Unapproved,
            _ => return row.try_into().map(Self::Any),
        };
        Ok(Self::SpendRefused(refused))
    }
}

/// Facts about a payment on which the conditions of `claim.sql` depend, passed as its JSON parameter. If a field is
/// missing, the claim is rejected.
#[derive(Serialize)]
struct Facts<'a> {
    /// Transaction id; empty before the transaction is built.
    tx: String,
    listing: &'a ListingId,
    mode: DeliveryMode,
    buyers: Vec<KeyHash>,
    payer_key: KeyHash,
    amount: Lovelace,
    checked: usize,
    replaced: usize,
    now: Millis,
    terms_digest: Option<ContentHash>,
    identifier: Option<&'a str>,
    payload: Option<ContentHash>,
    content: Option<ContentHash>,
    /// Account that pays; `None` for an external payer.
    account: Option<AccountFacts<'a>>,
}

#[derive(Serialize)]
struct AccountFacts<'a> {
    owner: &'a str,
    wallet: Address,
    /// Time in POSIX ms after which a failed payment of the wallet counts as recent.
    since: Millis,
    day: u64,
    session: Option<&'a str>,
    grant_id: Option<&'a str>,
}

impl<'a> AccountFacts<'a> {
    fn new(account: &'a Account, now: Millis) -> Self {
        let authorization = account.authorization.as_ref();
        Self {
            owner: &account.owner,
            wallet: account.wallet_address,
            since: now.saturating_sub(MAX_LATE_MS),
            day: day(now),
            session: authorization.and_then(Authorization::session),
            grant_id: authorization.and_then(Authorization::grant),
        }
    }
}

/// Builds the query that checks whether an account may buy a listing now. It runs before a payment is built. Returns
/// the condition that would block the payment, or `None`.
pub fn conditions(
    account: &Account,
    listing: &ListingId,
    mode: DeliveryMode,
    amount: Lovelace,
    now: Millis,
) -> Read<Option<WalletBlocked>> {
    conditions_of(&json!(Facts {
        tx: String::new(),
        listing,
        mode,
        buyers: account.keys(),
        payer_key: *account.wallet_address.payment_key(),
        amount,
        checked: 0,
        // Before a payment is built, nobody knows which failed payments it replaces. The maximum allows any number.
        replaced: i32::MAX as usize,
        now,
        terms_digest: None,
        identifier: None,
        payload: None,
        content: None,
        account: Some(AccountFacts::new(account, now)),
    }))
}

fn conditions_of<B: DeserializeOwned>(facts: &serde_json::Value) -> Read<Option<B>> {
    sql::read!(format!("SELECT * FROM ({}) WHERE condition IS NOT NULL", *CONDITIONS), facts.to_string())
}

impl NewPayment<'_> {
    fn purpose(&self) -> String {
        format!("payment:{}:{}", self.listing_id, self.tx)
    }

    /// Returns the creator's share of the payment. Zero for an instant payment, which goes to the creator directly.
    fn creator_part(&self) -> Lovelace {
        match self.mode {
            DeliveryMode::Instant => Lovelace::ZERO,
            DeliveryMode::Protected => creator_share(self.amount),
        }
    }

    fn facts(&self, now: Millis) -> Facts<'_> {
        Facts {
            tx: self.tx.to_string(),
            listing: self.listing_id,
            mode: self.mode,
            buyers: self.account.map_or_else(|| vec![*self.payer.payment_key()], Account::keys),
            payer_key: *self.payer.payment_key(),
            amount: self.amount,
            checked: self.checked,
            replaced: self.replaced,
            now,
            terms_digest: self.terms_digest,
            identifier: self.identifier.as_ref().map(|identifier| identifier.id.as_str()),
            payload: self.identifier.as_ref().map(|identifier| identifier.payload),
            content: self.content,
            account: self.account.map(|account| AccountFacts::new(account, now)),
        }
    }

    /// Claims the payment in one batch: inserts the outbox entry, the reservations of its inputs, and the payment, or
    /// nothing at all. `B` is the type of the condition that can block this payer.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn claim<B: DeserializeOwned>(
        &self,
        database: &impl Database,
        now: Millis,
    ) -> Result<Claim<B>, DatabaseError> {
        self.claim_with(&json!(self.facts(now)), database, now).await
    }

    async fn claim_with<B: DeserializeOwned>(
        &self,
        facts: &serde_json::Value,
        database: &impl Database,
        now: Millis,
    ) -> Result<Claim<B>, DatabaseError> {
        let guard = Some(Guard { blocked_by: &BLOCKED_BY, facts: facts.clone() });
        let entry = write_down(&NewEntry { guard, ..self.entry() }, now);
        let grant = self.account.and_then(|account| account.authorization.as_ref()?.grant());
        let of_grant = grant.map(|grant| {
            (self.attribute(grant), purchase_request::use_up(&self.tx, grant, self.listing_id, self.mode))
        });
        let identify = self.identifier.as_ref().map(|identifier| self.insert_identifier(identifier, &self.tx, now));
        // Each statement writes only if the one before did (`changes()`), so their order matters.
        let batch = (entry, self.insert(now), of_grant, identify, conditions_of(facts));
        let (entry, (), _, _, blocked) = database.batch(batch).await?;
        Ok(match entry {
            Some(entry) => Claim::New(entry),
            None => blocked.map_or(Claim::InputsTaken, Claim::Blocked),
        })
    }

    /// Returns the transaction as an outbox entry.
    pub(crate) fn entry(&self) -> NewEntry {
        NewEntry {
            tx: self.tx,
            kind: match self.mode {
                DeliveryMode::Instant => Kind::Payment,
                DeliveryMode::Protected => Kind::Lock,
            },
            purpose: self.purpose(),
            wallet: self.account.map(|account| account.wallet_address),
            cbor: self.cbor.to_vec(),
            valid_until: self.valid_until,
            provenance: self.provenance,
            spends: self.inputs.to_vec(),
            collateral: vec![],
            acts_on: vec![],
            guard: None,
        }
    }

    /// Builds the statement that inserts the payment, if the preceding statement inserted the entry.
    pub(crate) fn insert(&self, now: Millis) -> Write {
        sql::write!(
            include_str!("insert_payment.sql"),
            self.tx,
            self.purpose(),
            self.listing_id,
            self.mode.as_str(),
            self.payer,
            self.amount,
            self.creator_part(),
            self.header,
            self.terms_digest,
            self.account.map(|account| account.owner.as_str()),
            self.account.map(|_| day(now)),
            self.payer.payment_key(),
        )
    }

    /// Builds the statement that records which agent (by its grant) made the payment. Writes nothing unless the
    /// preceding statement inserted the payment.
    fn attribute(&self, grant: &str) -> Write {
        sql::write!(
            "INSERT INTO agent_spends (tx_id, grant_id) SELECT ?1, id FROM oauth_grants WHERE id = ?2 AND changes() > 0 \
             ON CONFLICT (tx_id) DO UPDATE SET grant_id = excluded.grant_id",
            self.tx,
            grant,
        )
    }

    /// Binds the client's payment identifier to `existing`, the transaction of an earlier payment by which the same
    /// payer bought or is buying the listing.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn bind_identifier(
        &self,
        database: &impl Database,
        existing: &TxHash,
        now: Millis,
    ) -> Result<(), DatabaseError> {
        if let Some(identifier) = &self.identifier {
            database.execute(self.insert_identifier(identifier, existing, now)).await?;
        }
        Ok(())
    }

    /// Builds the statement that binds a payment identifier to a transaction. Writes nothing if the identifier already
    /// belongs to another payload.
    ///
    /// An identifier gives access to the content, so it is stored only for the header that claimed the payment, and at
    /// most [`MAX_IDENTIFIERS`] are stored per transaction.
    fn insert_identifier(&self, identifier: &Identifier, existing: &TxHash, now: Millis) -> Write {
        sql::write!(
            format!(include_str!("insert_identifier.sql"), most = MAX_IDENTIFIERS),
            self.tx,
            self.listing_id,
            identifier.id.as_str(),
            identifier.payload,
            existing,
            now,
            self.header,
        )
    }
}

#[cfg(test)]
mod tests {
    use api_types::AgentRules;
    use cardano::keys::SigningKey;
    use futures_lite::future::block_on;
    use serde_json::Value;
    use sql::sqlite::Sqlite;

    use super::*;

    const NOW: Millis = 1_790_000_000_000;
    const LISTING: &str = "lst_01J00000000000000000000000";

    fn account() -> Account {
        let address = |seed| SigningKey::from_seed(&[seed; 32]).unwrap().enterprise_address();
        Account {
            owner: address(1).to_string(),
            wallet_address: address(2),
            key_version: 1,
            max_per_payment: Lovelace::from_ada(10),
            daily_budget: Lovelace::from_ada(30),
            ask_above: None,
            rules: AgentRules::default(),
            authorization: Some(Authorization::Session("5".repeat(64))),
        }
    }

    /// A database with a listing and the account's session.
    fn database() -> Sqlite {
        let database = Sqlite::of(crate::schema::MIGRATIONS).unwrap();
        let Account { owner, wallet_address, .. } = account();
        let listing: Write = sql::write!(
            "INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, \
               content_hash, content_bytes, created_at_ms) VALUES (?1, '{{}}', '', '', 5000000, '', 1, 0, ?2, 1, 1)",
            LISTING,
            "0".repeat(64),
        );
        let owner_key = owner.parse::<Address>().unwrap().payment_key().to_string();
        let accounts: Write = sql::write!(
            "INSERT INTO accounts (owner, owner_key, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, \
               created_at_ms) VALUES (?1, ?2, ?3, ?4, 1, 10000000, 30000000, 1)",
            owner.as_str(),
            owner_key,
            wallet_address,
            wallet_address.payment_key(),
        );
        let session: Write = sql::write!("INSERT INTO sessions VALUES (?1, ?2, ?3)", "5".repeat(64), owner, NOW + 1);
        block_on(database.batch((listing, accounts, session))).unwrap();
        database
    }

    /// Returns named variants of these facts, each with one member missing, misspelt, or of another type.
    fn broken(facts: &Value) -> Vec<(String, Value)> {
        let mut broken = vec![];
        for (key, value) in facts.as_object().unwrap() {
            let mut add = |how: &str, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
                let mut facts = facts.clone();
                change(facts.as_object_mut().unwrap());
                broken.push((format!("{key} {how}"), facts));
            };
            add("missing", &|facts| drop(facts.remove(key)));
            add("misspelt", &|facts| {
                let value = facts.remove(key).unwrap();
                facts.insert(format!("{key}s"), value);
            });
            let other = if value.is_number() { json!("7") } else { json!(7) };
            add("of another type", &|facts| drop(facts.insert(key.clone(), other.clone())));
            let required = !matches!(
                key.as_str(),
                "terms_digest" | "identifier" | "payload" | "content" | "account" | "session" | "grant_id"
            );
            if required {
                add("null", &|facts| drop(facts.insert(key.clone(), Value::Null)));
            }
        }
        broken
    }

    fn payment<'a>(account: &Account, listing_id: &'a ListingId, paying: Option<&'a Account>) -> NewPayment<'a> {
        let hash = ContentHash::of(b"some");
        NewPayment {
            tx: TxHash::new([7; 32]),
            cbor: &[1],
            valid_until: 9,
            provenance: Provenance::Ours,
            listing_id,
            mode: DeliveryMode::Instant,
            payer: account.wallet_address,
            amount: Lovelace::from_ada(5),
            header: hash,
            terms_digest: Some(hash),
            identifier: Some(Identifier { id: "mine".into(), payload: hash }),
            inputs: &[],
            account: paying,
            content: None,
            checked: 0,
            replaced: 0,
        }
    }

    #[test]
    fn a_listing_that_was_taken_off_sale_cannot_be_claimed() {
        let (account, listing_id, database) = (account(), LISTING.parse::<ListingId>().unwrap(), database());
        let hide: sql::Write<()> = sql::write!("UPDATE listings SET hidden_at_ms = ?1 WHERE id = ?2", NOW, LISTING);
        block_on(database.execute(hide)).unwrap();
        for paying in [Some(&account), None] {
            let claim = block_on(payment(&account, &listing_id, paying).claim(&database, NOW)).unwrap();
            assert_eq!(claim, Claim::Blocked(WalletBlocked::Any(Blocked::OffSale)));
        }
    }

    #[test]
    fn a_claim_with_a_fact_missing_misspelt_or_mistyped_is_refused() {
        let (account, listing_id, database) = (account(), LISTING.parse::<ListingId>().unwrap(), database());
        for paying in [Some(&account), None] {
            let payment = payment(&account, &listing_id, paying);
            let claim = |facts: &Value| {
                let database = database.copy().unwrap();
                let claim = block_on(payment.claim_with::<WalletBlocked>(facts, &database, NOW));
                let written: Read<Vec<String>> =
                    sql::read!("SELECT tx_id FROM outbox UNION ALL SELECT tx_id FROM payments");
                (claim, block_on(database.fetch(written)).unwrap().len())
            };
            let facts = json!(payment.facts(NOW));
            assert!(matches!(claim(&facts), (Ok(Claim::New(_)), 2)), "{:?}", claim(&facts));
            let mut all = broken(&facts);
            if paying.is_some() {
                let with = |account| json!({ "account": account });
                for (name, account) in broken(&facts["account"]) {
                    let mut facts = facts.clone();
                    facts.as_object_mut().unwrap().extend(with(account).as_object().unwrap().clone());
                    all.push((format!("account.{name}"), facts));
                }
            }
            for amount in ["", "x", "-5", "0", "5.0", "5000000x"] {
                let mut facts = facts.clone();
                facts["amount"] = json!(amount);
                all.push((format!("an amount of {amount:?}"), facts));
            }
            for (name, facts) in all {
                let (claim, written) = claim(&facts);
                assert!(claim.is_err() && written == 0, "{name}: {claim:?}");
            }
        }
    }
}
