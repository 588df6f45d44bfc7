//! What is written down about a payment, and the port to where.

use std::{fmt, str::FromStr};

use cardano::{Address, ContentHash, TxHash, chain::Inclusion, slots::Millis};

use crate::{exact::VerifiedPayment, wire::Amount};

/// How far a settlement got. In text: the lowercase name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Written down; it is not known whether a node took it.
    Claimed,
    /// A node took it.
    Submitted,
    /// In a block.
    Included,
    /// The ledger refused it at its only attempt. The same request may begin again; no other may.
    Refused,
    /// It was in no block before its TTL.
    Expired,
}

/// A text that is not a [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a settlement's state")]
pub struct StateError;

impl State {
    /// The name in storage.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Submitted => "submitted",
            Self::Included => "included",
            Self::Refused => "refused",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for State {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        [Self::Claimed, Self::Submitted, Self::Included, Self::Refused, Self::Expired]
            .into_iter()
            .find(|state| state.name() == text)
            .ok_or(StateError)
    }
}

/// A payment to write down before it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is paid for: the listing's id.
    pub resource: String,
    /// SHA-256 of the whole `PAYMENT-SIGNATURE` header's value.
    pub header: ContentHash,
    /// The digest of the signed terms, where there are any: at most one transaction may ever claim it.
    pub terms_digest: Option<ContentHash>,
    /// What was verified.
    pub payment: VerifiedPayment,
}

/// A payment that was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The transaction.
    pub tx: TxHash,
    /// What is paid for.
    pub resource: String,
    /// SHA-256 of the header that made the claim.
    pub header: ContentHash,
    /// Who pays.
    pub payer: Address,
    /// How much was asked for.
    pub amount: Amount,
    /// The only bytes that are submitted for it.
    pub cbor: Vec<u8>,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// How far it got.
    pub state: State,
    /// Submissions that were begun; the claim itself begins the first.
    pub attempts: u32,
    /// When the last was begun, POSIX ms.
    pub attempted_at_ms: Millis,
    /// Whether the content was delivered for it.
    pub delivered: bool,
}

/// What a store says to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Written: the caller submits, as attempt number 1 (or, after a refusal, the next).
    New(Record),
    /// The transaction was claimed before, and that claim holds.
    Known(Record),
    /// The terms are bound to another transaction, for ever.
    Conflict(TxHash),
}

/// Where payments are written down. Each method is one atomic statement.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait SettlementStore {
    /// Why it could not.
    type Error: std::error::Error + 'static;

    /// The record of a transaction.
    async fn find(&self, tx: &TxHash) -> Result<Option<Record>, Self::Error>;

    /// Inserts the record in state claimed, one attempt begun at `now`. Where the transaction has a record in state
    /// refused with the same resource and header, that record begins again: state claimed, attempts + 1, begun at `now`.
    /// Otherwise says what is there. Nothing is written on a conflict.
    async fn claim(&self, claim: &Claim, now: Millis) -> Result<Claimed, Self::Error>;

    /// Counts another attempt, begun at `now`, if exactly `attempts` were begun so far; whether it did.
    async fn begin_attempt(&self, tx: &TxHash, attempts: u32, now: Millis) -> Result<bool, Self::Error>;

    /// A node took it: claimed becomes submitted; later states stay.
    async fn mark_submitted(&self, tx: &TxHash) -> Result<(), Self::Error>;

    /// It is in this block, whatever the state was.
    async fn mark_included(&self, tx: &TxHash, inclusion: &Inclusion) -> Result<(), Self::Error>;

    /// The ledger refused it: claimed becomes refused if exactly `attempts` were begun so far; whether it did.
    async fn mark_refused(&self, tx: &TxHash, attempts: u32, reason: &str) -> Result<bool, Self::Error>;

    /// It can no longer be included: claimed or submitted becomes expired; later states stay.
    async fn mark_expired(&self, tx: &TxHash) -> Result<(), Self::Error>;
}
