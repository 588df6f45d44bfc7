//! The service's HTTP API.

use std::time::Duration;

use api_types::Listing;
use market::ListingId;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{HeaderMap, Request};
use url::{Host, Url};

use crate::{failure::Failure, tell::plain};

/// How long a call may take: the service waits for blocks.
const CALL_TIME: Duration = Duration::from_secs(120);
/// Bytes of an answer that are read: a content of 1 MiB as JSON spells it, and a page of the catalogue.
const MAX_ANSWER: u64 = 8 << 20;

/// The service at an address.
pub struct Service {
    base: String,
    /// Whether it is on this machine.
    pub local: bool,
    agent: ureq::Agent,
}

/// What the service said.
pub struct Answer {
    pub status: u16,
    headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A request beyond its path.
#[derive(Default)]
pub struct Ask<'a> {
    pub headers: Vec<(&'static str, &'a str)>,
    /// A media type, and the text.
    pub body: Option<(&'static str, String)>,
}

impl Ask<'_> {
    /// A request with this JSON as its body.
    pub fn json(body: &Value) -> Self {
        Self { body: Some(("application/json", body.to_string())), ..Self::default() }
    }
}

impl Service {
    /// The service at this address.
    ///
    /// # Errors
    /// Not an address, or one over which anyone could read along.
    pub fn at(base: &str) -> Result<Self, Failure> {
        let url = secure("--api", base)?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        let config = ureq::Agent::config_builder().timeout_global(Some(CALL_TIME)).http_status_as_error(false);
        // A payment or a session goes to the address that was named and to no other.
        let config = config.max_redirects(0).max_redirects_will_error(false);
        Ok(Self { base, local: is_local(&url), agent: config.build().into() })
    }

    /// Its address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks, and answers whatever the status is.
    ///
    /// # Errors
    /// No answer.
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

    /// What is at a path.
    ///
    /// # Errors
    /// No answer, a refusal, or another shape.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask("GET", path, Ask::default())?.json()
    }

    /// What is answered to a request with a body.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, ask: Ask<'_>) -> Result<T, Failure> {
        self.ask("POST", path, ask)?.json()
    }

    /// A listing.
    ///
    /// # Errors
    /// No such listing, or no answer.
    pub fn listing(&self, id: &ListingId) -> Result<Listing, Failure> {
        let answer = self.ask("GET", &format!("/listings/{id}"), Ask::default())?;
        if answer.status == 404 {
            return Err(no_listing(id.as_str()));
        }
        let listing: Listing = answer.json()?;
        if listing.id != id.as_str() {
            return Err(Failure::Refused(format!("asked for {id}, the service answered with {}", plain(&listing.id))));
        }
        Ok(listing)
    }
}

/// What is said where a listing is not there.
pub fn no_listing(id: &str) -> Failure {
    Failure::Refused(format!("no listing {id} here: `surety browse` shows what is for sale"))
}

impl Answer {
    /// The JSON, where the status is of the 2xx kind.
    ///
    /// # Errors
    /// See [`Answer::failure`]; another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if !(200..300).contains(&self.status) {
            return Err(self.failure());
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::Refused(format!("an answer that is not as documented: {error}")))
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What the service says in words.
    pub fn words(&self) -> String {
        let words = serde_json::from_slice::<api_types::Error>(&self.body);
        words.map_or_else(|_| format!("status {}", self.status), |words| plain(&words.error))
    }

    /// The failure that this answer is.
    pub fn failure(&self) -> Failure {
        let words = self.words();
        match self.status {
            429 | 500.. => Failure::Unreachable(format!("the service is busy: {words}")),
            401 => Failure::Refused(format!("{words}: `surety sign-in` signs in")),
            300..=399 => {
                Failure::Refused("the service is elsewhere (it redirects): name its address with --api".into())
            }
            _ => Failure::Refused(words),
        }
    }
}

/// The URL in an argument: over https or on this machine, where no one on the way reads along or changes answers.
///
/// # Errors
/// It is neither.
pub fn secure(argument: &str, text: &str) -> Result<Url, Failure> {
    let refused = |why: String| Failure::Usage(format!("{argument} {text}: {why}"));
    let url = Url::parse(text).map_err(|error| refused(format!("not a URL: {error}")))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local(&url) => Ok(url),
        _ => Err(refused("https is needed where it is not on this machine".into())),
    }
}

/// Whether a URL is of this machine.
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
