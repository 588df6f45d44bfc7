//! Claims a payment: ties a transaction to a listing, unless a condition of `claim.sql` blocks it.
//!
//! ```text
//! parameters ──claim.sql──> NULL: entry, reserved outputs and payment are inserted in one batch
//!                           the first condition that applies: nothing is inserted
//! ```

use std::sync::LazyLock;

use cardano::{Address, ContentHash, Lovelace, TxHash, TxRef, slots::Millis};
use outbox::{Draft, Entry, Guard, Kind, MAX_LATE_MS, Provenance, write_down};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, Rows, Statement, statement};

use crate::{
    account::Account,
    buyer,
    fees::creator_share,
    limits::{Authorization, SpendRefused, day, spent_on},
    listing::{DeliveryMode, ListingId},
    purchase_request::{self, UNUSED},
};

/// SQL for the condition that blocks a claim, as JSON, or NULL. `?1` is [`NewPayment::facts`]; `{spent}`, `{buyer}` and
/// `{unused}` stand for [`spent_on`], [`buyer::keys`] and [`UNUSED`].
static CONDITIONS: LazyLock<String> = LazyLock::new(|| {
    let sql = include_str!("claim.sql").replace("{spent}", &spent_on("a.owner", "facts.day"));
    sql.replace("{buyer}", &buyer::keys("(SELECT buyers FROM facts)")).replace("{unused}", UNUSED)
});
/// Maximum number of payment identifiers per transaction.
const MAX_IDENTIFIERS: u32 = 8;

/// A client's `payment-identifier` (an extension of x402), bound to the payload that it came with.
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
    /// End of the validity interval: the first slot in which the transaction is no longer valid.
    pub valid_until: u64,
    /// Provenance as known before submission.
    pub provenance: Provenance,
    pub listing_id: &'a ListingId,
    pub mode: DeliveryMode,
    pub payer: Address,
    /// The price.
    pub amount: Lovelace,
    /// SHA-256 of the header that brought the payment.
    pub header: ContentHash,
    /// Digest of the terms that the seller signed, for protected payments.
    pub terms_digest: Option<ContentHash>,
    /// The client's payment identifier.
    pub identifier: Option<Identifier>,
    /// Inputs of the transaction.
    pub inputs: &'a [TxRef],
    /// The account whose service wallet pays.
    pub account: Option<&'a Account>,
    /// Hash of the content, if contents are stored in the database and the claim must check it.
    pub content: Option<ContentHash>,
    /// Number of the buyer's failed payments for the listing that were looked up on the chain.
    pub checked: usize,
    /// Number of the wallet's recent failed payments for the listing that this one conflicts with, by spending their
    /// inputs.
    pub excluded: usize,
}

/// Result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Inserted. The caller submits the entry.
    New(Entry),
    /// A condition applies. Nothing was written.
    Blocked(Blocked),
    /// Another entry has reserved an input. Nothing was written.
    InputsTaken,
}

/// The condition that blocks a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "condition", rename_all = "camelCase")]
pub enum Blocked {
    /// The transaction was claimed before.
    Known,
    /// The payment identifier belongs to another payload.
    IdentifierTaken,
    /// The buyer owns the listing.
    Owned { purchase: TxHash },
    /// The buyer has an unconfirmed payment for the listing.
    Paying { tx: TxHash },
    /// The database was restored from a backup, and the service wallet's later purchases have not been read from the
    /// chain yet.
    Restoring,
    /// A failed payment of the buyer for the listing may still be included, so the chain must be asked first.
    Unresolved,
    /// Since this payment was built, another one of the wallet for the listing has failed, with which it does not
    /// conflict.
    Superseded,
    /// The signed terms are bound to another transaction.
    TermsTaken,
    /// The account may not spend the amount.
    SpendRefused { why: SpendRefused },
    /// The content is not in the database.
    ContentMissing,
}

impl Blocked {
    /// Parses the row of [`conditions`].
    ///
    /// # Errors
    /// The row is malformed.
    pub fn read(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        rows.first_json()
    }
}

/// Statement that returns the condition that would block an account's order now. Run before a payment is built.
pub fn conditions(
    account: &Account,
    listing_id: &ListingId,
    mode: DeliveryMode,
    amount: Lovelace,
    now: Millis,
) -> Statement {
    let facts = json!({ "tx": "", "listing": listing_id, "mode": mode, "amount": amount, "checked": 0 });
    conditions_of(&with_account(facts, account, now))
}

fn conditions_of(facts: &serde_json::Value) -> Statement {
    statement!(
        format!("SELECT blocked FROM (SELECT ({}) AS blocked) WHERE blocked IS NOT NULL", *CONDITIONS),
        facts.to_string()
    )
}

/// Adds the parameters of an account.
fn with_account(mut facts: serde_json::Value, account: &Account, now: Millis) -> serde_json::Value {
    let authorization = account.authorization.as_ref();
    let own = json!({
        "buyers": account.keys(),
        "wallet": account.wallet_address,
        "since": now.saturating_sub(MAX_LATE_MS),
        "owner": account.owner,
        "day": day(now),
        "now": now,
        "session": authorization.and_then(Authorization::session),
        "grant": authorization.and_then(Authorization::grant),
    });
    if let (Some(facts), serde_json::Value::Object(own)) = (facts.as_object_mut(), own) {
        facts.extend(own);
    }
    facts
}

impl NewPayment<'_> {
    fn purpose(&self) -> String {
        format!("payment:{}:{}", self.listing_id, self.tx)
    }

    /// Returns the creator's share; zero for instant sales, where the payment goes to the creator directly.
    fn creator_part(&self) -> Lovelace {
        match self.mode {
            DeliveryMode::Instant => Lovelace::ZERO,
            DeliveryMode::Protected => creator_share(self.amount),
        }
    }

    /// Returns the parameters of the conditions.
    fn facts(&self, now: Millis) -> serde_json::Value {
        let facts = json!({
            "tx": self.tx,
            "listing": self.listing_id,
            "mode": self.mode,
            "buyers": [self.payer.payment_key()],
            "payerKey": self.payer.payment_key(),
            "termsDigest": self.terms_digest,
            "identifier": self.identifier.as_ref().map(|identifier| &identifier.id),
            "payload": self.identifier.as_ref().map(|identifier| identifier.payload),
            "amount": self.amount,
            "content": self.content,
            "checked": self.checked,
            "excluded": self.excluded,
        });
        match self.account {
            Some(account) => with_account(facts, account, now),
            None => facts,
        }
    }

    /// Claims the payment in one batch: entry, reserved outputs, payment and share of the budget, or nothing.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn claim(&self, database: &impl Database, now: Millis) -> Result<Claim, DatabaseError> {
        let facts = self.facts(now);
        let guard = Some(Guard { blocked_by: &CONDITIONS, facts: facts.clone() });
        let entry = write_down(&Draft { guard, ..self.draft() }, now);
        // Each statement writes only if the one before did (`changes()`), so their order matters.
        let mut statements = vec![entry, self.insert(now)];
        if let Some(grant) = self.account.and_then(|account| account.authorization.as_ref()?.grant()) {
            statements.push(self.attribute(grant));
            statements.push(purchase_request::use_up(&self.tx, grant, self.listing_id, self.mode));
        }
        statements.extend(self.identifier.as_ref().map(|identifier| self.identify(identifier, &self.tx, now)));
        statements.push(conditions_of(&facts));
        let answers = database.batch(statements).await?;
        let [entry, .., blocked] = answers.as_slice() else {
            return Err(DatabaseError("a batch answered too little".into()));
        };
        match Entry::first(entry)? {
            Some(entry) => Ok(Claim::New(entry)),
            None => Ok(Blocked::read(blocked)?.map_or(Claim::InputsTaken, Claim::Blocked)),
        }
    }

    /// Returns the transaction as an outbox entry.
    pub(crate) fn draft(&self) -> Draft {
        Draft {
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

    /// Statement that inserts the payment if the statement before it inserted the entry.
    pub(crate) fn insert(&self, now: Millis) -> Statement {
        statement!(
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

    /// Statement that records the agent's grant if the statement before it inserted the payment.
    fn attribute(&self, grant: &str) -> Statement {
        statement!(
            "INSERT INTO agent_spends (tx_id, grant_id) SELECT ?1, id FROM oauth_grants WHERE id = ?2 AND changes() > 0 \
             ON CONFLICT (tx_id) DO UPDATE SET grant_id = excluded.grant_id",
            self.tx,
            grant,
        )
    }

    /// Binds the client's payment identifier to another payment, by which its payer owns the listing or is paying for
    /// it.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn name(&self, database: &impl Database, answer: &TxHash, now: Millis) -> Result<(), DatabaseError> {
        if let Some(identifier) = &self.identifier {
            database.run(self.identify(identifier, answer, now)).await?;
        }
        Ok(())
    }

    /// Statement that binds a payment identifier to a transaction, unless it belongs to another payload.
    ///
    /// An identifier gives access to the content, so it is stored only for the header that claimed the payment, and at
    /// most [`MAX_IDENTIFIERS`] per transaction.
    fn identify(&self, identifier: &Identifier, answer: &TxHash, now: Millis) -> Statement {
        statement!(
            format!(include_str!("insert_identifier.sql"), most = MAX_IDENTIFIERS),
            self.tx,
            self.listing_id,
            identifier.id.as_str(),
            identifier.payload,
            answer,
            now,
            self.header,
        )
    }
}
