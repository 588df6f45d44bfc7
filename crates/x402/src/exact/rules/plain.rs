//! Rule 6: a transaction "that moves value the inputs and outputs do not show" cannot be balanced from outside and is
//! refused; so is everything else that a plain payment does without.

use super::Case;
use crate::Refusal;

/// Nothing minted, certified, withdrawn, voted, proposed or donated; no collateral, reference inputs, scripts,
/// redeemers or Byron signatures.
pub fn has_no_other_part(case: &Case<'_>) -> Result<(), Refusal> {
    case.offer.tx.parts.keys().next().map_or(Ok(()), |part| Err(Refusal::UnsupportedPart(*part)))
}

/// No output carries a datum or a script.
pub fn outputs_are_plain(case: &Case<'_>) -> Result<(), Refusal> {
    case.offer
        .tx
        .outputs
        .iter()
        .position(|output| output.datum.is_some() || output.reference_script.is_some())
        .map_or(Ok(()), |index| Err(Refusal::OutputNotPlain(index)))
}

/// The transaction does not say of itself that its scripts fail: such a one pays nothing.
pub fn is_marked_valid(case: &Case<'_>) -> Result<(), Refusal> {
    if case.offer.tx.is_valid { Ok(()) } else { Err(Refusal::MarkedInvalid) }
}
