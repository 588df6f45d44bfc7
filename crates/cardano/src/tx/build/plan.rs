//! The intent of a transaction, before inputs from a wallet are chosen.

use std::collections::BTreeSet;

use crate::{
    address::{Address, PaymentAddress},
    chain::{Utxo, Value},
    fees::ExUnits,
    hash::{KeyHash, TxRef},
    money::Lovelace,
};

/// A transaction to be built: everything but wallet inputs, change, collateral and fee, which the builder adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxPlan {
    /// Outputs to create, with exactly these values. They are the transaction's first outputs, in this order.
    pub outputs: Vec<NewOutput>,
    /// UTxOs at key addresses that the transaction must spend.
    pub inputs: Vec<Utxo>,
    /// UTxOs to be spent with Plutus V3 scripts.
    pub script_inputs: Vec<ScriptInput>,
    /// UTxOs whose reference scripts the transaction uses. They are not spent.
    pub reference_inputs: Vec<ReferenceInput>,
    /// Hashes of the keys whose signatures the scripts require.
    pub required_signers: Vec<KeyHash>,
    /// Hashes of the wallet's other payment keys. UTxOs of these keys may be spent too; each key that is used adds a
    /// signature.
    pub wallet_keys: BTreeSet<KeyHash>,
    /// UTxOs that the wallet has set aside as collateral. If empty, any of the wallet's UTxOs may serve.
    pub collateral: Vec<Utxo>,
    /// CBOR of the auxiliary data, or `None`. The builder puts its hash into the body and does not parse it; the ledger
    /// rejects malformed data.
    pub auxiliary_data: Option<Vec<u8>>,
    /// Validity interval.
    pub validity: Validity,
}

/// An output to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOutput {
    /// Address of the recipient.
    pub to: PaymentAddress,
    /// Value of the output.
    pub value: Value,
    /// CBOR of the inline datum; `None` for none.
    pub inline_datum: Option<Vec<u8>>,
    /// Plutus V3 reference script (`compiledCode` in a blueprint); `None` for none.
    pub script: Option<Vec<u8>>,
}

impl NewOutput {
    /// Creates an output that holds only lovelace.
    pub fn pay(to: impl Into<PaymentAddress>, lovelace: Lovelace) -> Self {
        let value = Value { lovelace, ..Value::default() };
        Self { to: to.into(), value, inline_datum: None, script: None }
    }
}

/// A UTxO at a Plutus V3 script's address, with the data that is needed to spend it. Its datum must be inline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInput {
    /// UTxO to spend.
    pub utxo: Utxo,
    /// CBOR of the redeemer's data.
    pub redeemer: Vec<u8>,
    /// Execution units granted to the script, from the evaluation of an earlier draft plus a margin.
    pub ex_units: ExUnits,
}

/// A UTxO that a transaction refers to without spending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceInput {
    /// Reference of the UTxO.
    pub reference: TxRef,
    /// Size of the UTxO's reference script in bytes, which adds to the fee; 0 if there is none.
    pub script_bytes: u64,
}

/// Validity interval of a transaction in slots: `from <= slot < until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// First slot in which the transaction is valid; `None` if there is no lower bound.
    pub from: Option<u64>,
    /// First slot in which the transaction is no longer valid. It is mandatory, so that a transaction that is never
    /// included expires.
    pub until: u64,
}

/// The wallet that pays for a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Wallet<'a> {
    /// Address that receives change. Inputs are taken only from addresses with the same payment key, or with one of the
    /// keys in the plan's `wallet_keys`.
    pub address: Address,
    /// The wallet's unspent outputs, including the change of its pending transactions. Duplicates are counted once.
    pub utxos: &'a [Utxo],
    /// References of UTxOs that must not be spent, for example because they are reserved for other transactions or kept
    /// for their reference scripts.
    pub reserved: &'a BTreeSet<TxRef>,
}
