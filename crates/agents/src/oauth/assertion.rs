//! Client authentication with `private_key_jwt` (RFC 7523 section 3, RFC 7515, RFC 7517).
//!
//! The trait [`VerifyJws`] verifies signatures; the workers implement it with WebCrypto. This module decides which key
//! and algorithm are allowed. The type of the key determines the algorithm, so that an assertion cannot choose one.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cardano::{
    ContentHash,
    json::{MAX_VALUES, has_more_values},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use sql::{Database, One, Read, Write};

use super::{
    Authority, ErrorCode, OAuthError, Server,
    client::{Client, ClientKeys},
    document::{DocumentUrl, Documents},
    token::GrantId,
};

/// Required value of the form parameter `client_assertion_type`.
pub const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Maximum size of an assertion, in bytes.
pub const MAX_ASSERTION: usize = 4 * 1_024;
/// Maximum lifetime of an assertion, in seconds. The lifetime is limited because the service stores used assertions
/// until they expire.
const MAX_LIFE_S: u64 = 60 * 60;
/// Tolerated difference between the client's and the service's clock, in seconds.
const LEEWAY_S: u64 = 60;
/// Maximum number of used assertions stored per grant. A client requests tokens only once in several days.
const MAX_KEPT: u32 = 100;
/// Maximum number of keys that are read from a client's key set. Further keys are ignored.
const MAX_KEYS: usize = 20;
/// Minimum age in ms of a cached key set before it is fetched again because it lacks the key that an assertion names.
const REFETCH_AFTER_MS: u64 = 60 * 1_000;
/// Allowed sizes of an RSA modulus in bytes (2048 to 4096 bits).
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=512;

/// A client's public key for verifying signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicJwk {
    /// RSA key for RS256 (RSASSA-PKCS1-v1_5 with SHA-256): modulus `n` (2048 to 4096 bits) and exponent `e`, big-endian
    /// without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// P-256 key for ES256 (ECDSA with SHA-256): the point's coordinates, big-endian.
    P256 { x: [u8; 32], y: [u8; 32] },
}

/// Verifies signatures of JSON Web Signatures.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait VerifyJws {
    /// Returns whether the signature is valid under the key, with the algorithm for the key's type. An ES256 signature
    /// is r ‖ s, 64 bytes. Returns `false` also if the verification cannot be performed.
    async fn verify(&self, key: &PublicJwk, message: &[u8], signature: &[u8]) -> bool;
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct AssertionClaims {
    iss: String,
    sub: String,
    /// Audience of the assertion: a string or a list of strings.
    aud: Value,
    exp: u64,
    nbf: Option<u64>,
    iat: Option<u64>,
    jti: String,
}

/// A decoded assertion that is not verified yet.
struct Parsed<'a> {
    header: Header,
    claims: AssertionClaims,
    signed: &'a str,
    signature: Vec<u8>,
}

fn refused(why: &str) -> OAuthError {
    OAuthError::invalid_client(format!("client_assertion: {why}"))
}

/// Returns the id of the client that an assertion claims to come from, for requests without `client_id`. The claim must
/// be verified with [`verify`](Server::verify_assertion).
pub(super) fn claimed_client(assertion: &str) -> Result<String, OAuthError> {
    parse(assertion).map(|parsed| parsed.claims.sub)
}

fn parse(assertion: &str) -> Result<Parsed<'_>, OAuthError> {
    let malformed = || refused("not a signed JWT with iss, sub, aud, exp and jti");
    if assertion.len() > MAX_ASSERTION {
        return Err(malformed());
    }
    let (signed, signature) = assertion.rsplit_once('.').ok_or_else(malformed)?;
    let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
    let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed());
    let json = |part: &str| {
        decode(part).and_then(|json| if has_more_values(&json, MAX_VALUES) { Err(malformed()) } else { Ok(json) })
    };
    let header: Header = serde_json::from_slice(&json(header)?).map_err(|_| malformed())?;
    let claims: AssertionClaims = serde_json::from_slice(&json(claims)?).map_err(|_| malformed())?;
    if header.crit.is_some() {
        return Err(refused("it has critical extensions that are not known here"));
    }
    Ok(Parsed { header, claims, signed, signature: decode(signature)? })
}

impl AssertionClaims {
    fn check(&self, client_id: &str, authority: &Authority, now_s: u64) -> Result<(), OAuthError> {
        if self.iss != client_id || self.sub != client_id {
            return Err(refused("iss and sub must be the client_id"));
        }
        let ours = [authority.issuer(), &authority.token_endpoint()];
        let named = self.aud.as_array().map_or(std::slice::from_ref(&self.aud), Vec::as_slice);
        if !named.iter().any(|one| ours.contains(&one.as_str().unwrap_or_default())) {
            return Err(refused("aud must be the issuer or the token endpoint"));
        }
        if self.exp.saturating_add(LEEWAY_S) <= now_s {
            return Err(refused("it has expired"));
        }
        if self.exp > now_s.saturating_add(MAX_LIFE_S) {
            return Err(refused("it lives longer than an hour"));
        }
        let ahead = now_s.saturating_add(LEEWAY_S);
        if self.nbf.is_some_and(|at| at > ahead) || self.iat.is_some_and(|at| at > ahead) {
            return Err(refused("it is not valid yet: check the clock"));
        }
        if self.jti.is_empty() {
            return Err(refused("jti is empty"));
        }
        Ok(())
    }
}

/// Returns the keys of a client's key set that match an assertion's header by algorithm and, if the header has one, by
/// key id.
fn candidates(jwks: &str, header: &Header) -> Vec<PublicJwk> {
    let set: Value = serde_json::from_str(jwks).unwrap_or_default();
    let keys = set.get("keys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = |key: &&Map<String, Value>| match &header.kid {
        Some(kid) => key.get("kid").and_then(Value::as_str) == Some(kid),
        None => true,
    };
    keys.iter()
        .take(MAX_KEYS)
        .filter_map(Value::as_object)
        .filter(named)
        .filter_map(|key| public_key(key, &header.alg))
        .collect()
}

fn public_key(key: &Map<String, Value>, alg: &str) -> Option<PublicJwk> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let for_signing = text("use").is_none_or(|purpose| purpose == "sig");
    let for_alg = text("alg").is_none_or(|known| known == alg);
    // A private key that was published does not prove anything.
    if !for_signing || !for_alg || key.contains_key("d") {
        return None;
    }
    match (alg, text("kty")?) {
        ("RS256", "RSA") => {
            let (n, e) = (bytes("n")?, bytes("e")?);
            let sound = RSA_BYTES.contains(&n.len()) && (1..=4).contains(&e.len()) && n.first() != Some(&0);
            sound.then_some(PublicJwk::Rsa { n, e })
        }
        ("ES256", "EC") if text("crv") == Some("P-256") => {
            Some(PublicJwk::P256 { x: bytes("x")?.try_into().ok()?, y: bytes("y")?.try_into().ok()? })
        }
        _ => None,
    }
}

impl<D: Database, W: Documents, J: VerifyJws> Server<'_, D, W, J> {
    /// Verifies that the client signed the assertion, that it is meant for this server, and that it has not expired.
    /// The caller must then pass it to `claim_assertion`, because an assertion authenticates only once.
    ///
    /// # Errors
    /// `invalid_client` if the assertion is not valid.
    pub(super) async fn verify_assertion(
        &self,
        client: &Client,
        assertion: &str,
    ) -> Result<AssertionClaims, OAuthError> {
        let parsed = parse(assertion)?;
        parsed.claims.check(&client.id, self.authority, self.now_ms / 1_000)?;
        let keys = match &client.metadata.keys {
            None => return Err(refused("this client registered no keys")),
            Some(ClientKeys::Jwks(jwks)) => candidates(&jwks.to_string(), &parsed.header),
            Some(ClientKeys::JwksUri(url)) => self.published_keys(url, &parsed.header).await?,
        };
        for key in keys {
            if self.jws.verify(&key, parsed.signed.as_bytes(), &parsed.signature).await {
                return Ok(parsed.claims);
            }
        }
        Err(refused("its signature is not one of the client's keys (RS256 or ES256)"))
    }

    async fn published_keys(&self, url: &DocumentUrl, header: &Header) -> Result<Vec<PublicJwk>, OAuthError> {
        // An expired copy is never used, because a key that its client withdrew must not verify.
        if let Some(stored) = self.stored_document(url).await?.filter(|stored| stored.fresh_until_ms > self.now_ms) {
            let keys = candidates(&stored.body, header);
            let recent = stored.fetched_at_ms.saturating_add(REFETCH_AFTER_MS) > self.now_ms;
            if !keys.is_empty() || recent {
                return Ok(keys);
            }
        }
        let (body, fresh_ms) = self.fetch_document(url).await?;
        // Stored even without the wanted key, so that unknown key ids do not cause a fetch at every request.
        self.keep_document(url, (&body, fresh_ms)).await?;
        Ok(candidates(&body, header))
    }

    /// Records that a client used a verified assertion for one of its grants. `redeemed` tells whether the grant's
    /// authorization code must have been redeemed already, as for a refresh, or must not.
    ///
    /// # Errors
    /// `invalid_grant` if no such grant exists or the grant is revoked, in which case nothing is stored;
    /// `invalid_client` if the assertion was used before; `temporarily_unavailable` if too many assertions are stored
    /// for the grant.
    pub(super) async fn claim_assertion(
        &self,
        claims: &AssertionClaims,
        grant: &GrantId,
        redeemed: bool,
    ) -> Result<(), OAuthError> {
        const LIVE: &str = "EXISTS (SELECT 1 FROM oauth_grants WHERE id = ?2 AND client_id = ?3 \
             AND revoked_at_ms IS NULL AND (generation > 0) = ?4)";
        let (client_id, grant) = (claims.sub.as_str(), grant.to_string());
        let digest = ContentHash::of(format!("{client_id}\n{}", claims.jti).as_bytes());
        let end_ms = claims.exp.saturating_add(LEEWAY_S).saturating_add(1).saturating_mul(1_000);
        // The primary key ensures that an assertion is used only once.
        let claim: Write<Option<String>> = sql::write!(
            "INSERT INTO oauth_assertions (digest, grant_id, expires_at_ms) SELECT ?1, ?2, ?5 WHERE {LIVE} \
               AND (SELECT count(*) FROM oauth_assertions WHERE grant_id = ?2) < ?6 \
             ON CONFLICT DO NOTHING RETURNING digest",
            digest,
            grant.as_str(),
            client_id,
            redeemed,
            end_ms,
            MAX_KEPT,
        );
        let otherwise: Read<One<String>> = sql::read!(
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM oauth_assertions WHERE digest = ?1) THEN 'used' \
               WHEN {LIVE} THEN 'too many' ELSE 'over' END",
            digest,
            grant.as_str(),
            client_id,
            redeemed,
        );
        let (claimed, One(otherwise)) = self.db.batch((claim, otherwise)).await?;
        match (claimed, otherwise.as_str()) {
            (Some(_), _) => Ok(()),
            (None, "used") => Err(refused("it was used before")),
            (None, "too many") => {
                let text = format!(
                    "{MAX_KEPT} assertions came for this sign-in within an hour: wait for the oldest to expire"
                );
                Err(OAuthError::new(ErrorCode::TemporarilyUnavailable, text))
            }
            (None, _) => Err(OAuthError::invalid_grant()),
        }
    }
}
