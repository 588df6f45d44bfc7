//! Authorization codes, access tokens and refresh tokens. Each contains its claims and a MAC that only this service can
//! compute.
//!
//! ```text
//! surety_rt_ base64url( grant (16) ‖ generation (4) ‖ end, POSIX ms (8) ‖ HMAC-SHA-256 over kind, issuer and these (32) )
//! ```
//!
//! Invalid tokens are rejected without a database query, and a stolen database contains no usable token. Tokens are
//! computed from the grant's row alone, so a client that lost the answer to a refresh gets the same token again.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Authority;

/// Minimum length of the server's secret in bytes. The strength of the MAC depends on it.
pub const MIN_SECRET_BYTES: usize = 32;
/// Domain separator for deriving the token key from the master secret. Other keys are derived from the same secret. The
/// suffix `v1` is the version of the token format.
const KEY_DOMAIN: &[u8] = b"surety:oauth:v1";
const PAYLOAD_BYTES: usize = 28;
const MAC_BYTES: usize = 32;

/// The server's secret key for tokens and sealed consent requests.
#[derive(Clone)]
pub struct Secrets {
    mac: Hmac<Sha256>,
}

/// The secret is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret for tokens has at least {MIN_SECRET_BYTES} bytes")]
pub struct TokenSecretError;

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// Derives the key from `secret`. A new secret invalidates every grant and every open consent page.
    ///
    /// # Errors
    /// [`TokenSecretError`] if the secret has fewer than [`MIN_SECRET_BYTES`].
    pub fn new(secret: &[u8]) -> Result<Self, TokenSecretError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(TokenSecretError);
        }
        let mut key = zeroize::Zeroizing::new([0_u8; 32]);
        Hkdf::<Sha256>::new(None, secret).expand(KEY_DOMAIN, key.as_mut()).map_err(|_| TokenSecretError)?;
        Ok(Self { mac: Hmac::new_from_slice(key.as_ref()).map_err(|_| TokenSecretError)? })
    }

    fn mac(&self, label: &str, issuer: &str, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        // Label and issuer contain no line feed, so different inputs never have the same encoding.
        for line in [label, issuer] {
            mac.update(line.as_bytes());
            mac.update(b"\n");
        }
        mac.update(payload);
        mac
    }

    /// Returns `payload` followed by a MAC. `label` names the purpose, so that a value sealed for one purpose is not
    /// accepted for another.
    pub(super) fn seal(&self, label: &str, issuer: &str, payload: &[u8]) -> Vec<u8> {
        let tag = self.mac(label, issuer, payload).finalize().into_bytes();
        [payload, &tag[..]].concat()
    }

    /// Returns the payload of a value that [`Secrets::seal`] made with this label and issuer, or `None` for any other
    /// value.
    pub(super) fn open<'a>(&self, label: &str, issuer: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (payload, tag) = sealed.split_at_checked(sealed.len().checked_sub(MAC_BYTES)?)?;
        self.mac(label, issuer, payload).verify_slice(tag).is_ok().then_some(payload)
    }
}

/// Id of a grant: 128 random bits, written as 32 hexadecimal characters. It is not secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantId([u8; 16]);

impl GrantId {
    /// Creates an id from 128 random bits.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Kind of a token, which determines what the token is accepted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Authorization code, the first token of a grant.
    Code,
    /// Access token for `/mcp`.
    Access,
    /// Refresh token, which a client exchanges for new tokens.
    Refresh,
}

impl TokenKind {
    /// Returns the prefix of tokens of this kind, by which scanners for leaked secrets recognise them.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Code => "surety_code_",
            Self::Access => "surety_at_",
            Self::Refresh => "surety_rt_",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub grant: GrantId,
    pub generation: u32,
    pub expires_at_ms: u64,
}

impl Claims {
    /// Encodes the claims as a token of this kind. The same claims always give the same token.
    pub(super) fn token(&self, kind: TokenKind, authority: &Authority) -> String {
        let payload = [&self.grant.0[..], &self.generation.to_be_bytes(), &self.expires_at_ms.to_be_bytes()].concat();
        let sealed = authority.secrets.seal(kind.prefix(), &authority.issuer, &payload);
        format!("{}{}", kind.prefix(), BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Decodes a token of this kind. Returns `None` unless this server made the token for this issuer. Does not check
    /// whether the token has expired.
    pub(super) fn read(token: &str, kind: TokenKind, authority: &Authority) -> Option<Self> {
        let encoded = token.strip_prefix(kind.prefix())?;
        let mut sealed = [0; PAYLOAD_BYTES + MAC_BYTES];
        let length = BASE64_URL_SAFE_NO_PAD.decode_slice(encoded, &mut sealed).ok()?;
        let payload = authority.secrets.open(kind.prefix(), &authority.issuer, sealed.get(..length)?)?;
        let (grant, rest) = payload.split_first_chunk::<16>()?;
        let (generation, end) = rest.split_first_chunk::<4>()?;
        Some(Self {
            grant: GrantId(*grant),
            generation: u32::from_be_bytes(*generation),
            expires_at_ms: u64::from_be_bytes(end.try_into().ok()?),
        })
    }
}
