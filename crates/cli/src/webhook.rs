//! `surety webhook`: the address to which the signed-in account's events are sent.

use api_types::{NewWebhook, Webhook, WebhookStatus};
use clap::Subcommand;
use serde_json::json;

use crate::{
    Shop,
    account::ask,
    failure::Failure,
    tell::{plain, time_of},
};

/// Subcommands of `webhook`.
#[derive(Subcommand)]
pub enum WebhookCommand {
    /// Set the address, and print the secret if there was no webhook. Also switches the webhook on again if it is off.
    Set {
        /// An https address on a public host name.
        url: String,
    },
    /// Send a test message.
    Test,
    /// Remove the webhook and its secret.
    Remove,
}

/// Prints the webhook of the signed-in account, or changes it.
pub fn run(shop: &Shop, command: Option<&WebhookCommand>) -> Result<(), Failure> {
    let webhook: Webhook = match command {
        None => ask(shop, "GET", "/me/webhook", None)?,
        Some(WebhookCommand::Set { url }) => {
            ask(shop, "PUT", "/me/webhook", Some(&json!(NewWebhook { url: url.clone() })))?
        }
        Some(WebhookCommand::Test) => ask(shop, "POST", "/me/webhook/test", None)?,
        Some(WebhookCommand::Remove) => {
            let answer = ask(shop, "DELETE", "/me/webhook", None)?;
            if answer.status != 204 {
                return Err(answer.failure());
            }
            return shop.tell.result(&json!({ "removed": true }), "removed: nothing is sent any more");
        }
    }
    .json()?;
    let mut lines = vec![plain(&webhook.url), state(&webhook)];
    if matches!(command, Some(WebhookCommand::Test)) {
        lines
            .push("a test message is sent within about a minute: `surety webhook` shows whether it arrived".to_owned());
    }
    if let Some(secret) = &webhook.secret {
        lines.push(format!("the secret that signs its messages, shown only now: {}", plain(secret)));
    }
    shop.tell.result(&json!(webhook), &lines.join("\n"))
}

fn state(webhook: &Webhook) -> String {
    let failure = plain(webhook.failure.as_deref().unwrap_or("the address did not answer"));
    let since = |at: Option<u64>| at.map(time_of).unwrap_or_default();
    match webhook.status {
        WebhookStatus::Active => {
            let delivered = webhook.delivered_at.map(|at| format!("last delivery {}", time_of(at)));
            format!("on, {}", delivered.unwrap_or_else(|| "nothing was sent yet".to_owned()))
        }
        WebhookStatus::Failing => format!("failing since {}: {failure}", since(webhook.failing_since)),
        WebhookStatus::Off => {
            format!("off since {}: {failure}; `surety webhook set` switches it on again", since(webhook.off_since))
        }
    }
}
