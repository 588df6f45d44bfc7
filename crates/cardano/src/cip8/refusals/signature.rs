//! Tests of rejected messages: the Ed25519 signature is invalid.

use super::*;

#[test]
fn a_changed_signature_is_refused() {
    let wrong = valid_but(|it| it.signature = Some(bytes(&payment_key().sign(b"something else"))));
    assert_eq!(wrong, Err(Cip8Error::Signature(SignatureError::Mismatch)));
}

#[test]
fn a_signature_of_another_length_is_refused() {
    for length in [0, 63, 65, 128] {
        let other = valid_but(|it| it.signature = Some(bytes(&vec![1; length])));
        assert_eq!(other, Err(Cip8Error::SignatureLength));
    }
}

#[test]
fn a_scalar_that_is_not_reduced_is_refused() {
    let mut malleable = payment_key().sign(b"");
    malleable[63] |= 0xf0;
    let refused = valid_but(|it| it.signature = Some(bytes(&malleable)));
    assert_eq!(refused, Err(Cip8Error::Signature(SignatureError::ScalarNotReduced)));
}

#[test]
fn the_neutral_element_as_a_key_signs_nothing() {
    // With A and R the neutral element and S = 0, the equation holds for every message.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let address = Address::enterprise(KeyHash::of_public_key(&neutral));
    let mut signature = [0; 64];
    signature[0] = 1;
    let forged = Forge::for_address(payment_key(), &address.to_bytes())
        .with(|it| {
            it.key[3].1 = bytes(&neutral);
            it.signature = Some(bytes(&signature));
        })
        .build();
    assert_eq!(
        verdict_for(&forged, &address, &DIGEST),
        Err(Cip8Error::Signature(SignatureError::SmallOrder(Point::PublicKey)))
    );
}

#[test]
fn a_commitment_of_small_order_is_refused() {
    let refused = valid_but(|it| it.signature = Some(bytes(&[0; 64])));
    assert_eq!(refused, Err(Cip8Error::Signature(SignatureError::SmallOrder(Point::Commitment))));
}
