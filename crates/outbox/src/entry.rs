//! What is written down of a transaction.

use cardano::{Address, TxHash, TxRef, chain::Inclusion, slots::Millis, tx::build::BuiltTx};
use serde::{Deserialize, Serialize};
use sql::{DatabaseError, Rows};

/// How far a transaction got. In text: the lowercase name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// Written down; it is not known whether a node took it.
    Claimed,
    /// A node took it.
    Submitted,
    /// In a block.
    Included,
    /// Given up. The ledger refused it at its only attempt, its scripts failed, a block has another that spends the
    /// same, or its payer must sign for it. A block may have it.
    Refused,
    /// It was in no block before its validity ended.
    Expired,
}

impl EntryState {
    /// Whether it may still get into a block, or be given up.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Claimed | Self::Submitted)
    }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A buyer pays a seller directly: from outside, or from a service wallet.
    Payment,
    /// A buyer locks the price in the escrow.
    Lock,
    /// A service wallet's money goes to its owner.
    Withdrawal,
    /// The seller posts results.
    Result,
    /// The seller collects, and pays creators.
    Collect,
    /// A buyer takes the money back.
    Refund,
    /// A buyer disputes.
    Dispute,
    /// A creator is paid for a sale that was won in a dispute.
    Payout,
    /// The platform's wallet is split into outputs that results can spend independently.
    Split,
    /// The arbiter divides a disputed escrow.
    Award,
}

impl Kind {
    /// The name in storage and in logs.
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
            Self::Payout => "payout",
            Self::Split => "split",
            Self::Award => "award",
        }
    }

    /// Whether a refusal at the only attempt is the end. A payout spends no output that the next one for the same
    /// creator must spend, so the ledger would accept both. A provider that forwarded the first and yet refused it must
    /// not make us pay twice. It stays until it is in a block or its validity has ended.
    #[must_use]
    pub const fn ends_by_refusal(self) -> bool {
        !matches!(self, Self::Payout)
    }

    /// Whether its bytes say what it is for: all but a plain payment to a seller.
    #[must_use]
    pub const fn names_its_listing(self) -> bool {
        !matches!(self, Self::Payment)
    }
}

/// Who handed a transaction to the network first. In text: the lowercase name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// This service: a wallet of the service built it, a node accepted it at our only attempt, or its payer committed to the
    /// request in it. The request that brought it is its payer's.
    Ours,
    /// Others had it before us, or its payer claimed it by a signature: only the payer's signature opens what it bought.
    Foreign,
    /// No answer to our submission is known. Only the payer's signature opens what it bought.
    Unknown,
}

impl Provenance {
    /// The name in storage.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Foreign => "foreign",
            Self::Unknown => "unknown",
        }
    }
}

/// A transaction that was written down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub tx: TxHash,
    /// What it does.
    pub kind: Kind,
    /// The only bytes that are submitted for it; none of a payer's transaction that failed.
    #[serde(deserialize_with = "hex::serde::deserialize")]
    pub cbor: Vec<u8>,
    /// How far it got.
    pub state: EntryState,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// Submissions since it was claimed that may have reached a node; claiming begins the first.
    pub attempts: u32,
    /// When the last was begun, POSIX ms.
    pub attempted_at_ms: Millis,
    /// Who handed it to the network first.
    pub provenance: Provenance,
    pub block: Option<Inclusion>,
}

/// SQL for an [`Entry`] as JSON, of a row of `outbox`.
pub const ENTRY_JSON: &str = "json_object('tx', outbox.tx_id, 'kind', kind, 'cbor', cbor, 'state', state, \
    'validUntil', valid_until_slot, 'attempts', attempts, 'attemptedAtMs', attempted_at_ms, 'provenance', provenance, \
    'block', iif(block_hash IS NULL, NULL, json_object('block', block_hash, 'height', block_height, 'slot', block_slot, \
      'time_ms', block_time_ms, 'valid', json('true'))))";

impl Entry {
    /// The first of the rows that [`ENTRY_JSON`] made, if there is one.
    ///
    /// # Errors
    /// What is stored is not what we store.
    pub fn first(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        rows.first_json()
    }

    /// Whether no other submission can have reached a node since it was claimed.
    #[must_use]
    pub const fn is_only_attempt(&self) -> bool {
        self.attempts <= 1
    }

    /// All rows that [`ENTRY_JSON`] made.
    ///
    /// # Errors
    /// As [`Entry::first`].
    pub fn all(rows: &Rows) -> Result<Vec<Self>, DatabaseError> {
        rows.all_json()
    }
}

/// What may keep an entry from being written.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// A query of one value over `?1`: NULL where nothing blocks the entry.
    pub blocked_by: &'static str,
    /// The value of `?1`.
    pub facts: serde_json::Value,
}

/// A transaction to be written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub tx: TxHash,
    /// What it does.
    pub kind: Kind,
    /// What it is for: at most one live entry stands for it.
    pub purpose: String,
    /// The wallet of the service that built it.
    pub wallet: Option<Address>,
    pub cbor: Vec<u8>,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// Who handed it to the network first, as far as is known when it is claimed. [`Provenance::Unknown`] where nothing
    /// shows that its payer asks: then one that was refused before is claimed again for the same purpose only.
    pub provenance: Provenance,
    /// Outputs that it spends and that no other entry may spend.
    pub spends: Vec<TxRef>,
    /// Outputs that it only puts up.
    pub collateral: Vec<TxRef>,
    pub acts_on: Vec<TxHash>,
    /// What else must hold.
    pub guard: Option<Guard>,
}

impl Draft {
    /// A transaction that a wallet of the service built.
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
