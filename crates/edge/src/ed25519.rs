//! Ed25519 verification by the runtime's WebCrypto: several times as fast as in WebAssembly.

use cardano::keys::VerifyEd25519;
use js_sys::{Array, Object, Reflect, Uint8Array, global};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{CryptoKey, WorkerGlobalScope};

/// The runtime's verifier. What WebCrypto leaves open about odd keys is decided before, in `cardano::keys::strict`.
#[derive(Clone, Copy, Debug)]
pub struct WebCrypto;

impl VerifyEd25519 for WebCrypto {
    async fn verify(&self, key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        verify(key, message, signature).await.is_ok_and(|valid| valid)
    }
}

async fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Result<bool, JsValue> {
    let subtle = global().unchecked_into::<WorkerGlobalScope>().crypto()?.subtle();
    let algorithm = Object::new();
    Reflect::set(&algorithm, &"name".into(), &"Ed25519".into())?;
    let usages = Array::of1(&"verify".into());
    let imported = subtle.import_key_with_object("raw", &Uint8Array::from(&key[..]), &algorithm, false, &usages)?;
    let key: CryptoKey = JsFuture::from(imported).await?.dyn_into()?;
    let (signature, message) = (Uint8Array::from(&signature[..]), Uint8Array::from(message));
    let verified = subtle.verify_with_object_and_js_u8_array_and_js_u8_array(&algorithm, &key, &signature, &message)?;
    Ok(JsFuture::from(verified).await?.is_truthy())
}
