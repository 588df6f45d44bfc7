//! Tests of rejected messages: malformed hex and CBOR.

use super::*;

#[test]
fn bytes_after_the_key_are_refused() {
    assert_eq!(edited(|it| it.key.push(0)), Err(Cip8Error::NotCanonical(CosePart::Key)));
}

#[test]
fn bytes_after_the_signature_are_refused() {
    assert_eq!(edited(|it| it.sign1.push(0xf6)), Err(Cip8Error::NotCanonical(CosePart::Signature)));
}

#[test]
fn bytes_after_the_protected_headers_are_refused() {
    let longer = [encode(&Value::Map(Forge::valid().protected)), vec![0]].concat();
    assert_eq!(valid_but(|it| it.protected_bytes = Some(longer)), Err(Cip8Error::Malformed(CosePart::Signature)));
}

#[test]
fn empty_protected_headers_are_refused() {
    assert!(valid_but(|it| it.protected_bytes = Some(vec![])).is_err());
}

#[test]
fn an_indefinite_key_map_is_refused() {
    let refused = edited(|it| {
        it.key[0] = 0xbf;
        it.key.push(0xff);
    });
    assert_eq!(refused, Err(Cip8Error::NotCanonical(CosePart::Key)));
}

#[test]
fn an_indefinite_signature_array_is_refused() {
    let refused = edited(|it| {
        it.sign1[0] = 0x9f;
        it.sign1.push(0xff);
    });
    assert_eq!(refused, Err(Cip8Error::NotCanonical(CosePart::Signature)));
}

#[test]
fn indefinite_protected_headers_are_refused_even_when_signed_so() {
    let mut indefinite = encode(&Value::Map(Forge::valid().protected));
    indefinite[0] = 0xbf;
    indefinite.push(0xff);
    assert_eq!(
        valid_but(|it| it.protected_bytes = Some(indefinite)),
        Err(Cip8Error::NotCanonical(CosePart::Signature))
    );
}

#[test]
fn a_payload_in_chunks_is_refused() {
    let chunked = [&[0x5f, 0x58, 0x20][..], &DIGEST, &[0xff]].concat();
    let whole = [&[0x58, 0x20][..], &DIGEST].concat();
    let refused = edited(|it| replace(&mut it.sign1, &whole, &chunked));
    assert_eq!(refused, Err(Cip8Error::NotCanonical(CosePart::Signature)));
}

#[test]
fn a_longer_integer_than_needed_is_refused() {
    let refused = edited(|it| replace(&mut it.key, &[0x03, 0x27], &[0x03, 0x38, 0x07]));
    assert_eq!(refused, Err(Cip8Error::NotCanonical(CosePart::Key)));
}

#[test]
fn a_longer_length_than_needed_is_refused() {
    let refused = edited(|it| replace(&mut it.sign1, &[0x58, 0x40], &[0x59, 0x00, 0x40]));
    assert_eq!(refused, Err(Cip8Error::NotCanonical(CosePart::Signature)));
}

#[test]
fn an_integer_as_a_bignum_is_refused() {
    let refused = edited(|it| replace(&mut it.key, &[0x20, 0x06], &[0x20, 0xc2, 0x41, 0x06]));
    assert_eq!(refused, Err(Cip8Error::NotCanonical(CosePart::Key)));
}

#[test]
fn the_tag_of_a_signature_is_accepted_once_and_no_other() {
    assert_eq!(edited(|it| it.sign1.insert(0, 0xd2)), OK);
    let refused = Err(Cip8Error::Malformed(CosePart::Signature));
    assert_eq!(edited(|it| drop(it.sign1.splice(0..0, [0xd2, 0xd2]))), refused);
    for other in [0xd1, 0xd3, 0xc1] {
        assert_eq!(edited(|it| it.sign1.insert(0, other)), refused, "{other}");
    }
    // COSE_Sign's tag, and 18 in a longer spelling.
    assert_eq!(edited(|it| drop(it.sign1.splice(0..0, [0xd8, 0x62]))), refused);
    let longer = edited(|it| drop(it.sign1.splice(0..0, [0xd8, 0x12])));
    assert_eq!(longer, Err(Cip8Error::NotCanonical(CosePart::Signature)));
    assert_eq!(edited(|it| it.key.insert(0, 0xd2)), Err(Cip8Error::Malformed(CosePart::Key)));
}

#[test]
fn a_repeated_header_is_refused() {
    let again = |map: &mut Vec<(Value, Value)>, at: usize| map.push(map[at].clone());
    assert_eq!(valid_but(|it| again(&mut it.protected, 1)), Err(Cip8Error::Malformed(CosePart::Signature)));
    assert_eq!(valid_but(|it| again(&mut it.unprotected, 0)), Err(Cip8Error::Malformed(CosePart::Signature)));
    assert_eq!(valid_but(|it| again(&mut it.key, 3)), Err(Cip8Error::Malformed(CosePart::Key)));
}

#[test]
fn headers_in_another_order_are_accepted() {
    assert_eq!(valid_but(|it| it.protected.reverse()), OK);
    assert_eq!(valid_but(|it| it.key.reverse()), OK);
}

#[test]
fn a_structure_with_more_or_fewer_parts_is_refused() {
    for array in [vec![], vec![bytes(&[]); 3], vec![bytes(&[]); 5]] {
        let refused = edited(|it| it.sign1 = encode(&Value::Array(array)));
        assert_eq!(refused, Err(Cip8Error::Malformed(CosePart::Signature)));
    }
}

#[test]
fn oversized_messages_are_refused_before_they_are_decoded() {
    let Forged { key, sign1 } = Forge::valid().build();
    let of = |length: usize| vec![0xff; length];
    assert_eq!(SignedMessage::parse(&of(MAX_KEY_BYTES), &sign1), Err(Cip8Error::Malformed(CosePart::Key)));
    assert_eq!(SignedMessage::parse(&of(MAX_KEY_BYTES + 1), &sign1), Err(Cip8Error::TooLarge(CosePart::Key)));
    assert_eq!(SignedMessage::parse(&key, &of(MAX_SIGNATURE_BYTES)), Err(Cip8Error::Malformed(CosePart::Signature)));
    assert_eq!(SignedMessage::parse(&key, &of(MAX_SIGNATURE_BYTES + 1)), Err(Cip8Error::TooLarge(CosePart::Signature)));
    let at_most = "zz".repeat(MAX_KEY_BYTES);
    assert_eq!(DataSignature::from_hex(&at_most, ""), Err(Cip8Error::NotHex(CosePart::Key)));
    assert_eq!(DataSignature::from_hex(&(at_most + "z"), ""), Err(Cip8Error::TooLarge(CosePart::Key)));
    let at_most = "zz".repeat(MAX_SIGNATURE_BYTES);
    assert_eq!(DataSignature::from_hex("", &at_most), Err(Cip8Error::NotHex(CosePart::Signature)));
    assert_eq!(DataSignature::from_hex("", &(at_most + "z")), Err(Cip8Error::TooLarge(CosePart::Signature)));
}

#[test]
fn deep_nesting_is_refused_without_recursion() {
    let nested = edited(|it| it.sign1 = [vec![0x81; MAX_SIGNATURE_BYTES - 1], vec![0x80]].concat());
    assert_eq!(nested, Err(Cip8Error::Malformed(CosePart::Signature)));
}

#[test]
fn a_claimed_length_beyond_the_end_is_refused_without_allocating_it() {
    for head in [0x5b, 0x7b, 0x9b, 0xbb] {
        let huge = edited(|it| it.sign1 = [&[head][..], &[0x7f; 8]].concat());
        assert_eq!(huge, Err(Cip8Error::Malformed(CosePart::Signature)));
    }
}

#[test]
fn half_a_byte_of_hex_and_other_text_are_refused() {
    let forged = Forge::valid().build();
    let (key, sign1) = (hex::encode(&forged.key), hex::encode(&forged.sign1));
    assert_eq!(DataSignature::from_hex(&key[1..], &sign1), Err(Cip8Error::NotHex(CosePart::Key)));
    assert_eq!(DataSignature::from_hex(&key, &format!("0x{sign1}")), Err(Cip8Error::NotHex(CosePart::Signature)));
    let Forged { key: bytes, sign1: signature } = forged;
    let upper = DataSignature::from_hex(&key.to_uppercase(), &sign1.to_uppercase());
    assert_eq!(upper, Ok(DataSignature { key: bytes, signature }));
}

#[test]
fn an_empty_message_is_refused() {
    let Forged { key, sign1 } = Forge::valid().build();
    assert_eq!(SignedMessage::parse(&[], &sign1), Err(Cip8Error::Malformed(CosePart::Key)));
    assert_eq!(SignedMessage::parse(&key, &[]), Err(Cip8Error::Malformed(CosePart::Signature)));
}

#[test]
fn a_key_instead_of_the_signature_is_refused() {
    let Forged { key, sign1 } = Forge::valid().build();
    assert!(SignedMessage::parse(&sign1, &key).is_err());
}
