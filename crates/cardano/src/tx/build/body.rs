//! Encodes the transaction body in the ledger's form, and computes the transaction's size and minimum fee.

use std::collections::{BTreeMap, BTreeSet};

use pallas_codec::{
    minicbor::{self, Encode},
    utils::NonEmptySet,
};
use pallas_primitives::{
    ExUnits as LedgerExUnits, Hash, Set, TransactionInput,
    conway::{LanguageViews, RedeemerTag, Redeemers, RedeemersKey, RedeemersValue, ScriptData},
};

use super::{
    collateral::Collateral,
    error::BuildError,
    output::{Output, cbor},
    signing,
    sources::{Checked, ScriptSource},
};
use crate::{
    fees::{self, Weight},
    hash::{TxRef, blake2b},
    params::ProtocolParameters,
};

/// Plutus V3's number as a script language of the ledger.
const PLUTUS_V3: u8 = 2;

/// A transaction body (Conway's CDDL, `transaction_body`). The fields are encoded in this order, which is canonical.
/// Hardware wallets reject any other order (CIP-21).
#[derive(Encode)]
#[cbor(map)]
struct Body {
    #[n(0)]
    inputs: Set<TransactionInput>,
    #[n(1)]
    outputs: Vec<Output>,
    #[n(2)]
    fee: u64,
    #[n(3)]
    ttl: u64,
    #[n(7)]
    auxiliary_data_hash: Option<Hash<32>>,
    #[n(8)]
    validity_interval_start: Option<u64>,
    #[n(11)]
    script_data_hash: Option<Hash<32>>,
    #[n(13)]
    collateral: Option<NonEmptySet<TransactionInput>>,
    #[n(14)]
    required_signers: Option<NonEmptySet<Hash<28>>>,
    #[n(16)]
    collateral_return: Option<Output>,
    #[n(17)]
    total_collateral: Option<u64>,
    #[n(18)]
    reference_inputs: Option<NonEmptySet<TransactionInput>>,
}

/// A transaction whose inputs and outputs are fixed. Its fee, change and collateral are still to be computed.
pub(super) struct Frame<'a> {
    body: Body,
    planned_outputs: usize,
    redeemers: Option<Redeemers>,
    script_bytes: u64,
    checked: &'a Checked<'a>,
    params: &'a ProtocolParameters,
}

/// An encoded transaction body, with the whole transaction's size and minimum fee.
pub(super) struct Written {
    pub(super) body: Vec<u8>,
    pub(super) tx_bytes: usize,
    pub(super) min_fee: u64,
}

impl<'a> Frame<'a> {
    /// Creates a transaction with these inputs. `script_bytes` is the size of the scripts that the inputs carry.
    pub(super) fn new(
        checked: &'a Checked<'a>,
        inputs: &BTreeSet<TxRef>,
        script_bytes: u64,
        params: &'a ProtocolParameters,
    ) -> Result<Self, BuildError> {
        let plan = checked.plan;
        let redeemers = redeemers(&checked.scripts, inputs)?;
        let read = plan.reference_inputs.iter().map(|input| input.reference).collect::<BTreeSet<_>>();
        let signers = plan.required_signers.iter().copied().collect::<BTreeSet<_>>();
        let signers = signers.iter().map(|key| Hash::new(*key.as_bytes())).collect();
        let body = Body {
            inputs: Set::from(inputs.iter().map(input).collect::<Vec<_>>()),
            outputs: checked.outputs.clone(),
            fee: 0,
            ttl: plan.validity.until,
            auxiliary_data_hash: plan.auxiliary_data.as_deref().map(|data| Hash::new(blake2b(data))),
            validity_interval_start: plan.validity.from,
            script_data_hash: redeemers.as_ref().map(|redeemers| script_data_hash(redeemers, params)).transpose()?,
            collateral: None,
            required_signers: NonEmptySet::from_vec(signers),
            collateral_return: None,
            total_collateral: None,
            reference_inputs: NonEmptySet::from_vec(read.iter().map(input).collect()),
        };
        Ok(Self { body, planned_outputs: checked.outputs.len(), redeemers, script_bytes, checked, params })
    }

    /// Returns `true` if the transaction runs scripts and therefore needs collateral.
    pub(super) const fn runs_scripts(&self) -> bool {
        self.redeemers.is_some()
    }

    /// Returns the redeemers, to be encoded in the witness set.
    pub(super) fn redeemers(self) -> Option<Redeemers> {
        self.redeemers
    }

    /// Encodes the transaction with this fee, change and collateral. Computes its size and minimum fee for this number
    /// of signatures.
    pub(super) fn write(
        &mut self,
        fee: u64,
        change: Vec<Output>,
        collateral: Option<Collateral>,
        signatures: usize,
    ) -> Result<Written, BuildError> {
        self.body.fee = fee;
        self.body.outputs.truncate(self.planned_outputs);
        self.body.outputs.extend(change);
        if let Some(Collateral { inputs, total, back }) = collateral {
            self.body.collateral = NonEmptySet::from_vec(inputs.iter().map(input).collect());
            self.body.total_collateral = Some(total);
            self.body.collateral_return = back;
        }
        let body = cbor(&self.body)?;
        let data = self.checked.plan.auxiliary_data.as_deref();
        let tx = signing::encode(&body, self.redeemers.clone(), vec![([0; 32], [0; 64]); signatures], data)?;
        let weight =
            Weight { tx_bytes: tx.len(), ex_units: self.checked.ex_units, reference_script_bytes: self.script_bytes };
        let min_fee = fees::min_fee(self.params, &weight).ok_or(BuildError::OutOfRange)?.get();
        Ok(Written { body, tx_bytes: tx.len(), min_fee })
    }
}

fn input(reference: &TxRef) -> TransactionInput {
    TransactionInput { transaction_id: Hash::new(*reference.tx.as_bytes()), index: reference.index.into() }
}

/// Builds the redeemers of the script inputs. A redeemer refers to its input by the index in the ledger's order of all
/// inputs.
fn redeemers(scripts: &[ScriptSource], inputs: &BTreeSet<TxRef>) -> Result<Option<Redeemers>, BuildError> {
    if scripts.is_empty() {
        return Ok(None);
    }
    let mut redeemers = BTreeMap::new();
    for script in scripts {
        let index = inputs.iter().position(|input| *input == script.reference).and_then(|index| index.try_into().ok());
        let key = RedeemersKey { tag: RedeemerTag::Spend, index: index.ok_or(BuildError::OutOfRange)? };
        let ex_units = LedgerExUnits { mem: script.ex_units.mem, steps: script.ex_units.steps };
        redeemers.insert(key, RedeemersValue { data: script.redeemer.clone(), ex_units });
    }
    Ok(Some(Redeemers::Map(redeemers)))
}

/// Computes the hash of redeemers and cost model that the body must contain (Alonzo, `hashScriptIntegrity`). Datums are
/// inline and so are not part of the hash.
fn script_data_hash(redeemers: &Redeemers, params: &ProtocolParameters) -> Result<Hash<32>, BuildError> {
    if params.cost_model_v3.is_empty() {
        return Err(BuildError::NoCostModel);
    }
    let views = LanguageViews(BTreeMap::from([(PLUTUS_V3, params.cost_model_v3.clone())]));
    Ok(ScriptData { redeemers: Some(redeemers.clone()), datums: None, language_views: Some(views) }.hash())
}
