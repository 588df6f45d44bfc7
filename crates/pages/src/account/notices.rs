//! The owner's notices on the account's page: the newest events, the private feed, and the webhook.

use api_types::{Webhook, WebhookStatus};
use maud::{Markup, html};

use super::Account;
use crate::{
    format::at,
    parts::{copyable, field},
};

impl Account {
    pub(super) fn notices(&self) -> Markup {
        html! {
            section aria-labelledby="notices" {
                h2 #notices { "Notices" }
                @if let Some(webhook) = &self.webhook { (trouble(webhook)) }
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
                (self.feed())
                (self.webhook())
            }
        }
    }

    fn feed(&self) -> Markup {
        html! {
            details {
                summary { "Private feed" }
                div {
                    p.small {
                        "An address for your feed reader. Whoever has it can read your notices, so keep it to yourself. \
                         It is shown once, when you make it."
                    }
                    @match self.feed_since {
                        Some(since) => {
                            p { "There is an address, made on " (at(since)) "." }
                            div.acts {
                                button.quiet type="button" data-action="feed" { "Replace the address" }
                                button.quiet type="button" data-action="unfeed" { "Revoke it" }
                            }
                        }
                        None => div.acts { button.quiet type="button" data-action="feed" { "Make an address" } },
                    }
                }
            }
        }
    }

    fn webhook(&self) -> Markup {
        let url = self.webhook.as_ref().map(|webhook| webhook.url.as_str()).unwrap_or_default();
        html! {
            details {
                summary { "Webhook" }
                div {
                    p.small {
                        "A server of yours gets each notice as a signed message, as "
                        a href="https://www.standardwebhooks.com" rel="noreferrer" { "Standard Webhooks" } " describes it."
                    }
                    @if let Some(webhook) = &self.webhook { (standing(webhook)) }
                    (field("webhook-url", "Address (https)", &html! {
                        input #webhook-url type="url" maxlength="512" placeholder="https://" required value=(url);
                    }))
                    div.acts {
                        button.quiet type="button" data-action="webhook" {
                            @match &self.webhook {
                                None => { "Add the webhook" }
                                Some(Webhook { status: WebhookStatus::Off, .. }) => { "Switch it on again" }
                                Some(_) => { "Change the address" }
                            }
                        }
                        @if let Some(webhook) = &self.webhook {
                            @if webhook.status != WebhookStatus::Off {
                                button.quiet type="button" data-action="testhook" { "Send a test message" }
                            }
                            button.quiet type="button" data-action="unhook" { "Remove it" }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a webhook's problem above the list of notices on the account's page.
fn trouble(webhook: &Webhook) -> Markup {
    let failure = webhook.failure.as_deref().unwrap_or("the address did not answer");
    html! {
        @match (webhook.status, webhook.off_since, webhook.failing_since) {
            (WebhookStatus::Off, Some(since), _) => p.warning role="status" {
                "Your webhook is off since " (at(since)) ": " (failure) ". Notices are kept here. Switch it on again below, and \
                 those that it missed are sent."
            },
            (WebhookStatus::Failing, _, Some(since)) => p.warning role="status" {
                "Your webhook fails since " (at(since)) ": " (failure) ". It is tried again, and switched off after three days."
            },
            _ => {},
        }
    }
}

fn standing(webhook: &Webhook) -> Markup {
    html! {
        p {
            @match (webhook.status, webhook.delivered_at) {
                (WebhookStatus::Active, Some(delivered)) => { "On. Last delivery: " (at(delivered)) "." }
                (WebhookStatus::Active, None) => { "On. Nothing was sent yet." }
                (WebhookStatus::Failing, _) => { "Failing: it is tried again." }
                (WebhookStatus::Off, _) => { "Off." }
            }
        }
    }
}

/// Renders the template into which the page's script inserts a secret that is shown only once.
pub(super) fn shown_once() -> Markup {
    html! {
        template #shown-once { p { "Copy it now: it is not shown again." } (copyable("Shown once", "")) }
    }
}
