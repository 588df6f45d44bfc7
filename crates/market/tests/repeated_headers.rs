//! Payments with repeated headers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::cell::{Cell, RefCell};

use crate::support::{
    NOON, Paying, SELLER, block, checkout, entry, given,
    ledger::{Ledger, Tx},
    list, paying_for, payment, person,
    sales::Sales,
    sign_up,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::ContentHash;
use market::{
    ListingId, PortError,
    catalogue::{self, ListingTerms},
    checkout::{PaidContent, PayError, Presented, Unavailable},
    claim::Claim,
    contents::InDatabase,
    transitions,
};
use outbox::{EntryState, Outbox, Provenance, Sleep};
use serde_json::json;
use sql::{Database, Write, sqlite::Sqlite};

const PRICE: u64 = 5_000_000;
const UNTIL: u64 = u64::MAX >> 12;

/// Events while a request waits for the first time.
struct Meanwhile<'a>(&'a dyn Fn(), Cell<bool>);

impl Sleep for Meanwhile<'_> {
    async fn sleep(&self, _: u64) {
        if !self.1.replace(true) {
            (self.0)();
        }
    }
}

pub fn header_of(cbor: &[u8], nonce: &str) -> String {
    let payment = json!({
        "x402Version": 2,
        "accepted": {
            "scheme": "exact", "network": "cardano:preprod", "amount": PRICE.to_string(), "asset": "lovelace",
            "payTo": SELLER, "maxTimeoutSeconds": 300, "extra": {},
        },
        "payload": { "transaction": STANDARD.encode(cbor), "nonce": nonce },
        "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
    });
    STANDARD.encode(payment.to_string())
}

pub fn terms_of(db: &Sqlite, listing: &ListingId) -> ListingTerms {
    block(db.fetch(catalogue::terms(listing))).unwrap().unwrap()
}

fn pay(
    (db, ledger): (&Sqlite, &Ledger),
    terms: &ListingTerms,
    header: &str,
    clock: u64,
    meanwhile: &dyn Fn(),
) -> Result<PaidContent, PayError> {
    ledger.calls.set(0);
    block(checkout(db, ledger, &Meanwhile(meanwhile, Cell::new(false)), &InDatabase(db), &[], clock).pay(
        terms,
        &Presented::read(header, "network", None).unwrap(),
        None,
    ))
}

#[test]
fn a_refused_payment_opens_nothing_for_an_equal_request() {
    let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
    let (account, key) = sign_up(&db, 1, NOON);
    let listing = list(&db, 1, PRICE);
    let built = payment(&account, &key, &[given(&account, 0xfa, 200_000_000)], PRICE, UNTIL);
    let header = header_of(&built.cbor, &built.facts.inputs.first().unwrap().to_string());
    let provenance = Provenance::Unknown;
    let paying = Paying { account: None, provenance, ..paying_for(&account, &listing, &built, PRICE) };
    let Claim::New(first) = paying.claim_by(&db, ContentHash::of(header.as_bytes()), None, NOON) else {
        panic!("it is new")
    };
    let first = RefCell::new(first);
    // The payer submitted it elsewhere.
    assert!(ledger.add_to_mempool(Tx::new(built.cbor.clone(), UNTIL)));
    let meanwhile = || {
        let outbox = Outbox { database: &db, chain: &ledger, hook: &transitions::statements };
        assert!(block(outbox.submit_first(&mut first.borrow_mut(), None, NOON)).unwrap().is_some());
        assert_eq!(entry(&db, &paying.tx()).state, EntryState::Refused);
        ledger.mine();
    };
    let second = pay((&db, &ledger), &terms_of(&db, &listing), &header, NOON, &meanwhile);
    assert_eq!(second, Err(PayError::Public));
    assert_eq!(entry(&db, &paying.tx()).provenance, Provenance::Foreign);
}

#[test]
fn a_payer_told_to_retry_gets_the_content_by_the_same_header() {
    for is_late in [true, false] {
        let sales = Sales::new();
        let lock = sales.sell(&person(9));
        let header = header_of(&entry(&sales.db, &lock).cbor, &format!("{lock}#0"));
        let digest = ContentHash::of(header.as_bytes());
        let run = |statement: Write| block(sales.db.execute(statement)).unwrap();
        run(sql::write!("UPDATE payments SET header_digest = ?1 WHERE tx_id = ?2", digest, lock));
        sales.ledger.mine();
        let terms = terms_of(&sales.db, &sales.listing);
        let ask = |clock| pay((&sales.db, &sales.ledger), &terms, &header, clock, &|| ());
        if is_late {
            let end = sales.escrow(&lock).datum.deadlines.submit_result;
            assert_eq!(ask(end), Err(PayError::Unavailable(Unavailable::Refundable(lock))));
        }
        sales.ticks(3);
        if !is_late {
            run(sql::write!("ALTER TABLE contents RENAME TO moved"));
            assert!(matches!(
                ask(sales.now()),
                Err(PayError::Unavailable(Unavailable::Port(PortError::Contents(_) | PortError::Database(_))))
            ));
            run(sql::write!("ALTER TABLE moved RENAME TO contents"));
        }
        assert_eq!(ask(sales.now()).unwrap().content, "content 1");
        assert_eq!(ask(sales.now() + 9 * 60_000).unwrap().content, "content 1", "the answer may be lost");
        assert!(ask(sales.now() + 10 * 60_000).is_err(), "its client has it, or signs");
    }
}
