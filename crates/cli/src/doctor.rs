//! `surety doctor URL`: checks which clients and wallets a deployment serves, by sending the requests that they send.
//!
//! The command pays nothing and signs with a temporary key. The OAuth clients that it registers expire after a day.

mod agents;
mod cose;
mod paying;
mod sign_in;
mod wallets;

use cardano::keys::SigningKey;
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    service::{Answer, Ask, Service},
    tell::{Tell, plain},
};

/// Origin of a web page on another site, for cross-origin (CORS) requests.
const ORIGIN: &str = "https://agent.example.com";

/// Result of a probe: `Ok` if the deployment serves the client, otherwise the reason why not.
type Finding = Result<(), String>;

/// A test request that imitates a kind of client.
struct Probe {
    /// Client programs that send requests like this one, by name.
    clients: &'static str,
    /// The capability that these clients need from a deployment.
    need: &'static str,
    /// Advice to the operator of a deployment that lacks the capability.
    advice: &'static str,
    send: fn(&Deployment) -> Finding,
}

/// All probes, grouped by the kind of client that they imitate.
const PROBES: [&[Probe]; 4] = [&sign_in::PROBES, &agents::PROBES, &paying::PROBES, &wallets::PROBES];

/// The deployment under examination.
struct Deployment {
    service: Service,
    /// Id of a listing that the deployment sells; `None` if it sells nothing.
    listing: Option<String>,
    key: SigningKey,
}

/// Runs all probes on the deployment at `url`, and prints their results.
///
/// # Errors
/// Returns an error with exit code 1 if a probe failed. Returns another error if the URL is invalid or the deployment
/// does not answer.
pub fn run(url: &str, tell: &Tell) -> Result<(), Failure> {
    let service = Service::at(url)?;
    let listings: Vec<api_types::Listing> = service.get("/listings?limit=1")?;
    let listing = listings.into_iter().next().map(|one| one.id);
    let key = SigningKey::from_seed(&crate::random()?).map_err(|error| Failure::Refused(error.to_string()))?;
    let deployment = Deployment { service, listing, key };
    let (mut told, mut words, mut failed) = (Vec::new(), Vec::new(), 0_usize);
    for Probe { clients, need, advice, send } in PROBES.into_iter().flatten() {
        let found = send(&deployment).err().map(|reason| plain(&reason));
        words.push(match &found {
            None => format!("ok    {clients}: {need}"),
            Some(reason) => format!("FAIL  {clients}: {need}: {reason}; {advice}"),
        });
        failed = failed.saturating_add(usize::from(found.is_some()));
        told.push(json!({ "clients": clients, "need": need, "ok": found.is_none(), "reason": found, "mend": advice }));
    }
    tell.result(&json!(told), &words.join("\n"))?;
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::Refused(format!("not served: {failed} of {} kinds of clients", told.len())))
}

/// Returns the value at a JSON pointer (RFC 6901), or null.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Returns the string at a JSON pointer (RFC 6901), or an empty string if there is none.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_default()
}

fn ensure(holds: bool, otherwise: &str) -> Finding {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// Prefixes an error with the name of the affected part of the request.
fn about<T>(what: &str, found: Result<T, String>) -> Result<T, String> {
    found.map_err(|reason| format!("{what}: {reason}"))
}

impl Deployment {
    /// Sends a request, and returns the response if it has the expected `status`.
    fn ask(&self, method: &str, path: &str, ask: Ask<'_>, status: u16) -> Result<Answer, String> {
        let answer = self.service.ask(method, path, ask).map_err(|error| error.to_string())?;
        let otherwise = || format!("{} instead of {status}: {}", answer.status, answer.words());
        if answer.status == status { Ok(answer) } else { Err(otherwise()) }
    }

    /// Sends a request, and returns the response's JSON if it has the expected `status`.
    fn json(&self, method: &str, path: &str, ask: Ask<'_>, status: u16) -> Result<Value, String> {
        serde_json::from_slice(&self.ask(method, path, ask, status)?.body).map_err(|_| "no JSON".to_owned())
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        self.json("GET", path, Ask::default(), 200)
    }

    /// Returns the id of a listing that is for sale, or an error if the deployment sells nothing.
    fn on_sale(&self) -> Result<&str, String> {
        self.listing.as_deref().ok_or_else(|| "nothing is for sale here: list something first".to_owned())
    }

    /// Returns the path of the paid resource of a listing that is for sale.
    fn paywall(&self) -> Result<String, String> {
        Ok(format!("/listings/{}/unlock", self.on_sale()?))
    }

    fn preflight(&self, path: &str, headers: &str) -> Finding {
        let asked = vec![
            ("origin", ORIGIN),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", headers),
        ];
        let answer = self.ask("OPTIONS", path, Ask { headers: asked, ..Ask::default() }, 204)?;
        let allowed = answer.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
        let missing = headers.split(',').find(|name| !allowed.split(',').any(|one| one.trim() == name.trim()));
        missing.map_or(Ok(()), |name| Err(format!("{name} is not allowed")))
    }
}
