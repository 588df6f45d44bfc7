//! A database that commits and loses its answer: whichever batch of a purchase it is, the same request again leads to
//! the content, and nothing is paid twice.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::cell::Cell;

use crate::{
    support::{
        NOON, block,
        interrupted::Unanswered,
        ledger::{Tx, faucets},
        provider::Meanwhile,
        sales::output,
        sign_up, without_echoes,
    },
    unreadable_content::{Store, World},
};
use cardano::Lovelace;
use market::{
    DeliveryMode,
    checkout::{Order, Presented},
};
use sql::Database;

/// Requests that a client makes at most.
const MAX_REQUESTS: usize = 5;

impl World {
    /// Waits in which one block comes.
    fn one_block<'a>(&'a self, came: &'a Cell<bool>) -> impl Fn() + 'a {
        || {
            if !came.replace(true) {
                self.provider.ledger.mine();
            }
        }
    }

    fn paid_on(&self, database: &impl Database) -> Result<String, String> {
        let (came, store, ways) = (Cell::new(false), Store(self), self.ways());
        let meanwhile = self.one_block(&came);
        let sleep = Meanwhile(&meanwhile);
        let checkout = self.checkout(database, &sleep, &store, &ways);
        let presented = Presented::read(&self.header, "network", None).unwrap();
        let paid = block(checkout.pay(&self.terms, &presented, None));
        paid.map(|paid| paid.content).map_err(|error| error.to_string())
    }

    /// Blocks' transactions that pay for the listing.
    fn payments(&self) -> usize {
        let seller = self.terms.seller_address.to_string();
        let escrow = self.escrow.deployment().address().to_string();
        let blocks = self.provider.ledger.blocks.borrow();
        let txs = blocks.iter().flat_map(|block| &block.txs);
        let pays = |tx: &&Tx| {
            let from_escrow = tx.utxos.spent_by_script.len();
            from_escrow == 0 && tx.utxos.created.iter().any(|made| made.address == seller || made.address == escrow)
        };
        txs.filter(pays).count()
    }
}

/// Makes the same request again until it succeeds, and then once more where it was not answered before.
fn until_delivered(
    mode: DeliveryMode,
    at: usize,
    first: &Result<String, String>,
    again: impl Fn() -> Result<String, String>,
) {
    let mut told = vec![format!("{first:?}")];
    if first.is_ok() {
        return;
    }
    for _ in 0..MAX_REQUESTS {
        match again() {
            Ok(_) => return,
            Err(error) => told.push(error),
        }
    }
    panic!("{mode:?}, the answer of batch {at} lost: {told:#?}");
}

#[test]
fn the_same_header_leads_to_the_content_whichever_answer_is_lost() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        for has_secret in [true, false] {
            for at in 0.. {
                let mut world = World::new(mode, 9);
                if !has_secret {
                    world.header = without_echoes(&world.header);
                }
                let database = Unanswered::new(&world.db, at);
                let first = world.paid_on(&database);
                if !database.has_lost() {
                    assert!(first.is_ok() && at > 2, "{first:?}");
                    break;
                }
                until_delivered(mode, at, &first, || {
                    world.provider.ledger.mine();
                    world.paid_on(&world.db)
                });
                assert_eq!(world.payments(), 1, "{mode:?}, {at}");
            }
        }
    }
}

#[test]
fn the_same_order_leads_to_the_content_whichever_answer_is_lost() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        for at in 0.. {
            let world = World::new(mode, 9);
            let (account, key) = sign_up(&world.db, 9, NOON);
            let coin = output(account.wallet_address.to_string(), Lovelace::from_ada(50), None);
            let funds = Tx::unsigned(2, &[faucets(2)], &[coin.clone(), coin], u64::MAX);
            assert!(world.provider.ledger.add_to_mempool(funds));
            world.provider.ledger.mine();
            let limits = sql::write!("UPDATE accounts SET daily_budget = 500000000, max_per_payment = 100000000");
            block(world.db.execute::<()>(limits)).unwrap();
            let buy = |database: &Unanswered<'_>| {
                let (came, store, ways) = (Cell::new(false), Store(&world), world.ways());
                let meanwhile = world.one_block(&came);
                let sleep = Meanwhile(&meanwhile);
                let checkout = world.checkout(database, &sleep, &store, &ways);
                let order =
                    Order { account: &account, key: &key, terms: &world.terms, mode, agreed: None, nonce: [7; 32] };
                block(checkout.buy(&order)).map(|bought| bought.content).map_err(|error| error.to_string())
            };
            let database = Unanswered::new(&world.db, at);
            let first = buy(&database);
            if !database.has_lost() {
                assert!(first.is_ok() && at > 2, "{first:?}");
                break;
            }
            until_delivered(mode, at, &first, || {
                world.provider.ledger.mine();
                buy(&Unanswered::new(&world.db, usize::MAX))
            });
            assert_eq!(world.payments(), 1, "{mode:?}, {at}");
        }
    }
}
