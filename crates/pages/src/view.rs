//! What pages show: the API's own types, so that a page and a program are never told different things.

use api_types::EscrowDeadlines;
pub use api_types::{
    Agent, Listing, Purchase, PurchaseEvent as Event, PurchaseRequest, RequestStatus, SellerFigures as Seller,
    SellerReputation as Reputation,
};
pub use escrow::Deadlines;

/// When the parties of a protected purchase may act, POSIX ms.
#[must_use]
pub fn deadlines(purchase: &Purchase) -> Option<Deadlines> {
    let EscrowDeadlines { pay_by, submit_result, unlock, external_dispute_unlock } =
        purchase.escrow.as_ref()?.deadlines?;
    Some(Deadlines {
        pay_by: pay_by?,
        submit_result: submit_result?,
        unlock: unlock?,
        external_dispute_unlock: external_dispute_unlock?,
    })
}
