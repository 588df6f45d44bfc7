//! What this crate promises, on SQLite, as one program: its tests go side by side, and what they share is compiled once.
//! What measures a process's memory is a program of its own.

mod abandoned;
mod acting_at_random;
mod alarms;
mod another_fork;
mod bounded;
mod bucket;
mod burned_terms;
mod buying_at_random;
mod catalogue;
mod committed;
mod copied;
mod crowded;
mod discovery;
mod drafts;
mod ending;
mod figures;
mod forks;
mod handing_over;
mod lasting;
mod long_answers;
mod memory;
mod paid_reads;
mod returning;
mod rollbacks;
mod same_buyer;
mod sign_in;
mod spending;
mod support;
mod twice;
mod two_nodes;
mod watching;
mod wire;
mod wordy;

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
