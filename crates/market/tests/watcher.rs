//! The watcher against strangers, hostile buyers, concurrent ticks and its own failures: sales reach their end in time.
//!
//! On a chain in memory, where transactions are built and decoded, but scripts are not run.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::cell::Cell;

use crate::support::{
    NOON, block, entry, fresh_escrow,
    interrupted::Interrupted,
    ledger::Tx,
    one, out_of_step, person,
    sales::{Sales, creator, output, run},
    sign_up, step,
};
use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Inclusion, Tip},
    tx::transaction_id,
};
use escrow::Action;
use market::{
    DeliveryMode,
    purchase::{self, Verification},
    watch::Report,
};
use outbox::{Decision, Entry, EntryState};
use sql::{Database, DatabaseError, One, Statement, sqlite::Sqlite};

/// Transactions of strangers at the escrow's address: as many as twenty ticks could read.
const FLOOD: u32 = 420;

fn paid_to_creator(sales: &Sales) -> usize {
    let to = creator().to_string();
    sales.ledger.unspent().into_iter().filter(|utxo| utxo.address == to).count()
}

fn acted(reports: &[Report], what: &str) -> usize {
    reports.iter().flat_map(|report| &report.acted).filter(|acted| acted.starts_with(what)).count()
}

/// The entry of this kind that acts on a purchase.
fn acting(sales: &Sales, purchase: &TxHash, kind: &str) -> Entry {
    let id = one(
        &sales.db,
        &format!(
            "SELECT tx_id FROM outbox JOIN outbox_purchases USING (tx_id) WHERE purchase_id = '{purchase}' \
             AND kind = '{kind}' ORDER BY created_at_ms DESC LIMIT 1"
        ),
    );
    entry(&sales.db, &id.parse().unwrap())
}

#[test]
fn a_sale_is_brought_to_its_end_and_its_creator_is_paid() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    let reports = sales.ticks(3);
    assert_eq!(sales.status(&lock), "ResultSubmitted", "{reports:#?}");
    sales.until(32);
    let more = sales.ticks(2);
    assert_eq!(sales.status(&lock), "withdrawn", "{more:#?}");
    assert_eq!(paid_to_creator(&sales), 1);
    let calls = sales.tick_calls.take();
    assert!(calls.iter().sum::<u32>() <= 31, "{calls:?} calls in five ticks");
}

#[test]
fn a_collection_shows_from_when_a_node_took_it_until_its_step_is_recorded() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.until(32);
    sales.ticks(1);
    assert_eq!(sales.status(&lock), "withdrawing");
    sales.ledger.mine();
    let meanwhile = std::cell::RefCell::new(None);
    sales.tick_on(&Interrupted::before(&sales.db, "INSERT INTO escrow_steps", || {
        meanwhile.replace(Some((acting(&sales, &lock, "collect").state, sales.status(&lock))));
    }));
    assert_eq!(meanwhile.into_inner(), Some((EntryState::Included, "withdrawing".to_owned())));
    assert_eq!(sales.status(&lock), "withdrawn");
}

#[test]
fn an_action_that_changes_nothing_of_its_sale_writes_no_row_of_it() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    sales.tick();
    let result = acting(&sales, &lock, "result").tx;
    run(&sales, &format!("UPDATE outbox SET state = 'claimed' WHERE tx_id = '{result}'"));
    let rows = || one(&sales.db, "SELECT CAST(total_changes() AS TEXT)").parse::<u64>().unwrap();
    let before = rows();
    assert!(step(&sales.db, &result, &Decision::Accept));
    assert_eq!(rows() - before, 1, "its own");
}

#[test]
fn a_flood_at_the_escrows_address_hides_no_step_and_costs_no_deadline() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    for number in 0..FLOOD {
        sales.puts(&[sales.escrow_of(&fresh_escrow(100_000 + number))]);
    }
    sales.does(&lock, Action::SetRefundRequested);
    let reports = sales.ticks(4);
    assert_eq!(sales.status(&lock), "Disputed", "the result was still posted: {reports:#?}");
    let calls = sales.tick_calls.take();
    assert!(calls.iter().all(|calls| *calls <= 30), "{calls:?} {reports:#?}");
}

#[test]
fn a_lock_whose_buyer_left_is_found_in_time_behind_floods() {
    let sales = Sales::new();
    for number in 0..60 {
        sales.pays_in_vain(&person(100 + number), DeliveryMode::Instant, 900);
    }
    sales.ledger.mine();
    for number in 0..FLOOD {
        sales.puts(&[sales.escrow_of(&fresh_escrow(300_000 + number))]);
    }
    let lock = sales.sell(&person(11));
    let reports = sales.ticks(4);
    assert_eq!(sales.status(&lock), "ResultSubmitted", "{reports:#?}");
}

#[test]
fn a_row_that_cannot_be_deleted_delays_no_sale() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    // An inconsistency that an operator may leave: an ended entry that still reserves an output.
    run(
        &sales,
        "INSERT INTO outbox (tx_id, kind, purpose, cbor, state, valid_until_slot, attempts, provenance, attempted_at_ms, \
           created_at_ms) VALUES (printf('%064d', 7), 'payment', 'left', '', 'expired', 1, 1, 'foreign', 0, 0)",
    );
    run(&sales, "INSERT INTO reservations VALUES ('payer:left', printf('%064d', 7), NULL)");
    let reports = sales.ticks(3);
    assert_eq!(sales.status(&lock), "ResultSubmitted", "{reports:#?}");
    assert!(reports.iter().all(|report| report.notes.iter().any(|note| note.contains("FOREIGN KEY"))), "{reports:#?}");
}

/// Runs a tick after a block. Returns whether it succeeded.
fn ticked(sales: &Sales) -> bool {
    sales.ledger.mine();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sales.tick())).is_ok()
}

#[test]
fn a_database_filled_by_strangers_has_room_again_when_their_rows_expire() {
    let sales = Sales::new();
    sales.ticks(1);
    // Nearly of the maximum size. The pragma returns a number instead of text.
    let pages: u32 = one(&sales.db, "SELECT CAST(page_count + 300 AS TEXT) FROM pragma_page_count()").parse().unwrap();
    drop(block(sales.db.fetch::<One<u32>>(sql::read!(format!("PRAGMA max_page_count = {pages}")))));
    // Registrations of every length, which are kept for a day.
    let kept_until = NOON + 24 * 60 * 60 * 1_000;
    for bytes in [8_000, 1_000, 100, 10] {
        let register = format!(
            "INSERT INTO oauth_clients SELECT 'client_' || (SELECT count(*) FROM oauth_clients), \
               json_quote(printf('%.*c', {bytes}, 'x')), {kept_until}"
        );
        while block(sales.db.execute::<()>(sql::write!(register.clone()))).is_ok() {}
    }
    // Each inserts a row, until there is no room left.
    assert!((0..200).any(|_| !ticked(&sales)), "the database has no more room");
    sales.until(25 * 60);
    sales.tick_number.set(2);
    assert!((0..3).any(|_| ticked(&sales)), "a day later all that filled it is over");
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM oauth_clients"), "0");
}

#[test]
fn unreadable_foreign_transactions_delay_no_sale() {
    let sales = Sales::new();
    let (known, hidden) = (sales.sell(&person(11)), sales.sell(&person(12)));
    sales.ticks(3);
    let unreadable: Vec<TxHash> = (0..9).map(|n| sales.puts(&[sales.escrow_of(&fresh_escrow(200_000 + n))])).collect();
    let by = sales.does(&hidden, Action::SetRefundRequested);
    sales.ledger.withheld.borrow_mut().extend(unreadable.into_iter().chain([by]));
    sales.does(&known, Action::SetRefundRequested);
    let reports = sales.ticks(6);
    assert_eq!(sales.status(&known), "Disputed", "{reports:#?}");
    assert_eq!(sales.status(&hidden), "ResultSubmitted", "no result for it was read");
    assert_eq!(reports.iter().map(|report| report.skipped).max(), Some(10), "all at once");
    let later = sales.sell(&person(13));
    sales.ticks(3);
    assert_eq!(sales.status(&later), "ResultSubmitted");
    sales.ledger.withheld.borrow_mut().clear();
    sales.ticks(6);
    assert_eq!(sales.status(&hidden), "Disputed", "what could not be read was asked for again");
}

#[test]
fn a_transaction_that_the_provider_withholds_is_requested_for_a_day_at_most() {
    let sales = Sales::new();
    sales.ticks(1);
    let never = sales.puts(&[sales.escrow_of(&fresh_escrow(200_000))]);
    sales.ledger.withheld.borrow_mut().insert(never);
    let left = || one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM chain_unread");
    sales.ticks(1);
    assert_eq!(left(), "1");
    for hour in 1..=26 {
        sales.until(hour * 60);
        sales.tick();
    }
    assert_eq!(left(), "0");
}

#[test]
fn a_withheld_transaction_is_requested_again_after_a_day_without_ticks() {
    let sales = Sales::new();
    sales.ticks(1);
    let late = sales.puts(&[sales.escrow_of(&fresh_escrow(200_000))]);
    sales.ledger.withheld.borrow_mut().insert(late);
    sales.until(26 * 60);
    sales.ticks(3);
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM chain_unread"), "1");
}

/// A Byron address of the maximum size. The ledger limits the bytes of unknown attributes
/// (`bootstrapAddressAttrsSize`), not their number.
fn longest_byron_address() -> Vec<u8> {
    let mut address = vec![0x83, 0x58, 28];
    address.extend([7; 28]);
    address.extend([0xb8, 255]);
    for key in (0..=255_u8).filter(|key| *key != 1) {
        address.extend(if key < 24 { vec![key] } else { vec![0x18, key] });
        address.extend(if key == 2 { vec![0x41, 1] } else { vec![0x40] });
    }
    address.push(0);
    let crc = address.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1)))
    });
    let length = u16::try_from(address.len()).unwrap().to_be_bytes();
    [vec![0x82, 0xd8, 24, 0x59], length.to_vec(), address, vec![0x1a], (!crc).to_be_bytes().to_vec()].concat()
}

/// A transaction whose collateral return goes to this address. No script sees that output; a transaction with scripts
/// may have a Byron address only there.
fn with_collateral_return(tx: &Tx, to: &[u8]) -> Tx {
    let length = u16::try_from(to.len()).unwrap().to_be_bytes();
    let collateral = [&[13, 0x81, 0x82, 0x58, 32][..], &[0xfa; 32], &[0x19, 0xff, 0xff]].concat();
    let rest = [&[16, 0x82, 0x59][..], &length, to, &[0x1a, 0, 0x4c, 0x4b, 0x40]].concat();
    with_fields(tx, &[collateral, rest])
}

/// A transaction with these fields appended to its body.
fn with_fields(tx: &Tx, fields: &[Vec<u8>]) -> Tx {
    let body_end = tx.cbor.len() - 3;
    let mut cbor = [&tx.cbor[..body_end], &fields.concat(), &tx.cbor[body_end..]].concat();
    cbor[1] += u8::try_from(fields.len()).unwrap();
    let id = transaction_id(&cbor).unwrap();
    let mut utxos = tx.utxos.clone();
    utxos.id = id;
    utxos.created.iter_mut().for_each(|made| made.reference = TxRef { tx: id, ..made.reference });
    Tx { id, cbor, utxos, valid_until: tx.valid_until }
}

#[test]
fn a_step_with_any_collateral_return_address_is_followed() {
    // The ledger accepts any encoding of the length of a Byron address's list; other address formats are unknown.
    let wide = [&[0x98, 0x02][..], &longest_byron_address()[1..]].concat();
    for address in [longest_byron_address(), wide[..100].to_vec(), wide, vec![0xa2; 300]] {
        let sales = Sales::new();
        let lock = sales.sell(&person(11));
        sales.ledger.mine();
        let plain = sales.does(&lock, Action::SetRefundRequested);
        let plain = sales.ledger.mempool.borrow_mut().pop().filter(|tx| tx.id == plain).unwrap();
        assert!(sales.ledger.add_to_mempool(with_collateral_return(&plain, &address)));
        let reports = sales.ticks(20);
        assert_eq!(sales.status(&lock), "Disputed", "its result is posted: {reports:#?}");
    }
}

fn raises_an_alarm(field: Vec<u8>, why: &str) {
    let sales = Sales::new();
    let (hidden, known) = (sales.sell(&person(11)), sales.sell(&person(12)));
    sales.ticks(3);
    let plain = sales.does(&hidden, Action::SetRefundRequested);
    let plain = sales.ledger.mempool.borrow_mut().pop().filter(|tx| tx.id == plain).unwrap();
    let odd = with_fields(&plain, &[field]);
    let id = odd.id;
    assert!(sales.ledger.add_to_mempool(odd));
    sales.ledger.mine();
    sales.does(&known, Action::SetRefundRequested);
    let mut reports = sales.ticks(6);
    assert_eq!(sales.status(&known), "Disputed");
    sales.until(60);
    reports.extend(sales.ticks(3));
    let mut alarms = reports.iter().flat_map(|report| &report.alarms);
    assert!(alarms.any(|alarm| alarm.message.contains(&id.to_string()) && alarm.message.contains(why)), "{reports:#?}");
}

#[test]
fn an_unreadable_step_raises_an_alarm_and_delays_no_other() {
    let text_for_a_slot = vec![8, 0x61, b'a'];
    raises_an_alarm(text_for_a_slot, "validity start");
    // As if a future field had inputs: none of its known inputs is an escrow of ours.
    let other_inputs = [&[0, 0x81, 0x82, 0x58, 32][..], &[0xfa; 32], &[0x19, 0xff, 0xff]].concat();
    raises_an_alarm(other_inputs, "does not name the output that it spent");
}

#[test]
fn a_step_that_precedes_our_action_is_recorded_and_the_action_given_up() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    let report = sales.tick();
    assert_eq!(acted(&[report], "result"), 1);
    let ours = acting(&sales, &lock, "result");
    sales.ledger.mempool.borrow_mut().clear();
    sales.does(&lock, Action::SetRefundRequested);
    sales.ticks(2);
    assert_eq!(entry(&sales.db, &ours.tx).state, EntryState::Refused);
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "Disputed", "the result was posted to what it became");
}

/// A payout was made, and a rollback undid the award before it. The collection of that sale then pays the creator
/// nothing; together with another sale of the same creator, the other's payment would count for it.
#[test]
fn a_collection_that_pays_no_creator_shares_no_transaction() {
    let sales = Sales::new();
    let locks: Vec<TxHash> = (11..14).map(|buyer| sales.sell(&person(buyer))).collect();
    sales.ticks(2);
    run(
        &sales,
        &format!(
            "INSERT INTO outbox (tx_id, kind, purpose, cbor, state, valid_until_slot, attempts, provenance, attempted_at_ms, \
               created_at_ms) VALUES (printf('%064d', 7), 'payout', 'payout:{}', '', 'expired', 0, 1, 'ours', 0, 0)",
            locks[0]
        ),
    );
    sales.until(32);
    let ticks = sales.ticks(3);
    assert_eq!(acted(&ticks, "collect"), 2, "one alone, the others together");
    for lock in &locks {
        assert_eq!(sales.status(lock), "withdrawn");
    }
}

/// A buyer acts first, among five whose results are posted together. That happens behind a flood at the escrow's
/// address, while so many locks never confirm.
fn overtakes(in_vain: u8) {
    let sales = Sales::new();
    let locks: Vec<TxHash> = (11..16).map(|number| sales.sell_another(&person(number))).collect();
    sales.ledger.mine();
    for number in 0..FLOOD {
        sales.puts(&[sales.escrow_of(&fresh_escrow(100_000 + number))]);
    }
    sales.ledger.mine();
    assert_eq!(acted(&[sales.tick()], "result"), 1, "all together");
    // A buyer's action is included that the provider's node had not seen.
    sales.ledger.mempool.borrow_mut().clear();
    for number in 0..in_vain {
        sales.pays_in_vain(&person(100 + number), DeliveryMode::Protected, 240);
    }
    sales.does(&locks[0], Action::SetRefundRequested);
    let minute = || (0..3).for_each(|_| sales.ledger.mine());
    minute();
    let report = sales.tick();
    assert!(acted(&[report], "result") > 0, "a minute later, not when its time is over");
    minute();
    sales.tick();
    let statuses: Vec<String> = locks.iter().map(|lock| sales.status(lock)).collect();
    assert_eq!(statuses, ["Disputed", "ResultSubmitted", "ResultSubmitted", "ResultSubmitted", "ResultSubmitted"]);
}

#[test]
fn a_step_that_overtakes_a_result_behind_a_flood_delays_no_other_result() {
    overtakes(0);
}

#[test]
fn a_step_that_overtakes_a_result_behind_failed_locks_delays_no_other_result() {
    overtakes(14);
}

#[test]
fn a_step_that_overtakes_a_result_delays_no_result_paid_from_its_change() {
    let sales = Sales::new();
    sales.fund(1_000);
    let locks: Vec<TxHash> = (11..19).map(|number| sales.sell_another(&person(number))).collect();
    sales.ledger.mine();
    let platform = sales.platform.seller.enterprise_address().to_string();
    let kept = std::cell::Cell::new(None);
    sales.lose(|utxo| utxo.address == platform && kept.replace(kept.get().or(Some(utxo.reference))).is_some());
    assert_eq!(acted(&[sales.tick()], "result"), 2);
    let posted = std::mem::take(&mut *sales.ledger.mempool.borrow_mut());
    assert!(posted[1].utxos.spent.iter().any(|input| input.tx == posted[0].id), "of its change");
    let in_first = |lock: &&TxHash| posted[0].utxos.spent.iter().any(|input| input.tx == **lock);
    let overtaking = *locks.iter().find(in_first).unwrap();
    sales.does(&overtaking, Action::SetRefundRequested);
    for _ in 0..2 {
        (0..3).for_each(|_| sales.ledger.mine());
        sales.tick();
    }
    for lock in &locks {
        let expected = if *lock == overtaking { "Disputed" } else { "ResultSubmitted" };
        assert_eq!(sales.status(lock), expected, "two minutes later, not when its time is over");
    }
}

#[test]
fn a_block_from_the_future_does_not_move_the_chain_clock() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    let clock = || one(&sales.db, "SELECT CAST(tip_time_ms AS TEXT) FROM chain_state");
    let before = clock();
    let Tip { time_ms, height, .. } = sales.ledger.tip();
    sales.ledger.mine();
    let forged =
        Tip { time_ms: time_ms + 30 * 86_400_000, slot: 900_000_000, height: height + 1, ..sales.ledger.tip() };
    let real = std::mem::replace(&mut sales.ledger.blocks.borrow_mut().last_mut().unwrap().tip, forged);
    let report = sales.tick_at(&sales.db, real.time_ms);
    assert_eq!(report.alarms.len(), 1, "{report:?}");
    assert_eq!((clock(), sales.status(&lock)), (before, "ResultSubmitted".to_owned()));
    sales.ledger.blocks.borrow_mut().last_mut().unwrap().tip = real;
    let reports = sales.ticks(1);
    assert_eq!(reports[0].alarms, []);
    assert!(!reports[0].rolled_back);
}

#[test]
fn purchases_that_their_buyers_judge_before_each_tick_delay_no_other() {
    let sales = Sales::new();
    let (account, key) = sign_up(&sales.db, 1, NOON);
    let mut sales = sales;
    sales.platform.wallets.push(key.clone());
    let mut judged: Vec<TxHash> = vec![];
    for _ in 0..2 {
        judged.extend((0..12).map(|_| {
            let lock = sales.sell_another(&key);
            sales.ledger.mine();
            lock
        }));
        sales.ticks(6);
    }
    assert_eq!(key.enterprise_address(), account.wallet_address);
    let judge = |verdict| {
        for lock in &judged {
            block(purchase::verify(&sales.db, lock, verdict)).unwrap();
        }
    };
    let other = sales.sell(&person(13));
    let mut reports = vec![];
    for _ in 0..4 {
        judge(Verification::Ok);
        judge(Verification::Mismatch);
        reports.extend(sales.ticks(1));
    }
    assert_eq!(sales.status(&other), "ResultSubmitted", "{reports:#?}");
}

#[test]
fn escrows_of_foreign_keys_delay_no_other() {
    let sales = Sales::new();
    let strangers: Vec<TxHash> = (0..140)
        .map(|number| {
            let lock = sales.sell(&person(u8::try_from(30 + number).unwrap()));
            if number % 20 == 0 {
                sales.ledger.mine();
            }
            // More than are accepted while they wait for results.
            run(&sales, "UPDATE payments SET mode = 'instant'");
            lock
        })
        .collect();
    let own = sales.sell(&person(11));
    run(&sales, "UPDATE payments SET mode = 'protected'");
    sales.ledger.mine();
    for lock in &strangers {
        sales.includes(lock);
    }
    // Their seller is a stranger.
    let datum =
        hex::encode(escrow::Datum { seller: person(9).enterprise_address().into(), ..fresh_escrow(1) }.to_cbor());
    run(&sales, &format!("UPDATE escrows SET datum = '{datum}'"));
    sales.includes(&own);
    sales.tick();
    sales.ticks(1);
    assert_eq!(sales.status(&own), "ResultSubmitted");
}

/// The worst case for results: each buyer acts on the escrow in a block before the result.
#[test]
fn the_most_results_that_may_wait_are_posted_in_time() {
    let sales = Sales::new();
    (0..2).for_each(|_| sales.fund(1_000));
    let locks: Vec<TxHash> = (0..20).map(|number| sales.sell_another(&person(20 + number))).collect();
    let mut fresh = locks.clone();
    for _ in 0..15 {
        (0..3).for_each(|_| sales.ledger.mine());
        sales.tick();
        let pending = std::mem::take(&mut *sales.ledger.mempool.borrow_mut());
        let spends = |tx: &Tx, lock: &TxHash| tx.utxos.spent_by_script.iter().any(|input| input.tx == *lock);
        let (first, others): (Vec<TxHash>, _) =
            fresh.iter().partition(|lock| pending.iter().any(|tx| spends(tx, lock)));
        fresh = others;
        for lock in &first {
            sales.does(lock, Action::SetRefundRequested);
        }
        for tx in pending {
            sales.ledger.add_to_mempool(tx);
        }
    }
    assert!(fresh.is_empty());
    sales.ticks(1);
    let late = locks.iter().filter(|lock| ["FundsLocked", "RefundRequested"].contains(&sales.status(lock).as_str()));
    assert_eq!(late.count(), 0);
}

/// At each tick, this many buyers of due escrows have an action in the mempool, which evaluation does not see.
fn late_results(poison: usize, outputs: usize) -> usize {
    let sales = Sales::new();
    sales.ledger.evaluates_blocks.set(true);
    (0..outputs).for_each(|_| sales.fund(1_000));
    let locks: Vec<TxHash> = (0..20).map(|number| sales.sell_another(&person(20 + number))).collect();
    sales.ledger.mine();
    let mut sorted = locks.clone();
    sorted.sort();
    let mut stepped: Vec<TxHash> = vec![];
    let due = "SELECT coalesce(group_concat(purchase_id), '') FROM (SELECT purchase_id FROM escrows WHERE result_hash IS NULL \
         ORDER BY submit_result_ms, purchase_id)";
    for _ in 0..12 {
        (0..3).for_each(|_| sales.ledger.mine());
        let waiting = one(&sales.db, due);
        let waiting: Vec<TxHash> = waiting.split(',').filter_map(|id| id.parse().ok()).collect();
        let waiting = if waiting.is_empty() && stepped.is_empty() { sorted.clone() } else { waiting };
        let next = waiting.chunks(5).filter_map(|five| {
            five.iter().find(|lock| !stepped.contains(lock) && !sales.escrow(lock).datum.has_result())
        });
        let next: Vec<TxHash> = next.take(poison).copied().collect();
        for lock in next {
            sales.does(&lock, Action::SetRefundRequested);
            stepped.push(lock);
        }
        sales.tick();
    }
    sales.ticks(2);
    locks.iter().filter(|lock| ["FundsLocked", "RefundRequested"].contains(&sales.status(lock).as_str())).count()
}

#[test]
#[ignore = "takes long: make load runs it"]
fn results_are_posted_in_time_where_scripts_are_run_on_blocks_alone() {
    let late = [0, 1, 2].map(|poison| [0, 2, 6].map(|outputs| late_results(poison, outputs)));
    assert_eq!(late, [[0; 3]; 3], "0, 1, 2 buyers act at a tick, where the wallet has 2, 4, 8 outputs");
}

#[test]
fn a_refund_for_a_missing_result_alarms_before_and_after() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    sales.includes(&lock);
    // No money is left to pay for results.
    let all: Vec<_> = sales.ledger.unspent().into_iter().map(|utxo| utxo.reference).collect();
    let wallet = sales.platform.seller.enterprise_address().to_string();
    sales.lose(|utxo| utxo.address == wallet && all.contains(&utxo.reference));
    sales.until(12);
    let cried =
        |reports: &[Report], what: &str| reports.iter().flat_map(|it| &it.alarms).any(|it| it.message.contains(what));
    let reports = sales.ticks(15);
    assert!(cried(&reports, "its deadline is near"));
    assert!(cried(&reports, "in time: its refund"), "{reports:#?}");
    sales.does(&lock, Action::WithdrawRefund);
    assert!(cried(&sales.ticks(3), "was refunded because no result was posted in time"));
    assert_eq!(sales.status(&lock), "refunded");
}

#[test]
fn many_waiting_escrows_cost_few_statements() {
    let sales = Sales::new();
    let mut locks = Vec::new();
    for first in [20, 38, 56] {
        locks.extend((0..18).map(|number| sales.sell_another(&person(first + number))));
        sales.ticks(12);
    }
    let posted = locks.iter().filter(|lock| sales.status(lock) == "ResultSubmitted").count();
    assert!(posted >= 40, "{posted}");
    run(&sales, "UPDATE escrow_watch SET next_at_ms = 0");
    let before = sales.db.statements();
    let reports = sales.ticks(1);
    let statements = sales.db.statements() - before;
    assert!(statements <= 50, "{statements} {reports:#?}");
    let left = "SELECT CAST(count(*) AS TEXT) FROM escrows WHERE next_at_ms = 0 AND result_hash IS NOT NULL";
    assert_eq!(one(&sales.db, left), "0", "all are put aside");
}

#[test]
fn two_ticks_that_find_an_action_rolled_back_record_no_effect_of_it() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(2);
    sales.ledger.mine();
    sales.ledger.mine();
    sales.tick();
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    let posted = acting(&sales, &lock, "result").tx;
    let height = sales.ledger.inclusion(&posted).unwrap().height;
    let blocks = sales.ledger.blocks.borrow().len();
    sales.ledger.roll_back(blocks + 1 - usize::try_from(height).unwrap(), 0);
    (0..4).for_each(|_| sales.ledger.mine());
    // Both find that its block is gone; the other one records it first.
    let other = || drop(sales.tick());
    sales.tick_on(&Interrupted::before(&sales.db, "UPDATE outbox SET state = 'submitted', block_hash = NULL", other));
    assert_eq!(entry(&sales.db, &posted).state, EntryState::Submitted);
    assert_eq!(sales.status(&lock), "FundsLocked");
    sales.ticks(10);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    assert!(sales.ledger.inclusion(&acting(&sales, &lock, "result").tx).is_some());
}

#[test]
fn a_tick_begun_before_a_rollback_does_not_hide_another_ticks_reading() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(4);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    // Between the slow tick's read of the stored progress and its request for the newest block.
    let meanwhile = || {
        sales.does(&lock, Action::SetRefundRequested);
        sales.ledger.mine();
        sales.tick();
        assert_eq!(sales.status(&lock), "Disputed");
        sales.ledger.roll_back(1, 0);
        sales.ledger.mine();
        sales.ledger.mine();
    };
    sales.tick_on(&Interrupted::after(&sales.db, "SELECT rollbacks, height, position", meanwhile));
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
}

/// Every sale was won in a dispute, so the platform's wallet has to pay the creator.
fn won(sales: &Sales) {
    run(sales, "UPDATE escrow_steps SET status = 'withdrawn', utxo = NULL WHERE position = 1");
    run(sales, "UPDATE escrows SET utxo = NULL, creator_due = 1");
    run(sales, "UPDATE purchases SET status = 'withdrawn'");
}

/// Two sales that were won in a dispute, by number; only the creator of the second is known to be due. The platform's
/// wallet has outputs of these amounts in ADA, and nothing else.
fn two_won(coins: &[u32]) -> (Sales, [String; 2]) {
    let sales = Sales::new();
    let mut ids = [11, 12].map(|buyer| sales.sell(&person(buyer)).to_string());
    sales.ticks(3);
    won(&sales);
    let wallet = sales.platform.seller.enterprise_address().to_string();
    sales.lose(|utxo| utxo.address == wallet);
    coins.iter().for_each(|ada| sales.fund(*ada));
    ids.sort();
    run(&sales, &format!("UPDATE escrows SET creator_due = 0 WHERE purchase_id = '{}'", ids[0]));
    (sales, ids)
}

#[test]
fn a_creator_is_paid_once_though_the_payouts_block_is_shown_late() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    won(&sales);
    assert_eq!(acted(&sales.ticks(1), "payout"), 1);
    let payout = acting(&sales, &lock, "payout").tx;
    sales.ledger.unseen.borrow_mut().insert(payout);
    sales.ticks(30);
    assert_eq!((entry(&sales.db, &payout).state, paid_to_creator(&sales)), (EntryState::Expired, 1));
    sales.ledger.unseen.borrow_mut().clear();
    sales.ticks(2);
    assert_eq!((entry(&sales.db, &payout).state, paid_to_creator(&sales)), (EntryState::Included, 1));
}

#[test]
fn one_payout_transaction_is_credited_to_one_of_two_sales() {
    // Only the second tick knows of the first one.
    let (sales, ids) = two_won(&[50]);
    let second = || {
        run(&sales, &format!("UPDATE escrows SET creator_due = iif(purchase_id = '{}', 1, 0)", ids[0]));
        assert_eq!(acted(&[sales.tick()], "payout"), 1);
        run(&sales, "UPDATE escrows SET creator_due = 1");
    };
    let first = sales.tick_on(&Interrupted::before(&sales.db, "INSERT INTO outbox ", second));
    assert_eq!(acted(&[first], "payout"), 0, "the same transaction was written for the other sale");
    assert_eq!(
        one(
            &sales.db,
            "SELECT CAST(count(*) AS TEXT) FROM outbox_purchases JOIN outbox USING (tx_id) \
        WHERE kind = 'payout'"
        ),
        "1"
    );
    sales.ticks(4);
    assert_eq!(paid_to_creator(&sales), 2);
    for id in &ids {
        let events = block(purchase::one(&sales.db, &id.parse().unwrap())).unwrap().unwrap().events;
        assert_eq!(events.iter().filter(|event| event.status == "creator_paid").count(), 1, "{events:?}");
    }
}

#[test]
fn rows_of_refused_and_expired_payments_are_deleted() {
    let sales = Sales::new();
    let (refused, live) = (sales.sell(&person(11)), sales.sell(&person(12)));
    step(&sales.db, &refused, &Decision::Refuse("spent elsewhere".into()));
    sales.ledger.mempool.borrow_mut().retain(|tx| tx.id == live);
    sales.ticks(3);
    let days = |days: u64| {
        run(
            &sales,
            &format!(
                "UPDATE outbox SET valid_until_slot = valid_until_slot - {} WHERE tx_id = '{refused}'",
                days * 86_400
            ),
        );
    };
    let rows =
        |table: &str| one(&sales.db, &format!("SELECT CAST(count(*) AS TEXT) FROM {table} WHERE tx_id = '{refused}'"));
    assert_eq!((rows("payments"), rows("outbox")), ("1".into(), "1".into()));
    days(29);
    sales.ticks(1);
    assert_eq!((rows("payments"), rows("outbox")), ("1".into(), "1".into()), "its payer may still come back");
    days(2);
    run(&sales, &format!("UPDATE outbox SET reason = '{}' WHERE tx_id = '{refused}'", outbox::NOT_OUR_SUBMISSION));
    sales.ticks(1);
    assert_eq!((rows("payments"), rows("outbox")), ("1".into(), "1".into()), "a block has it");
    run(&sales, &format!("UPDATE outbox SET reason = 'spent elsewhere' WHERE tx_id = '{refused}'"));
    sales.ticks(1);
    assert_eq!((rows("payments"), rows("outbox")), ("0".into(), "0".into()));
    assert_eq!(sales.status(&live), "ResultSubmitted");
}

#[test]
fn rows_of_sign_ins_are_deleted_once_expired() {
    let sales = Sales::new();
    run(
        &sales,
        "INSERT INTO accounts (owner, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, created_at_ms) \
           VALUES ('owner', 'wallet', printf('%056d', 0), 1, 1000000, 1000000, 0)",
    );
    for (index, end) in [(1, NOON - 1), (2, NOON + 24 * 60 * 60 * 1_000)] {
        run(&sales, &format!("INSERT INTO sessions VALUES (printf('%064d', {index}), 'owner', {end})"));
        run(&sales, &format!("INSERT INTO challenge_claims VALUES (printf('%064d', {index}), '', {end})"));
    }
    sales.tick();
    for (key, table) in [("token_hash", "sessions"), ("digest", "challenge_claims")] {
        assert_eq!(one(&sales.db, &format!("SELECT group_concat({key}) FROM {table}")), format!("{:064}", 2));
    }
}

/// As many as a hundred networks create in a minute, within their rate limits.
#[test]
fn thirty_thousand_expired_sign_ins_are_deleted_in_one_tick() {
    let sales = Sales::new();
    let over = NOON - 1;
    run(
        &sales,
        &format!(
            "INSERT INTO challenge_claims WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 30000) \
             SELECT printf('%064d', n), '', {over} FROM n"
        ),
    );
    sales.tick();
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM challenge_claims"), "0");
}

#[test]
fn rows_of_strangers_agents_are_deleted_and_approved_ones_stay() {
    let sales = Sales::new();
    let day = 24 * 60 * 60 * 1_000;
    let client = |id: &str, kept_until: u64| {
        run(&sales, &format!("INSERT INTO oauth_clients VALUES ('{id}', '{{}}', {kept_until})"));
    };
    client("stranger", NOON - 1);
    client("approved", NOON - 1);
    client("new", NOON + day);
    run(
        &sales,
        "INSERT INTO accounts (owner, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, created_at_ms) \
           VALUES ('owner', 'wallet', printf('%056d', 0), 1, 1000000, 1000000, 0)",
    );
    let grant = |id: &str, client: &str, rotated: u64, revoked: &str| {
        run(
            &sales,
            &format!(
                "INSERT INTO oauth_grants VALUES (printf('%32s', '{id}'), printf('%32s', '{id}'), 'owner', '{client}', '', '', '', 'mcp', \
                   printf('%43d', 0), 'none', 1, {rotated}, 0, 0, NULL, NULL, {revoked})"
            ),
        );
    };
    grant("live", "approved", NOON, "NULL");
    grant("ended", "other", NOON, "1");
    grant("spent", "other", NOON, "1");
    grant("forgotten", "other", NOON - 101 * day, "NULL");
    sales.sell(&person(11));
    run(&sales, "INSERT INTO agent_spends SELECT tx_id, printf('%32s', 'spent') FROM payments");
    let request = |id: u64, grant: &str, until: u64| {
        run(
            &sales,
            &format!(
                "INSERT INTO purchase_requests VALUES (printf('%032d', {id}), 'owner', printf('%32s', '{grant}'), 'listing {id}', \
                   'instant', 1, NULL, NULL, 0, {until})"
            ),
        );
    };
    request(1, "live", NOON - 1);
    request(2, "live", NOON + day);
    request(3, "ended", NOON + day);
    run(
        &sales,
        &format!(
            "INSERT INTO oauth_documents VALUES ('old', '', 0, {}), ('kept', '', 0, {})",
            NOON - 31 * day,
            NOON - day
        ),
    );
    run(&sales, &format!("INSERT INTO oauth_assertions VALUES (printf('%064d', 1), printf('%032d', 1), {})", NOON - 1));
    run(&sales, "INSERT INTO daily_listing_usage VALUES (1, '', 5)");
    run(&sales, "INSERT INTO registered_days VALUES (1, '', 5)");
    sales.ticks(2);
    sales.tick_number.set(2);
    sales.ticks(2);
    let left = |column: &str, table: &str| {
        one(
            &sales.db,
            &format!("SELECT coalesce(group_concat(trim({column}), ' ' ORDER BY trim({column})), '') FROM {table}"),
        )
    };
    assert_eq!(left("id", "oauth_clients"), "approved new");
    assert_eq!(left("id", "oauth_grants"), "live");
    assert_eq!(left("tx_id", "agent_spends"), "");
    assert_eq!(left("url", "oauth_documents"), "kept");
    assert_eq!(left("listing_id", "purchase_requests"), "listing 2");
    assert_eq!(left("digest", "oauth_assertions"), "");
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM daily_listing_usage WHERE day = 1"), "0");
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM registered_days"), "0");
    assert_eq!(one(&sales.db, "SELECT CAST(kept_until_ms > 1 AS TEXT) FROM oauth_clients WHERE id = 'approved'"), "1");
}

#[test]
fn dust_at_the_platforms_wallet_is_gathered_while_it_acts() {
    let sales = Sales::new();
    let to = sales.platform.seller.enterprise_address().to_string();
    for _ in 0..40 {
        sales.puts(&[output(to.clone(), Lovelace::from_ada(2), None)]);
    }
    let dust = || {
        let small = |utxo: &cardano::chain::Utxo| utxo.address == to && utxo.value.lovelace < Lovelace::from_ada(5);
        sales.ledger.unspent().iter().filter(|utxo| small(utxo)).count()
    };
    sales.sell(&person(11));
    sales.ticks(3);
    assert_eq!(dust(), 37);
}

#[test]
fn a_creator_is_paid_once_beside_another_whose_payout_the_ledger_refused() {
    let (sales, ids) = two_won(&[20, 30]);
    assert_eq!(acted(&[sales.tick()], "payout"), 1);
    sales.ledger.stand_still();
    let first = acting(&sales, &ids[1].parse().unwrap(), "payout").tx;
    sales.ticks(14);
    // The input of the other payout is spent, although the provider does not show it.
    run(&sales, "UPDATE escrows SET creator_due = 1");
    sales.ticks(16);
    assert_eq!(entry(&sales.db, &first).state, EntryState::Expired);
    let all = one(
        &sales.db,
        &format!(
            "SELECT json_group_array(tx_id) FROM outbox_purchases JOIN outbox USING (tx_id) \
             WHERE kind = 'payout' AND purchase_id = '{}'",
            ids[1]
        ),
    );
    let blocks = sales.ledger.blocks.borrow();
    let paid = blocks.iter().flat_map(|block| &block.txs).filter(|tx| all.contains(&tx.id.to_string())).count();
    assert_eq!(paid, 1);
}

#[test]
fn payouts_that_wait_for_earlier_ones_delay_no_other_creator() {
    let sales = Sales::new();
    let mut ids: Vec<String> = (11..16).map(|buyer| sales.sell(&person(buyer)).to_string()).collect();
    ids.sort();
    sales.ticks(3);
    won(&sales);
    // For each but the last, more payouts were rejected than can be conflicted with.
    run(
        &sales,
        "INSERT INTO outbox (tx_id, kind, purpose, wallet, cbor, state, valid_until_slot, attempts, provenance, \
           attempted_at_ms, created_at_ms) \
         SELECT printf('%064d', row_number() OVER ()), 'payout', 'payout:' || e.purchase_id, o.wallet, o.cbor, 'expired', \
           o.valid_until_slot, 1, 'ours', o.attempted_at_ms, o.created_at_ms \
         FROM (SELECT purchase_id FROM escrows ORDER BY purchase_id LIMIT 4) e, json_each('[1,2,3,4,5,6,7,8,9]'), \
           (SELECT * FROM outbox WHERE kind = 'result' LIMIT 1) o",
    );
    assert_eq!(acted(&[sales.tick()], &format!("payout of {}", ids[4])), 1);
}

/// A disputed sale whose award is submitted.
fn settled() -> (Sales, TxHash) {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    sales.until(47);
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "Disputed");
    sales.settles(&lock);
    (sales, lock)
}

/// A database that fails for the first batches that write steps.
struct Away<'a>(&'a Sqlite, Cell<u32>);

impl Database for Away<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let writes = statements.iter().any(|statement| statement.sql.starts_with("INSERT INTO escrow_steps"));
        match self.1.get().checked_sub(1) {
            Some(left) if writes => {
                self.1.set(left);
                Err(DatabaseError("Network connection lost.".into()))
            }
            _ => self.0.run_statements(statements).await,
        }
    }
}

/// Whether a sale ends within a day, with its creator paid.
fn ends(sales: &Sales, lock: &TxHash) -> bool {
    (0..24 * 60).any(|_| {
        (0..2).for_each(|_| sales.ledger.mine());
        sales.ticks(1);
        sales.status(lock) == "withdrawn" && paid_to_creator(sales) == 1
    })
}

#[test]
fn an_award_missing_from_the_history_is_found_by_the_escrows_output() {
    for failures in [1, 2] {
        let (sales, lock) = settled();
        sales.ledger.mine();
        sales.tick_on(&Away(&sales.db, Cell::new(failures)));
        assert!(ends(&sales, &lock), "the database was away {failures} times: {}", sales.status(&lock));
    }
}

#[test]
fn a_dispute_missing_from_the_history_is_found_by_the_escrows_output() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    sales.tick_on(&Away(&sales.db, Cell::new(2)));
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    let found = (0..60).any(|_| {
        (0..2).for_each(|_| sales.ledger.mine());
        sales.ticks(1);
        sales.status(&lock) == "Disputed"
    });
    assert!(found, "{}", sales.status(&lock));
}

#[test]
pub fn an_award_behind_a_withheld_step_is_found() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    sales.ticks(1);
    sales.until(20);
    sales.tick();
    // While no tick runs, the buyer disputes again, and the arbiter settles.
    let again = sales.does(&lock, Action::SetRefundRequested);
    sales.until(47);
    sales.settles(&lock);
    sales.ledger.mine();
    sales.ledger.withheld.borrow_mut().insert(again);
    sales.tick();
    sales.ledger.withheld.borrow_mut().clear();
    assert!(ends(&sales, &lock), "{}", sales.status(&lock));
}

#[test]
fn a_creator_paid_for_a_rolled_back_award_is_not_paid_again_from_the_escrow() {
    let (sales, lock) = settled();
    assert_eq!(acted(&sales.ticks(1), "payout"), 1);
    sales.ticks(1);
    assert_eq!((sales.status(&lock).as_str(), paid_to_creator(&sales)), ("withdrawn", 1));
    // The payout is included again, and the buyer gives in before the settlement is.
    sales.ledger.roll_back(2, 0b10);
    sales.does(&lock, Action::AuthorizeWithdrawal);
    let reports = sales.ticks(8);
    assert_eq!(acted(&reports, "collect"), 1, "{reports:#?}");
    assert_eq!((sales.status(&lock).as_str(), paid_to_creator(&sales)), ("withdrawn", 1));
    assert_eq!(one(&sales.db, "SELECT CAST(creator_due AS TEXT) FROM escrows"), "0");
}

#[test]
fn a_payout_whose_input_was_rolled_back_is_made_again_after_the_longest_provider_lag() {
    let (sales, lock) = settled();
    let wallet = sales.platform.seller.enterprise_address().to_string();
    sales.ledger.mempool.borrow_mut().clear();
    sales.lose(|utxo| utxo.address == wallet);
    sales.settles(&lock);
    let before = sales.ledger.blocks.borrow().len();
    sales.fund(30);
    assert_eq!(acted(&sales.ticks(2), "payout"), 1);
    sales.ledger.mine();
    assert_eq!(paid_to_creator(&sales), 1);
    let gone = sales.ledger.blocks.borrow().len() - before;
    sales.ledger.roll_back(gone, 0);
    sales.fund(50);
    sales.settles(&lock);
    sales.ticks(60);
    assert_eq!((sales.status(&lock).as_str(), paid_to_creator(&sales)), ("withdrawn", 0));
    // The first one no longer conflicts with anything, and a provider may lag by an hour.
    let late = sales.now() + outbox::MAX_LATE_MS;
    while sales.now() < late {
        sales.ledger.mine();
    }
    sales.ticks(4);
    assert_eq!(paid_to_creator(&sales), 1);
}

#[test]
fn a_payout_owed_before_a_rollback_is_not_paid_beside_a_later_collection() {
    let (sales, lock) = settled();
    sales.ledger.mine();
    let meanwhile = || {
        sales.ledger.roll_back(1, 0);
        sales.does(&lock, Action::AuthorizeWithdrawal);
        sales.ledger.mine();
        // Small outputs, which pay for the collection: the two do not spend the same.
        sales.fund(4);
        let reports = [sales.tick()];
        assert_eq!(acted(&reports, "collect"), 1, "{reports:#?}");
    };
    let slow = sales.tick_on(&Interrupted::before(&sales.db, "INSERT INTO outbox ", meanwhile));
    assert_eq!(acted(&[slow], "payout"), 0);
    sales.ticks(8);
    assert_eq!((sales.status(&lock).as_str(), paid_to_creator(&sales)), ("withdrawn", 1));
}

#[test]
fn a_result_that_moved_to_another_block_shows_that_blocks_time() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    let result: TxHash =
        one(&sales.db, "SELECT tx_id FROM outbox WHERE kind = 'result' AND state = 'included'").parse().unwrap();
    let before = sales.ledger.inclusion(&result).unwrap();
    let moved = Inclusion { block: TxHash::new([7; 32]), time_ms: before.time_ms + 2_000, ..before };
    assert!(step(&sales.db, &result, &Decision::ChangeBlock(moved)));
    let at = one(&sales.db, &format!("SELECT CAST(at_ms AS TEXT) FROM escrow_steps WHERE tx_id = '{result}'"));
    assert_eq!(at, moved.time_ms.to_string());
}

#[test]
fn a_step_found_before_its_entrys_block_shows_that_blocks_time() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    let result = acting(&sales, &lock, "result");
    run(&sales, &format!("CREATE TEMP TABLE found AS SELECT * FROM escrow_steps WHERE tx_id = '{}'", result.tx));
    assert!(step(&sales.db, &result.tx, &Decision::Reopen));
    run(&sales, "INSERT INTO escrow_steps SELECT * FROM found");
    let before = result.block.unwrap();
    let moved = Inclusion { block: TxHash::new([7; 32]), time_ms: before.time_ms + 2_000, ..before };
    assert!(step(&sales.db, &result.tx, &Decision::Include(moved)));
    assert_eq!(out_of_step(&sales.db), "");
}
