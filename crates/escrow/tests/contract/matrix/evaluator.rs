//! Runs compiled contracts in the Plutus evaluator, to find whether they accept a transaction and at which cost.
//! Transactions are encoded as on the Conway ledger (`conway.cddl`), so the evaluator builds the script contexts
//! itself.

use std::{cell::RefCell, collections::BTreeMap, convert::Infallible};

use blueprint::{Blueprint, Script};
use cardano::{TxRef, chain::Value, fees::ExUnits, hash::blake2b, slots::SlotConfig};
use pallas_codec::minicbor::{self, Encoder, data::Tag, encode::Error};
use surety_escrow::Parameters;
use uplc::tx::{error::Error as Evaluation, eval_phase_two_raw_with_protocol};

use super::scene::{LIVE, REFERENCE_SCRIPT};
use super::transaction::{DatumOption, TxInfo, TxOut};

/// Major protocol version: Conway after the Plomin hard fork, which preprod and mainnet run.
const PROTOCOL_VERSION: u16 = 10;
/// Key of Plutus V3 in the map of cost models (`conway.cddl`, `cost_models`).
const PLUTUS_V3: u8 = 2;
/// CBOR tag of a byte string that contains encoded CBOR (RFC 8949, section 3.4.5.1).
const ENCODED_CBOR: Tag = Tag::new(24);
/// A native script that needs no signature, `all []`, in the ledger's encoding `[0, script]`.
const TRIVIAL_SCRIPT: &[u8] = &[0x82, 0x00, 0x82, 0x01, 0x80];

/// A compiled contract, which can be run with any parameters.
pub struct Evaluator {
    blueprint: Blueprint,
    costs: Vec<u8>,
    /// Cache of the scripts with their parameters applied, because many cases share the same parameters.
    applied: RefCell<Vec<(Parameters, Script)>>,
}

impl Evaluator {
    pub fn new(blueprint: Blueprint) -> Self {
        let costs = minicbor::to_vec(BTreeMap::from([(PLUTUS_V3, &LIVE.cost_model_v3)])).unwrap();
        Self { blueprint, costs, applied: RefCell::default() }
    }

    /// Returns the script with these parameters applied, whether or not they pass [`Parameters::check`].
    pub fn script(&self, parameters: &Parameters) -> Script {
        if let Some((_, script)) = self.applied.borrow().iter().find(|(applied, _)| applied == parameters) {
            return script.clone();
        }
        let script = self.blueprint.apply(parameters).unwrap();
        self.applied.borrow_mut().push((parameters.clone(), script.clone()));
        script
    }

    /// Runs every script of the transaction. Returns the execution units that they used, or `None` if one of them
    /// fails.
    pub fn run(&self, parameters: &Parameters, transaction: &TxInfo) -> Option<ExUnits> {
        let (cbor, resolved) = encode(transaction, &self.script(parameters).cbor).unwrap();
        let slots = SlotConfig::PREPROD;
        let evaluated = eval_phase_two_raw_with_protocol(
            &cbor,
            &resolved,
            Some(&self.costs),
            (LIVE.max_tx_ex_steps, LIVE.max_tx_ex_mem),
            (slots.zero_time_ms, slots.zero_slot, slots.slot_length_ms),
            PROTOCOL_VERSION,
            true,
            |_| (),
        );
        let redeemers = match evaluated.map_err(root) {
            Ok(redeemers) => redeemers,
            Err(Evaluation::Machine(..)) => return None,
            Err(error) => panic!("the evaluator cannot read the transaction: {error}"),
        };
        let mut units = ExUnits { mem: 0, steps: 0 };
        for (_, result) in redeemers {
            units.mem += result.cost().mem.unsigned_abs();
            units.steps += result.cost().cpu.unsigned_abs();
        }
        (units.mem <= LIVE.max_tx_ex_mem && units.steps <= LIVE.max_tx_ex_steps).then_some(units)
    }
}

/// Returns the innermost error, without the context that names the redeemer.
fn root(error: Evaluation) -> Evaluation {
    match error {
        Evaluation::RedeemerError { err, .. } => root(*err),
        error => error,
    }
}

/// Result of encoding into memory, which cannot fail.
type Infallibly<T = ()> = Result<T, Error<Infallible>>;
type Cbor = Encoder<Vec<u8>>;

/// The CBOR of an input's reference, and the CBOR of the output that it spends.
type ResolvedInput = (Vec<u8>, Vec<u8>);

/// Encodes the transaction, and each output that it spends or refers to.
fn encode(transaction: &TxInfo, script: &[u8]) -> Infallibly<(Vec<u8>, Vec<ResolvedInput>)> {
    let mut transaction = transaction.clone();
    transaction.inputs.sort_by_key(|input| input.reference);
    let inputs = &transaction.inputs;
    let mut cbor = Encoder::new(Vec::new());
    cbor.array(4)?;
    body(&mut cbor, &transaction)?;

    let datums = inputs.iter().filter_map(|input| match &input.output.datum {
        DatumOption::Hash(cbor) => Some(cbor.clone()),
        _ => None,
    });
    let datums: Vec<Vec<u8>> = datums.collect();
    cbor.map(1 + u64::from(!datums.is_empty()))?;
    if !datums.is_empty() {
        cbor.u8(4)?.array(datums.len() as u64)?.writer_mut().extend(datums.concat());
    }
    let spends = (0_u32..).zip(inputs).filter_map(|(index, input)| Some((index, input.redeemer.as_ref()?)));
    let spends: Vec<_> = spends.collect();
    cbor.u8(5)?.map(spends.len() as u64)?;
    for (index, redeemer) in spends {
        cbor.array(2)?.u8(0)?.u32(index)?.array(2)?.writer_mut().extend(redeemer);
        cbor.array(2)?.u64(1_000_000)?.u64(1_000_000_000)?;
    }
    cbor.bool(true)?.null()?;

    let carries_script = written(|cbor| {
        cbor.map(3)?.u8(0)?.bytes(&[&[0x60], [0xee; 28].as_slice()].concat())?.u8(1)?.u64(40_000_000)?;
        let script = written(|cbor| cbor.array(2)?.u8(3)?.bytes(script).map(drop))?;
        cbor.u8(3)?.tag(ENCODED_CBOR)?.bytes(&script).map(drop)
    })?;
    let mut resolved = vec![(written(|cbor| reference(cbor, REFERENCE_SCRIPT))?, carries_script)];
    for input in inputs {
        resolved
            .push((written(|cbor| reference(cbor, input.reference))?, written(|cbor| output(cbor, &input.output))?));
    }
    Ok((cbor.into_writer(), resolved))
}

fn body(cbor: &mut Cbor, TxInfo { inputs, outputs, signers, validity }: &TxInfo) -> Infallibly {
    let slot = |time| SlotConfig::PREPROD.slot_at(time);
    let (from, until) = (validity.from.and_then(slot), validity.until.and_then(slot));
    let optional = [from.is_some(), until.is_some(), !signers.is_empty()];
    cbor.map(4 + optional.map(u64::from).iter().sum::<u64>())?;
    cbor.u8(0)?.array(inputs.len() as u64)?;
    inputs.iter().try_for_each(|input| reference(cbor, input.reference))?;
    cbor.u8(1)?.array(outputs.len() as u64)?;
    outputs.iter().try_for_each(|each| output(cbor, each))?;
    cbor.u8(2)?.u32(300_000)?;
    for (key, slot) in [(3, until), (8, from)] {
        if let Some(slot) = slot {
            cbor.u8(key)?.u64(slot)?;
        }
    }
    if !signers.is_empty() {
        cbor.u8(14)?.array(signers.len() as u64)?;
        signers.iter().try_for_each(|key| cbor.bytes(key.as_bytes()).map(drop))?;
    }
    cbor.u8(18)?.array(1)?;
    reference(cbor, REFERENCE_SCRIPT)
}

fn output(cbor: &mut Cbor, output: &TxOut) -> Infallibly {
    let optional = [output.datum != DatumOption::None, output.has_script];
    cbor.map(2 + optional.map(u64::from).iter().sum::<u64>())?;
    cbor.u8(0)?.bytes(&output.address.to_bytes())?.u8(1)?;
    value(cbor, &output.value)?;
    match &output.datum {
        DatumOption::None => {}
        DatumOption::Inline(data) => {
            cbor.u8(2)?.array(2)?.u8(1)?.tag(ENCODED_CBOR)?.bytes(data)?;
        }
        DatumOption::Hash(data) => {
            cbor.u8(2)?.array(2)?.u8(0)?.bytes(&blake2b::<32>(data))?;
        }
    }
    if output.has_script {
        cbor.u8(3)?.tag(ENCODED_CBOR)?.bytes(TRIVIAL_SCRIPT)?;
    }
    Ok(())
}

fn value(cbor: &mut Cbor, value: &Value) -> Infallibly {
    if value.assets.is_empty() {
        return cbor.u64(value.lovelace.get()).map(drop);
    }
    let mut policies: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (unit, quantity) in &value.assets {
        let (policy, name) = unit.split_at(56);
        policies.entry(policy).or_default().push((name, *quantity));
    }
    cbor.array(2)?.u64(value.lovelace.get())?.map(policies.len() as u64)?;
    for (policy, assets) in policies {
        cbor.bytes(&hex::decode(policy).unwrap())?.map(assets.len() as u64)?;
        for (name, quantity) in assets {
            cbor.bytes(&hex::decode(name).unwrap())?.u64(quantity)?;
        }
    }
    Ok(())
}

fn reference(cbor: &mut Cbor, reference: TxRef) -> Infallibly {
    cbor.array(2)?.bytes(reference.tx.as_bytes())?.u16(reference.index).map(drop)
}

fn written(write: impl FnOnce(&mut Cbor) -> Infallibly) -> Infallibly<Vec<u8>> {
    let mut cbor = Encoder::new(Vec::new());
    write(&mut cbor)?;
    Ok(cbor.into_writer())
}
