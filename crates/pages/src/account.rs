//! `/me`: sign in with a wallet; then the service wallet, its limits, what it bought, and the agents that may spend from it.

use cardano::{Address, Lovelace};
use market::account::{MAX_DAILY_BUDGET_ADA, MAX_PER_PAYMENT_ADA};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    asset::ACCOUNT,
    format::{distance, on, tada},
    layout::{Page, Place},
    parts, purchase,
    view::{Agent, Listing, Purchase, Seller},
};

/// Purchases and listings that are shown: the newest.
pub const SHOWN: usize = 50;

/// An account, as its owner sees it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The address signed in with.
    pub owner: String,
    /// The service wallet.
    pub wallet: Address,
    /// What it holds.
    /// `None` where nobody can tell now.
    pub balance: Option<Lovelace>,
    /// Most per purchase.
    pub max_per_payment: Lovelace,
    /// Most per UTC day.
    pub daily_budget: Lovelace,
    /// Of that, today.
    pub spent_today: Lovelace,
    /// What was bought, newest first.
    pub purchases: Vec<Purchase>,
    /// What that is called.
    pub titles: Vec<Title>,
    /// What is sold, newest first.
    pub listings: Vec<Listing>,
    /// How that went.
    pub figures: Seller,
    /// Who may spend.
    pub agents: Vec<Agent>,
}

/// What a listing is called.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Title {
    pub id: String,
    pub title: String,
}

fn around(main: &Markup) -> String {
    Page { title: "Your account", place: Place::Account, script: Some(&ACCOUNT), card: None }.around(main)
}

/// The page of somebody who is not signed in.
#[must_use]
pub fn sign_in() -> String {
    around(&html! {
        main #main.narrow {
            h1 { "Your account" }
            p {
                "Sign in with a Cardano wallet. You get a service wallet with limits of your own: agents buy from it for you, and it \
                 is watched, so that what is not delivered is paid back by itself."
            }
            (parts::wallets("Sign in with your wallet"))
            noscript { p.warning { "Signing in needs JavaScript, because your wallet is asked to sign." } }
            (parts::progress())
        }
    })
}

/// The page of an account; `now` is POSIX ms.
#[must_use]
pub fn page(account: &Account, now: u64) -> String {
    around(&html! {
        main #main {
            section.person {
                h1 { "Your account" }
                p.facts {
                    span { "Signed in as " (parts::hash(&account.owner)) }
                    button.quiet type="button" data-deed="leave" data-how="" { "Sign out" }
                    button.quiet type="button" data-deed="leave" data-how="?everywhere=true" { "Sign out everywhere" }
                }
            }
            (parts::progress())
            (account.money())
            (account.bought())
            (account.agents(now))
            (account.sold())
        }
    })
}

impl Account {
    fn title_of<'a>(&'a self, bought: &'a Purchase) -> &'a str {
        let known = self.titles.iter().find(|known| known.id == bought.listing_id);
        known.map_or(bought.listing_id.as_str(), |known| known.title.as_str())
    }

    fn money(&self) -> Markup {
        html! {
            div.pair {
                section.box aria-labelledby="wallet" {
                    h2 #wallet { "Service wallet" }
                    @match self.balance {
                        Some(balance) => p.price { (tada(balance)) },
                        None => p { "What it holds cannot be told just now: look again in a minute." },
                    }
                    p.note { "To fund it, send test ADA to its address:" }
                    (parts::copyable("Its address, to fund it", &self.wallet.to_string()))
                    button.quiet type="button" data-deed="withdraw" { "Send everything back to me" }
                }
                section.box aria-labelledby="limits" {
                    h2 #limits { "Limits" }
                    p { (tada(self.spent_today)) " of " (tada(self.daily_budget)) " spent today" }
                    (limit("per-purchase", "Most per purchase (tADA)", MAX_PER_PAYMENT_ADA, self.max_per_payment))
                    (limit("per-day", "Most per day (tADA)", MAX_DAILY_BUDGET_ADA, self.daily_budget))
                    button.quiet type="button" data-deed="limits" { "Change limits" }
                }
            }
        }
    }

    fn bought(&self) -> Markup {
        html! {
            section aria-labelledby="bought" {
                h2 #bought { "Bought" }
                @if self.purchases.is_empty() {
                    div.empty { p { "Nothing yet." } p { a.button.quiet href="/" { "Browse" } } }
                } @else {
                    ul.rows {
                        @for bought in self.purchases.iter().take(SHOWN) {
                            li {
                                a href={ "/purchases/" (bought.id) } { (self.title_of(bought)) }
                                span.status.(bought.status.name()) { (purchase::status(bought.status)) }
                                @if let Some(event) = bought.events.first() { span { (on(event.at)) } }
                                button.quiet type="button" data-deed="read" data-purchase=(bought.id)
                                    aria-label={ "Read " (self.title_of(bought)) } { "Read" }
                            }
                        }
                    }
                }
                div #read hidden tabindex="-1" {
                    div.code { pre #content tabindex="0" aria-label="The content" {} }
                }
            }
        }
    }

    fn agents(&self, now: u64) -> Markup {
        html! {
            section aria-labelledby="agents" {
                h2 #agents { "Agents" }
                @if self.agents.is_empty() {
                    div.empty { p { "No agent may spend from your wallet." } }
                } @else {
                    ul.rows {
                        @for agent in &self.agents {
                            li {
                                strong { (agent.client_name) }
                                span { (tada(agent.spent_today_lovelace)) " today · used " (distance(agent.last_used_at, now)) }
                                button.quiet type="button" data-deed="revoke" data-agent=(agent.id)
                                    aria-label={ "Remove " (agent.client_name) } { "Remove" }
                            }
                        }
                    }
                }
            }
        }
    }

    fn sold(&self) -> Markup {
        html! {
            section aria-labelledby="sold" {
                h2 #sold { "For sale" }
                @if self.listings.is_empty() {
                    div.empty { p { "You sell nothing yet." } p { a.button.quiet href="/sell" { "Sell a prompt" } } }
                } @else {
                    p.facts { (parts::reputation(self.figures.seller_reputation)) span { (crate::format::count(self.figures.sales, "sale")) } }
                    ul.rows {
                        @for listing in self.listings.iter().take(SHOWN) {
                            li {
                                a href={ "/listings/" (listing.id) } { (listing.title) }
                                (tada(listing.price_lovelace))
                                span { (crate::format::count(listing.sales.unwrap_or_default(), "sale")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn limit(id: &str, label: &str, most: u32, now: Lovelace) -> Markup {
    html! {
        p.field {
            label for=(id) { (label) }
            input #(id) type="number" inputmode="numeric" min="1" max=(most) step="1" required value=(now.get() / 1_000_000);
        }
    }
}
