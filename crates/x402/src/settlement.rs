//! The outcome of a payment's settlement, and the response that tells it to the buyer. Submitting the transaction is
//! the server's task.
//!
//! Source: the scheme document, rule 9, "Pending settlement" and "Duplicate Settlement Mitigation".

use cardano::{Address, TxHash, chain::Inclusion};

use crate::{
    Refusal,
    wire::{ConfirmationPolicy, Network, SettlementExtra, SettlementResponse, SettlementStatus},
};

/// The strongest evidence so far that a transaction is or will be on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementEvidence {
    /// A node accepted the transaction that we submitted into its mempool.
    Mempool,
    /// A block includes the transaction.
    Block {
        /// Block that includes the transaction, as the provider reports it.
        inclusion: Inclusion,
        /// Number of blocks newer than the block that includes the transaction.
        confirmations: u64,
    },
}

/// Status of a verified payment. If it is pending, the client sends the same header again to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The payment has as many confirmations as its offer requires.
    Confirmed(SettlementEvidence),
    /// No block includes the transaction yet, or it has too few confirmations. Contains the evidence so far; `None`
    /// before a node has accepted the transaction.
    Pending(Option<SettlementEvidence>),
    /// The ledger rejected the transaction, so nothing was paid. Contains the ledger's reason.
    Refused(String),
    /// The validity interval ended before any block included the transaction, so nothing was paid.
    Expired,
}

refusals! {
    /// Reason why no content is delivered for a verified payment at this time.
    pub enum NotSettled {
        /// The payment was used before: its content was already delivered, or the payment was made by another client.
        #[error("this transaction was already used: a returning buyer sends X-Service-Proof instead of paying")]
        Duplicate => "duplicate_settlement",
        /// The transaction pays for another resource.
        #[error("this transaction already pays for another resource: pay for this one with a new transaction")]
        OtherResource => "invalid_exact_cardano_payload_other_resource",
        /// The ledger rejected the transaction.
        #[error("the ledger refused the transaction: {0}")]
        LedgerRefused(String) => "exact_cardano_settlement_definitively_rejected",
        /// The validity interval ended before any block included the transaction.
        #[error("the transaction was in no block before its TTL and never will be: build a new one")]
        Expired => "exact_cardano_settlement_expired",
        /// The transaction is submitted but does not have enough confirmations yet. The client should send the same
        /// header again.
        #[error(
            "the transaction is submitted and not in a block yet, or in one with too few newer blocks: send the same PAYMENT-SIGNATURE again, do not pay anew"
        )]
        Pending => "settlement_pending",
    }
}

impl SettlementEvidence {
    /// Returns `true` if the evidence is as strong as the confirmation policy requires.
    #[must_use]
    pub fn meets(&self, policy: ConfirmationPolicy) -> bool {
        i64::from(policy.l1_confirmations()) <= self.confirmations()
    }

    /// Returns the number of blocks newer than the one that includes the transaction, or -1 if the transaction is only
    /// in a mempool.
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
    /// Returns the reason why no content is delivered at this time, or `None` if the payment is confirmed.
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

    /// Builds the object of the `PAYMENT-RESPONSE` header, which accompanies the content or the 402.
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
