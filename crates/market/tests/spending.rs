//! What holds a service wallet's spending together, on SQLite: the guard of limits, give-back, reservations, what may be spent.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::support::{
    NOON, Paying, block, entry, given, inclusion, list, one, paying_for, payment, reread, sign_up, spent_today, step,
    token,
};
use cardano::{Address, ContentHash, KeyHash, Lovelace, TxHash, address::Credential, chain::Utxo, keys::SigningKey};
use market::{
    DeliveryMode, ListingId,
    account::{self, Account, DAY_MS},
    network::UNKNOWN,
    payment::{Claim, Identifier, NotGranted},
};
use outbox::{Decision, EntryState, WalletSnapshot, snapshot};
use proptest::prelude::*;
use sql::{Database, exactly, sqlite::Sqlite, statement};

const ADA: u64 = 1_000_000;
const UNTIL: u64 = NOON_SLOT + 300;
/// The slot at noon.
const NOON_SLOT: u64 = (NOON - 1_655_683_200_000) / 1_000;
const HOUR: u64 = 60 * 60_000;

/// A database, an account with limits in ADA, its key.
fn market(per_payment: u32, daily: u32) -> (Sqlite, Account, SigningKey) {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (_, key) = sign_up(&db, 1, NOON);
    let limits = account::limits(per_payment, daily).unwrap();
    assert!(block(account::set_limits(&db, &token(1), limits, NOON)).unwrap());
    let account = reread(&db, 1, NOON);
    (db, account, key)
}

/// A payment for a listing from the faucet's output of this number.
fn paying(account: &Account, key: &SigningKey, listing: &ListingId, coin: u8, price: u64) -> Paying {
    paying_for(account, listing, &payment(account, key, &[given(account, coin, 200 * ADA)], price, UNTIL), price)
}

fn refused(claim: Claim) -> NotGranted {
    match claim {
        Claim::NotGranted(why) => why,
        other => panic!("{other:?}"),
    }
}

fn is_new(claim: &Claim) -> bool {
    matches!(claim, Claim::New(_))
}

fn settled(db: &Sqlite, tx: &TxHash) {
    step(db, tx, &Decision::Include(inclusion(1)));
}

fn refuse(db: &Sqlite, tx: &TxHash) -> bool {
    step(db, tx, &Decision::Refuse("no".into()))
}

fn count(db: &Sqlite, table: &str) -> String {
    one(db, &format!("SELECT CAST(count(*) AS TEXT) FROM {table}"))
}

/// What may be spent now, of what a provider shows.
fn known(db: &Sqlite, account: &Account, now: u64) -> WalletSnapshot {
    let wallet = account.wallet_address;
    let rows = exactly(block(db.batch(snapshot(&wallet, 0, now).into())).unwrap()).unwrap();
    WalletSnapshot::read(&wallet, &rows).unwrap()
}

#[test]
fn the_limits_hold_to_the_lovelace() {
    let (db, account, key) = market(5, 8);
    let buy = |number: u8, price: u64| {
        let listing = list(&db, number, price);
        paying(&account, &key, &listing, number, price).claim(&db, NOON)
    };
    assert!(matches!(refused(buy(1, 5 * ADA + 1)), NotGranted::PerPayment { .. }));
    assert!(is_new(&buy(2, 5 * ADA)));
    let over = NotGranted::Daily { limit: Lovelace::from_ada(8), spent: Lovelace::from_ada(5) };
    assert_eq!(refused(buy(3, 3 * ADA + 1)), over);
    assert!(is_new(&buy(4, 3 * ADA)));
    assert!(matches!(refused(buy(5, ADA)), NotGranted::Daily { .. }));
    assert_eq!(spent_today(&db, 1, NOON), 8 * ADA);
}

#[test]
fn a_content_is_read_for_the_one_claim_that_takes_a_payment() {
    let (db, account, key) = market(5, 8);
    let (listing, other) = (list(&db, 1, ADA), list(&db, 2, ADA));
    let content = ContentHash::of(b"content 1");
    let claim = |listing, price| paying(&account, &key, listing, 1, price).claim_reading(&db, &content, NOON);
    assert!(matches!(claim(&listing, 6 * ADA), (Claim::NotGranted(_), None)));
    assert!(matches!(claim(&listing, ADA), (Claim::New(_), Some(text)) if text == "content 1"));
    assert!(matches!(claim(&listing, ADA), (Claim::Known(_), None)), "the same, by a request beside it");
    assert!(matches!(claim(&listing, 2 * ADA), (Claim::Paying(_), None)));
    assert!(matches!(claim(&other, 2 * ADA), (Claim::InputsTaken, None)));
}

#[test]
fn a_claim_that_is_not_granted_writes_nothing() {
    let (db, account, key) = market(5, 8);
    let listing = list(&db, 1, 6 * ADA);
    refused(paying(&account, &key, &listing, 1, 6 * ADA).claim(&db, NOON));
    for table in ["payments", "outbox", "reservations"] {
        assert_eq!(count(&db, table), "0", "{table}");
    }
}

#[test]
fn a_new_utc_day_has_a_new_budget() {
    let (db, account, key) = market(5, 5);
    let [first, second] = [list(&db, 1, 5 * ADA), list(&db, 2, 5 * ADA)];
    let last_ms = (NOON / DAY_MS + 1) * DAY_MS - 1;
    assert!(is_new(&paying(&account, &key, &first, 1, 5 * ADA).claim(&db, last_ms)));
    let next = paying(&account, &key, &second, 2, 5 * ADA);
    assert!(matches!(refused(next.claim(&db, last_ms)), NotGranted::Daily { .. }));
    assert!(is_new(&next.claim(&db, last_ms + 1)));
    assert_eq!((spent_today(&db, 1, last_ms), spent_today(&db, 1, last_ms + 1)), (5 * ADA, 5 * ADA));
}

#[test]
fn lowered_limits_count_what_is_spent_already() {
    let (db, account, key) = market(10, 30);
    let [first, second] = [list(&db, 1, 9 * ADA), list(&db, 2, ADA)];
    assert!(is_new(&paying(&account, &key, &first, 1, 9 * ADA).claim(&db, NOON)));
    let limits = account::limits(5, 9).unwrap();
    assert!(block(account::set_limits(&db, &token(1), limits, NOON)).unwrap());
    let next = paying(&account, &key, &second, 2, ADA);
    assert!(matches!(refused(next.claim(&db, NOON)), NotGranted::Daily { .. }));
}

#[test]
fn the_same_listing_is_bought_once_until_it_is_refunded() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let first = paying(&account, &key, &listing, 1, 2 * ADA);
    assert!(is_new(&first.claim(&db, NOON)));
    let second = paying(&account, &key, &listing, 2, 2 * ADA);
    assert_eq!(second.claim(&db, NOON), Claim::Paying(first.tx()), "while the first is open");
    settled(&db, &first.tx());
    assert_eq!(second.claim(&db, NOON), Claim::Owned(first.tx()), "when it is bought");
    one(&db, "UPDATE purchases SET status = 'refunded' RETURNING id");
    assert!(is_new(&second.claim(&db, NOON)));
}

#[test]
fn a_name_for_a_payment_that_another_header_claimed_is_not_kept() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let first = Paying { account: None, ..paying(&account, &key, &listing, 1, 2 * ADA) };
    assert!(is_new(&first.claim(&db, NOON)));
    let identifier =
        Identifier { id: "a-strangers-name-0001".into(), payload: ContentHash::of(b"a stranger's payload") };
    let copied = first.claim_by(&db, ContentHash::of(b"a stranger's header"), Some(identifier), NOON);
    assert!(matches!(copied, Claim::Known(_)));
    assert_eq!(count(&db, "payment_identifiers"), "0", "it would open what the other header paid for");
}

#[test]
fn a_payment_stays_with_the_header_that_claimed_it() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let first = Paying { account: None, ..paying(&account, &key, &listing, 1, 2 * ADA) };
    let (payers, strangers) = (ContentHash::of(b"the payer's header"), ContentHash::of(b"a stranger's header"));
    assert!(is_new(&first.claim_by(&db, payers, None, NOON)));
    let Claim::Known(record) = first.claim_by(&db, strangers, None, NOON) else { panic!("it is claimed") };
    assert_eq!(record.header, payers, "what came later with the same transaction does not resume it");
    assert!(refuse(&db, &first.tx()));
    assert!(is_new(&first.claim_by(&db, strangers, None, NOON)), "what the ledger refused begins anew, for anybody");
    assert_eq!(one(&db, "SELECT header_digest FROM payments"), strangers.to_string());
}

#[test]
fn who_owns_a_listing_leaves_a_few_names_and_no_more() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let outside = |coin| Paying { account: None, ..paying(&account, &key, &listing, coin, 2 * ADA) };
    let named = |number: usize| Identifier {
        id: format!("a-name-of-its-own-{number}"),
        payload: ContentHash::of(number.to_string().as_bytes()),
    };
    let bought = outside(1);
    assert!(is_new(&bought.claim(&db, NOON)));
    settled(&db, &bought.tx());
    let header = |number: usize| ContentHash::of(format!("header {number}").as_bytes());
    for number in 0..30 {
        let again = outside(2).claim_by(&db, header(number), Some(named(number)), NOON);
        assert_eq!(again, Claim::Owned(bought.tx()));
        outside(2).name(&db, header(number), named(number), &bought.tx());
    }
    assert_eq!(count(&db, "payment_identifiers"), "8");
    let other = outside(2).claim_by(&db, header(99), Some(Identifier { payload: header(99), ..named(7) }), NOON);
    assert_eq!(other, Claim::IdentifierTaken, "those that are kept hold");
}

#[test]
fn a_name_for_what_nobody_claimed_is_not_kept() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let terms = Some(ContentHash::new([7; 32]));
    let under = |coin| Paying { terms_digest: terms, account: None, ..paying(&account, &key, &listing, coin, 2 * ADA) };
    assert!(is_new(&under(1).claim(&db, NOON)));
    assert!(refuse(&db, &under(1).tx()));
    let name = Identifier { id: "a-name-of-its-own".into(), payload: ContentHash::of(b"payload") };
    let late = under(2).claim_by(&db, ContentHash::of(b"header"), Some(name), NOON);
    assert_eq!(late, Claim::TermsTaken);
    assert_eq!(count(&db, "payment_identifiers"), "0");
}

#[test]
fn one_key_leaves_twenty_refused_payments_whatever_stake_it_names() {
    let (db, account, key) = market(5, 30);
    let mut left = 0;
    for number in 1..=25_u8 {
        let listing = list(&db, number, 2 * ADA);
        let payer = Address::base(key.key_hash(), Credential::Key(KeyHash::new([number; 28])));
        let it = Paying { account: None, payer, ..paying(&account, &key, &listing, number, 2 * ADA) };
        match it.claim(&db, NOON) {
            Claim::New(_) => left += usize::from(refuse(&db, &it.tx())),
            claim => assert_eq!((claim, left), (Claim::TooManyRefused, 20)),
        }
    }
    assert_eq!(left, 20);
    // Their time is over for an hour: no provider is believed to be further behind.
    let listing = list(&db, 26, 2 * ADA);
    let later = Paying { account: None, ..paying(&account, &key, &listing, 26, 2 * ADA) };
    let well = NOON + 300_000 + HOUR;
    assert_eq!(later.claim(&db, well - 1_000), Claim::TooManyRefused);
    assert!(is_new(&later.claim(&db, well)), "whoever erred, it is not the payer's for a day");
}

#[test]
fn one_key_leaves_a_hundred_payments_that_took_no_effect_however_they_are_spread() {
    let (db, account, key) = market(5, 30);
    let mut left = 0;
    for number in 1..=110_u8 {
        let now = NOON + u64::from(number / 15) * 2 * HOUR;
        let listing = list(&db, number, 2 * ADA);
        let until = NOON_SLOT + (now - NOON) / 1_000 + 300;
        let built = payment(&account, &key, &[given(&account, number, 20 * ADA)], 2 * ADA, until);
        let it = Paying { account: None, ..paying_for(&account, &listing, &built, 2 * ADA) };
        match it.claim(&db, now) {
            Claim::New(_) => left += usize::from(refuse(&db, &it.tx())),
            claim => assert_eq!((claim, left), (Claim::TooManyRefused, 100)),
        }
    }
    assert_eq!(left, 100);
}

#[test]
fn payments_in_no_block_whose_end_is_not_known_count_for_who_made_them() {
    let (db, account, key) = market(5, 30);
    let over = NOON + 301_000;
    let from = |number: u8| {
        let listing = list(&db, number, 2 * ADA);
        Paying { account: None, ..paying(&account, &key, &listing, number, 2 * ADA) }
    };
    for number in 1..=20 {
        assert!(is_new(&from(number).claim(&db, NOON)));
    }
    assert!(is_new(&from(21).claim(&db, NOON)), "their time is not over");
    assert_eq!(from(22).claim(&db, over), Claim::TooManyRefused);
}

/// Escrows of sales that somebody else made, whose results are due at the same time.
fn wait_for_results(db: &Sqlite, listing: &ListingId, count: u32, submit_result: u64) {
    let all = format!("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})");
    let sales = format!(
        "{all} INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, price_lovelace, \
           creator_lovelace, status, bought_at_ms) SELECT printf('%064d', n), '{}', 'protected', 'seller', 'buyer', \
           5000000, 3500000, 'FundsLocked', 0 FROM n",
        listing.as_str()
    );
    let escrows = format!(
        "{all} INSERT INTO escrows (purchase_id, address, utxo, datum, locked_lovelace, input_hash, pay_by_ms, \
           submit_result_ms, unlock_ms, external_dispute_unlock_ms, next_at_ms) SELECT printf('%064d', n), 'escrow', \
           printf('%064d#0', n), '', 5000000, '', 0, {submit_result}, 0, 0, 0 FROM n"
    );
    for sql in [sales, escrows] {
        one(db, &sql);
    }
}

#[test]
fn no_protected_sale_is_taken_whose_result_could_come_too_late() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 5 * ADA);
    wait_for_results(&db, &listing, 30, NOON + 1);
    let instant = paying(&account, &key, &listing, 1, 5 * ADA);
    let protected = Paying { mode: DeliveryMode::Protected, ..instant.clone() };
    assert_eq!(protected.claim(&db, NOON), Claim::Crowded);
    assert_eq!(count(&db, "payments"), "0");
    assert!(is_new(&protected.claim(&db, NOON + 1)), "what is too late already keeps nobody out");
    let other = list(&db, 2, 5 * ADA);
    assert!(is_new(&paying(&account, &key, &other, 2, 5 * ADA).claim(&db, NOON)), "nothing is posted for it");
}

#[test]
fn protected_payments_on_their_way_wait_for_results_too() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 5 * ADA);
    wait_for_results(&db, &listing, 18, NOON + 1);
    let next = |number: u8| {
        let listing = list(&db, number, 5 * ADA);
        let paying = paying(&account, &key, &listing, number, 5 * ADA);
        Paying { mode: DeliveryMode::Protected, ..paying }
    };
    let (first, second, third) = (next(2), next(3), next(4));
    assert!(is_new(&first.claim(&db, NOON)) && is_new(&second.claim(&db, NOON)));
    assert_eq!(third.claim(&db, NOON), Claim::Crowded);
    assert!(refuse(&db, &first.tx()));
    assert!(is_new(&third.claim(&db, NOON)));
}

#[test]
fn of_half_the_sales_that_may_wait_one_network_leaves_others_theirs() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 5 * ADA);
    wait_for_results(&db, &listing, 10, NOON + 1);
    let from = |network, number: u8| {
        let listing = list(&db, number, 5 * ADA);
        let paying = paying(&account, &key, &listing, number, 5 * ADA);
        Paying { mode: DeliveryMode::Protected, network: Some(network), account: None, ..paying }.claim(&db, NOON)
    };
    let taken = (2..40).filter(|number| is_new(&from("203.0.113.1", *number))).count();
    assert_eq!(taken, 5, "a quarter of twenty");
    assert_eq!(from("203.0.113.1", 50), Claim::Crowded);
    assert!(is_new(&from("203.0.113.2", 51)), "somebody else buys");
    let kept = one(&db, "SELECT group_concat(DISTINCT network) FROM payments");
    assert!(!kept.contains("203.0") && kept.split(',').count() == 2, "{kept}");
    let unknown = (60..90).filter(|number| is_new(&from(UNKNOWN, *number))).count();
    assert_eq!(unknown, 20 - 10 - 5 - 1, "who comes from nowhere has no share, and whatever all may have");
}

#[test]
fn locks_that_end_at_once_and_are_not_looked_for_yet_leave_room_for_other_networks_and_are_bounded() {
    let (db, account, key) = market(5, 30);
    one(&db, &format!("INSERT INTO chain_state VALUES (1, '{:064}', 1, {UNTIL}, {NOON}) RETURNING 'ok'", 0));
    let taken = |network, numbers: std::ops::Range<u8>| {
        let claim = |number: u8| {
            let listing = list(&db, number, 5 * ADA);
            let paying = paying(&account, &key, &listing, number, 5 * ADA);
            Paying { mode: DeliveryMode::Protected, network: Some(network), account: None, ..paying }.claim(&db, NOON)
        };
        numbers.filter(|number| is_new(&claim(*number))).count()
    };
    assert_eq!(taken("203.0.113.1", 1..40), 10, "half of them");
    assert_eq!(taken("203.0.113.2", 40..60), 5, "a quarter");
    assert_eq!(taken("203.0.113.3", 60..80), 5, "the last");
    assert_eq!(taken("203.0.113.4", 80..82), 0, "as many as may wait");
    let later = UNTIL + 20 * 60;
    one(&db, &format!("UPDATE chain_state SET tip_slot = {later} RETURNING 'ok'"));
    assert_eq!(taken("203.0.113.4", 82..84), 2, "what was over long ago keeps nobody out");
}

#[test]
fn an_output_of_a_payer_stands_for_one_payment_at_a_time() {
    let (db, account, key) = market(5, 30);
    let [first, second] = [1, 2].map(|number| list(&db, number, 2 * ADA));
    let outside = |listing, coin, price| Paying { account: None, ..paying(&account, &key, listing, coin, price) };
    let (one, same) = (outside(&first, 1, 2 * ADA), outside(&second, 1, 3 * ADA));
    let other = outside(&second, 2, 2 * ADA);
    assert!(is_new(&one.claim(&db, NOON)));
    assert_eq!(same.claim(&db, NOON), Claim::InputsTaken);
    assert!(refuse(&db, &one.tx()));
    assert!(is_new(&same.claim(&db, NOON)), "what was refused holds nothing");
    assert!(matches!(other.claim(&db, NOON), Claim::Paying(_)));
    // What a stranger names holds nothing of a wallet of ours.
    let own = paying(&account, &key, &first, 1, 4 * ADA);
    assert!(is_new(&own.claim(&db, NOON)));
}

#[test]
fn who_may_have_paid_by_what_a_node_refused_is_looked_up_before_another_payment() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let outside = |coin| Paying { account: None, ..paying(&account, &key, &listing, coin, 2 * ADA) };
    let (first, second) = (outside(1), outside(2));
    assert!(is_new(&first.claim(&db, NOON)));
    assert!(refuse(&db, &first.tx()));
    block(db.run(statement!("UPDATE outbox SET was_public = 1"))).unwrap();
    assert_eq!(second.claim(&db, NOON), Claim::MaybePaid);
    let lost = block(db.run(market::payment::lost(listing.as_str(), &second.payer.to_string()))).unwrap();
    assert_eq!(market::payment::all(&lost).unwrap().len(), 1);
    assert!(is_new(&Paying { looked: 1, ..second }.claim(&db, NOON)));
}

#[test]
fn a_lock_whose_time_is_over_waits_for_its_result_until_it_is_known_to_be_in_no_block() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 5 * ADA);
    wait_for_results(&db, &listing, 19, NOON + 1);
    let protected = |number: u8| {
        let listing = list(&db, number, 5 * ADA);
        Paying { mode: DeliveryMode::Protected, ..paying(&account, &key, &listing, number, 5 * ADA) }
    };
    let (first, second) = (protected(2), protected(3));
    assert!(is_new(&first.claim(&db, NOON)));
    assert_eq!(second.claim(&db, NOON), Claim::Crowded);
    let over = first.built.facts.valid_until_slot;
    one(&db, &format!("INSERT INTO chain_state VALUES (1, '{:064}', 1, {over}, {NOON}) RETURNING 'ok'", 0));
    assert_eq!(second.claim(&db, NOON), Claim::Crowded, "a block may have it, and whoever handed it in left");
    assert!(step(&db, &first.tx(), &Decision::Expire));
    assert!(is_new(&second.claim(&db, NOON)));
}

#[test]
fn what_the_owners_own_wallet_bought_is_not_paid_again() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let mut own = paying(&account, &key, &listing, 1, 2 * ADA);
    (own.payer, own.account) = (account.owner.parse().unwrap(), None);
    assert!(is_new(&own.claim(&db, NOON)));
    settled(&db, &own.tx());
    let second = paying(&account, &key, &listing, 2, 2 * ADA);
    assert_eq!(second.claim(&db, NOON), Claim::Owned(own.tx()));
    assert_eq!(spent_today(&db, 1, NOON), 0);
}

#[test]
fn an_input_belongs_to_the_first_who_claims_it() {
    let (db, account, key) = market(5, 30);
    let [one_listing, other] = [list(&db, 1, 2 * ADA), list(&db, 2, 3 * ADA)];
    assert!(is_new(&paying(&account, &key, &one_listing, 1, 2 * ADA).claim(&db, NOON)));
    let same_coin = paying(&account, &key, &other, 1, 3 * ADA);
    assert_eq!(same_coin.claim(&db, NOON), Claim::InputsTaken);
    assert_eq!(spent_today(&db, 1, NOON), 2 * ADA, "nothing counts for what was not granted");
    assert!(is_new(&paying(&account, &key, &other, 2, 3 * ADA).claim(&db, NOON)));
}

#[test]
fn a_refused_or_expired_payment_gives_back_its_spend_and_its_inputs() {
    for expire in [false, true] {
        let (db, account, key) = market(5, 5);
        let [first, second] = [list(&db, 1, 5 * ADA), list(&db, 2, 4 * ADA)];
        let lost = paying(&account, &key, &first, 1, 5 * ADA);
        assert!(is_new(&lost.claim(&db, NOON)));
        if expire {
            step(&db, &lost.tx(), &Decision::Accept);
            step(&db, &lost.tx(), &Decision::Expire);
        } else {
            assert!(refuse(&db, &lost.tx()));
        }
        assert_eq!(spent_today(&db, 1, NOON), 0);
        assert_eq!(count(&db, "reservations"), "0");
        assert!(is_new(&paying(&account, &key, &second, 1, 4 * ADA).claim(&db, NOON)));
    }
}

#[test]
fn a_payment_that_was_given_up_and_is_in_a_block_after_all_counts() {
    let (db, account, key) = market(5, 5);
    let listing = list(&db, 1, 5 * ADA);
    let late = paying(&account, &key, &listing, 1, 5 * ADA);
    assert!(is_new(&late.claim(&db, NOON)));
    step(&db, &late.tx(), &Decision::Expire);
    assert_eq!(spent_today(&db, 1, NOON), 0);
    settled(&db, &late.tx());
    assert_eq!(spent_today(&db, 1, NOON), 5 * ADA);
    assert_eq!(count(&db, "purchases"), "1");
}

#[test]
fn the_same_bytes_begin_again_after_a_refusal_within_the_limits() {
    let (db, account, key) = market(5, 5);
    let listing = list(&db, 1, 5 * ADA);
    let again = paying(&account, &key, &listing, 1, 5 * ADA);
    assert!(is_new(&again.claim(&db, NOON)));
    assert!(refuse(&db, &again.tx()));
    assert!(matches!(again.claim(&db, NOON), Claim::New(entry) if entry.attempts == 2));
    assert_eq!(spent_today(&db, 1, NOON), 5 * ADA);
    assert_eq!(count(&db, "reservations"), "1");
    assert!(refuse(&db, &again.tx()));
    let other = list(&db, 2, ADA);
    assert!(is_new(&paying(&account, &key, &other, 2, ADA).claim(&db, NOON)));
    assert!(matches!(refused(again.claim(&db, NOON)), NotGranted::Daily { .. }), "5 and 1 are over 5");
}

#[test]
fn terms_that_belong_to_another_payment_grant_nothing() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let terms = Some(ContentHash::new([7; 32]));
    let first = Paying { terms_digest: terms, ..paying(&account, &key, &listing, 1, 2 * ADA) };
    assert!(is_new(&first.claim(&db, NOON)));
    assert!(refuse(&db, &first.tx()));
    let anew = paying(&account, &key, &listing, 2, 2 * ADA);
    assert_eq!(anew.claim(&db, NOON), Claim::MaybePaid, "it may be in a block all the same");
    let anew = Paying { looked: 1, ..anew };
    let second = Paying { terms_digest: terms, ..anew.clone() };
    assert_eq!(second.claim(&db, NOON), Claim::TermsTaken);
    assert_eq!(spent_today(&db, 1, NOON), 0);
    assert!(is_new(&anew.claim(&db, NOON)), "nothing is left in the way");
}

#[test]
fn a_payment_that_was_given_up_is_given_up_for_everybody() {
    let (db, account, key) = market(5, 5);
    let listing = list(&db, 1, 5 * ADA);
    let it = paying(&account, &key, &listing, 1, 5 * ADA);
    assert!(is_new(&it.claim(&db, NOON)));
    assert!(refuse(&db, &it.tx()));
    assert!(
        !refuse(&db, &it.tx()) && !step(&db, &it.tx(), &Decision::Accept) && !step(&db, &it.tx(), &Decision::Expire)
    );
    assert_eq!(entry(&db, &it.tx()).state, EntryState::Refused, "its share of the limits is given back");
}

#[test]
fn the_same_claim_twice_is_one_claim() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let it = paying(&account, &key, &listing, 1, 2 * ADA);
    assert!(is_new(&it.claim(&db, NOON)));
    assert!(matches!(it.claim(&db, NOON), Claim::Known(record) if record.entry.attempts == 1));
    assert_eq!(spent_today(&db, 1, NOON), 2 * ADA);
}

/// Pays from what may be spent, step by step along its own change, with a provider that never shows anything new.
#[test]
fn change_is_spendable_once_a_node_has_the_payment_and_inputs_never_twice() {
    let (db, account, key) = market(5, 30);
    let shown = [given(&account, 1, 20 * ADA)];
    let mut left = 20 * ADA;
    for number in 1..=5 {
        let before = known(&db, &account, NOON);
        assert!(!before.in_flight);
        let spendable = before.spendable(&shown);
        assert_eq!(spendable.len(), 1, "one coin, in its newest form");
        assert_eq!(spendable[0].value.lovelace.get(), left);
        let listing = list(&db, number, 2 * ADA);
        let built = payment(&account, &key, &spendable, 2 * ADA, UNTIL);
        let it = paying_for(&account, &listing, &built, 2 * ADA);
        assert!(is_new(&it.claim(&db, NOON)));
        let claimed = known(&db, &account, NOON);
        assert!(claimed.in_flight);
        assert_eq!(claimed.spendable(&shown), [], "not before a node has it");
        step(&db, &it.tx(), &Decision::Accept);
        if number % 2 == 0 {
            settled(&db, &it.tx());
        }
        left -= 2 * ADA + built.facts.fee.get();
    }
}

#[test]
fn what_a_refused_payment_spent_that_is_in_a_block_all_the_same_is_no_change_any_more() {
    let (db, account, key) = market(5, 30);
    let [first, second] = [list(&db, 1, 2 * ADA), list(&db, 2, 2 * ADA)];
    let made = payment(&account, &key, &[given(&account, 1, 20 * ADA)], 2 * ADA, UNTIL);
    let it = paying_for(&account, &first, &made, 2 * ADA);
    assert!(is_new(&it.claim(&db, NOON)));
    settled(&db, &it.tx());
    let built = payment(&account, &key, &made.facts.change, 2 * ADA, UNTIL);
    let passed_on = paying_for(&account, &second, &built, 2 * ADA);
    assert!(is_new(&passed_on.claim(&db, NOON)));
    assert!(refuse(&db, &passed_on.tx()));
    let shown = &made.facts.change;
    assert_eq!(known(&db, &account, NOON).spendable(&[]), [], "it may be spent");
    assert_eq!(&known(&db, &account, NOON).spendable(shown), shown, "it is not, by what the provider shows");
    settled(&db, &passed_on.tx());
    assert_eq!(known(&db, &account, NOON).spendable(&[]), built.facts.change);
}

#[test]
fn what_both_the_provider_and_we_know_is_one_output() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let built = payment(&account, &key, &[given(&account, 1, 20 * ADA)], 2 * ADA, UNTIL);
    let it = paying_for(&account, &listing, &built, 2 * ADA);
    assert!(is_new(&it.claim(&db, NOON)));
    settled(&db, &it.tx());
    let shown: Vec<Utxo> = built.facts.change.iter().cloned().chain([given(&account, 1, 20 * ADA)]).collect();
    assert_eq!(known(&db, &account, NOON).spendable(&shown), built.facts.change);
}

#[test]
fn an_expired_payment_frees_its_input_and_promises_no_change() {
    let (db, account, key) = market(5, 30);
    let shown = [given(&account, 1, 20 * ADA)];
    let listing = list(&db, 1, 2 * ADA);
    let it = paying_for(&account, &listing, &payment(&account, &key, &shown, 2 * ADA, UNTIL), 2 * ADA);
    assert!(is_new(&it.claim(&db, NOON)));
    step(&db, &it.tx(), &Decision::Accept);
    step(&db, &it.tx(), &Decision::Expire);
    assert_eq!(known(&db, &account, NOON).spendable(&shown), shown);
}

/// What becomes of a payment after it was claimed.
#[derive(Clone, Copy, Debug)]
enum SpendEnd {
    Open,
    Included,
    Refused,
    Expired,
}

#[test]
fn a_networks_share_does_not_begin_anew_at_midnight() {
    let (db, account, key) = market(5, 30);
    let midnight = (NOON / market::account::DAY_MS + 1) * market::account::DAY_MS;
    let taken = |number: u8, now| {
        let listing = list(&db, number, 5 * ADA);
        let paying = paying(&account, &key, &listing, number, 5 * ADA);
        let network = Some("203.0.113.1");
        is_new(&Paying { mode: DeliveryMode::Protected, network, account: None, ..paying }.claim(&db, now))
    };
    assert_eq!((2..60).filter(|number| taken(*number, midnight - 60_000)).count(), 10);
    assert_eq!((60..100).filter(|number| taken(*number, midnight + 1)).count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However payments come and end, today's spends stay within the budget, and are what was not given back.
    #[test]
    fn spends_never_exceed_the_budget_and_equal_what_was_not_given_back(
        payments in proptest::collection::vec((1u64..8, prop_oneof![
            Just(SpendEnd::Open), Just(SpendEnd::Included), Just(SpendEnd::Refused), Just(SpendEnd::Expired),
        ]), 1..24),
    ) {
        let (db, account, key) = market(6, 15);
        let mut expected = 0;
        for (number, (ada, end)) in (1u8..).zip(payments) {
            let price = ada * ADA;
            let listing = list(&db, number, price);
            let it = paying(&account, &key, &listing, number, price);
            let granted = is_new(&it.claim(&db, NOON));
            prop_assert_eq!(granted, ada <= 6 && expected + price <= 15 * ADA);
            if granted {
                let tx = it.tx();
                match end {
                    SpendEnd::Open => expected += price,
                    SpendEnd::Included => { settled(&db, &tx); expected += price; }
                    SpendEnd::Refused => prop_assert!(refuse(&db, &tx)),
                    SpendEnd::Expired => prop_assert!(step(&db, &tx, &Decision::Expire)),
                }
            }
            prop_assert_eq!(spent_today(&db, 1, NOON), expected);
        }
    }
}

#[test]
fn what_a_wallet_of_ours_paid_counts_for_its_account_whoever_presents_it() {
    let (db, account, key) = market(5, 30);
    let listing = list(&db, 1, 2 * ADA);
    let own = paying(&account, &key, &listing, 1, 2 * ADA);
    assert!(is_new(&own.claim(&db, NOON)));
    // A node refused what it passed on; a stranger saw it there.
    assert!(refuse(&db, &own.tx()));
    let copy = Paying { account: None, newest_height: Some(1), ..own.clone() };
    let copied = copy.claim_by(&db, ContentHash::of(b"a stranger's header"), None, NOON);
    assert!(!is_new(&copied), "{copied:?}");
    settled(&db, &own.tx());
    assert_eq!(spent_today(&db, 1, NOON), 2 * ADA);
}
