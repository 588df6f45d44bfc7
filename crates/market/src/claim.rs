//! Claiming a payment: one row ties a transaction to a listing, if every condition of `claim.sql` allows it.
//!
//! ```text
//! facts ──claim.sql──> blocked by nothing ──> entry, payment, reservations: one batch, or nothing
//!                      blocked by the first condition that applies
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

/// What blocks a claim, as JSON; NULL where nothing does. `?1` is [`NewPayment::facts`], `{spent}` is [`spent_on`], `{buyer}`
/// [`buyer::keys`], `{unused}` [`UNUSED`].
static CONDITIONS: LazyLock<String> = LazyLock::new(|| {
    let sql = include_str!("claim.sql").replace("{spent}", &spent_on("a.owner", "facts.day"));
    sql.replace("{buyer}", &buyer::keys("(SELECT buyers FROM facts)")).replace("{unused}", UNUSED)
});
/// Client names that are kept for one transaction at most.
const MAX_IDENTIFIERS: u32 = 8;

/// A client's own name for a payment (x402's extension `payment-identifier`), with the digest of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    pub id: String,
    /// SHA-256 of the payload.
    pub payload: ContentHash,
}

/// A verified payment to be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayment<'a> {
    pub tx: TxHash,
    pub cbor: &'a [u8],
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// Who handed it to the network first, as far as is known.
    pub provenance: Provenance,
    pub listing_id: &'a ListingId,
    pub mode: DeliveryMode,
    pub payer: Address,
    /// The price, in lovelace.
    pub amount: Lovelace,
    /// SHA-256 of what carried it here.
    pub header: ContentHash,
    /// The digest of the signed terms, where there are any.
    pub terms_digest: Option<ContentHash>,
    /// The client's name for it.
    pub identifier: Option<Identifier>,
    /// What the transaction spends.
    pub inputs: &'a [TxRef],
    /// The account whose service wallet pays.
    pub account: Option<&'a Account>,
    /// The hash of what is sold, where the database keeps it: it must be there.
    pub content: Option<ContentHash>,
    /// How many of the buyer's failed payments for the listing the chain was asked about.
    pub checked: usize,
    /// How many recent failed payments of the same service wallet this one excludes, by spending what they spend.
    pub excluded: usize,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Written down: the caller submits it.
    New(Entry),
    /// A condition of `claim.sql` applies. Nothing was written.
    Blocked(Blocked),
    /// Another transaction has reserved an input. Nothing was written.
    InputsTaken,
}

/// The condition that blocks a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "condition", rename_all = "camelCase")]
pub enum Blocked {
    /// It was claimed before.
    Known,
    /// The client's name for it belongs to another payload.
    IdentifierTaken,
    /// The buyer owns the listing by this purchase.
    Owned { purchase: TxHash },
    /// The buyer is paying for the listing by this transaction.
    Paying { tx: TxHash },
    /// The database was restored, and the service wallet's purchases since the backup are not read from the chain yet.
    Restoring,
    /// A payment of the buyer's for the listing failed, and may still be in a block: the chain must be asked first.
    Unresolved,
    /// Another recent payment of the service wallet for the listing failed since this one was built.
    Superseded,
    /// The terms belong to another transaction.
    TermsTaken,
    /// The account does not pay.
    SpendRefused { why: SpendRefused },
    /// What is sold is not in the database.
    ContentMissing,
}

impl Blocked {
    /// The answer to [`conditions`].
    ///
    /// # Errors
    /// What is stored is not what we store.
    pub fn read(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        rows.first_json()
    }
}

/// The statement that answers which condition would block this order of an account now, before anything is built.
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

/// The facts of an account that pays.
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

    /// What the creator gets of it: of an instant sale nothing is passed on.
    fn creator_part(&self) -> Lovelace {
        match self.mode {
            DeliveryMode::Instant => Lovelace::ZERO,
            DeliveryMode::Protected => creator_share(self.amount),
        }
    }

    /// The facts that the conditions are about.
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

    /// Claims it, in one batch: with its listing, its reservations and its share of the limits, or not at all.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn claim(&self, database: &impl Database, now: Millis) -> Result<Claim, DatabaseError> {
        let facts = self.facts(now);
        let guard = Some(Guard { blocked_by: &CONDITIONS, facts: facts.clone() });
        let entry = write_down(&Draft { guard, ..self.draft() }, now);
        // Each of these writes only if the statement before it wrote (`changes()`): their order matters.
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

    /// Its transaction for the outbox, without the conditions.
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

    /// What the entry pays for, if the statement before wrote the entry.
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

    /// The agent's grant that pays, if the statement before wrote the payment.
    fn attribute(&self, grant: &str) -> Statement {
        statement!(
            "INSERT INTO agent_spends (tx_id, grant_id) SELECT ?1, id FROM oauth_grants WHERE id = ?2 AND changes() > 0 \
             ON CONFLICT (tx_id) DO UPDATE SET grant_id = excluded.grant_id",
            self.tx,
            grant,
        )
    }

    /// Keeps the client's payment identifier for another payment, by which its payer owns the listing or is paying for
    /// it. The same payload is answered by that payment from now on.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn name(&self, database: &impl Database, answer: &TxHash, now: Millis) -> Result<(), DatabaseError> {
        if let Some(identifier) = &self.identifier {
            database.run(self.identify(identifier, answer, now)).await?;
        }
        Ok(())
    }

    /// The client's name with the transaction that answers it, unless another payload has the name. A name opens what was
    /// paid for: it is kept for the header that claimed the payment, and [`MAX_IDENTIFIERS`] of them for each transaction.
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
