//! Tests that an award is paid exactly once, whichever call fails.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

mod support;

use std::path::Path;

use arbitration::{ResolveError, ResolveRequest, ResolveResult};
use cardano::Lovelace;
use futures_lite::future::{or, yield_now};
use futures_util::future::join_all;
use support::{ADA, Submit, World, award_in, block};

const MINUTE: u64 = 60_000;

#[test]
fn requests_at_once_pay_once() {
    let world = World::new(&[50 * ADA; 3]);
    let request = world.dispute(1);
    world.open_window();
    let answers = block(join_all((0..50).map(|_| world.resolve(&request))));
    let mut awards: Vec<_> = answers.into_iter().map(award_in).collect();
    awards.dedup();
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&request.escrow), awards);
    assert_eq!(world.ledger.submitted.borrow().len(), 1);
}

#[test]
fn an_award_pays_the_whole_escrow_though_the_provider_shows_another_amount() {
    for told in [3 * ADA, 700 * ADA] {
        let world = World::new(&[50 * ADA]);
        let request = world.dispute(1);
        world.ledger.told.set(Lovelace::new(told));
        let Ok(ResolveResult::Signed { payout, .. }) = block(world.resolve(&request)) else { panic!("it is decided") };
        assert_eq!((payout.buyer, payout.seller), (Lovelace::from_ada(2), Lovelace::from_ada(5)));
        world.open_window();
        let award = world.paid(&request);
        world.ledger.mine();
        assert_eq!(world.ledger.spenders(&request.escrow), [award]);
    }
}

#[test]
fn an_award_counts_as_paid_once_the_chain_shows_it() {
    let world = World::new(&[50 * ADA]);
    let request = world.dispute(1);
    assert!(matches!(block(world.resolve(&request)), Ok(ResolveResult::Signed { .. })), "before the window");
    assert!(world.states().is_empty());
    world.open_window();
    let award = world.paid(&request);
    assert_eq!(world.states(), ["submitted"]);
    world.ledger.mine();
    assert_eq!(world.paid(&request), award);
    assert_eq!(world.states(), ["included"]);
}

#[test]
fn an_award_that_was_refused_yet_forwarded_is_not_paid_twice() {
    let world = World::new(&[50 * ADA; 3]);
    let request = world.dispute(1);
    world.open_window();
    world.ledger.plan.borrow_mut().push_back(Submit::RefuseAfterPassingOn);
    assert_eq!(block(world.resolve(&request)), Err(ResolveError::Refused("no".into())));
    // The forwarded transaction spends the escrow, so a second payout is rejected and costs no fee.
    assert!(matches!(block(world.resolve(&request)), Err(ResolveError::Refused(_))));
    world.ledger.mine();
    let award = world.paid(&request);
    assert_eq!(world.ledger.spenders(&request.escrow), [award]);
    assert!(world.states().contains(&"included".to_owned()));
}

#[test]
fn an_award_stored_before_a_crash_of_the_arbiter_is_submitted() {
    let world = World::new(&[50 * ADA]);
    let request = world.dispute(1);
    world.open_window();
    world.ledger.plan.borrow_mut().push_back(Submit::Hang);
    let died = async {
        while world.ledger.submitted.borrow().is_empty() {
            yield_now().await;
        }
        None
    };
    assert_eq!(block(or(async { Some(world.resolve(&request).await) }, died)), None);
    assert_eq!(world.states(), ["claimed"]);
    let award = world.paid(&request);
    let submitted = world.ledger.submitted.borrow().clone();
    assert_eq!(submitted.len(), 2);
    assert_eq!(submitted.first(), submitted.last(), "the same bytes");
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&request.escrow), [award]);
}

#[test]
fn an_award_that_expired_is_followed_by_another() {
    let world = World::new(&[50 * ADA]);
    let request = world.dispute(1);
    world.open_window();
    world.ledger.plan.borrow_mut().push_back(Submit::Forget);
    let lost = world.paid(&request);
    world.ledger.advance(5 * MINUTE);
    let award = world.paid(&request);
    assert_ne!(award, lost);
    assert_eq!(world.states(), ["expired", "submitted"]);
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&request.escrow), [award]);
}

#[test]
fn an_award_that_a_node_lost_is_submitted_again() {
    let world = World::new(&[50 * ADA]);
    let request = world.dispute(1);
    world.open_window();
    world.ledger.plan.borrow_mut().push_back(Submit::Forget);
    let award = world.paid(&request);
    world.ledger.advance(MINUTE);
    assert_eq!(world.paid(&request), award);
    world.ledger.mine();
    assert_eq!(world.paid(&request), award);
    // The block is rolled back, and no node has kept the transaction.
    world.ledger.lose_newest();
    assert_eq!(world.paid(&request), award);
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&request.escrow), [award]);
}

#[test]
fn awards_of_different_escrows_chain_on_the_wallets_only_output() {
    let world = World::new(&[50 * ADA]);
    let requests = [1, 2, 3].map(|number| world.dispute(number));
    world.open_window();
    let answers = block(join_all(requests.iter().map(|request| world.resolve(request))));
    world.ledger.mine();
    for (request, answer) in requests.iter().zip(answers) {
        assert_eq!(world.ledger.spenders(&request.escrow), [award_in(answer)]);
    }
}

#[test]
fn a_wallet_whose_only_output_is_reserved_is_busy_until_its_transaction_ends() {
    let world = World::new(&[50 * ADA]);
    let [first, second] = [1, 2].map(|number| world.dispute(number));
    world.open_window();
    world.ledger.plan.borrow_mut().push_back(Submit::Fail);
    assert_eq!(block(world.resolve(&first)), Err(ResolveError::Unanswered));
    assert_eq!(block(world.resolve(&second)), Err(ResolveError::Busy));
    world.ledger.advance(5 * MINUTE);
    // The first was not included in time, so its input is free again.
    let award = world.paid(&second);
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&second.escrow), [award]);
    assert_eq!(world.ledger.spenders(&first.escrow), []);
    let award = world.paid(&first);
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&first.escrow), [award]);
}

#[test]
fn an_unconfirmed_award_is_noted_as_paid_at_the_next_request() {
    let world = World::new(&[50 * ADA; 2]);
    let [first, second] = [1, 2].map(|number| world.dispute(number));
    world.open_window();
    world.paid(&first);
    world.ledger.mine();
    world.paid(&second);
    let mut states = world.states();
    states.sort();
    assert_eq!(states, ["included", "submitted"]);
}

#[test]
fn an_escrow_that_its_parties_took_further_is_not_paid_as_awarded() {
    let world = World::new(&[50 * ADA]);
    let request = world.dispute(1);
    assert!(matches!(block(world.resolve(&request)), Ok(ResolveResult::Signed { .. })));
    world.concede(&request);
    world.open_window();
    assert!(matches!(block(world.resolve(&request)), Ok(ResolveResult::NoVerdict { .. })));
    assert!(world.states().is_empty());
}

#[test]
fn a_step_that_spends_outputs_of_many_scripts_only_takes_more_requests() {
    let world = World::new(&[50 * ADA]);
    let request = world.dispute_with(1, 40);
    world.open_window();
    let mut requests = 1;
    let award = loop {
        let before = world.ledger.calls.get();
        let answer = block(world.resolve(&request));
        assert!(world.ledger.calls.get() - before <= 30, "a request may make few outside calls");
        match answer {
            Err(ResolveError::StillTracing) if requests < 4 => requests += 1,
            answer => break award_in(answer),
        }
    };
    world.ledger.mine();
    assert_eq!(world.ledger.spenders(&request.escrow), [award]);
}

#[test]
fn every_query_of_the_arbiter_fits_the_schema() {
    let world = World::new(&[100 * ADA]);
    let request = world.dispute(1);
    let other = ResolveRequest { output: "another output".into(), ..request.clone() };
    block(world.resolve(&other)).unwrap();
    block(world.resolve(&request)).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(sql::sqlite::unchecked(&sources), Vec::<String>::new());
}
