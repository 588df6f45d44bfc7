//! A thief reads a quote from a lock that its payer broadcast. A payment by the thief with that quote binds only the
//! thief.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use crate::support::{
    block, checkout, deployment,
    ledger::{Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider},
    sales::output,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxRef,
    chain::Utxo,
    keys::SigningKey,
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{BuiltTx, TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode,
    catalogue::{self, ListingTerms},
    checkout::{Checkout, PaidContent, PayError, Presented},
    contents::InDatabase,
    result_poster::Seller,
};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    escrow::TransferMethod,
    method::{EscrowMethod, Offered, PaymentMethod},
    wire::ConfirmationPolicy,
};

struct World {
    db: Sqlite,
    provider: Provider,
    method: EscrowMethod,
    terms: ListingTerms,
}

impl World {
    fn new() -> Self {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let listing = list(&db, 1, 5_000_000);
        let terms: ListingTerms = block(db.fetch(catalogue::terms(&listing))).unwrap().unwrap();
        let terms = ListingTerms { modes: vec![DeliveryMode::Protected], ..terms };
        let deployment = deployment();
        let method = EscrowMethod::new(
            api_types::NETWORK,
            deployment,
            person(2),
            TransferMethod::Escrow,
            ConfirmationPolicy::IN_BLOCK,
        )
        .unwrap();
        let provider = Provider::new(Ledger::new());
        provider.shows_mempool.set(true);
        Self { db, provider, method, terms }
    }

    /// An output of an owner, in a block.
    fn coin(&self, owner: &SigningKey, number: u32) -> Utxo {
        let coin = output(owner.enterprise_address().to_string(), Lovelace::from_ada(100), None);
        let funds = Tx::unsigned(number.into(), &[faucets(number)], std::slice::from_ref(&coin), u64::MAX);
        let reference = TxRef { tx: funds.id, index: 0 };
        assert!(self.provider.ledger.add_to_mempool(funds));
        self.provider.ledger.mine();
        Utxo { reference, ..coin }
    }

    /// A lock with this quote, and its header.
    fn lock(&self, offered: &Offered, owner: &SigningKey, coin: &Utxo) -> (BuiltTx, String) {
        let (address, parameters) = (owner.enterprise_address(), ProtocolParameters::preprod());
        let lock = self.method.output(offered, &address, None, &parameters, &SlotConfig::PREPROD).unwrap();
        let until = lock.latest_end_slot.min(self.provider.ledger.tip().slot + 200);
        let plan = TxPlan { outputs: vec![lock.output], validity: Validity { from: None, until }, ..TxPlan::default() };
        let wallet = Wallet { address, utxos: std::slice::from_ref(coin), reserved: &BTreeSet::new() };
        let built = build(&plan, &wallet, &parameters).unwrap().sign(&[owner]).unwrap();
        let header = json!({
            "x402Version": 2,
            "accepted": offered.requirements,
            "payload": { "transaction": STANDARD.encode(&built.cbor), "nonce": coin.reference.to_string() },
            "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
        });
        (built, STANDARD.encode(header.to_string()))
    }

    fn pay(&self, header: &str, proven: Option<Address>) -> Result<PaidContent, PayError> {
        self.provider.ledger.calls.set(0);
        let now = self.provider.ledger.tip().time_ms;
        block(
            Checkout {
                seller: Some(Seller { deployment: self.method.deployment(), key: &person(2) }),
                schedule: &[500, 500],
                ..checkout(
                    &self.db,
                    &self.provider,
                    &Meanwhile(&|| self.provider.ledger.mine()),
                    &InDatabase(&self.db),
                    &[(DeliveryMode::Protected, &self.method)],
                    now,
                )
            }
            .pay(&self.terms, &Presented::read(header, "network", None).unwrap(), proven),
        )
    }
}

#[test]
fn a_lock_that_no_block_will_have_leaves_its_quote_to_others() {
    for burned in [false, true] {
        let world = World::new();
        let (payer, thief) = (person(9), person(8));
        let (coin, thiefs) = (world.coin(&payer, 1), world.coin(&thief, 2));
        world.coin(&person(2), 4);
        let now = world.provider.ledger.tip().time_ms;
        let offered = world.method.offer(&world.terms.sale(), now, [5; 32]).unwrap();
        let (lock, header) = world.lock(&offered, &payer, &coin);
        // The payer submits it elsewhere. Its datum makes the quote public.
        assert!(world.provider.ledger.add_to_mempool(Tx::new(lock.cbor.clone(), lock.facts.valid_until_slot)));
        if burned {
            // A lock whose input is spent elsewhere at the same time: the node rejects it, and nothing is locked.
            let (_, copied) = world.lock(&offered, &thief, &thiefs);
            assert!(world.provider.ledger.add_to_mempool(Tx::unsigned(3, &[thiefs.reference], &[], u64::MAX)));
            let refused = world.pay(&copied, None);
            assert!(matches!(refused, Err(PayError::NotSettled(..))), "{refused:?}");
        }
        world.provider.ledger.mine();
        let paid = world.pay(&header, Some(payer.enterprise_address()));
        assert_eq!(paid.map(|paid| paid.content), Ok("content 1".to_owned()), "burned: {burned}");
    }
}
