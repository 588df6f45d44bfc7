//! Codes, access tokens and refresh tokens: each says what it is, and carries a MAC that only we can make.
//!
//! ```text
//!   surety_rt_ base64url( grant (16) ‖ generation (4) ‖ end, POSIX ms (8) ‖ HMAC-SHA-256 over kind, issuer and these (32) )
//! ```
//!
//! So garbage is refused without asking the database, and a stolen database opens nothing. A client that lost the
//! answer to a refresh gets the same token again: it is made from the grant's row alone.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Authority;

/// Fewest bytes of the secret: as much as the MAC can be worth.
pub const MIN_SECRET_BYTES: usize = 32;
/// Separates this key from any other derived from the same secret, and this layout from later ones.
const KEY_DOMAIN: &[u8] = b"surety:oauth:v1";
const PAYLOAD_BYTES: usize = 28;
const MAC_BYTES: usize = 32;

/// The server's secret for tokens and sealed requests, bound to the issuer.
#[derive(Clone)]
pub struct Secrets {
    mac: Hmac<Sha256>,
}

/// The secret is too short to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret for tokens has at least {MIN_SECRET_BYTES} bytes")]
pub struct TokenSecretError;

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// With a key derived from a secret of the platform. Changing that ends every grant and every open consent page.
    ///
    /// # Errors
    /// Fewer than [`MIN_SECRET_BYTES`].
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
        // Label and issuer contain no line feed, so no two of them give the same input.
        for line in [label, issuer] {
            mac.update(line.as_bytes());
            mac.update(b"\n");
        }
        mac.update(payload);
        mac
    }

    /// `payload` with its MAC behind it.
    pub(super) fn seal(&self, label: &str, issuer: &str, payload: &[u8]) -> Vec<u8> {
        let tag = self.mac(label, issuer, payload).finalize().into_bytes();
        [payload, &tag[..]].concat()
    }

    /// The payload of what [`Secrets::seal`] made with this label for this issuer.
    pub(super) fn open<'a>(&self, label: &str, issuer: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (payload, tag) = sealed.split_at_checked(sealed.len().checked_sub(MAC_BYTES)?)?;
        self.mac(label, issuer, payload).verify_slice(tag).is_ok().then_some(payload)
    }
}

/// The name of a grant: 128 random bits, 32 hexadecimal characters. Not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantId([u8; 16]);

impl GrantId {
    /// From 128 random bits.
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

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An authorization code: generation 0.
    Code,
    /// Opens `/mcp`.
    Access,
    /// Gets the next generation.
    Refresh,
}

impl TokenKind {
    /// What tokens of the kind begin with, so that scanners for leaked secrets know them.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Code => "surety_code_",
            Self::Access => "surety_at_",
            Self::Refresh => "surety_rt_",
        }
    }
}

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub grant: GrantId,
    pub generation: u32,
    pub expires_at_ms: u64,
}

impl Claims {
    /// The token that says this: the same one every time.
    pub(super) fn token(&self, kind: TokenKind, authority: &Authority) -> String {
        let payload = [&self.grant.0[..], &self.generation.to_be_bytes(), &self.expires_at_ms.to_be_bytes()].concat();
        let sealed = authority.secrets.seal(kind.prefix(), &authority.issuer, &payload);
        format!("{}{}", kind.prefix(), BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    /// What a token of this kind says, if we made it for this issuer. It may be over.
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
