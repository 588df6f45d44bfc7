//! Transactions that spend escrows, in the form that a script sees: with times instead of slots, and without fees.

use cardano::{KeyHash, Lovelace, ScriptHash, TxRef, chain::Value, tx::build::NewOutput};
use pallas_codec::minicbor;
use surety_escrow::{Credential, Datum, PlutusAddress, dispute::output_reference, rules::ValidityRange};

use super::scene::{AT_SCRIPT, OWN, SCRIPT};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatumOption {
    None,
    /// The output contains the hash of the datum. The datum's CBOR is here, for the transaction to reveal it.
    Hash(Vec<u8>),
    Inline(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxOut {
    pub address: PlutusAddress,
    pub value: Value,
    pub datum: DatumOption,
    pub has_script: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxIn {
    pub reference: TxRef,
    pub output: TxOut,
    /// CBOR of the redeemer; `None` for an input from a wallet, which runs no script.
    pub redeemer: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxInfo {
    pub inputs: Vec<TxIn>,
    pub outputs: Vec<TxOut>,
    pub signers: Vec<KeyHash>,
    /// Validity interval, in whole seconds.
    pub validity: ValidityRange,
}

pub fn lovelace(amount: u64) -> Value {
    Value { lovelace: Lovelace::new(amount).unwrap(), ..Value::default() }
}

/// Adds an amount, which may be negative, to a value's lovelace, clamped to the valid range.
pub fn add(value: &mut Value, amount: i64) {
    let sum = value.lovelace.get().saturating_add_signed(amount);
    value.lovelace = Lovelace::new(sum).unwrap_or(Lovelace::MAX);
}

/// Returns the unit of the asset `credit` under a test policy, in Blockfrost's form.
pub fn credits(policy: u8) -> String {
    hex::encode([policy; 28]) + &hex::encode("credit")
}

pub const fn key_address(key: KeyHash) -> PlutusAddress {
    PlutusAddress { payment: Credential::Key(key), stake: None }
}

/// Returns the inline datum that marks an output as a payout of the escrow with this reference.
pub fn tag(own: TxRef) -> DatumOption {
    DatumOption::Inline(minicbor::to_vec(output_reference(&own)).unwrap())
}

impl TxOut {
    pub const fn new(address: PlutusAddress, value: Value, datum: DatumOption) -> Self {
        Self { address, value, datum, has_script: false }
    }

    /// Decodes the escrow's datum in this output, or returns `None` if it has no inline datum of the contract's type.
    pub fn escrow(&self) -> Option<Datum> {
        match &self.datum {
            DatumOption::Inline(cbor) => Datum::from_cbor(cbor).ok(),
            _ => None,
        }
    }

    /// Applies a change to the output's datum. Does nothing if the output is not an escrow.
    pub fn edit(&mut self, change: impl FnOnce(&mut Datum)) {
        if let Some(mut datum) = self.escrow() {
            change(&mut datum);
            self.datum = DatumOption::Inline(datum.to_cbor());
        }
    }

    /// Replaces the output's inline datum with its hash.
    pub fn hash_datum(&mut self) {
        if let DatumOption::Inline(cbor) = &self.datum {
            self.datum = DatumOption::Hash(cbor.clone());
        }
    }
}

impl From<&NewOutput> for TxOut {
    fn from(output: &NewOutput) -> Self {
        let address = PlutusAddress::from_bytes(&output.to.to_bytes()).unwrap();
        let datum = output.inline_datum.clone().map_or(DatumOption::None, DatumOption::Inline);
        Self { address, value: output.value.clone(), datum, has_script: output.script.is_some() }
    }
}

impl TxInfo {
    pub fn all_outputs(&mut self) -> impl Iterator<Item = &mut TxOut> {
        self.inputs.iter_mut().map(|input| &mut input.output).chain(&mut self.outputs)
    }

    /// Replaces the placeholder for the script's own hash with `script`.
    pub fn under(mut self, script: ScriptHash) -> Self {
        for output in self.all_outputs().filter(|output| output.address.payment == Credential::Script(SCRIPT)) {
            output.address.payment = Credential::Script(script);
        }
        self
    }

    pub fn own_input(&mut self) -> &mut TxIn {
        self.inputs.iter_mut().find(|input| input.reference == OWN).unwrap()
    }

    /// Applies a change to each output at this address.
    pub fn each_to(&mut self, to: PlutusAddress, change: impl FnMut(&mut TxOut)) {
        self.outputs.iter_mut().filter(|output| output.address == to).for_each(change);
    }

    /// Applies a change to the output in which the escrow continues.
    pub fn next(&mut self, change: impl FnOnce(&mut TxOut)) {
        change(self.outputs.iter_mut().find(|output| output.address == AT_SCRIPT).unwrap());
    }

    /// Applies a change to the datum of the output in which the escrow continues.
    pub fn next_datum(&mut self, change: impl FnOnce(&mut Datum)) {
        self.next(|output| output.edit(change));
    }
}
