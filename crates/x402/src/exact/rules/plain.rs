//! Rule 6: a transaction "that moves value the inputs and outputs do not show" cannot be balanced from outside and is
//! refused; so is everything else that a plain payment does without.

use cardano::tx::Output;

use super::{Case, recipient::pay_to_bytes};
use crate::Refusal;

/// Nothing minted, certified, withdrawn, voted, proposed or donated; no collateral, reference inputs, scripts,
/// redeemers or Byron signatures.
pub fn has_no_other_part(case: &Case<'_>) -> Result<(), Refusal> {
    case.offer.tx.parts.keys().next().map_or(Ok(()), |part| Err(Refusal::UnsupportedPart(*part)))
}

/// No output carries a datum or a script.
pub fn outputs_are_plain(case: &Case<'_>) -> Result<(), Refusal> {
    are_plain(case, |_| true)
}

/// No output but those at `payTo` carries a datum or a script.
pub fn other_outputs_are_plain(case: &Case<'_>) -> Result<(), Refusal> {
    let pay_to = pay_to_bytes(case)?;
    are_plain(case, |output| output.address != pay_to)
}

fn are_plain(case: &Case<'_>, judged: impl Fn(&Output) -> bool) -> Result<(), Refusal> {
    let laden = |output: &Output| output.datum.is_some() || output.reference_script.is_some();
    let found = case.offer.tx.outputs.iter().position(|output| judged(output) && laden(output));
    found.map_or(Ok(()), |index| Err(Refusal::OutputNotPlain(index)))
}

/// The transaction does not say of itself that its scripts fail: such a one pays nothing.
pub fn is_marked_valid(case: &Case<'_>) -> Result<(), Refusal> {
    if case.offer.tx.is_valid { Ok(()) } else { Err(Refusal::MarkedInvalid) }
}
