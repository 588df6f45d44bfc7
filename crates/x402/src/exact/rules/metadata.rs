//! Rule 6, auxiliary data: they must be present if and only if the body contains their hash, and contain only metadata.

use cardano::tx::AuxiliaryData;

use super::PaymentContext;
use crate::Refusal;

refusals! {
    /// Reason why a payment's auxiliary data are not allowed.
    #[derive(Copy)]
    pub enum InvalidMetadata {
        /// The auxiliary data contain scripts.
        #[error("a payment's auxiliary data may only be metadata")]
        Scripts => "invalid_exact_cardano_payload_auxiliary_scripts",
        /// The hash in the body does not match the auxiliary data.
        #[error("the auxiliary data is not what the transaction body says: build the transaction again")]
        Hash => "invalid_exact_cardano_payload_auxiliary_data_hash_mismatch",
    }
}

/// Checks that the body contains the hash of the auxiliary data, or that hash and auxiliary data are both absent.
pub fn matches_its_hash(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let tx = &case.payment.tx;
    if tx.auxiliary_data.as_ref().map(AuxiliaryData::hash) == tx.auxiliary_data_hash {
        Ok(())
    } else {
        Err(InvalidMetadata::Hash.into())
    }
}

/// Checks that the auxiliary data contain no scripts.
pub fn has_no_scripts(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    match &case.payment.tx.auxiliary_data {
        Some(data) if data.has_scripts => Err(InvalidMetadata::Scripts.into()),
        _ => Ok(()),
    }
}
