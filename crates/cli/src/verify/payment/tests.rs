//! What is signed of terms that somebody else signed: no more than what a service like ours would ask for now.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    ContentHash, KeyHash, Lovelace, TxHash, TxRef,
    chain::{Utxo, Value},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{TxPlan, Validity, Wallet, build},
};
use escrow::{Deployment, Parameters};
use market::DeliveryMode;
use serde_json::json;
use x402_cardano::{
    escrow::TransferMethod,
    method::{EscrowMethod, PaymentMethod, Sale},
    wire::ConfirmationPolicy,
};
use xtask::escrow::blueprint::Blueprint;

use super::{Asked, Draft, Own, payment};
use crate::{service::Listing, verify::NotAsAsked};

const BLUEPRINT: &str = include_str!("../../../../../contracts/plutus.json");
const NOW: Millis = 1_785_756_000_000;
const MINUTE: Millis = 60_000;

/// Minutes until a refund under terms of this time, where they are signed.
fn signed_under_terms_of(at: Millis) -> Result<Millis, NotAsAsked> {
    signed(at, false)
}

/// The same of a lock whose datum says of itself where refunds go, as drafts for other wallets than ours do.
fn signed(at: Millis, returns: bool) -> Result<Millis, NotAsAsked> {
    let key = |seed: u8| SigningKey::from_seed(&[seed; 32]).unwrap();
    let blueprint = Blueprint::parse(BLUEPRINT).unwrap();
    let parameters =
        Parameters { required_admins: 1, admin_vkeys: vec![KeyHash::new([7; 28])], cooldown_period: 60_000 };
    let script = blueprint.apply(&parameters).unwrap();
    let deployment = Deployment {
        script_hash: script.hash,
        parameters,
        reference_script: TxRef { tx: TxHash::new([0; 32]), index: 0 },
        reference_script_bytes: 5_000,
        blueprint_sha256: Some(blueprint.sha256()),
    };
    let anybody = EscrowMethod::new(deployment, key(66), TransferMethod::Escrow, ConfirmationPolicy::IN_BLOCK).unwrap();
    let (buyer, address) = (key(2), key(2).enterprise_address());
    let listing = Listing {
        id: "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV".into(),
        title: "A hero".into(),
        price: Lovelace::from_ada(6),
        seller: key(4).enterprise_address(),
        modes: vec![DeliveryMode::Protected],
        content_hash: ContentHash::of(b"content"),
    };
    let sale = Sale {
        listing_id: &listing.id,
        content_hash: listing.content_hash,
        price: listing.price,
        seller: listing.seller,
    };
    let offered = anybody.offer(&sale, at, [9; 32]).unwrap();
    let ledger = ProtocolParameters::preprod();
    let returns = returns.then_some(&address);
    let output = anybody.output(&offered, &address, returns, &ledger, &SlotConfig::PREPROD).unwrap();
    let coin = Utxo {
        reference: TxRef { tx: TxHash::new([3; 32]), index: 0 },
        address: address.to_string(),
        value: Value { lovelace: Lovelace::from_ada(50), assets: BTreeMap::new() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    };
    let until = SlotConfig::PREPROD.slot_at(NOW).unwrap() + 200;
    let plan = TxPlan { outputs: vec![output.output], validity: Validity { from: None, until }, ..TxPlan::default() };
    let utxos = [coin];
    let tx = build(&plan, &Wallet { address, utxos: &utxos, reserved: &BTreeSet::new() }, &ledger).unwrap();
    let nonce = utxos[0].reference.to_string();
    let draft = Draft {
        transaction: hex::encode(tx.unsigned_cbor().unwrap()),
        payment: json!({ "x402Version": 2, "accepted": offered.requirements, "payload": { "nonce": nonce } }),
    };
    let asked = Asked { listing: &listing, mode: DeliveryMode::Protected, blueprint: &blueprint, parameters: &ledger };
    let made = payment(&draft, &asked, &Own { address, utxos: &utxos, now: NOW }, &buyer)?;
    Ok((made.terms.unwrap().deadlines().submit_result - NOW) / MINUTE)
}

#[test]
fn terms_that_are_made_now_are_signed() {
    assert_eq!(signed_under_terms_of(NOW).unwrap(), 16);
}

#[test]
fn no_terms_are_signed_under_which_money_is_held_for_longer() {
    for ahead in [11 * MINUTE, 365 * 24 * 60 * MINUTE, 1_000 * 365 * 24 * 60 * MINUTE] {
        let made = signed_under_terms_of(NOW + ahead);
        assert!(matches!(made, Err(NotAsAsked::Deadlines)), "{ahead} ms ahead: {made:?}");
    }
}

#[test]
fn no_lock_is_signed_whose_refund_would_be_an_output_with_a_datum() {
    assert!(matches!(signed(NOW, true), Err(NotAsAsked::RefundElsewhere(_))));
}
