use cardano::{Lovelace, TxHash};
use serde::Deserialize;

use crate::{Batch, Both, Database, DatabaseError, One, Read, Write, sqlite::Sqlite};

const SCHEMA: &str =
    "CREATE TABLE sales (id TEXT PRIMARY KEY, price INTEGER NOT NULL, buyer TEXT, paid INTEGER NOT NULL) STRICT";

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Sale {
    id: String,
    price: Lovelace,
    buyer: Option<TxHash>,
    #[serde(deserialize_with = "crate::flag")]
    paid: bool,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Cheap,
    Dear,
}

fn sales() -> Read<Vec<Sale>> {
    crate::read!("SELECT id, CAST(price AS TEXT) AS price, buyer, paid FROM sales ORDER BY id")
}

fn sell(id: &str, price: u64) -> Write<Option<String>> {
    crate::write!("INSERT INTO sales VALUES (?1, ?2, NULL, 1) ON CONFLICT DO NOTHING RETURNING id", id, price)
}

fn run<B: Batch>(database: &Sqlite, batch: B) -> Result<B::Answer, DatabaseError> {
    let mut run = std::pin::pin!(database.batch(batch));
    match run.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("SQLite answers at once"),
    }
}

fn database() -> Sqlite {
    Sqlite::of(&[SCHEMA]).unwrap()
}

#[test]
fn a_batch_answers_in_its_own_shape() {
    let database = database();
    let count: Read<One<u64>> = crate::read!("SELECT count(*) FROM sales");
    let batch = (sell("a", 1), vec![sell("b", 2), sell("a", 3)], None::<Write>, Some(count), sales());
    let (first, others, none, count, sales) = run(&database, batch).unwrap();
    assert_eq!((first.as_deref(), none, count), (Some("a"), None, Some(One(2))));
    assert_eq!(others, [Some("b".to_owned()), None]);
    let expected =
        |id: &str, price| Sale { id: id.into(), price: Lovelace::new(price).unwrap(), buyer: None, paid: true };
    assert_eq!(sales, [expected("a", 1), expected("b", 2)]);
}

#[test]
fn a_row_of_one_column_is_its_value() {
    let database = database();
    run(&database, sell("a", 1)).unwrap();
    let (id, buyer, paid, kind): (_, _, _, Vec<Kind>) = run(
        &database,
        (
            crate::read!("SELECT id FROM sales"),
            crate::read!("SELECT buyer FROM sales"),
            crate::read!("SELECT paid FROM sales"),
            crate::read!("SELECT iif(price > 9, 'dear', 'cheap') FROM sales"),
        ),
    )
    .unwrap();
    let (id, buyer, paid): (Option<String>, Option<Option<TxHash>>, Vec<bool>) = (id, buyer, paid);
    assert_eq!((id.as_deref(), buyer, paid, kind), (Some("a"), Some(None), vec![true], vec![Kind::Cheap]));
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Both<Sale, Both<Length, Name>>")]
struct Joined(Sale, u64, String);

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Length {
    length: u64,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Name {
    name: String,
}

impl From<Both<Sale, Both<Length, Name>>> for Joined {
    fn from(Both(sale, Both(Length { length }, Name { name })): Both<Sale, Both<Length, Name>>) -> Self {
        Self(sale, length, name)
    }
}

fn joined(more: &str) -> Read<Vec<Joined>> {
    crate::read!(format!("SELECT id, CAST(price AS TEXT) AS price, buyer, paid, length(id) AS length{more} FROM sales"))
}

#[test]
fn a_row_has_the_columns_of_several_structs() {
    let database = database();
    run(&database, sell("ab", 1)).unwrap();
    let joined = run(&database, joined(", 'n' AS name")).unwrap();
    assert_eq!((joined[0].0.id.as_str(), joined[0].1, joined[0].2.as_str()), ("ab", 2, "n"));
}

#[test]
#[should_panic(expected = "columns, and fields of the row type")]
fn a_column_that_the_second_struct_lacks_fails_the_check() {
    let _ = database().check(&joined(""));
}

#[test]
fn rows_of_another_type_are_an_error_that_names_the_query() {
    let database = database();
    run(&database, (sell("a", 1), sell("b", 2))).unwrap();
    let error = |batch: Read<Option<u64>>| run(&database, batch).unwrap_err().to_string();
    let wrong = error(crate::read!("SELECT id FROM sales WHERE id = 'a'"));
    assert!(wrong.contains("sql/src/tests.rs:") && wrong.contains("invalid type"), "{wrong}");
    let many = error(crate::read!("SELECT paid FROM sales"));
    assert!(many.contains("more than one row"), "{many}");
    let flag: Read<Option<bool>> = crate::read!("SELECT 2");
    assert!(run(&database, flag).is_err());
}

#[test]
fn a_failed_batch_changes_nothing() {
    let database = database();
    let broken: Write = crate::write!("INSERT INTO sales VALUES ('b', 'no number', NULL, 1)");
    assert!(run(&database, (sell("a", 1), broken)).is_err());
    assert_eq!(run(&database, sales()).unwrap(), []);
}

#[test]
fn lovelace_that_a_double_would_round_does_not_leave_the_database_as_a_number() {
    let number: Read<Option<u64>> = crate::read!("SELECT 9007199254740993");
    assert!(run(&database(), number).unwrap_err().to_string().contains("select it as text"));
    let text: Read<Option<Lovelace>> = crate::read!("SELECT CAST(9007199254740993 AS TEXT)");
    assert_eq!(run(&database(), text).unwrap(), Lovelace::new(9_007_199_254_740_993));
}

#[test]
#[should_panic(expected = "columns, and fields of the row type")]
fn a_misspelt_column_fails_the_check() {
    let misspelt: Read<Vec<Sale>> = crate::read!("SELECT id, CAST(price AS TEXT) AS prise, buyer, paid FROM sales");
    let _ = database().check(&misspelt);
}

#[test]
#[should_panic(expected = "for a statement that only reads")]
fn a_write_that_is_called_a_read_fails_the_check() {
    let wrong: Read<Vec<String>> = crate::read!("DELETE FROM sales RETURNING id");
    let _ = database().check(&wrong);
}

#[test]
fn a_query_that_no_test_ran_is_found() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/row.rs");
    assert_eq!(crate::sqlite::unchecked(&sources), Vec::<String>::new(), "this file has no queries");
    let folder = tempfile();
    let query = "sql::read!(\"SELECT 1\")";
    let some =
        format!("#[cfg(test)]\nmod attacks;\nfn some() {{\n    {query}\n}}\n#[cfg(test)]\nmod tests {{\n{query}\n}}");
    std::fs::create_dir_all(folder.join("some/attacks")).unwrap();
    for (file, text) in [("some.rs", &*some), ("some/attacks.rs", query), ("some/attacks/more.rs", query)] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let found = crate::sqlite::unchecked(&folder);
    assert!(found.len() == 1 && found[0].ends_with("some.rs:4"), "{found:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("sql-sites-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
