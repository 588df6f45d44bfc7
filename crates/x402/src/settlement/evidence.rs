//! Rule 9: how much the chain shows of a payment, against how much is asked for.

use cardano::chain::Inclusion;

use crate::wire::{ConfirmationPolicy, SettlementExtra, SettlementStatus};

/// The strongest that is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A node took it from us.
    Mempool,
    /// It is in a block.
    Block {
        /// Which.
        inclusion: Inclusion,
        /// Newer blocks.
        confirmations: u64,
    },
}

impl Evidence {
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

    /// As the response says it.
    #[must_use]
    pub fn extra(&self) -> SettlementExtra {
        let status = match self {
            Self::Mempool => SettlementStatus::Mempool,
            Self::Block { .. } => SettlementStatus::Confirmed,
        };
        SettlementExtra { status, confirmations: Some(self.confirmations()), transaction_id: None }
    }
}
