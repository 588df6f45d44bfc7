//! `GET /oauth/authorize`: what a client asks for, and the consent request that the page carries.
//!
//! Nothing is written for a request: it is sealed (MAC) into the page and comes back with the owner's answer. Its id is
//! random, becomes the nonce that the wallet signs, and can be approved once.
//!
//! No error is ever sent on by a redirect. Anyone may register any https address, so a redirect without a person's
//! choice would make this service an open redirector (OAuth 2.1 section 7.12.2). The page shows the error, and a link.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sql::Database;

use super::{
    Authority, ErrorCode, OAuthError, RedirectUri, Scope, Server, client::MAX_CLIENT_ID, document::Documents,
    form::Form, redirect::MAX_REDIRECT_URI,
};

/// How long an owner may take to decide, in ms.
pub const CONSENT_MS: u64 = 10 * 60 * 1_000;
/// Bytes of a client's `state`.
pub const MAX_STATE: usize = 2_048;
/// Bytes of a sealed request: every part at its longest, in JSON's worst spelling, in base64.
pub const MAX_SEALED: usize = 16 * 1_024;
const SEAL: &str = "consent";

/// What an owner is asked to consent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentRequest {
    /// 128 random bits, 32 hexadecimal characters: what challenges are for, key of the approval.
    pub id: String,
    /// Who asks.
    pub client_id: String,
    /// How the client calls itself.
    pub client_name: String,
    /// The host that publishes the client's metadata, if it is published.
    pub published_at: Option<String>,
    /// Whether the client has keys, and so proves itself for tokens.
    pub has_keys: bool,
    /// Where the code goes.
    pub redirect_uri: RedirectUri,
    /// The client's, returned as it came.
    pub state: Option<String>,
    /// PKCE (S256).
    pub code_challenge: String,
    /// The audience of the tokens.
    pub resource: String,
    /// What the agent is to be allowed, at most.
    pub scope: Scope,
    /// Until when it can be approved, POSIX ms.
    pub expires_at_ms: u64,
}

/// A consent request that expired, or that this service did not issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this sign-in request has expired: go back to your agent and connect again")]
pub struct RequestExpired;

/// Why there is no consent page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizeRefusal {
    pub error: OAuthError,
    /// Where a link may lead back to, with the error in its query: only to a redirect URI that the client registered.
    pub back: Option<String>,
}

impl From<OAuthError> for AuthorizeRefusal {
    fn from(error: OAuthError) -> Self {
        Self { error, back: None }
    }
}

impl<D: Database, W: Documents, J> Server<'_, D, W, J> {
    /// Reads an authorization request's query and looks its client up.
    ///
    /// # Errors
    /// The first rule that it breaks. What comes after client and redirect URI carries a way back to the client.
    pub async fn consent_request(&self, query: &str, random: [u8; 16]) -> Result<ConsentRequest, AuthorizeRefusal> {
        let form = Form::parse(query)?;
        let client_id = form.required("client_id", MAX_CLIENT_ID)?;
        let client = self.client(client_id).await?;
        let presented = form.required("redirect_uri", MAX_REDIRECT_URI)?;
        let redirect_uri = client
            .redirect(presented)
            .ok_or_else(|| OAuthError::invalid_request("redirect_uri is not one that this client registered"))?;

        let state = form.get("state");
        let rest = || {
            let state = form.optional("state", MAX_STATE)?.map(str::to_owned);
            response_type(&form)?;
            Ok((state, scope(&form)?, code_challenge(&form)?, resource(&form, self.authority)?))
        };
        let (state, scope, code_challenge, resource) = rest().map_err(|error: OAuthError| {
            let state = state.filter(|state| state.len() <= MAX_STATE);
            let back = error_redirect(self.authority, &redirect_uri, state, error.code);
            AuthorizeRefusal { error, back: Some(back) }
        })?;
        Ok(ConsentRequest {
            id: hex::encode(random),
            client_id: client.id,
            has_keys: client.metadata.keys.is_some(),
            client_name: client.metadata.name,
            published_at: client.published_at,
            redirect_uri,
            state,
            code_challenge,
            resource,
            scope,
            expires_at_ms: self.now_ms.saturating_add(CONSENT_MS),
        })
    }
}

fn response_type(form: &Form) -> Result<(), OAuthError> {
    if form.required("response_type", 64)? != "code" {
        return Err(OAuthError::new(ErrorCode::UnsupportedResponseType, "response_type must be code"));
    }
    if form.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(OAuthError::invalid_request("response_mode must be query"));
    }
    if form.get("request").is_some() || form.get("request_uri").is_some() {
        return Err(OAuthError::invalid_request("request objects are not supported: send plain parameters"));
    }
    Ok(())
}

fn scope(form: &Form) -> Result<Scope, OAuthError> {
    Ok(Scope::asked(form.optional("scope", 1_024)?.unwrap_or_default()))
}

fn code_challenge(form: &Form) -> Result<String, OAuthError> {
    let challenge = form.required("code_challenge", 128)?;
    // Its default is `plain` (RFC 7636 section 4.3), which we do not offer: it has to be said.
    if form.get("code_challenge_method") != Some("S256") {
        return Err(OAuthError::invalid_request("code_challenge_method must be S256"));
    }
    let digest = BASE64_URL_SAFE_NO_PAD.decode(challenge).ok().filter(|digest| digest.len() == 32);
    let normal = digest.is_some_and(|digest| BASE64_URL_SAFE_NO_PAD.encode(digest) == challenge);
    if !normal {
        return Err(OAuthError::invalid_request(
            "code_challenge must be base64url of a SHA-256 digest (43 characters)",
        ));
    }
    Ok(challenge.to_owned())
}

/// The resource that is asked for: ours, or ours because none is named.
pub(super) fn resource(form: &Form, authority: &Authority) -> Result<String, OAuthError> {
    if form.all("resource").all(|one| authority.is_resource(one)) {
        return Ok(authority.resource().to_owned());
    }
    let text = format!("resource must be {}", authority.resource());
    Err(OAuthError::new(ErrorCode::InvalidTarget, text))
}

/// The client's address with an error in its query (RFC 6749 section 4.1.2.1, RFC 9207).
fn error_redirect(authority: &Authority, redirect_uri: &RedirectUri, state: Option<&str>, code: ErrorCode) -> String {
    answer(authority, redirect_uri, state, ("error", &code.to_string()))
}

/// The client's address with an answer in its query.
fn answer(authority: &Authority, redirect_uri: &RedirectUri, state: Option<&str>, answer: (&str, &str)) -> String {
    let mut parameters = vec![answer, ("iss", authority.issuer())];
    parameters.extend(state.map(|state| ("state", state)));
    redirect_uri.with(&parameters)
}

impl ConsentRequest {
    /// The request as the page carries it.
    #[must_use]
    pub fn seal(&self, authority: &Authority) -> String {
        let payload = serde_json::json!(self).to_string();
        BASE64_URL_SAFE_NO_PAD.encode(authority.secrets().seal(SEAL, authority.issuer(), payload.as_bytes()))
    }

    /// The request that a page carried, while it can be approved.
    ///
    /// # Errors
    /// [`RequestExpired`], for whatever reason.
    pub fn open(sealed: &str, authority: &Authority, now_ms: u64) -> Result<Self, RequestExpired> {
        if sealed.len() > MAX_SEALED {
            return Err(RequestExpired);
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).map_err(|_| RequestExpired)?;
        let payload = authority.secrets().open(SEAL, authority.issuer(), &sealed).ok_or(RequestExpired)?;
        let request: Self = serde_json::from_slice(payload).map_err(|_| RequestExpired)?;
        if request.expires_at_ms <= now_ms { Err(RequestExpired) } else { Ok(request) }
    }

    /// Where the browser goes when the owner consents.
    pub(super) fn granted(&self, authority: &Authority, code: &str) -> String {
        answer(authority, &self.redirect_uri, self.state.as_deref(), ("code", code))
    }

    /// Where the browser goes when the owner refuses.
    #[must_use]
    pub fn denied(&self, authority: &Authority) -> String {
        answer(authority, &self.redirect_uri, self.state.as_deref(), ("error", "access_denied"))
    }
}
