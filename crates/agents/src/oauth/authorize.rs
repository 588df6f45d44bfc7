//! Authorization requests, `GET /oauth/authorize`: checks a client's request and seals it into the consent page.
//!
//! Nothing is stored for a request. It is sealed with a MAC into the page and comes back with the owner's answer. Its
//! random id becomes the nonce that the wallet signs, and can be approved once.
//!
//! Errors are never sent by redirect. Anyone may register any https URL, so redirecting without a person's choice would
//! make this service an open redirector (OAuth 2.1 section 7.12.2). The page shows the error and a link instead.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sql::Database;

use super::{
    Authority, ErrorCode, OAuthError, RedirectUri, Scope, Server, client::MAX_CLIENT_ID, document::Documents,
    form::Form, redirect::MAX_REDIRECT_URI,
};

/// Time in ms within which an owner must answer a consent request.
pub const CONSENT_MS: u64 = 10 * 60 * 1_000;
/// Maximum size of a client's `state`, in bytes.
pub const MAX_STATE: usize = 2_048;
/// Maximum size in bytes of a sealed consent request, which is base64 of JSON. The largest valid request fits, even if
/// all of its characters are escaped in JSON.
pub const MAX_SEALED: usize = 16 * 1_024;
const SEAL: &str = "consent";

/// A client's request for access, which an owner may approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentRequest {
    /// Id of the request: 128 random bits as 32 hexadecimal characters. The challenge is issued for this id, and the
    /// approval is stored under it.
    pub id: String,
    /// Id of the client.
    pub client_id: String,
    /// Name of the client.
    pub client_name: String,
    /// Host that publishes the client's metadata document; `None` for a registered client.
    pub published_at: Option<String>,
    /// `true` if the client has keys. Such a client must authenticate with a key to get tokens.
    pub has_keys: bool,
    /// Redirect URI that receives the authorization code.
    pub redirect_uri: RedirectUri,
    /// The client's parameter `state`, returned unchanged; `None` if it sent none.
    pub state: Option<String>,
    /// The client's PKCE challenge (method S256).
    pub code_challenge: String,
    /// Resource for which the tokens will be valid (their audience).
    pub resource: String,
    /// Scope that the client requests, which is the maximum that the owner can grant.
    pub scope: Scope,
    /// Time at which the request expires, in POSIX milliseconds.
    pub expires_at_ms: u64,
}

/// The consent request has expired, or was not issued by this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this sign-in request has expired: go back to your agent and connect again")]
pub struct RequestExpired;

/// Reason why an authorization request gets no consent page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizeRefusal {
    pub error: OAuthError,
    /// Link back to the client, with the error in its query; `None` unless the request has a registered redirect URI.
    pub back: Option<String>,
}

impl From<OAuthError> for AuthorizeRefusal {
    fn from(error: OAuthError) -> Self {
        Self { error, back: None }
    }
}

impl<D: Database, W: Documents, J> Server<'_, D, W, J> {
    /// Parses the query of an authorization request and looks up its client. `random` becomes the request's id.
    ///
    /// # Errors
    /// Returns the first rule that the request breaks. Once client and redirect URI are verified, the refusal contains
    /// a link back to the client.
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
    // The default method is `plain` (RFC 7636 section 4.3), which is not supported, so S256 must be explicit.
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

/// Returns this service's resource. Returns an error if the parameter `resource` names another one.
pub(super) fn resource(form: &Form, authority: &Authority) -> Result<String, OAuthError> {
    if form.all("resource").all(|one| authority.is_resource(one)) {
        return Ok(authority.resource().to_owned());
    }
    let text = format!("resource must be {}", authority.resource());
    Err(OAuthError::new(ErrorCode::InvalidTarget, text))
}

/// Builds the client's URI with an error in its query (RFC 6749 section 4.1.2.1, RFC 9207).
fn error_redirect(authority: &Authority, redirect_uri: &RedirectUri, state: Option<&str>, code: ErrorCode) -> String {
    answer(authority, redirect_uri, state, ("error", &code.to_string()))
}

/// Builds the client's redirect URI with a parameter added to its query: a code or an error.
fn answer(authority: &Authority, redirect_uri: &RedirectUri, state: Option<&str>, answer: (&str, &str)) -> String {
    let mut parameters = vec![answer, ("iss", authority.issuer())];
    parameters.extend(state.map(|state| ("state", state)));
    redirect_uri.with(&parameters)
}

impl ConsentRequest {
    /// Encodes the consent request with a MAC, so that the service detects any change when the page sends it back.
    #[must_use]
    pub fn seal(&self, authority: &Authority) -> String {
        let payload = serde_json::json!(self).to_string();
        BASE64_URL_SAFE_NO_PAD.encode(authority.secrets().seal(SEAL, authority.issuer(), payload.as_bytes()))
    }

    /// Decodes a consent request that [`seal`](Self::seal) has encoded.
    ///
    /// # Errors
    /// [`RequestExpired`] if it has expired or was not sealed by this service.
    pub fn open(sealed: &str, authority: &Authority, now_ms: u64) -> Result<Self, RequestExpired> {
        if sealed.len() > MAX_SEALED {
            return Err(RequestExpired);
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).map_err(|_| RequestExpired)?;
        let payload = authority.secrets().open(SEAL, authority.issuer(), &sealed).ok_or(RequestExpired)?;
        let request: Self = serde_json::from_slice(payload).map_err(|_| RequestExpired)?;
        if request.expires_at_ms <= now_ms { Err(RequestExpired) } else { Ok(request) }
    }

    /// Returns the URI to which the browser is sent with the code.
    pub(super) fn granted(&self, authority: &Authority, code: &str) -> String {
        answer(authority, &self.redirect_uri, self.state.as_deref(), ("code", code))
    }

    /// Returns the URI to which the browser is sent if the owner declines.
    #[must_use]
    pub fn denied(&self, authority: &Authority) -> String {
        answer(authority, &self.redirect_uri, self.state.as_deref(), ("error", "access_denied"))
    }
}
