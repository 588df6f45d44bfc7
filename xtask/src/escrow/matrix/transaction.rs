//! A transaction as the rules speak of it: parties, amounts, times. No CBOR, no slots, no fees.

use std::collections::BTreeMap;

use cardano::{KeyHash, ScriptHash, TxRef, slots::Millis};
use escrow::{Credential, Datum, PlutusAddress, Redeemer, rules::ValidityRange};

/// Lovelace and tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// Lovelace.
    pub lovelace: u64,
    /// Quantities by policy and asset name; never zero.
    pub tokens: BTreeMap<(ScriptHash, Vec<u8>), u64>,
}

impl Value {
    /// Lovelace only.
    #[must_use]
    pub const fn lovelace(lovelace: u64) -> Self {
        Self { lovelace, tokens: BTreeMap::new() }
    }

    /// The quantity of an asset; lovelace has an empty policy and an empty name.
    #[must_use]
    pub fn quantity(&self, policy: &[u8], name: &[u8]) -> u64 {
        if policy.is_empty() && name.is_empty() {
            return self.lovelace;
        }
        let key = ScriptHash::from_slice(policy).map(|policy| (policy, name.to_vec()));
        key.and_then(|key| self.tokens.get(&key)).copied().unwrap_or(0)
    }
}

/// What an output carries besides its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// Nothing.
    Nothing,
    /// An escrow, in place.
    Escrow(Box<Datum>),
    /// An escrow, by the hash of its datum.
    HashedEscrow(Box<Datum>),
    /// The name of the output that this payment settles.
    Tag(TxRef),
    /// Other data in place, as CBOR.
    Other(Vec<u8>),
}

/// A transaction output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where it lies.
    pub address: PlutusAddress,
    /// What it holds.
    pub value: Value,
    /// What it says.
    pub attached: Attached,
    /// Whether it carries a script.
    pub has_script: bool,
}

/// What a spend hands to the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handed {
    /// An action.
    Action(Redeemer),
    /// Data that is no action, as CBOR.
    Other(Vec<u8>),
}

/// An output that the transaction spends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub reference: TxRef,
    /// What it is.
    pub output: Output,
    /// What the script is handed; `None` for an output of a wallet.
    pub handed: Option<Handed>,
}

/// A transaction, as far as the escrow is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What it spends.
    pub inputs: Vec<Input>,
    /// What it makes.
    pub outputs: Vec<Output>,
    /// Keys that must have signed.
    pub signers: Vec<KeyHash>,
    /// When it may be included; whole seconds.
    pub validity: ValidityRange,
}

impl Attached {
    /// The escrow that the output is, however its datum is attached.
    #[must_use]
    pub fn escrow(&self) -> Option<&Datum> {
        match self {
            Self::Escrow(datum) | Self::HashedEscrow(datum) => Some(datum),
            _ => None,
        }
    }
}

impl Transaction {
    /// The transaction with this script's addresses in place of the one that stands for it.
    #[must_use]
    pub fn under(mut self, placeholder: ScriptHash, script: ScriptHash) -> Self {
        let inputs = self.inputs.iter_mut().map(|input| &mut input.output);
        for output in inputs.chain(&mut self.outputs) {
            if output.address.payment == Credential::Script(placeholder) {
                output.address.payment = Credential::Script(script);
            }
        }
        self
    }

    /// Sum of what these outputs pay to an address in the name of a spent output.
    #[must_use]
    pub fn tagged(&self, own: TxRef, to: PlutusAddress) -> Value {
        let mut sum = Value::default();
        for output in &self.outputs {
            if output.address == to && output.attached == Attached::Tag(own) {
                sum.lovelace = sum.lovelace.saturating_add(output.value.lovelace);
                for (asset, quantity) in &output.value.tokens {
                    let entry = sum.tokens.entry(asset.clone()).or_default();
                    *entry = entry.saturating_add(*quantity);
                }
            }
        }
        sum
    }

    /// The upper bound of the validity: "now" to the contract.
    #[must_use]
    pub const fn now(&self) -> Option<Millis> {
        self.validity.until
    }
}
