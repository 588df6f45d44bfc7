//! Many at once: whatever the order in which their statements meet, there is one family of tokens.

use std::collections::HashSet;

use futures_lite::future::{self, block_on};
use sql::{Database, statement};

use super::testing::*;

fn live_grants(world: &World) -> String {
    let count = "SELECT CAST(count(*) AS TEXT) FROM oauth_grants WHERE generation > 0 AND revoked_at_ms IS NULL";
    block_on(world.db.run(statement!(count))).unwrap().rows.concat()
}

#[test]
fn fifty_uses_of_one_code_give_tokens_once() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let code = world.code(&client);
    let answers: Vec<_> = (0..50).map(|_| world.redeem(&client, &code)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    // Somebody else had the code too: what it gave does not stay.
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
    let rows = block_on(world.db.run(statement!("SELECT CAST(count(*) AS TEXT) FROM oauth_clients"))).unwrap();
    assert_eq!(rows.rows, ["1"]);
}

#[test]
fn a_thief_and_the_owner_of_a_refresh_token_do_not_both_stay() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let thief = world.refresh(&client, &first.refresh_token).unwrap();
    world.wait(super::exchange::RETRY_MS + 1);
    // The honest client comes back with the token that it still has: whoever went on with the other one is out too.
    assert!(world.refresh(&client, &first.refresh_token).is_err());
    assert!(world.refresh(&client, &thief.refresh_token).is_err());
    assert_eq!(live_grants(&world), "0");
}

#[test]
fn a_slow_and_a_fast_retry_agree() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let (fast, slow) = block_on(future::zip(async { world.refresh(&client, &first.refresh_token).unwrap() }, async {
        world.refresh(&client, &first.refresh_token).unwrap()
    }));
    assert_eq!(fast, slow);
    assert_eq!(world.caller(&fast.access_token), world.caller(&slow.access_token));
}
