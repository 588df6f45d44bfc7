//! Tests of properties that hold for every input: nothing panics, and no change of bytes turns one payment into
//! another.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that cannot go on fails"
)]

#[path = "support/generator.rs"]
mod generator;
mod support;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    params::ProtocolParameters,
    tx::{SignedTx, TransactionUtxos},
};
use proptest::{prelude::*, sample::Index};
use serde_json::Value as Json;
use support::*;
use x402_cardano::{
    exact,
    wire::{PaymentPayload, PaymentRequired, SettlementResponse, decode_header, encode_header},
};

type Edit = (Index, u8, u8);

/// Generates between one and five edits, each of which changes, adds or removes a byte.
fn edits() -> impl Strategy<Value = Vec<Edit>> {
    proptest::collection::vec((any::<Index>(), any::<u8>(), 0..4u8), 1..6)
}

fn edited(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for (at, byte, kind) in edits {
        let at = at.index(bytes.len());
        match kind {
            0 => bytes[at] = *byte,
            1 => bytes[at] ^= 1 << (byte % 8),
            2 => bytes.insert(at, *byte),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn an_edited_transaction_is_refused_or_is_the_same_transaction(edits in edits()) {
        let mut payment = Payment::valid();
        let original = payment.transaction();
        let changed = edited(original.clone(), &edits);
        payment.cbor = Some(Box::new(move |_| changed.clone()));
        if let Ok(verified) = payment.verdict() {
            prop_assert_eq!(verified.tx_id, SignedTx::parse(&original).unwrap().id);
        }
    }

    /// A transaction in a block is decoded by another decoder, which must accept everything that verification accepted.
    #[test]
    fn an_accepted_transaction_is_read_from_its_block_as_it_was_verified(seed in any::<u64>(), edits in edits()) {
        let mut case = generator::case(&ProtocolParameters::preprod(), seed);
        let as_written = case.payment.verdict();
        let changed = edited(case.payment.transaction(), &edits);
        case.payment.cbor = Some(Box::new(move |_| changed.clone()));
        for verified in [as_written, case.payment.verdict()].into_iter().flatten() {
            let (verified, in_block) =
                (SignedTx::parse(&verified.cbor).unwrap(), TransactionUtxos::read(&verified.cbor).unwrap());
            prop_assert_eq!((in_block.id, in_block.valid, &in_block.spent), (verified.id, true, &verified.inputs));
            let made = in_block.created.iter().map(|made| &made.value);
            prop_assert!(made.eq(verified.outputs.iter().map(|output| &output.value)));
        }
    }

    #[test]
    fn an_edited_payload_is_refused_or_pays_the_same(edits in edits()) {
        let payment = Payment::valid();
        let json = edited(serde_json::to_vec(&payment.payload()).unwrap(), &edits);
        if let Ok(verified) = payment.verdict_of(&STANDARD.encode(json)) {
            prop_assert_eq!(verified.tx_id, payment.verdict().unwrap().tx_id);
        }
    }

    #[test]
    fn an_edited_header_is_refused_or_pays_the_same(edits in edits()) {
        let payment = Payment::valid();
        let header = String::from_utf8_lossy(&edited(payment.header().into_bytes(), &edits)).into_owned();
        if let Ok(verified) = payment.verdict_of(&header) {
            prop_assert_eq!(verified.tx_id, payment.verdict().unwrap().tx_id);
        }
    }

    #[test]
    fn no_header_panics(header in ".{0,300}") {
        if let Ok(payload) = PaymentPayload::from_header(&header) {
            let _ = (payload.payment_id(), exact::Payment::read(&payload.payload));
        }
        let _ = decode_header::<PaymentRequired>(&header);
        let _ = decode_header::<SettlementResponse>(&header);
    }

    #[test]
    fn a_header_reads_back_as_written(seed in any::<u64>()) {
        let case = generator::case(&ProtocolParameters::preprod(), seed);
        let payload: PaymentPayload = decode_header(&case.payment.header()).unwrap();
        let again: PaymentPayload = decode_header(&encode_header(&payload).unwrap()).unwrap();
        prop_assert_eq!(payload, again);
    }

    /// Checks conservation of value without using the crate's own decoder and arithmetic.
    #[test]
    fn an_accepted_payment_pays_the_price_and_makes_no_money(seed in any::<u64>()) {
        let case = generator::case(&ProtocolParameters::preprod(), seed);
        let Ok(verified) = case.payment.verdict() else { return Ok(()) };
        prop_assert_eq!(verified.payer.payment_key(), &key_hash(BUYER));
        let asked = case.payment.offered.requirements.amount.get();
        let made = case.payment.made();
        let paid = made.iter().filter(|made| made.address == address(SELLER).to_bytes()).map(|made| made.lovelace).max();
        prop_assert!(paid >= Some(asked));
        let fee = case.payment.fee.unwrap();
        prop_assert_eq!(made.iter().map(|made| made.lovelace).sum::<u64>() + fee, case.payment.spent());
        let tx: ciborium::Value = ciborium::from_reader(verified.cbor.as_slice()).unwrap();
        let outputs = tx.as_array().unwrap()[0].as_map().unwrap().iter().find(|(key, _)| *key == int(1)).unwrap();
        prop_assert_eq!(outputs.1.as_array().unwrap().len(), made.len());
    }
}

#[test]
fn unknown_fields_of_a_402_are_ignored_and_known_ones_kept() {
    let text = r#"{"x402Version":2,"resource":{"url":"u","icon":"i"},"accepts":[],"extensions":{"a":1},"note":"n"}"#;
    let required: PaymentRequired = decode_header(&STANDARD.encode(text)).unwrap();
    assert_eq!(required.resource.url, "u");
    let json: Json = serde_json::to_value(&required).unwrap();
    assert_eq!(json, serde_json::json!({"x402Version":2,"resource":{"url":"u"},"accepts":[],"extensions":{"a":1}}));
}

/// Compares a 402 with the example in the document on the HTTP transport, as far as it concerns this scheme.
#[test]
fn an_issued_402_is_written_as_the_specification_shows() {
    let payment = Payment::valid();
    let resource = x402_cardano::wire::ResourceInfo {
        url: "https://api.example.com/premium-data".into(),
        description: Some("Access to premium market data".into()),
        mime_type: Some("application/json".into()),
        ..Default::default()
    };
    let required = PaymentRequired::new(resource, vec![payment.offered.requirements.clone()], None);
    let header = encode_header(&required).unwrap();
    let json: Json = serde_json::from_slice(&STANDARD.decode(&header).unwrap()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "x402Version": 2,
            "error": "PAYMENT-SIGNATURE header is required",
            "resource": {
                "url": "https://api.example.com/premium-data",
                "description": "Access to premium market data",
                "mimeType": "application/json",
            },
            "accepts": [{
                "scheme": "exact",
                "network": "cardano:preprod",
                "amount": "2000000",
                "asset": "lovelace",
                "payTo": address(SELLER).to_string(),
                "maxTimeoutSeconds": 300,
                "extra": {
                    "assetTransferMethod": "default",
                    "areFeesSponsored": false,
                    "confirmationPolicy": { "l1Confirmations": 0 },
                },
            }],
        })
    );
    assert_eq!(decode_header::<PaymentRequired>(&header).unwrap(), required);
}
