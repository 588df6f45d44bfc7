//! JSON that is written by SQL or as text has exactly the fields of its type in `api-types`.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use api_types::{Answer, Creator, Listing, Me, NewListing, Purchase, check};
use cardano::{Lovelace, TxHash};
use market::{
    DeliveryMode, ListingId,
    account::{self, RuleChanges},
    catalogue::{
        self, Filter, Newest, Quota, Source,
        discovery::{self, PaymentFilter, Question},
        take_off::{self, SaleState},
    },
    chain_state,
    claim::conditions,
    contents::InDatabase,
    limits::spent_today,
    listing,
    notice::Notified,
    payment, provider_calls,
    purchase::{self, Status, Verification},
    purchase_request::{self as approvals, Asked, RequestId},
    receipt::{self, Receipt},
    seller_name::SellerName,
    state,
    status::{self, TickOutcome},
};
use serde_json::json;
use sql::{Database, DatabaseError};

use crate::{
    confirmations, copied_payments, forks, owners_actions, purchase_requests, restored,
    support::{
        NOON, block, person,
        sales::{Sales, run},
        sign_up, token,
    },
    watcher,
};

/// A listing with all optional fields, whose sale ended well and has a verdict.
struct Sold {
    sales: Sales,
    listing: ListingId,
    lock: TxHash,
}

/// The seller, who has an account, and the buyer.
const OWNER: u8 = 5;
const BUYER: u8 = 11;

fn offer() -> NewListing {
    NewListing {
        title: "A hero".into(),
        description: "With a gradient".into(),
        price_lovelace: Lovelace::from_ada(10),
        seller_address: person(OWNER).enterprise_address().to_string(),
        modes: vec![DeliveryMode::Instant, DeliveryMode::Protected],
        content: "Build a hero section.".into(),
        preview_media: Some("https://media.example/hero.mp4".into()),
        category: Some("Hero".into()),
        excerpt: Some("Build a".into()),
    }
}

fn sold() -> Sold {
    let sales = Sales::new();
    let offer = listing::NewListing::read(json!(offer()).to_string().as_bytes(), None).unwrap();
    let (id, contents) = (ListingId::new(NOON, [77; 10]), InDatabase(&sales.db));
    block(catalogue::store(&sales.db, &contents, &id, &offer, Source::default(), Quota::default(), NOON)).unwrap();
    let lock = sales.sell_listing(&id, &person(BUYER));
    let own = sales.sell(&person(OWNER));
    sales.ticks(3);
    sales.until(32);
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "withdrawn");
    // As if Surety balances had paid, and an arbiter had decided a dispute about each.
    for change in [
        "INSERT INTO accounts (owner, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, created_at_ms) \
           SELECT 'payer of ' || id, buyer_address, buyer_key, 1, 10000000, 30000000, 0 FROM purchases",
        "UPDATE escrow_steps SET status = 'Disputed' WHERE status = 'ResultSubmitted'",
        "INSERT INTO decisions (purchase_id, seller_address, winner, reason) \
           SELECT id, seller_address, 'seller', 'as listed' FROM purchases",
    ] {
        run(&sales, change);
    }
    for judged in [lock, own] {
        block(purchase::verify(&sales.db, &judged, Verification::Ok)).unwrap();
    }
    sign_up(&sales.db, OWNER, NOON);
    let name = SellerName::read("Ada \"A\"").unwrap();
    assert!(block(account::set_seller_name(&sales.db, &token(OWNER), name.as_ref(), NOON)).unwrap());
    Sold { sales, listing: id, lock }
}

#[test]
fn a_listing_has_every_field_wherever_it_is_shown() {
    let Sold { sales, listing, .. } = sold();
    let one = block(catalogue::one(&sales.db, &listing)).unwrap().unwrap();
    check::complete::<Listing>(&[&one]).unwrap();
    let filter = Filter { words: Some("hero".into()), ..Filter::default() };
    let page = block(catalogue::page(&sales.db, &filter)).unwrap().json;
    check::complete::<Vec<Listing>>(&[&page]).unwrap();
    let newest = block(Newest::read(&sales.db)).unwrap().page().json;
    check::complete::<Vec<Listing>>(&[&newest]).unwrap();
    let seller = person(OWNER).enterprise_address();
    let creator = block(catalogue::creator(&sales.db, &seller, None)).unwrap().json;
    let [creator] = check::complete::<Creator>(&[&creator]).unwrap().try_into().unwrap();
    let figures = block(catalogue::seller(&sales.db, &seller)).unwrap();
    assert_eq!((figures.sales, figures.seller_reputation), (creator.sales, creator.seller_reputation));
    assert_eq!((creator.seller_name.as_deref(), &figures.seller_name), (Some("Ada \"A\""), &creator.seller_name));
}

#[test]
fn an_offer_has_the_fields_that_are_read() {
    let offer = json!(offer());
    let sent: BTreeSet<&str> = offer.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(sent, check::fields::<NewListing>());
    // Each is parsed; another type would be an error that names it.
    for field in sent {
        let mut other = offer.clone();
        other[field] = json!({});
        let refused = listing::NewListing::read(other.to_string().as_bytes(), None).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field));
    }
}

#[test]
fn a_purchase_has_every_field_wherever_it_is_shown() {
    let Sold { sales, lock, .. } = sold();
    let one = block(purchase::one(&sales.db, &lock)).unwrap().unwrap();
    check::complete::<Purchase>(&[&json!(one).to_string()]).unwrap();
    assert_eq!(one.events.last().unwrap().status, "creator_paid");
    let seller = person(OWNER).enterprise_address();
    assert!(block(purchase::of_seller(&sales.db, &seller, &[])).unwrap().contains(&one));
    let buyers = [*person(BUYER).enterprise_address().payment_key()];
    assert!(block(purchase::of_buyers(&sales.db, &buyers, None)).unwrap().0.contains(&one));
}

#[test]
fn a_receipt_says_what_was_locked_and_what_came_back_and_of_an_instant_purchase_the_price_alone() {
    let Sold { sales, lock, .. } = sold();
    // Like a payment that was taken for rejected, and whose bytes were deleted.
    run(&sales, "UPDATE outbox SET cbor = ''");
    let receipt = block(sales.db.fetch(receipt::read(&lock))).unwrap().unwrap();
    assert_eq!(receipt.locked.unwrap(), receipt.price.checked_add(receipt.collateral()).unwrap());
    assert_eq!(receipt.returned(Status::Withdrawn), Some(receipt.collateral()));
    assert_eq!(receipt.returned(Status::Refunded), receipt.locked);
    assert_eq!((receipt.returned(Status::Disputed), receipt.paid()), (None, None), "no fee is known");
    let known = Receipt { fee: Lovelace::new(170_000), ..receipt };
    assert_eq!(known.paid(), receipt.locked.unwrap().checked_add(Lovelace::new(170_000).unwrap()));
    let instant = Receipt { locked: None, ..known };
    assert_eq!((instant.collateral(), instant.returned(Status::Settled)), (Lovelace::ZERO, None));
}

#[test]
fn an_account_has_every_field() {
    let Sold { sales, .. } = sold();
    let limits = account::limits(10, 30).unwrap();
    let rules = RuleChanges::parse(Some(5), Some(true), Some(80)).unwrap();
    block(account::set_limits(&sales.db, &token(OWNER), limits, rules, NOON)).unwrap().unwrap();
    block(account::pause_agents(&sales.db, &token(OWNER), true, NOON)).unwrap().unwrap();
    let me = block(account::view(&sales.db, &token(OWNER), Lovelace::from_ada(3), NOON)).unwrap().unwrap();
    check::complete::<Me>(&[&json!(me).to_string()]).unwrap();
}

#[test]
fn every_query_with_a_type_fits_the_schema() {
    let Sold { sales, listing, lock } = sold();
    sales.ledger.roll_back(2, 0);
    (0..4).for_each(|_| sales.ledger.mine());
    sales.ticks(2);
    for statement in include_str!("../src/watch/restored.sql").split_inclusive(";\n") {
        run(&sales, statement);
    }
    run(
        &sales,
        &format!(
            "INSERT OR IGNORE INTO unread_wallets (wallet, height, position) VALUES ('{}', 0, 0)",
            person(OWNER).enterprise_address()
        ),
    );
    sales.until(60);
    sales.ticks(3);
    sales.tick_number.set(2);
    sales.ticks(1);
    let (account, _) = sign_up(&sales.db, 1, NOON);
    let (db, seller, id) = (&sales.db, person(OWNER).enterprise_address(), RequestId::new([1; 16]));
    let limits = account::limits(10, 500).unwrap();
    let price = Lovelace::from_ada(5);
    let mode = DeliveryMode::Instant;
    let asked = Asked { owner: &account.owner, grant: "an agent", listing: &listing, mode, price };
    block(async {
        account::sign_in_address(db, &seller, &[]).await?;
        account::set_limits(db, &token(1), limits, RuleChanges::default(), NOON).await?;
        account::pause_agents(db, &token(1), true, NOON).await?;
        account::of_session(db, &token(1), NOON).await?;
        account::view(db, &token(1), Lovelace::ZERO, NOON).await?;
        asked.ask(db, id, NOON).await?;
        approvals::answer(db, &token(1), id, Answer::Approve, NOON).await?;
        account::sign_out(db, &token(1), true, NOON).await
    })
    .unwrap();
    db.check(&(conditions(&account, &listing, mode, price, NOON), account::by_grant(""), account::pending("")))
        .unwrap();
    db.check(&(spent_today("", NOON), approvals::waiting("", NOON), purchase::sales(""))).unwrap();
    db.check(&(catalogue::titles(&[]), receipt::read(&lock), chain_state::read_time(), state::read())).unwrap();
    db.check(&(Notified::default().record(), payment::unresolved(&listing, &[], None, NOON))).unwrap();
    let (off_sale, for_sale) = (SaleState::OffSale, SaleState::ForSale);
    block(async {
        catalogue::one(db, &listing).await?;
        status::read(db, NOON).await?;
        discovery::for_sale(db, PaymentFilter::Any, true, (1, 0)).await?;
        discovery::addresses(db).await?;
        discovery::search(db, &Question::read("hero").unwrap(), PaymentFilter::Any, true, (1, 0)).await?;
        let filter = Filter { words: Some("hero nowhere".into()), ..Filter::default() };
        catalogue::page(db, &filter).await?;
        catalogue::count(db, &filter).await?;
        for state in [off_sale, for_sale] {
            take_off::change(db, &listing, &seller, state, Some(NOON), NOON).await?.unwrap();
        }
        Ok::<_, DatabaseError>(())
    })
    .unwrap();
    db.check(&(provider_calls::add(1, NOON), status::note_tick(TickOutcome::default(), None, 0, NOON))).unwrap();
    db.check(&(take_off::bought(&listing), take_off::taken_off(""), catalogue::terms(&listing))).unwrap();
    db.check(&(catalogue::content_paid_by(&lock), purchase::owned_by(&listing, &[]))).unwrap();
    // The tests that run the other queries.
    crate::catalogue::an_edit_keeps_former_prices_payable_and_loses_no_concurrent_edit();
    crate::events::an_event_has_every_field();
    crate::webhooks::a_webhook_has_every_field();
    confirmations::no_door_opens_after_a_rollback_of_one_confirmation();
    copied_payments::a_broadcast_payment_with_its_payers_signature_waits_for_its_block();
    copied_payments::a_payment_identifier_on_a_copy_opens_nothing_that_the_payer_is_paying_for();
    forks::a_step_that_one_node_shows_in_a_block_of_another_fork_freezes_no_sale();
    forks::a_result_shown_only_on_another_fork_is_requested_again();
    crate::newest_listings::an_unchanged_listing_is_not_read_again();
    owners_actions::a_dispute_shows_its_decision_with_reason_and_transaction();
    owners_actions::a_result_in_a_block_shows_without_a_tick();
    owners_actions::an_owner_asks_for_a_refund_and_takes_it_when_no_proof_comes();
    purchase_requests::a_paid_or_pending_purchase_needs_no_second_approval();
    restored::a_database_behind_the_stored_tick_number_freezes_its_wallets_by_itself();
    restored::transactions_that_others_send_to_a_wallet_do_not_keep_it_unread();
    watcher::an_award_behind_a_withheld_step_is_found();
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(sql::sqlite::unchecked(&sources), Vec::<String>::new());
}
