//! A client of the service's HTTP API.

use std::time::Duration;

use api_types::Listing;
use market::ListingId;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use ureq::http::{HeaderMap, Request};
use url::{Host, Url};

use crate::{failure::Failure, tell::plain};

/// Timeout of one request. It is long, because the service may wait for a block before it answers.
const CALL_TIME: Duration = Duration::from_secs(120);
/// Maximum size of a response in bytes: enough for content of 1 MiB as JSON, or for a page of the catalogue.
const MAX_ANSWER: u64 = 8 << 20;

/// A client of one service.
pub struct Service {
    base: String,
    /// Whether the service runs on this machine.
    pub local: bool,
    agent: ureq::Agent,
}

/// A response of the service.
pub struct Answer {
    pub status: u16,
    headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Headers and body of a request.
#[derive(Default)]
pub struct Ask<'a> {
    pub headers: Vec<(&'static str, &'a str)>,
    /// Media type and text of the body; `None` for a request without a body.
    pub body: Option<(&'static str, String)>,
}

impl Ask<'_> {
    /// Creates a request with a JSON body.
    pub fn json(body: &Value) -> Self {
        Self { body: Some(("application/json", body.to_string())), ..Self::default() }
    }
}

impl Service {
    /// Creates a client of the service at the URL `base`.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, or uses plain http for another machine.
    pub fn at(base: &str) -> Result<Self, Failure> {
        let url = secure("--api", base)?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        let config = ureq::Agent::config_builder().timeout_global(Some(CALL_TIME)).http_status_as_error(false);
        // Payments and sessions are sent to the given address only.
        let config = config.max_redirects(0).max_redirects_will_error(false);
        Ok(Self { base, local: is_local(&url), agent: config.build().into() })
    }

    /// Returns the service's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request. Returns the response whatever its status.
    ///
    /// # Errors
    /// Returns an error if the service does not answer.
    pub fn ask(&self, method: &str, path: &str, ask: Ask<'_>) -> Result<Answer, Failure> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base()));
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        let sent = match ask.body {
            Some((kind, text)) => request.header("content-type", kind).body(text).map(|it| self.agent.run(it)),
            None if method == "POST" => request.body(Vec::new()).map(|it| self.agent.run(it)),
            None => request.body(()).map(|it| self.agent.run(it)),
        };
        let sent = sent.map_err(|error| Failure::Usage(format!("{path}: {error}")))?;
        let (parts, mut body) = sent.map_err(|error| self.unreachable(&error))?.into_parts();
        let body = body.with_config().limit(MAX_ANSWER).read_to_vec().map_err(|error| self.unreachable(&error))?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let advice = if self.local { "start it with `make dev`, or name another with --api" } else { "try again" };
        Failure::Unreachable(format!("{} does not answer ({error}): {advice}", self.base()))
    }

    /// Sends a GET request and parses the JSON response.
    ///
    /// # Errors
    /// Returns an error if the service does not answer, answers with an error, or answers with JSON of another type.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask("GET", path, Ask::default())?.json()
    }

    /// Sends a POST request and parses the JSON response.
    ///
    /// # Errors
    /// See [`Service::get`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, ask: Ask<'_>) -> Result<T, Failure> {
        self.ask("POST", path, ask)?.json()
    }

    /// Requests a listing.
    ///
    /// # Errors
    /// Returns an error if the listing does not exist or the service does not answer.
    pub fn listing(&self, id: &ListingId) -> Result<Listing, Failure> {
        let answer = self.ask("GET", &format!("/listings/{id}"), Ask::default())?;
        if answer.status == 404 {
            return Err(no_listing(id.as_str()));
        }
        let listing: Listing = answer.json()?;
        if listing.id != id.as_str() {
            return Err(Failure::Refused(format!(
                "the service answered with another listing than {id}: {}",
                plain(&listing.id)
            )));
        }
        Ok(listing)
    }
}

/// Creates the error for a listing that does not exist.
pub fn no_listing(id: &str) -> Failure {
    Failure::Refused(format!("no listing {id} here: `surety browse` shows what is for sale"))
}

impl Answer {
    /// Parses the JSON of a successful response.
    ///
    /// # Errors
    /// Returns [`Answer::failure`] if the response is not successful, and another error if its JSON does not have the
    /// expected type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if !(200..300).contains(&self.status) {
            return Err(self.failure());
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::Refused(format!("the service's answer is not as documented: {error}")))
    }

    /// Returns the value of a header, or `None` if the response does not have it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Parses the body as an error of the service. Returns `None` if the body has another form, for example because a
    /// proxy answered.
    pub fn error(&self) -> Option<api_types::Error> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Returns the error message of the response. If the body is not an error of the service, for example because a
    /// proxy answered, returns a substitute.
    pub fn words(&self) -> String {
        #[derive(Deserialize)]
        struct Words {
            error: String,
        }
        let words = serde_json::from_slice::<Words>(&self.body);
        words.map_or_else(|_| format!("status {}", self.status), |words| plain(&words.error))
    }

    /// Converts an unsuccessful response to an error.
    pub fn failure(&self) -> Failure {
        let words = self.words();
        match self.status {
            429 | 500.. => Failure::Unreachable(format!("the service is busy: {words}")),
            401 => Failure::Refused(format!("{words}: `surety sign-in` signs in")),
            300..=399 => Failure::Refused("the service redirects to another address: name that one with --api".into()),
            _ => Failure::Refused(words),
        }
    }
}

/// Parses a URL that the user gave as `argument`. Requires https, except for a URL on this machine.
///
/// # Errors
/// Returns an error if the URL is invalid, or uses plain http for another machine.
pub fn secure(argument: &str, text: &str) -> Result<Url, Failure> {
    let refused = |why: String| Failure::Usage(format!("{argument} {text}: {why}"));
    let url = Url::parse(text).map_err(|error| refused(format!("not a URL: {error}")))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local(&url) => Ok(url),
        _ => Err(refused("https is needed where it is not on this machine".into())),
    }
}

/// Returns whether a URL is on this machine.
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
