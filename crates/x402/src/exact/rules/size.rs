//! Rule 6, the ledger's bounds on sizes: the whole transaction, and each output's value.

use super::Situation;
use crate::Refusal;

/// The transaction is not larger than `maxTxSize`.
pub fn transaction_fits(situation: &Situation<'_>) -> Result<(), Refusal> {
    let (bytes, most) = (situation.case.offer.tx.ledger_size(), situation.facts.parameters.max_tx_size);
    if fits(bytes, most) { Ok(()) } else { Err(Refusal::TooLarge { bytes, most }) }
}

/// No output's value is larger than `maxValueSize`.
pub fn values_fit(situation: &Situation<'_>) -> Result<(), Refusal> {
    let most = situation.facts.parameters.max_value_size;
    situation
        .case
        .offer
        .tx
        .outputs
        .iter()
        .position(|output| !fits(output.value_size, most))
        .map_or(Ok(()), |index| Err(Refusal::ValueTooLarge(index)))
}

fn fits(bytes: usize, most: u64) -> bool {
    u64::try_from(bytes).is_ok_and(|bytes| bytes <= most)
}
