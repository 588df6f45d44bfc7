//! Secrets and signatures of messages, by the Standard Webhooks specification 1.0.0 (symmetric scheme `v1`).

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Domain separator for the keys of webhooks, because other keys are derived from the same master secrets.
const DOMAIN: &[u8] = b"surety:webhook:v1\n";
/// Prefix of a secret's text.
const PREFIX: &str = "whsec_";

/// Random bits of a webhook, in hexadecimal. The webhook's secret is derived from these bits and the master secret; the
/// bits alone do not reveal it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salt(String);

impl Salt {
    /// Creates a salt from random bits.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        Self(hex::encode(random))
    }

    /// Creates a salt from its stored text.
    #[must_use]
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the salt as text, in the form in which it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Secret that signs the messages of one webhook. It is derived from the platform's master secret whenever it is
/// needed, so the database does not contain it.
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// Derives the secret of an owner's webhook with HKDF-SHA-256. Never returns `None`, because HKDF can output 32
    /// bytes.
    #[must_use]
    pub fn derive(master: &[u8], key_version: u32, owner: &str, salt: &Salt) -> Option<Self> {
        // The salt has a fixed length and the owner comes last, so different inputs never produce the same info.
        let info = [DOMAIN, &key_version.to_be_bytes(), salt.0.as_bytes(), owner.as_bytes()];
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, master).expand_multi_info(&info, key.as_mut()).ok()?;
        Some(Self(key))
    }

    /// Returns the secret's text for the receiver: `whsec_` and base64.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0.as_ref()))
    }

    /// Signs a message, and returns the value of the header `webhook-signature`. `timestamp` is the time of the attempt
    /// in POSIX seconds. Never returns `None`, because HMAC accepts keys of any length.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &str) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_ref()).ok()?;
        // Ids contain no full stop.
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: [u8; 32] = [7; 32];

    fn secret(master: &[u8], version: u32, owner: &str, salt: u8) -> String {
        Secret::derive(master, version, owner, &Salt::new([salt; 16])).unwrap().reveal()
    }

    #[test]
    fn each_owner_webhook_version_and_platform_has_a_secret_of_its_own() {
        let one = secret(&MASTER, 1, "owner", 1);
        assert_eq!(one, secret(&MASTER, 1, "owner", 1));
        for other in [
            secret(&MASTER, 1, "owner", 2),
            secret(&MASTER, 1, "other", 1),
            secret(&MASTER, 2, "owner", 1),
            secret(&[8; 32], 1, "owner", 1),
        ] {
            assert_ne!(other, one);
        }
        let key = STANDARD.decode(one.strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(key.len(), 32, "24 to 64 bytes");
        let hidden = Secret::derive(&MASTER, 1, "owner", &Salt::new([1; 16])).unwrap();
        assert_eq!(format!("{hidden:?}"), "Secret(..)");
    }

    #[test]
    fn a_signature_is_the_specifications_and_covers_id_time_and_body() {
        // The example of the reference implementations: MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw signs {"test": 2432232314}.
        let key: Vec<u8> = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}");
        let expected = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(STANDARD.encode(mac.finalize().into_bytes()), expected);
        let secret = Secret::derive(&MASTER, 1, "owner", &Salt::new([1; 16])).unwrap();
        let signed = secret.sign("evt_1", 1_614_265_330, "{}").unwrap();
        assert!(signed.starts_with("v1,"));
        for (id, at, body) in
            [("evt_2", 1_614_265_330, "{}"), ("evt_1", 1_614_265_331, "{}"), ("evt_1", 1_614_265_330, "{ }")]
        {
            assert_ne!(secret.sign(id, at, body).unwrap(), signed);
        }
    }
}
