//! Selects which of the wallet's UTxOs pay for a transaction.
//!
//! The smallest plain UTxO that is enough on its own is used; otherwise the largest ones, so that there are few inputs.
//! UTxOs with native assets come after plain ones, because their assets must be carried over to change. UTxOs with
//! reference scripts come last, because their bytes add to the fee.

use super::{
    balance::{BalancedTx, BalancingTerms, Unbalanced, balance},
    error::BuildError,
    sources::Source,
};
use crate::{hash::TxRef, money::Lovelace};

/// Balances a transaction by adding UTxOs from `pool` until they suffice.
pub(super) fn select(terms: &BalancingTerms<'_>, pool: &[Source]) -> Result<BalancedTx, BuildError> {
    let mut costly_last: Vec<&Source> = pool.iter().collect();
    costly_last.sort_by_key(|source| (source.script_bytes > 0, !source.bundle.assets.is_empty()));
    match Selection::new(terms, costly_last)?.run() {
        Err(Unbalanced::TooLarge(_)) => {}
        done => return terms.conclude(done, pool),
    }
    // Many small plain UTxOs may not fit into a transaction. Fewer and larger ones may, even with assets or scripts.
    terms.conclude(Selection::new(terms, pool.iter().collect())?.run(), pool)
}

impl BalancingTerms<'_> {
    fn conclude(&self, result: Result<BalancedTx, Unbalanced>, pool: &[Source]) -> Result<BalancedTx, BuildError> {
        let too_large = match result {
            Ok(balanced) => return Ok(balanced),
            Err(Unbalanced::Failed(error)) => return Err(error),
            Err(Unbalanced::Short(short)) => return Err(insufficient(short.saturating_add(self.input_fee()))),
            Err(Unbalanced::TooLarge(error)) => error,
        };
        // If the wallet also holds too little, report that, because merging its UTxOs would not help.
        let held = pool.iter().fold(self.checked.input_value.lovelace, |sum, s| sum.saturating_add(s.bundle.lovelace));
        let needed = self.checked.output_value.lovelace.saturating_add(self.params.min_fee_b);
        Err(match needed.checked_sub(held) {
            Some(short) if short > 0 => insufficient(short.saturating_add(self.input_fee())),
            _ => too_large,
        })
    }
}

fn insufficient(missing: u64) -> BuildError {
    Lovelace::new(missing).map_or(BuildError::OutOfRange, |missing| BuildError::Insufficient { missing })
}

struct Selection<'a> {
    terms: &'a BalancingTerms<'a>,
    /// UTxOs that have not been chosen yet, in the order of preference. Plain ones are sorted from large to small.
    idle: Vec<&'a Source>,
    chosen: Vec<&'a Source>,
}

impl<'a> Selection<'a> {
    fn new(terms: &'a BalancingTerms<'a>, idle: Vec<&'a Source>) -> Result<Self, BuildError> {
        let mut selection = Self { terms, idle, chosen: Vec::new() };
        selection.cover_assets();
        Ok(selection)
    }

    /// Chooses, for each asset that the outputs need, the UTxOs that hold the most of that asset.
    fn cover_assets(&mut self) {
        let paid = &self.terms.checked.output_value;
        let input_value = &self.terms.checked.input_value;
        for (asset, mut missing) in input_value.assets_short_of(paid) {
            let holds = |source: &Source| source.bundle.assets.get(asset).copied().unwrap_or_default();
            missing = missing.saturating_sub(self.chosen.iter().map(|source| holds(source)).sum());
            let mut holders: Vec<&Source> = self.idle.iter().copied().filter(|source| holds(source) > 0).collect();
            holders.sort_by_key(|source| (std::cmp::Reverse(holds(source)), source.reference));
            for holder in holders {
                if missing == 0 {
                    break;
                }
                missing = missing.saturating_sub(holds(holder));
                self.choose(holder.reference);
            }
        }
    }

    fn run(mut self) -> Result<BalancedTx, Unbalanced> {
        loop {
            match balance(self.terms, &self.chosen, &self.idle) {
                Err(Unbalanced::Short(short)) if self.add(short) => {}
                done => return done,
            }
        }
    }

    /// Chooses further UTxOs to cover `short` missing lovelace. Returns `false` if there are none left.
    fn add(&mut self, short: u64) -> bool {
        let mut short = short;
        let mut added = false;
        // Assets need a larger change output and scripts a higher fee, so UTxOs with either are chosen in rounds, with
        // a new balance after each. A round may add as many as are chosen already, because it encodes all of them
        // again.
        let (most, mut laden) = (self.chosen.len().max(1), 0_usize);
        while short > 0 {
            let Some(source) = self.next(short) else { break };
            laden = laden.saturating_add(usize::from(!source.is_plain()));
            short = short.saturating_add(self.terms.input_fee()).saturating_sub(source.bundle.lovelace);
            self.choose(source.reference);
            added = true;
            if laden >= most {
                break;
            }
        }
        added
    }

    fn next(&self, short: u64) -> Option<&'a Source> {
        let enough = short.saturating_add(self.terms.input_fee());
        let plain = self.idle.iter().filter(|source| source.is_plain());
        let fits = plain.filter(|source| source.bundle.lovelace >= enough);
        fits.min_by_key(|source| (source.bundle.lovelace, source.reference)).or_else(|| self.idle.first()).copied()
    }

    fn choose(&mut self, reference: TxRef) {
        if let Some(index) = self.idle.iter().position(|source| source.reference == reference) {
            let source = self.idle.remove(index);
            self.chosen.push(source);
        }
    }
}
