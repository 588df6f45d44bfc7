//! Empties a wallet: sends everything but a reserve to one address, native assets included.

use super::{
    balance::{BalancedTx, BalancingTerms, Unbalanced, balance},
    bundle::Bundle,
    draft,
    error::BuildError,
    plan::{NewOutput, TxPlan, Validity, Wallet},
    signing::UnsignedTx,
    sources::{Checked, Source, spendable},
};
use crate::{address::PaymentAddress, hash::TxRef, money::Lovelace, params::ProtocolParameters};

/// A transaction that empties a wallet.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The transaction, still unsigned.
    pub draft: UnsignedTx,
    /// Lovelace that the receiving address gets, in addition to the native assets.
    pub sent: Lovelace,
    /// UTxOs that did not fit into this transaction, in the order in which to sweep them next. Reserved UTxOs are never
    /// swept and are not listed here.
    pub left: Vec<TxRef>,
}

/// Builds a transaction that sends everything in the wallet to the address `to`, except the fee and `reserve`. The
/// reserve stays as one plain UTxO; if it is zero, nothing stays.
///
/// UTxOs with datums and scripts are swept too. If not all UTxOs fit into one transaction, those with the most lovelace
/// are swept. If their tokens require all of that lovelace, so that nothing is left for the fee, plain UTxOs are swept
/// first, or alone.
///
/// # Errors
/// [`BuildError::NothingToSweep`] if too little would arrive to form an output, [`BuildError::OutputBelowMinimum`] if
/// the reserve is too small for an output.
pub fn sweep(
    wallet: &Wallet<'_>,
    to: impl Into<PaymentAddress>,
    reserve: Lovelace,
    validity: Validity,
    params: &ProtocolParameters,
) -> Result<Sweep, BuildError> {
    let keep = (reserve > Lovelace::ZERO).then(|| NewOutput::pay(wallet.address, reserve));
    let plan = TxPlan { outputs: keep.into_iter().collect(), validity, ..TxPlan::default() };
    let checked = Checked::new(&plan, params)?;
    let mut pool = spendable(wallet, &plan.wallet_keys, &checked.used(), params);
    let change_address = to.into();
    let terms = BalancingTerms {
        checked: &checked,
        params,
        change_address,
        change_required: true,
        home: wallet.address.into(),
    };
    let mut found = build_with_most_utxos(&terms, &pool);
    if found.is_err() && !pool.iter().all(Source::is_plain) {
        // The UTxOs with the most lovelace may need all of it for their tokens. Then try plain UTxOs first, or alone.
        pool.sort_by_key(|source| !source.is_plain());
        let plain = pool.partition_point(Source::is_plain);
        let alone = || build_with_most_utxos(&terms, pool.get(..plain).unwrap_or_default());
        found = build_with_most_utxos(&terms, &pool).or_else(|_| alone()).or(found);
    }
    let (balanced, count) = found?;
    let sent = Bundle::checked_sum(&balanced.change).map(|sum| sum.lovelace).and_then(Lovelace::new);
    let sent = sent.ok_or(BuildError::OutOfRange)?;
    let left = pool.iter().skip(count).map(|source| source.reference).collect();
    Ok(Sweep { draft: draft(&checked, balanced, &change_address, &wallet.address)?, sent, left })
}

/// Builds a transaction that spends as many UTxOs from the start of `pool` as fit. Returns the transaction and the
/// number of UTxOs.
fn build_with_most_utxos(terms: &BalancingTerms<'_>, pool: &[Source]) -> Result<(BalancedTx, usize), BuildError> {
    let of = |count: usize| balance(terms, &pool.iter().take(count).collect::<Vec<_>>(), &[]);
    let too_large = match of(pool.len()) {
        Ok(balanced) => return Ok((balanced, pool.len())),
        Err(Unbalanced::TooLarge(error)) => error,
        Err(other) => return Err(reason(terms, pool, other)),
    };
    let mut best = Err(too_large);
    let (mut fits, mut over) = (0, pool.len());
    while let Some(half) = over.checked_sub(fits).and_then(|gap| gap.checked_div(2)).filter(|half| *half > 0) {
        let count = fits.saturating_add(half);
        match of(count) {
            Ok(balanced) => {
                best = Ok((balanced, count));
                fits = count;
            }
            Err(Unbalanced::TooLarge(_)) => over = count,
            // The largest few hold too little; more of them may be enough.
            Err(Unbalanced::Short(_)) => fits = count,
            Err(other) => return Err(reason(terms, pool, other)),
        }
    }
    best
}

fn reason(terms: &BalancingTerms<'_>, pool: &[Source], why: Unbalanced) -> BuildError {
    match why {
        Unbalanced::Failed(error) | Unbalanced::TooLarge(error) => error,
        Unbalanced::Short(short) => {
            let balance = Bundle::checked_sum(pool.iter().map(|source| &source.bundle)).map(|sum| sum.lovelace);
            let missing = short.saturating_add(terms.input_fee());
            match (balance.and_then(Lovelace::new), Lovelace::new(missing)) {
                (Some(balance), Some(missing)) => BuildError::NothingToSweep { balance, missing },
                _ => BuildError::OutOfRange,
            }
        }
    }
}
