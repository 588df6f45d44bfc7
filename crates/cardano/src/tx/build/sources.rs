//! Converts the plan and the wallet into the types with which transactions are balanced.

use std::collections::BTreeSet;

use pallas_primitives::conway::PlutusData;

use super::{
    bundle::Bundle,
    error::BuildError,
    output::{self, Output},
    plan::{TxPlan, Wallet},
};
use crate::{
    address::PaymentAddress,
    chain::Utxo,
    fees::ExUnits,
    hash::{KeyHash, TxRef},
    params::{ProtocolParameters, UTXO_ENTRY_OVERHEAD},
};

/// A UTxO that can be spent with a key.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) reference: TxRef,
    pub(super) bundle: Bundle,
    pub(super) key: KeyHash,
    /// Upper bound of the size in bytes of the UTxO's reference script; 0 if there is none.
    pub(super) script_bytes: u64,
}

impl Source {
    /// Returns `true` if the UTxO holds only lovelace and carries no script. Spending such a UTxO adds only the cost of
    /// one input to the fee.
    pub(super) fn is_plain(&self) -> bool {
        self.bundle.assets.is_empty() && self.script_bytes == 0
    }
}

/// A UTxO that is spent with a script.
pub(super) struct ScriptSource {
    pub(super) reference: TxRef,
    pub(super) redeemer: PlutusData,
    pub(super) ex_units: ExUnits,
}

/// A plan whose parts have been checked one by one.
pub(super) struct Checked<'a> {
    pub(super) plan: &'a TxPlan,
    pub(super) outputs: Vec<Output>,
    pub(super) output_value: Bundle,
    pub(super) required_inputs: Vec<Source>,
    pub(super) scripts: Vec<ScriptSource>,
    /// UTxOs that the plan prescribes as collateral. If empty, any of the wallet's UTxOs may serve.
    pub(super) collateral: Vec<Source>,
    /// Total value of the inputs that the plan prescribes.
    pub(super) input_value: Bundle,
    pub(super) ex_units: ExUnits,
    /// Size in bytes of the scripts that the plan's reference inputs and script inputs carry.
    pub(super) script_bytes: u64,
}

impl<'a> Checked<'a> {
    pub(super) fn new(plan: &'a TxPlan, params: &ProtocolParameters) -> Result<Self, BuildError> {
        if let Some(from) = plan.validity.from.filter(|from| *from >= plan.validity.until) {
            return Err(BuildError::EmptyInterval { from, until: plan.validity.until });
        }
        used_once(plan)?;
        let (outputs, output_value) = check_outputs(plan, params)?;
        let required_inputs =
            plan.inputs.iter().map(|utxo| read_source(utxo, params)).collect::<Result<Vec<_>, _>>()?;
        let collateral = plan.collateral.iter().map(|utxo| read_source(utxo, params)).collect::<Result<Vec<_>, _>>()?;
        let (scripts, held) = check_scripts(plan)?;
        let input_value = Bundle::checked_sum(required_inputs.iter().map(|source| &source.bundle).chain(&held));
        let ex_units = total_ex_units(plan, params)?;
        let read = plan.reference_inputs.iter().map(|input| input.script_bytes);
        let spent = plan.script_inputs.iter().map(|input| most_script_bytes(&input.utxo, params));
        let script_bytes = read.chain(spent).try_fold(0u64, u64::checked_add);
        Ok(Self {
            plan,
            outputs,
            output_value,
            required_inputs,
            scripts,
            collateral,
            input_value: input_value.ok_or(BuildError::OutOfRange)?,
            ex_units,
            script_bytes: script_bytes.ok_or(BuildError::OutOfRange)?,
        })
    }

    /// Returns the references of all UTxOs in the plan, which must not be chosen from the wallet a second time.
    pub(super) fn used(&self) -> BTreeSet<TxRef> {
        let forced = self.required_inputs.iter().map(|source| source.reference);
        let scripts = self.scripts.iter().map(|source| source.reference);
        let read = self.plan.reference_inputs.iter().map(|input| input.reference);
        forced.chain(scripts).chain(read).collect()
    }
}

fn used_once(plan: &TxPlan) -> Result<(), BuildError> {
    let mut seen = BTreeSet::new();
    let forced = plan.inputs.iter().map(|utxo| utxo.reference);
    let scripts = plan.script_inputs.iter().map(|input| input.utxo.reference);
    let read = plan.reference_inputs.iter().map(|input| input.reference);
    match forced.chain(scripts).chain(read).find(|reference| !seen.insert(*reference)) {
        Some(reference) => Err(BuildError::UsedTwice(reference)),
        None => Ok(()),
    }
}

fn check_outputs(plan: &TxPlan, params: &ProtocolParameters) -> Result<(Vec<Output>, Bundle), BuildError> {
    let mut encoded = Vec::with_capacity(plan.outputs.len());
    let mut paid = Bundle::default();
    for (index, output) in plan.outputs.iter().enumerate() {
        let minimum = output.min_lovelace(params)?;
        if output.value.lovelace < minimum {
            return Err(BuildError::OutputBelowMinimum { index, minimum });
        }
        let value = Bundle::read(&output.value)?;
        let bytes = value.to_cbor()?.len();
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > params.max_value_size) {
            return Err(BuildError::OutputValueTooLarge { index, bytes, limit: params.max_value_size });
        }
        encoded.push(Output::new(output, &value)?);
        paid = paid.checked_add(&value).ok_or(BuildError::OutOfRange)?;
    }
    Ok((encoded, paid))
}

fn check_scripts(plan: &TxPlan) -> Result<(Vec<ScriptSource>, Vec<Bundle>), BuildError> {
    let mut scripts = Vec::with_capacity(plan.script_inputs.len());
    let mut held = Vec::with_capacity(plan.script_inputs.len());
    for input in &plan.script_inputs {
        let utxo = &input.utxo;
        let address: Option<PaymentAddress> = utxo.address.parse().ok();
        if address.is_none_or(|address| address.payment_script().is_none()) {
            return Err(BuildError::Malformed { what: "the address of a script input" });
        }
        if utxo.inline_datum.is_none() {
            return Err(BuildError::Malformed { what: "a script input without an inline datum" });
        }
        held.push(Bundle::read(&utxo.value)?);
        scripts.push(ScriptSource {
            reference: utxo.reference,
            redeemer: output::read_data(&input.redeemer)?.unwrap(),
            ex_units: input.ex_units,
        });
    }
    Ok((scripts, held))
}

fn total_ex_units(plan: &TxPlan, params: &ProtocolParameters) -> Result<ExUnits, BuildError> {
    let units = plan.script_inputs.iter().map(|input| input.ex_units);
    let ExUnits { mem, steps } =
        units.into_iter().try_fold(ExUnits::default(), ExUnits::checked_add).ok_or(BuildError::OutOfRange)?;
    if mem > params.max_tx_ex_mem || steps > params.max_tx_ex_steps {
        return Err(BuildError::ExUnitsTooHigh { mem, steps });
    }
    Ok(ExUnits { mem, steps })
}

fn read_source(utxo: &Utxo, params: &ProtocolParameters) -> Result<Source, BuildError> {
    let address: Option<PaymentAddress> = utxo.address.parse().ok();
    let key = address.and_then(|address| address.payment_key().copied());
    let key = key.ok_or(BuildError::Malformed { what: "the address of an input that a key should spend" })?;
    let script_bytes = most_script_bytes(utxo, params);
    Ok(Source { reference: utxo.reference, bundle: Bundle::read(&utxo.value)?, key, script_bytes })
}

/// Returns an upper bound for the size in bytes of an output's script, because providers do not report script sizes.
/// The ledger requires lovelace for each byte of an output (Babbage, `getMinCoinTxOut`) and limits the size of the
/// transaction that creates it.
fn most_script_bytes(utxo: &Utxo, params: &ProtocolParameters) -> u64 {
    let paid_for = utxo.value.lovelace.get().checked_div(params.coins_per_utxo_byte).unwrap_or(u64::MAX);
    let bytes = paid_for.saturating_sub(UTXO_ENTRY_OVERHEAD).min(params.max_tx_size);
    if utxo.reference_script.is_some() { bytes } else { 0 }
}

/// Returns the wallet's UTxOs that may be spent, richest first, without duplicates. UTxOs that cannot be parsed are
/// skipped. UTxOs with datums or scripts are included, so that a sender cannot make money unspendable by attaching one.
pub(super) fn spendable(
    wallet: &Wallet<'_>,
    further_keys: &BTreeSet<KeyHash>,
    used: &BTreeSet<TxRef>,
    params: &ProtocolParameters,
) -> Vec<Source> {
    let mut seen = used.clone();
    let free = wallet.utxos.iter().filter(|utxo| !wallet.reserved.contains(&utxo.reference));
    let read = free.filter_map(|utxo| read_source(utxo, params).ok());
    let is_own = |key: &KeyHash| key == wallet.address.payment_key() || further_keys.contains(key);
    let ours = read.filter(|source| is_own(&source.key));
    let mut sources: Vec<Source> = ours.filter(|source| seen.insert(source.reference)).collect();
    sources.sort_by_key(|source| (std::cmp::Reverse(source.bundle.lovelace), source.reference));
    sources
}
