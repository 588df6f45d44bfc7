//! What was accepted is what is offered now ("exact `accepted` matching"; x402 v2, section 5.2).

use super::Case;
use crate::{Refusal, wire::SCHEME_EXACT};

/// The scheme is the one of this crate, on both sides.
pub fn scheme(case: &Case<'_>) -> Result<(), Refusal> {
    if case.requirements.scheme != SCHEME_EXACT {
        return Err(Refusal::Requirements("scheme is not exact"));
    }
    if case.offer.accepted.scheme == SCHEME_EXACT { Ok(()) } else { Err(Refusal::Scheme) }
}

/// Every field is as offered; a network's alias counts as that network.
pub fn unchanged(case: &Case<'_>) -> Result<(), Refusal> {
    match case.requirements.first_difference(&case.offer.accepted) {
        None => Ok(()),
        Some("network") => Err(Refusal::Network(case.requirements.network.name())),
        Some(field) => Err(Refusal::AcceptedDiffers(field)),
    }
}
