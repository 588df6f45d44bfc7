//! Projections are written by triggers alone, and `docs/architecture.md` has the table of these triggers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::support::block;
use market::schema::MIGRATIONS;
use sql::{Database, sqlite::Sqlite};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Triggers that change records instead of deriving projections: each stands beside its table, with its reason.
const CHANGE_RECORDS: [&str; 3] = ["accounts_after_restore", "listings_hidden_by_operator", "payments_refused"];

/// Prefix of the names of triggers that append to the log of events, in a migration of their own.
const LOG: &str = "events_";

/// A trigger: its name, the table that it stands on, and those that it writes.
type Trigger = (String, String, BTreeSet<String>);

/// The tables that some SQL writes.
fn written(sql: &str) -> BTreeSet<String> {
    let words: Vec<&str> = sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    let is_write = |pair: &[&str]| matches!(pair, ["INSERT", "INTO"] | ["DELETE", "FROM"] | ["REPLACE", "INTO"]);
    let named = words.windows(3).filter(|three| is_write(&three[..2])).map(|three| three[2]);
    let updated = words.windows(3).filter(|three| three[0] == "UPDATE" && three[2] == "SET").map(|three| three[1]);
    let indexed = words.windows(3).filter(|three| three[0] == "UPDATE" && three[2] == "INDEXED").map(|three| three[1]);
    named.chain(updated).chain(indexed).filter(|table| *table != "SET").map(str::to_owned).collect()
}

fn triggers() -> Vec<Trigger> {
    let db = Sqlite::of(MIGRATIONS).unwrap();
    let read = "SELECT name || ' ' || tbl_name || ' ' || sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name";
    let rows = block(db.fetch::<Vec<String>>(sql::read!(read))).unwrap();
    let read = |row: &String| {
        let mut parts = row.splitn(3, ' ').map(str::to_owned);
        let (name, table, sql) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        (name, table, written(sql.split_once("BEGIN").unwrap().1))
    };
    rows.iter().map(read).collect()
}

fn projections() -> BTreeSet<String> {
    let is_derived = |name: &str| !CHANGE_RECORDS.contains(&name) && !name.starts_with(LOG);
    let derived = triggers().into_iter().filter(|(name, ..)| is_derived(name));
    // Only one column of `listings` is derived.
    derived.flat_map(|(.., writes)| writes).filter(|table| table != "listings").collect()
}

/// The names in backticks of a cell.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_architecture_page_has_every_trigger_with_what_it_reads_and_writes() {
    let page = fs::read_to_string(format!("{ROOT}/docs/architecture.md")).unwrap();
    let rows = page.lines().skip_while(|line| *line != "| on | trigger | writes |").skip(2);
    let mut documented: Vec<Trigger> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let one = |cell| names(cell).into_iter().next().unwrap();
            (one(cells[2]), one(cells[1]), names(cells[3]))
        })
        .collect();
    documented.sort();
    assert_eq!(documented, triggers());
}

#[test]
fn projections_are_derived_in_one_migration() {
    let folder = format!("{ROOT}/d1-migrations");
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let (name, sql) = (file.file_name().unwrap().to_str().unwrap(), fs::read_to_string(&file).unwrap());
        let made = sql.split("CREATE TRIGGER ").skip(1).map(|rest| rest.split(' ').next().unwrap());
        let elsewhere: Vec<&str> = made.filter(|trigger| !CHANGE_RECORDS.contains(trigger)).collect();
        match name {
            "0008_projections.sql" => assert!(!elsewhere.is_empty()),
            // The arbiter's database has these, too.
            "0001_outbox.sql" => assert!(elsewhere.iter().all(|trigger| trigger.starts_with("reservations_"))),
            "0010_events.sql" => assert!(elsewhere.iter().all(|trigger| trigger.starts_with(LOG))),
            _ => assert_eq!(elsewhere, [""; 0], "{name}"),
        }
    }
}

/// The files that make statements, without those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_test = ["tests", "attacks", "refusals", "tests.rs", "races.rs", "sqlite.rs"].contains(&name);
        match path.extension().and_then(|it| it.to_str()) {
            _ if is_test || name == "target" => {}
            None if path.is_dir() => sources(&path, found),
            Some("rs") => found.push(path),
            Some("sql") if name != "schema.sql" => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn no_statement_in_rust_writes_a_projection() {
    let projections = projections();
    let expected =
        ["catalogue_version", "escrows", "listings_counted", "listings_text", "outbox_purchases", "purchases"];
    let expected = expected.into_iter().chain(["reservations", "sellers"]).map(str::to_owned).collect();
    assert_eq!(projections, expected, "all of them are looked for");
    let mut files = vec![];
    for folder in ["src", "arbiter/src", "functions/watcher/src"] {
        sources(&Path::new(ROOT).join(folder), &mut files);
    }
    for krate in fs::read_dir(format!("{ROOT}/crates")).unwrap() {
        sources(&krate.unwrap().path().join("src"), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let writes: Vec<String> = written(text).intersection(&projections).cloned().collect();
        assert_eq!(writes, [""; 0], "{}", file.display());
        let sales =
            text.split("UPDATE listings SET ").skip(1).any(|set| set.split("WHERE").next().unwrap().contains("sales"));
        assert!(!sales, "{} writes listings.sales", file.display());
    }
}
