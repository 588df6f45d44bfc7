use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use ed25519_dalek::hazmat::ExpandedSecretKey;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// Signatures on which verifiers disagree, each with the stage that must reject it: [`strict::check`], or every
/// verifier. WebCrypto is tested with the same file (tests/e2e/chain/webcrypto.test.ts).
const CASES: &str = include_str!("../../tests/fixtures/cip8/strictness.json");

#[derive(Deserialize)]
struct Cases {
    cases: Vec<KeyVector>,
}

#[derive(Deserialize)]
struct KeyVector {
    about: String,
    message: String,
    pub_key: String,
    signature: String,
    refused_by: Option<String>,
}

fn cases() -> Vec<KeyVector> {
    serde_json::from_str::<Cases>(CASES).unwrap().cases
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex::decode(text).unwrap().try_into().unwrap()
}

fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a native port never waits"),
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

#[test]
fn the_native_port_answers_every_disputed_signature_as_the_ledger_does() {
    let cases = cases();
    assert_eq!(cases.len(), 12);
    for case in cases {
        let (message, key, signature) =
            (hex::decode(&case.message).unwrap(), bytes(&case.pub_key), bytes(&case.signature));
        let answer = ready(verify(&Native, &key, &message, &signature));
        let refused_by = answer.err().map(|error| match error {
            SignatureError::Mismatch => "verifier",
            _ => "encoding",
        });
        assert_eq!(refused_by, case.refused_by.as_deref(), "{}: {answer:?}", case.about);
        assert_eq!(Native::verify(&key, &message, &signature), answer, "{}", case.about);
    }
}

#[test]
fn the_first_vector_of_rfc_8032_signs_and_verifies() {
    let seed = bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    let key = SigningKey::from_seed(&seed).unwrap();
    assert_eq!(hex::encode(key.public_key()), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    assert_eq!(
        hex::encode(key.sign(b"")),
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    );
    assert_eq!(Native::verify(&key.public_key(), b"", &key.sign(b"")), Ok(()));
}

#[test]
fn another_key_or_message_does_not_verify() {
    let signature = key(1).sign(b"message");
    assert_eq!(Native::verify(&key(1).public_key(), b"message", &signature), Ok(()));
    assert_eq!(Native::verify(&key(2).public_key(), b"message", &signature), Err(SignatureError::Mismatch));
    assert_eq!(Native::verify(&key(1).public_key(), b"massage", &signature), Err(SignatureError::Mismatch));
}

#[test]
fn a_scalar_of_the_group_order_or_more_is_refused() {
    let (public, signature) = (key(1).public_key(), key(1).sign(b"message"));
    let order = bytes::<32>("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    // The malleated twin of a valid signature: S + L.
    let mut carry = 0u16;
    let mut twin = signature;
    for (byte, add) in twin[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(Native::verify(&public, b"message", &twin), Err(SignatureError::ScalarNotReduced));
    let mut exactly = signature;
    exactly[32..].copy_from_slice(&order);
    assert_eq!(strict::check(&public, &exactly), Err(SignatureError::ScalarNotReduced));
    exactly[32] -= 1;
    assert_eq!(strict::check(&public, &exactly), Ok(()));
}

#[test]
fn each_point_of_small_order_is_refused_as_key_and_as_commitment() {
    let (public, signature) = (key(1).public_key(), key(1).sign(b"message"));
    for point in curve25519_dalek::constants::EIGHT_TORSION {
        // Both sign bits: lenient decoders accept x = 0 with either sign.
        for sign in [0, 0x80] {
            let mut encoded = point.compress().to_bytes();
            encoded[31] ^= sign;
            assert_eq!(strict::check(&encoded, &signature), Err(SignatureError::SmallOrder(Point::PublicKey)));
            let mut forged = signature;
            forged[..32].copy_from_slice(&encoded);
            assert_eq!(strict::check(&public, &forged), Err(SignatureError::SmallOrder(Point::Commitment)));
        }
    }
}

#[test]
fn a_coordinate_of_the_prime_or_more_is_refused() {
    let (public, signature) = (key(1).public_key(), key(1).sign(b"message"));
    for low in 0xed..=0xff {
        let mut encoded = [0xff; 32];
        (encoded[0], encoded[31]) = (low, 0x7f);
        assert_eq!(strict::check(&encoded, &signature), Err(SignatureError::NonCanonicalPoint(Point::PublicKey)));
        let mut forged = signature;
        forged[..32].copy_from_slice(&encoded);
        assert_eq!(strict::check(&public, &forged), Err(SignatureError::NonCanonicalPoint(Point::Commitment)));
    }
}

#[test]
fn a_signature_that_holds_only_with_the_cofactor_is_refused() {
    // A public key with a component of order 8, which its owner can craft. The equation then holds only up to that
    // component.
    let secret = ExpandedSecretKey::from_bytes(&[7; 64]);
    let torsion = curve25519_dalek::constants::EIGHT_TORSION[1];
    let public = (curve25519_dalek::constants::ED25519_BASEPOINT_POINT * secret.scalar + torsion).compress();
    let public_key = ed25519_dalek::VerifyingKey::from_bytes(public.as_bytes()).unwrap();
    let mut disagreements = 0;
    for attempt in 0..16u8 {
        let message = [attempt];
        let signature = ed25519_dalek::hazmat::raw_sign::<sha2::Sha512>(&secret, &message, &public_key).to_bytes();
        let cofactored = ed25519_compact::PublicKey::new(*public.as_bytes())
            .verify(message, &ed25519_compact::Signature::new(signature))
            .is_ok();
        let ours = Native::verify(public.as_bytes(), &message, &signature).is_ok();
        assert!(cofactored, "the crafted signature is good with the cofactor");
        disagreements += usize::from(!ours);
    }
    assert!(disagreements > 0, "some message must show the difference");
}

#[test]
fn a_seed_of_zeros_is_refused() {
    assert_eq!(SigningKey::from_seed(&[0; 32]).unwrap_err(), KeyError::ZeroSeed);
}

#[test]
fn a_key_prints_what_is_public_only() {
    let printed = format!("{:?}", key(0x42));
    assert!(printed.contains(&hex::encode(key(0x42).public_key())));
    assert!(!printed.contains("4242"));
}

#[test]
fn a_wallet_key_depends_on_master_version_and_owner_and_never_changes() {
    let derive = |master: &[u8], version, owner| derive_wallet_key(master, version, owner).unwrap().public_key();
    let one = derive(&[1; 32], 1, "demo");
    assert_eq!(one, derive(&[1; 32], 1, "demo"));
    for other in [derive(&[2; 32], 1, "demo"), derive(&[1; 32], 2, "demo"), derive(&[1; 32], 1, "dem0")] {
        assert_ne!(one, other);
    }
    // Wallets hold money, and changing this value changes the address of every service wallet.
    assert_eq!(hex::encode(one), "7ba156a48c0729fc66c089165f364c6d93d2c8bc62890f4f00cf4210c18aa175");
}

#[test]
fn a_master_secret_shorter_than_32_bytes_is_refused() {
    assert_eq!(derive_wallet_key(&[1; 31], 1, "demo").unwrap_err(), KeyError::ShortMaster);
    assert!(derive_wallet_key(&[1; 32], 1, "demo").is_ok());
}

proptest! {
    #[test]
    fn a_signature_verifies_and_any_flipped_bit_does_not(
        seed in any::<[u8; 32]>().prop_filter("not zeros", |s| *s != [0; 32]),
        message in proptest::collection::vec(any::<u8>(), 0..80),
        bit in 0usize..512,
    ) {
        let key = SigningKey::from_seed(&seed).unwrap();
        let mut signature = key.sign(&message);
        prop_assert_eq!(Native::verify(&key.public_key(), &message, &signature), Ok(()));
        signature[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Native::verify(&key.public_key(), &message, &signature).is_err());
    }

    #[test]
    fn no_bytes_panic(key in any::<[u8; 32]>(), r in any::<[u8; 32]>(), s in any::<[u8; 32]>()) {
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r);
        signature[32..].copy_from_slice(&s);
        prop_assert!(Native::verify(&key, b"message", &signature).is_err());
    }
}
