use ::escrow::Deployment;
use cardano::{ContentHash, Network, keys::Native};
use serde_json::{Value, json};

use super::*;
use crate::escrow::{
    BlockchainIdentifier,
    fixture::{NONCE, NOW, block_on, deployment, key, method, offered, sale},
};

fn entry() -> Value {
    serde_json::to_value(offered().requirements).unwrap()
}

fn recognise_by(method: &EscrowMethod, sale: &Sale<'_>, entry: &Value) -> Result<Offered, &'static str> {
    // An entry of another shape is rejected before a method sees it.
    let accepted: Accepted = serde_json::from_value(entry.clone()).map_err(|_| "shape")?;
    method.recognise(sale, &accepted).map_err(|refusal| refusal.code())
}

fn recognise(sale: &Sale<'_>, entry: &Value) -> Result<Offered, &'static str> {
    recognise_by(&method(TransferMethod::Escrow), sale, entry)
}

const UNKNOWN: &str = "masumi_terms_unknown";

/// Replaces or adds a value at a JSON pointer in a valid entry of `accepts`.
fn with(pointer: &str, value: Value) -> Value {
    let mut entry = entry();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match entry.pointer_mut(parent).unwrap() {
        Value::Object(object) => drop(object.insert(name.to_owned(), value)),
        Value::Array(array) => array[name.parse::<usize>().unwrap()] = value,
        other => panic!("{other}"),
    }
    entry
}

#[test]
fn a_quote_holds_everything_that_the_scheme_asks_for() {
    let entry = entry();
    let extra = &entry["extra"];
    assert_eq!(entry["scheme"], "exact");
    assert_eq!(entry["network"], "cardano:preprod");
    assert_eq!(entry["amount"], "5000000");
    assert_eq!(entry["asset"], "lovelace");
    assert_eq!(entry["payTo"], deployment().address().to_string());
    assert_eq!(entry["maxTimeoutSeconds"], 300);
    assert_eq!(extra["assetTransferMethod"], "escrow");
    assert_eq!(extra["confirmationPolicy"], json!({ "l1Confirmations": 0 }));
    assert_eq!(extra["areFeesSponsored"], false);
    assert_eq!(extra["inputCommitment"]["parts"][0]["name"], "listing");
    assert_eq!(extra["inputCommitment"]["parts"][0]["content"]["listingId"], "lst_01");
    assert_eq!(extra["inputCommitment"]["digest"], extra["terms"]["inputHash"]);
    assert_eq!(extra["terms"]["payByTime"], (NOW + 4 * 60_000).to_string());
    assert_eq!(extra["terms"]["submitResultTime"], (NOW + 16 * 60_000).to_string());
    assert_eq!(extra["terms"]["unlockTime"], (NOW + 31 * 60_000).to_string());
    assert_eq!(extra["terms"]["externalDisputeUnlockTime"], (NOW + 46 * 60_000).to_string());
    assert_eq!(extra["terms"]["buyerNonce"], "");
    assert_eq!(extra["terms"].get("agentIdentifier"), None, "the seller is not registered");
    assert_eq!(
        extra["deployment"],
        json!({
            "requiredAdmins": "1", "adminVkeys": ["ad".repeat(28)], "cooldownPeriod": "60000",
        })
    );
    let identifier = BlockchainIdentifier::decode(extra["blockchainIdentifier"].as_str().unwrap()).unwrap();
    assert_eq!(
        identifier,
        offered().requirements.extra.escrow().unwrap().identifier(&deployment().address().to_string())
    );
}

#[test]
fn a_quotes_seller_signature_verifies_by_the_scheme() {
    let requirements: PaymentRequirements = serde_json::from_value(entry()).unwrap();
    assert_eq!(requirements, offered().requirements, "read as it was written");
    let deployment = deployment();
    let terms = AuthorizedTerms::verify(&Native, &requirements, &deployment, TransferMethod::Escrow);
    assert_eq!(block_on(terms).ok(), offered().terms);
}

#[test]
fn our_own_quote_is_recognised_without_having_been_stored() {
    assert_eq!(recognise(&sale(), &entry()), Ok(offered()));
    let masumi = method(TransferMethod::Masumi);
    let issued = masumi.offer(&sale(), NOW, NONCE).unwrap();
    let entry = serde_json::to_value(&issued.requirements).unwrap();
    assert_eq!(entry["extra"]["assetTransferMethod"], "masumi");
    assert_eq!(recognise_by(&masumi, &sale(), &entry), Ok(issued));
}

#[test]
fn the_networks_other_name_is_the_same_network() {
    assert_eq!(recognise(&sale(), &with("/network", json!("cip34:0-1"))), Ok(offered()));
    for other in ["cip34:0-2", "cardano:preview", "cardano:mainnet"] {
        assert_eq!(recognise(&sale(), &with("/network", json!(other))), Err(UNKNOWN), "{other}");
    }
}

#[test]
fn a_quote_for_another_sale_is_not_recognised() {
    let sales = [
        Sale { listing_id: "lst_02", ..sale() },
        Sale { content_hash: ContentHash::new([0xcd; 32]), ..sale() },
        Sale { price: Lovelace::from_ada(6), ..sale() },
        Sale { price: Lovelace::from_ada(1), ..sale() },
    ];
    for other in sales {
        assert_eq!(recognise(&other, &entry()), Err(UNKNOWN), "{other:?}");
    }
}

#[test]
fn a_quote_of_another_seller_escrow_or_method_is_not_recognised() {
    let mut other_deployment = deployment();
    other_deployment.parameters.cooldown_period = 61_000;
    let other_address = Deployment { script_hash: cardano::ScriptHash::new([0xef; 28]), ..deployment() };
    let by = |deployment, seller, name, policy| {
        let method = EscrowMethod::new(Network::Preprod, deployment, key(seller), name, policy).unwrap();
        recognise_by(&method, &sale(), &entry()).map(drop)
    };
    let (escrow, in_block) = (TransferMethod::Escrow, ConfirmationPolicy::IN_BLOCK);
    assert_eq!(by(deployment(), 1, escrow, in_block), Ok(()));
    assert_eq!(by(deployment(), 3, escrow, in_block), Err(UNKNOWN));
    assert_eq!(by(other_deployment, 1, escrow, in_block), Err(UNKNOWN));
    assert_eq!(by(other_address, 1, escrow, in_block), Err(UNKNOWN));
    assert_eq!(by(deployment(), 1, TransferMethod::Masumi, in_block), Err(UNKNOWN));
    assert_eq!(by(deployment(), 1, escrow, ConfirmationPolicy::DEFAULT), Err(UNKNOWN));
}

#[test]
fn a_quote_with_a_changed_field_is_not_recognised() {
    let later = (NOW + 6 * 60_000).to_string();
    for (pointer, value) in [
        ("/scheme", json!("other")),
        ("/amount", json!("4999999")),
        ("/amount", json!("05000000")),
        ("/asset", json!("LOVELACE")),
        ("/payTo", json!(key(3).enterprise_address())),
        ("/maxTimeoutSeconds", json!(301)),
        ("/extension", json!(true)),
        ("/extra/extension", json!(true)),
        ("/extra/assetTransferMethod", json!("default")),
        ("/extra/confirmationPolicy", json!({ "l1Confirmations": -1 })),
        ("/extra/confirmationPolicy", json!({ "l1Confirmations": 21 })),
        ("/extra/confirmationPolicy", json!(null)),
        ("/extra/confirmationPolicy/extension", json!(1)),
        ("/extra/areFeesSponsored", json!(true)),
        ("/extra/areFeesSponsored", json!(null)),
        ("/extra/inputCommitment/extension", json!(1)),
        ("/extra/inputCommitment/version", json!("2")),
        ("/extra/inputCommitment/digest", json!("00".repeat(32))),
        ("/extra/inputCommitment/parts/0/name", json!("body")),
        ("/extra/inputCommitment/parts/0/extension", json!(1)),
        ("/extra/inputCommitment/parts/0/mediaType", json!(null)),
        ("/extra/inputCommitment/parts/0/content/listingId", json!("lst_02")),
        ("/extra/inputCommitment/parts/0/digest", json!("00".repeat(32))),
        ("/extra/terms/extension", json!(1)),
        ("/extra/terms/amount", json!("5000000")),
        ("/extra/terms/paymentType", json!("Web3CardanoV1")),
        ("/extra/terms/sellerAddress", json!(key(3).enterprise_address())),
        ("/extra/terms/sellerReturnAddress", json!(key(3).enterprise_address())),
        ("/extra/terms/sellerReturnAddress", json!(null)),
        ("/extra/terms/sellerNonce", json!("ac".repeat(32))),
        ("/extra/terms/buyerNonce", json!("00".repeat(7))),
        ("/extra/terms/agentIdentifier", json!(null)),
        ("/extra/terms/agentIdentifier", json!("")),
        ("/extra/terms/inputHash", json!("00".repeat(32))),
        ("/extra/terms/payByTime", json!(later)),
        ("/extra/terms/unlockTime", json!(later)),
        ("/extra/referenceKey", json!("a10101")),
        ("/extra/referenceKey", json!("")),
        ("/extra/referenceSignature", json!("00".repeat(15))),
        ("/extra/referenceSignature", json!("00".repeat(513))),
        ("/extra/blockchainIdentifier", json!("00")),
        ("/extra/deployment", json!(null)),
        ("/extra/deployment/extension", json!(1)),
        ("/extra/deployment/requiredAdmins", json!("2")),
        ("/extra/deployment/requiredAdmins", json!("01")),
        ("/extra/deployment/requiredAdmins", json!("0")),
        ("/extra/deployment/adminVkeys", json!([])),
        ("/extra/deployment/cooldownPeriod", json!("-1")),
        ("/extra/deployment/cooldownPeriod", json!("60001")),
    ] {
        assert!(recognise(&sale(), &with(pointer, value.clone())).is_err(), "{pointer} = {value}");
    }
    for whole in [json!(null), json!([]), json!({}), json!("quote")] {
        assert_eq!(recognise(&sale(), &whole), Err("shape"), "{whole}");
    }
}

#[test]
fn an_object_is_never_read_from_a_list_of_its_fields() {
    let parts = ["", "/terms", "/deployment", "/confirmationPolicy", "/inputCommitment", "/inputCommitment/parts/0"];
    for pointer in parts.map(|part| format!("/extra{part}")) {
        let fields = entry().pointer(&pointer).unwrap().as_object().unwrap().values().cloned().collect();
        let entry = with(&pointer, Value::Array(fields));
        assert!(serde_json::from_value::<PaymentRequirements>(entry).is_err(), "{pointer}");
    }
}

#[test]
fn a_quote_with_a_missing_field_is_not_recognised() {
    let mut pointers = Vec::new();
    let mut todo = vec![(String::new(), entry())];
    while let Some((at, value)) = todo.pop() {
        if let Value::Object(object) = value {
            pointers.extend(object.keys().map(|name| (at.clone(), name.clone())));
            todo.extend(object.into_iter().map(|(name, value)| (format!("{at}/{name}"), value)));
        }
    }
    assert!(pointers.len() > 30, "{}", pointers.len());
    for (parent, name) in pointers {
        let mut entry = entry();
        entry.pointer_mut(&parent).unwrap().as_object_mut().unwrap().remove(&name);
        assert!(recognise(&sale(), &entry).is_err(), "without {parent}/{name}");
    }
}

#[test]
fn deadlines_that_we_would_sign_at_another_time_need_another_signature() {
    let later = method(TransferMethod::Escrow).offer(&sale(), NOW + 1, NONCE).unwrap();
    assert_ne!(later.terms_digest(), offered().terms_digest());
    let later_entry = serde_json::to_value(&later.requirements).unwrap();
    let mut forged = entry();
    forged["extra"]["terms"] = later_entry["extra"]["terms"].clone();
    assert_eq!(recognise(&sale(), &forged), Err(UNKNOWN));
    assert_eq!(recognise(&sale(), &later_entry), Ok(later));
}

#[test]
fn a_quote_is_open_for_four_minutes() {
    assert_eq!(offered().open_until(), Some(NOW + 240_000));
}

#[test]
fn a_price_under_five_tada_is_not_protected() {
    let offer = |price| method(TransferMethod::Escrow).offer(&Sale { price, ..sale() }, NOW, NONCE).map(drop);
    assert_eq!(offer(MIN_PROTECTED_PRICE), Ok(()));
    assert_eq!(offer(MIN_PROTECTED_PRICE.saturating_sub(Lovelace::new(1).unwrap())), Err(OfferError::PriceTooLow));
}

#[test]
fn a_policy_that_waits_for_no_block_is_refused_by_configuration() {
    let policy =
        |policy| EscrowMethod::new(Network::Preprod, deployment(), key(1), TransferMethod::Escrow, policy).map(drop);
    assert_eq!(policy(ConfirmationPolicy::MEMPOOL), Err(MempoolPolicy));
    assert_eq!(policy(ConfirmationPolicy::new(20).unwrap()), Ok(()));
}

#[test]
fn an_honest_lock_of_a_quote_needs_no_collateral() {
    let datum = crate::escrow::fixture::honest_datum(&crate::escrow::fixture::terms());
    let collateral =
        ::escrow::collateral::collateral_for(sale().price, &datum, &crate::escrow::fixture::parameters()).unwrap();
    assert_eq!(collateral, Lovelace::ZERO);
}
