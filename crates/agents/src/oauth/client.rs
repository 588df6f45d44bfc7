//! OAuth clients: clients that register (RFC 7591), and clients whose id is the URL of their metadata document.
//!
//! The id of a registered client is the hash of its metadata. Registering the same metadata again, as some clients do
//! at every connection, finds the existing row.

use api_types::Registered;
pub use api_types::{MAX_CLIENT_NAME, MAX_REDIRECT_URIS};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cardano::json::{MAX_VALUES, has_more_values};
use market::{
    limits::{DAY_MS, day},
    network,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sql::{Database, Read, Write};

use super::{
    ErrorCode, OAuthError, RedirectUri, Scope, Server,
    document::{self, DocumentUrl, Documents},
};

/// Maximum size of a registration, in bytes.
pub const MAX_REGISTRATION_BYTES: usize = 8 * 1_024;
/// Maximum size in bytes of a client id, which may be the URL of a metadata document.
pub const MAX_CLIENT_ID: usize = document::MAX_DOCUMENT_URL;
const REGISTERED_PREFIX: &str = "client_";

/// Source of a client's public keys, as in RFC 7591.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKeys {
    /// A JWK set in the client's metadata.
    Jwks(Value),
    /// A URL from which the client's JWK set is fetched.
    JwksUri(DocumentUrl),
}

/// Metadata that a client claims about itself. Only the host of a metadata document is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientMetadata {
    /// Name of the client, which the consent page shows.
    pub name: String,
    /// Redirect URIs of the client, at least one.
    pub redirect_uris: Vec<RedirectUri>,
    /// Keys for `private_key_jwt`; `None` if the client does not authenticate.
    pub keys: Option<ClientKeys>,
}

#[derive(Deserialize)]
struct ClientRow {
    #[serde(deserialize_with = "sql::json")]
    metadata: ClientMetadata,
}

/// An OAuth client that is registered or has published its metadata document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub id: String,
    /// The client's metadata.
    pub metadata: ClientMetadata,
    /// Host of the client's metadata document; `None` for a registered client.
    pub published_at: Option<String>,
}

impl Client {
    /// Returns the redirect URI of a request if the client registered it, or else `None`. The port of a loopback URI
    /// may differ (RFC 8252).
    #[must_use]
    pub fn redirect(&self, presented: &str) -> Option<RedirectUri> {
        let presented = RedirectUri::parse(presented).ok()?;
        self.metadata.redirect_uris.iter().any(|known| presented.matches(known)).then_some(presented)
    }
}

fn metadata_error(description: impl Into<String>) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidClientMetadata, description)
}

/// Returns the name of a client's authentication method (RFC 7591, section 2).
pub(super) const fn client_auth(has_keys: bool) -> &'static str {
    if has_keys { "private_key_jwt" } else { "none" }
}

/// Parses a JSON object of at most [`MAX_VALUES`] values.
fn fields(json: &[u8]) -> Option<Map<String, Value>> {
    if has_more_values(json, MAX_VALUES) { None } else { serde_json::from_slice(json).ok() }
}

impl ClientMetadata {
    fn read(fields: &Map<String, Value>, fallback_name: &str) -> Result<Self, OAuthError> {
        Ok(Self { name: name(fields, fallback_name)?, redirect_uris: redirect_uris(fields)?, keys: keys(fields)? })
    }

    /// Parses a registration request.
    ///
    /// Unknown fields are ignored, and authentication methods that need a secret become `none`. The answer to the
    /// client contains the registered values (RFC 7591, section 2).
    ///
    /// # Errors
    /// `invalid_redirect_uri` if no redirect URI is acceptable; `invalid_client_metadata` if another field is invalid.
    pub fn from_registration(body: &[u8]) -> Result<Self, OAuthError> {
        if body.len() > MAX_REGISTRATION_BYTES {
            return Err(metadata_error(format!("a registration has at most {MAX_REGISTRATION_BYTES} bytes")));
        }
        let Some(fields) = fields(body) else {
            return Err(metadata_error("the body must be a JSON object with redirect_uris"));
        };
        Self::read(&fields, "An agent")
    }

    /// Parses the metadata document published at this URL.
    ///
    /// # Errors
    /// `invalid_client` if the document is malformed, or if its `client_id` is not this URL.
    pub fn from_document(url: &DocumentUrl, body: &str) -> Result<Self, OAuthError> {
        let refused = |why: String| OAuthError::invalid_client(format!("the client's metadata document: {why}"));
        let Some(fields) = fields(body.as_bytes()) else {
            return Err(refused("not a JSON object".into()));
        };
        if fields.get("client_id").and_then(Value::as_str) != Some(url.as_str()) {
            return Err(refused("its client_id is not its own URL".into()));
        }
        if fields.contains_key("client_secret") || fields.contains_key("client_secret_expires_at") {
            return Err(refused("it must not contain a secret".into()));
        }
        match fields.get("token_endpoint_auth_method").map_or(Some("none"), Value::as_str) {
            Some("none" | "private_key_jwt") => {}
            _ => return Err(refused("token_endpoint_auth_method must be none or private_key_jwt".into())),
        }
        Self::read(&fields, url.host()).map_err(|error| refused(error.description))
    }

    /// Builds the answer to a registration (RFC 7591).
    fn registered(&self, id: &str, now_ms: u64) -> Value {
        let (jwks, jwks_uri) = match &self.keys {
            Some(ClientKeys::Jwks(jwks)) => (Some(jwks.clone()), None),
            Some(ClientKeys::JwksUri(url)) => (None, Some(url.as_str().to_owned())),
            None => (None, None),
        };
        json!(Registered {
            client_id: id.to_owned(),
            client_id_issued_at: now_ms / 1_000,
            client_name: self.name.clone(),
            redirect_uris: self.redirect_uris.iter().map(ToString::to_string).collect(),
            grant_types: vec!["authorization_code".into(), "refresh_token".into()],
            response_types: vec!["code".into()],
            scope: Scope::All,
            token_endpoint_auth_method: client_auth(self.keys.is_some()).into(),
            jwks_uri,
            jwks,
        })
    }

    /// Computes the client id, which is the hash of the metadata.
    fn id(&self) -> String {
        let digest = Sha256::digest(json!(self).to_string());
        format!("{REGISTERED_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(digest))
    }
}

fn name(fields: &Map<String, Value>, fallback: &str) -> Result<String, OAuthError> {
    let name = match fields.get("client_name") {
        None | Some(Value::Null) => return Ok(fallback.to_owned()),
        Some(Value::String(name)) => name.trim(),
        Some(_) => return Err(metadata_error("client_name must be a string")),
    };
    if name.is_empty() {
        return Ok(fallback.to_owned());
    }
    if name.chars().count() > MAX_CLIENT_NAME {
        return Err(metadata_error(format!("client_name has at most {MAX_CLIENT_NAME} characters")));
    }
    // Invisible and direction-changing characters could make a name look like another on the consent page.
    let misleading = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if name.chars().any(misleading) {
        return Err(metadata_error("client_name must not contain control or invisible characters"));
    }
    Ok(name.to_owned())
}

fn redirect_uris(fields: &Map<String, Value>) -> Result<Vec<RedirectUri>, OAuthError> {
    let refused = |why: String| OAuthError::new(ErrorCode::InvalidRedirectUri, why);
    let Some(Value::Array(list)) = fields.get("redirect_uris") else {
        return Err(refused("redirect_uris must be an array of strings".into()));
    };
    if list.is_empty() || list.len() > MAX_REDIRECT_URIS {
        return Err(refused(format!("redirect_uris must have 1 to {MAX_REDIRECT_URIS} entries")));
    }
    let parse = |value: &Value| {
        let text = value.as_str().ok_or_else(|| refused("redirect_uris must be an array of strings".into()))?;
        RedirectUri::parse(text).map_err(|error| refused(error.to_string()))
    };
    // Editors register the URIs of all their builds at once. Unacceptable ones are omitted from the answer.
    let (taken, refused): (Vec<_>, Vec<_>) = list.iter().map(parse).partition(Result::is_ok);
    match refused.into_iter().next() {
        Some(first) if taken.is_empty() => first.map(|_| Vec::new()),
        _ => taken.into_iter().collect(),
    }
}

/// Returns the keys in a client's metadata; `None` if the client does not declare `private_key_jwt`.
fn keys(fields: &Map<String, Value>) -> Result<Option<ClientKeys>, OAuthError> {
    if fields.get("token_endpoint_auth_method").and_then(Value::as_str) != Some("private_key_jwt") {
        return Ok(None);
    }
    match (fields.get("jwks"), fields.get("jwks_uri")) {
        (Some(jwks), None) if jwks.is_object() => Ok(Some(ClientKeys::Jwks(jwks.clone()))),
        (None, Some(Value::String(uri))) => {
            let url = DocumentUrl::parse(uri).map_err(|error| metadata_error(format!("jwks_uri {error}")))?;
            Ok(Some(ClientKeys::JwksUri(url)))
        }
        _ => Err(metadata_error("private_key_jwt needs either jwks (an object) or jwks_uri (a string)")),
    }
}

/// Time in ms after which a registration is deleted if no owner has approved the client.
const UNUSED_MS: u64 = 24 * 60 * 60 * 1_000;
/// Remaining lifetime of a registration in ms below which registering the same metadata again renews it. The renewal
/// counts against the network's quota.
const RENEW_BELOW_MS: u64 = UNUSED_MS / 2;
/// Maximum number of bytes that the registrations of one client network may take on one day (UTC). Registrations need
/// no signature: with the rate limit alone, one network could fill a seventh of a database in a day.
pub const MAX_REGISTERED_A_DAY: u64 = 16 << 20;

impl<D: Database, W: Documents, J> Server<'_, D, W, J> {
    /// Registers a client and returns RFC 7591's answer (201) as JSON. The registration counts against the daily quota
    /// of `network`, unless the same metadata was registered recently.
    ///
    /// # Errors
    /// `temporarily_unavailable` if the network's quota is used up, or the database is unavailable.
    pub async fn register(&self, metadata: &ClientMetadata, network: &str) -> Result<String, OAuthError> {
        let (id, text) = (metadata.id(), json!(metadata).to_string());
        let take: Write = sql::write!(
            "INSERT INTO registered_days (day, network, bytes) SELECT ?1, ?2, ?3 \
             WHERE NOT EXISTS (SELECT 1 FROM oauth_clients WHERE id = ?4 AND kept_until_ms > ?6) \
               AND coalesce((SELECT bytes FROM registered_days WHERE day = ?1 AND network = ?2), 0) + ?3 <= ?5 \
             ON CONFLICT (day, network) DO UPDATE SET bytes = bytes + excluded.bytes",
            day(self.now_ms),
            network::daily_digest(network, self.now_ms),
            u64::try_from(text.len()).unwrap_or(u64::MAX),
            id.as_str(),
            MAX_REGISTERED_A_DAY,
            self.now_ms.saturating_add(RENEW_BELOW_MS),
        );
        let keep: Write = sql::write!(
            "INSERT INTO oauth_clients (id, metadata, kept_until_ms) SELECT ?1, ?2, ?3 WHERE changes() > 0 \
             ON CONFLICT (id) DO UPDATE SET kept_until_ms = excluded.kept_until_ms",
            id.as_str(),
            text,
            self.now_ms.saturating_add(UNUSED_MS),
        );
        let kept: Read<Option<String>> = sql::read!("SELECT id FROM oauth_clients WHERE id = ?1", id.as_str());
        let ((), (), kept) = self.db.batch((take, keep, kept)).await?;
        if kept.is_none() {
            let text = "your network has registered as much today as one may: register after 00:00 UTC, or from another network";
            return Err(OAuthError::busy(text, DAY_MS.saturating_sub(self.now_ms % DAY_MS).div_ceil(1_000)));
        }
        Ok(metadata.registered(&id, self.now_ms).to_string())
    }

    /// Returns the client with this id, which may be the URL of a metadata document.
    ///
    /// # Errors
    /// `invalid_client` if there is no such client, or its metadata document is not acceptable.
    pub async fn client(&self, id: &str) -> Result<Client, OAuthError> {
        if !DocumentUrl::looks_like_one(id) {
            let read = sql::read!("SELECT metadata FROM oauth_clients WHERE id = ?1", id);
            let unknown =
                || OAuthError::invalid_client("no client with this client_id: register it (POST /oauth/register)");
            let row: Option<ClientRow> = self.db.fetch(read).await?;
            let metadata = row.ok_or_else(unknown)?.metadata;
            return Ok(Client { id: id.to_owned(), metadata, published_at: None });
        }
        let url = DocumentUrl::parse(id)
            .map_err(|error| OAuthError::invalid_client(format!("a client_id that is a URL {error}")))?;
        if self.authority.issuer().strip_prefix("https://") == Some(url.host()) {
            return Err(OAuthError::invalid_client("no client is published here"));
        }
        let client = |metadata| Client { id: id.to_owned(), metadata, published_at: Some(url.host().to_owned()) };
        let stored = self.stored_document(&url).await?;
        if let Some(fresh) = stored.as_ref().filter(|stored| stored.fresh_until_ms > self.now_ms) {
            return ClientMetadata::from_document(&url, &fresh.body).map(client);
        }
        let (body, fresh_ms) = match (self.fetch_document(&url).await, stored) {
            (Ok(fetched), _) => fetched,
            (Err(error), Some(last)) if error.code == ErrorCode::TemporarilyUnavailable => {
                return ClientMetadata::from_document(&url, &last.body).map(client);
            }
            (Err(error), _) => return Err(error),
        };
        let metadata = ClientMetadata::from_document(&url, &body)?;
        self.keep_document(&url, (&body, fresh_ms)).await?;
        Ok(client(metadata))
    }
}
