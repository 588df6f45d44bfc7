//! Purchases, their timelines, sales and reputation equal the chain in the end, whatever happens to the chain and to
//! the watcher's ticks.
//!
//! Payments, escrow steps by anyone, blocks, and rollbacks that drop transactions happen in random order. Between them
//! the API finds payments in blocks, and ticks run that are killed between two writes, or whose provider fails. Then
//! the chain grows, ticks run undisturbed, and everything is compared with a history derived from the chain alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use sql::{Database, DatabaseError, Statement, sqlite::Sqlite};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use crate::support::{
    SELLER, block, deployment, entry, fresh_escrow,
    idle::Idle,
    ledger::{CALLS, Ledger, Tx, faucets},
    list_by, one, out_of_step, person, step,
};
use cardano::{
    Address, ContentHash, Lovelace, TxHash, TxRef,
    address::PaymentAddress,
    chain::{Utxo, Value as Money},
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use escrow::{
    Action, Deployment,
    dispute::{DisputeWithdrawal, Split},
    plan::{Escrow, Planner, Step},
    rules::{Effect, Rule},
};
use market::{
    ListingId,
    chain_state::ClockLead,
    claim::{Claim, NewPayment},
    contents::InDatabase,
    fees::creator_share,
    listing::DeliveryMode,
    purchase,
    watch::Watch,
};
use outbox::{Decision, EntryState, Kind, NewEntry, Provenance, write_down};
use proptest::prelude::*;

/// A random event.
#[derive(Clone, Debug)]
enum ChainEvent {
    /// A buyer pays; `lasts` is the number of blocks for which the payment may wait.
    Pay {
        listing: u8,
        payer: u8,
        protected: bool,
        lasts: u64,
    },
    /// A party acts on an escrow in one of the possible ways; `share` is the buyer's part of an award.
    Step {
        escrow: usize,
        way: usize,
        share: u64,
        pays_creator: bool,
    },
    Block,
    /// The API finds a payment in its block.
    Seen {
        payment: usize,
    },
    RollBack {
        blocks: usize,
        coins: u64,
    },
    /// A tick that is killed before this write, and whose provider fails from this call on.
    Tick {
        writes: u32,
        calls: u32,
    },
}

fn event() -> impl Strategy<Value = ChainEvent> {
    prop_oneof![
        3 => (0..3u8, 0..4u8, any::<bool>(), prop_oneof![Just(3u64), Just(1_000)])
            .prop_map(|(listing, payer, protected, lasts)| ChainEvent::Pay { listing, payer, protected, lasts }),
        8 => (any::<usize>(), any::<usize>(), 0..=8u64, any::<bool>())
            .prop_map(|(escrow, way, share, pays_creator)| ChainEvent::Step { escrow, way, share, pays_creator }),
        6 => Just(ChainEvent::Block),
        3 => any::<usize>().prop_map(|payment| ChainEvent::Seen { payment }),
        1 => (1..=5usize, any::<u64>()).prop_map(|(blocks, coins)| ChainEvent::RollBack { blocks, coins }),
        4 => (prop_oneof![1 => 0..8u32, 1 => Just(u32::MAX)], prop_oneof![1 => 1..12u32, 1 => Just(u32::MAX)])
            .prop_map(|(writes, calls)| ChainEvent::Tick { writes, calls }),
    ]
}

/// A database that fails after some batches, as for a worker that is killed.
struct Dying<'a>(&'a Sqlite, Cell<u32>);

impl Database for Dying<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let left = self.1.get().checked_sub(1).ok_or_else(|| DatabaseError("killed".into()))?;
        self.1.set(left);
        self.0.run_statements(statements).await
    }
}

struct World {
    db: Sqlite,
    ledger: Ledger,
    deployment: Deployment,
    listings: Vec<(ListingId, Address)>,
    /// All payments: transaction, listing, and whether it is a lock.
    payments: Vec<(TxHash, usize, bool)>,
    /// Locks by their escrows' reference signatures.
    locks: BTreeMap<Vec<u8>, TxHash>,
    /// Expected steps, as created.
    told: BTreeMap<TxHash, Told>,
    count: u32,
}

/// An expected step: its purchase, its status, and whether it pays the creator.
#[derive(Clone, Debug)]
struct Told {
    purchase: TxHash,
    status: &'static str,
    creator_paid: bool,
}

const PRICE: u64 = 10_000_000;
/// Number of blocks until everything has been detected.
const SETTLED_BLOCKS: usize = 20;

impl World {
    fn new() -> Self {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let seller = |number: u8| match number {
            2 => person(9).enterprise_address(),
            _ => SELLER.parse().unwrap(),
        };
        let list = |number: u8| (list_by(&db, &seller(number).to_string(), number, PRICE), seller(number));
        let listings = (0..3).map(list).collect();
        let deployment = deployment();
        let (payments, locks, told) = Default::default();
        Self { db, ledger: Ledger::new(), deployment, listings, payments, locks, told, count: 0 }
    }

    fn unique(&mut self) -> u32 {
        self.count += 1;
        self.count
    }

    /// This payer pays, unless they own the listing or are paying for it.
    fn pay(&mut self, listing: u8, payer: u8, protected: bool, lasts: u64) {
        let number = self.unique();
        let listing = usize::from(listing);
        let buyer = person(10 + payer);
        let utxo = Utxo {
            reference: faucets(number),
            address: buyer.enterprise_address().to_string(),
            value: Money { lovelace: Lovelace::from_ada(100), ..Money::default() },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        };
        let price = Lovelace::new(PRICE).unwrap();
        let output = if protected {
            let datum = fresh_escrow(number);
            let to = PaymentAddress::script(self.deployment.script_hash);
            NewOutput { inline_datum: Some(datum.to_cbor()), ..NewOutput::pay(to, price) }
        } else {
            NewOutput::pay(self.listings[listing].1, price)
        };
        let until = self.ledger.tip().slot + lasts * 20;
        let plan = TxPlan { outputs: vec![output], validity: Validity { from: None, until }, ..TxPlan::default() };
        let reserved = BTreeSet::new();
        let wallet = Wallet { address: buyer.enterprise_address(), utxos: &[utxo], reserved: &reserved };
        let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[&buyer]).unwrap();
        let tx = built.facts.tx_id;
        let payment = NewPayment {
            tx,
            cbor: &built.cbor,
            valid_until: until,
            provenance: Provenance::Ours,
            listing_id: &self.listings[listing].0,
            mode: if protected { DeliveryMode::Protected } else { DeliveryMode::Instant },
            payer: buyer.enterprise_address(),
            amount: price,
            header: ContentHash::of(&built.cbor),
            terms_digest: protected.then(|| ContentHash::of(&number.to_be_bytes())),
            identifier: None,
            inputs: &built.facts.inputs,
            account: None,
            content: None,
            checked: 0,
            replaced: 0,
        };
        let claimed = block(payment.claim::<market::claim::Blocked>(&self.db, self.ledger.tip().time_ms)).unwrap();
        if !matches!(claimed, Claim::New(_)) {
            return;
        }
        assert!(self.ledger.add_to_mempool(Tx::new(built.cbor, until)));
        if protected {
            self.locks.insert(fresh_escrow(number).reference_signature, tx);
        }
        self.payments.push((tx, listing, protected));
    }

    fn step(&mut self, escrow: usize, way: usize, share: u64, pays_creator: bool) {
        let open: Vec<Escrow> =
            self.ledger.unspent().into_iter().filter_map(|utxo| Escrow::read(utxo, &self.deployment).ok()).collect();
        let Some(escrow) = open.get(escrow.checked_rem(open.len()).unwrap_or(0)) else { return };
        let ways: Vec<(Action, &Rule)> =
            Action::ALL.into_iter().filter_map(|action| Some((action, Rule::find(action, &escrow.datum)?))).collect();
        let (action, _) = ways[way % ways.len()];
        self.takes(&escrow.clone(), action, share, pays_creator);
    }

    /// A party acts on the only open escrow.
    fn does(&mut self, action: Action, share: u64) {
        let open = self.ledger.unspent().into_iter().find_map(|utxo| Escrow::read(utxo, &self.deployment).ok());
        self.takes(&open.unwrap(), action, share, false);
    }

    /// A longer fork without the newest blocks.
    fn forks(&self, blocks: usize, coins: u64) {
        self.ledger.roll_back(blocks, coins);
        (0..=blocks).for_each(|_| self.ledger.mine());
    }

    /// Submits an entry that changes no escrow.
    fn sends(&self, kind: Kind, purpose: &str, acts_on: Vec<TxHash>) -> TxHash {
        let until = self.ledger.tip().slot + 10_000;
        let tx = Tx::unsigned(0, &[faucets(900)], &[], until);
        let draft = NewEntry {
            tx: tx.id,
            kind,
            purpose: purpose.to_owned(),
            wallet: None,
            cbor: tx.cbor.clone(),
            valid_until: until,
            provenance: Provenance::Ours,
            spends: vec![],
            collateral: vec![],
            acts_on,
            guard: None,
        };
        block(self.db.execute(write_down(&draft, self.ledger.tip().time_ms))).unwrap();
        let id = tx.id;
        assert!(self.ledger.add_to_mempool(tx));
        id
    }

    fn takes(&mut self, escrow: &Escrow, action: Action, share: u64, pays_creator: bool) {
        let rule = Rule::find(action, &escrow.datum).unwrap();
        let purchase = self.locks[&escrow.datum.reference_signature];
        let number = self.unique();
        let (mut made, status) = self.outcome(escrow, action, rule, share);
        let creator_paid = pays_creator && status == "withdrawn";
        if creator_paid {
            let (_, listing, _) = self.payments.iter().find(|(tx, ..)| *tx == purchase).unwrap();
            made.push(output(
                self.listings[*listing].1.to_string(),
                creator_share(Lovelace::new(PRICE).unwrap()).get(),
                None,
            ));
        }
        let tx = Tx::unsigned(number.into(), &[escrow.utxo.reference], &made, u64::MAX);
        self.told.insert(tx.id, Told { purchase, status, creator_paid });
        self.ledger.add_to_mempool(tx);
    }

    /// Returns the escrow after an action, and the expected step.
    fn outcome(&self, escrow: &Escrow, action: Action, rule: &Rule, share: u64) -> (Vec<Utxo>, &'static str) {
        let at = self.deployment.address().to_string();
        if let Effect::Continue { to, .. } = rule.effect {
            let result = ContentHash::new([9; 32]);
            let next = rule.next(&escrow.datum, self.ledger.tip().time_ms, 60_000, Some(&result)).unwrap();
            return (vec![output(at, PRICE, Some(next.to_cbor()))], to.name());
        }
        if action != Action::WithdrawDisputed {
            return (vec![], if action == Action::Withdraw { "withdrawn" } else { "refunded" });
        }
        let buyer = share * 1_000_000 + 1_000_000;
        let lovelace = |amount| Lovelace::new(amount).unwrap();
        let split = Split { buyer: lovelace(buyer), seller: lovelace(PRICE - buyer) };
        let intent = DisputeWithdrawal::new(escrow.utxo.reference, split);
        let parameters = ProtocolParameters::preprod();
        let planner = Planner { deployment: &self.deployment, parameters: &parameters, slots: &SlotConfig::PREPROD };
        let step = Step::WithdrawDisputed { intent, signatures: vec![] };
        let plan = planner.plan_within(escrow, &step, Validity { from: Some(0), until: 1 }).unwrap();
        let parties = [escrow.datum.buyer_payout_address(), escrow.datum.seller_payout_address()];
        let made = plan
            .outputs
            .iter()
            .zip(parties)
            .map(|(new, party)| output(party.to_string(), new.value.lovelace.get(), new.inline_datum.clone()));
        let status = match buyer.cmp(&(PRICE - buyer)) {
            std::cmp::Ordering::Greater => "refunded",
            std::cmp::Ordering::Less => "withdrawn",
            std::cmp::Ordering::Equal => "closed",
        };
        (made.collect(), status)
    }

    fn tick(&self, writes: u32, calls: u32, later_ms: u64) {
        self.ledger.calls.set(0);
        self.ledger.silent_from.set(calls);
        let database = Dying(&self.db, Cell::new(writes));
        let watch = Watch {
            database: &database,
            chain: &self.ledger,
            contents: &InDatabase(&database),
            keys: &Idle,
            arbiter: &Idle,
            deployment: Some(&self.deployment),
            sells: false,
            lead: ClockLead::Bounded,
            number: 1,
            now: self.ledger.tip().time_ms + later_ms,
            calls_left: &|| CALLS.saturating_sub(self.ledger.calls.get()),
        };
        let undisturbed = writes == u32::MAX && calls == u32::MAX;
        let ticked = block(watch.tick());
        assert!(ticked.is_ok() || !undisturbed, "{ticked:?}");
        self.ledger.silent_from.set(u32::MAX);
    }

    fn happens(&mut self, event: &ChainEvent) {
        match *event {
            ChainEvent::Pay { listing, payer, protected, lasts } => self.pay(listing, payer, protected, lasts),
            ChainEvent::Step { escrow, way, share, pays_creator } => self.step(escrow, way, share, pays_creator),
            ChainEvent::Block => self.ledger.mine(),
            ChainEvent::Seen { payment } => {
                let Some((tx, ..)) = self.payments.get(payment.checked_rem(self.payments.len()).unwrap_or(0)) else {
                    return;
                };
                if let Some(inclusion) = self.ledger.inclusion(tx) {
                    step(&self.db, tx, &Decision::Include(inclusion));
                }
            }
            ChainEvent::RollBack { blocks, coins } => self.ledger.roll_back(blocks, coins),
            ChainEvent::Tick { writes, calls } => self.tick(writes, calls, 0),
        }
    }

    /// Runs blocks and undisturbed ticks until everything has been detected.
    fn settle(&self) {
        for _ in 0..12 {
            self.ledger.mine();
            self.tick(u32::MAX, u32::MAX, 70_000);
        }
        // Until waiting payments have expired, plus the ticks that this takes.
        for _ in 0..8 {
            self.ledger.mine();
            self.tick(u32::MAX, u32::MAX, 140_000);
        }
    }

    /// The purchases according to the chain: status, events, and whether the creator is to be paid.
    fn chain_has(&self) -> Vec<String> {
        let mut purchases: Vec<String> = self.payments.iter().filter_map(|payment| self.history(payment)).collect();
        purchases.sort();
        purchases
    }

    fn history(&self, (payment, _, protected): &(TxHash, usize, bool)) -> Option<String> {
        let first = self.ledger.inclusion(payment)?;
        let mut status = if *protected { "FundsLocked" } else { "settled" };
        let mut events = vec![format!("{status} {payment} {}", first.time_ms)];
        let mut owed = false;
        for block in self.ledger.blocks.borrow().iter() {
            for tx in &block.txs {
                let Some(told) = self.told.get(&tx.id).filter(|told| told.purchase == *payment) else { continue };
                status = told.status;
                events.push(format!("{status} {} {}", tx.id, block.tip.time_ms));
                if told.creator_paid {
                    events.push(format!("creator_paid {} {}", tx.id, block.tip.time_ms));
                }
                owed = status == "withdrawn" && !told.creator_paid;
            }
        }
        Some(format!("{payment} {status} {} {}", u8::from(owed), events.join(", ")))
    }

    /// A purchase in the API, and whether its creator is to be paid.
    fn shown(&self, id: &TxHash) -> String {
        let shown = block(purchase::one(&self.db, id)).unwrap().unwrap();
        let events = shown.events.iter().map(|event| format!("{} {} {}", event.status, event.tx_hash, event.at));
        let events: Vec<String> = events.collect();
        let due = one(
            &self.db,
            &format!("SELECT CAST(coalesce((SELECT creator_due FROM escrows WHERE purchase_id = '{id}'), 0) AS TEXT)"),
        );
        format!("{id} {} {due} {}", shown.status.name(), events.join(", "))
    }

    fn stored(&self) -> Vec<String> {
        let ids: Vec<TxHash> = block(self.db.fetch(sql::read!("SELECT id FROM purchases"))).unwrap();
        let mut purchases: Vec<String> = ids.iter().map(|id| self.shown(id)).collect();
        purchases.sort();
        purchases
    }

    /// Sales and reputation by seller: as stored, and as counted from the chain.
    fn figures(&self) -> (String, String) {
        let kept = one(
            &self.db,
            "SELECT group_concat(l.id || ' ' || l.sales || ' ' || s.withdrawn || ' ' || s.refunded, ', ') \
             FROM (SELECT * FROM listings ORDER BY seq) AS l JOIN sellers s ON s.address = l.seller_address",
        );
        let statuses: Vec<(usize, String)> = self
            .payments
            .iter()
            .filter_map(|payment| Some((payment.1, self.history(payment)?.split(' ').nth(1).unwrap().to_owned())))
            .collect();
        let counted = (0..self.listings.len()).map(|listing| {
            let (id, seller) = &self.listings[listing];
            let sales = statuses.iter().filter(|(of, status)| *of == listing && status != "refunded").count();
            let ended = |wanted: &str| {
                statuses.iter().filter(|(of, status)| self.listings[*of].1 == *seller && status == wanted).count()
            };
            format!("{} {sales} {} {}", id.as_str(), ended("withdrawn"), ended("refunded"))
        });
        (kept, counted.collect::<Vec<_>>().join(", "))
    }
}

/// An output of a transaction whose id is not known yet.
fn output(address: String, lovelace: u64, inline_datum: Option<Vec<u8>>) -> Utxo {
    Utxo {
        reference: TxRef { tx: TxHash::new([0; 32]), index: 0 },
        address,
        value: Money { lovelace: Lovelace::new(lovelace).unwrap(), ..Money::default() },
        inline_datum,
        datum_hash: None,
        reference_script: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    #[ignore = "takes long: make load runs it"]
    fn the_database_equals_the_chain_after_any_events(events in proptest::collection::vec(event(), 1..90)) {
        let mut world = World::new();
        for event in &events {
            world.happens(event);
            prop_assert_eq!(out_of_step(&world.db), "", "after {:?}", event);
        }
        world.settle();
        prop_assert_eq!(world.stored(), world.chain_has());
        let (kept, counted) = world.figures();
        prop_assert_eq!(kept, counted);
    }
}

#[test]
fn a_provider_that_shows_another_chain_undoes_nothing() {
    let mut world = World::new();
    world.pay(0, 0, true, 1_000);
    for _ in 0..140 {
        world.ledger.mine();
        world.tick(u32::MAX, u32::MAX, 0);
    }
    let known = world.stored();
    assert_eq!(known.len(), 1);
    let own = std::mem::replace(&mut world.ledger, Ledger::elsewhere(200));
    world.tick(u32::MAX, u32::MAX, 0);
    assert_eq!(world.stored(), known);
    world.ledger = own;
    world.settle();
    assert_eq!(world.stored(), world.chain_has());
}

#[test]
fn a_creator_is_due_only_while_the_sale_is_won() {
    let mut world = World::new();
    world.pay(0, 0, true, 1_000);
    world.settle();
    let due = |world: &World| one(&world.db, "SELECT CAST(creator_due AS TEXT) FROM escrows");
    for action in [Action::SubmitResult, Action::SetRefundRequested, Action::WithdrawDisputed] {
        world.does(action, 0);
        world.settle();
    }
    assert_eq!(world.stored(), world.chain_has());
    assert_eq!(due(&world), "1");
    let lock = world.payments[0].0;
    world.sends(Kind::Payout, &format!("payout:{lock}"), vec![lock]);
    assert_eq!(due(&world), "1", "it is pending");
    world.settle();
    assert_eq!(due(&world), "0");
    world.forks(SETTLED_BLOCKS, 0);
    world.tick(u32::MAX, u32::MAX, 0);
    assert_eq!(due(&world), "1", "a rollback took the payout");
    world.forks(2 * SETTLED_BLOCKS + 2, 0);
    world.tick(u32::MAX, u32::MAX, 0);
    assert_eq!(due(&world), "0", "and the sale's end: no payout is due for it");
}

#[test]
fn a_rollback_takes_back_a_refund_and_the_purchase_that_came_after_it() {
    let mut world = World::new();
    world.pay(0, 0, true, 1_000);
    world.settle();
    world.does(Action::WithdrawRefund, 0);
    world.settle();
    world.pay(0, 0, true, 1_000);
    world.settle();
    assert_eq!(world.stored().len(), 2);
    for (blocks, coins, left) in [(2 * SETTLED_BLOCKS, u64::MAX, 2), (2 * SETTLED_BLOCKS, 0, 2)] {
        world.forks(blocks, coins);
        world.settle();
        assert_eq!(world.stored().len(), left);
        assert_eq!(world.stored(), world.chain_has());
    }
    let (kept, counted) = world.figures();
    assert_eq!(kept, counted);
}

#[test]
fn payments_that_never_confirm_delay_no_action_of_the_watcher() {
    let mut world = World::new();
    for payer in 0..20 {
        world.pay(0, payer, false, 2);
    }
    world.ledger.mempool.borrow_mut().clear();
    let action = world.sends(Kind::Payout, "payout:of a sale", vec![]);
    world.ledger.mine();
    world.tick(u32::MAX, u32::MAX, 0);
    assert_eq!(entry(&world.db, &action).state, EntryState::Included);
}
