//! Rules 6 and 8, the bounds of the protocol's parameters: the transaction's size, each output's value, its least
//! lovelace, and the fee. All are exact, as the ledger computes them.

use cardano::Lovelace;

use super::VerificationContext;
use crate::Refusal;

refusals! {
    /// A bound of the protocol's parameters.
    #[derive(Copy)]
    pub enum LimitBroken {
        /// The transaction is too large for the ledger.
        #[error("the transaction has {bytes} bytes, the ledger allows {most}")]
        TooLarge {
            /// The size in bytes, as the ledger counts it.
            bytes: usize,
            /// How many may.
            most: u64,
        } => "invalid_exact_cardano_payload_too_large",
        /// An output holds too many different tokens.
        #[error("the value of output {0} is too large: spread its tokens over several outputs")]
        ValueTooLarge(usize) => "invalid_exact_cardano_payload_value_too_large",
        /// An output holds too little.
        #[error("output {output} holds less than its minimum of {least} lovelace")]
        MinUtxo {
            /// The index of the output.
            output: usize,
            /// What it must hold.
            least: Lovelace,
        } => "invalid_exact_cardano_payload_min_utxo_insufficient",
        /// The fee is too low.
        #[error("the fee of {offered} lovelace is below the minimum of {least}")]
        FeeTooLow {
            /// What it offers.
            offered: Lovelace,
            /// What the ledger asks for.
            least: Lovelace,
        } => "invalid_exact_cardano_payload_fee_below_minimum",
    }
}

/// The transaction is not larger than `maxTxSize`.
pub fn transaction_fits(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let (bytes, most) = (context.case.payment.tx.ledger_size(), context.facts.parameters.max_tx_size);
    if fits(bytes, most) { Ok(()) } else { Err(LimitBroken::TooLarge { bytes, most }.into()) }
}

/// No output's value is larger than `maxValueSize`.
pub fn values_fit(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let most = context.facts.parameters.max_value_size;
    let large = context.case.payment.tx.outputs.iter().position(|output| !fits(output.value_size, most));
    large.map_or(Ok(()), |index| Err(LimitBroken::ValueTooLarge(index).into()))
}

/// Every output (the scheme asks it of the one to `payTo`, the ledger of all) holds `(160 + size) * coinsPerUtxoByte`.
pub fn outputs_hold_their_minimum(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    for (index, output) in context.case.payment.tx.outputs.iter().enumerate() {
        let least = context.facts.parameters.min_utxo(output.size);
        let least = least.ok_or(Refusal::Requirements("the protocol's output parameters are out of range"))?;
        if output.value.lovelace < least {
            return Err(LimitBroken::MinUtxo { output: index, least }.into());
        }
    }
    Ok(())
}

/// The fee is at least `minFeeB + minFeeA * size`.
pub fn fee_covers_the_minimum(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let tx = &context.case.payment.tx;
    let least = context.facts.parameters.min_fee(tx.ledger_size());
    let least = least.ok_or(Refusal::Requirements("the protocol's fee parameters are out of range"))?;
    if tx.fee >= least { Ok(()) } else { Err(LimitBroken::FeeTooLow { offered: tx.fee, least }.into()) }
}

fn fits(bytes: usize, most: u64) -> bool {
    u64::try_from(bytes).is_ok_and(|bytes| bytes <= most)
}
