//! How deep the blocks of a payment and of its result are before its content is out, whatever asks for it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::{
    redelivery::presents_another,
    repeated_headers::{header_of, terms_of},
    support::{
        NOON, block, checkout, entry, person,
        provider::Meanwhile,
        sales::{Sales, output},
        sign_up,
    },
};
use cardano::{ContentHash, Lovelace, TxHash, TxRef, chain::Utxo, keys::SigningKey};
use market::{
    DeliveryMode,
    account::Account,
    checkout::{BuyError, Checkout, NotRead, Order, PayError, Presented, Unavailable},
    contents::InDatabase,
};
use serde_json::{Value, json};
use sql::{Database, Write};
use x402_cardano::{
    settlement::NotSettled,
    wire::{SettlementStatus, payment_identifier::payload_digest},
};

const DOORS: [Door; 6] =
    [Door::Proof, Door::Session, Door::Order, Door::OtherTransaction, Door::Header, Door::Identifier];

/// A way to the content of a payment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Door {
    /// The header that claimed the payment, at the paywall or through MCP.
    Header,
    /// Another header, under the client's own name for the payment.
    Identifier,
    /// A header with another transaction of a payer who owns the listing.
    OtherTransaction,
    /// A signature over the listing.
    Proof,
    /// A session that reads a purchase: the API, the page, and MCP.
    Session,
    /// A session that orders what it owns: `/me/buy`, and MCP.
    Order,
}

/// A sale to a buyer with an account, paid from the buyer's own wallet.
struct World {
    sales: Sales,
    payment: TxHash,
    buyer: SigningKey,
    account: Account,
    key: SigningKey,
    coin: Utxo,
    header: String,
    identified: String,
}

/// A header with the client's own name for the payment in it, and another secret.
fn with_identifier(header: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut payload: Value = serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap();
    let named = json!({ "payment-identifier": { "info": { "required": false, "id": "a-name-of-the-client" } } });
    payload.as_object_mut().unwrap().insert("extensions".into(), named);
    STANDARD.encode(payload.to_string())
}

impl World {
    /// A payment in the newest block, or a result there whose lock is eleven blocks below.
    fn new(mode: DeliveryMode) -> Self {
        let (sales, buyer) = (Sales::new(), person(1));
        let (account, key) = sign_up(&sales.db, 1, NOON);
        let coin = output(buyer.enterprise_address().to_string(), Lovelace::from_ada(100), None);
        let funds = sales.puts(std::slice::from_ref(&coin));
        let coin = Utxo { reference: TxRef { tx: funds, index: 0 }, ..coin };
        sales.ledger.mine();
        let payment = match mode {
            DeliveryMode::Instant => sales.sell_instant(&buyer),
            DeliveryMode::Protected => sales.sell(&buyer),
        };
        let cbor = entry(&sales.db, &payment).cbor;
        let header = header_of(&cbor, &format!("{payment}#0"));
        let identified = with_identifier(&header);
        sales.ledger.mine();
        sales.includes(&payment);
        if mode == DeliveryMode::Protected {
            (0..11).for_each(|_| sales.ledger.mine());
            sales.post(&payment).unwrap();
            sales.ledger.mine();
        }
        let run = |statement: Write| block(sales.db.execute(statement)).unwrap();
        run(sql::write!(
            "UPDATE payments SET header_digest = ?1 WHERE tx_id = ?2",
            ContentHash::of(header.as_bytes()),
            payment
        ));
        run(sql::write!(
            "INSERT INTO payment_identifiers (listing_id, identifier, payload_digest, tx_id, created_at_ms) \
             VALUES (?1, 'a-name-of-the-client', ?2, ?3, ?4)",
            &sales.listing,
            payload_digest(&identified).unwrap(),
            payment,
            NOON
        ));
        Self { sales, payment, buyer, account, key, coin, header, identified }
    }

    /// Requests the content in this way, with one look at the chain. Returns the content, or `None` if the client has
    /// to wait.
    fn open(&self, door: Door, confirmations: u64) -> Option<String> {
        let Self { sales, buyer, account, .. } = self;
        let contents = InDatabase(&sales.db);
        let sleep = Meanwhile(&|| ());
        let terms = terms_of(&sales.db, &sales.listing);
        sales.ledger.calls.set(0);
        let checkout = Checkout {
            confirmations,
            schedule: &[],
            ..checkout(&sales.db, &sales.ledger, &sleep, &contents, &[], sales.now())
        };
        let paid = |paid: Result<market::checkout::PaidContent, PayError>| match paid {
            Ok(paid) => {
                let told = paid.settlement.extra.unwrap();
                assert_eq!(told.status, SettlementStatus::Confirmed);
                assert!(told.confirmations.unwrap() >= i64::try_from(confirmations).unwrap(), "{told:?}");
                Some(paid.content)
            }
            Err(PayError::NotSettled(_, settlement)) => {
                assert!(!settlement.success);
                assert_eq!(settlement.extra.unwrap().status, SettlementStatus::Pending);
                None
            }
            Err(PayError::Unavailable(Unavailable::NoResult(_) | Unavailable::NotIncluded(_))) => None,
            // Delivered before.
            Err(PayError::Refused(refusal)) if refusal == NotSettled::Duplicate.into() => None,
            Err(error) => panic!("{door:?}: {error:?}"),
        };
        let header = |text: &str| paid(block(checkout.pay(&terms, &Presented::read(text, "n", None).unwrap(), None)));
        let waits = |error: &Unavailable| {
            let waits =
                matches!(error, Unavailable::Unconfirmed(_) | Unavailable::NoResult(_) | Unavailable::NotIncluded(_));
            assert!(waits, "{door:?}: {error:?}");
        };
        match door {
            Door::Header => header(&self.header),
            Door::Identifier => header(&self.identified),
            Door::OtherTransaction => paid(presents_another(sales, buyer, &self.coin, confirmations, &|| ())),
            Door::Proof => match block(checkout.redeliver(&terms, &[*buyer.enterprise_address().payment_key()])) {
                Ok(given) => given.map(|given| given.content),
                Err(error) => {
                    waits(&error);
                    None
                }
            },
            Door::Session => match block(checkout.own_purchase(account, &self.payment, true)) {
                Ok(read) => read.content,
                Err(NotRead::Unavailable(error)) => {
                    waits(&error);
                    None
                }
                Err(error) => panic!("{door:?}: {error:?}"),
            },
            Door::Order => {
                let mode = DeliveryMode::Instant;
                let order = Order { account, key: &self.key, terms: &terms, mode, agreed: None, nonce: [7; 32] };
                match block(checkout.buy(&order)) {
                    Ok(bought) => Some(bought.content),
                    Err(BuyError::Unconfirmed(_) | BuyError::NoResult(_) | BuyError::Pending(_)) => None,
                    Err(error) => panic!("{door:?}: {error:?}"),
                }
            }
        }
    }

    /// Returns whether the chain shows everything that the release of the content depends on.
    fn is_due(&self, mode: DeliveryMode, wanted: u64) -> bool {
        let ledger = &self.sales.ledger;
        let is_deep =
            |tx: &TxHash| ledger.inclusion(tx).is_some_and(|block| ledger.tip().height - block.height >= wanted);
        let result = || self.sales.escrow(&self.payment).utxo.reference.tx;
        is_deep(&self.payment) && (mode == DeliveryMode::Instant || result() != self.payment && is_deep(&result()))
    }

    fn assert_closed(&self, confirmations: u64, when: &str) {
        for door in DOORS {
            assert_eq!(self.open(door, confirmations), None, "{door:?}, {confirmations} confirmations, {when}");
        }
    }
}

#[test]
fn no_door_opens_before_both_blocks_are_as_deep_as_the_setting_asks() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        for (wanted, ticks) in [(0, false), (0, true), (2, false), (2, true), (20, false), (20, true)] {
            let world = World::new(mode);
            for depth in 0..wanted {
                if ticks {
                    world.sales.tick();
                }
                world.assert_closed(wanted, &format!("{mode:?}, {depth} deep, ticks: {ticks}"));
                world.sales.ledger.mine();
            }
            if ticks {
                world.sales.tick();
            }
            for door in DOORS {
                let given = world.open(door, wanted);
                assert_eq!(given.as_deref(), Some("content 1"), "{mode:?}, {door:?}, {wanted}, ticks: {ticks}");
            }
        }
    }
}

#[test]
fn content_that_ticks_know_to_be_deep_is_read_without_the_provider() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        let world = World::new(mode);
        world.sales.ticks(20);
        for door in [Door::Proof, Door::Session, Door::Order, Door::Header, Door::Identifier] {
            assert!(world.open(door, 20).is_some(), "{mode:?}, {door:?}");
            assert_eq!(world.sales.ledger.calls.get(), 0, "{mode:?}, {door:?}");
        }
    }
}

#[test]
pub fn no_door_opens_after_a_rollback_of_one_confirmation() {
    no_door_opens_after_a_rollback(&[1], &[true]);
}

#[test]
#[ignore = "takes long: make load runs it"]
fn no_door_opens_after_a_rollback_however_high_the_chain_has_grown() {
    no_door_opens_after_a_rollback(&[1, 2, 5], &[false, true]);
}

/// Rolls a payment back, for each number of wanted confirmations, without and with ticks of the watcher.
fn no_door_opens_after_a_rollback(wanted: &[u64], ticks: &[bool]) {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        for &wanted in wanted {
            for &ticks in ticks {
                let world = World::new(mode);
                if ticks {
                    world.sales.tick();
                }
                // Requests record it all, one block short of the release. Of a lock, the rollback leaves the lock itself.
                (1..wanted).for_each(|_| world.sales.ledger.mine());
                world.assert_closed(wanted, "before the rollback");
                world.sales.ledger.roll_back(usize::try_from(wanted).unwrap(), 0);
                for grown in 0..16 {
                    // Until a tick has seen the rollback, the stored heights are those of the chain before.
                    let is_found = ticks && grown >= 8;
                    if is_found {
                        world.sales.tick();
                    }
                    for door in DOORS {
                        // These would pay anew for what is gone.
                        if is_found && matches!(door, Door::OtherTransaction | Door::Order) {
                            continue;
                        }
                        let given = world.open(door, wanted);
                        let is_due = world.is_due(mode, wanted);
                        assert!(is_found || !is_due);
                        assert!(
                            given.is_none() || is_due,
                            "{mode:?}, {door:?}, {wanted}, {grown} blocks later, ticks: {ticks}"
                        );
                    }
                    world.sales.ledger.mine();
                }
                let given = world.open(Door::Proof, wanted);
                assert_eq!(given.is_some(), ticks, "{mode:?}, {wanted}: the watcher submits it again");
            }
        }
    }
}
