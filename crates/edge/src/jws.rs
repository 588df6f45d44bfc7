//! Signatures of JSON Web Signatures, verified by the runtime's WebCrypto.

use agents::oauth::assertion::{PublicJwk, VerifyJws};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use js_sys::{Array, Object, Reflect, Uint8Array, global};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{CryptoKey, WorkerGlobalScope};

use crate::ed25519::WebCrypto;

impl VerifyJws for WebCrypto {
    async fn verify(&self, key: &PublicJwk, message: &[u8], signature: &[u8]) -> bool {
        verify(key, message, signature).await.is_ok_and(|valid| valid)
    }
}

fn object(members: &[(&str, &str)]) -> Result<Object, JsValue> {
    let object = Object::new();
    for (name, value) in members {
        Reflect::set(&object, &(*name).into(), &(*value).into())?;
    }
    Ok(object)
}

async fn verify(key: &PublicJwk, message: &[u8], signature: &[u8]) -> Result<bool, JsValue> {
    let b64 = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    // Each type of key goes with one algorithm: what is imported for one verifies nothing else.
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
    let subtle = global().unchecked_into::<WorkerGlobalScope>().crypto()?.subtle();
    let usages = Array::of1(&"verify".into());
    let imported = subtle.import_key_with_object("jwk", &jwk, &algorithm, false, &usages)?;
    let key: CryptoKey = JsFuture::from(imported).await?.dyn_into()?;
    let (signature, message) = (Uint8Array::from(signature), Uint8Array::from(message));
    let verified = subtle.verify_with_object_and_js_u8_array_and_js_u8_array(&algorithm, &key, &signature, &message)?;
    Ok(JsFuture::from(verified).await?.is_truthy())
}
