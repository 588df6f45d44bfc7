use cardano::keys::Native;
use serde_json::{Value, json};

use super::*;
use crate::escrow::{
    Allowed, Identifier, MIN_PROTECTED_PRICE,
    fixture::{NONCE, NOW, block_on, deployment, key, quote, sale, with_issuer},
};

fn entry() -> Value {
    quote().to_json().unwrap()
}

fn recognise(sale: &Sale<'_>, accepted: &Value) -> Result<Quote, NotOurQuote> {
    with_issuer(TransferMethod::Escrow, |issuer| issuer.recognise(sale, accepted))
}

/// The entry with the value at a JSON pointer replaced; an object's new field is added.
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
    assert_eq!(extra["terms"]["payByTime"], (NOW + 5 * 60_000).to_string());
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
    let identifier = Identifier::decode(extra["blockchainIdentifier"].as_str().unwrap()).unwrap();
    assert_eq!(identifier, quote().requirements.identifier());
}

#[test]
fn a_quote_is_signed_by_the_seller_and_holds_as_anybodys_would() {
    let requirements = EscrowRequirements::parse(&entry()).unwrap();
    let deployment = deployment();
    let allowed = Allowed { deployment: &deployment, method: TransferMethod::Escrow };
    let authorized = block_on(AuthorizedTerms::verify(&Native, &requirements, allowed)).unwrap();
    assert_eq!(authorized.terms_digest(), quote().terms_digest);
    let own = with_issuer(TransferMethod::Escrow, |issuer| quote().authorized(issuer));
    assert_eq!(authorized, own);
}

#[test]
fn our_own_quote_is_recognised_without_having_been_stored() {
    assert_eq!(recognise(&sale(), &entry()), Ok(quote()));
    let masumi = |accepted: &Value| {
        with_issuer(TransferMethod::Masumi, |issuer| issuer.recognise(&sale(), accepted).map(|quote| quote.to_json()))
    };
    let issued = with_issuer(TransferMethod::Masumi, |issuer| issuer.issue(&sale(), NOW, NONCE).unwrap());
    let entry = issued.to_json().unwrap();
    assert_eq!(entry["extra"]["assetTransferMethod"], "masumi");
    assert_eq!(masumi(&entry).unwrap().unwrap(), entry);
}

#[test]
fn the_networks_other_name_is_the_same_network() {
    assert_eq!(recognise(&sale(), &with("/network", json!("cip34:0-1"))), Ok(quote()));
    for other in ["cip34:0-2", "cardano:preview", "cardano:mainnet", ""] {
        assert_eq!(recognise(&sale(), &with("/network", json!(other))), Err(NotOurQuote::NeverIssued), "{other}");
    }
}

#[test]
fn a_quote_for_another_sale_is_not_ours() {
    let sales = [
        Sale { listing_id: "lst_02", ..sale() },
        Sale { content_hash: ContentHash::new([0xcd; 32]), ..sale() },
        Sale { price: Lovelace::from_ada(6), ..sale() },
        Sale { price: Lovelace::from_ada(1), ..sale() },
    ];
    for other in sales {
        assert_eq!(recognise(&other, &entry()), Err(NotOurQuote::NeverIssued), "{other:?}");
    }
}

#[test]
fn a_quote_of_another_seller_escrow_or_method_is_not_ours() {
    let own = key(1);
    let other_seller = key(3);
    let deployment = deployment();
    let mut other_deployment = deployment.clone();
    other_deployment.parameters.cooldown_period = 61_000;
    let mut other_address = deployment.clone();
    other_address.script_hash = cardano::ScriptHash::new([0xef; 28]);
    let issuer = Issuer {
        seller: &own,
        seller_address: own.enterprise_address(),
        deployment: &deployment,
        method: TransferMethod::Escrow,
    };
    assert!(issuer.recognise(&sale(), &entry()).is_ok());
    for other in [
        Issuer { seller: &other_seller, seller_address: other_seller.enterprise_address(), ..issuer },
        Issuer { deployment: &other_deployment, ..issuer },
        Issuer { deployment: &other_address, ..issuer },
        Issuer { method: TransferMethod::Masumi, ..issuer },
    ] {
        assert_eq!(other.recognise(&sale(), &entry()), Err(NotOurQuote::NeverIssued), "{other:?}");
    }
}

#[test]
fn a_changed_field_is_never_ours() {
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
        assert!(matches!(recognise(&sale(), &whole), Err(NotOurQuote::Schema(_))), "{whole}");
    }
}

#[test]
fn a_missing_field_is_never_ours() {
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
    let later = with_issuer(TransferMethod::Escrow, |issuer| issuer.issue(&sale(), NOW + 1, NONCE).unwrap());
    assert_ne!(later.terms_digest, quote().terms_digest);
    let mut forged = entry();
    forged["extra"]["terms"] = later.to_json().unwrap()["extra"]["terms"].clone();
    assert_eq!(recognise(&sale(), &forged), Err(NotOurQuote::NeverIssued));
    assert_eq!(recognise(&sale(), &later.to_json().unwrap()), Ok(later));
}

#[test]
fn a_quote_is_open_until_its_pay_by_time() {
    let pay_by = quote().deadlines().pay_by;
    assert!(quote().is_open_at(NOW));
    assert!(quote().is_open_at(pay_by - 1));
    assert!(!quote().is_open_at(pay_by));
}

#[test]
fn a_price_under_five_tada_is_not_protected() {
    let one = Lovelace::new(1).unwrap();
    let issue = |price| {
        with_issuer(TransferMethod::Escrow, |issuer| issuer.issue(&Sale { price, ..sale() }, NOW, NONCE).map(drop))
    };
    assert_eq!(issue(MIN_PROTECTED_PRICE), Ok(()));
    assert_eq!(issue(MIN_PROTECTED_PRICE.saturating_sub(one)), Err(IssueError::PriceTooLow));
}

#[test]
fn a_seller_address_of_another_key_is_refused() {
    let (seller, deployment) = (key(1), deployment());
    let seller_address = key(2).enterprise_address();
    let issuer = Issuer { seller: &seller, seller_address, deployment: &deployment, method: TransferMethod::Escrow };
    assert_eq!(issuer.issue(&sale(), NOW, NONCE), Err(IssueError::Key(Cip8Error::OtherKey)));
}

#[test]
fn an_honest_lock_of_a_quote_needs_no_collateral() {
    let datum = crate::escrow::fixture::honest_datum(&quote());
    let collateral =
        ::escrow::collateral::collateral_for(sale().price, &datum, &crate::escrow::fixture::parameters()).unwrap();
    assert_eq!(collateral, Lovelace::ZERO);
}
