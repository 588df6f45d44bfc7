//! Sign-in on SQLite: a challenge opens one session, however often it is answered.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::support::{
    NOON, block, challenge, given, inclusion, list, one, paying_for, payment, person, sign_up, step, token,
};
use cardano::Lovelace;
use market::{
    account::{self, MAX_SESSIONS, MAX_SESSIONS_UNPAID, NewWallet, NotSignedIn, RuleChanges, SESSION_MS},
    challenge::CHALLENGE_MS,
    claim::Claim,
    headroom::StorageHeadroom,
};
use outbox::Decision;
use sql::{Database, sqlite::Sqlite};

fn wallet(number: u8, key_version: u32) -> NewWallet {
    NewWallet { address: person(number).enterprise_address(), key_version }
}

#[test]
fn the_first_answer_to_a_challenge_opens_a_session_and_no_other_does() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let challenge = challenge(person(1).enterprise_address(), 1, NOON);
    let opened = (1..=50).filter(|number| {
        block(account::sign_in(&db, &challenge, &wallet(100, 1), &token(*number), StorageHeadroom::Ample, NOON)).is_ok()
    });
    assert_eq!(opened.collect::<Vec<u8>>(), [1]);
    assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM sessions"), "1");
    assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM accounts"), "1");
}

#[test]
fn a_used_challenge_stays_used_beyond_its_life_in_a_lagging_store() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let challenge = challenge(person(1).enterprise_address(), 1, NOON);
    let answer = |number, now| {
        block(account::sign_in(&db, &challenge, &wallet(100, 1), &token(number), StorageHeadroom::Ample, now))
    };
    assert!(answer(1, NOON).is_ok());
    assert!(matches!(answer(2, NOON + CHALLENGE_MS + 60_000), Err(NotSignedIn::Answered)));
    assert!(matches!(answer(3, NOON + 4 * CHALLENGE_MS), Err(NotSignedIn::Answered)));
    let kept: u64 = one(&db, "SELECT CAST(expires_at_ms AS TEXT) FROM challenge_claims").parse().unwrap();
    assert!(kept > NOON + 4 * CHALLENGE_MS);
}

#[test]
fn a_wallets_account_is_found_by_any_of_its_addresses_in_any_order() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let of = |number: u8| person(number).enterprise_address();
    let known = |first: u8, others: &[u8]| {
        let others: Vec<_> = others.iter().map(|number| of(*number)).collect();
        block(account::sign_in_address(&db, &of(first), &others)).unwrap()
    };
    assert_eq!(known(1, &[2, 3]), None);
    sign_up(&db, 2, NOON + 1);
    for (first, others) in [(2, &[][..]), (2, &[1, 3]), (1, &[2, 3]), (3, &[1, 2]), (3, &[2])] {
        assert_eq!(known(first, others), Some(of(2)), "{first}, {others:?}");
    }
    assert_eq!(known(1, &[3]), None);
    // If there are two accounts, the requested one counts, or else the older one.
    sign_up(&db, 3, NOON);
    assert_eq!([known(2, &[3]), known(3, &[2])], [Some(of(2)), Some(of(3))]);
    assert_eq!([known(1, &[2, 3]), known(1, &[3, 2])], [Some(of(3)), Some(of(3))]);
}

#[test]
fn an_account_keeps_its_wallet_and_limits_at_later_sign_ins() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (first, _) = sign_up(&db, 1, NOON);
    let limits = account::limits(3, 4).unwrap();
    assert!(block(account::set_limits(&db, &token(1), limits, RuleChanges::default(), NOON)).unwrap().is_some());
    let challenge = challenge(person(1).enterprise_address(), 2, NOON);
    let again =
        block(account::sign_in(&db, &challenge, &wallet(200, 2), &token(2), StorageHeadroom::Ample, NOON)).unwrap();
    assert_eq!((again.wallet_address, again.key_version), (first.wallet_address, 1));
    assert_eq!((again.max_per_payment, again.daily_budget), limits);
}

#[test]
fn an_account_has_a_bounded_number_of_sessions_and_the_newest_is_among_them() {
    for (bought, most) in [(false, MAX_SESSIONS_UNPAID), (true, MAX_SESSIONS)] {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let (account, key) = sign_up(&db, 1, NOON);
        sign_up(&db, 200, NOON);
        if bought {
            let listing = list(&db, 1, 10_000_000);
            let built = payment(&account, &key, &[given(&account, 9, 50_000_000)], 10_000_000, 50_000);
            assert!(matches!(paying_for(&account, &listing, &built, 10_000_000).claim(&db, NOON), Claim::New(_)));
            let built_tx = one(&db, "SELECT tx_id FROM payments").parse().unwrap();
            step(&db, &built_tx, &Decision::Include(inclusion(1)));
        }
        let sign_in = |number: u8, room| {
            let now = NOON + u64::from(number);
            let challenge = challenge(person(1).enterprise_address(), number, now);
            block(account::sign_in(&db, &challenge, &wallet(100, 1), &token(number), room, now)).unwrap();
        };
        let most = u8::try_from(most).unwrap();
        (2..=most + 1).for_each(|number| sign_in(number, StorageHeadroom::Ample));
        // A session that ends before all others.
        sign_in(most + 2, StorageHeadroom::Short);
        // A replayed answer ends no session.
        let now = NOON + u64::from(most + 2);
        let replayed = challenge(person(1).enterprise_address(), most + 2, now);
        let again = block(account::sign_in(&db, &replayed, &wallet(100, 1), &token(250), StorageHeadroom::Ample, now));
        assert!(matches!(again, Err(NotSignedIn::Answered)));
        let live: Vec<u8> = (1..=most + 2)
            .filter(|number| block(account::of_session(&db, &token(*number), NOON + 1_000)).unwrap().is_some())
            .collect();
        assert_eq!(live, (3..=most + 2).collect::<Vec<u8>>());
        assert!(block(account::of_session(&db, &token(200), NOON + 1_000)).unwrap().is_some());
        assert!(block(account::sign_out(&db, &token(3), true, NOON + 1_000)).unwrap());
        assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM sessions"), "1");
    }
}

#[test]
fn a_session_is_live_until_its_last_millisecond() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    sign_up(&db, 1, NOON);
    let live = |now| block(account::view(&db, &token(1), Lovelace::ZERO, now)).unwrap().is_some();
    assert!(live(NOON + SESSION_MS - 1));
    assert!(!live(NOON + SESSION_MS));
    let limits = account::limits(1, 1).unwrap();
    assert!(
        block(account::set_limits(&db, &token(1), limits, RuleChanges::default(), NOON + SESSION_MS))
            .unwrap()
            .is_none()
    );
    assert!(!block(account::sign_out(&db, &token(1), false, NOON + SESSION_MS)).unwrap());
}

#[test]
fn a_nearly_full_database_makes_no_new_account_and_short_sessions() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (owner, _) = sign_up(&db, 1, NOON);
    let sign_in = |number: u8, nonce: u8, shown: u8| {
        let challenge = challenge(person(number).enterprise_address(), nonce, NOON);
        block(account::sign_in(&db, &challenge, &wallet(200 + number, 1), &token(shown), StorageHeadroom::Short, NOON))
    };
    for nonce in 2..100 {
        assert!(matches!(sign_in(2, nonce, nonce), Err(NotSignedIn::StorageFull)));
    }
    assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM challenge_claims"), "1", "who is refused leaves nothing");
    assert_eq!(sign_in(1, 1, 101).unwrap().wallet_address, owner.wallet_address);
    assert!(matches!(sign_in(1, 1, 102), Err(NotSignedIn::Answered)));
    assert_eq!(one(&db, "SELECT group_concat(owner) FROM accounts"), owner.owner);
    let live = |now| block(account::view(&db, &token(101), Lovelace::ZERO, now)).unwrap().is_some();
    assert!(live(NOON + account::session_ms(StorageHeadroom::Short) - 1));
    assert!(!live(NOON + account::session_ms(StorageHeadroom::Short)));
}

#[test]
fn a_sign_in_costs_the_same_beside_any_number_of_expired_sessions() {
    let cost = |over: u32| {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        sign_up(&db, 1, NOON);
        let many = format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {over})");
        for rows in [
            "INSERT INTO sessions SELECT printf('%064d', n), owner, 1 FROM n, accounts",
            "INSERT INTO challenge_claims SELECT printf('%064d', n), '', 1 FROM n",
        ] {
            block(db.execute::<()>(sql::write!(rows.replacen("SELECT", &format!("{many} SELECT"), 1)))).unwrap();
        }
        let before = db.steps();
        sign_up(&db, 2, NOON);
        db.steps() - before
    };
    assert_eq!(cost(10_000), cost(1));
}

#[test]
fn signing_out_ends_one_session_once() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    sign_up(&db, 1, NOON);
    sign_up(&db, 2, NOON);
    assert!(block(account::sign_out(&db, &token(1), false, NOON)).unwrap());
    assert!(!block(account::sign_out(&db, &token(1), true, NOON)).unwrap());
    assert!(block(account::view(&db, &token(1), Lovelace::ZERO, NOON)).unwrap().is_none());
    assert!(block(account::view(&db, &token(2), Lovelace::ZERO, NOON)).unwrap().is_some());
}

#[test]
fn only_hashes_of_tokens_are_stored() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    sign_up(&db, 1, NOON);
    assert_eq!(one(&db, "SELECT token_hash FROM sessions"), token(1).hash());
    assert_eq!(one(&db, "SELECT claimed_by FROM challenge_claims"), token(1).hash());
    assert_ne!(token(1).hash(), token(1).reveal());
}

#[test]
fn limits_are_whole_ada_within_their_ranges() {
    for (per_payment, daily) in [(1, 1), (100, 100), (100, 500), (1, 500)] {
        let limits = account::limits(per_payment, daily).unwrap();
        assert_eq!(limits, (Lovelace::from_ada(per_payment), Lovelace::from_ada(daily)));
    }
    for (per_payment, daily) in [(0, 5), (101, 500), (5, 4), (5, 501)] {
        assert!(account::limits(per_payment, daily).is_err(), "{per_payment} {daily}");
    }
    assert!(account::limits(0, 5).is_err());
    assert!(account::limits(5, u32::MAX).is_err());
}
