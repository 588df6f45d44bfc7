//! Token requests, `POST /oauth/token`: a code or a refresh token in exchange for tokens.
//!
//! ```text
//!   generation  0 ──code──> 1 ──refresh 1──> 2 ──refresh 2──> 3 ...          one conditional UPDATE each
//!               └─ code again: revoked        └─ refresh 1 again: within 60 s the same answer, later `invalid_grant`
//! ```
//!
//! Tokens are computed from the grant's row, so a client that lost an answer gets the same tokens again. RFC 9700
//! section 4.14.2 requires that refresh tokens are replaced at each use, but clients race and retry. Therefore an older
//! refresh token is rejected but revokes nothing: sessions that run side by side share one grant (`docs/adr/`).

use api_types::Tokens;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use sql::{Database, Read, Write};

use super::{
    Authority, ErrorCode, OAuthError, Scope, Server, TokenKind,
    assertion::{self, ASSERTION_TYPE, MAX_ASSERTION, VerifyJws},
    authorize,
    client::{MAX_CLIENT_ID, client_auth},
    document::Documents,
    form::Form,
    redirect::MAX_REDIRECT_URI,
    token::Claims,
};

/// Lifetime of an access token, in ms.
pub const ACCESS_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Lifetime of a refresh token that is not used, in ms.
pub const REFRESH_MS: u64 = 90 * 24 * 60 * 60 * 1_000;
/// Time in ms after a refresh during which the replaced refresh token still returns the same new tokens, for clients
/// that did not receive the first answer.
pub const RETRY_MS: u64 = 60 * 1_000;
/// Maximum size of an authorization code or a refresh token, in bytes.
pub(super) const MAX_TOKEN: usize = 256;

/// Credential that a token request presents.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exchange {
    Code { code: String, verifier: String, redirect_uri: Option<String> },
    Refresh { token: String },
}

/// A well-formed token request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    client_id: String,
    assertion: Option<String>,
    exchange: Exchange,
}

impl TokenRequest {
    /// Parses the form of a token request. `authorization` is the header of this name, which must be absent because
    /// clients have no password. A parameter `scope` is ignored: tokens have the grant's scope.
    ///
    /// # Errors
    /// `invalid_request`, `invalid_client`, `unsupported_grant_type` or `invalid_target`, if the form is not a valid
    /// token request to this server.
    pub fn parse(body: &str, authorization: Option<&str>, authority: &Authority) -> Result<Self, OAuthError> {
        let form = Form::parse(body)?;
        if authorization.is_some() || form.get("client_secret").is_some() {
            let text = "clients here have no secret: send client_id in the form, or a client_assertion";
            return Err(OAuthError::invalid_client(text));
        }
        let assertion = assertion(&form)?;
        let client_id = match (form.optional("client_id", MAX_CLIENT_ID)?, &assertion) {
            (Some(id), _) => id.to_owned(),
            (None, Some(assertion)) => assertion::claimed_client(assertion)?,
            (None, None) => return Err(OAuthError::invalid_request("client_id is missing")),
        };
        let exchange = match form.required("grant_type", 64)? {
            "authorization_code" => Exchange::Code {
                code: form.required("code", MAX_TOKEN)?.to_owned(),
                verifier: verifier(&form)?,
                redirect_uri: form.optional("redirect_uri", MAX_REDIRECT_URI)?.map(str::to_owned),
            },
            "refresh_token" => Exchange::Refresh { token: form.required("refresh_token", MAX_TOKEN)?.to_owned() },
            _ => {
                let text = "grant_type must be authorization_code or refresh_token";
                return Err(OAuthError::new(ErrorCode::UnsupportedGrantType, text));
            }
        };
        authorize::resource(&form, authority)?;
        Ok(Self { client_id, assertion, exchange })
    }
}

fn assertion(form: &Form) -> Result<Option<String>, OAuthError> {
    match (form.get("client_assertion_type"), form.optional("client_assertion", MAX_ASSERTION)?) {
        (None, None) => Ok(None),
        (Some(ASSERTION_TYPE), Some(assertion)) => Ok(Some(assertion.to_owned())),
        _ => Err(OAuthError::invalid_client(format!(
            "a client_assertion goes with client_assertion_type {ASSERTION_TYPE}"
        ))),
    }
}

fn verifier(form: &Form) -> Result<String, OAuthError> {
    let verifier = form.required("code_verifier", 128)?;
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    if verifier.len() < 43 || !verifier.bytes().all(unreserved) {
        return Err(OAuthError::invalid_request("code_verifier must be 43 to 128 unreserved characters"));
    }
    Ok(verifier.to_owned())
}

/// Number of times that a grant's tokens were issued, the time of the newest issue, and the granted scope.
#[derive(Deserialize)]
struct TokenGeneration {
    generation: u32,
    rotated_at_ms: u64,
    scope: Scope,
}

impl<D: Database, W: Documents, J: VerifyJws> Server<'_, D, W, J> {
    /// Issues tokens for a token request from the network `from`. If the request presents a refresh token that was
    /// replaced and is rejected for that reason, the time and the network are stored with the grant and shown to the
    /// owner.
    ///
    /// # Errors
    /// `invalid_client` if the client does not authenticate; `invalid_grant` if the code or refresh token is not valid.
    pub async fn exchange(&self, request: &TokenRequest, from: &str) -> Result<Tokens, OAuthError> {
        // Checked first, so that a client's documents are fetched only for a code or token that this server made.
        let (token, kind) = match &request.exchange {
            Exchange::Code { code, .. } => (code, TokenKind::Code),
            Exchange::Refresh { token } => (token, TokenKind::Refresh),
        };
        let claims = Claims::read(token, kind, self.authority);
        let claims = claims.ok_or_else(OAuthError::invalid_grant)?;
        let client_auth = match self.authenticate(request, &claims).await {
            Ok(client_auth) => client_auth,
            Err(error) => {
                if kind == TokenKind::Code {
                    self.db.execute(self.revoke_redeemed(&claims)).await?;
                }
                return Err(error);
            }
        };
        let newest = match &request.exchange {
            Exchange::Code { verifier, redirect_uri, .. } => {
                let proof = (verifier.as_str(), redirect_uri.as_deref());
                let redeem = self.redeem(&claims, request, client_auth, proof);
                let grant = claims.grant.to_string();
                let expected: Read<Option<String>> =
                    sql::read!("SELECT client_auth FROM oauth_grants WHERE id = ?1", grant);
                let (_, redeemed, expected) = self.db.batch((self.revoke_redeemed(&claims), redeem, expected)).await?;
                if expected.is_some_and(|expected| expected != client_auth) {
                    let text = "a client with keys proves itself with a client_assertion, others without";
                    return Err(OAuthError::invalid_client(text));
                }
                redeemed
            }
            Exchange::Refresh { .. } => self.refresh(&claims, request, client_auth, from).await?,
        };
        Ok(self.tokens(&claims, &newest.ok_or_else(OAuthError::invalid_grant)?))
    }

    /// Authenticates the client, and returns the name of the authentication method that it used.
    async fn authenticate(&self, request: &TokenRequest, claims: &Claims) -> Result<&'static str, OAuthError> {
        if let Some(assertion) = &request.assertion {
            let client = self.client(&request.client_id).await?;
            let verified = self.verify_assertion(&client, assertion).await?;
            let redeemed = matches!(request.exchange, Exchange::Refresh { .. });
            self.claim_assertion(&verified, &claims.grant, redeemed).await?;
        }
        Ok(client_auth(request.assertion.is_some()))
    }

    /// Builds the statement that revokes a grant if its code was already redeemed. The statement runs whenever a code
    /// is presented, by whichever client (RFC 6749, section 4.1.2).
    fn revoke_redeemed(&self, claims: &Claims) -> Write {
        sql::write!(
            "UPDATE oauth_grants SET revoked_at_ms = ?2 WHERE id = ?1 AND generation > 0 AND revoked_at_ms IS NULL",
            claims.grant.to_string(),
            self.now_ms,
        )
    }

    fn redeem(
        &self,
        claims: &Claims,
        request: &TokenRequest,
        client_auth: &str,
        (verifier, redirect_uri): (&str, Option<&str>),
    ) -> Write<Option<TokenGeneration>> {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        sql::write!(
            "UPDATE oauth_grants SET generation = 1, rotated_at_ms = ?6, used_at_ms = ?6 \
             WHERE id = ?1 AND generation = 0 AND revoked_at_ms IS NULL AND client_id = ?2 AND client_auth = ?3 AND code_challenge = ?4 \
               AND (?5 IS NULL OR redirect_uri = ?5) AND resource = ?7 AND ?8 > ?6 RETURNING generation, rotated_at_ms, scope",
            claims.grant.to_string(),
            request.client_id.as_str(),
            client_auth,
            challenge,
            redirect_uri,
            self.now_ms,
            self.authority.resource(),
            claims.expires_at_ms,
        )
    }

    async fn refresh(
        &self,
        claims: &Claims,
        request: &TokenRequest,
        client_auth: &str,
        from: &str,
    ) -> Result<Option<TokenGeneration>, OAuthError> {
        let next = claims.generation.checked_add(1).ok_or_else(OAuthError::invalid_grant)?;
        let grant = claims.grant.to_string();
        let rotate: Write = sql::write!(
            "UPDATE oauth_grants SET generation = ?2, rotated_at_ms = ?5, used_at_ms = ?5 \
             WHERE id = ?1 AND generation = ?2 - 1 AND generation > 0 AND revoked_at_ms IS NULL \
               AND client_id = ?3 AND client_auth = ?4 AND resource = ?6 AND ?7 > ?5",
            grant.as_str(),
            next,
            request.client_id.as_str(),
            client_auth,
            self.now_ms,
            self.authority.resource(),
            claims.expires_at_ms,
        );
        let read = sql::read!(
            "SELECT generation, rotated_at_ms, scope FROM oauth_grants WHERE id = ?1 AND generation = ?2 \
               AND revoked_at_ms IS NULL AND client_id = ?3 AND client_auth = ?4 AND resource = ?5 AND rotated_at_ms > ?6",
            grant.as_str(),
            next,
            request.client_id.as_str(),
            client_auth,
            self.authority.resource(),
            self.now_ms.saturating_sub(RETRY_MS),
        );
        // At most one write per grant and minute, however often replaced tokens are presented.
        let refused: Write = sql::write!(
            "UPDATE oauth_grants SET old_token_at_ms = ?3, old_token_from = ?5 WHERE id = ?1 AND revoked_at_ms IS NULL \
               AND (generation > ?2 OR (generation = ?2 AND rotated_at_ms <= ?4)) \
               AND (old_token_at_ms IS NULL OR old_token_at_ms <= ?4)",
            grant.as_str(),
            next,
            self.now_ms,
            self.now_ms.saturating_sub(RETRY_MS),
            from,
        );
        let ((), newest, ()) = self.db.batch((rotate, read, refused)).await?;
        Ok(newest)
    }

    fn tokens(&self, claims: &Claims, newest: &TokenGeneration) -> Tokens {
        let token = |kind, life_ms: u64| {
            let expires_at_ms = newest.rotated_at_ms.saturating_add(life_ms);
            let claims = Claims { grant: claims.grant, generation: newest.generation, expires_at_ms };
            claims.token(kind, self.authority)
        };
        let expires_at_ms = newest.rotated_at_ms.saturating_add(ACCESS_MS);
        Tokens {
            access_token: token(TokenKind::Access, ACCESS_MS),
            token_type: "Bearer".to_owned(),
            expires_in: expires_at_ms.saturating_sub(self.now_ms) / 1_000,
            refresh_token: token(TokenKind::Refresh, REFRESH_MS),
            scope: newest.scope,
        }
    }
}
