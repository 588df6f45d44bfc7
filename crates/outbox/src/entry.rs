//! What is written down of a transaction.

use cardano::{Address, TxHash, TxRef, chain::Inclusion, slots::Millis, tx::build::BuiltTx};
use serde::Deserialize;
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
    /// The ledger refused it at its only attempt, or its scripts failed.
    Refused,
    /// It was in no block before its validity ended.
    Expired,
}

impl EntryState {
    /// Whether its end is not known.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Claimed | Self::Submitted)
    }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A buyer pays for a listing: from outside, or from a service wallet.
    Payment,
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
    /// The arbiter settles a dispute.
    Settlement,
}

impl Kind {
    /// The name in storage and in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Withdrawal => "withdrawal",
            Self::Result => "result",
            Self::Collect => "collect",
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::Payout => "payout",
            Self::Settlement => "settlement",
        }
    }

    /// Whether a refusal at the only attempt is the end. A payout spends nothing that the next one for the same creator
    /// would have to spend, so the ledger would take both: a provider that passed the first on before it refused must not
    /// make us pay twice. It stays until it is in a block or its validity has ended.
    #[must_use]
    pub const fn ends_by_refusal(self) -> bool {
        !matches!(self, Self::Payout)
    }
}

/// A transaction that was written down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "EntryRow")]
pub struct Entry {
    /// Its id.
    pub tx: TxHash,
    /// What it does.
    pub kind: Kind,
    /// The only bytes that are submitted for it; none of a payer's transaction that took no effect.
    pub cbor: Vec<u8>,
    /// How far it got.
    pub state: EntryState,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// Submissions that were begun; writing it down begins the first.
    pub attempts: u32,
    /// Of these, how many may have reached a node since it was written down.
    pub in_doubt: u32,
    /// When the last was begun, POSIX ms.
    pub attempted_at_ms: Millis,
    /// Whether somebody else handed it in before us, if it took effect: a node refused it when nobody had it from us, or
    /// took it from us for all that is known, and the block that has it is not newer than the newest one known before. It
    /// is no secret between us and who brought it.
    pub was_public: bool,
    /// The height of the newest block that was known when a payer's was written down whose payer did not sign the request.
    pub newest_height: Option<u64>,
    /// Whether its payer did not sign the request, and whoever handed it in first has noted no answer: it waits for one, was
    /// sent away, or is dead. What a block has then may be somebody else's to have handed in.
    pub unanswered: bool,
    /// The block that has it.
    pub block: Option<Inclusion>,
}

/// SQL for an [`Entry`] as JSON, of a row of `outbox`.
pub const ENTRY_JSON: &str = "json_object('tx', outbox.tx_id, 'kind', kind, 'cbor', cbor, 'state', state, \
    'validUntil', valid_until_slot, 'attempts', attempts, 'inDoubt', in_doubt, 'attemptedAtMs', attempted_at_ms, \
    'wasPublic', json(iif(was_public, 'true', 'false')), 'newestHeight', newest_height, \
    'unanswered', json(iif(unanswered, 'true', 'false')), \
    'block', iif(block_hash IS NULL, NULL, json_object('block', block_hash, 'height', block_height, 'slot', block_slot, \
      'time_ms', block_time_ms, 'valid', json('true'))))";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryRow {
    tx: TxHash,
    kind: Kind,
    cbor: String,
    state: EntryState,
    valid_until: u64,
    attempts: u32,
    in_doubt: u32,
    attempted_at_ms: Millis,
    was_public: bool,
    newest_height: Option<u64>,
    unanswered: bool,
    block: Option<Inclusion>,
}

impl TryFrom<EntryRow> for Entry {
    type Error = DatabaseError;

    fn try_from(row: EntryRow) -> Result<Self, DatabaseError> {
        let broken = || DatabaseError(format!("the bytes of {} cannot be read", row.tx));
        Ok(Self {
            tx: row.tx,
            kind: row.kind,
            cbor: hex::decode(&row.cbor).map_err(|_| broken())?,
            state: row.state,
            valid_until: row.valid_until,
            attempts: row.attempts,
            in_doubt: row.in_doubt,
            attempted_at_ms: row.attempted_at_ms,
            was_public: row.was_public,
            newest_height: row.newest_height,
            unanswered: row.unanswered,
            block: row.block,
        })
    }
}

impl Entry {
    /// The first of the rows that [`ENTRY_JSON`] made, if there is one.
    ///
    /// # Errors
    /// What is stored is not what we store.
    pub fn first(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        rows.first_json()
    }

    /// Whether a block that has it shows that somebody else handed it in before: no node is known to have taken it from us,
    /// and the block is not newer than what was known then.
    pub(crate) fn stood_before(&self, block: &Inclusion) -> bool {
        self.state == EntryState::Claimed && self.newest_height.is_some_and(|newest| block.height <= newest)
    }

    /// All rows that [`ENTRY_JSON`] made.
    ///
    /// # Errors
    /// As [`Entry::first`].
    pub fn all(rows: &Rows) -> Result<Vec<Self>, DatabaseError> {
        rows.all_json()
    }
}

/// A condition in SQL under which an entry is written, over one JSON parameter `?10`.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The condition.
    pub sql: &'static str,
    /// The value of `?10`.
    pub facts: serde_json::Value,
}

/// A transaction to be written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its id.
    pub tx: TxHash,
    /// What it does.
    pub kind: Kind,
    /// What it is for: at most one live entry stands for it.
    pub purpose: String,
    /// The wallet of ours that built it.
    pub wallet: Option<Address>,
    /// Its bytes.
    pub cbor: Vec<u8>,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// The height of the newest block known now, of a payer's own that its payer did not sign the request for.
    pub newest_height: Option<u64>,
    /// Outputs that it spends and that nobody else may build on.
    pub spends: Vec<TxRef>,
    /// Outputs that it only puts up.
    pub collateral: Vec<TxRef>,
    /// What else must hold.
    pub guard: Option<Guard>,
}

impl Draft {
    /// A transaction that a wallet of ours built.
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
            newest_height: None,
            spends: facts.inputs.clone(),
            collateral: facts.collateral.clone(),
            guard: None,
        }
    }
}
