use super::*;
use crate::address::tests::any_address;
use pallas_codec::{minicbor, utils::MaybeIndefArray};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// The encoded datum in scheme_exact_cardano.md, "Encoding test vector" (x402-foundation/x402), in hexadecimal.
const PUBLISHED: &str = "d8799fd8799fd8799f581c11111111111111111111111111111111111111111111111111111111ffd87a80ffd87a80d8799fd8799f581c22222222222222222222222222222222222222222222222222222222ffd87a80ffd87a8043a1010150555555555555555555555555555555555820333333333333333333333333333333333333333333333333333333333333333340401a0015e65e58204444444444444444444444444444444444444444444444444444444444444444401b0000019fc75a1f001b0000019fc7910d801b0000019fc7c7fc001b0000019fc7feea800000d87980ff";

pub(crate) fn published() -> Datum {
    let key = |byte: u8| PlutusAddress::from_bytes(&[&[0x60][..], &[byte; 28]].concat()).unwrap();
    Datum {
        buyer: key(0x11),
        buyer_return_address: None,
        seller: key(0x22),
        seller_return_address: None,
        reference_key: vec![0xa1, 0x01, 0x01],
        reference_signature: vec![0x55; 16],
        seller_nonce: vec![0x33; 32],
        buyer_nonce: vec![],
        agent_identifier: vec![],
        collateral_return: Lovelace::new(1_435_230).unwrap(),
        input_hash: vec![0x44; 32],
        result_hash: vec![],
        deadlines: Deadlines {
            pay_by: 1_785_756_000_000,
            submit_result: 1_785_759_600_000,
            unlock: 1_785_763_200_000,
            external_dispute_unlock: 1_785_766_800_000,
        },
        seller_cooldown: 0,
        buyer_cooldown: 0,
        state: State::FundsLocked,
    }
}

pub(crate) fn any_datum() -> impl Strategy<Value = Datum> {
    let time = || 0..=MAX_TIME_MS;
    let parties = (any_address(), option::of(any_address()), any_address(), option::of(any_address()));
    let byte_fields = (
        vec(any::<u8>(), 0..80),
        vec(any::<u8>(), 0..300),
        vec(any::<u8>(), 0..70),
        vec(any::<u8>(), 0..14),
        vec(any::<u8>(), 0..61),
        vec(any::<u8>(), 0..70),
        vec(any::<u8>(), 0..70),
    );
    let times = (time(), time(), time(), time(), time(), time());
    (parties, byte_fields, times, 0..=Lovelace::MAX.get(), select(&State::ALL[..])).prop_map(
        |(parties, bytes, times, collateral, state)| Datum {
            buyer: parties.0,
            buyer_return_address: parties.1,
            seller: parties.2,
            seller_return_address: parties.3,
            reference_key: bytes.0,
            reference_signature: bytes.1,
            seller_nonce: bytes.2,
            buyer_nonce: bytes.3,
            agent_identifier: bytes.4,
            collateral_return: Lovelace::new(collateral).unwrap(),
            input_hash: bytes.5,
            result_hash: bytes.6,
            deadlines: Deadlines {
                pay_by: times.0,
                submit_result: times.1,
                unlock: times.2,
                external_dispute_unlock: times.3,
            },
            seller_cooldown: times.4,
            buyer_cooldown: times.5,
            state,
        },
    )
}

/// Changes the encoding of every list in Plutus data to the definite form.
fn definite(data: PlutusData) -> PlutusData {
    match data {
        PlutusData::Constr(mut c) => {
            c.fields = MaybeIndefArray::Def(c.fields.to_vec().into_iter().map(definite).collect());
            PlutusData::Constr(c)
        }
        other => other,
    }
}

/// Encodes the published datum with the field at `index` replaced by `data`.
fn with_field(index: usize, data: PlutusData) -> Vec<u8> {
    let PlutusData::Constr(c) = published().to_data() else { unreachable!() };
    let mut fields = c.fields.to_vec();
    fields[index] = data;
    to_cbor(&constr(0, fields))
}

#[test]
fn the_published_vector_is_this_datum_in_both_directions() {
    let cbor = hex::decode(PUBLISHED).unwrap();
    assert_eq!(Datum::from_cbor(&cbor), Ok(published()));
    assert_eq!(hex::encode(published().to_cbor()), PUBLISHED);
    let tree: PlutusData = minicbor::decode(&cbor).unwrap();
    assert_eq!(published().to_data(), tree);
}

#[test]
fn the_definite_encoding_is_the_same_datum() {
    let cbor = to_cbor(&definite(published().to_data()));
    assert_ne!(hex::encode(&cbor), PUBLISHED);
    assert_eq!(Datum::from_cbor(&cbor), Ok(published()));
}

#[test]
fn a_datum_with_another_number_of_fields_is_refused() {
    let PlutusData::Constr(c) = published().to_data() else { unreachable!() };
    let mut fields = c.fields.to_vec();
    for indefinite in [true, false] {
        let encode = |fields: &[PlutusData]| {
            let tree = constr(0, fields.to_vec());
            to_cbor(&if indefinite { tree } else { definite(tree) })
        };
        assert_eq!(Datum::from_cbor(&encode(&fields[..18])), Err(InvalidDatum::Shape("datum")));
        fields.push(integer(0));
        assert_eq!(Datum::from_cbor(&encode(&fields)), Err(InvalidDatum::Shape("datum")));
        fields.pop();
    }
}

#[test]
fn a_datum_with_another_constructor_is_refused() {
    let PlutusData::Constr(c) = published().to_data() else { unreachable!() };
    assert_eq!(Datum::from_cbor(&to_cbor(&constr(1, c.fields.to_vec()))), Err(InvalidDatum::Shape("datum")));
}

#[test]
fn a_datum_field_of_the_wrong_kind_is_refused_by_name() {
    let names = [
        "buyer",
        "buyer_return_address",
        "seller",
        "seller_return_address",
        "reference_key",
        "reference_signature",
        "seller_nonce",
        "buyer_nonce",
        "agent_identifier",
        "collateral_return_lovelace",
        "input_hash",
        "result_hash",
        "pay_by_time",
        "submit_result_time",
        "unlock_time",
        "external_dispute_unlock_time",
        "seller_cooldown_time",
        "buyer_cooldown_time",
        "state",
    ];
    for (index, name) in names.into_iter().enumerate() {
        let wrong = if matches!(index, 9 | 12..=17) { bytes(b"text") } else { integer(7) };
        assert_eq!(Datum::from_cbor(&with_field(index, wrong)), Err(InvalidDatum::Shape(name)), "{name}");
    }
}

#[test]
fn a_datum_that_would_strand_the_money_is_refused() {
    let key = |bytes_: &[u8]| constr(0, vec![bytes(bytes_)]);
    let none = || constr(1, vec![]);
    let good = || constr(0, vec![key(&[0x11; 28]), none()]);
    for (index, data) in [
        (0, constr(0, vec![key(&[0x11; 27]), none()])),
        (0, constr(0, vec![key(&[0x11; 29]), none()])),
        (0, constr(0, vec![key(&[0x11; 28]), constr(1, vec![integer(0)])])),
        (0, constr(0, vec![key(&[0x11; 28])])),
        (0, constr(1, vec![key(&[0x11; 28]), none()])),
        (0, constr(0, vec![constr(2, vec![bytes(&[0x11; 28])]), none()])),
        // A pointer address.
        (0, constr(0, vec![key(&[0x11; 28]), constr(0, vec![constr(1, vec![integer(1), integer(2), integer(3)])])])),
        (1, good()),
        (1, constr(0, vec![good(), good()])),
        (1, constr(2, vec![])),
        (18, constr(0, vec![integer(0)])),
        (18, constr(6, vec![])),
    ] {
        assert!(matches!(Datum::from_cbor(&with_field(index, data.clone())), Err(InvalidDatum::Shape(_))), "{data:?}");
    }
}

#[test]
fn a_datum_number_out_of_range_is_refused() {
    use pallas_primitives::BigInt;
    let negative = || PlutusData::BigInt(BigInt::Int((-1i64).into()));
    for index in [9, 12, 13, 14, 15, 16, 17] {
        assert!(matches!(Datum::from_cbor(&with_field(index, negative())), Err(InvalidDatum::Range(_))), "{index}");
    }
    for index in [9, 12, 13, 14, 15] {
        assert!(
            matches!(Datum::from_cbor(&with_field(index, integer(1 << 60))), Err(InvalidDatum::Range(_))),
            "{index}"
        );
    }
}

#[test]
fn a_cooldown_beyond_all_times_never_ends_and_its_datum_is_valid() {
    let vast = || PlutusData::BigInt(pallas_primitives::BigInt::BigUInt(vec![0xff; 60].into()));
    for index in [16, 17] {
        for data in [integer(1 << 60), vast()] {
            let read = Datum::from_cbor(&with_field(index, data)).unwrap();
            let cooldown = if index == 16 { read.seller_cooldown } else { read.buyer_cooldown };
            assert_eq!(cooldown, MAX_TIME_MS);
        }
    }
}

/// Encodes Plutus data in one of the many forms that the ledger accepts (plutus-core, `Data.hs`: `decodeConstr`,
/// `decodeBoundedBigInteger`, `decodeBoundedBytes`). One random byte of `coins` chooses the form of each item.
fn encoded(data: &PlutusData, coins: &mut impl Iterator<Item = u8>, out: &mut Vec<u8>) {
    let coin = coins.next().unwrap_or(0);
    match data {
        PlutusData::Constr(constr) => {
            let general = coin & 1 == 1;
            let index = u8::try_from(constr.tag - 121).unwrap();
            match (general, coin & 2 == 2) {
                (false, _) => out.extend([0xd8, 121 + index]),
                (true, false) => out.extend([0xd8, 102, 0x82, index]),
                (true, true) => out.extend([0xd8, 102, 0x9f, index]),
            }
            let indefinite = coin & 4 == 4;
            match (indefinite, u8::try_from(constr.fields.len()).unwrap()) {
                (true, _) => out.push(0x9f),
                (false, count) => out.extend([0x98, count]),
            }
            for field in constr.fields.iter() {
                encoded(field, coins, out);
            }
            out.extend(indefinite.then_some(0xff));
            out.extend((general && coin & 2 == 2).then_some(0xff));
        }
        PlutusData::BigInt(pallas_primitives::BigInt::Int(number)) if coin & 1 == 1 => {
            let number = u64::try_from(i128::from(*number)).unwrap();
            out.push(0xc2);
            chunks(&[&[0; 3][..], &number.to_be_bytes()].concat(), coin & 2 == 2, out);
        }
        PlutusData::BoundedBytes(bytes) => chunks(bytes, coin & 1 == 1, out),
        other => out.extend(to_cbor(other)),
    }
}

fn chunks(bytes: &[u8], many: bool, out: &mut Vec<u8>) {
    if !many && bytes.len() <= 64 {
        out.extend([0x58, u8::try_from(bytes.len()).unwrap()]);
        return out.extend(bytes);
    }
    out.push(0x5f);
    for chunk in bytes.chunks(7) {
        out.push(0x40 + u8::try_from(chunk.len()).unwrap());
        out.extend(chunk);
    }
    out.push(0xff);
}

#[test]
fn bytes_that_are_no_datum_are_refused() {
    let cbor = published().to_cbor();
    assert_eq!(Datum::from_cbor(&[]), Err(InvalidDatum::Shape("datum")));
    assert_eq!(Datum::from_cbor(&[&cbor[..], &[0]].concat()), Err(InvalidDatum::Trailing));
    for end in 0..cbor.len() {
        assert!(Datum::from_cbor(&cbor[..end]).is_err(), "{end} bytes of it");
    }
    assert_eq!(Datum::from_cbor(&vec![0x9f; 20_000]), Err(InvalidDatum::TooLong));
    assert_eq!(Datum::from_cbor(&[0x81; 16_000]), Err(InvalidDatum::Shape("datum")), "nesting costs nothing");
}

proptest! {
    #[test]
    fn a_datum_round_trips(datum in any_datum()) {
        let cbor = datum.to_cbor();
        prop_assert_eq!(Datum::from_cbor(&cbor), Ok(datum.clone()));
        let tree: PlutusData = minicbor::decode(&cbor).unwrap();
        prop_assert_eq!(&tree, &datum.to_data());
        prop_assert_eq!(Datum::from_cbor(&to_cbor(&definite(tree))), Ok(datum));
    }

    #[test]
    fn every_encoding_that_the_ledger_takes_is_the_same_datum(datum in any_datum(), coins in vec(any::<u8>(), 100)) {
        let mut cbor = Vec::new();
        encoded(&datum.to_data(), &mut coins.into_iter().cycle(), &mut cbor);
        prop_assert_eq!(Datum::from_cbor(&cbor), Ok(datum));
    }

    #[test]
    fn no_bytes_panic(cbor in vec(any::<u8>(), 0..300)) {
        let _ = Datum::from_cbor(&cbor);
    }

    #[test]
    fn a_changed_byte_never_gives_the_same_datum(at in 0usize..PUBLISHED.len() / 2, to in any::<u8>()) {
        let mut cbor = hex::decode(PUBLISHED).unwrap();
        prop_assume!(cbor[at] != to);
        cbor[at] = to;
        prop_assert_ne!(Datum::from_cbor(&cbor), Ok(published()));
    }
}
