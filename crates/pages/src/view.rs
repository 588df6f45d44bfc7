//! What pages show: the API's own types, so that a page and a program are never told different things.

pub use api_types::{
    Agent, Listing, Purchase, PurchaseEvent as Event, PurchaseRequest, RequestStatus, SellerFigures as Seller,
    SellerReputation as Reputation,
};

/// When an escrow's parties may act, POSIX ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Until when the seller posts a result.
    pub submit_result: u64,
    /// From when the seller collects.
    pub unlock: u64,
    /// From when the arbiter decides a dispute.
    pub external_dispute_unlock: u64,
}

impl Deadlines {
    /// Those of a protected purchase.
    #[must_use]
    pub fn of(purchase: &Purchase) -> Option<Self> {
        let deadlines = purchase.escrow.as_ref()?.deadlines?;
        Some(Self {
            submit_result: deadlines.submit_result?,
            unlock: deadlines.unlock?,
            external_dispute_unlock: deadlines.external_dispute_unlock?,
        })
    }
}
