//! Test that the ledger accepts the steps of the example program.

use cardano::blockfrost::{Client, Ureq};
use futures_lite::future::block_on;
use surety_escrow::State;

use super::world::EscrowLedger;

#[path = "../../../examples/sales.rs"]
mod sales;

#[test]
fn the_example_locks_delivers_disputes_and_refunds() {
    let world = EscrowLedger::new();
    let chain = Client::new(Ureq::default(), &world.devnet.base(), "");
    let pause = || world.devnet.make_block();
    let sales = sales::Sales {
        chain: &chain,
        deployment: &world.deployment,
        buyer: &world.buyer,
        seller: &world.seller,
        pause: &pause,
    };
    let states = block_on(sales.run()).unwrap();
    let disputed = [State::FundsLocked, State::ResultSubmitted, State::Disputed];
    assert_eq!(states, [&disputed[..], &[State::FundsLocked, State::RefundAuthorized]].concat());
}
