//! Prints generated payments, valid and nearly valid, with this crate's verdict on each, as JSON lines. The
//! differential test (`tests/e2e/chain`) submits the same transactions to a ledger.
//!
//! ```text
//! cargo run -p x402-cardano --example payments -- <parameters.json> <count> <seed>
//! {"what":["fee -1"],"verdict":"invalid_exact_cardano_payload_fee_below_minimum","cbor":"84..","utxos":[..],"slots":[..]}
//! ```
//!
//! The first argument is a file with Blockfrost's `/epochs/latest/parameters`. `verdict` is a refusal's code, or
//! `accepted`. `slots` are the slots in which the ledger may first receive an accepted transaction.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test tool that cannot go on stops"
)]

#[path = "../tests/support/generator.rs"]
mod generator;
#[path = "../tests/support/mod.rs"]
mod support;

use std::io::Write;

use serde_json::json;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |name: &str| arguments.next().unwrap_or_else(|| panic!("missing argument: {name}"));
    let parameters = std::fs::read(argument("parameters.json")).expect("the parameters can be read");
    let parameters = cardano::blockfrost::protocol_parameters(&parameters).expect("they are protocol parameters");
    let count: u64 = argument("count").parse().expect("the count is a number");
    let seed: u64 = argument("seed").parse().expect("the seed is a number");
    let mut out = std::io::stdout().lock();
    for n in 0..count {
        let case = generator::case(&parameters, seed.wrapping_mul(1_000_003).wrapping_add(n));
        let verdict = case.payment.verdict().map_or_else(|refusal| refusal.code(), |_| "accepted");
        let line = json!({
            "what": case.what,
            "verdict": verdict,
            "cbor": hex::encode(case.payment.transaction()),
            "utxos": case.utxos.iter().map(|(at, output)| json!([at.to_string(), hex::encode(output)])).collect::<Vec<_>>(),
            "slots": [case.payment.tip_slot + 1, support::now_slot().max(case.payment.tip_slot + 1)],
        });
        writeln!(out, "{line}").expect("the output can be written");
    }
}
