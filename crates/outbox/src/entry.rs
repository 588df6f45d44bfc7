//! The stored record of a transaction.

use cardano::{Address, TxHash, TxRef, chain::Inclusion, slots::Millis, tx::build::BuiltTx};
use serde::{Deserialize, Serialize};

/// State of a transaction. In text, the variant's name in lowercase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// Recorded. Whether a node accepted it is unknown.
    Claimed,
    /// Accepted by a node.
    Submitted,
    /// Included in a block.
    Included,
    /// Given up: this service no longer submits the transaction. For example, a node rejected the only attempt, the
    /// scripts failed, or another included transaction spent the inputs. A block may include the transaction
    /// nevertheless.
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
    /// A buyer pays a seller directly, from a service wallet or a wallet of the buyer's own.
    Payment,
    /// A buyer locks the price in the escrow.
    Lock,
    /// A service wallet sends its balance to its owner.
    Withdrawal,
    /// The seller posts a result: it commits to the hash of the delivered content, in one or several escrows.
    Result,
    /// The seller collects the money of one or several escrows, and pays the creators' shares.
    Collect,
    /// A buyer takes a refund.
    Refund,
    /// A buyer asks for a refund, or disputes.
    Dispute,
    /// A buyer ends a dispute by releasing the money to the seller.
    Release,
    /// A creator is paid for a sale whose dispute the seller has won.
    Payout,
    /// An output of the platform's wallet is split, so that several transactions can spend from the wallet
    /// independently.
    Split,
    /// The arbiter pays out a disputed escrow.
    Award,
    /// A buyer pays another server, for which this service settles the payment.
    Settlement,
}

impl Kind {
    /// Returns the name by which the database and the log refer to this kind.
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
            Self::Settlement => "settlement",
        }
    }

    /// Returns whether an entry of this kind ends when a node rejects its only attempt. This is `false` for payouts:
    /// two payouts to the same creator share no input, so the ledger would accept both. If a provider reported a
    /// rejection but forwarded the transaction, a second payout would pay twice. A payout therefore stays open until it
    /// is included or expired.
    #[must_use]
    pub const fn ends_by_refusal(self) -> bool {
        !matches!(self, Self::Payout)
    }

    /// Returns whether the transaction itself shows which listing or purpose it belongs to. Plain payments to a seller
    /// and payments to another server do not show it.
    #[must_use]
    pub const fn names_its_listing(self) -> bool {
        !matches!(self, Self::Payment | Self::Settlement)
    }
}

/// The party that first submitted a transaction. In text, the variant's name in lowercase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// This service: a service wallet built the transaction, a node accepted it at our only attempt, or its metadata
    /// commits to the HTTP request that carried it. Such a commitment is accepted as proof that the payer sent the
    /// request.
    Ours,
    /// Somebody else: the transaction was public before this service submitted it, or its payer claimed it with a
    /// signature. Only the payer's signature gives access to the purchase.
    Foreign,
    /// Unknown, because no node has answered our submission. Only the payer's signature gives access to the purchase.
    Unknown,
}

impl Provenance {
    /// Returns the name by which the database refers to this value.
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
#[serde(from = "EntryRow")]
pub struct Entry {
    pub tx: TxHash,
    /// Kind of the transaction.
    pub kind: Kind,
    /// CBOR of the transaction. Only these bytes are ever submitted. Empty for a failed transaction of an external
    /// payer, because its bytes are deleted.
    pub cbor: Vec<u8>,
    /// Current state of the entry.
    pub state: EntryState,
    /// First slot in which the transaction is no longer valid.
    pub valid_until: u64,
    /// Number of times that the transaction was submitted or may have been submitted. Recording the entry counts as the
    /// first.
    pub attempts: u32,
    /// Time at which the last submission began, in POSIX milliseconds.
    pub attempted_at_ms: Millis,
    /// Party that first submitted the transaction.
    pub provenance: Provenance,
    pub block: Option<Inclusion>,
}

/// An [`Entry`] as a row with the columns in [`ENTRY`].
#[derive(Deserialize)]
struct EntryRow {
    tx_id: TxHash,
    kind: Kind,
    #[serde(deserialize_with = "hex::serde::deserialize")]
    cbor: Vec<u8>,
    state: EntryState,
    valid_until_slot: u64,
    attempts: u32,
    attempted_at_ms: Millis,
    provenance: Provenance,
    block_hash: Option<TxHash>,
    block_height: Option<u64>,
    block_slot: Option<u64>,
    block_time_ms: Option<Millis>,
}

/// SQL list of the columns of the table `outbox` from which an [`Entry`] is read.
pub const ENTRY: &str = "outbox.tx_id, outbox.kind, outbox.cbor, outbox.state, outbox.valid_until_slot, \
    outbox.attempts, outbox.attempted_at_ms, outbox.provenance, outbox.block_hash, outbox.block_height, \
    outbox.block_slot, outbox.block_time_ms";

impl From<EntryRow> for Entry {
    fn from(row: EntryRow) -> Self {
        let EntryRow { tx_id: tx, kind, cbor, state, valid_until_slot: valid_until, attempts, .. } = row;
        let EntryRow { attempted_at_ms, provenance, block_hash, block_height, block_slot, block_time_ms, .. } = row;
        let block = block_hash.zip(block_height).zip(block_slot.zip(block_time_ms));
        let block =
            block.map(|((block, height), (slot, time_ms))| Inclusion { block, height, slot, time_ms, valid: true });
        Self { tx, kind, cbor, state, valid_until, attempts, attempted_at_ms, provenance, block }
    }
}

impl Entry {
    /// Returns whether the transaction was submitted at most once.
    #[must_use]
    pub const fn is_only_attempt(&self) -> bool {
        self.attempts <= 1
    }
}

/// A condition that must hold in the database when an entry is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// SQL query with one parameter, `?1`. Returns NULL if the entry may be recorded, or else the reason why not.
    pub blocked_by: &'static str,
    /// Value of the query's parameter `?1`.
    pub facts: serde_json::Value,
}

/// A transaction to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    pub tx: TxHash,
    /// Kind of the transaction.
    pub kind: Kind,
    /// Text that says what the transaction is for. At most one open or included entry can have the same purpose.
    pub purpose: String,
    /// The service wallet that built the transaction; `None` if it comes from an external payer.
    pub wallet: Option<Address>,
    pub cbor: Vec<u8>,
    /// First slot in which the transaction is no longer valid.
    pub valid_until: u64,
    /// Party that first submitted the transaction. As long as it is unknown, a refused transaction can be recorded
    /// again only for its previous purpose.
    pub provenance: Provenance,
    /// Outputs that the transaction spends. No other transaction may spend them while they are reserved.
    pub spends: Vec<TxRef>,
    /// Outputs that the transaction uses only as collateral.
    pub collateral: Vec<TxRef>,
    pub acts_on: Vec<TxHash>,
    /// Additional condition for recording the entry; `None` if there is none.
    pub guard: Option<Guard>,
}

impl NewEntry {
    /// Creates the record of a transaction that a service wallet built and signed.
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
