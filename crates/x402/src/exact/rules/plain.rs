//! Rule 6: the transaction must be a plain payment. The scheme rejects a transaction "that moves value the inputs and
//! outputs do not show", because conservation of value could not be checked. These rules also reject every other part
//! that a plain payment does not need.

use cardano::tx::{Output, TxPart};

use super::PaymentContext;
use crate::Refusal;

refusals! {
    /// Reason why a transaction is not a plain payment.
    #[derive(Copy)]
    pub enum NotPlain {
        /// The transaction has a part that a plain payment does not have.
        #[error("a payment must not have {0:?}: build a plain transaction of inputs, outputs, fee and TTL")]
        UnsupportedPart(TxPart) => "invalid_exact_cardano_payload_unsupported_part",
        /// The output at this index carries a datum or a script.
        #[error("output {0} carries a datum or a reference script, which a payment must not")]
        Output(usize) => "invalid_exact_cardano_payload_output_not_plain",
        /// The transaction is marked as having failing scripts.
        #[error("the transaction is marked as failing its scripts")]
        MarkedInvalid => "invalid_exact_cardano_payload_phase2_invalid",
    }
}

/// Checks that nothing is minted, certified, withdrawn, voted, proposed or donated, and that there are no collateral,
/// reference inputs, scripts, redeemers or Byron signatures.
pub fn has_no_other_part(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    case.payment.tx.parts.keys().next().map_or(Ok(()), |part| Err(NotPlain::UnsupportedPart(*part).into()))
}

/// Checks that no output carries a datum or a script.
pub fn outputs_are_plain(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    are_plain(case, |_| true)
}

/// Checks that only outputs at `payTo` carry a datum or a script.
pub fn other_outputs_are_plain(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    are_plain(case, |output| output.address != case.pay_to_bytes)
}

fn are_plain(case: &PaymentContext<'_>, judged: impl Fn(&Output) -> bool) -> Result<(), Refusal> {
    let laden = |output: &Output| output.datum.is_some() || output.reference_script.is_some();
    let found = case.payment.tx.outputs.iter().position(|output| judged(output) && laden(output));
    found.map_or(Ok(()), |index| Err(NotPlain::Output(index).into()))
}

/// Checks that the transaction is not marked as having failing scripts, because such a transaction pays nothing.
pub fn is_marked_valid(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    if case.payment.tx.is_valid { Ok(()) } else { Err(NotPlain::MarkedInvalid.into()) }
}
