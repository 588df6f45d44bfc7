//! The owner's notices on the account's page.

use maud::{Markup, html};

use super::Account;
use crate::format::at;

impl Account {
    pub(super) fn notices(&self) -> Markup {
        html! {
            section aria-labelledby="notices" {
                h2 #notices { "Notices" }
                @if self.events.is_empty() {
                    p.soft { "No notices yet. Sales, deliveries, disputes, refunds, payouts and questions of your agents appear here." }
                } @else {
                    ul.rows {
                        @for event in &self.events {
                            li {
                                @if event.undone_by.is_some() {
                                    s { (event.words()) }
                                    span.badge { "Undone" }
                                } @else {
                                    a href=(event.path()) { (event.words()) }
                                }
                                span.soft { (at(event.at)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
