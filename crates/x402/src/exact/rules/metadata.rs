//! Rule 6, auxiliary data: it is there if and only if the body names its hash, and it is metadata only.

use cardano::tx::AuxiliaryData;

use super::Case;
use crate::Refusal;

/// Hash and data belong together.
pub fn matches_its_hash(case: &Case<'_>) -> Result<(), Refusal> {
    let tx = &case.offer.tx;
    if tx.auxiliary_data.as_ref().map(AuxiliaryData::hash) == tx.auxiliary_data_hash {
        Ok(())
    } else {
        Err(Refusal::AuxiliaryDataHash)
    }
}

/// No scripts to publish.
pub fn has_no_scripts(case: &Case<'_>) -> Result<(), Refusal> {
    match &case.offer.tx.auxiliary_data {
        Some(data) if data.has_scripts => Err(Refusal::AuxiliaryScripts),
        _ => Ok(()),
    }
}
