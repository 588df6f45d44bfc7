//! Tests a valid payment with one change at a time: each change that matters must be rejected with a certain code, and
//! each other change accepted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that cannot go on fails"
)]

mod support;

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{Lovelace, hash::ScriptHash, tx::SignedTx};
use ciborium::Value as Cbor;
use serde_json::json;
use support::*;
use x402_cardano::{
    Refusal,
    exact::{
        self, InputState,
        rules::{LimitBroken, Underpaid},
    },
    wire::PaymentPayload,
};

type PaymentChange = Box<dyn Fn(&mut Payment)>;

fn on(change: impl Fn(&mut Payment) + 'static) -> PaymentChange {
    Box::new(change)
}

/// Creates a change of the payload's JSON.
fn wire(change: impl Fn(&mut serde_json::Value) + Clone + 'static) -> PaymentChange {
    on(move |payment| payment.wire = Some(Box::new(change.clone())))
}

/// Creates a change of one field of `accepted`.
fn accepted(field: &'static str, value: serde_json::Value) -> PaymentChange {
    wire(move |json| json["accepted"][field] = value.clone())
}

fn extra(field: &'static str, value: serde_json::Value) -> PaymentChange {
    wire(move |json| json["accepted"]["extra"][field] = value.clone())
}

fn payload(field: &'static str, value: serde_json::Value) -> PaymentChange {
    wire(move |json| json["payload"][field] = value.clone())
}

/// Creates a change of the transaction's bytes after signing.
fn cbor(change: impl Fn(Vec<u8>) -> Vec<u8> + Clone + 'static) -> PaymentChange {
    on(move |payment| payment.cbor = Some(Box::new(change.clone())))
}

fn body(key: u64, value: Cbor) -> PaymentChange {
    on(move |payment| payment.body.push((key, value.clone())))
}

fn witness_set(key: u64, value: Cbor) -> PaymentChange {
    on(move |payment| payment.witness_set.push((key, value.clone())))
}

fn spends(change: impl Fn(&mut cardano::chain::Utxo) + 'static) -> PaymentChange {
    on(move |payment| match &mut payment.inputs[1].state {
        InputState::Unspent(utxo) => change(utxo),
        _ => unreachable!(),
    })
}

fn pays(change: impl Fn(&mut Made) + 'static) -> PaymentChange {
    on(move |payment| change(&mut payment.outputs[0]))
}

fn changes(change: impl Fn(&mut Made) + 'static) -> PaymentChange {
    on(move |payment| change(&mut payment.outputs[1]))
}

/// Returns the bytes of an address with this header byte, over the seller's key and of this length.
fn headed(header: u8, length: usize) -> Vec<u8> {
    let mut address = vec![header];
    address.extend(address_bytes(SELLER).iter().skip(1));
    address.resize(length, 7);
    address
}

fn address_bytes(seed: u8) -> Vec<u8> {
    address(seed).to_bytes()
}

const DECODE: &str = "invalid_exact_cardano_payload_transaction_decode_failed";
const PAYLOAD: &str = "invalid_exact_cardano_payload";
const DIFFERS: &str = "invalid_exact_cardano_payload_accepted_mismatch";
const NETWORK: &str = "network_mismatch";
const PART: &str = "invalid_exact_cardano_payload_unsupported_part";
const OUTPUT_ADDRESS: &str = "invalid_exact_cardano_payload_output_address";
const NOT_PLAIN: &str = "invalid_exact_cardano_payload_output_not_plain";
const NONCE: &str = "invalid_exact_cardano_payload_nonce_invalid";
const NOT_AVAILABLE: &str = "invalid_exact_cardano_payload_input_not_available";
const INPUT_ADDRESS: &str = "invalid_exact_cardano_payload_input_address";
const VALUE: &str = "invalid_exact_cardano_payload_value_not_conserved";
const SIGNATURE: &str = "invalid_exact_cardano_payload_invalid_signature";
const MISSING_SIGNATURE: &str = "invalid_exact_cardano_payload_missing_signature";
const AUXILIARY: &str = "invalid_exact_cardano_payload_auxiliary_data_hash_mismatch";
const RECIPIENT: &str = "invalid_exact_cardano_payload_recipient_mismatch";
const AMOUNT: &str = "invalid_exact_cardano_payload_amount_insufficient";
const MIN_UTXO: &str = "invalid_exact_cardano_payload_min_utxo_insufficient";
const EXPIRED: &str = "invalid_exact_cardano_payload_ttl_expired";

/// Codes of the errors for payments that cannot be parsed, to which HTTP answers 400. All other errors answer 402.
const MALFORMED: [&str; 3] = [PAYLOAD, DECODE, NONCE];

fn mutations_of_the_payload() -> Vec<(&'static str, PaymentChange, &'static str)> {
    vec![
        ("version 1", wire(|json| json["x402Version"] = json!(1)), PAYLOAD),
        ("version as text", wire(|json| json["x402Version"] = json!("2")), PAYLOAD),
        ("version 2.5", wire(|json| json["x402Version"] = json!(2.5)), PAYLOAD),
        ("no version", wire(|json| drop(json.as_object_mut().unwrap().remove("x402Version"))), PAYLOAD),
        ("an array around the payload", wire(|json| *json = json!([json.clone()])), PAYLOAD),
        (
            "the payload's fields as an array",
            wire(|json| *json = json!([2, null, json["accepted"], json["payload"]])),
            PAYLOAD,
        ),
        ("no accepted", wire(|json| drop(json.as_object_mut().unwrap().remove("accepted"))), PAYLOAD),
        ("accepted null", wire(|json| json["accepted"] = json!(null)), PAYLOAD),
        (
            "accepted as an array of its fields",
            wire(|json| {
                let a = json["accepted"].clone();
                json["accepted"] = json!([
                    a["scheme"],
                    a["network"],
                    a["amount"],
                    a["asset"],
                    a["payTo"],
                    a["maxTimeoutSeconds"],
                    a["extra"]
                ]);
            }),
            PAYLOAD,
        ),
        ("a resource that is a text", wire(|json| json["resource"] = json!("https://example.com/thing")), PAYLOAD),
        ("a resource without url", wire(|json| json["resource"] = json!({})), PAYLOAD),
        ("another scheme", accepted("scheme", json!("upto")), "unsupported_scheme"),
        ("the scheme in capitals", accepted("scheme", json!("EXACT")), "unsupported_scheme"),
        ("mainnet", accepted("network", json!("cardano:mainnet")), NETWORK),
        ("mainnet by its alias", accepted("network", json!("cip34:1-764824073")), NETWORK),
        ("preview", accepted("network", json!("cardano:preview")), NETWORK),
        ("no network of Cardano", accepted("network", json!("eip155:8453")), PAYLOAD),
        ("a lower amount", accepted("amount", json!("1999999")), DIFFERS),
        ("a higher amount", accepted("amount", json!("2000001")), DIFFERS),
        ("an amount with a leading zero", accepted("amount", json!("02000000")), PAYLOAD),
        ("an amount as a number", accepted("amount", json!(2_000_000)), PAYLOAD),
        ("an amount of zero", accepted("amount", json!("0")), PAYLOAD),
        ("another asset", accepted("asset", json!(format!("{}.636f696e", "aa".repeat(28)))), DIFFERS),
        ("an asset that is none", accepted("asset", json!("ADA")), PAYLOAD),
        ("another payee", accepted("payTo", json!(address(FRIEND).to_string())), DIFFERS),
        ("the payee in capitals", accepted("payTo", json!(address(SELLER).to_string().to_uppercase())), DIFFERS),
        ("a longer timeout", accepted("maxTimeoutSeconds", json!(301)), DIFFERS),
        ("a timeout as text", accepted("maxTimeoutSeconds", json!("300")), PAYLOAD),
        ("a negative timeout", accepted("maxTimeoutSeconds", json!(-1)), PAYLOAD),
        (
            "no timeout",
            wire(|json| drop(json["accepted"].as_object_mut().unwrap().remove("maxTimeoutSeconds"))),
            PAYLOAD,
        ),
        ("no extra", wire(|json| drop(json["accepted"].as_object_mut().unwrap().remove("extra"))), DIFFERS),
        ("extra null", accepted("extra", json!(null)), PAYLOAD),
        ("another transfer method", extra("assetTransferMethod", json!("script")), DIFFERS),
        ("fees sponsored", extra("areFeesSponsored", json!(true)), DIFFERS),
        ("fewer confirmations", extra("confirmationPolicy", json!({ "l1Confirmations": -1 })), DIFFERS),
        ("a field in extra", extra("paymentFlow", json!("authorization")), DIFFERS),
        ("a field in accepted", accepted("discount", json!("50%")), PAYLOAD),
        ("no payload", wire(|json| drop(json.as_object_mut().unwrap().remove("payload"))), PAYLOAD),
        (
            "a payload as an array",
            wire(|json| json["payload"] = json!([json["payload"]["transaction"], json["payload"]["nonce"]])),
            PAYLOAD,
        ),
        ("no transaction", wire(|json| drop(json["payload"].as_object_mut().unwrap().remove("transaction"))), PAYLOAD),
        ("a transaction that is null", payload("transaction", json!(null)), PAYLOAD),
        ("an empty transaction", payload("transaction", json!("")), DECODE),
        (
            "a transaction in hex",
            wire(|json| {
                let bytes = STANDARD.decode(json["payload"]["transaction"].as_str().unwrap()).unwrap();
                json["payload"]["transaction"] = json!(hex::encode(bytes));
            }),
            DECODE,
        ),
        (
            "a transaction with a line break",
            wire(|json| {
                let text = json["payload"]["transaction"].as_str().unwrap().to_owned();
                json["payload"]["transaction"] = json!(format!("{text}\n"));
            }),
            DECODE,
        ),
        ("a transaction over the bound", payload("transaction", json!("A".repeat(21_852))), DECODE),
        ("no nonce", wire(|json| drop(json["payload"].as_object_mut().unwrap().remove("nonce"))), PAYLOAD),
        ("a nonce that is null", payload("nonce", json!(null)), PAYLOAD),
        ("an empty nonce", payload("nonce", json!("")), NONCE),
        ("a nonce without an index", payload("nonce", json!("11".repeat(32))), NONCE),
        ("a nonce in capitals", payload("nonce", json!(format!("{}#0", "AB".repeat(32)))), NONCE),
        ("a nonce with a padded index", payload("nonce", json!(format!("{}#00", "11".repeat(32)))), NONCE),
        ("a nonce with an index over 65535", payload("nonce", json!(format!("{}#65536", "11".repeat(32)))), NONCE),
        (
            "a nonce that is not spent",
            payload("nonce", json!(format!("{}#1", "11".repeat(32)))),
            "invalid_exact_cardano_payload_nonce_not_in_inputs",
        ),
    ]
}

fn mutations_of_the_transaction() -> Vec<(&'static str, PaymentChange, &'static str)> {
    vec![
        (
            "a byte cut off",
            cbor(|mut tx| {
                tx.pop();
                tx
            }),
            DECODE,
        ),
        (
            "a byte added",
            cbor(|mut tx| {
                tx.push(0);
                tx
            }),
            DECODE,
        ),
        (
            "an era without the validity flag",
            on(|p| p.cbor = Some(Box::new(|tx| [&[0x83], &tx[1..]].concat()))),
            DECODE,
        ),
        (
            "the same input twice",
            on(|p| {
                let again = p.inputs[0].reference;
                p.inputs.push(Input { reference: again, state: p.inputs[0].state.clone() });
            }),
            DECODE,
        ),
        ("no inputs", on(|p| p.inputs.clear()), DECODE),
        ("an input that does not exist", on(|p| p.inputs[1].state = InputState::Unknown), NOT_AVAILABLE),
        (
            "an input that was spent",
            on(|p| p.inputs[1].state = InputState::Spent(reference(0x77, 0).tx)),
            NOT_AVAILABLE,
        ),
        (
            "a nonce that does not exist",
            on(|p| p.inputs[0].state = InputState::Unknown),
            "invalid_exact_cardano_payload_nonce_not_on_chain",
        ),
        (
            "a nonce spent by this very transaction",
            on(|p| {
                let id = SignedTx::parse(&p.transaction()).unwrap().id;
                p.outputs[1].lovelace = p.made()[1].lovelace;
                p.change = None;
                p.inputs[0].state = InputState::Spent(id);
            }),
            "invalid_exact_cardano_payload_nonce_not_on_chain",
        ),
        (
            "an input of a script",
            spends(|utxo| utxo.address = "addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr".into()),
            INPUT_ADDRESS,
        ),
        (
            "an input of mainnet",
            spends(|utxo| utxo.address = "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8".into()),
            INPUT_ADDRESS,
        ),
        (
            "a Byron input",
            spends(|utxo| {
                utxo.address = "2cWKMJemoBajc46Wu4Z7e6bG48myZWfB7Z6pD77L6PrJQWt9HZ3Yv7o8CYZTBMqHTPTkv".into()
            }),
            INPUT_ADDRESS,
        ),
        (
            "an input with a reference script",
            spends(|utxo| utxo.reference_script = Some(ScriptHash::new([1; 28]))),
            "invalid_exact_cardano_payload_input_reference_script",
        ),
        (
            "an input whose owner did not sign",
            spends(|utxo| utxo.address = address(FRIEND).to_string()),
            MISSING_SIGNATURE,
        ),
        (
            "the payee left out",
            on(|p| {
                p.outputs.remove(0);
                p.change = Some(0);
            }),
            RECIPIENT,
        ),
        ("another recipient", pays(|made| made.address = address_bytes(FRIEND)), RECIPIENT),
        ("the payee's key with another stake key", pays(|made| made.address[40] ^= 1), RECIPIENT),
        (
            "the payee's key without its stake key",
            pays(|made| {
                made.address.truncate(29);
                made.address[0] = 0x60;
            }),
            RECIPIENT,
        ),
        ("a lovelace too little", pays(|made| made.lovelace = PRICE - 1), AMOUNT),
        (
            "the amount in two halves",
            on(|p| {
                p.outputs[0].lovelace = PRICE / 2;
                p.outputs.insert(1, Made::to(&address(SELLER), PRICE / 2));
                p.change = Some(2);
            }),
            AMOUNT,
        ),
        ("an output of mainnet", changes(|made| made.address[0] |= 1), OUTPUT_ADDRESS),
        ("a Byron output", changes(|made| made.address = headed(0x82, 70)), OUTPUT_ADDRESS),
        ("a pointer output", changes(|made| made.address = headed(0x40, 32)), OUTPUT_ADDRESS),
        ("a stake address as output", changes(|made| made.address = headed(0xe0, 29)), OUTPUT_ADDRESS),
        (
            "an output address that is too short",
            changes(|made| {
                made.address.pop();
            }),
            OUTPUT_ADDRESS,
        ),
        (
            "a datum hash on the payment",
            pays(|made| made.more.push((2, Cbor::Array(vec![int(0), bytes(&[1; 32])])))),
            NOT_PLAIN,
        ),
        (
            "an inline datum on the change",
            changes(|made| made.more.push((2, Cbor::Array(vec![int(1), Cbor::Tag(24, Box::new(bytes(&[0])))])))),
            NOT_PLAIN,
        ),
        (
            "a reference script on the change",
            changes(|made| made.more.push((3, Cbor::Tag(24, Box::new(bytes(&[0x82, 0, 0x80])))))),
            NOT_PLAIN,
        ),
        (
            "change under its minimum",
            on(|p| {
                p.fee = None;
                p.change = None;
                p.outputs[1].lovelace = 1_000_000;
            }),
            MIN_UTXO,
        ),
        (
            "a value with too many tokens",
            on(|p| p.parameters.max_value_size = 40),
            "invalid_exact_cardano_payload_value_too_large",
        ),
        (
            "an output holding no lovelace",
            on(|p| {
                p.outputs.push(Made::to(&address(BUYER), 0));
            }),
            MIN_UTXO,
        ),
        ("a fee one lovelace too low", on(|p| p.set_least_fee(-1)), "invalid_exact_cardano_payload_fee_below_minimum"),
        ("a fee of nothing", on(|p| p.fee = Some(0)), "invalid_exact_cardano_payload_fee_below_minimum"),
        (
            "a lovelace from nowhere",
            on(|p| {
                p.outputs[1].lovelace = p.made()[1].lovelace + 1;
                p.change = None;
            }),
            VALUE,
        ),
        (
            "a lovelace lost",
            on(|p| {
                p.outputs[1].lovelace = p.made()[1].lovelace - 1;
                p.change = None;
            }),
            VALUE,
        ),
        ("a token lost", changes(|made| made.tokens[0].1 = 6), VALUE),
        ("a token from nowhere", changes(|made| made.tokens[0].1 = 8), VALUE),
        ("a token renamed", changes(|made| made.tokens[0].0 = "coim".into()), VALUE),
        ("tokens dropped", changes(|made| made.tokens.clear()), VALUE),
        ("no TTL", on(|p| p.ttl = None), "invalid_exact_cardano_payload_ttl_missing"),
        ("a TTL of zero", on(|p| p.ttl = Some(0)), EXPIRED),
        ("a TTL of this slot", on(|p| p.ttl = Some(now_slot())), EXPIRED),
        (
            "a TTL that the chain has passed",
            on(|p| {
                p.tip_slot = now_slot() + 250;
                p.tip_time_ms = NOW_MS + 250_000;
            }),
            EXPIRED,
        ),
        (
            "a TTL of the next block's slot",
            on(|p| {
                p.tip_slot = now_slot() + 199;
                p.tip_time_ms = NOW_MS + 199_000;
            }),
            EXPIRED,
        ),
        ("an old transfer that was made for something else", on(|p| p.public_after(200 + 3_600)), EXPIRED),
        ("a TTL one slot too far", on(|p| p.ttl = Some(now_slot() + 301)), "invalid_exact_cardano_payload_ttl_too_far"),
        ("a TTL at the end of time", on(|p| p.ttl = Some(u64::MAX)), "invalid_exact_cardano_payload_ttl_too_far"),
        (
            "a start after the newest block",
            on(|p| p.start = Some(p.tip_slot + 1)),
            "invalid_exact_cardano_payload_not_yet_valid",
        ),
        ("mainnet's id", on(|p| p.network_id = Some(1)), "invalid_exact_cardano_payload_network_id_mismatch"),
        ("an id of no network", on(|p| p.network_id = Some(2)), DECODE),
        ("certificates", body(4, Cbor::Array(vec![int(0)])), PART),
        ("withdrawals", body(5, Cbor::Map(vec![(bytes(&[0xe0; 29]), int(1))])), PART),
        ("a parameter update", body(6, Cbor::Array(vec![])), DECODE),
        ("minting", body(9, Cbor::Map(vec![(bytes(&[1; 28]), Cbor::Map(vec![(bytes(b"x"), int(1))]))])), PART),
        ("a script data hash", body(11, bytes(&[1; 32])), PART),
        ("collateral", body(13, Cbor::Array(vec![Cbor::Array(vec![bytes(&[1; 32]), int(0)])])), PART),
        ("a collateral return", body(16, Made::to(&address(BUYER), 1_000_000).cbor()), PART),
        ("a total collateral", body(17, int(1)), PART),
        ("reference inputs", body(18, Cbor::Array(vec![Cbor::Array(vec![bytes(&[1; 32]), int(0)])])), PART),
        ("votes", body(19, map([])), PART),
        ("proposals", body(20, Cbor::Array(vec![])), PART),
        ("a treasury value", body(21, int(1)), PART),
        ("a donation", body(22, int(1)), PART),
        ("an unknown body field", body(23, int(1)), DECODE),
        (
            "a required signer who did not sign",
            body(14, Cbor::Array(vec![bytes(key_hash(FRIEND).as_bytes())])),
            MISSING_SIGNATURE,
        ),
        ("native scripts", witness_set(1, Cbor::Array(vec![Cbor::Array(vec![int(0), bytes(&[1; 28])])])), PART),
        ("a Byron signature", witness_set(2, Cbor::Array(vec![int(0)])), PART),
        ("Plutus V1 scripts", witness_set(3, Cbor::Array(vec![bytes(&[1])])), PART),
        ("datums", witness_set(4, Cbor::Array(vec![int(0)])), PART),
        ("redeemers", witness_set(5, map([])), PART),
        ("Plutus V2 scripts", witness_set(6, Cbor::Array(vec![bytes(&[1])])), PART),
        ("Plutus V3 scripts", witness_set(7, Cbor::Array(vec![bytes(&[1])])), PART),
        ("an unknown witness field", witness_set(8, int(1)), DECODE),
        ("metadata without its hash", on(|p| p.metadata_hash = Some(None)), AUXILIARY),
        ("metadata with another hash", on(|p| p.metadata_hash = Some(Some([1; 32]))), AUXILIARY),
        (
            "a hash without metadata",
            on(|p| {
                p.metadata = None;
                p.metadata_hash = Some(Some([1; 32]));
            }),
            AUXILIARY,
        ),
        (
            "metadata changed after signing",
            cbor(|mut tx| {
                let end = tx.len() - 1;
                tx[end] ^= 1;
                tx
            }),
            AUXILIARY,
        ),
        (
            "scripts in the auxiliary data",
            on(|p| p.metadata = Some(Cbor::Tag(259, Box::new(map([(0, map([])), (1, Cbor::Array(vec![int(0)]))]))))),
            "invalid_exact_cardano_payload_auxiliary_scripts",
        ),
        ("marked as failing", on(|p| p.is_valid = Cbor::Bool(false)), "invalid_exact_cardano_payload_phase2_invalid"),
        ("not signed", on(|p| p.signers.clear()), "invalid_exact_cardano_payload_unsigned"),
        (
            "signed by thirty-three",
            on(|p| p.signers.extend(100..132)),
            "invalid_exact_cardano_payload_too_many_signatures",
        ),
        ("signed by another key only", on(|p| p.signers = vec![FRIEND]), MISSING_SIGNATURE),
        (
            "a signature of something else",
            on(|p| {
                p.signers.clear();
                p.witnesses.push((*key(BUYER).pk, *key(BUYER).sk.sign(b"else", None)));
            }),
            SIGNATURE,
        ),
        ("a bad signature beside the good one", on(|p| p.witnesses.push((*key(FRIEND).pk, [1; 64]))), SIGNATURE),
        ("a signature by a key of small order", on(|p| p.witnesses.push(([0; 32], [0; 64]))), SIGNATURE),
        ("two signatures by one key", on(|p| p.witnesses.push((*key(BUYER).pk, [1; 64]))), DECODE),
        (
            "the TTL changed after signing",
            on(|p| p.cbor = Some(Box::new(|tx| flip_after(&tx, &now_slot().wrapping_add(200).to_be_bytes()[4..])))),
            SIGNATURE,
        ),
        (
            "the payee paying itself",
            on(|p| {
                for input in &mut p.inputs {
                    if let InputState::Unspent(utxo) = &mut input.state {
                        utxo.address = address(SELLER).to_string();
                    }
                }
                p.signers = vec![SELLER];
            }),
            "invalid_exact_cardano_payload_self_payment",
        ),
        (
            "the payee paying itself from another stake key",
            on(|p| {
                for input in &mut p.inputs {
                    if let InputState::Unspent(utxo) = &mut input.state {
                        utxo.address = cardano::Address::enterprise(key_hash(SELLER)).to_string();
                    }
                }
                p.signers = vec![SELLER];
            }),
            "invalid_exact_cardano_payload_self_payment",
        ),
        (
            "larger than the ledger allows",
            on(|p| p.parameters.max_tx_size = 200),
            "invalid_exact_cardano_payload_too_large",
        ),
    ]
}

/// Flips the last bit of the first occurrence of `number` in an encoded transaction.
fn flip_after(tx: &[u8], number: &[u8]) -> Vec<u8> {
    let at = tx.windows(number.len()).position(|window| window == number).expect("the number is in the transaction");
    let mut tx = tx.to_vec();
    tx[at + number.len() - 1] ^= 1;
    tx
}

#[test]
fn the_base_payment_of_all_mutations_verifies() {
    let payment = Payment::valid();
    let verified = payment.verdict().unwrap();
    assert_eq!(verified.payer, address(BUYER));
    assert_eq!(verified.cbor, payment.transaction());
    assert_eq!(verified.valid_until, now_slot() + 200);
    assert_eq!(verified.amount.get(), PRICE);
    assert_eq!(verified.inputs, [reference(0x11, 0), reference(0x22, 1)]);
    assert_eq!(verified.tx_id, SignedTx::parse(&verified.cbor).unwrap().id);
}

#[test]
fn every_change_that_matters_is_refused_with_its_code() {
    let mutations = mutations_of_the_payload().into_iter().chain(mutations_of_the_transaction());
    let (mut names, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, change, code) in mutations {
        assert!(names.insert(name), "two mutations are named {name}");
        let mut payment = Payment::valid();
        change(&mut payment);
        match payment.verdict() {
            Err(refusal) if refusal.code() == code => {
                assert!(!refusal.to_string().is_empty());
                assert_eq!(refusal.is_malformed(), MALFORMED.contains(&code), "{name}");
            }
            other => wrong.push(format!("{name}: expected {code}, got {:?}", other.map(|verified| verified.tx_id))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.len() >= 60, "only {} mutations", names.len());
}

fn read(header: &str) -> Result<exact::Payment, Refusal> {
    Ok(exact::Payment::read(&PaymentPayload::from_header(header)?.payload)?)
}

#[test]
fn headers_that_are_no_payload_are_refused() {
    let good = Payment::valid().header();
    let url_safe = good.replace(['+', '/'], "_");
    for (name, header) in [
        ("nothing", String::new()),
        ("not base64", "PAYMENT!".into()),
        ("no padding", good.trim_end_matches('=').to_owned() + "A"),
        ("a line break within", format!("{}\n{}", &good[..40], &good[40..])),
        ("not JSON", STANDARD.encode("payment")),
        ("a JSON text", STANDARD.encode("\"payment\"")),
        ("not UTF-8", STANDARD.encode([0x7b, 0x22, 0xff, 0x22, 0x7d])),
        (
            "JSON with more after it",
            STANDARD.encode(serde_json::to_string(&Payment::valid().payload()).unwrap() + "{}"),
        ),
        ("a name twice", STANDARD.encode(r#"{"x402Version":2,"x402Version":2}"#)),
        ("a name twice deep inside", {
            let json = Payment::valid().payload().to_string();
            STANDARD.encode(json.replacen(r#""l1Confirmations":0"#, r#""l1Confirmations":0,"l1Confirmations":0"#, 1))
        }),
        ("nested without end", STANDARD.encode("[".repeat(5_000))),
        ("too long", "A".repeat(48 * 1024 + 4)),
    ] {
        let refusal = read(&header).unwrap_err();
        assert_eq!((refusal.code(), refusal.is_malformed()), (PAYLOAD, true), "{name}");
    }
    assert!(url_safe == good || read(&url_safe).is_err());
}

/// Unusual payments that are valid, next to their invalid variants.
#[test]
fn every_change_that_does_not_matter_is_accepted() {
    let cases: Vec<(&str, PaymentChange)> = vec![
        ("the network by its alias", accepted("network", json!("cip34:0-1"))),
        ("no resource", wire(|json| drop(json.as_object_mut().unwrap().remove("resource")))),
        ("a field beside the payload", wire(|json| json["clientVersion"] = json!("1"))),
        ("a field within the scheme's payload", payload("hint", json!(1))),
        ("extensions", wire(|json| json["extensions"] = json!({ "bazaar": {} }))),
        ("no network id", on(|p| p.network_id = None)),
        ("no metadata", on(|p| p.metadata = None)),
        (
            "metadata in the tagged form",
            on(|p| p.metadata = Some(Cbor::Tag(259, Box::new(map([(0, map([(1, int(1))]))]))))),
        ),
        ("more than the price", pays(|made| made.lovelace = PRICE + 1)),
        ("a tip beside the price", on(|p| p.outputs.push(Made::to(&address(SELLER), 1_000_000)))),
        (
            "tokens for the payee",
            on(|p| {
                p.outputs[1].tokens[0].1 = 4;
                p.outputs[0].tokens = vec![("coin".into(), 3)];
            }),
        ),
        ("change to a script", changes(|made| made.address[0] |= 0x10)),
        ("an output in the old form", pays(|made| made.old_form = true)),
        (
            "a second owner who signed",
            on(|p| {
                if let InputState::Unspent(utxo) = &mut p.inputs[1].state {
                    utxo.address = address(FRIEND).to_string();
                }
                p.signers.push(FRIEND);
            }),
        ),
        ("a signature that is not needed", on(|p| p.signers.push(FRIEND))),
        ("a required signer who signed", body(14, Cbor::Array(vec![bytes(key_hash(BUYER).as_bytes())]))),
        ("the other input as nonce", on(|p| p.nonce = p.inputs[1].reference.to_string())),
        ("a datum on an input", spends(|utxo| utxo.datum_hash = Some([1; 32]))),
        ("the least fee", on(|p| p.set_least_fee(0))),
        ("the latest TTL", on(|p| p.ttl = Some(now_slot() + 300))),
        ("the earliest TTL", on(|p| p.ttl = Some(now_slot() + 1))),
        ("a payment that was submitted elsewhere within the hour", on(|p| p.public_after(200 + 3_599))),
        ("a start at the newest block", on(|p| p.start = Some(p.tip_slot))),
        (
            "a ledger ahead of the clock",
            on(|p| {
                p.tip_slot = now_slot() + 5_000;
                p.tip_time_ms = NOW_MS + 5_000_000;
                p.ttl = Some(now_slot() + 5_300);
            }),
        ),
        (
            "no change at all",
            on(|p| {
                p.outputs[0].tokens = vec![("coin".into(), 7)];
                p.outputs[0].lovelace = p.spent() - 200_000;
                p.outputs.truncate(1);
                p.change = None;
            }),
        ),
        (
            "change of exactly its minimum",
            on(|p| {
                let size = u64::try_from(encode(&p.made()[1].cbor()).len()).unwrap();
                p.outputs[1].lovelace = (160 + size) * 4_310;
                p.outputs[0].lovelace = p.spent() - p.outputs[1].lovelace - 200_000;
                p.change = None;
            }),
        ),
    ];
    for (name, change) in cases {
        let mut payment = Payment::valid();
        change(&mut payment);
        assert_eq!(payment.verdict().map(|verified| verified.payer), Ok(address(BUYER)), "{name}");
    }
}

#[test]
fn an_amount_in_another_asset_needs_exactly_that_asset() {
    let token = |name: &str| format!("{}.{}", hex::encode(TOKEN_POLICY), hex::encode(name));
    let verdict = |asset: String, amount: u64| {
        let mut payment = Payment::valid();
        payment.offered.requirements.asset = asset.parse().unwrap();
        payment.offered.requirements.amount = x402_cardano::wire::Amount::new(amount).unwrap();
        payment.outputs[0].tokens = vec![("coin".into(), 3)];
        payment.outputs[1].tokens = vec![("coin".into(), 4)];
        payment.verdict().map(|verified| verified.amount.get())
    };
    assert_eq!(verdict(token("coin"), 3), Ok(3));
    assert_eq!(verdict(token("coin"), 4), Err(Underpaid::AmountInsufficient { asked: 4, most: 3 }.into()));
    assert_eq!(verdict(token("coins"), 1), Err(Underpaid::AssetMissing.into()));
    assert_eq!(verdict(token(""), 1), Err(Underpaid::AssetMissing.into()));
}

#[test]
fn invalid_own_requirements_are_a_server_error_and_accept_no_payment() {
    let verdict = |change: &dyn Fn(&mut Payment)| {
        let mut payment = Payment::valid();
        change(&mut payment);
        payment.verdict().unwrap_err().code()
    };
    let code = "invalid_exact_cardano_requirements";
    assert_eq!(verdict(&|p| p.offered.requirements.pay_to = "addr_test1".into()), code);
    assert_eq!(verdict(&|p| p.offered.requirements.pay_to = p.offered.requirements.pay_to.to_uppercase()), code);
    let mut upto = Payment::valid();
    let payment = exact::Payment::of_transaction(&upto.transaction()).unwrap();
    upto.offered.requirements.scheme = "upto".into();
    assert_eq!(upto.judge(&payment).unwrap_err().code(), code);
    assert_eq!(verdict(&|p| p.parameters.min_fee_a = u64::MAX), code);
    assert_eq!(verdict(&|p| p.parameters.coins_per_utxo_byte = u64::MAX), code);
}

#[test]
fn a_minimum_that_is_raised_by_governance_is_followed() {
    let mut payment = Payment::valid();
    payment.parameters.coins_per_utxo_byte = 43_100;
    assert!(
        matches!(payment.verdict(), Err(Refusal::Limit(LimitBroken::MinUtxo { output: 0, least })) if least > Lovelace::from_ada(2))
    );
    let mut payment = Payment::valid();
    payment.parameters.min_fee_b = 1_000_000;
    assert!(matches!(payment.verdict(), Err(Refusal::Limit(LimitBroken::FeeTooLow { .. }))));
}
