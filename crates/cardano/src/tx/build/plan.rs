//! What a transaction shall do, before it is decided which UTxOs pay for it.

use std::collections::BTreeSet;

use crate::{
    address::{Address, PaymentAddress},
    chain::{Utxo, Value},
    fees::ExUnits,
    hash::{KeyHash, TxRef},
    money::Lovelace,
};

/// A transaction as a purpose sees it. The builder adds wallet inputs, change, collateral and the fee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxPlan {
    /// Paid exactly, as the first outputs, in this order.
    pub outputs: Vec<NewOutput>,
    /// UTxOs of key addresses that must be spent, whatever else the wallet has.
    pub inputs: Vec<Utxo>,
    /// UTxOs that Plutus V3 scripts release.
    pub script_inputs: Vec<ScriptInput>,
    /// UTxOs that are read and not spent: where the scripts are.
    pub reference_inputs: Vec<ReferenceInput>,
    /// Keys whose signature the scripts ask for.
    pub required_signers: Vec<KeyHash>,
    /// Further keys of the wallet, whose outputs it may spend, too: each for one signature more.
    pub wallet_keys: BTreeSet<KeyHash>,
    /// What the wallet set aside as collateral; where that is nothing, any of its UTxOs may be put up.
    pub collateral: Vec<Utxo>,
    /// CBOR of the auxiliary data, whose hash the body then has. Not read here: the ledger refuses what is malformed.
    pub auxiliary_data: Option<Vec<u8>>,
    /// When the ledger may take it.
    pub validity: Validity,
}

/// An output to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOutput {
    /// Where it goes.
    pub to: PaymentAddress,
    /// What it holds.
    pub value: Value,
    /// CBOR of the Plutus data that it carries inline.
    pub inline_datum: Option<Vec<u8>>,
    /// A Plutus V3 script that it carries for others to refer to: the bytes that a blueprint calls `compiledCode`.
    pub script: Option<Vec<u8>>,
}

impl NewOutput {
    /// A plain payment.
    pub fn pay(to: impl Into<PaymentAddress>, lovelace: Lovelace) -> Self {
        let value = Value { lovelace, ..Value::default() };
        Self { to: to.into(), value, inline_datum: None, script: None }
    }
}

/// A UTxO at a Plutus V3 script's address, with an inline datum, and what it takes to spend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInput {
    /// The UTxO.
    pub utxo: Utxo,
    /// CBOR of the Plutus data given to the script.
    pub redeemer: Vec<u8>,
    /// What the script may use: from an evaluation of an earlier draft, with a margin.
    pub ex_units: ExUnits,
}

/// A UTxO that is read and not spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceInput {
    /// Its name.
    pub reference: TxRef,
    /// The bytes of the script that it carries (0 if none): they are paid for.
    pub script_bytes: u64,
}

/// The slots in which the ledger may take a transaction: `from <= slot < until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// The first slot; `None` for no lower bound.
    pub from: Option<u64>,
    /// The first slot at which it is too late. Every transaction has one: what is not taken by then never will be.
    pub until: u64,
}

/// The wallet that pays.
#[derive(Clone, Copy, Debug)]
pub struct Wallet<'a> {
    /// Where change goes. Inputs are taken only from addresses of the same payment key, and of those that a plan adds.
    pub address: Address,
    /// What it holds: on the chain, and the change of its pending transactions. Repeated entries count once.
    pub utxos: &'a [Utxo],
    /// UTxOs that another transaction has been promised, and those that are to stay (scripts that others refer to).
    pub reserved: &'a BTreeSet<TxRef>,
}
