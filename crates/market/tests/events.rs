//! Events that owners are notified of: for whom they are, how often they occur, and what a rollback makes of them. On a
//! chain in memory.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use api_types::{
    Event,
    EventKind::{self, ApprovalRequested, Dispute, OldToken, Payout, Proof, Refund, RolledBack, Sale},
    PurchaseRole, check,
};
use cardano::{Lovelace, TxHash, keys::SigningKey};
use escrow::Action;
use market::{
    DeliveryMode,
    account::Account,
    event::{self, EventsPage, KEPT_MS, PAGE},
    fees::creator_share,
    purchase_request::{Asked, RequestId},
};
use sql::Database;

use crate::support::{
    NOON, SELLER, block, one, person,
    sales::{PRICE, Sales, creator, run},
    sign_up, sign_up_as,
};

/// A market whose seller has an account, and a buyer's account with its wallet's key.
fn market() -> (Sales, (Account, SigningKey)) {
    let mut sales = Sales::new();
    sign_up_as(&sales.db, creator(), 9, NOON);
    let buyer = sign_up(&sales.db, 7, NOON);
    sales.platform.wallets = vec![buyer.1.clone()];
    (sales, buyer)
}

/// Returns an owner's events, oldest first.
fn events(sales: &Sales, owner: &str) -> Vec<Event> {
    let EventsPage { mut events, next } = block(event::page(&sales.db, owner, None)).unwrap();
    assert_eq!(next, None);
    events.reverse();
    events
}

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind).collect()
}

fn connect(sales: &Sales, account: &Account, grant: &str) {
    run(
        sales,
        &format!(
            "INSERT INTO oauth_grants (id, request, owner, client_id, client_name, redirect_uri, resource, scope, \
               code_challenge, client_auth, generation, rotated_at_ms, created_at_ms, used_at_ms) \
             VALUES ('{grant}', '{grant}', '{}', 'client', 'Shopper', '', '', 'mcp', printf('%043d', 0), 'none', 1, {NOON}, {NOON}, {NOON})",
            account.owner
        ),
    );
}

const AGENT: &str = "0000000000000000000000000000000a";

fn ask(sales: &Sales, account: &Account, random: u8, price: u64) {
    let price = Lovelace::new(price).unwrap();
    let listing = &sales.listing;
    let asked = Asked { owner: &account.owner, grant: AGENT, listing, mode: DeliveryMode::Instant, price };
    block(asked.ask(&sales.db, RequestId::new([random; 16]), NOON)).unwrap().unwrap();
}

#[test]
fn a_protected_sale_notifies_its_seller_and_its_buyer_of_each_step_and_nobody_else() {
    let (sales, (buyer, key)) = market();
    let (stranger, _) = sign_up(&sales.db, 8, NOON);
    let lock = sales.sell(&key);
    sales.ticks(3);
    sales.until(32);
    sales.ticks(2);
    let (sold, bought) = (events(&sales, SELLER), events(&sales, &buyer.owner));
    assert_eq!(kinds(&sold), [Sale, Proof, Payout]);
    assert_eq!(kinds(&bought), [Sale, Proof, Payout]);
    let price = Lovelace::new(PRICE).unwrap();
    for (events, role, amount) in
        [(&sold, PurchaseRole::Seller, creator_share(price)), (&bought, PurchaseRole::Buyer, price)]
    {
        assert!(events.iter().all(|event| event.role == Some(role) && event.amount_lovelace == Some(amount)));
        assert!(events.iter().all(|event| event.purchase_id == Some(lock)));
        assert!(events.iter().all(|event| event.title.as_deref() == Some("Listing 1")));
    }
    assert!(sold[0].at < sold[1].at && sold[1].at < sold[2].at, "times of blocks");
    assert_eq!(events(&sales, &stranger.owner), []);
    assert_eq!(events(&sales, SELLER), sold, "the same ids however often they are read");
}

#[test]
fn a_purchase_from_the_owners_own_wallet_notifies_the_account_and_an_instant_one_is_only_a_sale() {
    let (sales, (buyer, _)) = market();
    let bought = sales.sell_instant(&person(7));
    sales.ledger.mine();
    sales.includes(&bought);
    assert_eq!(kinds(&events(&sales, &buyer.owner)), [Sale]);
    let sold = events(&sales, SELLER);
    assert_eq!(kinds(&sold), [Sale]);
    assert_eq!(sold[0].amount_lovelace, Lovelace::new(PRICE), "paid directly");
}

#[test]
fn a_dispute_and_how_it_ends_are_events() {
    let (sales, (_, key)) = market();
    let won = sales.sell(&key);
    sales.ticks(3);
    sales.does(&won, Action::SetRefundRequested);
    sales.ticks(2);
    sales.until(48);
    sales.settles(&won);
    sales.ticks(4);
    assert_eq!(one(&sales.db, "SELECT state FROM outbox WHERE kind = 'payout'"), "included");
    let sold = events(&sales, SELLER);
    assert_eq!(kinds(&sold), [Sale, Proof, Dispute, Payout], "paid by a transaction of the service");
    assert_ne!(sold[3].tx_hash, sold[2].tx_hash);
    // The payout's block is rolled back, and another one includes it again.
    let depth = usize::try_from(one(&sales.db, "SELECT CAST(1 + max(tip_height) - max(block_height) AS TEXT) FROM outbox, chain_state WHERE kind = 'payout'").parse::<u64>().unwrap()).unwrap();
    sales.ledger.roll_back(depth, u64::MAX);
    (0..depth + 2).for_each(|_| sales.ledger.mine());
    sales.ticks(4);
    let kinds = kinds(&events(&sales, SELLER));
    let count = |kind| kinds.iter().filter(|known| **known == kind).count();
    assert_eq!(count(Payout), count(RolledBack) + 1, "as many as hold are left: {kinds:?}");
}

#[test]
fn a_refund_is_an_event_of_both_parties() {
    let (sales, (buyer, key)) = market();
    let lock = sales.sell(&key);
    sales.ledger.mine();
    sales.includes(&lock);
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    sales.until(17);
    sales.ticks(3);
    assert_eq!(sales.status(&lock), "refunded");
    let expected = [Sale, EventKind::RefundRequested, Refund];
    assert_eq!(kinds(&events(&sales, SELLER)), expected);
    assert_eq!(kinds(&events(&sales, &buyer.owner)), expected);
}

/// Events that are true, by kind and transaction.
fn standing(events: &[Event]) -> Vec<(EventKind, TxHash)> {
    let true_ones = events.iter().filter(|event| event.undone_by.is_none() && event.kind != RolledBack);
    true_ones.map(|event| (event.kind, event.tx_hash.unwrap())).collect()
}

#[test]
fn a_rollback_marks_the_events_that_it_undid_and_says_so_and_a_new_block_is_a_new_event() {
    let (sales, (_, key)) = market();
    let lock = sales.sell(&key);
    sales.ticks(3);
    let before = events(&sales, SELLER);
    assert_eq!(kinds(&before), [Sale, Proof]);
    // No block of the new chain has the purchase.
    sales.ledger.roll_back(3, 0);
    (0..4).for_each(|_| sales.ledger.mine());
    sales.ticks(2);
    let gone = events(&sales, SELLER);
    assert_eq!(standing(&gone), [], "nothing that was told is left as if it were true: {gone:?}");
    for told in &before {
        let marked = gone.iter().find(|event| event.id == told.id).unwrap();
        let undoing = gone.iter().find(|event| event.undoes.as_ref() == Some(&told.id)).unwrap();
        assert_eq!(marked.undone_by.as_ref(), Some(&undoing.id));
        assert_eq!((undoing.kind, undoing.purchase_id, undoing.role), (RolledBack, told.purchase_id, told.role));
    }
    assert_eq!(gone.iter().filter(|event| event.kind == RolledBack).count(), 2, "each once");
    // The service submits the transaction again, and another block includes it.
    sales.ticks(5);
    let again = events(&sales, SELLER);
    let sales_again: Vec<&Event> = again.iter().filter(|event| event.kind == Sale).collect();
    assert_eq!(sales_again.len(), 2);
    assert_ne!(sales_again[0].id, sales_again[1].id, "a receiver that ignores known ids must not miss it");
    assert_eq!(standing(&again).first(), Some(&(Sale, lock)));
}

#[test]
fn an_agent_that_asks_is_one_event_which_outlives_its_request() {
    let (sales, (account, _)) = market();
    connect(&sales, &account, AGENT);
    (1..=3).for_each(|random| ask(&sales, &account, random, PRICE));
    run(&sales, "DELETE FROM purchase_requests");
    let asked = events(&sales, &account.owner);
    assert_eq!(kinds(&asked), [ApprovalRequested], "asking again is no other question");
    assert_eq!(asked[0].client_name.as_deref(), Some("Shopper"));
    assert_eq!((asked[0].at, asked[0].amount_lovelace), (NOON, Lovelace::new(PRICE)));
    assert!(asked[0].path().ends_with(&"01".repeat(16)), "{}", asked[0].path());
    assert_eq!(events(&sales, SELLER), []);
}

#[test]
fn an_old_token_that_is_tried_again_and_again_is_one_event() {
    let (sales, (account, _)) = market();
    connect(&sales, &account, AGENT);
    for minute in 0..300 {
        run(&sales, &format!("UPDATE oauth_grants SET old_token_at_ms = {}", NOON + minute * 60_000));
    }
    assert_eq!(kinds(&events(&sales, &account.owner)), [OldToken]);
    run(&sales, &format!("UPDATE oauth_grants SET old_token_at_ms = {}", NOON + 400 * 60_000));
    assert_eq!(kinds(&events(&sales, &account.owner)), [OldToken, OldToken], "after a pause");
}

#[test]
fn pages_have_each_event_once_and_old_events_are_deleted_but_positions_never_used_again() {
    let (sales, (account, _)) = market();
    let add = |at: u64| {
        run(&sales, &format!("INSERT INTO events (owner, kind, at_ms) VALUES ('{}', 'test', {at})", account.owner));
    };
    let many = u64::from(PAGE) * 2 + 1;
    (0..many).for_each(|number| add(NOON + number));
    let (mut before, mut seen, mut pages) = (None, vec![], 0);
    loop {
        let EventsPage { events, next } = block(event::page(&sales.db, &account.owner, before)).unwrap();
        assert!(events.len() <= PAGE as usize);
        seen.extend(events.into_iter().map(|event| event.at));
        (before, pages) = (next, pages + 1);
        if next.is_none() {
            break;
        }
        add(NOON);
    }
    assert_eq!(seen, (0..many).rev().map(|number| NOON + number).collect::<Vec<_>>(), "whatever happens meanwhile");
    assert_eq!(pages, 3);
    let last = one(&sales.db, "SELECT CAST(max(seq) AS TEXT) FROM events");
    for _ in 0..4 {
        sales.tick_at(&sales.db, NOON + KEPT_MS + 3_600_000);
    }
    assert_eq!(one(&sales.db, "SELECT group_concat(seq) FROM events"), last, "the newest stays");
}

#[test]
fn a_page_of_events_costs_no_more_as_others_grow() {
    let (sales, (account, _)) = market();
    let steps = |events: u32| {
        let many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)";
        let insert = format!(
            "INSERT INTO events (owner, kind, at_ms, purchase_id) {many} SELECT iif(n % 100, ?2, ?3), 'sale', n, printf('%064d', n) FROM n"
        );
        block(sales.db.execute::<()>(sql::write!(insert, events, SELLER, account.owner.as_str()))).unwrap();
        let before = sales.db.steps();
        drop(block(event::page(&sales.db, &account.owner, None)).unwrap());
        sales.db.steps() - before
    };
    steps(10_000);
    let (few, many) = (steps(1), steps(50_000));
    assert!(many < few + few / 4, "{few} {many}");
}

#[test]
pub fn an_event_has_every_field() {
    let (sales, (account, key)) = market();
    connect(&sales, &account, AGENT);
    ask(&sales, &account, 1, PRICE);
    sales.sell(&key);
    sales.ticks(3);
    sales.ledger.roll_back(3, 0);
    (0..4).for_each(|_| sales.ledger.mine());
    sales.ticks(2);
    let events = events(&sales, &account.owner);
    check::complete::<Vec<Event>>(&[&serde_json::json!(events).to_string()]).unwrap();
    let stored = one(&sales.db, "SELECT group_concat(DISTINCT kind) FROM events");
    for event in &events {
        assert!(stored.split(',').any(|kind| kind == event.kind.name()), "{stored}");
        assert!(!event.words().is_empty());
    }
}
