//! The stored record of a transaction.

use cardano::{Address, TxHash, TxRef, chain::Inclusion, slots::Millis, tx::build::BuiltTx};
use serde::{Deserialize, Serialize};
use sql::{DatabaseError, Rows};

/// State of a transaction. In text, the lowercase name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// Recorded. Whether a node accepted it is unknown.
    Claimed,
    /// Accepted by a node.
    Submitted,
    /// Included in a block.
    Included,
    /// Given up: rejected at its only attempt, its scripts failed, another included transaction spent its inputs, or
    /// its payer must sign for it. It may nevertheless be included.
    Refused,
    /// Expired: no block included it before its validity interval ended.
    Expired,
}

impl EntryState {
    /// Returns whether the outcome is still open.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Claimed | Self::Submitted)
    }
}

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A buyer pays a seller directly, from their own or a service wallet.
    Payment,
    /// A buyer locks the price in the escrow.
    Lock,
    /// A service wallet's balance goes to its owner.
    Withdrawal,
    /// The seller submits results.
    Result,
    /// The seller collects, and pays creators.
    Collect,
    /// A buyer takes a refund.
    Refund,
    /// A buyer asks for a refund, or disputes.
    Dispute,
    /// A buyer ends a dispute by releasing the money to the seller.
    Release,
    /// A creator is paid for a sale that was won in a dispute.
    Payout,
    /// The platform's wallet is split into outputs that results can spend independently.
    Split,
    /// The arbiter pays an award.
    Award,
}

impl Kind {
    /// Returns the name in storage and in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Lock => "lock",
            Self::Withdrawal => "withdrawal",
            Self::Result => "result",
            Self::Collect => "collect",
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::Release => "release",
            Self::Payout => "payout",
            Self::Split => "split",
            Self::Award => "award",
        }
    }

    /// Returns whether a rejection at the only attempt ends the entry. A payout shares no input with the next payout to
    /// the same creator, so the ledger would accept both. If a provider forwarded the first although it reported a
    /// rejection, a second one would pay twice. A payout therefore stays open until it is included or expired.
    #[must_use]
    pub const fn ends_by_refusal(self) -> bool {
        !matches!(self, Self::Payout)
    }

    /// Returns whether the bytes identify the listing or purpose, as in all kinds but a plain payment to a seller.
    #[must_use]
    pub const fn names_its_listing(self) -> bool {
        !matches!(self, Self::Payment)
    }
}

/// The party that first submitted a transaction. In text, the lowercase name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// This service: a service wallet built it, a node accepted it at our only attempt, or its payer committed to the
    /// request in it. The request that brought it is then the payer's.
    Ours,
    /// Somebody else: it was public before, or its payer claimed it with a signature. Only the payer's signature gives
    /// access to the purchase.
    Foreign,
    /// Unknown, because no answer to our submission is known. Only the payer's signature gives access to the purchase.
    Unknown,
}

impl Provenance {
    /// Returns the name in storage.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Foreign => "foreign",
            Self::Unknown => "unknown",
        }
    }
}

/// A recorded transaction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub tx: TxHash,
    /// Kind of the transaction.
    pub kind: Kind,
    /// Bytes of the transaction, the only ones that are submitted. Empty for a payer's transaction that failed.
    #[serde(deserialize_with = "hex::serde::deserialize")]
    pub cbor: Vec<u8>,
    /// State.
    pub state: EntryState,
    /// First slot in which it is no longer valid.
    pub valid_until: u64,
    /// Number of submissions since it was claimed that may have reached a node; claiming begins the first.
    pub attempts: u32,
    /// Time at which the last submission began, in POSIX milliseconds.
    pub attempted_at_ms: Millis,
    /// Party that first submitted it.
    pub provenance: Provenance,
    pub block: Option<Inclusion>,
}

/// SQL expression for an [`Entry`] as JSON, from a row of `outbox`.
pub const ENTRY_JSON: &str = "json_object('tx', outbox.tx_id, 'kind', kind, 'cbor', cbor, 'state', state, \
    'validUntil', valid_until_slot, 'attempts', attempts, 'attemptedAtMs', attempted_at_ms, 'provenance', provenance, \
    'block', iif(block_hash IS NULL, NULL, json_object('block', block_hash, 'height', block_height, 'slot', block_slot, \
      'time_ms', block_time_ms, 'valid', json('true'))))";

impl Entry {
    /// Parses the first row made by [`ENTRY_JSON`], if there is one.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the stored data are invalid.
    pub fn first(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        rows.first_json()
    }

    /// Returns whether no other submission can have reached a node since it was claimed.
    #[must_use]
    pub const fn is_only_attempt(&self) -> bool {
        self.attempts <= 1
    }

    /// Parses all rows made by [`ENTRY_JSON`].
    ///
    /// # Errors
    /// See [`Entry::first`].
    pub fn all(rows: &Rows) -> Result<Vec<Self>, DatabaseError> {
        rows.all_json()
    }
}

/// A condition on recording an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// SQL query of one value over `?1`: NULL if the entry may be recorded.
    pub blocked_by: &'static str,
    /// Value of `?1`.
    pub facts: serde_json::Value,
}

/// A transaction to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    pub tx: TxHash,
    /// Kind of the transaction.
    pub kind: Kind,
    /// Purpose. At most one live entry has it.
    pub purpose: String,
    /// The service wallet that built it; `None` for an outside payer's.
    pub wallet: Option<Address>,
    pub cbor: Vec<u8>,
    /// First slot in which it is no longer valid.
    pub valid_until: u64,
    /// Party that first submitted it, as far as known when it is claimed. With [`Provenance::Unknown`], a given-up
    /// entry is claimed again only for the same purpose.
    pub provenance: Provenance,
    /// Outputs that it spends and reserves.
    pub spends: Vec<TxRef>,
    /// Outputs that it only uses as collateral.
    pub collateral: Vec<TxRef>,
    pub acts_on: Vec<TxHash>,
    /// Further condition.
    pub guard: Option<Guard>,
}

impl NewEntry {
    /// Returns the entry for a transaction that a service wallet built.
    #[must_use]
    pub fn built(kind: Kind, purpose: String, wallet: Address, built: &BuiltTx) -> Self {
        let facts = &built.facts;
        Self {
            tx: facts.tx_id,
            kind,
            purpose,
            wallet: Some(wallet),
            cbor: built.cbor.clone(),
            valid_until: facts.valid_until_slot,
            provenance: Provenance::Ours,
            spends: facts.inputs.clone(),
            collateral: facts.collateral.clone(),
            acts_on: vec![],
            guard: None,
        }
    }
}
