//! Tests every payment method through its trait: an offer is made, echoed, recognised, paid and verified.

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

use cardano::{
    KeyHash, Lovelace, Network, ScriptHash, TxHash, TxRef,
    chain::Tip,
    keys::{Native, SigningKey},
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{TxPlan, Validity, Wallet, build},
};
use escrow::{Deployment, Parameters};
use futures_util::FutureExt;
use serde_json::json;
use support::*;
use x402_cardano::{
    escrow::TransferMethod,
    exact::{Facts, InputState, Payment, VerifiedPayment, verify_with_facts},
    method::{DefaultMethod, EscrowMethod, MempoolPolicy, OfferError, Offered, PaymentMethod, Sale, recognise},
    wire::{Accepted, ConfirmationPolicy, PaymentRequired, ResourceInfo, decode_header, encode_header},
};

fn wallet_key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn escrow_method(name: TransferMethod) -> EscrowMethod {
    let deployment = Deployment {
        script_hash: ScriptHash::new([0xee; 28]),
        parameters: Parameters {
            required_admins: 1,
            admin_vkeys: vec![KeyHash::new([9; 28])],
            cooldown_period: 60_000,
        },
        reference_script: TxRef { tx: TxHash::new([7; 32]), index: 1 },
        reference_script_bytes: 4_000,
        blueprint_sha256: None,
    };
    EscrowMethod::new(Network::Preprod, deployment, wallet_key(7), name, ConfirmationPolicy::IN_BLOCK).unwrap()
}

fn priced() -> Sale<'static> {
    Sale { price: Lovelace::from_ada(10), ..sale() }
}

fn offer(method: &dyn PaymentMethod) -> Offered {
    method.offer(&priced(), NOW_MS, [3; 32]).unwrap()
}

/// Pays an offer from a service wallet, and verifies the transaction like any payment.
fn paid(method: &dyn PaymentMethod, offered: &Offered) -> VerifiedPayment {
    let (key, parameters, slots) = (wallet_key(5), ProtocolParameters::preprod(), SlotConfig::PREPROD);
    let own = key.enterprise_address();
    let output = method.output(offered, &own, None, &parameters, &slots).unwrap();
    let money = utxo(reference(0x33, 0), &own.to_string(), 90_000_000, &[]);
    let until = output.latest_end_slot.min(now_slot() + 230);
    let validity = Validity { from: None, until };
    let plan = TxPlan { outputs: vec![output.output], validity, ..TxPlan::default() };
    let wallet = Wallet { address: own, utxos: std::slice::from_ref(&money), reserved: &BTreeSet::new() };
    let built = build(&plan, &wallet, &parameters).unwrap().sign(&[&key]).unwrap();
    let payment = Payment::of_transaction(&built.cbor).unwrap();
    let tip = Tip { hash: TxHash::new([9; 32]), height: 7, slot: now_slot() - 5, time_ms: NOW_MS - 5_000 };
    let inputs = [(money.reference, InputState::Unspent(money))].into();
    let facts = Facts { inputs, parameters, tip, in_mempool: false };
    verify_with_facts(method, offered, &payment, &facts, &Native, moment()).now_or_never().unwrap().unwrap()
}

#[test]
fn a_service_wallets_payment_verifies_without_json() {
    let default = method();
    let verified = paid(&default, &offer(&default));
    assert_eq!((verified.amount.get(), verified.lock), (10_000_000, None));
    for name in [TransferMethod::Escrow, TransferMethod::Masumi] {
        let escrow = escrow_method(name);
        let offered = offer(&escrow);
        let verified = paid(&escrow, &offered);
        let lock = verified.lock.unwrap();
        assert_eq!(verified.payer, wallet_key(5).enterprise_address());
        assert_eq!((lock.buyer, lock.locked), (verified.payer, Lovelace::from_ada(10)));
        assert_eq!(Some(lock.terms_digest), offered.terms_digest());
        assert_eq!(lock.address, escrow.deployment().address());
    }
}

#[test]
fn an_accepted_entry_is_recognised_by_the_method_that_made_it() {
    let (default, escrow) = (method(), escrow_method(TransferMethod::Escrow));
    let methods: [&dyn PaymentMethod; 2] = [&default, &escrow];
    for made in methods {
        let offered = offer(made);
        let echo = Accepted::echo(&offered.requirements).unwrap();
        let (method, again) = recognise(&methods, &priced(), &echo).unwrap();
        assert_eq!((method.name(), again), (made.name(), offered));
        let elsewhere = Sale { listing_id: "lst_02", price: Lovelace::from_ada(11), ..priced() };
        assert!(recognise(&methods, &elsewhere, &echo).is_err());
    }
    let instant = Accepted::echo(&offer(&default).requirements).unwrap();
    let code = |methods: &[&dyn PaymentMethod]| recognise(methods, &priced(), &instant).map(drop).map_err(|e| e.code());
    assert_eq!(code(&[&escrow]), Err("invalid_exact_cardano_payload_accepted_mismatch"), "not offered for this sale");
    assert_eq!(code(&[]), Err("invalid_exact_cardano_payload_accepted_mismatch"));
}

#[test]
fn a_method_offers_and_recognises_entries_of_its_own_network() {
    let on = |network| DefaultMethod::new(network, ConfirmationPolicy::IN_BLOCK).unwrap();
    let (preprod, preview) = (on(Network::Preprod), on(Network::Preview));
    let offered = offer(&preview);
    assert_eq!(serde_json::to_value(&offered.requirements).unwrap()["network"], "cardano:preview");
    let echo = Accepted::echo(&offered.requirements).unwrap();
    let (method, again) = recognise(&[&preprod, &preview], &priced(), &echo).unwrap();
    assert_eq!((method.network(), again), (Network::Preview, offered));
    let elsewhere = recognise(&[&preprod], &priced(), &echo).map(drop).unwrap_err();
    assert_eq!((elsewhere.code(), elsewhere.to_string().contains("cardano:preprod")), ("network_mismatch", true));
}

#[test]
fn no_method_is_offered_where_no_address_can_be_paid() {
    let default = DefaultMethod::new(Network::Mainnet, ConfirmationPolicy::IN_BLOCK).unwrap();
    assert_eq!(default.offer(&priced(), NOW_MS, [9; 32]), Err(OfferError::Network("cardano:mainnet")));
    assert_eq!(default.listed(&priced()).map(drop), Err(OfferError::Network("cardano:mainnet")));
}

#[test]
fn a_foreign_entry_is_refused_with_a_code() {
    let (default, escrow) = (method(), escrow_method(TransferMethod::Escrow));
    let code = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut entry = serde_json::to_value(offer(&default).requirements).unwrap();
        change(&mut entry);
        let accepted: Accepted = serde_json::from_value(entry).unwrap();
        recognise(&[&default, &escrow], &priced(), &accepted).map(drop).unwrap_err().code()
    };
    let differs = "invalid_exact_cardano_payload_accepted_mismatch";
    assert_eq!(code(&|entry| entry["scheme"] = json!("upto")), "unsupported_scheme");
    assert_eq!(code(&|entry| entry["network"] = json!("cardano:mainnet")), "network_mismatch");
    assert_eq!(code(&|entry| entry["extra"] = json!({})), differs);
    assert_eq!(code(&|entry| entry["extra"]["assetTransferMethod"] = json!("script")), differs);
    assert_eq!(code(&|entry| entry["extra"]["assetTransferMethod"] = json!(7)), differs);
    assert_eq!(code(&|entry| entry["extra"]["assetTransferMethod"] = json!("escrow")), "masumi_terms_unknown");
}

#[test]
fn the_first_field_that_differs_is_named() {
    let offered = offer(&method()).requirements;
    for (field, value) in [
        ("amount", json!("1")),
        ("asset", json!(format!("{}.", "aa".repeat(28)))),
        ("payTo", json!("addr_test1")),
        ("maxTimeoutSeconds", json!(1)),
        ("extra", json!({ "a": 1 })),
    ] {
        let mut entry = serde_json::to_value(&offered).unwrap();
        entry[field] = value;
        let accepted: Accepted = serde_json::from_value(entry).unwrap();
        let refusal = accepted.check(&offered).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("accepted.{field} is not")), "{refusal}");
    }
}

#[test]
fn a_402_of_every_method_is_read_as_it_was_written() {
    let accepts = vec![offer(&method()).requirements, offer(&escrow_method(TransferMethod::Masumi)).requirements];
    let resource = ResourceInfo { url: "https://example.com".into(), ..ResourceInfo::default() };
    let required = PaymentRequired::new(resource, accepts, None);
    assert_eq!(decode_header::<PaymentRequired>(&encode_header(&required).unwrap()), Ok(required));
}

#[test]
fn an_instant_payment_waits_for_a_block_at_least_and_costs_something() {
    let policy = |n| DefaultMethod::new(Network::Preprod, ConfirmationPolicy::new(n).unwrap()).map(drop);
    assert_eq!((policy(-1), policy(0), policy(20)), (Err(MempoolPolicy), Ok(()), Ok(())));
    let free = Sale { price: Lovelace::ZERO, ..sale() };
    assert_eq!(method().offer(&free, NOW_MS, [0; 32]), Err(OfferError::Free));
}
