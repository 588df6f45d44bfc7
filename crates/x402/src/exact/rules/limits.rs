//! Rules 6 and 8, the limits of the protocol parameters: the transaction's size, each output's value and minimum
//! lovelace, and the fee. All are computed exactly as on the ledger.

use cardano::Lovelace;

use super::VerificationContext;
use crate::Refusal;

refusals! {
    /// Ledger limit that a payment breaks: size of the transaction or of a value, minimum lovelace, or minimum fee.
    #[derive(Copy)]
    pub enum LimitBroken {
        /// The transaction exceeds the maximum size.
        #[error("the transaction has {bytes} bytes, the ledger allows {most}")]
        TooLarge {
            /// Size as the ledger counts it, in bytes.
            bytes: usize,
            /// Maximum size, in bytes.
            most: u64,
        } => "invalid_exact_cardano_payload_too_large",
        /// The output at this index holds too many different tokens.
        #[error("the value of output {0} is too large: spread its tokens over several outputs")]
        ValueTooLarge(usize) => "invalid_exact_cardano_payload_value_too_large",
        /// An output holds less lovelace than its minimum.
        #[error("output {output} holds less than its minimum of {least} lovelace")]
        MinUtxo {
            /// Index of the output.
            output: usize,
            /// Minimum lovelace of the output.
            least: Lovelace,
        } => "invalid_exact_cardano_payload_min_utxo_insufficient",
        /// The fee is too low.
        #[error("the fee of {offered} lovelace is below the minimum of {least}")]
        FeeTooLow {
            /// Fee of the transaction.
            offered: Lovelace,
            /// Minimum fee.
            least: Lovelace,
        } => "invalid_exact_cardano_payload_fee_below_minimum",
    }
}

/// Checks that the transaction is not larger than `maxTxSize`.
pub fn transaction_fits(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let (bytes, most) = (context.case.payment.tx.ledger_size(), context.facts.parameters.max_tx_size);
    if fits(bytes, most) { Ok(()) } else { Err(LimitBroken::TooLarge { bytes, most }.into()) }
}

/// Checks that the value of no output is larger than `maxValueSize`.
pub fn values_fit(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let most = context.facts.parameters.max_value_size;
    let large = context.case.payment.tx.outputs.iter().position(|output| !fits(output.value_size, most));
    large.map_or(Ok(()), |index| Err(LimitBroken::ValueTooLarge(index).into()))
}

/// Checks that every output holds at least `(160 + size) * coinsPerUtxoByte` lovelace. The scheme requires this only of
/// the output to `payTo`; the ledger requires it of all.
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

/// Checks that the fee is at least `minFeeB + minFeeA * size`.
pub fn fee_covers_the_minimum(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let tx = &context.case.payment.tx;
    let least = context.facts.parameters.min_fee(tx.ledger_size());
    let least = least.ok_or(Refusal::Requirements("the protocol's fee parameters are out of range"))?;
    if tx.fee >= least { Ok(()) } else { Err(LimitBroken::FeeTooLow { offered: tx.fee, least }.into()) }
}

fn fits(bytes: usize, most: u64) -> bool {
    u64::try_from(bytes).is_ok_and(|bytes| bytes <= most)
}
