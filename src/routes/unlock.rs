//! `GET /listings/{id}/unlock`: the paywall.
//!
//! Directories probe it by HEAD, which only returns the terms, because its answer could not have the content. They also
//! probe it by POST, which is handled like GET.
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
use market::checkout::{PayError, Presentation};
use serde::Serialize;
use x402_cardano::{
    request_commitment::RequestDigest,
    wire::{PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, PaymentRequirements, encode_header},
};

use crate::{
    app::App,
    error::ApiError,
    paywall::{self, Outcome, Paywall},
    routes::listings,
};

/// Unlocks a listing with the payment or proof in the headers, if any.
pub async fn show(app: &App, id: &str) -> Result<Response, ApiError> {
    let header = |name| app.request.headers().get(name);
    let shown = match app.request.method() {
        "HEAD" => Presentation::default(),
        _ => Presentation { payment: header(PAYMENT_SIGNATURE)?, proof: header("x-service-proof")? },
    };
    let paywall = Paywall::of(app, &listings::id(id)?).await?.ok_or_else(listings::unknown)?;
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
        let url = paywall::resource_url(&self.app.public_origin()?, &self.terms().id);
        let mut extensions = paywall::extensions(self.terms());
        // The commitment covers method, query and body, so it is computed from the request and not from the listing.
        extensions.extend(paywall::request_digest(self.app).iter().flat_map(RequestDigest::offered));
        let accepts = self.accepts(pending).await?;
        let required = self.required(url, extensions, accepts, why.code(), &paywall::secret()?);
        encoded("terms", &required)
    }
}

fn encoded(what: &str, value: &impl Serialize) -> Result<String, ApiError> {
    Ok(encode_header(value).map_err(Fault::in_making(what))?)
}
