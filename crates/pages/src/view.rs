//! Types that pages show. They are the API's types, so that people and programs get the same facts.

use api_types::EscrowDeadlines;
pub use api_types::{
    Agent, Listing, Purchase, PurchaseEvent as Event, PurchaseRequest, RequestStatus, SellerFigures as Seller,
    SellerReputation as Reputation,
};
pub use escrow::Deadlines;

/// Returns the deadlines of a protected purchase in POSIX ms, or `None` for an instant purchase.
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
