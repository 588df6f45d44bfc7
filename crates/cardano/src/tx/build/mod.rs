//! Builds transactions from a plan and a wallet. The builder uses no clock, network or randomness, so the same input
//! always yields the same bytes.
//!
//! ```text
//! TxPlan      the intent: outputs, script inputs, reference inputs, validity interval
//! Wallet      the payer: UTxOs, except those reserved for other transactions
//!    |  build
//!    v
//! UnsignedTx  balanced, its id final; scripts can be evaluated
//!    |  sign
//!    v
//! BuiltTx     bytes to submit, inputs to reserve, change to spend next
//! ```
//!
//! A plan with scripts is built twice: first with a transaction's maximum execution units, so that the provider can
//! evaluate it, and then with the evaluated units plus a margin.
//!
//! The fee is the minimum that the ledger accepts for the transaction's bytes. It is higher, by at most 1 %, only if
//! the inputs hold slightly more than outputs and fee, but too little for a change output.
//!
//! ```
//! # use std::collections::BTreeSet;
//! # use surety_cardano::{Address, Lovelace, chain::Utxo, keys::SigningKey, params::ProtocolParameters};
//! use surety_cardano::tx::build::{BuildError, BuiltTx, NewOutput, TxPlan, Validity, Wallet, build};
//!
//! fn pay(
//!     key: &SigningKey, utxos: &[Utxo], to: Address, price: Lovelace, now_slot: u64, params: &ProtocolParameters,
//! ) -> Result<BuiltTx, BuildError> {
//!     let reserved = BTreeSet::new();
//!     let wallet = Wallet { address: key.enterprise_address(), utxos, reserved: &reserved };
//!     let plan = TxPlan {
//!         outputs: vec![NewOutput::pay(to, price)],
//!         validity: Validity { from: None, until: now_slot + 300 },
//!         ..TxPlan::default()
//!     };
//!     build(&plan, &wallet, params)?.sign(&[key])
//! }
//! ```

mod balance;
mod body;
mod bundle;
mod change;
mod collateral;
mod error;
#[cfg(test)]
mod fixtures;
mod output;
mod plan;
mod select;
mod signing;
mod sources;
mod sweep;
#[cfg(test)]
mod tests;

pub use error::BuildError;
pub use plan::{NewOutput, ReferenceInput, ScriptInput, TxPlan, Validity, Wallet};
pub use signing::{BuiltTx, TxFacts, UnsignedTx};
pub use sweep::{Sweep, sweep};

use self::{
    balance::{BalancedTx, BalancingTerms},
    sources::Checked,
};
use crate::{
    address::{Address, PaymentAddress},
    chain::Utxo,
    hash::{TxHash, TxRef},
    money::Lovelace,
    params::ProtocolParameters,
};

/// Builds a balanced transaction for a plan. The wallet pays for it and receives the change.
///
/// # Errors
/// Returns [`BuildError`], with the missing amounts, if the transaction cannot be built.
pub fn build(plan: &TxPlan, wallet: &Wallet<'_>, params: &ProtocolParameters) -> Result<UnsignedTx, BuildError> {
    let checked = Checked::new(plan, params)?;
    let pool = sources::spendable(wallet, &plan.wallet_keys, &checked.used(), params);
    let home = PaymentAddress::from(wallet.address);
    let terms = BalancingTerms { checked: &checked, params, change_address: home, change_required: false, home };
    let balanced = select::select(&terms, &pool)?;
    draft(&checked, balanced, &home, &wallet.address)
}

/// Converts a balanced transaction to an unsigned transaction, which includes its id, outputs and change.
fn draft(
    checked: &Checked<'_>,
    balanced: BalancedTx,
    change_address: &PaymentAddress,
    wallet: &Address,
) -> Result<UnsignedTx, BuildError> {
    let tx_id = TxHash::of_body(&balanced.body);
    let rest = balanced.change.iter().map(|bundle| {
        Ok(NewOutput { to: *change_address, value: bundle.to_value()?, inline_datum: None, script: None })
    });
    let made = checked.plan.outputs.iter().cloned().map(Ok).chain(rest).collect::<Result<Vec<_>, BuildError>>()?;
    let outputs = (0u16..).zip(made).map(|(index, output)| utxo(TxRef { tx: tx_id, index }, output));
    let outputs: Vec<Utxo> = outputs.collect();
    let home = wallet.to_string();
    // An output with a script is kept for other transactions to reference.
    let spendable = |utxo: &&Utxo| utxo.address == home && utxo.reference_script.is_none();
    let change = outputs.iter().filter(spendable).cloned().collect();
    let facts = TxFacts {
        tx_id,
        fee: Lovelace::new(balanced.fee).ok_or(BuildError::OutOfRange)?,
        inputs: balanced.inputs.into_iter().collect(),
        collateral: balanced.collateral,
        outputs,
        change,
        valid_until_slot: checked.plan.validity.until,
    };
    let auxiliary_data = checked.plan.auxiliary_data.clone();
    Ok(UnsignedTx { body: balanced.body, redeemers: balanced.redeemers, auxiliary_data, keys: balanced.keys, facts })
}

fn utxo(reference: TxRef, output: NewOutput) -> Utxo {
    let datum_hash = output.inline_datum.as_deref().map(crate::hash::blake2b::<32>);
    let reference_script = output.script.as_deref().map(output::script_hash);
    Utxo {
        reference,
        address: output.to.to_string(),
        value: output.value,
        inline_datum: output.inline_datum,
        datum_hash,
        reference_script,
    }
}
