//! Tests of rejected messages: wrong keys, algorithms and header parameters.

use super::*;

#[test]
fn a_key_of_another_type_is_refused() {
    for kty in [int(2), int(4), text("OKP")] {
        assert_eq!(valid_but(|it| it.key[0].1 = kty), Err(Cip8Error::KeyType));
    }
}

#[test]
fn a_key_without_a_type_is_refused() {
    assert_eq!(valid_but(|it| drop(it.key.remove(0))), Err(Cip8Error::Malformed(CosePart::Key)));
}

#[test]
fn a_key_for_another_algorithm_is_refused() {
    for alg in [int(-7), int(-19), text("EdDSA")] {
        assert_eq!(valid_but(|it| it.key[1].1 = alg), Err(Cip8Error::Algorithm(CosePart::Key)));
    }
    assert_eq!(valid_but(|it| drop(it.key.remove(1))), Err(Cip8Error::Algorithm(CosePart::Key)));
}

#[test]
fn a_key_on_another_curve_is_refused() {
    for curve in [int(4), int(7), text("Ed25519")] {
        assert_eq!(valid_but(|it| it.key[2].1 = curve), Err(Cip8Error::Curve));
    }
    assert_eq!(valid_but(|it| drop(it.key.remove(2))), Err(Cip8Error::Curve));
}

#[test]
fn a_public_key_of_another_length_is_refused() {
    for length in [0, 31, 33, 64] {
        assert_eq!(valid_but(|it| it.key[3].1 = bytes(&vec![1; length])), Err(Cip8Error::PublicKey));
    }
    assert_eq!(valid_but(|it| drop(it.key.pop())), Err(Cip8Error::PublicKey));
}

#[test]
fn a_private_key_part_is_refused_under_a_valid_signature() {
    assert_eq!(valid_but(|it| it.key.push((int(-4), bytes(&[1; 32])))), Err(Cip8Error::PrivatePart));
}

#[test]
fn a_key_parameter_that_no_wallet_emits_is_refused() {
    for (label, value) in [(int(5), bytes(&[1])), (int(-3), bytes(&[1])), (int(99), int(1)), (text("x"), int(1))] {
        assert_eq!(valid_but(|it| it.key.push((label, value))), Err(Cip8Error::UnknownParameter(CosePart::Key)));
    }
}

#[test]
fn a_key_marked_for_verifying_is_accepted_and_for_anything_else_refused() {
    let marked = |operations: &[i64]| {
        let operations = operations.iter().map(|&operation| int(operation)).collect();
        valid_but(|it| it.key.push((int(4), Value::Array(operations))))
    };
    assert_eq!(marked(&[2]), OK);
    assert_eq!(marked(&[1]), Err(Cip8Error::KeyOperations));
    assert_eq!(marked(&[1, 2]), Err(Cip8Error::KeyOperations));
    assert_eq!(marked(&[]), Err(Cip8Error::Malformed(CosePart::Key)));
    assert_eq!(marked(&[2, 2]), Err(Cip8Error::Malformed(CosePart::Key)));
}

#[test]
fn a_signature_of_another_algorithm_is_refused() {
    for alg in [int(-7), int(-19), int(-10), text("EdDSA")] {
        assert_eq!(valid_but(|it| it.protected[0].1 = alg), Err(Cip8Error::Algorithm(CosePart::Signature)));
    }
    assert_eq!(valid_but(|it| drop(it.protected.remove(0))), Err(Cip8Error::Algorithm(CosePart::Signature)));
}

#[test]
fn an_algorithm_that_is_not_signed_is_refused() {
    let moved = valid_but(|it| {
        let alg = it.protected.remove(0);
        it.unprotected.push(alg);
    });
    assert_eq!(moved, Err(Cip8Error::UnknownParameter(CosePart::Signature)));
}

#[test]
fn key_ids_must_agree_where_both_have_one() {
    let ids = |key: &[u8], signed: &[u8]| {
        valid_but(|it| {
            it.key.push((int(2), bytes(key)));
            it.protected.push((int(4), bytes(signed)));
        })
    };
    assert_eq!(ids(b"same", b"same"), OK);
    assert_eq!(ids(b"same", b"Same"), Err(Cip8Error::KeyId));
    assert_eq!(ids(b"", b""), Err(Cip8Error::Malformed(CosePart::Key)));
}

#[test]
fn a_key_id_in_the_key_alone_must_name_the_key() {
    let id = |id: &[u8]| valid_but(|it| it.key.push((int(2), bytes(id))));
    assert_eq!(id(&payment_key().public_key()), OK);
    assert_eq!(id(payment_key().key_hash().as_bytes()), OK);
    assert_eq!(id(&owner().to_bytes()), OK);
    assert_eq!(id(b"mine"), Err(Cip8Error::KeyId));
}

#[test]
fn a_key_id_that_is_not_signed_must_name_the_key() {
    assert_eq!(valid_but(|it| it.protected.push((int(4), bytes(b"mine")))), OK);
    let unsigned = |id: &[u8]| valid_but(|it| it.unprotected.push((int(4), bytes(id))));
    assert_eq!(unsigned(&payment_key().public_key()), OK);
    assert_eq!(unsigned(payment_key().key_hash().as_bytes()), OK);
    assert_eq!(unsigned(&owner().to_bytes()), OK);
    assert_eq!(unsigned(b"mine"), Err(Cip8Error::KeyId));
    let both = |unsigned: &[u8]| {
        valid_but(|it| {
            it.protected.push((int(4), bytes(b"mine")));
            it.unprotected.push((int(4), bytes(unsigned)));
        })
    };
    assert_eq!(both(b"mine"), OK);
    assert_eq!(both(b"yours"), Err(Cip8Error::KeyId));
}

#[test]
fn a_header_that_no_wallet_emits_is_refused_even_when_it_is_signed() {
    for (label, value) in
        [(int(3), int(0)), (int(5), bytes(&[1])), (int(99), int(1)), (text("hashed"), Value::Bool(false))]
    {
        assert_eq!(
            valid_but(|it| it.protected.push((label, value))),
            Err(Cip8Error::UnknownParameter(CosePart::Signature))
        );
    }
    let unsigned = valid_but(|it| it.unprotected.push((text("note"), int(1))));
    assert_eq!(unsigned, Err(Cip8Error::UnknownParameter(CosePart::Signature)));
}

#[test]
fn a_critical_header_is_refused() {
    let critical = valid_but(|it| it.protected.push((int(2), Value::Array(vec![text("address")]))));
    assert_eq!(critical, Err(Cip8Error::UnknownParameter(CosePart::Signature)));
}
