//! An escrow transaction as the rules speak of it: parties, amounts, times. No CBOR, no slots.
//!
//! Deliberately independent of the service's own codecs: what the matrix proves about the contract must not rest
//! on the code that will later build transactions for it.

use std::collections::BTreeMap;

use uplc::PlutusData;

/// BLAKE2b-224 of a key or a script.
pub type Hash28 = [u8; 28];

/// Who may spend from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The owner of a key.
    Key(Hash28),
    /// Whoever satisfies a script.
    Script(Hash28),
}

/// An address without its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Who may spend.
    pub payment: Credential,
    /// Who may delegate.
    pub stake: Option<Credential>,
}

/// Quantities by policy and name; lovelace is the pair of empty policy and empty name.
pub type Value = BTreeMap<(Vec<u8>, Vec<u8>), i64>;

/// A transaction output's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputRef {
    /// The transaction that made it.
    pub tx: [u8; 32],
    /// Its place there.
    pub index: u64,
}

/// Where an escrow stands. The order is the on-chain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Paid for, nothing delivered.
    FundsLocked,
    /// A result is on chain.
    ResultSubmitted,
    /// The buyer wants the money back, nothing delivered.
    RefundRequested,
    /// The buyer wants the money back in spite of a result.
    Disputed,
    /// The buyer lets the seller collect.
    WithdrawAuthorized,
    /// The seller lets the buyer collect.
    RefundAuthorized,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::FundsLocked,
        Self::ResultSubmitted,
        Self::RefundRequested,
        Self::Disputed,
        Self::WithdrawAuthorized,
        Self::RefundAuthorized,
    ];
}

/// The escrow's datum. Times are POSIX ms.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the interface's, explained there")]
pub struct Escrow {
    pub buyer: Address,
    pub buyer_return_address: Option<Address>,
    pub seller: Address,
    pub seller_return_address: Option<Address>,
    pub reference_key: Vec<u8>,
    pub reference_signature: Vec<u8>,
    pub seller_nonce: Vec<u8>,
    pub buyer_nonce: Vec<u8>,
    pub agent_identifier: Vec<u8>,
    pub collateral_return_lovelace: i64,
    pub input_hash: Vec<u8>,
    pub result_hash: Vec<u8>,
    pub pay_by_time: i64,
    pub submit_result_time: i64,
    pub unlock_time: i64,
    pub external_dispute_unlock_time: i64,
    pub seller_cooldown_time: i64,
    pub buyer_cooldown_time: i64,
    pub state: State,
}

/// What an output carries besides its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Nothing.
    Absent,
    /// An escrow, in place.
    Escrow(Box<Escrow>),
    /// An escrow, by the hash of its datum.
    HashedEscrow(Box<Escrow>),
    /// The output that this payment settles.
    Tag(OutputRef),
    /// Data of no meaning to the escrow.
    Other(PlutusData),
}

/// A transaction output.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Where it lies.
    pub address: Address,
    /// What it holds.
    pub value: Value,
    /// What it says.
    pub datum: Datum,
    /// Whether it carries a script.
    pub has_reference_script: bool,
}

/// One admin's consent as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSignature {
    /// The public key.
    pub verification_key: Vec<u8>,
    /// CIP-8 protected headers, as signed.
    pub protected_headers: Vec<u8>,
    /// The Ed25519 signature.
    pub signature: Vec<u8>,
}

/// An amount as a redeemer spells it: in any order, possibly with repetitions.
pub type SpelledValue = Vec<(Vec<u8>, Vec<(Vec<u8>, i64)>)>;

/// What is done to an escrow.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the interface's, explained there")]
pub enum Action {
    Withdraw,
    SetRefundRequested,
    AuthorizeWithdrawal,
    WithdrawRefund,
    WithdrawDisputed { buyer_value: SpelledValue, seller_value: SpelledValue, admin_signatures: Vec<AdminSignature> },
    SubmitResult,
    AuthorizeRefund,
    /// A redeemer that is no action.
    Other(PlutusData),
}

/// An output that a transaction spends, with an action if it is the script's.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub reference: OutputRef,
    /// What it is.
    pub output: Output,
    /// What is done to it.
    pub action: Option<Action>,
}

/// A transaction, as far as the escrow is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// What it spends.
    pub inputs: Vec<Input>,
    /// What it makes.
    pub outputs: Vec<Output>,
    /// Keys that must have signed.
    pub signers: Vec<Hash28>,
    /// It is not valid before this POSIX ms, a whole second.
    pub starts: Option<i64>,
    /// It is not valid from this POSIX ms on, a whole second.
    pub ends: Option<i64>,
}

/// The script's parameters, wise or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Votes that a decision on a dispute needs.
    pub required_admins: i64,
    /// Who may vote, one entry per vote.
    pub admins: Vec<Hash28>,
    /// Ms between two actions of one party.
    pub cooldown_ms: i64,
}

/// Lovelace as an asset.
#[must_use]
pub const fn ada() -> (Vec<u8>, Vec<u8>) {
    (Vec::new(), Vec::new())
}

/// An amount of lovelace.
#[must_use]
pub fn lovelace(quantity: i64) -> Value {
    Value::from([(ada(), quantity)])
}

/// The lovelace in a value.
#[must_use]
pub fn lovelace_of(value: &Value) -> i64 {
    value.get(&ada()).copied().unwrap_or(0)
}
