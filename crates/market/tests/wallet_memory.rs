//! A worker has 128 MB for all its requests: reading a wallet takes little more than its description.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use market::cip30::{Cip30Wallet, WalletDescription};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const ADDRESS: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

/// An output with so many tokens of one policy, as CIP-30 gives it.
fn laden(place: u16, tokens: u16) -> String {
    let address: cardano::Address = ADDRESS.parse().unwrap();
    let named: String = (0..tokens).map(|name| format!("42{name:04x}01")).collect();
    let input = format!("825820{}19{place:04x}", "00".repeat(32));
    format!(
        "82{input}82581d{}821a001e8480a1581c{}b9{tokens:04x}{named}",
        hex::encode(address.to_bytes()),
        "11".repeat(28)
    )
}

/// One test, for the peak is the whole program's.
#[test]
fn whatever_tokens_a_wallet_says_it_has_little_is_kept_of_them() {
    for (what, outputs) in [
        ("one heap", vec![laden(0, 60_000)]),
        ("many heaps", (0..490).map(|place| laden(place, 110)).collect::<Vec<_>>()),
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
