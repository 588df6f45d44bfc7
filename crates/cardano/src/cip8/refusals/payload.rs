//! Tests of rejected messages: the payload differs from the expected one.

use super::*;

#[test]
fn another_digest_is_refused() {
    assert_eq!(valid_but(|it| it.payload = bytes(&[0xac; 32])), Err(Cip8Error::OtherPayload));
}

#[test]
fn a_hashed_payload_is_accepted_where_it_is_marked_as_such() {
    assert_eq!(verdict(Forge::hashed()), OK);
    let unmarked = Forge::hashed().with(|it| it.unprotected = Forge::valid().unprotected);
    assert_eq!(verdict(unmarked), Err(Cip8Error::OtherPayload));
}

#[test]
fn a_raw_payload_marked_as_hashed_is_refused() {
    let marked = |it: &mut Forge| it.unprotected = Forge::hashed().unprotected;
    assert_eq!(valid_but(marked), Err(Cip8Error::OtherPayload));
    let signed_hash = Forge::valid().with(marked).with(|it| it.signed_payload = Some(blake2b::<28>(&DIGEST).into()));
    assert_eq!(verdict(signed_hash), Err(Cip8Error::OtherPayload));
}

#[test]
fn a_payload_hashed_twice_is_refused() {
    let twice = Forge::hashed().with(|it| it.payload = bytes(&blake2b::<28>(&blake2b::<28>(&DIGEST))));
    assert_eq!(verdict(twice), Err(Cip8Error::OtherPayload));
}

#[test]
fn the_digests_hex_as_a_text_message_is_refused() {
    let spelled = hex::encode(DIGEST);
    assert_eq!(valid_but(|it| it.payload = bytes(spelled.as_bytes())), Err(Cip8Error::OtherPayload));
}

#[test]
fn a_payload_with_bytes_after_the_digest_is_refused() {
    let longer = [&DIGEST[..], &[0]].concat();
    assert_eq!(valid_but(|it| it.payload = bytes(&longer)), Err(Cip8Error::OtherPayload));
}

#[test]
fn a_detached_payload_is_refused() {
    let detached = valid_but(|it| {
        it.payload = Value::Null;
        it.signed_payload = Some(DIGEST.to_vec());
    });
    assert_eq!(detached, Err(Cip8Error::Detached));
}

#[test]
fn external_data_in_the_signature_is_refused() {
    assert_eq!(valid_but(|it| it.aad = vec![1]), Err(Cip8Error::Signature(SignatureError::Mismatch)));
}

#[test]
fn a_signature_over_another_cose_structure_is_refused() {
    for context in ["Signature", "CounterSignature", "Signature2"] {
        let forged = valid_but(|it| it.context = context);
        assert_eq!(forged, Err(Cip8Error::Signature(SignatureError::Mismatch)), "{context}");
    }
}

#[test]
fn the_hashed_header_is_absent_or_a_boolean() {
    assert_eq!(valid_but(|it| it.unprotected.clear()), OK);
    for other in [int(0), Value::Null, text("false"), bytes(&[])] {
        assert_eq!(valid_but(|it| it.unprotected[0].1 = other), Err(Cip8Error::Hashed));
    }
}

#[test]
fn a_version_other_than_one_is_refused() {
    assert_eq!(valid_but(|it| it.unprotected.push((text("version"), int(1)))), OK);
    for other in [int(0), int(2), text("1"), Value::Null] {
        assert_eq!(valid_but(|it| it.unprotected.push((text("version"), other))), Err(Cip8Error::Version));
    }
}
