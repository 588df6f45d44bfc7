//! A worker has 128 MB for all its requests: what is read of a wallet's last hour takes little, however many tokens its change
//! carried from one purchase to the next.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

mod support;

use cardano::chain::Utxo;
use market::{account, claim::Claim};
use outbox::{Decision, WalletSnapshot, snapshot};
use peak_alloc::PeakAlloc;
use sql::{Database, exactly, sqlite::Sqlite};
use support::{NOON, block, given, inclusion, list, paying_for, payment, reread, sign_up, step, token};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const ADA: u64 = 1_000_000;
/// As many as one payment may spend, and a few less.
const TOKENS: u32 = 900;
/// Purchases of the last hour, an ADA each.
const PAST: u8 = 100;

/// One test, for the peak is the whole program's.
#[test]
fn a_wallets_last_hour_takes_little_whatever_its_change_carried() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (_, key) = sign_up(&db, 1, NOON);
    let limits = account::limits(100, 500).unwrap();
    assert!(block(account::set_limits(&db, &token(1), limits, NOON)).unwrap());
    let account = reread(&db, 1, NOON);
    let mut coin = given(&account, 200, 600 * ADA);
    coin.value.assets = (0..TOKENS).map(|name| (format!("{}{name:04x}", "42".repeat(28)), 1)).collect();
    let mut utxos: Vec<Utxo> = vec![coin];
    let mut fees = 0;
    for number in 1..=PAST {
        let listing = list(&db, number, ADA);
        let built = payment(&account, &key, &utxos, ADA, 1_000_000);
        let paying = paying_for(&account, &listing, &built, ADA);
        assert!(matches!(paying.claim(&db, NOON), Claim::New(_)));
        assert!(step(&db, &paying.tx(), &Decision::Accept));
        assert!(step(&db, &paying.tx(), &Decision::Include(inclusion(u64::from(number)))));
        fees += built.facts.fee.get();
        // All that is left, for the next.
        utxos = built.facts.change;
    }
    let wallet = account.wallet_address;
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let began = std::time::Instant::now();
    let rows = exactly(block(db.batch(snapshot(&wallet, 0, NOON).into())).unwrap()).unwrap();
    let known = WalletSnapshot::read(&wallet, &rows).unwrap();
    let took = began.elapsed();
    let (held, peak) = (ALLOCATOR.current_usage() - before, ALLOCATOR.peak_usage() - before);
    println!(
        "{PAST} purchases with {TOKENS} tokens in change, {} tADA of fees: {} KiB held by each request, {} at the peak, read in {took:?}",
        fees / ADA,
        held >> 10,
        peak >> 10,
    );
    let free: Vec<_> = known.spendable(&[]).iter().map(|utxo| utxo.reference).collect();
    assert!(utxos.iter().all(|utxo| free.contains(&utxo.reference)), "the last change may be spent");
    assert!(held <= 2 << 20, "{held} bytes");
}
