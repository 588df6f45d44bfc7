//! What the buyer is told about a settlement.

use cardano::{Address, TxHash};

use super::{evidence::Evidence, settle::Outcome};
use crate::{
    Refusal,
    wire::{Network, SettlementExtra, SettlementResponse, SettlementStatus},
};

impl Outcome {
    /// Why the content is not delivered now; `None` where it is.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Confirmed(_) => None,
            Self::Pending(_) => Some(Refusal::Pending),
            Self::Refused(reason) => Some(Refusal::LedgerRefused(reason.clone())),
            Self::Expired => Some(Refusal::Expired),
        }
    }

    /// The `PAYMENT-RESPONSE`: with the content, or with the 402 that says why not.
    #[must_use]
    pub fn response(&self, tx: &TxHash, payer: &Address, network: Network) -> SettlementResponse {
        let extra = match self {
            Self::Confirmed(evidence) => Some(evidence.extra()),
            Self::Pending(evidence) => Some(SettlementExtra {
                status: SettlementStatus::Pending,
                confirmations: evidence.as_ref().map(Evidence::confirmations).filter(|count| *count >= 0),
                transaction_id: Some(tx.to_string()),
            }),
            Self::Refused(_) | Self::Expired => None,
        };
        SettlementResponse {
            success: matches!(self, Self::Confirmed(_)),
            transaction: tx.to_string(),
            network,
            payer: Some(payer.to_string()),
            error_reason: self.refusal().map(|refusal| refusal.code().to_owned()),
            extra,
        }
    }
}
