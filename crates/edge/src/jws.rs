//! Verifies signatures of JSON Web Signatures with the runtime's WebCrypto.

use agents::oauth::assertion::{PublicJwk, VerifyJws};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use wasm_bindgen::JsValue;

use crate::ed25519::{self, WebCrypto, object};

impl VerifyJws for WebCrypto {
    async fn verify(&self, key: &PublicJwk, message: &[u8], signature: &[u8]) -> bool {
        verify(key, message, signature).await.is_ok_and(|valid| valid)
    }
}

async fn verify(key: &PublicJwk, message: &[u8], signature: &[u8]) -> Result<bool, JsValue> {
    let b64 = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    // Each type of key has one algorithm. A key imported for one verifies nothing else.
    let (jwk, algorithm) = match key {
        PublicJwk::Rsa { n, e } => (
            object(&[("kty", "RSA"), ("n", &b64(n)), ("e", &b64(e))])?,
            object(&[("name", "RSASSA-PKCS1-v1_5"), ("hash", "SHA-256")])?,
        ),
        PublicJwk::P256 { x, y } => (
            object(&[("kty", "EC"), ("crv", "P-256"), ("x", &b64(x)), ("y", &b64(y))])?,
            object(&[("name", "ECDSA"), ("namedCurve", "P-256"), ("hash", "SHA-256")])?,
        ),
    };
    ed25519::verify(("jwk", &jwk), &algorithm, message, signature).await
}
