//! How a settlement stands, and what the buyer is told about it. Getting a payment to the chain is the server's part.
//!
//! Source: the scheme document, rule 9, "Pending settlement" and "Duplicate Settlement Mitigation".

use cardano::{Address, TxHash, chain::Inclusion};

use crate::{
    Refusal,
    wire::{ConfirmationPolicy, Network, SettlementExtra, SettlementResponse, SettlementStatus},
};

/// The strongest that is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementEvidence {
    /// A node took it from us.
    Mempool,
    /// It is in a block.
    Block {
        /// The block, as the provider shows it.
        inclusion: Inclusion,
        /// Newer blocks.
        confirmations: u64,
    },
}

/// How a verified payment stands. Asking again with the same header continues a pending one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The evidence meets the policy.
    Confirmed(SettlementEvidence),
    /// In no block yet, or in one with too few confirmations; with what shows it.
    Pending(Option<SettlementEvidence>),
    /// The ledger refused the transaction: nothing was paid.
    Refused(String),
    /// The transaction can no longer be included: nothing was paid.
    Expired,
}

refusals! {
    /// Why a verified payment delivers nothing now.
    pub enum NotSettled {
        /// A payment again, after it was delivered or from another client.
        #[error("this transaction was already used: a returning buyer sends X-Service-Proof instead of paying")]
        Duplicate => "duplicate_settlement",
        /// The transaction pays for another resource.
        #[error("this transaction already pays for another resource: pay for this one with a new transaction")]
        OtherResource => "invalid_exact_cardano_payload_other_resource",
        /// The ledger refused the transaction.
        #[error("the ledger refused the transaction: {0}")]
        LedgerRefused(String) => "exact_cardano_settlement_definitively_rejected",
        /// The transaction was not included in time and never will be.
        #[error("the transaction was in no block before its TTL and never will be: build a new one")]
        Expired => "exact_cardano_settlement_expired",
        /// The transaction is submitted and not settled yet. It may still be: send the same header again.
        #[error(
            "the transaction is submitted and not in a block yet: send the same PAYMENT-SIGNATURE again, do not pay anew"
        )]
        Pending => "settlement_pending",
    }
}

impl SettlementEvidence {
    /// Whether this is what the policy asks for, or more.
    #[must_use]
    pub fn meets(&self, policy: ConfirmationPolicy) -> bool {
        i64::from(policy.l1_confirmations()) <= self.confirmations()
    }

    /// On the wire: -1 in the mempool, else the number of newer blocks.
    #[must_use]
    pub fn confirmations(&self) -> i64 {
        match self {
            Self::Mempool => -1,
            Self::Block { confirmations, .. } => i64::try_from(*confirmations).unwrap_or(i64::MAX),
        }
    }

    fn extra(&self) -> SettlementExtra {
        let status = match self {
            Self::Mempool => SettlementStatus::Mempool,
            Self::Block { .. } => SettlementStatus::Confirmed,
        };
        SettlementExtra { status, confirmations: Some(self.confirmations()), transaction_id: None }
    }
}

impl Settlement {
    /// Why the content is not delivered now; `None` where it is.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let why = match self {
            Self::Confirmed(_) => return None,
            Self::Pending(_) => NotSettled::Pending,
            Self::Refused(reason) => NotSettled::LedgerRefused(reason.clone()),
            Self::Expired => NotSettled::Expired,
        };
        Some(why.into())
    }

    /// The `PAYMENT-RESPONSE`: with the content, or with the 402 that says why not.
    #[must_use]
    pub fn response(&self, tx: &TxHash, payer: &Address, network: Network) -> SettlementResponse {
        let extra = match self {
            Self::Confirmed(evidence) => Some(evidence.extra()),
            Self::Pending(evidence) => Some(SettlementExtra {
                status: SettlementStatus::Pending,
                confirmations: evidence.as_ref().map(SettlementEvidence::confirmations).filter(|count| *count >= 0),
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
            extensions: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::KeyHash;
    use serde_json::{Value, json};

    const TX: TxHash = TxHash::new([7; 32]);

    fn block(confirmations: u64) -> SettlementEvidence {
        let inclusion = Inclusion { block: TxHash::new([8; 32]), height: 7, slot: 90_000, time_ms: 0, valid: true };
        SettlementEvidence::Block { inclusion, confirmations }
    }

    fn told(settlement: &Settlement) -> Value {
        let payer = Address::enterprise(KeyHash::new([1; 28]));
        let mut told = serde_json::to_value(settlement.response(&TX, &payer, Network::Preprod)).unwrap();
        assert_eq!(told["transaction"], TX.to_string());
        assert_eq!(told["network"], "cardano:preprod");
        assert_eq!(told["payer"], payer.to_string());
        let (success, reason, extra) = (told["success"].take(), told["errorReason"].take(), told["extra"].take());
        json!([success, reason, extra])
    }

    #[test]
    fn a_policy_is_met_by_what_it_asks_for_or_more() {
        let meets = |evidence: SettlementEvidence, n| evidence.meets(ConfirmationPolicy::new(n).unwrap());
        assert!(
            meets(SettlementEvidence::Mempool, -1) && meets(block(0), -1) && meets(block(0), 0) && meets(block(3), 2)
        );
        assert!(!meets(SettlementEvidence::Mempool, 0) && !meets(block(0), 1) && !meets(block(1), 2));
    }

    #[test]
    fn a_settlement_tells_the_buyer_the_payments_status() {
        let confirmed = json!([true, null, { "status": "confirmed", "confirmations": 2 }]);
        assert_eq!(told(&Settlement::Confirmed(block(2))), confirmed);
        assert_eq!(Settlement::Confirmed(block(2)).refusal(), None);
        let mempool = json!([true, null, { "status": "mempool", "confirmations": -1 }]);
        assert_eq!(told(&Settlement::Confirmed(SettlementEvidence::Mempool)), mempool);
        let pending = json!([false, "settlement_pending", { "status": "pending", "transactionId": TX.to_string() }]);
        assert_eq!(told(&Settlement::Pending(None)), pending);
        assert_eq!(told(&Settlement::Pending(Some(SettlementEvidence::Mempool))), pending);
        assert_eq!(told(&Settlement::Pending(Some(block(1))))[2]["confirmations"], 1);
        let refused = json!([false, "exact_cardano_settlement_definitively_rejected", null]);
        assert_eq!(told(&Settlement::Refused("FeeTooSmallUTxO".into())), refused);
        assert_eq!(told(&Settlement::Expired), json!([false, "exact_cardano_settlement_expired", null]));
    }
}
