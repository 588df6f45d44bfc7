//! Tests with the two vectors of the extension's document, its table of outcomes, and the metadata that a transaction
//! may have under the label.

use ciborium::Value as Cbor;
use serde_json::json;

use super::*;

const GET: HttpRequest<'_> =
    HttpRequest { method: "GET", url: "https://api.example.com/article/A", body: b"", headers: &[] };
const SALT: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const H: &str = "712cdce8a4e64fc7e2b2fb3b70ba41317ff606d84e98890c65d4fd828276a621";

fn salt() -> Salt {
    Salt::new(std::array::from_fn(|index| u8::try_from(index).unwrap()))
}

fn get() -> RequestDigest {
    RequestDigest::of(&GET).unwrap()
}

#[test]
fn a_bodiless_get_has_the_documents_digests() {
    assert_eq!(get().0.to_string(), "22351cc0b694189e9feb7bab0fb3956fc1dcc0927b704406d2428e0fe821acd1");
    let published = get().published();
    assert_eq!(published.digest.to_string(), "556fb70df9929f3ebd96b8b51b772374a9d38379b3983f820bf5e4629bd34e68");
    assert_eq!(published.check(), Ok(()));
    assert_eq!(salt().disclosed()[NAME]["info"]["salt"], SALT);
    let commitment = get().salted(&salt());
    assert_eq!(commitment.to_text(), H);
    let data = commitment.auxiliary_data();
    assert_eq!(hex::encode(&data), format!("d90103a100a1190192a2617066687474703a3161685820{H}"));
    let hash = "93798edd737919eb62f4a7613030f14892b6d0ab38b135218937841dce62c3df";
    assert_eq!(hex::encode(cardano::hash::blake2b::<32>(&data)), hash);
}

#[test]
fn a_post_with_query_body_and_a_bound_header_has_the_documents_digests() {
    let request = HttpRequest {
        method: "POST",
        url: "https://api.example.com/search?q=cardano&lang=es",
        body: br#"{"q":"cardano"}"#,
        headers: &[("content-type", Some("application/json"))],
    };
    let digest = RequestDigest::of(&request).unwrap();
    assert_eq!(digest.0.to_string(), "19f76af6c9d60eb3f599273ac707830fb5fd2703b870aa9165014048fd5375c3");
    let published = digest.published().digest.to_string();
    assert_eq!(published, "f2a6d890837465ce790568b4872b576e5004fb304c3c7ed061be2fb5fa988b52");
    assert_eq!(digest.salted(&salt()).to_text(), "d26cbb2a326a7c06dad25e8a21de168a5461e8c413fb6f2efe87980cfb2b778e");
}

#[test]
fn every_other_request_has_another_digest() {
    for other in [
        HttpRequest { method: "POST", ..GET },
        HttpRequest { method: "get", ..GET },
        HttpRequest { url: "https://api.example.com/article/B", ..GET },
        HttpRequest { url: "https://api.example.com/article/A?", ..GET },
        HttpRequest { url: "http://api.example.com/article/A", ..GET },
        HttpRequest { body: b"x", ..GET },
        HttpRequest { headers: &[("accept", None)], ..GET },
        HttpRequest { headers: &[("accept", Some(""))], ..GET },
    ] {
        assert_ne!(RequestDigest::of(&other).unwrap(), get(), "{other:?}");
    }
}

#[test]
fn a_request_beyond_the_profile_is_not_described() {
    for url in [
        "",
        "/article/A",
        "ftp://api.example.com/",
        "https://",
        "https:///article/A",
        "https://user@api.example.com/",
        "https://api.example.com/#part",
        "https://api.example.com/ä",
        "https://api.example.com/a b",
        "https://api.example.com/{a}",
    ] {
        assert_eq!(RequestDigest::of(&HttpRequest { url, ..GET }), Err(NotBindable::Url), "{url}");
    }
    let headers: [&[(&str, Option<&str>)]; 6] = [
        &[("b", None), ("a", None)],
        &[("a", None), ("a", None)],
        &[("Accept", None)],
        &[("payment-signature", None)],
        &[("accept", Some("ä"))],
        &[("accept", Some("a\nb"))],
    ];
    for headers in headers {
        assert_eq!(RequestDigest::of(&HttpRequest { headers, ..GET }), Err(NotBindable::Header), "{headers:?}");
    }
}

/// Returns the `extensions` of a 402 that asks for a commitment to this request.
fn declared(request: &RequestDigest) -> Map<String, Value> {
    serde_json::from_value(json!(request.offered())).unwrap()
}

#[test]
fn a_402_declares_the_request_that_it_answers() {
    let offered = declared(&get());
    assert_eq!(
        offered[NAME]["info"],
        json!({
            "required": false,
            "profile": "http:1",
            "bindingParams": { "headers": [] },
            "commitment": {
                "version": "1",
                "algorithm": "sha256",
                "parts": [{
                    "name": "request",
                    "canonicalization": "jcs",
                    "digest": "22351cc0b694189e9feb7bab0fb3956fc1dcc0927b704406d2428e0fe821acd1",
                }],
                "digest": "556fb70df9929f3ebd96b8b51b772374a9d38379b3983f820bf5e4629bd34e68",
            },
        })
    );
    assert_eq!(get().is_declared_in(&offered), Ok(true));
    assert_eq!(get().is_declared_in(&Map::new()), Ok(false));
}

#[test]
fn a_client_pays_no_402_that_sells_another_request() {
    let other = RequestDigest::of(&HttpRequest { url: "https://api.example.com/article/B", ..GET }).unwrap();
    assert_eq!(get().is_declared_in(&declared(&other)), Err(OtherRequest));
    for (path, value) in [
        ("/profile", json!("mcp:1")),
        ("/bindingParams/headers", json!(["accept"])),
        ("/commitment/digest", json!("00".repeat(32))),
        ("/commitment/parts", json!([])),
        ("/commitment", json!(null)),
    ] {
        let mut changed = Value::Object(declared(&get()));
        *changed.pointer_mut(&format!("/{NAME}/info{path}")).unwrap() = value;
        let Value::Object(changed) = changed else { unreachable!() };
        assert_eq!(get().is_declared_in(&changed), Err(OtherRequest), "{path}");
    }
}

/// Tests each numbered row of the table in the document's section 4, "Server rules". The first and the third row are
/// both [`MetadataCommitment::Absent`].
#[test]
fn each_transaction_has_the_outcome_of_the_documents_table() {
    let (unsigned, malformed) = ("request_commitment_unsigned", "request_commitment_malformed");
    let (mismatch, missing) = ("request_commitment_mismatch", "request_commitment_missing");
    let other = RequestDigest::of(&HttpRequest { url: "https://api.example.com/article/B", ..GET }).unwrap();
    let (a, b) = (Some(get()), Some(other));
    let (salt, wrong) = (Some(json!(SALT)), Some(json!("ff".repeat(32))));
    let (upper, short) = (Some(json!("FF".repeat(32))), Some(json!("ff".repeat(31))));
    let null = Some(Value::Null);
    let signed = MetadataCommitment::Commitment(get().salted(&self::salt()));
    let none = Ok(Bound::No);
    let bound = Ok(Bound::ToThisRequest);
    type Row<'a> = (u8, MetadataCommitment, &'a Option<Value>, Option<RequestDigest>, bool, Result<Bound, &'a str>);
    let table: [Row<'_>; 19] = [
        (2, MetadataCommitment::Unsigned, &None, a, false, Err(unsigned)),
        (2, MetadataCommitment::Unsigned, &salt, a, true, Err(unsigned)),
        (4, MetadataCommitment::Malformed, &None, a, false, Err(malformed)),
        (4, MetadataCommitment::Malformed, &salt, a, true, Err(malformed)),
        (5, MetadataCommitment::Absent, &salt, a, false, Err(malformed)),
        (5, MetadataCommitment::Absent, &null, a, true, Err(malformed)),
        (6, signed, &None, a, false, Err(malformed)),
        (6, signed, &null, a, false, Err(malformed)),
        (6, signed, &upper, a, false, Err(malformed)),
        (6, signed, &short, a, true, Err(malformed)),
        (7, signed, &salt, b, false, Err(mismatch)),
        (7, signed, &wrong, a, false, Err(mismatch)),
        (7, signed, &salt, None, false, Err(mismatch)),
        (7, signed, &salt, None, true, Err(mismatch)),
        (8, MetadataCommitment::Absent, &None, a, true, Err(missing)),
        (9, MetadataCommitment::Absent, &None, a, false, none),
        (9, MetadataCommitment::Absent, &None, None, false, none),
        (10, signed, &salt, a, false, bound),
        (10, signed, &salt, a, true, bound),
    ];
    for (row, carried, disclosed, request, required, expected) in table {
        let outcome = judge(carried, disclosed.as_ref(), request.as_ref(), required);
        assert_eq!(outcome.map_err(|error| error.code()), expected, "{row}: {carried:?}, {disclosed:?}");
    }
}

/// Builds a transaction with these auxiliary data, and with this hash of them in its body.
fn tx(data: Option<&[u8]>, hash: Option<[u8; 32]>) -> SignedTx {
    let bytes = |bytes: &[u8]| Cbor::Bytes(bytes.to_vec());
    let int = |number: u64| Cbor::Integer(number.into());
    let input = Cbor::Array(vec![bytes(&[1; 32]), int(0)]);
    let to = [&[0x60][..], &[7; 28]].concat();
    let mut body = vec![
        (int(0), Cbor::Tag(258, Box::new(Cbor::Array(vec![input])))),
        (int(1), Cbor::Array(vec![Cbor::Map(vec![(int(0), bytes(&to)), (int(1), int(2_000_000))])])),
        (int(2), int(170_000)),
    ];
    body.extend(hash.map(|hash| (int(7), bytes(&hash))));
    let mut cbor = vec![0x84];
    ciborium::into_writer(&Cbor::Map(body), &mut cbor).unwrap();
    cbor.extend([0xa0, 0xf5]);
    cbor.extend_from_slice(data.unwrap_or(&[0xf6]));
    SignedTx::parse(&cbor).unwrap()
}

fn committed(data: &[u8]) -> SignedTx {
    tx(Some(data), Some(cardano::hash::blake2b(data)))
}

#[test]
fn a_commitment_is_read_from_every_form_of_auxiliary_data_that_the_body_commits_to() {
    let commitment = get().salted(&salt());
    let data = commitment.auxiliary_data();
    assert_eq!(metadata_commitment(&committed(&data)), MetadataCommitment::Commitment(commitment));
    assert!(commitment.is_all_metadata_of(&committed(&data)));
    let metadata = &data[5..];
    for form in [metadata.to_vec(), [&[0x82][..], metadata, &[0x80]].concat()] {
        assert_eq!(metadata_commitment(&committed(&form)), MetadataCommitment::Commitment(commitment));
        assert!(!commitment.is_all_metadata_of(&committed(&form)));
    }
    let h = [&[0x61, b'h', 0x58, 0x20][..], &commitment.0].concat();
    for map in [[&[0xa2][..], &h, b"\x61p\x66http:1"].concat(), [&[0xbf][..], &h, b"\x61p\x66http:1\xff"].concat()] {
        let data = [&[0xa2, 0x07, 0x01, 0x19, 0x01, 0x92][..], &map].concat();
        assert_eq!(
            metadata_commitment(&committed(&data)),
            MetadataCommitment::Commitment(commitment),
            "in another order, beside another label"
        );
    }
}

#[test]
fn auxiliary_data_that_the_body_does_not_commit_to_counts_as_unsigned() {
    let data = get().salted(&salt()).auxiliary_data();
    let other = b"\xa1\x07\x01";
    for tx in [
        tx(Some(&data), None),
        tx(Some(&data), Some([0; 32])),
        tx(Some(other), None),
        tx(Some(other), Some(cardano::hash::blake2b(&data))),
        tx(None, Some(cardano::hash::blake2b(&data))),
    ] {
        assert_eq!(metadata_commitment(&tx), MetadataCommitment::Unsigned);
    }
    assert_eq!(metadata_commitment(&tx(None, None)), MetadataCommitment::Absent);
    assert_eq!(metadata_commitment(&committed(other)), MetadataCommitment::Absent);
    assert_eq!(metadata_commitment(&committed(&[0xd9, 0x01, 0x03, 0xa0])), MetadataCommitment::Absent);
}

#[test]
fn a_label_of_another_shape_is_malformed() {
    let h = [&[0x61, b'h', 0x58, 0x20][..], &[1; 32]].concat();
    let long = [&[0x61, b'h', 0x58, 0x21][..], &[1; 33]].concat();
    let p = b"\x61p\x66http:1";
    for value in [
        b"\x01".to_vec(),
        b"\xa0".to_vec(),
        [&[0x80][..]].concat(),
        [&[0xa1][..], &h].concat(),
        [&[0xa1][..], p].concat(),
        [&[0xa2][..], p, &long].concat(),
        [&[0xa2][..], p, b"\x61h\x58\x1f", &[1; 31]].concat(),
        [&[0xa2][..], p, b"\x61h\x66http:1"].concat(),
        [&[0xa2][..], b"\x61p\x65mcp:1", &h].concat(),
        [&[0xa2][..], b"\x61p\x01", &h].concat(),
        [&[0xa3][..], p, &h, b"\x61x\x01"].concat(),
        [&[0xbf][..], p, &h, b"\x61x\x01\xff"].concat(),
        [&[0xbf][..], p, b"\xff"].concat(),
    ] {
        let data = [&[0xa1, 0x19, 0x01, 0x92][..], &value].concat();
        assert_eq!(metadata_commitment(&committed(&data)), MetadataCommitment::Malformed, "{}", hex::encode(value));
    }
}
