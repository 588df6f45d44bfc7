//! `GET /listings/{id}/unlock`: the paywall. Directories try it with HEAD, which is told the terms and nothing else: a HEAD
//! could not carry what is paid for. They try POST, too, which is as good as GET.
//!
//! ```text
//! Outcome::Delivered          200 with the content
//! Outcome::PaymentRequired    402 with the terms in its header, a code there and words in the body
//! Outcome::UnknownListing     404
//! ```

use std::{cell::RefCell, rc::Rc};

use cardano::keys::SignEd25519 as _;
use edge::{
    answer::{self, ErrorAnswer, Fault},
    ed25519::WebCrypto,
    serve::Response,
};
use market::checkout::{PayError, Presentation};
use serde::Serialize;
use serde_json::{Map, Value};
use x402_cardano::{
    method::QuoteTemplate,
    request_commitment::RequestDigest,
    wire::{HeaderTemplate, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, PaymentRequirements, encode_header},
};

use crate::{
    app::App,
    error::ApiError,
    paywall::{self, Outcome, Paywall},
    read_cache::Answers,
    routes::listings,
};

/// Characters of a header's template, about.
const TEMPLATE_CHARS: usize = 2 << 10;

thread_local! {
    /// What is the same in each unpaid answer, by the address of the paywall.
    static TEMPLATES: RefCell<Answers<Rc<TermsTemplate>>> = RefCell::default();
}

/// What an unpaid request is told of a listing each time, but for its secret and its quote. Prices never change.
struct TermsTemplate {
    header: HeaderTemplate,
    /// Where the listing is sold under quotes.
    quotes: Option<QuoteTemplate>,
}

/// Answers as the headers ask.
pub async fn show(app: &App, id: &str) -> Result<Response, ApiError> {
    let paywall = Paywall::of(app, &listings::id(id)?).await?.ok_or_else(listings::unknown)?;
    let header = |name| app.request.headers().get(name);
    let shown = match app.request.method() {
        "HEAD" => Presentation::default(),
        _ => Presentation { payment: header(PAYMENT_SIGNATURE)?, proof: header("x-service-proof")? },
    };
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
            PayError::Refused(refusal) if refusal.is_malformed() => Err(ErrorAnswer::bad_request(refusal).into()),
            PayError::IdentifierTaken => Err(ErrorAnswer::conflict(why).into()),
            _ => paywall.payment_required_response(&why, pending).await,
        },
    }
}

/// How the paywall asks for payment over HTTP.
impl Paywall<'_> {
    async fn payment_required_response(
        &self,
        why: &PayError,
        pending: Option<PaymentRequirements>,
    ) -> Result<Response, ApiError> {
        let header = self.terms_header(why, pending).await?;
        let words = serde_json::json!({ "error": why.to_string() });
        let response = answer::private_json(words.to_string()).with_status(402).with_header(PAYMENT_REQUIRED, header);
        Ok(match why.settlement() {
            Some(settlement) => response.with_header(PAYMENT_RESPONSE, encoded("settlement", settlement)?),
            None => response,
        })
    }

    /// The terms as a header.
    async fn terms_header(&self, why: &PayError, pending: Option<PaymentRequirements>) -> Result<String, ApiError> {
        let url = paywall::resource_url(&self.app.public_origin()?, &self.terms().id);
        // Other methods, queries and bodies have digests of their own.
        let request = &self.app.request;
        let usual = request.method() == "GET" && request.query().is_none() && !request.has_body();
        if usual && *why == PayError::Unpaid {
            return self.terms_from_template(url).await;
        }
        let accepts = self.accepts(pending).await?;
        let required = self.required(url, self.extensions(), accepts, why.code(), &paywall::secret()?);
        encoded("terms", &required)
    }

    /// The extensions of the 402, but for its secret.
    fn extensions(&self) -> Map<String, Value> {
        let mut extensions = paywall::extensions(self.terms());
        extensions.extend(paywall::request_digest(self.app).iter().flat_map(RequestDigest::offered));
        extensions
    }

    /// The terms for who brings no payment: what is the same each time is kept, and only secret and quote are made anew.
    async fn terms_from_template(&self, url: String) -> Result<String, ApiError> {
        let secret = paywall::secret()?;
        let kept = TEMPLATES.with_borrow(|kept| kept.get(&url));
        let kept = match kept {
            Some(kept) => kept,
            None => self.keep_template(url).await?,
        };
        let (Some(template), Some(method)) = (&kept.quotes, self.methods.quoting(&self.terms().modes)) else {
            return Ok(kept.header.with(&[&secret]));
        };
        let quote = template.draft(self.priced.clock.ms, edge::random()?).map_err(Fault::in_making("terms"))?;
        let signature = WebCrypto.sign(method.signer(), quote.to_sign()).await;
        let parts = quote.signed(signature);
        Ok(kept.header.with(&[&*secret].into_iter().chain(parts.texts()).collect::<Vec<_>>()))
    }

    /// Keeps what is the same in each of a listing's 402.
    async fn keep_template(&self, url: String) -> Result<Rc<TermsTemplate>, ApiError> {
        let quoting = self.methods.quoting(&self.terms().modes);
        let quotes = match quoting {
            Some(method) => {
                let template = method.template(&self.terms().sale(), edge::random()?);
                Some(template.map_err(Fault::in_making("terms"))?)
            }
            None => None,
        };
        let mut accepts = self.offers(&[self.methods.unquoted()]).await?;
        accepts.extend(quotes.iter().map(|quotes| quotes.entry().clone()));
        // What no seller can have written into a title.
        let placeholder = paywall::secret()?;
        let required = self.required(url.clone(), self.extensions(), accepts, PayError::Unpaid.code(), &placeholder);
        let marks: Vec<_> = [&*placeholder].into_iter().chain(quotes.iter().flat_map(QuoteTemplate::marks)).collect();
        let header = HeaderTemplate::new(&required, &marks).map_err(Fault::in_making("terms"))?;
        let template = Rc::new(TermsTemplate { header, quotes });
        TEMPLATES.with_borrow_mut(|kept| kept.keep(&url, TEMPLATE_CHARS, &template));
        Ok(template)
    }
}

fn encoded(what: &str, value: &impl Serialize) -> Result<String, ApiError> {
    Ok(encode_header(value).map_err(Fault::in_making(what))?)
}
