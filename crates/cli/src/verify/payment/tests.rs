//! Tests that the client signs only terms that an honest service would offer now.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use api_types::Listing;
use blueprint::Blueprint;
use cardano::{
    Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef,
    chain::{Utxo, Value},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use escrow::{Deployment, Parameters};
use market::DeliveryMode;
use serde_json::json;
use x402_cardano::{
    escrow::TransferMethod,
    method::{DefaultMethod, EscrowMethod, PaymentMethod, Sale},
    request_commitment::{Commitment, HttpRequest, RequestDigest, Salt},
    wire::{ConfirmationPolicy, Extensions},
};

use super::{DraftedTx, RequestedPurchase, SigningWallet, payment};
use crate::{keys::Keys, verify::NotAsAsked};

const BLUEPRINT: &str = include_str!("../../../../../contracts/plutus.json");
const NOW: Millis = 1_785_756_000_000;
const MINUTE: Millis = 60_000;

const SALT: Salt = Salt::new([5; 32]);

/// Returns the digest of the request that will carry the payment to a service with this origin.
fn request(origin: &str) -> RequestDigest {
    let url = format!("{origin}/listings/lst_01ARZ3NDEKTSV4RRFFQ69G5FAV/unlock");
    RequestDigest::of(&HttpRequest { method: "GET", url: &url, body: b"", headers: &[] }).unwrap()
}

fn coin(address: &Address) -> Utxo {
    Utxo {
        reference: TxRef { tx: TxHash::new([3; 32]), index: 0 },
        address: address.to_string(),
        value: Value { lovelace: Lovelace::from_ada(50), assets: BTreeMap::new() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

/// Verifies and signs a lock under terms issued at `at`. Returns the number of minutes from issue to the first possible
/// refund.
fn signed_under_terms_of(at: Millis) -> Result<Millis, NotAsAsked> {
    signed(at, false)
}

/// Verifies and signs a lock like [`signed_under_terms_of`]. If `returns` is set, its datum names a refund address.
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
    let anyone = EscrowMethod::new(
        api_types::NETWORK,
        deployment,
        key(66),
        TransferMethod::Escrow,
        ConfirmationPolicy::IN_BLOCK,
    )
    .unwrap();
    let (buyer, address) = (key(2), key(2).enterprise_address());
    let listing = Listing {
        id: "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV".into(),
        title: "A hero".into(),
        description: "With a gradient".into(),
        price_lovelace: Lovelace::from_ada(6),
        seller_address: key(4).enterprise_address(),
        modes: vec![DeliveryMode::Protected],
        content_hash: ContentHash::of(b"content"),
        preview_media: None,
        category: None,
        excerpt: None,
        content_stats: None,
        seller_name: None,
        created_at: None,
        sales: None,
        seller_reputation: None,
    };
    let sale = Sale {
        listing_id: &listing.id,
        content_hash: listing.content_hash,
        price: listing.price_lovelace,
        seller: listing.seller_address,
    };
    let offered = anyone.offer(&sale, at, [9; 32]).unwrap();
    let ledger = ProtocolParameters::preprod();
    let returns = returns.then_some(&address);
    let output = anyone.output(&offered, &address, returns, &ledger, &api_types::SLOTS).unwrap();
    let until = api_types::SLOTS.slot_at(NOW).unwrap() + 200;
    let plan = TxPlan { outputs: vec![output.output], validity: Validity { from: None, until }, ..TxPlan::default() };
    let utxos = [coin(&address)];
    let tx = build(&plan, &Wallet { address, utxos: &utxos, reserved: &BTreeSet::new() }, &ledger).unwrap();
    let nonce = utxos[0].reference.to_string();
    let draft = DraftedTx {
        transaction: hex::encode(tx.unsigned_cbor().unwrap()),
        payment: json!({ "x402Version": 2, "accepted": offered.requirements, "payload": { "nonce": nonce } }),
    };
    let asked = RequestedPurchase {
        listing: &listing,
        mode: DeliveryMode::Protected,
        blueprint: &blueprint,
        parameters: &ledger,
        request: (request("https://shop.example"), SALT),
    };
    let made = payment(&draft, &asked, &SigningWallet { keys: &Keys::new(buyer, vec![]), utxos: &utxos, now: NOW })?;
    Ok((made.terms.unwrap().deadlines().submit_result - NOW) / MINUTE)
}

#[test]
fn fresh_terms_are_signed() {
    assert_eq!(signed_under_terms_of(NOW).unwrap(), 16);
}

#[test]
fn terms_that_hold_the_money_for_longer_are_not_signed() {
    for ahead in [11 * MINUTE, 365 * 24 * 60 * MINUTE, 1_000 * 365 * 24 * 60 * MINUTE] {
        let made = signed_under_terms_of(NOW + ahead);
        assert!(matches!(made, Err(NotAsAsked::Deadlines)), "{ahead} ms ahead: {made:?}");
    }
}

#[test]
fn a_lock_with_a_datum_on_its_refund_output_is_not_signed() {
    assert!(matches!(signed(NOW, true), Err(NotAsAsked::RefundElsewhere(_))));
}

/// Verifies and signs an instant payment. Returns whether the payment commits to its request, given the extensions that
/// the 402 declares and the commitment that the draft carries.
fn committed(declared: Extensions, carried: Option<Commitment>) -> Result<bool, NotAsAsked> {
    let buyer = SigningKey::from_seed(&[2; 32]).unwrap();
    let (address, seller) = (buyer.enterprise_address(), SigningKey::from_seed(&[4; 32]).unwrap().enterprise_address());
    let listing = Listing {
        id: "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV".into(),
        title: "A hero".into(),
        description: "With a gradient".into(),
        price_lovelace: Lovelace::from_ada(6),
        seller_address: seller,
        modes: vec![DeliveryMode::Instant],
        content_hash: ContentHash::of(b"content"),
        preview_media: None,
        category: None,
        excerpt: None,
        content_stats: None,
        seller_name: None,
        created_at: None,
        sales: None,
        seller_reputation: None,
    };
    let sale =
        Sale { listing_id: &listing.id, content_hash: listing.content_hash, price: listing.price_lovelace, seller };
    let offered = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::IN_BLOCK)
        .unwrap()
        .offer(&sale, NOW, [9; 32])
        .unwrap();
    let ledger = ProtocolParameters::preprod();
    let until = api_types::SLOTS.slot_at(NOW).unwrap() + 200;
    let plan = TxPlan {
        outputs: vec![NewOutput::pay(seller, listing.price_lovelace)],
        validity: Validity { from: None, until },
        auxiliary_data: carried.map(|commitment| commitment.auxiliary_data()),
        ..TxPlan::default()
    };
    let utxos = [coin(&address)];
    let tx = build(&plan, &Wallet { address, utxos: &utxos, reserved: &BTreeSet::new() }, &ledger).unwrap();
    let payload = json!({ "nonce": utxos[0].reference.to_string() });
    let draft = DraftedTx {
        transaction: hex::encode(tx.unsigned_cbor().unwrap()),
        payment: json!({ "accepted": offered.requirements, "payload": payload, "extensions": declared }),
    };
    let blueprint = Blueprint::parse(BLUEPRINT).unwrap();
    let asked = RequestedPurchase {
        listing: &listing,
        mode: DeliveryMode::Instant,
        blueprint: &blueprint,
        parameters: &ledger,
        request: (request("https://shop.example"), SALT),
    };
    let made = payment(&draft, &asked, &SigningWallet { keys: &Keys::new(buyer, vec![]), utxos: &utxos, now: NOW })?;
    assert_eq!(made.tx.auxiliary_data.is_some(), made.is_committed);
    Ok(made.is_committed)
}

#[test]
fn a_payment_is_signed_with_exactly_this_programs_commitment() {
    let own = request("https://shop.example");
    assert!(committed(own.offered(), Some(own.salted(&SALT))).unwrap());
    assert!(!committed(Extensions::default(), None).unwrap(), "a service that checks none gets none");
    for (declared, carried) in [
        (own.offered(), None),
        (own.offered(), Some(own.salted(&Salt::new([6; 32])))),
        (own.offered(), Some(request("https://other.example").salted(&SALT))),
    ] {
        assert!(matches!(committed(declared, carried), Err(NotAsAsked::Commitment)), "{carried:?}");
    }
    let unasked = committed(Extensions::default(), Some(own.salted(&SALT)));
    assert!(matches!(unasked, Err(NotAsAsked::Extra(what)) if what == "metadata"));
}

#[test]
fn a_payment_for_another_request_is_not_signed() {
    let (own, other) = (request("https://shop.example"), request("https://other.example"));
    for carried in [None, Some(own.salted(&SALT)), Some(other.salted(&SALT))] {
        assert!(matches!(committed(other.offered(), carried), Err(NotAsAsked::OtherRequest(_))));
    }
}
