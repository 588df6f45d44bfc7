//! The page on which an owner approves or declines an agent's purchase.

use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    asset::ACCOUNT,
    format::{at, tada},
    layout::{Page, Section},
    parts,
    view::{PurchaseRequest, RequestStatus},
};

/// Renders the page of a purchase request. `None` renders a note that the request has expired or belongs to another
/// account.
#[must_use]
pub fn page(asked: Option<&PurchaseRequest>) -> String {
    let main = html! {
        main #main.narrow {
            @match asked {
                Some(asked) => {
                    section aria-labelledby="asked" {
                        h1 #asked { "Let " strong { (asked.client_name) } " buy this?" }
                        dl {
                            dt { "Listing" } dd { a href={ "/listings/" (asked.listing_id) } { (asked.title) } }
                            dt { "Price" } dd { (tada(asked.price_lovelace)) ", and the network's fee" }
                            dt { "Payment" }
                            dd {
                                @match asked.mode {
                                    DeliveryMode::Protected => { "Protected: held in escrow, and refunded if delivery fails" }
                                    DeliveryMode::Instant => { "Instant: the seller is paid at once, and it cannot be taken back" }
                                }
                            }
                            dt { "Agent" } dd { (asked.client_name) " (its own name for itself)" }
                        }
                        p {
                            @match asked.status {
                                RequestStatus::Waiting => { "Nothing is paid yet. Answer by " (at(asked.expires_at)) "." }
                                RequestStatus::Approved => { "Approved: the agent may buy it once, until " (at(asked.expires_at)) "." }
                                RequestStatus::Declined => { "Declined: the agent may not buy it." }
                                RequestStatus::Used => {
                                    "The agent has used your approval."
                                    @if asked.tx.is_none() {
                                        " Its payment waits for a block, seldom longer than a minute. Reload this page to see the purchase."
                                    }
                                }
                            }
                        }
                        @if let Some(tx) = &asked.tx { p { a.button.quiet href={ "/purchases/" (tx) } { "See the purchase" } } }
                        div.acts {
                            @if matches!(asked.status, RequestStatus::Waiting | RequestStatus::Declined) {
                                button type="button" data-action="answer" data-answer="approve" data-said="Approved. Tell your agent to go on." { "Approve" }
                            }
                            @if matches!(asked.status, RequestStatus::Waiting | RequestStatus::Approved) {
                                button.quiet type="button" data-action="answer" data-answer="decline" data-said="Declined. Nothing is paid." { "Decline" }
                            }
                        }
                    }
                    div #talk { (parts::progress()) }
                }
                None => {
                    h1 { "Nothing to approve" }
                    p { "This request is over, or it is another account's. Your agent can ask again." }
                }
            }
        }
    };
    Page { title: "Approve a purchase", section: Section::Account, script: Some(ACCOUNT), card: None }.around(&main)
}

/// Renders the list of purchase requests on the account's page.
pub(super) fn list(waiting: &[PurchaseRequest]) -> Markup {
    html! {
        section aria-labelledby="waiting" {
            h2 #waiting { "Waiting for your approval" }
            ul.rows {
                @for asked in waiting {
                    li {
                        a href={ "/me/requests/" (asked.id) } { (asked.title) }
                        span.soft { (tada(asked.price_lovelace)) " · " (asked.client_name) }
                        div.acts {
                            a.button.quiet href={ "/me/requests/" (asked.id) } aria-label={ "Review " (asked.title) } { "Review" }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cardano::{Lovelace, TxHash};

    use super::{DeliveryMode, PurchaseRequest, RequestStatus, page};

    #[test]
    fn a_used_approval_links_to_its_purchase_once_a_block_has_the_payment() {
        let shown = |tx| {
            page(Some(&PurchaseRequest {
                id: "0".repeat(32),
                listing_id: "lst_1".into(),
                title: "A hero section".into(),
                mode: DeliveryMode::Instant,
                price_lovelace: Lovelace::from_ada(5),
                client_name: "Test agent".into(),
                status: RequestStatus::Used,
                expires_at: 0,
                tx,
            }))
        };
        let (waiting, bought) = (shown(None), shown(Some(TxHash::new([7; 32]))));
        assert!(waiting.contains("waits for a block") && !waiting.contains("/purchases/"));
        assert!(bought.contains(&format!("/purchases/{}", "07".repeat(32))) && !bought.contains("waits for a block"));
    }
}
