//! Tests that in whatever order concurrent requests run, each grant has one sequence of tokens, and quotas hold.

use std::collections::HashSet;

use futures_lite::future::{self, block_on};
use serde_json::{Value, json};
use sql::Database;

use super::{
    ErrorCode,
    approve::{ApprovalError, MAX_APPROVALS_PER_BUYER, MAX_APPROVED_A_DAY},
    testing::*,
};

fn live_grants(world: &World) -> String {
    let count = "SELECT CAST(count(*) AS TEXT) FROM oauth_grants WHERE generation > 0 AND revoked_at_ms IS NULL";
    block_on(world.db.fetch::<Vec<String>>(sql::read!(count))).unwrap().concat()
}

#[test]
fn fifty_uses_of_one_code_give_tokens_once() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let code = world.code(&client);
    let answers: Vec<_> = (0..50).map(|_| world.redeem(&client, &code)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    // Two clients had the code, so the tokens for it are revoked.
    assert_eq!(live_grants(&world), "0");
}

#[test]
fn fifty_uses_of_one_refresh_token_give_one_successor() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let answers: HashSet<String> =
        (0..50).map(|_| world.refresh(&client, &first.refresh_token).unwrap().refresh_token).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(live_grants(&world), "1");
    let successor = answers.into_iter().next().unwrap();
    assert!(world.refresh(&client, &successor).is_ok());
}

#[test]
fn fifty_approvals_of_one_request_make_one_grant() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let approval = world.check(&world.approval(&world.consent(&client))).unwrap();
    let granted = (0..50).filter(|_| world.grant(&approval).is_ok()).count();
    assert_eq!(granted, 1);
}

#[test]
fn fifty_registrations_of_one_client_make_one_row() {
    let world = World::new();
    let ids: HashSet<String> = (0..50).map(|_| world.register(&[CALLBACK])).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(number(&world, "SELECT CAST(count(*) AS TEXT) FROM oauth_clients"), 1);
}

#[test]
fn a_stolen_refresh_token_fails_its_owner_and_ends_by_revocation() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let thief = world.refresh(&client, &first.refresh_token).unwrap();
    world.wait(super::exchange::RETRY_MS + 1);
    // The honest client is rejected, and its owner removes the agent.
    assert!(world.refresh(&client, &first.refresh_token).is_err());
    let token = thief.refresh_token.as_str();
    block_on(world.server().revoke_token(&query(&[("token", token)]))).unwrap();
    assert!(world.refresh(&client, token).is_err());
    assert_eq!(live_grants(&world), "0");
}

#[test]
fn a_slow_and_a_fast_refresh_retry_get_the_same_tokens() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let (fast, slow) = block_on(future::zip(async { world.refresh(&client, &first.refresh_token).unwrap() }, async {
        world.refresh(&client, &first.refresh_token).unwrap()
    }));
    assert_eq!(fast, slow);
    assert_eq!(world.caller(&fast.access_token), world.caller(&slow.access_token));
}

/// Number of days for which the watcher keeps a grant whose code was redeemed.
const DAYS_KEPT: u64 = 100;
/// Maximum size of the service's database, in bytes.
const DATABASE: u64 = 10_000_000_000;

fn number(world: &World, sql: &'static str) -> u64 {
    block_on(world.db.fetch::<Vec<String>>(sql::read!(sql))).unwrap().concat().parse().unwrap()
}

fn bytes(world: &World) -> u64 {
    number(world, "SELECT CAST(page_count * page_size AS TEXT) FROM pragma_page_count(), pragma_page_size()")
}

/// Approves a client with the longest possible metadata, and redeems its code.
fn long_approval(world: &World, which: u32) -> Result<(), ApprovalError> {
    let callback = format!("https://stranger.example.com/{}", "x".repeat(980));
    let others = (0..6).map(|other| format!("{callback}{which}{other}"));
    let uris: Vec<String> = std::iter::once(callback.clone()).chain(others).collect();
    let body = json!({ "client_name": "\u{1f3a8}".repeat(100), "redirect_uris": uris });
    let client = world.register_body(&body).unwrap()["client_id"].as_str().unwrap().to_owned();
    let request = world.authorize(&query(&with(&authorization(&client), "redirect_uri", &callback))).unwrap();
    // The shared demo wallet needs no signature. If a service has no demo wallet, an attacker would sign with a new
    // wallet.
    let body = json!({
        "request": request.seal(&world.authority), "mode": "demo", "maxPerPaymentAda": 10, "dailyBudgetAda": 30,
    });
    let approved = world.grant(&world.check(&body).unwrap())?;
    let code = parameter(&approved.redirect, "code").unwrap();
    world.token(&with(&redemption(&client, &code), "redirect_uri", &callback)).unwrap();
    Ok(())
}

#[test]
fn approvals_of_one_network_take_a_small_part_of_the_database() {
    let world = World::new();
    let before = bytes(&world);
    for which in 0..MAX_APPROVED_A_DAY {
        long_approval(&world, which).unwrap();
    }
    let day = bytes(&world) - before;
    assert!(5 * day * DAYS_KEPT < DATABASE, "{day} bytes a day");
    let refused = long_approval(&world, MAX_APPROVED_A_DAY);
    assert!(matches!(refused, Err(ApprovalError::NoMoreToday { retry_after_s: 1..=86_400 })), "{refused:?}");
    assert_eq!(live_grants(&world), MAX_APPROVED_A_DAY.to_string());
}

/// Number of client networks that use up their daily quotas in this test. Together they must fill less than a tenth of
/// the database.
const NETWORKS: u64 = 8;

#[test]
fn registrations_of_eight_networks_in_a_day_leave_room_in_the_database() {
    let world = World::new();
    let before = bytes(&world);
    let mut again = Value::Null;
    let registered = |which: u32| {
        let uris: Vec<_> =
            (0..8).map(|other| format!("https://a.example/{}{which:04}{other}", "x".repeat(950))).collect();
        json!({ "redirect_uris": uris })
    };
    for which in 0..4_000 {
        let body = registered(which);
        match world.register_body(&body) {
            Ok(_) => again = body,
            Err(refused) => {
                assert_eq!(refused.code, ErrorCode::TemporarilyUnavailable);
                break;
            }
        }
    }
    let day = bytes(&world) - before;
    assert!(10 * NETWORKS * day < DATABASE, "{day} bytes a day of one network");
    assert!(world.register_body(&registered(9_999)).is_err(), "nothing new that day");
    assert!(world.register_body(&again).is_ok(), "what is registered already takes nothing");
    world.wait(24 * 60 * 60 * 1_000);
    assert!(world.register_body(&registered(9_999)).is_ok());
}

/// Uses up the network's daily quota of approvals, except for `left` approvals.
fn approved_but(world: &World, left: u32) {
    world.sign_in();
    let sql = "UPDATE granted_days SET grants = ?1";
    block_on(world.db.execute::<()>(sql::write!(sql, MAX_APPROVED_A_DAY - left))).unwrap();
}

#[test]
fn a_network_that_used_up_its_approvals_waits_a_day_and_others_do_not() {
    let world = World::new();
    approved_but(&world, 0);
    let client = world.register(&[CALLBACK]);
    let accounts = || number(&world, "SELECT CAST(count(*) || sum(max_per_payment) AS TEXT) FROM accounts");
    let known = accounts();
    let approval = |limit: u32| {
        let mut body = world.approval(&world.consent(&client));
        body["maxPerPaymentAda"] = json!(limit);
        world.check(&body).unwrap()
    };
    assert!(matches!(world.grant(&approval(7)), Err(ApprovalError::NoMoreToday { .. })));
    assert_eq!(accounts(), known, "nor are limits set");
    assert!(world.grant_from("2001:db8::/64", &approval(8)).is_ok());
    assert!(world.grant_from("2001:db8:0:1::/64", &approval(9)).is_ok());
    assert_eq!(number(&world, "SELECT CAST(grants AS TEXT) FROM granted_days ORDER BY grants LIMIT 1"), 2, "of a site");
    world.wait(24 * 60 * 60 * 1_000);
    assert!(world.grant(&approval(10)).is_ok());
}

/// Inserts a purchase for every account.
fn claim_payments(world: &World) {
    for sql in [
        "INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, \
           content_bytes, created_at_ms) VALUES ('lst_1', '{}', '', '', 1000000, '', 1, 0, printf('%064d', 1), 1, 1)",
        "INSERT INTO outbox (tx_id, kind, purpose, wallet, cbor, state, valid_until_slot, attempts, provenance, attempted_at_ms, \
           created_at_ms) SELECT printf('%064d', rowid), 'payment', owner, wallet_address, '', 'submitted', 1, 1, 'ours', 1, 1 \
         FROM (SELECT row_number() OVER () AS rowid, owner, wallet_address FROM accounts)",
        "INSERT INTO payments (tx_id, listing_id, mode, payer, payer_key, amount_lovelace, creator_lovelace, header_digest, owner, \
           day) SELECT tx_id, 'lst_1', 'instant', wallet, printf('%056d', 1), 1000000, 0, '', purpose, 1 FROM outbox",
    ] {
        block_on(world.db.execute::<()>(sql::write!(sql))).unwrap();
    }
}

#[test]
fn an_owner_who_bought_has_approvals_beyond_the_quota_of_their_network() {
    let world = World::new();
    approved_but(&world, 0);
    let client = world.register(&[CALLBACK]);
    let approve = || world.grant(&world.check(&world.approval(&world.consent(&client))).unwrap());
    assert!(matches!(approve(), Err(ApprovalError::NoMoreToday { .. })));
    claim_payments(&world);
    assert!(matches!(approve(), Err(ApprovalError::NoMoreToday { .. })), "what is only claimed may be in no block");
    let bought = "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, \
        creator_lovelace, status, bought_at_ms) SELECT tx_id, listing_id, mode, '', payer, payer_key, amount_lovelace, 0, 'settled', 1 FROM payments";
    block_on(world.db.execute::<()>(sql::write!(bought))).unwrap();
    assert!((0..MAX_APPROVALS_PER_BUYER).all(|_| approve().is_ok()));
    assert!(matches!(approve(), Err(ApprovalError::NoMoreToday { .. })));
}

#[test]
fn the_last_approval_of_a_networks_daily_quota_is_given_once() {
    let world = World::new();
    approved_but(&world, 1);
    let client = world.register(&[CALLBACK]);
    let approvals: Vec<_> = (0..20).map(|_| world.check(&world.approval(&world.consent(&client))).unwrap()).collect();
    let granted: Vec<_> = approvals.iter().map(|approval| world.grant(approval)).collect();
    assert_eq!(granted.iter().filter(|answer| answer.is_ok()).count(), 1);
    // Retrying an approval that was granted reports it as used; the other one is still over the quota.
    assert!(matches!(world.grant(&approvals[0]), Err(ApprovalError::Expired(_))));
    assert!(matches!(world.grant(&approvals[1]), Err(ApprovalError::NoMoreToday { .. })));
}
