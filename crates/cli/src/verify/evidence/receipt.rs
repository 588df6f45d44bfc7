//! The receipt that a service signs when it delivers (x402's extension `offer-receipt`, section 5: a JWS).

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use cardano::{Address, TxHash, keys::Native};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Flaw, ensure, flaw};

/// A receipt with the key that it names.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Receipt {
    /// Compact JWS, EdDSA.
    pub jws: String,
    /// The public key (Ed25519, base64url), as the service published it in `/.well-known/did.json`. That it is the service's, its
    /// address alone says.
    pub public_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    resource_url: String,
    payer: String,
    transaction: String,
}

impl Receipt {
    /// A receipt with its key out of the service's DID document; `None` where that does not have it.
    pub fn of(jws: String, did: &Value) -> Option<Self> {
        let header: Value = serde_json::from_slice(&BASE64.decode(jws.split('.').next()?).ok()?).ok()?;
        let methods = did.get("verificationMethod")?.as_array()?;
        let method = methods.iter().find(|method| method.get("id") == header.get("kid"))?;
        Some(Self { public_key: method.pointer("/publicKeyJwk/x")?.as_str()?.to_owned(), jws })
    }

    /// That it is signed, for this purchase of this listing by this buyer.
    pub(super) fn check(&self, purchase: &TxHash, listing: &str, buyer: &Address) -> Result<(), Flaw> {
        let payload = self.signed().ok_or_else(|| flaw("receipt", "its signature does not hold"))?;
        ensure(payload.transaction == purchase.to_string(), "receipt", "it is for another purchase")?;
        let path = format!("/listings/{listing}/unlock");
        ensure(payload.resource_url.ends_with(&path), "receipt", "it is for another listing")?;
        ensure(payload.payer == buyer.to_string(), "receipt", "it is for another buyer")
    }

    fn signed(&self) -> Option<Payload> {
        let (message, signature) = self.jws.rsplit_once('.')?;
        let key: [u8; 32] = BASE64.decode(&self.public_key).ok()?.try_into().ok()?;
        let signature: [u8; 64] = BASE64.decode(signature).ok()?.try_into().ok()?;
        Native::verify(&key, message.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&BASE64.decode(message.split_once('.')?.1).ok()?).ok()
    }
}
