//! Chooses collateral: inputs that the ledger takes if a script fails. The collateral return is an output that then
//! gives back everything except the required amount.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{
    bundle::Bundle,
    error::BuildError,
    output::{Output, min_lovelace_plain},
    sources::Source,
};
use crate::{
    address::PaymentAddress,
    fees,
    hash::{KeyHash, TxHash, TxRef},
    money::Lovelace,
    params::ProtocolParameters,
};

/// Placeholder for a collateral input while none is available. Its encoding has the maximum size of an input.
const SOME_INPUT: TxRef = TxRef { tx: TxHash::new([0; 32]), index: u16::MAX };

/// The collateral fields of a transaction body.
#[derive(Clone)]
pub(super) struct Collateral {
    pub(super) inputs: BTreeSet<TxRef>,
    pub(super) total: u64,
    pub(super) back: Option<Output>,
}

/// Collateral that covers a fee. If too little is available, a placeholder with one input, and the missing amount in
/// lovelace.
pub(super) struct ChosenCollateral {
    collateral: Collateral,
    keys: BTreeSet<KeyHash>,
    missing: Option<u64>,
}

impl ChosenCollateral {
    pub(super) fn collateral(&self) -> Collateral {
        self.collateral.clone()
    }

    pub(super) const fn keys(&self) -> &BTreeSet<KeyHash> {
        &self.keys
    }

    /// Returns the references of the collateral inputs.
    ///
    /// # Errors
    /// [`BuildError::CollateralMissing`] if too little is available.
    pub(super) fn inputs(self) -> Result<Vec<TxRef>, BuildError> {
        let Some(missing) = self.missing else { return Ok(self.collateral.inputs.into_iter().collect()) };
        let missing = Lovelace::new(missing).ok_or(BuildError::OutOfRange)?;
        Err(BuildError::CollateralMissing { missing })
    }
}

/// Chooses collateral that covers this fee.
///
/// Uses the smallest UTxO that is enough on its own, or several UTxOs if none is. UTxOs in `preferred` are tried before
/// those in `others`, which would have to be reserved in addition.
pub(super) fn choose(
    preferred: &[&Source],
    others: &[&Source],
    home: &PaymentAddress,
    fee: u64,
    params: &ProtocolParameters,
) -> Result<ChosenCollateral, BuildError> {
    let fee = Lovelace::new(fee).ok_or(BuildError::OutOfRange)?;
    let total = fees::min_collateral(params, fee).ok_or(BuildError::OutOfRange)?.get();
    for list in [preferred, others] {
        let mut smallest = list.to_vec();
        smallest.sort_by_key(|source| (!source.is_plain(), source.bundle.lovelace, source.reference));
        for source in smallest {
            if let Some(chosen_collateral) = with_collateral(&[source], total, home, params)? {
                return Ok(chosen_collateral);
            }
        }
    }
    let mut richest: Vec<&Source> = preferred.iter().chain(others).copied().collect();
    richest.sort_by_key(|source| (!source.is_plain(), Reverse(source.bundle.lovelace)));
    richest.truncate(usize::try_from(params.max_collateral_inputs).unwrap_or(usize::MAX));
    match with_collateral(&richest, total, home, params)? {
        Some(chosen_collateral) => Ok(chosen_collateral),
        None => placeholder(total, home, params),
    }
}

/// Makes collateral of `total` lovelace from these UTxOs. Returns `None` if they hold too little for that amount and
/// the return output.
fn with_collateral(
    sources: &[&Source],
    total: u64,
    home: &PaymentAddress,
    params: &ProtocolParameters,
) -> Result<Option<ChosenCollateral>, BuildError> {
    let held = Bundle::checked_sum(sources.iter().map(|source| &source.bundle)).ok_or(BuildError::OutOfRange)?;
    let Some(rest) = held.lovelace.checked_sub(total).filter(|_| !sources.is_empty()) else { return Ok(None) };
    let Some(back) = collateral_return(Bundle { lovelace: rest, ..held }, home, params)? else { return Ok(None) };
    let inputs = sources.iter().map(|source| source.reference).collect::<BTreeSet<_>>();
    let keys = sources.iter().map(|source| source.key).collect::<BTreeSet<_>>();
    Ok(Some(ChosenCollateral { collateral: Collateral { inputs, total, back }, keys, missing: None }))
}

/// Builds the collateral return, the output that holds `rest`. Returns `Some(None)` if `rest` is empty, and `None` if
/// no valid output can hold it.
#[allow(clippy::option_option, reason = "no output needed and no output possible are different answers")]
fn collateral_return(
    rest: Bundle,
    home: &PaymentAddress,
    params: &ProtocolParameters,
) -> Result<Option<Option<Output>>, BuildError> {
    if rest == Bundle::default() {
        return Ok(Some(None));
    }
    // A sum of assets too large for one output is treated like a value that is too long.
    let Ok(value) = rest.to_cbor() else { return Ok(None) };
    let fits = u64::try_from(value.len()).is_ok_and(|bytes| bytes <= params.max_value_size);
    if !fits || rest.lovelace < min_lovelace_plain(home, &rest, params)? {
        return Ok(None);
    }
    Ok(Some(Some(Output::plain(home, &rest)?)))
}

fn placeholder(total: u64, home: &PaymentAddress, params: &ProtocolParameters) -> Result<ChosenCollateral, BuildError> {
    let least = min_lovelace_plain(home, &Bundle::default(), params)?;
    let back = Output::plain(home, &Bundle { lovelace: least, ..Bundle::default() })?;
    let collateral = Collateral { inputs: BTreeSet::from([SOME_INPUT]), total, back: Some(back) };
    Ok(ChosenCollateral {
        collateral,
        keys: home.payment_key().copied().into_iter().collect(),
        missing: total.checked_add(least),
    })
}
