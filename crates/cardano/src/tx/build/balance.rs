//! Computes fee, change and collateral of a transaction with given inputs.
//!
//! ```text
//! inputs = outputs + fee + change          fee = min_fee(size of the transaction that contains all of these)
//! ```
//!
//! The fee depends on the transaction's size, which depends on the fee. Iterating from below finds the smallest fee
//! that covers its own encoding.

use std::collections::BTreeSet;

use pallas_primitives::conway::Redeemers;

use super::{
    body::{Frame, Written},
    bundle::{Bundle, write_unit},
    change,
    collateral::{self, ChosenCollateral},
    error::BuildError,
    output::{Output, min_lovelace_plain},
    sources::{Checked, Source},
};
use crate::{
    address::PaymentAddress,
    fees,
    hash::{KeyHash, TxRef},
    params::ProtocolParameters,
};

/// Divisor that makes the tolerance 1 % of the minimum fee. A surplus of the inputs that is too small for a change
/// output is added to the fee, which may exceed the minimum by up to the tolerance.
const FEE_TOLERANCE: u64 = 100;
/// Maximum number of rounds in which the fee is computed. After the second round, the fee changes only if an integer in
/// the transaction needs a wider encoding or other collateral is chosen, so few rounds are needed.
const MAX_ROUNDS: usize = 16;

/// Maximum number of bytes by which one more input lengthens the transaction: the input itself (an array header, 34
/// bytes of id, 3 bytes of index) and up to 2 more bytes in the header of the set of inputs.
const INPUT_BYTES: u64 = 1 + 34 + 3 + 2;
/// Number of bytes that the first signature adds to a transaction: the key of the witness set's field, the set's tag
/// and header, and an array of the public key (34 bytes with header) and the signature (66 bytes with header).
const SIGNATURE_BYTES: u64 = 1 + 3 + 1 + 1 + 34 + 66;

/// The conditions that a balanced transaction must meet, whichever inputs are selected.
pub(super) struct BalancingTerms<'a> {
    pub(super) checked: &'a Checked<'a>,
    pub(super) params: &'a ProtocolParameters,
    /// Address that receives what remains of the inputs after outputs and fee.
    pub(super) change_address: PaymentAddress,
    /// `true` if something must remain for `change_address`, for example because the wallet is emptied.
    pub(super) change_required: bool,
    /// The wallet's own address, which receives the collateral return.
    pub(super) home: PaymentAddress,
}

impl BalancingTerms<'_> {
    /// Returns the increase of the fee that one more input causes, in lovelace.
    pub(super) fn input_fee(&self) -> u64 {
        self.params.min_fee_a.saturating_mul(INPUT_BYTES)
    }
}

/// A balanced transaction.
pub(super) struct BalancedTx {
    pub(super) body: Vec<u8>,
    pub(super) redeemers: Option<Redeemers>,
    pub(super) fee: u64,
    pub(super) inputs: BTreeSet<TxRef>,
    pub(super) collateral: Vec<TxRef>,
    pub(super) change: Vec<Bundle>,
    pub(super) keys: BTreeSet<KeyHash>,
}

/// Reason why a transaction with the given inputs cannot be balanced.
pub(super) enum Unbalanced {
    /// The inputs lack this much lovelace. A further input must also pay for the fee that it adds.
    Short(u64),
    /// The transaction exceeds a limit of the ledger. It may fit with fewer inputs.
    TooLarge(BuildError),
    /// The transaction cannot be balanced with any inputs.
    Failed(BuildError),
}

impl From<BuildError> for Unbalanced {
    fn from(error: BuildError) -> Self {
        Self::Failed(error)
    }
}

/// Balances a transaction with the inputs of the plan and the UTxOs in `chosen`. `idle` contains the wallet's other
/// UTxOs, which can serve as collateral.
pub(super) fn balance(
    terms: &BalancingTerms<'_>,
    chosen: &[&Source],
    idle: &[&Source],
) -> Result<BalancedTx, Unbalanced> {
    let attempt = Balancing::new(terms, chosen, idle)?;
    let short = match attempt.with_change() {
        Err(Unbalanced::Short(short)) => short,
        done => return done,
    };
    match attempt.without_change()? {
        Some(balanced) => Ok(balanced),
        None => Err(Unbalanced::Short(short)),
    }
}

struct Balancing<'a> {
    terms: &'a BalancingTerms<'a>,
    inputs: BTreeSet<TxRef>,
    spent: Vec<&'a Source>,
    idle: &'a [&'a Source],
    script_bytes: u64,
    held: u64,
    groups: Vec<Bundle>,
    keys: BTreeSet<KeyHash>,
}

impl<'a> Balancing<'a> {
    fn new(terms: &'a BalancingTerms<'a>, chosen: &[&'a Source], idle: &'a [&'a Source]) -> Result<Self, Unbalanced> {
        let checked = terms.checked;
        let held = Bundle::checked_sum(chosen.iter().map(|source| &source.bundle).chain([&checked.input_value]));
        let held = held.ok_or(BuildError::OutOfRange)?;
        if let Some((asset, missing)) = held.assets_short_of(&checked.output_value).first() {
            return Err(BuildError::AssetMissing { unit: write_unit(asset), missing: *missing }.into());
        }
        let spent: Vec<&Source> = checked.required_inputs.iter().chain(chosen.iter().copied()).collect();
        let carried = spent.iter().map(|source| source.script_bytes);
        let script_bytes = carried.fold(checked.script_bytes, u64::saturating_add);
        if script_bytes > fees::MAX_REFERENCE_SCRIPT_BYTES {
            return Err(Unbalanced::TooLarge(BuildError::ScriptsTooLarge { bytes: script_bytes }));
        }
        let scripts = checked.scripts.iter().map(|script| script.reference);
        let signers = checked.plan.required_signers.iter().copied();
        Ok(Self {
            terms,
            inputs: spent.iter().map(|source| source.reference).chain(scripts).collect(),
            keys: spent.iter().map(|source| source.key).chain(signers).collect(),
            spent,
            idle,
            script_bytes,
            held: held.lovelace,
            groups: change::split(&held.assets_without(&checked.output_value), terms.params),
        })
    }

    /// Balances the transaction with change outputs, which receive all remaining assets and lovelace.
    fn with_change(&self) -> Result<BalancedTx, Unbalanced> {
        let mut change = self.groups.clone();
        let mut least = 0u64;
        for bundle in &mut change {
            bundle.lovelace = min_lovelace_plain(&self.terms.change_address, bundle, self.terms.params)?;
            least = least.checked_add(bundle.lovelace).ok_or(BuildError::OutOfRange)?;
        }
        let first_least = change.first().map_or(0, |bundle| bundle.lovelace);
        let mut frame = self.frame()?;
        let mut fee = self.terms.params.min_fee_b;
        for _ in 0..MAX_ROUNDS {
            let needed =
                self.terms.checked.output_value.lovelace.checked_add(fee).and_then(|sum| sum.checked_add(least));
            let needed = needed.ok_or(BuildError::OutOfRange)?;
            let free = self.held.saturating_sub(needed);
            if let Some(first) = change.first_mut() {
                first.lovelace = first_least.checked_add(free).ok_or(BuildError::OutOfRange)?;
            }
            let (written, chosen_collateral) = self.write(&mut frame, fee, &change)?;
            if written.min_fee > fee {
                fee = written.min_fee;
                continue;
            }
            self.check_size(&written)?;
            return match needed.checked_sub(self.held) {
                Some(short) if short > 0 => Err(Unbalanced::Short(short.saturating_add(self.signature_fee()))),
                _ => self.balanced(frame, written, fee, chosen_collateral, change),
            };
        }
        Err(BuildError::OutOfRange.into())
    }

    /// Balances the transaction without change outputs. Returns `None` if assets would remain, or if the fee would
    /// exceed the minimum by more than the tolerance.
    fn without_change(&self) -> Result<Option<BalancedTx>, Unbalanced> {
        let has_assets = self.groups.iter().any(|bundle| !bundle.assets.is_empty());
        let Some(fee) = self.held.checked_sub(self.terms.checked.output_value.lovelace) else { return Ok(None) };
        if has_assets || self.terms.change_required || self.inputs.is_empty() || fee < self.terms.params.min_fee_b {
            return Ok(None);
        }
        let mut frame = self.frame()?;
        let (written, chosen_collateral) = self.write(&mut frame, fee, &[])?;
        let Some(excess) = fee.checked_sub(written.min_fee) else { return Ok(None) };
        if excess > written.min_fee.checked_div(FEE_TOLERANCE).unwrap_or_default() {
            return Ok(None);
        }
        self.check_size(&written)?;
        self.balanced(frame, written, fee, chosen_collateral, Vec::new()).map(Some)
    }

    fn frame(&self) -> Result<Frame<'a>, BuildError> {
        Frame::new(self.terms.checked, &self.inputs, self.script_bytes, self.terms.params)
    }

    fn write(
        &self,
        frame: &mut Frame<'a>,
        fee: u64,
        change: &[Bundle],
    ) -> Result<(Written, Option<ChosenCollateral>), BuildError> {
        let outputs = change.iter().map(|bundle| Output::plain(&self.terms.change_address, bundle));
        let outputs: Vec<Output> = outputs.collect::<Result<_, _>>()?;
        let chosen_collateral = if frame.runs_scripts() {
            let aside: Vec<&Source> = self.terms.checked.collateral.iter().collect();
            let (preferred, others) =
                if aside.is_empty() { (&self.spent[..], self.idle) } else { (&aside[..], &[][..]) };
            Some(collateral::choose(preferred, others, &self.terms.home, fee, self.terms.params)?)
        } else {
            None
        };
        let signatures = self.keys(chosen_collateral.as_ref()).len();
        let written =
            frame.write(fee, outputs, chosen_collateral.as_ref().map(ChosenCollateral::collateral), signatures)?;
        Ok((written, chosen_collateral))
    }

    /// Returns the hashes of the keys that must sign: the owners of the inputs and of the collateral, and the signers
    /// that scripts require.
    fn keys(&self, chosen_collateral: Option<&ChosenCollateral>) -> BTreeSet<KeyHash> {
        self.keys.iter().chain(chosen_collateral.map(ChosenCollateral::keys).into_iter().flatten()).copied().collect()
    }

    /// Returns the fee in lovelace for the wallet's own signature, or 0 if the wallet must sign anyway.
    fn signature_fee(&self) -> u64 {
        let signs = self.terms.home.payment_key().is_some_and(|key| self.keys.contains(key));
        if signs { 0 } else { self.terms.params.min_fee_a.saturating_mul(SIGNATURE_BYTES) }
    }

    fn check_size(&self, written: &Written) -> Result<(), Unbalanced> {
        let size = fees::ledger_size(written.tx_bytes).and_then(|size| u64::try_from(size).ok());
        match size {
            Some(size) if size <= self.terms.params.max_tx_size => Ok(()),
            _ => {
                let limit = self.terms.params.max_tx_size;
                Err(Unbalanced::TooLarge(BuildError::TooLarge { bytes: written.tx_bytes, limit }))
            }
        }
    }

    fn balanced(
        &self,
        frame: Frame<'_>,
        written: Written,
        fee: u64,
        chosen_collateral: Option<ChosenCollateral>,
        change: Vec<Bundle>,
    ) -> Result<BalancedTx, Unbalanced> {
        let keys = self.keys(chosen_collateral.as_ref());
        let collateral = chosen_collateral.map(ChosenCollateral::inputs).transpose()?.unwrap_or_default();
        let inputs = self.inputs.clone();
        Ok(BalancedTx { body: written.body, redeemers: frame.redeemers(), fee, inputs, collateral, change, keys })
    }
}
