use ciborium::{Value as Cbor, cbor};
use pallas_codec::minicbor;
use pallas_primitives::conway;
use proptest::prelude::*;

use super::*;
use crate::{
    address::Address,
    hash::{KeyHash, ScriptHash},
};

/// Creates a plain payment: one input, one output with an asset, change, a TTL, metadata, one signature.
fn payment() -> Cbor {
    let metadata = Cbor::Map(vec![(cbor!(674).unwrap(), cbor!({ "msg" => ["hello"] }).unwrap())]);
    let body = map([
        (0, tagged(258, vec![input(1, 0)])),
        (1, Cbor::Array(vec![map([(0, bytes(&owner(7))), (1, tokens(2_000_000))]), legacy_output(3_000_000)])),
        (2, int(170_000)),
        (3, int(90_000)),
        (7, bytes(&crate::hash::blake2b::<32>(&encode(&metadata)))),
        (15, int(0)),
    ]);
    let witness = Cbor::Array(vec![bytes(&[9; 32]), bytes(&[8; 64])]);
    Cbor::Array(vec![body, map([(0, tagged(258, vec![witness]))]), Cbor::Bool(true), metadata])
}

fn int(n: u64) -> Cbor {
    Cbor::Integer(n.into())
}

fn bytes(bytes: &[u8]) -> Cbor {
    Cbor::Bytes(bytes.to_vec())
}

fn map<const N: usize>(fields: [(u64, Cbor); N]) -> Cbor {
    Cbor::Map(fields.into_iter().map(|(key, value)| (int(key), value)).collect())
}

fn tagged(tag: u64, items: Vec<Cbor>) -> Cbor {
    Cbor::Tag(tag, Box::new(Cbor::Array(items)))
}

fn input(tx: u8, index: u64) -> Cbor {
    Cbor::Array(vec![bytes(&[tx; 32]), int(index)])
}

fn owner(key: u8) -> Vec<u8> {
    Address::enterprise(KeyHash::new([key; 28])).to_bytes()
}

fn tokens(lovelace: u64) -> Cbor {
    let names = Cbor::Map(vec![(bytes(b"coin"), int(5)), (bytes(b""), int(1))]);
    Cbor::Array(vec![int(lovelace), Cbor::Map(vec![(bytes(&[3; 28]), names)])])
}

fn legacy_output(lovelace: u64) -> Cbor {
    Cbor::Array(vec![bytes(&owner(8)), int(lovelace)])
}

fn encode(value: &Cbor) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(value, &mut out).unwrap();
    out
}

fn field(value: &mut Cbor, key: u64) -> &mut Cbor {
    match value {
        Cbor::Map(fields) => &mut fields.iter_mut().find(|(k, _)| *k == int(key)).unwrap().1,
        other => panic!("not a map: {other:?}"),
    }
}

fn set_field(value: &mut Cbor, key: u64, to: Cbor) {
    let Cbor::Map(fields) = value else { panic!("not a map") };
    fields.retain(|(k, _)| *k != int(key));
    fields.push((int(key), to));
}

fn item(value: &mut Cbor, at: usize) -> &mut Cbor {
    match value {
        Cbor::Array(items) => &mut items[at],
        Cbor::Tag(_, inner) => item(inner, at),
        other => panic!("not an array: {other:?}"),
    }
}

fn changed(change: impl FnOnce(&mut Cbor)) -> Result<SignedTx, DecodeError> {
    let mut tx = payment();
    change(&mut tx);
    SignedTx::parse(&encode(&tx))
}

fn with_body(key: u64, to: Cbor) -> Result<SignedTx, DecodeError> {
    changed(|tx| set_field(item(tx, 0), key, to))
}

fn with_output(to: Cbor) -> Result<SignedTx, DecodeError> {
    with_body(1, Cbor::Array(vec![to]))
}

#[test]
fn a_payment_reads_as_it_was_written() {
    let cbor = encode(&payment());
    let tx = SignedTx::parse(&cbor).unwrap();
    assert_eq!(tx.cbor(), cbor);
    assert_eq!(tx.id, TxHash::of_body(&encode(item(&mut payment(), 0))));
    assert_eq!(tx.inputs, [TxRef { tx: TxHash::new([1; 32]), index: 0 }]);
    assert_eq!((tx.fee.get(), tx.ttl, tx.validity_start, tx.network_id), (170_000, Some(90_000), None, Some(0)));
    assert_eq!(tx.outputs.len(), 2);
    assert_eq!(tx.outputs[0].owner, AddressKind::Key(Address::enterprise(KeyHash::new([7; 28]))));
    let policy = "03".repeat(28);
    assert_eq!(tx.outputs[0].value.assets, BTreeMap::from([(format!("{policy}636f696e"), 5), (policy.clone(), 1)]));
    assert_eq!(tx.outputs[1].value.lovelace.get(), 3_000_000);
    assert_eq!(tx.outputs[1].size, encode(&legacy_output(3_000_000)).len());
    assert_eq!(tx.auxiliary_data.as_ref().map(AuxiliaryData::hash), tx.auxiliary_data_hash);
    assert_eq!(tx.vkey_witnesses, [VkeyWitness { key: [9; 32], signature: [8; 64] }]);
    assert!(tx.is_valid && tx.parts.is_empty() && tx.required_signers.is_empty());
}

#[test]
fn a_label_is_found_in_every_form_of_auxiliary_data() {
    let labels = "a2010519019263616263";
    for form in [labels.to_owned(), format!("82{labels}80"), format!("d90103a2018000{labels}")] {
        let bytes = hex::decode(&form).unwrap();
        let data = auxiliary::read(&mut cbor::Reader::new(&bytes)).unwrap().unwrap();
        assert_eq!(data.label(402), Ok(Some(&b"\x63abc"[..])), "{form}");
        assert_eq!(data.label(1), Ok(Some(&b"\x05"[..])));
        assert_eq!(data.label(2), Ok(None));
    }
    let empty = auxiliary::read(&mut cbor::Reader::new(b"\xd9\x01\x03\xa1\x01\x80")).unwrap().unwrap();
    assert_eq!(empty.label(402), Ok(None));
}

#[test]
fn every_part_that_a_payment_lacks_is_reported_with_its_bytes() {
    for (key, part) in [
        (4, TxPart::Certificates),
        (5, TxPart::Withdrawals),
        (9, TxPart::Mint),
        (11, TxPart::ScriptDataHash),
        (13, TxPart::CollateralInputs),
        (16, TxPart::CollateralReturn),
        (17, TxPart::TotalCollateral),
        (18, TxPart::ReferenceInputs),
        (19, TxPart::VotingProcedures),
        (20, TxPart::ProposalProcedures),
        (21, TxPart::TreasuryValue),
        (22, TxPart::Donation),
    ] {
        let tx = with_body(key, int(77)).unwrap();
        assert_eq!(tx.parts, BTreeMap::from([(part, encode(&int(77)))]), "body key {key}");
    }
    for (key, part) in [
        (1, TxPart::NativeScripts),
        (2, TxPart::BootstrapWitnesses),
        (3, TxPart::PlutusV1Scripts),
        (4, TxPart::PlutusData),
        (5, TxPart::Redeemers),
        (6, TxPart::PlutusV2Scripts),
        (7, TxPart::PlutusV3Scripts),
    ] {
        let tx = changed(|tx| set_field(item(tx, 1), key, int(77))).unwrap();
        assert_eq!(tx.parts, BTreeMap::from([(part, encode(&int(77)))]), "witness key {key}");
    }
}

#[test]
fn outputs_are_classified_by_their_address() {
    let at = |address: &[u8]| with_output(Cbor::Array(vec![bytes(address), int(1)])).map(|tx| tx.outputs[0].owner);
    let headed = |header: u8, length: usize| [&[header], vec![5; length].as_slice()].concat();
    assert_eq!(at(&headed(0x70, 28)), Ok(AddressKind::Script(ScriptHash::new([5; 28]))));
    assert_eq!(at(&headed(0x10, 56)), Ok(AddressKind::Script(ScriptHash::new([5; 28]))));
    assert_eq!(at(&headed(0x61, 28)), Ok(AddressKind::Mainnet));
    assert_eq!(at(&headed(0x71, 28)), Ok(AddressKind::Mainnet));
    assert_eq!(at(&headed(0x82, 70)), Ok(AddressKind::Byron));
    assert_eq!(at(&headed(0x40, 31)), Ok(AddressKind::Unsupported), "pointer");
    assert_eq!(at(&headed(0xe0, 28)), Ok(AddressKind::Unsupported), "stake");
    assert_eq!(at(&headed(0x60, 27)), Ok(AddressKind::Unsupported), "short");
    assert_eq!(at(&headed(0x60, 57)), Err(DecodeError::Malformed("address of an output")));
    assert_eq!(at(&[]), Err(DecodeError::Malformed("address of an output")));
}

#[test]
fn datums_and_reference_scripts_of_outputs_are_kept() {
    let with = |fields: [(u64, Cbor); 3]| with_output(map(fields)).map(|mut tx| tx.outputs.remove(0));
    let (address, value) = ((0, bytes(&owner(1))), (1, int(1)));
    let embedded = |cbor: &[u8]| Cbor::Tag(24, Box::new(bytes(cbor)));
    let inline = |cbor: &[u8]| (2, Cbor::Array(vec![int(1), embedded(cbor)]));
    assert_eq!(
        with([address.clone(), value.clone(), inline(&[0xd8, 0x79, 0x80])]).unwrap().datum,
        Some(OutputDatum::Inline(vec![0xd8, 0x79, 0x80]))
    );
    assert_eq!(
        with([address.clone(), value.clone(), (2, Cbor::Array(vec![int(0), bytes(&[4; 32])]))]).unwrap().datum,
        Some(OutputDatum::Hash([4; 32]))
    );
    assert_eq!(
        with([address.clone(), value.clone(), (3, embedded(&[0x82, 0, 0x80]))]).unwrap().reference_script,
        Some(vec![0x82, 0, 0x80])
    );
    assert_eq!(
        with([address.clone(), value.clone(), inline(&[0xd8, 0x79])]),
        Err(DecodeError::Cbor(CborError::Truncated))
    );
    let nested = [vec![0x81; 70], vec![0]].concat();
    assert_eq!(with([address, value, inline(&nested)]), Err(DecodeError::Cbor(CborError::TooDeep)));
}

/// Each case differs in one place from a payment that is accepted.
#[test]
fn malformed_transactions_are_refused_by_name() {
    use DecodeError::{Duplicate, Empty, Malformed, Missing, NotATransaction, OldEra, UnknownField};
    let without = |key: u64| {
        changed(|tx| {
            let Cbor::Map(fields) = item(tx, 0) else { panic!() };
            fields.retain(|(k, _)| *k != int(key));
        })
    };
    let resized = |count: usize| changed(|tx| tx.as_array_mut().unwrap().resize(count, Cbor::Null));
    let output = |fields: &[Cbor]| with_output(Cbor::Array(fields.to_vec()));
    let holding = |assets: Cbor| output(&[bytes(&owner(1)), Cbor::Array(vec![int(1), assets])]);
    let one_asset = |policy: &[u8], name: &[u8], quantity: u64| {
        holding(Cbor::Map(vec![(bytes(policy), Cbor::Map(vec![(bytes(name), int(quantity))]))]))
    };
    let witnessed = |witnesses: Vec<Cbor>| changed(|tx| *field(item(tx, 1), 0) = Cbor::Array(witnesses));
    let witness = |key: usize, signature: usize| Cbor::Array(vec![bytes(&vec![1; key]), bytes(&vec![2; signature])]);
    let auxiliary = |data: Cbor| changed(|tx| *item(tx, 3) = data);
    let metadatum = |value: Cbor| auxiliary(map([(1, value)]));

    let cases: Vec<(&str, Result<SignedTx, DecodeError>, DecodeError)> = vec![
        ("a transaction of Shelley's era", resized(3), NotATransaction),
        ("a fifth element", resized(5), NotATransaction),
        ("a validity flag that is a number", changed(|tx| *item(tx, 2) = int(1)), NotATransaction),
        ("a body that is an array", changed(|tx| *item(tx, 0) = Cbor::Array(vec![])), Malformed("body")),
        (
            "a body key that is a text",
            changed(|tx| {
                item(tx, 0).as_map_mut().unwrap().push((Cbor::Text("0".into()), int(0)));
            }),
            Malformed("body"),
        ),
        ("no inputs", without(0), Missing("inputs")),
        ("no outputs", without(1), Missing("outputs")),
        ("no fee", without(2), Missing("fee")),
        ("an empty set of inputs", with_body(0, tagged(258, vec![])), Empty("input")),
        ("the same input twice", with_body(0, Cbor::Array(vec![input(1, 0), input(1, 0)])), Duplicate("input")),
        ("an input index over 65535", with_body(0, Cbor::Array(vec![input(1, 65_536)])), Malformed("input")),
        (
            "an input of three items",
            with_body(0, Cbor::Array(vec![Cbor::Array(vec![bytes(&[1; 32]), int(0), int(0)])])),
            Malformed("input"),
        ),
        ("inputs under another tag", with_body(0, tagged(259, vec![input(1, 0)])), Malformed("input")),
        ("a fee over the supply", with_body(2, int(45_000_000_000_000_001)), Malformed("fee")),
        ("a negative fee", with_body(2, Cbor::Integer((-1).into())), Malformed("fee")),
        ("a TTL that is a text", with_body(3, Cbor::Text("9".into())), Malformed("TTL")),
        ("a protocol parameter update", with_body(6, int(0)), OldEra("a protocol parameter update in a transaction")),
        ("an auxiliary data hash of 31 bytes", with_body(7, bytes(&[0; 31])), Malformed("auxiliary data hash")),
        ("body key 10", with_body(10, int(0)), UnknownField { place: "transaction body", key: 10 }),
        ("body key 23", with_body(23, int(0)), UnknownField { place: "transaction body", key: 23 }),
        ("an empty set of required signers", with_body(14, Cbor::Array(vec![])), Empty("required signer")),
        ("network 2", with_body(15, int(2)), Malformed("network id")),
        ("an output with only an address", output(&[bytes(&owner(1))]), Malformed("output")),
        (
            "an old output with four items",
            output(&[bytes(&owner(1)), int(1), bytes(&[1; 32]), int(0)]),
            Malformed("output"),
        ),
        (
            "an old output with a short datum hash",
            output(&[bytes(&owner(1)), int(1), bytes(&[1; 31])]),
            Malformed("datum hash"),
        ),
        (
            "output key 4",
            with_output(map([(0, bytes(&owner(1))), (1, int(1)), (4, int(0))])),
            UnknownField { place: "output", key: 4 },
        ),
        ("an output without a value", with_output(map([(0, bytes(&owner(1)))])), Missing("value of an output")),
        ("an output without an address", with_output(map([(1, int(1))])), Missing("address of an output")),
        (
            "a negative quantity of lovelace",
            output(&[bytes(&owner(1)), Cbor::Integer((-1).into())]),
            Malformed("value of an output"),
        ),
        ("no assets where assets are announced", holding(Cbor::Map(vec![])), Empty("assets of an output")),
        (
            "a policy without assets",
            holding(Cbor::Map(vec![(bytes(&[1; 28]), Cbor::Map(vec![]))])),
            Empty("assets of an output"),
        ),
        ("an asset of quantity zero", one_asset(&[1; 28], b"a", 0), Malformed("assets of an output")),
        ("an asset name of 33 bytes", one_asset(&[1; 28], &[0; 33], 1), Malformed("assets of an output")),
        ("a policy of 27 bytes", one_asset(&[1; 27], b"a", 1), Malformed("assets of an output")),
        ("an empty list of signatures", witnessed(vec![]), Empty("list of signatures")),
        ("a key of 31 bytes", witnessed(vec![witness(31, 64)]), Malformed("signature")),
        ("a signature of 65 bytes", witnessed(vec![witness(32, 65)]), Malformed("signature")),
        ("two signatures by one key", witnessed(vec![witness(32, 64), witness(32, 64)]), Duplicate("signature")),
        (
            "witness key 8",
            changed(|tx| set_field(item(tx, 1), 8, int(0))),
            UnknownField { place: "witness set", key: 8 },
        ),
        ("a metadata text of 65 bytes", metadatum(Cbor::Text("x".repeat(65))), Malformed("auxiliary data")),
        ("metadata bytes of 65 bytes", metadatum(bytes(&[0; 65])), Malformed("auxiliary data")),
        ("a boolean in metadata", metadatum(Cbor::Bool(true)), Malformed("auxiliary data")),
        (
            "a metadata label that is a text",
            auxiliary(Cbor::Map(vec![(Cbor::Text("1".into()), int(1))])),
            Malformed("auxiliary data"),
        ),
        (
            "auxiliary data with key 5",
            auxiliary(Cbor::Tag(259, Box::new(map([(5, int(1))])))),
            Malformed("auxiliary data"),
        ),
    ];
    for (name, outcome, expected) in cases {
        assert_eq!(outcome.map(|tx| tx.id), Err(expected), "{name}");
    }
}

#[test]
fn malformed_cbor_is_refused_by_name() {
    let good = encode(&payment());
    let at = |needle: &[u8], with: &[u8]| {
        let start = good.windows(needle.len()).position(|window| window == needle).unwrap();
        SignedTx::parse(&[&good[..start], with, &good[start + needle.len()..]].concat()).map(|tx| tx.id)
    };
    let fee = [2, 0x1a, 0, 2, 0x98, 0x10];
    let cases: Vec<(&str, Result<TxHash, DecodeError>, CborError)> = vec![
        ("nothing", SignedTx::parse(&[]).map(|tx| tx.id), CborError::Truncated),
        ("a byte too few", SignedTx::parse(&good[..good.len() - 1]).map(|tx| tx.id), CborError::Truncated),
        ("a byte too many", SignedTx::parse(&[&good[..], &[0]].concat()).map(|tx| tx.id), CborError::Trailing),
        ("a fee that is too long", at(&fee, &[2, 0x1b, 0, 0, 0, 0, 0, 2, 0x98, 0x10]), CborError::NotShortest),
        ("a key that is too long", at(&fee, &[0x18, 2, 0x1a, 0, 2, 0x98, 0x10]), CborError::NotShortest),
        ("a fee that is a float", at(&fee, &[2, 0xfa, 0, 2, 0x98, 0x10]), CborError::Unsupported),
        ("a reserved length", at(&fee, &[2, 0x1c, 0, 2, 0x98, 0x10]), CborError::Unsupported),
        ("the fee twice", at(&fee, &[&fee[..], &fee].concat()), CborError::Structure),
        ("a text that is not UTF-8", at(b"hello", &[0xff, 0xfe, 0xfd, 0xfc, 0xfb]), CborError::NotUtf8),
        ("a break without a beginning", at(&fee, &[2, 0xff]), CborError::Structure),
        ("arrays in arrays", SignedTx::parse(&[vec![0x81; 100], vec![0]].concat()).map(|tx| tx.id), CborError::TooDeep),
        ("tags in tags", SignedTx::parse(&[vec![0xc1; 16_000], vec![0]].concat()).map(|tx| tx.id), CborError::TooDeep),
        (
            "a length beyond all bytes",
            SignedTx::parse(&[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).map(|tx| tx.id),
            CborError::Truncated,
        ),
        ("a map in two halves", SignedTx::parse(&[0xbf, 0, 0xff]).map(|tx| tx.id), CborError::Structure),
        ("a chunk of another type", SignedTx::parse(&[0x5f, 0x61, 0x61, 0xff]).map(|tx| tx.id), CborError::Structure),
    ];
    for (name, outcome, expected) in cases {
        let outcome = outcome.unwrap_err();
        // A field more than the map announces shifts everything after it, so any CBOR error is right.
        let shifted = name == "the fee twice" && outcome != DecodeError::Cbor(CborError::Trailing);
        assert!(shifted || outcome == DecodeError::Cbor(expected), "{name}: {outcome:?}");
    }
    assert_eq!(SignedTx::parse(&vec![0; MAX_TX_BYTES + 1]), Err(DecodeError::TooLarge));
}

#[test]
fn a_key_given_twice_is_refused_wherever_it_is() {
    let twice = |change: &dyn Fn(&mut Cbor)| changed(|tx| change(tx)).map(|tx| tx.id);
    let double = |map: &mut Cbor| {
        let fields = map.as_map_mut().unwrap();
        let first = fields[0].clone();
        fields.push(first);
    };
    type BytesChange<'a> = &'a dyn Fn(&mut Cbor);
    let places: [(&str, BytesChange<'_>); 6] = [
        ("body", &|tx| double(item(tx, 0))),
        ("witness set", &|tx| double(item(tx, 1))),
        ("metadata", &|tx| double(item(tx, 3))),
        ("output", &|tx| double(item(field(item(tx, 0), 1), 0))),
        ("policies", &|tx| double(item(field(item(field(item(tx, 0), 1), 0), 1), 1))),
        ("assets", &|tx| {
            let policies = item(field(item(field(item(tx, 0), 1), 0), 1), 1).as_map_mut().unwrap();
            double(&mut policies[0].1);
        }),
    ];
    for (name, change) in places {
        assert_eq!(twice(change), Err(DecodeError::Cbor(CborError::DuplicateKey)), "{name}");
    }
}

#[test]
fn other_encodings_of_lists_and_auxiliary_data_that_wallets_use_are_read() {
    let cbor = encode(&payment());
    // Inputs without the set's tag, and as an indefinite list.
    assert!(with_body(0, Cbor::Array(vec![input(1, 0)])).is_ok());
    let tagged_input = [&[0xd9, 1, 2, 0x81, 0x82, 0x58, 0x20][..], &[1; 32], &[0]].concat();
    let start = cbor.windows(tagged_input.len()).position(|window| window == tagged_input).unwrap();
    let indefinite = [&[0x9f, 0x82, 0x58, 0x20][..], &[1; 32], &[0, 0xff]].concat();
    let tx = SignedTx::parse(&[&cbor[..start], &indefinite, &cbor[start + tagged_input.len()..]].concat()).unwrap();
    assert_eq!(tx.inputs.len(), 1);

    for (data, has_scripts) in [
        (Cbor::Null, None),
        (Cbor::Array(vec![map([(1, int(1))]), Cbor::Array(vec![])]), Some(false)),
        (Cbor::Array(vec![map([(1, int(1))]), Cbor::Array(vec![int(0)])]), Some(true)),
        (Cbor::Tag(259, Box::new(map([(0, map([(1, int(1))]))]))), Some(false)),
        (Cbor::Tag(259, Box::new(map([(0, map([])), (1, Cbor::Array(vec![]))]))), Some(true)),
    ] {
        let tx = changed(|tx| *item(tx, 3) = data.clone()).unwrap();
        assert_eq!(tx.auxiliary_data.map(|data| data.has_scripts), has_scripts, "{data:?}");
    }
}

/// Checks that the independent decoder pallas decodes the transaction in the same way.
fn assert_pallas_agrees(tx: &SignedTx) {
    let theirs: conway::Tx<'_> = minicbor::decode(tx.cbor()).expect("pallas reads what we read");
    let body = &theirs.transaction_body;
    assert_eq!(body.fee, tx.fee.get());
    assert_eq!(body.ttl, tx.ttl);
    assert_eq!(body.validity_interval_start, tx.validity_start);
    let inputs: Vec<_> = body.inputs.iter().map(|input| (*input.transaction_id, input.index)).collect();
    let ours: Vec<_> = tx.inputs.iter().map(|input| (*input.tx.as_bytes(), u64::from(input.index))).collect();
    assert_eq!(inputs, ours);
    assert_eq!(body.outputs.len(), tx.outputs.len());
    for (theirs, ours) in body.outputs.iter().zip(&tx.outputs) {
        let (address, lovelace) = match theirs {
            conway::TransactionOutput::Legacy(output) => (
                &output.address,
                match &output.amount {
                    pallas_primitives::alonzo::Value::Coin(coin)
                    | pallas_primitives::alonzo::Value::Multiasset(coin, _) => *coin,
                },
            ),
            conway::TransactionOutput::PostAlonzo(output) => (
                &output.address,
                match &output.value {
                    conway::Value::Coin(coin) | conway::Value::Multiasset(coin, _) => *coin,
                },
            ),
        };
        assert_eq!(address.as_slice(), ours.address);
        assert_eq!(lovelace, ours.value.lovelace.get());
    }
    let signatures = theirs.transaction_witness_set.vkeywitness.as_ref().map_or(0, |witnesses| witnesses.len());
    assert_eq!(signatures, tx.vkey_witnesses.len());
}

#[test]
fn an_unrelated_decoder_reads_the_payment_alike() {
    assert_pallas_agrees(&SignedTx::parse(&encode(&payment())).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = SignedTx::parse(&bytes);
    }

    #[test]
    fn no_changed_bytes_panic_and_a_read_transaction_has_the_id_of_its_bytes(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0..3u8), 1..6)
    ) {
        let mut cbor = encode(&payment());
        for (at, byte, kind) in edits {
            let at = at.index(cbor.len());
            match kind {
                0 => cbor[at] = byte,
                1 => cbor.insert(at, byte),
                _ => { cbor.remove(at); }
            }
        }
        if let Ok(tx) = SignedTx::parse(&cbor) {
            prop_assert_eq!(tx.cbor(), cbor.as_slice());
            if tx.parts.is_empty() {
                assert_pallas_agrees(&tx);
            }
            let mut reencoded: Cbor = ciborium::from_reader(cbor.as_slice()).unwrap();
            if encode(&reencoded) == cbor {
                prop_assert_eq!(tx.id, TxHash::of_body(&encode(item(&mut reencoded, 0))));
            }
        }
    }
}
