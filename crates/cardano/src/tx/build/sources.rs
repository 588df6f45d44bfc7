//! The plan and the wallet, read once into the form that balancing works on.

use std::collections::BTreeSet;

use pallas_primitives::conway::{PlutusData, TransactionOutput};

use super::{
    bundle::Bundle,
    error::BuildError,
    output,
    plan::{TxPlan, Wallet},
};
use crate::{
    address::PaymentAddress,
    chain::Utxo,
    fees::{ExUnits, MAX_REFERENCE_SCRIPT_BYTES},
    hash::{KeyHash, TxRef},
    params::ProtocolParameters,
};

/// A UTxO that can be spent with a key.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) reference: TxRef,
    pub(super) bundle: Bundle,
    pub(super) key: KeyHash,
}

/// A UTxO that a script releases.
pub(super) struct ScriptSource {
    pub(super) reference: TxRef,
    pub(super) redeemer: PlutusData,
    pub(super) ex_units: ExUnits,
}

/// A plan whose parts have all been checked on their own.
pub(super) struct Checked<'a> {
    pub(super) plan: &'a TxPlan,
    pub(super) outputs: Vec<TransactionOutput<'a>>,
    pub(super) paid: Bundle,
    pub(super) forced: Vec<Source>,
    pub(super) scripts: Vec<ScriptSource>,
    /// What the forced and the script inputs hold.
    pub(super) brought: Bundle,
    pub(super) ex_units: ExUnits,
    pub(super) reference_script_bytes: u64,
}

impl<'a> Checked<'a> {
    pub(super) fn new(plan: &'a TxPlan, params: &ProtocolParameters) -> Result<Self, BuildError> {
        if let Some(from) = plan.validity.from.filter(|from| *from >= plan.validity.until) {
            return Err(BuildError::EmptyInterval { from, until: plan.validity.until });
        }
        used_once(plan)?;
        let (outputs, paid) = check_outputs(plan, params)?;
        let forced = plan.inputs.iter().map(read_source).collect::<Result<Vec<_>, _>>()?;
        let (scripts, held) = check_scripts(plan)?;
        let brought = Bundle::checked_sum(forced.iter().map(|source| &source.bundle).chain(&held));
        let ex_units = total_ex_units(plan, params)?;
        let script_bytes = plan.reference_inputs.iter().map(|input| input.script_bytes);
        let reference_script_bytes = script_bytes.into_iter().try_fold(0u64, u64::checked_add);
        let reference_script_bytes = reference_script_bytes.filter(|bytes| *bytes <= MAX_REFERENCE_SCRIPT_BYTES);
        Ok(Self {
            plan,
            outputs,
            paid,
            forced,
            scripts,
            brought: brought.ok_or(BuildError::OutOfRange)?,
            ex_units,
            reference_script_bytes: reference_script_bytes.ok_or(BuildError::OutOfRange)?,
        })
    }

    /// The names of everything that the plan itself uses: never to be chosen from the wallet again.
    pub(super) fn used(&self) -> BTreeSet<TxRef> {
        let forced = self.forced.iter().map(|source| source.reference);
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

fn check_outputs<'a>(
    plan: &'a TxPlan,
    params: &ProtocolParameters,
) -> Result<(Vec<TransactionOutput<'a>>, Bundle), BuildError> {
    let mut encoded = Vec::with_capacity(plan.outputs.len());
    let mut paid = Bundle::default();
    for (index, output) in plan.outputs.iter().enumerate() {
        let minimum = output.min_lovelace(params)?;
        if output.value.lovelace < minimum {
            return Err(BuildError::OutputBelowMinimum { index, minimum });
        }
        let value = Bundle::read(&output.value)?;
        let bytes = output::cbor(&value.to_ledger()?)?.len();
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > params.max_value_size) {
            return Err(BuildError::OutputValueTooLarge { index, bytes, limit: params.max_value_size });
        }
        encoded.push(output::encode_new(output, &value)?);
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
        if utxo.reference_script.is_some() {
            return Err(BuildError::CarriesScript(utxo.reference));
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

fn read_source(utxo: &Utxo) -> Result<Source, BuildError> {
    if utxo.reference_script.is_some() {
        return Err(BuildError::CarriesScript(utxo.reference));
    }
    let address: Option<PaymentAddress> = utxo.address.parse().ok();
    let key = address.and_then(|address| address.payment_key().copied());
    let key = key.ok_or(BuildError::Malformed { what: "the address of an input that a key should spend" })?;
    Ok(Source { reference: utxo.reference, bundle: Bundle::read(&utxo.value)?, key })
}

/// Which of a wallet's UTxOs may be spent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those without a datum: a datum on a key address has somebody's purpose.
    Plain,
    /// Those with a datum, too. Never those with a reference script: others may depend on them.
    WithDatum,
}

/// The wallet's UTxOs that may be spent, richest first, each once. One that cannot be read (somebody sent it, perhaps
/// to do harm) is left alone, not an error.
pub(super) fn spendable(wallet: &Wallet<'_>, used: &BTreeSet<TxRef>, reach: Reach) -> Vec<Source> {
    let mut seen = used.clone();
    let plain = |utxo: &Utxo| utxo.inline_datum.is_none() && utxo.datum_hash.is_none();
    let free = wallet.utxos.iter().filter(|utxo| !wallet.reserved.contains(&utxo.reference));
    let fit = free.filter(|utxo| reach == Reach::WithDatum || plain(utxo)).filter_map(|utxo| read_source(utxo).ok());
    let ours = fit.filter(|source| source.key == *wallet.address.payment_key());
    let mut sources: Vec<Source> = ours.filter(|source| seen.insert(source.reference)).collect();
    sources.sort_by_key(|source| (std::cmp::Reverse(source.bundle.lovelace), source.reference));
    sources
}
