//! Rule 6, auxiliary data: it is there if and only if the body names its hash, and it is metadata only.

use cardano::tx::AuxiliaryData;

use super::PaymentContext;
use crate::Refusal;

refusals! {
    /// Auxiliary data that a payment may not have.
    #[derive(Copy)]
    pub enum InvalidMetadata {
        /// Auxiliary data with scripts.
        #[error("a payment's auxiliary data may only be metadata")]
        Scripts => "invalid_exact_cardano_payload_auxiliary_scripts",
        /// Body and auxiliary data do not belong together.
        #[error("the auxiliary data is not what the transaction body says: build the transaction again")]
        Hash => "invalid_exact_cardano_payload_auxiliary_data_hash_mismatch",
    }
}

/// Hash and data belong together.
pub fn matches_its_hash(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let tx = &case.payment.tx;
    if tx.auxiliary_data.as_ref().map(AuxiliaryData::hash) == tx.auxiliary_data_hash {
        Ok(())
    } else {
        Err(InvalidMetadata::Hash.into())
    }
}

/// No scripts to publish.
pub fn has_no_scripts(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    match &case.payment.tx.auxiliary_data {
        Some(data) if data.has_scripts => Err(InvalidMetadata::Scripts.into()),
        _ => Ok(()),
    }
}
