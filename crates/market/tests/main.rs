//! Tests of this crate on SQLite, as one program, so that they run in parallel and shared code is compiled once.
//! `process_memory` is a program of its own.

mod abandoned_escrows;
mod acting_at_random;
mod alarms;
mod buying_at_random;
mod catalogue;
mod catalogue_query_cost;
mod confirmations;
mod contents_at_once;
mod contents_in_bucket;
mod copied_payments;
mod copied_quotes;
mod discovery;
mod drafts;
mod events;
mod expiring_locks;
mod forks;
mod full_text_cost;
mod kept_rows_cost;
mod long_answers;
mod lost_answers;
mod newest_listings;
mod owners_actions;
mod projections;
mod purchase_requests;
mod redelivery;
mod repeated_headers;
mod request_commitments;
mod restored;
mod rollbacks_at_random;
mod same_buyer;
mod settlements;
mod sign_in;
mod spending;
mod support;
mod tokens_in_wallet;
mod trigger_sums;
mod unreadable_content;
mod unseen_payments;
mod watcher;
mod webhooks;
mod wire;

#[test]
fn every_file_beside_this_one_is_run() {
    let cargo = concat!(include_str!("main.rs"), include_str!("../Cargo.toml"));
    let beside = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).expect("this folder");
    let names = beside.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let forgotten: Vec<_> = names
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| {
            name != "main" && !cargo.contains(&format!("mod {name};")) && !cargo.contains(&format!("tests/{name}.rs"))
        })
        .collect();
    assert_eq!(forgotten, Vec::<String>::new());
}
