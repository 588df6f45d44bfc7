use std::sync::LazyLock;

use ciborium::{Value as Cbor, cbor};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::{
    Address, KeyHash, Lovelace, ScriptHash, blockfrost,
    hash::blake2b,
    tx::{AddressKind, Output, OutputDatum, SignedTx, TxPart},
};

/// Transactions that common wallet libraries and the local ledger's own tests (`devnet/test`) make, each with its
/// effects according to the ledger's API. They contain payments, tokens, metadata, certificates, a script that succeeds
/// and one that fails.
const TRANSACTIONS: &str = include_str!("../../../tests/fixtures/transactions.jsonl");

#[derive(Deserialize)]
struct Recorded {
    cbor: String,
    utxos: serde_json::Value,
}

static RECORDED: LazyLock<Vec<(Vec<u8>, serde_json::Value)>> = LazyLock::new(|| {
    let lines = TRANSACTIONS.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.map(|Recorded { cbor, utxos }| (hex::decode(cbor).unwrap(), utxos)).collect()
});

fn int(n: u64) -> Cbor {
    Cbor::Integer(n.into())
}

fn bytes(bytes: &[u8]) -> Cbor {
    Cbor::Bytes(bytes.to_vec())
}

fn map<const N: usize>(fields: [(u64, Cbor); N]) -> Cbor {
    Cbor::Map(fields.into_iter().map(|(key, value)| (int(key), value)).collect())
}

fn input(tx: u8, index: u64) -> Cbor {
    Cbor::Array(vec![bytes(&[tx; 32]), int(index)])
}

fn spent(tx: u8, index: u16) -> TxRef {
    TxRef { tx: TxHash::new([tx; 32]), index }
}

fn owner() -> Address {
    Address::enterprise(KeyHash::new([7; 28]))
}

fn to_owner(lovelace: u64) -> Cbor {
    map([(0, bytes(&owner().to_bytes())), (1, int(lovelace))])
}

fn encode(value: &Cbor) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(value, &mut out).unwrap();
    out
}

fn transaction(body: Cbor) -> Vec<u8> {
    encode(&Cbor::Array(vec![body, map([]), Cbor::Bool(true), Cbor::Null]))
}

/// Reads a transaction whose only output is this one, and returns that output.
fn made(output: Cbor) -> Result<Utxo, TransactionUtxosError> {
    let body = map([(0, Cbor::Array(vec![input(1, 0)])), (1, Cbor::Array(vec![output])), (2, int(1))]);
    TransactionUtxos::read(&transaction(body)).map(|mut ours| ours.created.remove(0))
}

#[test]
fn the_inputs_that_scripts_released_are_those_with_a_redeemer() {
    let units = || cbor!([1, 2]).unwrap();
    let listed = |place: u64| Cbor::Array(vec![int(0), int(place), int(42), units()]);
    let minted = Cbor::Array(vec![int(1), int(2), int(42), units()]);
    let keyed = |place: u64| (Cbor::Array(vec![int(0), int(place)]), Cbor::Array(vec![int(42), units()]));
    let read = |redeemers: Cbor, flag: bool| {
        let inputs = Cbor::Array(vec![input(3, 0), input(1, 7), input(2, 0)]);
        let body = map([(0, inputs), (1, Cbor::Array(vec![to_owner(5)])), (2, int(1))]);
        let witnesses = map([(0, Cbor::Array(vec![])), (5, redeemers)]);
        let tx = Cbor::Array(vec![body, witnesses, Cbor::Bool(flag), Cbor::Null]);
        TransactionUtxos::read(&encode(&tx)).unwrap().spent_by_script
    };
    assert_eq!(read(Cbor::Array(vec![listed(2), listed(0), minted]), true), [spent(1, 7), spent(3, 0)]);
    assert_eq!(read(Cbor::Map(vec![keyed(1), keyed(99)]), true), [spent(2, 0)]);
    assert_eq!(read(Cbor::Map(vec![keyed(1)]), false), [], "scripts failed: nothing was released");
}

#[test]
fn decoded_inputs_and_outputs_equal_the_ledgers() {
    assert!(RECORDED.len() > 15);
    for (cbor, utxos) in RECORDED.iter() {
        let ours = TransactionUtxos::read(cbor).unwrap();
        let listed = blockfrost::outputs(utxos.to_string().as_bytes(), &ours.id).unwrap();
        let expected: Vec<Utxo> =
            listed.into_iter().filter(|output| output.not_on_ledger != ours.valid).map(|output| output.utxo).collect();
        assert_eq!(ours.created, expected);
        let inputs = utxos["inputs"].as_array().unwrap().iter();
        let taken = inputs.filter(|input| input["collateral"] != ours.valid && input["reference"] == false);
        let taken: Vec<String> =
            taken.map(|input| format!("{}#{}", input["tx_hash"].as_str().unwrap(), input["output_index"])).collect();
        let mut spent: Vec<String> = ours.spent.iter().map(ToString::to_string).collect();
        spent.sort();
        assert_eq!(spent, {
            let mut taken = taken;
            taken.sort();
            taken
        });
        assert_eq!(transaction_id(cbor), Ok(ours.id));
    }
}

#[test]
fn a_transaction_whose_scripts_failed_spent_its_collateral_and_made_its_return() {
    let body = map([
        (0, Cbor::Array(vec![input(1, 0)])),
        (1, Cbor::Array(vec![to_owner(5), to_owner(6)])),
        (2, int(1)),
        (13, Cbor::Array(vec![input(2, 3)])),
        (16, to_owner(7)),
    ]);
    let read = |flag: bool| {
        let tx = Cbor::Array(vec![body.clone(), map([]), Cbor::Bool(flag), Cbor::Null]);
        TransactionUtxos::read(&encode(&tx)).unwrap()
    };
    let (succeeded, failed) = (read(true), read(false));
    assert_eq!(succeeded.spent, [spent(1, 0)]);
    assert_eq!(succeeded.created.len(), 2);
    assert_eq!(failed.spent, [spent(2, 3)]);
    let returned = failed.created.first().unwrap();
    assert_eq!((failed.created.len(), returned.reference.index), (1, 2), "behind the outputs that were not made");
    assert_eq!(returned.value.lovelace, Lovelace::new(7).unwrap());
    assert!(!failed.valid && failed.id == succeeded.id, "the flag is outside of what the id names");
}

/// The author of a transaction chooses the collateral return, in any form that a later ledger may accept. It must not
/// prevent reading a transaction whose scripts succeeded.
#[test]
fn the_collateral_return_of_a_valid_transaction_is_not_read() {
    let negative = Cbor::Array(vec![bytes(&[0x60; 29]), cbor!(-5).unwrap()]);
    for odd in [int(7), map([(0, bytes(&[])), (9, int(1))]), negative] {
        let body = map([(0, Cbor::Array(vec![input(1, 0)])), (1, Cbor::Array(vec![to_owner(5)])), (16, odd)]);
        let read = |flag: bool| {
            let tx = Cbor::Array(vec![body.clone(), map([]), Cbor::Bool(flag), Cbor::Null]);
            TransactionUtxos::read(&encode(&tx))
        };
        assert_eq!(read(true).unwrap().created.len(), 1);
        assert_eq!(read(false), Err(TransactionUtxosError::Malformed("collateral return")));
    }
}

/// Parts of a transaction that no caller asks for must not prevent reading its effects.
#[test]
fn unrequested_parts_are_skipped() {
    let parts = [
        (4, cbor!([[7, [0, vec![0u8; 28]], 2_000_000]]).unwrap()),
        (5, Cbor::Map(vec![(bytes(&[0xe0; 29]), int(5))])),
        (6, cbor!(["an update of an older era", 3]).unwrap()),
        (9, Cbor::Map(vec![(bytes(&[3; 28]), Cbor::Map(vec![(bytes(b"x"), cbor!(-5).unwrap())]))])),
        (11, bytes(&[1; 32])),
        (14, Cbor::Tag(258, Box::new(Cbor::Array(vec![bytes(&[4; 28])])))),
        (17, int(5_000_000)),
        (18, Cbor::Array(vec![input(9, 9)])),
        (19, cbor!({ "votes" => [1, 2, 3] }).unwrap()),
        (20, cbor!([[100, "proposal"]]).unwrap()),
        (21, int(1)),
        (22, int(2)),
    ];
    for (key, part) in parts {
        let body = map([
            (0, Cbor::Tag(258, Box::new(Cbor::Array(vec![input(1, 65_535)])))),
            (1, Cbor::Array(vec![to_owner(5)])),
            (2, int(170_000)),
            (key, part),
        ]);
        let ours = TransactionUtxos::read(&transaction(body)).unwrap();
        assert_eq!((ours.spent, ours.created.len()), (vec![spent(1, 65_535)], 1), "key {key}");
    }
}

#[test]
fn every_kind_of_address_is_written_as_the_chain_writes_it() {
    // CIP-19's vectors, and a Byron address from the ledger's documents.
    for text in [
        "addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae",
        "addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr",
        "addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky",
        "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8",
    ] {
        let raw = bech32::decode(text).unwrap().1;
        assert_eq!(made(map([(0, bytes(&raw)), (1, int(5))])).unwrap().address, text);
    }
    let byron = "37btjrVyb4KDXBNC4haBVPCrro8AQPHwvCMp3RFhhSVWwfFmZ6wwzSK6JK1hY6wHNmtrpTf1kdbva8TCneM2YsiXT7mrzT21EacHnPpz5YyUdj64na";
    let raw = bs58::decode(byron).into_vec().unwrap();
    assert_eq!(made(map([(0, bytes(&raw)), (1, int(5))])).unwrap().address, byron);
    // An address without a usual text form must not prevent reading the rest.
    for odd in [[vec![0x82], vec![0x40; 900]].concat(), vec![0x62; 29], vec![0x60; 300], vec![0xa2; 40]] {
        assert_eq!(made(map([(0, bytes(&odd)), (1, int(5))])).unwrap().address, hex::encode(&odd));
    }
    for ownerless in [map([(0, bytes(&[])), (1, int(5))]), map([(1, int(5))]), Cbor::Array(vec![bytes(&[]), int(5)])] {
        assert!(made(ownerless).is_err(), "no address");
    }
}

#[test]
fn an_output_tells_its_datum_its_tokens_and_the_hash_of_its_script() {
    let datum = encode(&int(42));
    let embedded = |bytes_: &[u8]| Cbor::Tag(24, Box::new(bytes(bytes_)));
    let to = (0, bytes(&owner().to_bytes()));
    let inline = made(map([to.clone(), (1, int(5)), (2, Cbor::Array(vec![int(1), embedded(&datum)]))])).unwrap();
    assert_eq!(inline.inline_datum.as_deref(), Some(datum.as_slice()));
    assert_eq!(inline.datum_hash, Some(blake2b(&datum)));
    let hashed = made(map([to.clone(), (1, int(5)), (2, Cbor::Array(vec![int(0), bytes(&[8; 32])]))])).unwrap();
    assert_eq!((hashed.inline_datum, hashed.datum_hash), (None, Some([8; 32])));
    let legacy = made(Cbor::Array(vec![to.1.clone(), int(5), bytes(&[8; 32])])).unwrap();
    assert_eq!(legacy.datum_hash, Some([8; 32]));

    // The hash of the ledger's simplest native script, `all []`: BLAKE2b-224 of 00 and its CBOR.
    let native = encode(&cbor!([0, [1, []]]).unwrap());
    let carried = made(map([to.clone(), (1, int(5)), (3, embedded(&native))])).unwrap();
    assert_eq!(carried.reference_script, Some(ScriptHash::new(blake2b(&[0, 0x82, 0x01, 0x80]))));
    let plutus = encode(&Cbor::Array(vec![int(3), bytes(&[1, 2, 3])]));
    let carried = made(map([to.clone(), (1, int(5)), (3, embedded(&plutus))])).unwrap();
    assert_eq!(carried.reference_script, Some(ScriptHash::new(blake2b(&[3, 1, 2, 3]))));

    let names = Cbor::Map(vec![(bytes(b"coin"), int(5)), (bytes(b""), int(u64::MAX)), (bytes(b"none"), int(0))]);
    let held = Cbor::Array(vec![int(9), Cbor::Map(vec![(bytes(&[3; 28]), names)])]);
    let value = made(map([to, (1, held)])).unwrap().value;
    let policy = "03".repeat(28);
    assert_eq!(value.lovelace, Lovelace::new(9).unwrap());
    assert_eq!(value.assets, [(policy.clone(), u64::MAX), (format!("{policy}636f696e"), 5)].into());
}

/// The ledger accepts containers of indefinite length (`bf ... ff`), and integers in more bytes than they need.
#[test]
fn unusual_encodings_that_the_ledger_accepts_are_read() {
    let owner = hex::encode(owner().to_bytes());
    let tx = "07".repeat(32);
    let chunked = format!("5f581d{owner}ff");
    let body = format!(
        "bf 00 d90102 9f 9f 5820{tx} 1a00000001 ff ff  1801 9f bf 00 {chunked} 01 1b0000000000000005 ff \
         9f 581d{owner} 9f 05 bf 581c{} bf 41aa 1803 ff ff ff ff ff 02 1a0002a300 08 1905dc 03 1903e8 ff",
        "09".repeat(28)
    );
    let text = format!("9f {body} a0 f5 a1 1902a2 9f 01 bf 61 61 5f 4101 ff ff ff ff").replace(' ', "");
    let ours = TransactionUtxos::read(&hex::decode(text).unwrap()).unwrap();
    assert_eq!(ours.id, TxHash::of_body(&hex::decode(body.replace(' ', "")).unwrap()));
    assert_eq!(ours.spent, [spent(7, 1)]);
    assert_eq!((ours.validity_start, ours.ttl), (Some(1500), Some(1000)));
    assert_eq!(ours.created.len(), 2);
    assert_eq!(ours.created[1].value.assets, [(format!("{}aa", "09".repeat(28)), 3)].into());
}

#[test]
fn a_transaction_of_an_era_without_scripts_is_read() {
    let body =
        map([(0, Cbor::Array(vec![input(1, 0)])), (1, Cbor::Array(vec![to_owner(5)])), (2, int(1)), (3, int(9))]);
    let ours = TransactionUtxos::read(&encode(&Cbor::Array(vec![body, map([]), Cbor::Null]))).unwrap();
    assert_eq!((ours.valid, ours.spent, ours.ttl), (true, vec![spent(1, 0)], Some(9)));
}

#[test]
fn deeply_nested_metadata_is_skipped() {
    let mut deep = vec![0x81; 15_000];
    deep.push(0);
    let body = encode(&map([(0, Cbor::Array(vec![input(1, 0)])), (1, Cbor::Array(vec![to_owner(5)])), (2, int(1))]));
    let tx = [vec![0x84], body, vec![0xa0, 0xf5], deep].concat();
    assert_eq!(TransactionUtxos::read(&tx).unwrap().spent, [spent(1, 0)]);
}

#[test]
fn bytes_that_are_no_transaction_are_refused() {
    let body = || map([(0, Cbor::Array(vec![input(1, 0)])), (1, Cbor::Array(vec![to_owner(5)])), (2, int(1))]);
    let huge = vec![0; MAX_TX_IN_BLOCK + 1];
    assert_eq!(TransactionUtxos::read(&huge), Err(TransactionUtxosError::TooLarge));
    for bad in [
        vec![],
        encode(&body()),
        encode(&Cbor::Array(vec![body()])),
        encode(&Cbor::Array(vec![body(), map([]), Cbor::Bool(true), Cbor::Null, Cbor::Null])),
        transaction(map([(0, int(1))])),
        transaction(map([(1, Cbor::Array(vec![map([(1, int(5))])]))])),
        transaction(map([(1, Cbor::Array(vec![map([(0, bytes(&owner().to_bytes())), (1, int(u64::MAX))])]))])),
    ] {
        assert!(TransactionUtxos::read(&bad).is_err(), "{}", hex::encode(&bad));
    }
    let whole = transaction(body());
    for length in 0..whole.len() - 1 {
        assert!(TransactionUtxos::read(&whole[..length]).is_err(), "cut at {length}");
    }
}

/// Checks that [`SignedTx`] and [`TransactionUtxos`] agree on a transaction.
fn assert_readers_agree(cbor: &[u8]) {
    let Ok(tx) = SignedTx::parse(cbor) else { return };
    // The strict reader does not check whether these bytes are an address and a script.
    let judged = |output: &Output| output.reference_script.is_some() || output.owner == AddressKind::Unsupported;
    let ours = match TransactionUtxos::read(cbor) {
        Err(_) if tx.outputs.iter().any(judged) => return,
        // The strict reader skips these parts. If they are malformed, the ledger rejects the transaction too.
        Err(_)
            if [TxPart::CollateralReturn, TxPart::CollateralInputs, TxPart::Redeemers]
                .iter()
                .any(|part| tx.parts.contains_key(part)) =>
        {
            return;
        }
        read => read.unwrap(),
    };
    assert_eq!((ours.id, ours.valid), (tx.id, tx.is_valid));
    assert_eq!((ours.ttl, ours.validity_start), (tx.ttl, tx.validity_start));
    if !tx.is_valid {
        return;
    }
    assert_eq!(ours.spent, tx.inputs);
    assert_eq!(ours.created.len(), tx.outputs.len());
    for (made, output) in ours.created.iter().zip(&tx.outputs) {
        assert_eq!(made.value, output.value);
        let datum = match &output.datum {
            Some(OutputDatum::Inline(datum)) => Some(datum),
            _ => None,
        };
        assert_eq!(made.inline_datum.as_ref(), datum);
        assert_eq!(made.address, crate::address::text_of(&output.address));
        assert_eq!(made.reference_script.is_some(), output.reference_script.is_some());
    }
}

#[test]
fn both_transaction_readers_agree() {
    for (cbor, _) in RECORDED.iter() {
        SignedTx::parse(cbor).unwrap();
        assert_readers_agree(cbor);
    }
}

#[test]
fn a_payment_beside_a_long_address_of_byrons_is_read_like_any_other() {
    let long = [vec![0x82], vec![0x40; 900]].concat();
    let outputs = Cbor::Array(vec![to_owner(5), map([(0, bytes(&long)), (1, int(5))])]);
    let body = map([(0, Cbor::Array(vec![input(1, 0)])), (1, outputs), (2, int(1)), (3, int(9))]);
    let cbor = transaction(body);
    assert_eq!(SignedTx::parse(&cbor).map(|tx| tx.outputs.len()), Ok(2), "a payment is judged so");
    assert_eq!(TransactionUtxos::read(&cbor).map(|utxos| utxos.created.len()), Ok(2), "and looked after so");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = TransactionUtxos::read(&bytes);
    }

    #[test]
    fn transactions_that_the_strict_reader_accepts_are_read_alike(
        which in any::<proptest::sample::Index>(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0..3u8), 0..5),
    ) {
        let mut cbor = which.get(&RECORDED).0.clone();
        for (at, byte, kind) in edits {
            let at = at.index(cbor.len());
            match kind {
                0 => cbor[at] = byte,
                1 => cbor.insert(at, byte),
                _ => { cbor.remove(at); }
            }
        }
        let _ = TransactionUtxos::read(&cbor);
        assert_readers_agree(&cbor);
    }
}
