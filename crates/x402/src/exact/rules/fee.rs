//! Rule 6, the fee floor: `minFeeB + minFeeA * size`, to the lovelace as the ledger computes it.

use super::Situation;
use crate::Refusal;

/// The fee is at least the ledger's minimum for this size.
pub fn covers_the_minimum(situation: &Situation<'_>) -> Result<(), Refusal> {
    let tx = &situation.case.offer.tx;
    let least = situation
        .facts
        .parameters
        .min_fee(tx.ledger_size())
        .ok_or(Refusal::Requirements("the protocol's fee parameters are out of range"))?;
    if tx.fee >= least { Ok(()) } else { Err(Refusal::FeeTooLow { offered: tx.fee, least }) }
}
