//! Implements the tools for agents with their own wallet, which pay by x402 in the tool call.

use std::sync::LazyLock;

use agents::mcp::{
    open,
    shop::{OpenShop, ShopError, Unlocked},
};
use market::{ListingId, checkout::Presentation};
use serde_json::{Value, json};
use x402_cardano::wire::{Extensions, bazaar, payment_identifier};

use super::told;
use crate::{
    app::App,
    limits::Counted,
    paywall::{self, Outcome, Paywall},
};

/// The tools for agents with their own wallet.
impl OpenShop for App {
    async fn unlock(&self, id: &ListingId, shown: Presentation) -> Result<Unlocked, ShopError> {
        if shown.payment.is_some() {
            self.limit_client(Counted::PAYMENT).await.map_err(told)?;
        } else if shown.proof.is_some() {
            self.limit_client(Counted::PROOF).await.map_err(told)?;
        }
        let paywall = Paywall::of(self, id).await.map_err(told)?.ok_or(ShopError::NoListing)?;
        // The extension has no profile for tools, so a payment commits to the HTTP request for the listing.
        let digest = || paywall::unlock_digest(self, id);
        match paywall.unlock(shown, digest).await.map_err(told)? {
            Outcome::UnknownListing => Err(ShopError::NoListing),
            Outcome::Delivered { content, settlement, purchase } => Ok(Unlocked::Delivered {
                content,
                listed_hash: paywall.terms().content_hash,
                settlement: settlement.map(|settlement| json!(settlement)),
                purchase,
            }),
            Outcome::PaymentRequired(why, pending) => {
                let accepts = paywall.accepts(pending).await.map_err(told)?;
                let secret = paywall::secret().map_err(told)?;
                let settlement = why.settlement().map(|settlement| json!(settlement));
                // With a settlement, x402 expects the error code here. Otherwise the message helps the model.
                let error = if settlement.is_some() { why.code().to_owned() } else { why.to_string() };
                let required =
                    paywall.required(open::RESOURCE_URL.to_owned(), EXTENSIONS.clone(), accepts, &error, &secret);
                Ok(Unlocked::PaymentRequired { required: json!(required), settlement })
            }
        }
    }
}

/// The x402 extensions of the tool's 402 answer, except the secret, which is new in each answer.
static EXTENSIONS: LazyLock<Extensions> = LazyLock::new(|| {
    let mut extensions = payment_identifier::offered();
    if let Some(tool) = open::paid_tool() {
        let text = |name| tool.get(name).and_then(Value::as_str).unwrap_or_default();
        let input_schema = tool.get("inputSchema").unwrap_or(&Value::Null);
        let tool = bazaar::Tool { name: text("name"), description: text("title"), input_schema };
        extensions.extend(tool.extension());
    }
    extensions
});
