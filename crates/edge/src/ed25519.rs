//! Ed25519 signatures by the runtime's WebCrypto, several times as fast as in WebAssembly. Each isolate imports each
//! signing key once.

use std::{cell::RefCell, collections::BTreeMap};

use cardano::keys::{SignEd25519, SigningKey, VerifyEd25519};
use js_sys::{Array, Object, Reflect, Uint8Array, global};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{CryptoKey, SubtleCrypto, WorkerGlobalScope};
use worker::console_error;
use zeroize::Zeroizing;

/// Ed25519 signer and verifier on the runtime's WebCrypto. Keys and signatures about which WebCrypto implementations
/// may disagree are rejected first, by `cardano::keys::strict`.
#[derive(Clone, Copy, Debug)]
pub struct WebCrypto;

/// The bytes that precede the seed in the PKCS #8 encoding of an Ed25519 key (RFC 8410, section 7).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

thread_local! {
    /// The service's signing keys by public key, imported into the runtime as non-extractable.
    static SIGNERS: RefCell<BTreeMap<[u8; 32], CryptoKey>> = const { RefCell::new(BTreeMap::new()) };
}

impl VerifyEd25519 for WebCrypto {
    async fn verify(&self, key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        let Ok(algorithm) = algorithm() else { return false };
        let key = Uint8Array::from(&key[..]);
        verify(("raw", &key), &algorithm, message, signature).await.is_ok_and(|valid| valid)
    }
}

impl SignEd25519 for WebCrypto {
    async fn sign(&self, key: &SigningKey, message: &[u8]) -> [u8; 64] {
        match sign(key, message).await {
            Ok(signature) => signature,
            Err(error) => {
                // The fallback produces the same bytes, more slowly.
                console_error!("WebCrypto does not sign: {error:?}");
                key.sign(message)
            }
        }
    }
}

fn subtle() -> Result<SubtleCrypto, JsValue> {
    Ok(global().unchecked_into::<WorkerGlobalScope>().crypto()?.subtle())
}

/// Creates a JavaScript object with these string members.
pub(crate) fn object(members: &[(&str, &str)]) -> Result<Object, JsValue> {
    let object = Object::new();
    for (name, value) in members {
        Reflect::set(&object, &(*name).into(), &(*value).into())?;
    }
    Ok(object)
}

async fn import(format: &str, key: &Object, algorithm: &Object, usage: &str) -> Result<CryptoKey, JsValue> {
    let usages = Array::of1(&usage.into());
    let imported = subtle()?.import_key_with_object(format, key, algorithm, false, &usages)?;
    JsFuture::from(imported).await?.dyn_into()
}

/// Verifies a signature by WebCrypto. `format` is the key's format, and the algorithm's parameters are JavaScript
/// objects.
pub(crate) async fn verify(
    (format, key): (&str, &Object),
    algorithm: &Object,
    message: &[u8],
    signature: &[u8],
) -> Result<bool, JsValue> {
    let key = import(format, key, algorithm, "verify").await?;
    let (signature, message) = (Uint8Array::from(signature), Uint8Array::from(message));
    let verified =
        subtle()?.verify_with_object_and_js_u8_array_and_js_u8_array(algorithm, &key, &signature, &message)?;
    Ok(JsFuture::from(verified).await?.is_truthy())
}

fn algorithm() -> Result<Object, JsValue> {
    object(&[("name", "Ed25519")])
}

async fn sign(key: &SigningKey, message: &[u8]) -> Result<[u8; 64], JsValue> {
    let public = key.public_key();
    let known = SIGNERS.with_borrow(|signers| signers.get(&public).cloned());
    let signer = match known {
        Some(signer) => signer,
        None => {
            // The workers' keys all have seeds. A key without one cannot be imported.
            let Some(seed) = key.seed() else { return Ok(key.sign(message)) };
            let secret = Zeroizing::new([&PKCS8[..], &seed[..]].concat());
            let signer = import("pkcs8", &Uint8Array::from(&secret[..]), &algorithm()?, "sign").await?;
            SIGNERS.with_borrow_mut(|signers| signers.insert(public, signer.clone()));
            signer
        }
    };
    let signing = subtle()?.sign_with_str_and_js_u8_array("Ed25519", &signer, &Uint8Array::from(message))?;
    let signature = Uint8Array::new(&JsFuture::from(signing).await?).to_vec();
    signature.try_into().map_err(|_| JsValue::from_str("a signature of another length"))
}
