//! The decoders of external bytes, each as a function that panics if the decoder breaks its promise. Called by the
//! fuzzer (`make fuzz`) and by a test with the stored corpus (`xtask/tests/corpus.rs`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a promise that is not kept is a panic"
)]

use cardano::{
    cip8::SignedMessage,
    tx::{OutputDatum, SignedTx, TransactionUtxos, read_unspent, transaction_id},
};
use escrow::{Datum, Redeemer};
use pallas_codec::minicbor::{self, Decoder};
use pallas_primitives::{BigInt, PlutusData};
use serde_json::Value;
use x402_cardano::{
    escrow::BlockchainIdentifier,
    wire::{Accepted, PaymentRequirements},
};

/// Panics if the bytes show a broken promise.
pub type Check = fn(&[u8]);

/// The decoders by the names of their corpora.
pub const DECODERS: [(&str, Check); 7] = [
    ("cose", cose),
    ("datum", datum),
    ("redeemer", redeemer),
    ("requirements", requirements),
    ("transaction", transaction),
    ("unspent", unspent),
    ("utxos", utxos),
];

/// Decodes a wallet's signature, which must not panic. The first two bytes are the length of the COSE_Key.
pub fn cose(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (key, signature) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
    if let Ok(message) = SignedMessage::parse(key, signature) {
        let _ = message.check(&message.address().clone(), &[0; 32]);
        assert!(signature.windows(64).any(|part| part == message.signature()));
    }
}

/// Indexes of the cooldowns, which are clamped to the last valid time.
const COOLDOWNS: [usize; 2] = [16, 17];
const LAST_TIME: i64 = (1 << 53) - 1;

/// Decodes an escrow's datum. It must not panic, and must agree with the ledger's own decoder.
pub fn datum(bytes: &[u8]) {
    let Ok(datum) = Datum::from_cbor(bytes) else { return };
    assert_eq!(Datum::from_cbor(&datum.to_cbor()), Ok(datum.clone()), "written and read again");
    let tree: PlutusData = minicbor::decode(bytes).expect("what is ours is Plutus data");
    let (PlutusData::Constr(tree), PlutusData::Constr(read)) = (&tree, &datum.to_data()) else {
        panic!("a constructor")
    };
    assert_eq!((tree.constr_index(), tree.fields.len()), (read.constr_index(), read.fields.len()));
    let last = PlutusData::BigInt(BigInt::Int(LAST_TIME.into()));
    for (place, (field, read)) in tree.fields.iter().zip(read.fields.iter()).enumerate() {
        let beyond = COOLDOWNS.contains(&place) && *read == last && *field > last;
        assert!(field == read || beyond, "field {place}: {field:?} was read as {read:?}");
    }
    let _ = datum.buyer.key_address();
}

/// Decodes an escrow's redeemer. It must not panic, and must agree with the ledger's own decoder.
pub fn redeemer(bytes: &[u8]) {
    let Ok(redeemer) = Redeemer::from_cbor(bytes) else { return };
    assert_eq!(Redeemer::from_cbor(&redeemer.to_cbor()), Ok(redeemer.clone()), "written and read again");
    let tree: PlutusData = minicbor::decode(bytes).expect("what is ours is Plutus data");
    assert_eq!(tree, redeemer.to_data(), "the same tree");
}

/// Decodes the accepted requirements of a payment. It must not panic, and encode to the same value.
pub fn requirements(bytes: &[u8]) {
    let Ok(entry) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(accepted) = serde_json::from_value::<Accepted>(entry.clone()) else { return };
    let Ok(requirements) = serde_json::from_value::<PaymentRequirements>(entry.clone()) else { return };
    // A missing `extra` is encoded as an empty one.
    let whole = entry.get("extra").is_some();
    assert_eq!(accepted.matches(&requirements), whole, "every value has one spelling");
    let Some(extra) = requirements.extra.escrow() else { return };
    let _ = extra.terms_digest(&requirements);
    let _ = extra.input_commitment.check();
    // `payTo` is arbitrary text until it is compared with the escrow's address; with a dot in it, the identifier cannot
    // be parsed.
    let identifier = extra.identifier(&requirements.pay_to);
    if let Ok(read) = BlockchainIdentifier::decode(&identifier.encode()) {
        assert_eq!(read, identifier);
    }
}

/// Decodes a signed transaction. It must not panic, and keep the bytes.
pub fn transaction(bytes: &[u8]) {
    let Ok(tx) = SignedTx::parse(bytes) else { return };
    assert_eq!(tx.cbor(), bytes, "kept byte for byte");
    assert_eq!(SignedTx::parse(tx.cbor()).map(|again| again.id), Ok(tx.id));
    for output in &tx.outputs {
        if let Some(OutputDatum::Inline(datum)) = &output.datum {
            let _ = Datum::from_cbor(datum);
        }
    }
}

/// Decodes a wallet's unspent output. It must not panic, and agree with decoding the output within a transaction.
pub fn unspent(bytes: &[u8]) {
    let Ok(utxo) = read_unspent(bytes) else { return };
    let mut decoder = Decoder::new(bytes);
    decoder.array().expect("a pair");
    let input = decoder.position();
    decoder.skip().expect("an input");
    let output = decoder.position();
    decoder.skip().expect("an output");
    let end = decoder.position();
    // [{0: [input], 1: [output]}, {}, true, null]
    let (input, output) = (&bytes[input..output], &bytes[output..end]);
    let tx = [&[0x84, 0xa2, 0x00, 0x81], input, &[0x01, 0x81], output, &[0xa0, 0xf5, 0xf6]].concat();
    let read = TransactionUtxos::read(&tx).expect("a transaction of it");
    assert_eq!(read.spent, [utxo.reference]);
    assert_eq!(read.created.len(), 1);
    assert_eq!((&read.created[0].address, &read.created[0].value), (&utxo.address, &utxo.value));
    assert_eq!(read.created[0].inline_datum, utxo.inline_datum);
}

/// Decodes any transaction. It must not panic, and agree with the strict decoder on all that the latter accepts.
pub fn utxos(bytes: &[u8]) {
    let Ok(utxos) = TransactionUtxos::read(bytes) else { return };
    assert_eq!(transaction_id(bytes), Ok(utxos.id));
    assert!(utxos.spent_by_script.iter().all(|input| utxos.spent.contains(input)));
    let Ok(tx) = SignedTx::parse(bytes) else { return };
    assert_eq!((utxos.id, utxos.valid), (tx.id, tx.is_valid));
    if utxos.valid {
        assert_eq!(utxos.spent, tx.inputs);
        assert!(utxos.created.iter().map(|made| &made.value).eq(tx.outputs.iter().map(|output| &output.value)));
    }
}
