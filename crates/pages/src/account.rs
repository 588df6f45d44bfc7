//! `/me`: the sign-in form, or the owner's account with Surety balance, purchases, sales, limits and agents.

use api_types::{AgentRules, Event, Limits, MAX_REPUTATION, Me, Webhook};
use cardano::Lovelace;
use market::{
    account::{MAX_DAILY_BUDGET_ADA, MAX_PER_PAYMENT_ADA},
    purchase::Status,
    withdraw::RESERVE,
};
use maud::{Markup, html};

use crate::{
    asset::ACCOUNT,
    format::{on, relative_time, short, tada},
    layout::{Page, Section},
    parts, purchase,
    view::{Agent, Listing, Purchase, PurchaseRequest},
};

mod notices;
mod request;
mod selling;

pub use market::{catalogue::Title, purchase::Sale};
pub use request::page as request;

/// Approximate network fee of a withdrawal.
const WITHDRAWAL_FEE: Lovelace = match Lovelace::new(170_000) {
    Some(fee) => fee,
    None => Lovelace::ZERO,
};

/// Maximum number of purchases that the page shows, and maximum number of listings. The newest are shown.
pub const MAX_PURCHASES_AND_LISTINGS: usize = 50;

/// Maximum number of events that the page shows.
pub const MAX_EVENTS: u32 = 10;

/// An account as its owner sees it. Purchases and listings are in descending order of time.
#[derive(Clone, Debug)]
pub struct Account {
    /// The account in the API's JSON.
    pub me: Me,
    /// Balance of the service wallet; `None` if the chain provider is unavailable.
    pub balance: Option<Lovelace>,
    /// Purchase requests of agents that the owner has neither approved nor declined yet, oldest first.
    pub waiting: Vec<PurchaseRequest>,
    /// The newest events, newest first, at most [`MAX_EVENTS`].
    pub events: Vec<Event>,
    /// Time at which the owner created the private feed, POSIX ms; `None` if there is none.
    pub feed_since: Option<u64>,
    /// The webhook, if there is one.
    pub webhook: Option<Webhook>,
    /// Titles of the purchased listings.
    pub titles: Vec<Title>,
    /// Listings that the owner has taken off sale.
    pub taken_off: Vec<Listing>,
    /// The account's sales.
    pub sales: Vec<Sale>,
    /// Agents to which the owner has granted access.
    pub agents: Vec<Agent>,
    /// Address of a block explorer, to which a transaction's id is appended.
    pub explorer: String,
}

fn around(main: &Markup) -> String {
    Page { title: "Your account", section: Section::Account, script: Some(ACCOUNT), card: None }.around(main)
}

/// Renders the sign-in page.
#[must_use]
pub fn sign_in() -> String {
    around(&html! {
        main #main.narrow {
            h1 { "Your account" }
            p {
                "Sign in with a Cardano wallet: one signature, no password, no fee. You get a Surety balance with your own limits. \
                 Your agents buy from it, and money for what is not delivered comes back by itself."
            }
            (parts::wallets("Sign in with your wallet"))
            noscript { p.warning { "Signing in needs JavaScript, because your wallet is asked to sign." } }
            (parts::progress())
        }
    })
}

/// Renders an account's page. `now` is the current time in POSIX ms.
#[must_use]
pub fn page(account: &Account, now: u64) -> String {
    let balance = account.balance.map(Lovelace::get);
    around(&html! {
        main #main data-balance=[balance] data-explorer=(account.explorer) {
            section {
                h1 { "Your account" }
                p.facts.soft {
                    span { "Signed in as " code.hash title=(account.me.owner) { (short(&account.me.owner)) } }
                    span { button.plain type="button" data-action="leave" data-how="" { "Sign out" } }
                    span { button.plain type="button" data-action="leave" data-how="?everywhere=true" { "Sign out everywhere" } }
                }
                div #talk { (parts::progress()) }
            }
            @if !account.waiting.is_empty() { (request::list(&account.waiting)) }
            div.pair { (account.money()) (account.limits()) }
            (account.bought())
            (account.selling())
            (account.agents(now))
            (account.notices())
            (notices::shown_once())
        }
    })
}

impl Account {
    fn title_of<'a>(&'a self, bought: &'a Purchase) -> &'a str {
        let known = self.titles.iter().find(|known| known.id == bought.listing_id);
        known.map_or("A prompt that is no longer for sale", |known| known.title.as_str())
    }

    fn money(&self) -> Markup {
        let leaving = self.balance.map(|balance| balance.saturating_sub(RESERVE));
        let nothing = leaving.is_none_or(|leaving| leaving == Lovelace::ZERO);
        html! {
            section.box aria-labelledby="wallet" {
                h2 #wallet { "Surety balance" }
                @match self.balance {
                    Some(balance) => p.price title=(balance.display_tada()) { (tada(hundredths(balance))) },
                    None => p { "Balance temporarily unavailable. Reload in a minute." },
                }
                details open[self.balance == Some(Lovelace::ZERO)] {
                    summary { "Add funds" }
                    p.small { "Send test ADA to this address. It arrives within a minute." }
                    (parts::copyable("Address of your Surety balance", &self.me.wallet.address.to_string()))
                    p.small {
                        a href="https://docs.cardano.org/cardano-testnets/tools/faucet" rel="noreferrer" { "Get test ADA from the Cardano faucet" }
                        " (network: preprod)"
                    }
                }
                details {
                    summary { "Withdraw" }
                    p.small {
                        @match leaving {
                            Some(leaving) if !nothing => {
                                "Sends about " (tada(hundredths(leaving.saturating_sub(WITHDRAWAL_FEE)))) " to the wallet you signed in with: your \
                                balance, less " (tada(RESERVE)) " that stay for the fees of later purchases and refunds, and less the network's \
                                fee of about " (tada(WITHDRAWAL_FEE)) ". Money in open protected purchases is held by the contract, not by your balance."
                            }
                            _ => { "Nothing to withdraw: " (tada(RESERVE)) " always stay for the fees of later purchases and refunds." }
                        }
                    }
                    button.quiet type="button" data-action="withdraw" disabled[nothing] { "Withdraw to my wallet" }
                }
            }
        }
    }

    fn limits(&self) -> Markup {
        let Limits { max_per_payment_lovelace, daily_budget_lovelace, spent_today_lovelace, ask_above_lovelace, rules } =
            self.me.limits;
        let AgentRules { protected_only, min_reputation, .. } = rules;
        // No purchase may cost more, so agents never need an approval above it.
        let ask_above = ask_above_lovelace.unwrap_or(Lovelace::from_ada(MAX_PER_PAYMENT_ADA));
        html! {
            section.box aria-labelledby="limits" {
                h2 #limits { "Spending limits" }
                p { b { (tada(spent_today_lovelace)) } " of " (tada(daily_budget_lovelace)) " spent today" }
                meter min="0" max=(daily_budget_lovelace) value=(spent_today_lovelace) aria-label="Spent today" {}
                div.pair {
                    (limit("per-purchase", "Most per purchase (tADA)", 1, MAX_PER_PAYMENT_ADA, max_per_payment_lovelace))
                    (limit("per-day", "Most per day (tADA)", 1, MAX_DAILY_BUDGET_ADA, daily_budget_lovelace))
                }
                fieldset {
                    legend { "Rules for agents" }
                    (limit("ask-above", "Agents ask me above (tADA)", 0, MAX_PER_PAYMENT_ADA, ask_above))
                    (number("min-reputation", "Agents buy from sellers with a reputation of at least", 0, MAX_REPUTATION, min_reputation.into()))
                    p.field { label { input #protected-only type="checkbox" checked[protected_only]; " Agents buy with protection only" } }
                }
                button.quiet type="button" data-action="limits" { "Change limits" }
                p.note { "The limits are for you here and all your agents together. A day ends at midnight UTC." }
                p.note { "What an agent would buy above that price waits until you approve it. At " (MAX_PER_PAYMENT_ADA) ", agents never ask." }
                p.note { "A seller has a reputation once an escrow has ended. At 0, agents buy from every seller." }
            }
        }
    }

    fn bought(&self) -> Markup {
        /// Maximum number of purchases that the page shows without a search field.
        const FEW: usize = 5;
        html! {
            section aria-labelledby="bought" {
                h2 #bought { "Purchases" }
                @if self.me.purchases.is_empty() {
                    (parts::empty("Nothing bought yet.", "/", "Browse prompts"))
                } @else {
                    @if self.me.purchases.len() > FEW {
                        p { input #find type="search" placeholder="Search your purchases" aria-label="Search your purchases"; }
                    }
                    ul.rows #purchases {
                        @for bought in self.me.purchases.iter().take(MAX_PURCHASES_AND_LISTINGS) {
                            li data-listing=(bought.listing_id) data-purchase=[(bought.status != Status::Refunded).then_some(bought.id)] {
                                a href={ "/purchases/" (bought.id) } { (self.title_of(bought)) }
                                span.status.(purchase::tone(bought)) { (purchase::standing(bought)) }
                                @if let Some(event) = bought.events.first() { span.soft { (on(event.at)) } }
                                div.acts {
                                    a.button.quiet href={ "/purchases/" (bought.id) } aria-label={ "Open " (self.title_of(bought)) } { "Open" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn agents(&self, now: u64) -> Markup {
        html! {
            section aria-labelledby="agents" {
                h2 #agents { "Agents" }
                @if !self.agents.is_empty() || self.me.limits.rules.agents_paused { (pause(self.me.limits.rules.agents_paused)) }
                @if self.agents.is_empty() {
                    (parts::empty("No agent is connected to this account.", "/connect", "Connect an agent"))
                } @else {
                    ul.rows {
                        @for agent in &self.agents {
                            li {
                                b { (agent.client_name) }
                                span.soft { (tada(agent.spent_today_lovelace)) " today · used " (relative_time(agent.last_used_at, now)) }
                                @if let Some(at) = agent.old_token_at {
                                    p.note {
                                        "An old key of this agent was used " (relative_time(at, now)) " from "
                                        (agent.old_token_from.as_deref().unwrap_or("an unknown network"))
                                        ". Remove the agent if that was not you."
                                    }
                                }
                                div.acts {
                                    button.quiet type="button" data-action="revoke" data-agent=(agent.id)
                                        aria-label={ "Remove " (agent.client_name) } { "Remove" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Rounds an amount down to a hundredth of an ADA, as the pages' header shows balances.
fn hundredths(amount: Lovelace) -> Lovelace {
    amount.saturating_sub(Lovelace::new(amount.get() % 10_000).unwrap_or(Lovelace::ZERO))
}

fn limit(id: &str, label: &str, least: u32, most: u32, now: Lovelace) -> Markup {
    number(id, label, least, most, now.get() / 1_000_000)
}

fn number(id: &str, label: &str, least: u32, most: u32, now: u64) -> Markup {
    let input =
        html! { input #(id) type="number" inputmode="numeric" min=(least) max=(most) step="1" required value=(now); };
    parts::field(id, label, &input)
}

/// Renders the button that pauses or resumes all agents.
fn pause(paused: bool) -> Markup {
    html! {
        @if paused {
            p.warning { "All agents are paused: none of them can buy, withdraw, or act on a purchase." }
            button type="button" data-action="pause" data-paused="false" { "Let agents go on" }
        } @else {
            button.quiet type="button" data-action="pause" data-paused="true" { "Pause all agents" }
        }
    }
}
