//! `GET /listings/{id}/unlock`: the paywall.
//!
//! x402 directories probe a paywall by HEAD and POST. HEAD returns only the terms, because its answer cannot carry the
//! content. POST is handled like GET.
//!
//! ```text
//! Outcome::Delivered          200 with the content
//! Outcome::PaymentRequired    402 with the terms and an error code in a header, and a message in the body
//! Outcome::UnknownListing     404
//! ```

use api_types::Error;
use edge::{
    answer::{self, ErrorAnswer, Fault},
    serve::Response,
};
use market::{
    ListingId,
    checkout::{PayError, Presentation},
};
use serde::Serialize;
use x402_cardano::wire::{
    PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, PaymentRequirements, encode_header,
    sign_in_with_x::SIGN_IN_WITH_X,
};

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    paywall::{self, Outcome, Paywall},
    route::PROOF,
    route::{Limit, Route, route},
    routes::{listings, pages},
};

pub const ROUTES: &[Route] = &[
    route! {
        GET "/listings/{id}/unlock", Limit::Paywall => show(ListingId);
        page Limit::Client(Counted::READ) => pages::paywall(ListingId);
        docs |of| described(of.names("unlockListing", "Paid content", "Pay for a listing over x402, or get its content again"))
    },
    route! {
        POST "/listings/{id}/unlock", Limit::Paywall => show(ListingId);
        docs |of| described(of.names("postUnlock", "Paid content", "Pay for a listing over x402, for clients that use POST"))
    },
];

/// Describes the paywall's answers.
#[cfg(test)]
fn described(operation: Operation<'_>) -> Operation<'_> {
    // The format is the one that x402 directories read (docs/agents.md). The price is the listing's.
    let price = serde_json::json!({ "mode": "dynamic", "currency": "ADA", "min": "1" });
    let text = || serde_json::json!({ "type": "string" });
    operation
        .more("Without a payment, answers 402 with the terms. With `PAYMENT-SIGNATURE`, the payment is verified and submitted, and the content is returned once the payment is in a block (20 to 60 seconds). With `X-Service-Proof`, a buyer gets the content again; the wallet signs sha256 of `service:unlock:v1` LF listingId LF address LF timestamp. With `SIGN-IN-WITH-X`, a buyer gets it again as well; the wallet signs the challenge of a 402 (x402 extension `sign-in-with-x`, type `cip8`). If the code is `settlement_pending`, send the same request again.")
        .insert("", "x-payment-info", serde_json::json!({ "price": price, "protocols": [{ "x402": {} }] }))
        .parameter("header", "X-Service-Proof", false, "A returning buyer's signature; see the security scheme `proof`.", text())
        .parameter("header", "SIGN-IN-WITH-X", false, "A returning buyer's signature of the challenge in a 402: base64 of JSON.", text())
        .parameter("header", "PAYMENT-SIGNATURE", false, "Base64 of an x402 PaymentPayload.", text())
        .text(200, "text/plain; charset=utf-8", "The content.")
        .header(200, "PAYMENT-RESPONSE", "If this request paid: base64 of an x402 SettlementResponse, with a signed receipt.", false)
        .header(200, "X-Service-Purchase", "For a returning buyer: id of the earlier purchase.", false)
        .answers::<Error>(402, "Payment is required, or the payment was refused.")
        .page(402)
        .header(402, "PAYMENT-REQUIRED", "Base64 of an x402 PaymentRequired: the ways to pay (`accepts`), and the error code.", true)
        .header(402, "PAYMENT-RESPONSE", "If a payment was sent: base64 of an x402 SettlementResponse with its status.", false)
        .fails(&[400, 409])
}

/// Unlocks a listing with the payment or proof in the headers, if any.
pub async fn show(app: &App, id: ListingId) -> Result<Response, ApiError> {
    let header = |name| app.request.headers().get(name);
    let shown = match app.request.method() {
        "HEAD" => Presentation::default(),
        _ => Presentation {
            payment: header(PAYMENT_SIGNATURE)?,
            proof: header(PROOF)?,
            sign_in: header(SIGN_IN_WITH_X)?,
        },
    };
    let paywall = Paywall::of(app, &id).await?.ok_or_else(listings::unknown)?;
    match paywall.unlock(shown, || paywall::request_digest(app)).await? {
        Outcome::UnknownListing => Err(listings::unknown().into()),
        Outcome::Delivered { content, settlement, purchase } => {
            let mut response = answer::private_text(content);
            if let Some(settlement) = settlement {
                response = response.with_header(PAYMENT_RESPONSE, encoded("settlement", &settlement)?);
            }
            if let Some(purchase) = purchase {
                response = response.with_header("x-service-purchase", purchase.to_string());
            }
            Ok(response)
        }
        Outcome::PaymentRequired(why, pending) => match why {
            PayError::Refused(ref refusal) if refusal.is_malformed() => Err(ErrorAnswer::bad_request(why).into()),
            PayError::IdentifierTaken => Err(ErrorAnswer::conflict(why).into()),
            _ => paywall.payment_required_response(&why, pending).await,
        },
    }
}

/// The paywall's answers over HTTP.
impl Paywall<'_> {
    async fn payment_required_response(
        &self,
        why: &PayError,
        pending: Option<PaymentRequirements>,
    ) -> Result<Response, ApiError> {
        let header = self.terms_header(why, pending).await?;
        let words = serde_json::json!(Error::from(why.clone()));
        let response = answer::private_json(words.to_string()).with_status(402).with_header(PAYMENT_REQUIRED, header);
        Ok(match why.settlement() {
            Some(settlement) => response.with_header(PAYMENT_RESPONSE, encoded("settlement", settlement)?),
            None => response,
        })
    }

    /// Encodes the terms as the value of the `PAYMENT-REQUIRED` header.
    async fn terms_header(&self, why: &PayError, pending: Option<PaymentRequirements>) -> Result<String, ApiError> {
        let origin = self.app.public_origin()?;
        let url = paywall::resource_url(&origin, &self.terms().id);
        let mut extensions = paywall::extensions(self.terms());
        extensions.extend(self.challenge().await?);
        // The commitment covers method, query and body, so it is computed from the request and not from the listing.
        if let Some(digest) = paywall::request_digest(self.app) {
            extensions.extend(digest.offered());
        }
        let accepts = self.accepts(pending).await?;
        let required = self.required(url, extensions, accepts, why.code(), &paywall::secret()?);
        encoded("terms", &required)
    }
}

fn encoded(what: &str, value: &impl Serialize) -> Result<String, ApiError> {
    Ok(encode_header(value).map_err(Fault::inconsistent(what))?)
}
