//! Parsing an offer, a wallet's description or a wallet's recent payments takes little of the 128 MB that a worker has
//! for all requests.
//!
//! The allocator counts for the whole process, so this is a separate program that runs one test at a time.

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

use std::sync::{Mutex, MutexGuard, PoisonError};

use cardano::chain::Utxo;
use market::{
    account,
    cip30::{Cip30Wallet, WalletDescription},
    claim::Claim,
    listing::{MAX_CONTENT_BYTES, NewListing},
};
use outbox::{Decision, WalletSnapshot, snapshot};
use peak_alloc::PeakAlloc;
use sql::{Database, sqlite::Sqlite};
use support::{NOON, block, given, inclusion, list, paying_for, payment, reread, sign_up, step, token};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Returns a lock that only one test at a time can hold, because memory is measured for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum length of a body in bytes.
const BODY: usize = 6 * MAX_CONTENT_BYTES + (64 << 10);

/// Peak memory of parsing in bytes, in addition to the body; and the rejected field.
fn reading(body: &[u8]) -> (usize, Option<String>) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let read = NewListing::read(body, None);
    (ALLOCATOR.peak_usage() - before, read.err().and_then(|error| error.field))
}

fn offer(content: &str, more: &str) -> Vec<u8> {
    format!(
        r#"{{"title":"A hero","description":"y","priceLovelace":"1000000","modes":["instant"],
        "sellerAddress":"addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz","content":"{content}"{more}}}"#
    )
    .into_bytes()
}

#[test]
fn a_body_of_six_mebibytes_leaves_little_in_memory() {
    let _alone = alone();
    let mib = MAX_CONTENT_BYTES;
    let filled = |unit: &str| unit.repeat((BODY - 1_024) / unit.len());
    for (what, body, refused, most) in [
        ("a content of escapes", offer(&"\\u0061".repeat(mib), ""), None, 4 * mib),
        ("a content as it is", offer(&"x".repeat(mib), ""), None, 2 * mib),
        ("a content too long", offer(&"x".repeat(5 * mib), ""), Some("content"), mib),
        ("a content too long, of escapes", offer(&format!("\\n{}", filled("x")), ""), Some("content"), 17 * mib),
        ("a category of megabytes", offer("x", &format!(r#","category":"{}""#, filled("x"))), Some("category"), mib),
        ("unknown texts", offer("x", &format!(r#","more":"{}""#, filled("\\n"))), None, mib),
        ("unknown lists", offer("x", &format!(r#","more":[{}0]"#, filled("[],"))), None, mib),
        ("unknown objects", offer("x", &format!(r#","more":[{}0]"#, filled(r#"{"a":1},"#))), None, mib),
        ("texts in place of a text", offer("x", &format!(r#","category":[{}0]"#, filled("0,"))), Some("category"), mib),
        ("modes without end", format!(r#"{{"modes":[{}0]}}"#, filled(r#""x","#)).into_bytes(), Some("title"), mib),
        ("only brackets", filled("[").into_bytes(), Some("body"), mib),
        ("unknown brackets", offer("x", &format!(r#","more":{}"#, filled("["))), Some("body"), 17 * mib),
        ("fields without end", format!("{{{}}}", filled(r#""a":1,"#)).into_bytes(), Some("body"), mib),
    ] {
        assert!(body.len() <= BODY, "{what}: {} bytes", body.len());
        let (peak, field) = reading(&body);
        println!("{what}: {} KiB beside {} KiB", peak >> 10, body.len() >> 10);
        assert_eq!(field.as_deref(), refused, "{what}");
        assert!(peak <= most, "{what}: {peak} bytes");
    }
}

const ADDRESS: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

/// An output with so many tokens of one policy, in CIP-30's encoding.
fn laden(index: u16, tokens: u16) -> String {
    let address: cardano::Address = ADDRESS.parse().unwrap();
    let named: String = (0..tokens).map(|name| format!("42{name:04x}01")).collect();
    let input = format!("825820{}19{index:04x}", "00".repeat(32));
    format!(
        "82{input}82581d{}821a001e8480a1581c{}b9{tokens:04x}{named}",
        hex::encode(address.to_bytes()),
        "11".repeat(28)
    )
}

#[test]
fn a_wallet_full_of_tokens_leaves_little_in_memory() {
    let _alone = alone();
    for (what, outputs) in [
        ("one heap", vec![laden(0, 60_000)]),
        ("many objects", (0..490).map(|index| laden(index, 110)).collect::<Vec<_>>()),
    ] {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let utxos = outputs.iter().map(String::as_str).collect();
        let read =
            Cip30Wallet::read(&WalletDescription { change_address: ADDRESS, utxos, ..WalletDescription::default() });
        let (peak, bytes) = (ALLOCATOR.peak_usage() - before, outputs.iter().map(String::len).sum::<usize>());
        println!("{what}: {} KiB beside {} KiB, {:?}", peak >> 10, bytes >> 10, read.as_ref().err());
        assert!(peak <= 2 << 20, "{what}: {peak} bytes");
    }
}

const ADA: u64 = 1_000_000;
/// Number of tokens in an output, a few less than a payment may spend.
const TOKENS: u32 = 900;
/// Purchases of the last hour, an ADA each.
const PAST: u8 = 100;

#[test]
fn a_wallets_last_hour_of_payments_takes_little_memory() {
    let _alone = alone();
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (_, key) = sign_up(&db, 1, NOON);
    let limits = account::limits(100, 500).unwrap();
    assert!(
        block(account::set_limits(&db, &token(1), limits, account::RuleChanges::default(), NOON)).unwrap().is_some()
    );
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
        // The rest, for the next payment.
        utxos = built.facts.change;
    }
    let wallet = account.wallet_address;
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let began = std::time::Instant::now();
    let rows = block(db.batch(snapshot(&wallet, 0, NOON))).unwrap();
    let known = WalletSnapshot::of(&wallet, rows).unwrap();
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
