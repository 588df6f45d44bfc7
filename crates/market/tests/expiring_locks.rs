//! Locks that expire before a block is likely to include them are rejected.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::support::{
    block, checkout,
    ledger::{Tx, faucets},
    one, person,
    provider::Meanwhile,
    sales::{Sales, output},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Lovelace, TxRef,
    chain::Utxo,
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode,
    catalogue::{self, ListingTerms},
    checkout::{Checkout, PaidContent, PayError, Presented},
    contents::InDatabase,
    result_poster::Seller,
};
use serde_json::json;
use sql::Database;
use x402_cardano::{
    escrow::TransferMethod,
    method::{EscrowMethod, PaymentMethod},
    wire::ConfirmationPolicy,
};

/// Submits a lock that is valid for this many further slots.
fn pays(sales: &Sales, slots: u64) -> Result<PaidContent, PayError> {
    let policy = ConfirmationPolicy::new(0).unwrap();
    let seller = sales.platform.seller.clone();
    let method =
        EscrowMethod::new(api_types::NETWORK, sales.deployment.clone(), seller, TransferMethod::Escrow, policy)
            .unwrap();
    let terms: Option<ListingTerms> = block(sales.db.fetch(catalogue::terms(&sales.listing))).unwrap();
    let terms = ListingTerms { modes: vec![DeliveryMode::Protected], ..terms.unwrap() };
    let (key, parameters) = (person(9), ProtocolParameters::preprod());
    let payer = key.enterprise_address();
    let coin = output(payer.to_string(), Lovelace::from_ada(100), None);
    let funds = Tx::unsigned(1, &[faucets(900)], std::slice::from_ref(&coin), u64::MAX);
    let coin = Utxo { reference: TxRef { tx: funds.id, index: 0 }, ..coin };
    assert!(sales.ledger.add_to_mempool(funds));
    sales.ledger.mine();
    let now = sales.now();
    let offered = method.offer(&terms.sale(), now, [7; 32]).unwrap();
    let lock = method.output(&offered, &payer, None, &parameters, &SlotConfig::PREPROD).unwrap();
    let until = SlotConfig::PREPROD.slot_at(now).unwrap() + slots;
    let plan = TxPlan { outputs: vec![lock.output], validity: Validity { from: None, until }, ..TxPlan::default() };
    let wallet = Wallet { address: payer, utxos: &[coin], reserved: &[].into() };
    let built = build(&plan, &wallet, &parameters).unwrap().sign(&[&key]).unwrap();
    let header = json!({
        "x402Version": 2,
        "accepted": offered.requirements,
        "payload": {
            "transaction": STANDARD.encode(&built.cbor),
            "nonce": built.facts.inputs.first().unwrap().to_string(),
        },
        "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
    });
    let header = STANDARD.encode(header.to_string());
    let presented = Presented::read(&header, "203.0.113.1", None).unwrap();
    block(
        Checkout {
            seller: Some(Seller { deployment: &sales.deployment, key: &sales.platform.seller }),
            schedule: &[500, 500],
            ..checkout(
                &sales.db,
                &sales.ledger,
                &Meanwhile(&|| sales.ledger.mine()),
                &InDatabase(&sales.db),
                &[(DeliveryMode::Protected, &method)],
                now,
            )
        }
        .pay(&terms, &presented, None),
    )
}

#[test]
fn a_lock_that_expires_too_soon_is_refused() {
    for slots in [2, 29] {
        let sales = Sales::new();
        assert_eq!(pays(&sales, slots), Err(PayError::ExpiresTooSoon));
        assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM outbox"), "0");
    }
    assert_eq!(pays(&Sales::new(), 30).unwrap().content, "content 1");
}
