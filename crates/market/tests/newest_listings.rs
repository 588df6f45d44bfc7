//! Reading only the changed listings of the catalogue gives the same page as reading all of them.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "test")]

use crate::support::{NOON, SELLER, block, list_by, one, person};
use market::catalogue::{Newest, Page};
use proptest::prelude::*;
use sql::{Database, Write, sqlite::Sqlite};

/// A change of the catalogue. `Restore` also loses the newest listing if it is unsold. The numbers choose a listing, or
/// one of the two sellers.
#[derive(Clone, Copy, Debug)]
enum Change {
    List,
    Sell(u8),
    Refund(u8),
    Hide(u8),
    Show(u8),
    Edit(u8),
    Name(u8),
    Restore,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::List),
        2 => any::<u8>().prop_map(Change::Sell),
        1 => any::<u8>().prop_map(Change::Refund),
        1 => any::<u8>().prop_map(Change::Hide),
        1 => any::<u8>().prop_map(Change::Show),
        1 => any::<u8>().prop_map(Change::Edit),
        1 => any::<u8>().prop_map(Change::Name),
        1 => Just(Change::Restore),
    ]
}

fn run(db: &Sqlite, statement: Write) {
    block(db.execute(statement)).unwrap();
}

fn apply(db: &Sqlite, number: usize, change: Change) {
    let other = person(9).enterprise_address().to_string();
    let listed = one(db, "SELECT CAST(count(*) AS TEXT) FROM listings").parse::<u8>().unwrap();
    let seq = |chosen: u8| u64::from(chosen.checked_rem(listed).unwrap_or(0)) + 1;
    match change {
        Change::List => {
            list_by(db, if listed % 2 == 0 { SELLER } else { &other }, listed, 5_000_000);
        }
        Change::Sell(listing) => run(
            db,
            sql::write!(
                "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, \
                   creator_lovelace, status, bought_at_ms) \
                 SELECT ?1, id, 'protected', seller_address, seller_address, substr(?1, 1, 56), 5000000, 0, 'FundsLocked', ?2 \
                 FROM listings WHERE seq = ?3",
                format!("{number:064x}"),
                NOON,
                seq(listing)
            ),
        ),
        Change::Refund(listing) => run(
            db,
            sql::write!(
                "UPDATE purchases SET status = 'refunded' WHERE listing_id = (SELECT id FROM listings WHERE seq = ?1)",
                seq(listing)
            ),
        ),
        Change::Hide(listing) => {
            run(db, sql::write!("UPDATE listings SET hidden_at_ms = ?1 WHERE seq = ?2", NOON, seq(listing)));
        }
        Change::Show(listing) => {
            run(db, sql::write!("UPDATE listings SET hidden_at_ms = NULL WHERE seq = ?1", seq(listing)));
        }
        Change::Edit(listing) => run(
            db,
            sql::write!(
                "UPDATE listings SET card = json_set(card, '$.title', ?1) WHERE seq = ?2",
                format!("edit {number}"),
                seq(listing)
            ),
        ),
        Change::Name(seller) => run(
            db,
            sql::write!(
                "INSERT INTO sellers (address, name) VALUES (?1, ?2) ON CONFLICT (address) DO UPDATE SET name = excluded.name",
                if seller % 2 == 0 { SELLER } else { &other },
                format!("name {number}")
            ),
        ),
        Change::Restore => {
            let unsold = "NOT EXISTS (SELECT 1 FROM purchases WHERE listing_id = listings.id)";
            run(db, sql::write!("DELETE FROM listings WHERE seq = ?1 AND {unsold}", u32::from(listed)));
            run(
                db,
                sql::write!(
                    "INSERT INTO restored (id, height, at_ms) VALUES (1, 1, ?1) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms",
                    NOON + number as u64
                ),
            );
        }
    }
}

fn update(known: &Newest, db: &Sqlite) -> Newest {
    block(known.update(db)).unwrap()
}

fn whole(db: &Sqlite) -> Page {
    block(Newest::read(db)).unwrap().page()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn listings_read_at_any_earlier_version_are_brought_up_to_date(changes in proptest::collection::vec(change(), 1..16)) {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let mut earlier = vec![Newest::default()];
        for (number, change) in changes.iter().enumerate() {
            apply(&db, number, *change);
            for known in &earlier {
                prop_assert_eq!(update(known, &db).page(), whole(&db), "after {:?}", &changes[..=number]);
            }
            earlier.push(update(earlier.last().unwrap(), &db));
        }
    }

    #[test]
    fn a_replica_that_is_behind_is_read_as_a_whole(changes in proptest::collection::vec(change(), 1..15)) {
        let (primary, replica) = [(); 2].map(|()| Sqlite::of(market::schema::MIGRATIONS).unwrap()).into();
        let mut known = Newest::default();
        for (number, change) in changes.iter().enumerate() {
            prop_assert_eq!(update(&known, &replica).page(), whole(&replica), "after {:?}", &changes[..number]);
            apply(&primary, number, *change);
            known = update(&known, &primary);
            prop_assert_eq!(update(&known, &replica).page(), whole(&replica), "before {:?}", change);
            apply(&replica, number, *change);
        }
    }
}

#[test]
fn an_older_listing_takes_the_place_of_a_hidden_one() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1003) \
        INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, \
          content_bytes, created_at_ms) \
        SELECT 'lst_' || n, json_object('id', 'lst_' || n), 'title', '', 5000000, 'seller ' || n, 1, 0, printf('%064d', n), 10, n FROM n";
    run(&db, sql::write!(fill));
    let mut known = update(&Newest::default(), &db);
    for hidden in [1_003_u32, 500, 4] {
        run(&db, sql::write!("UPDATE listings SET hidden_at_ms = 1 WHERE seq = ?1", hidden));
        known = update(&known, &db);
        assert_eq!(known.page(), whole(&db));
        assert!(!known.page().json.contains(&format!("\"lst_{hidden}\"")));
    }
    assert!(known.page().json.contains("\"lst_1\""), "no older one is left");
    assert_eq!(known.page().next, None);
}

#[test]
pub fn an_unchanged_listing_is_not_read_again() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    apply(&db, 0, Change::List);
    apply(&db, 1, Change::List);
    let known = update(&Newest::default(), &db);
    // Not seen, because no trigger tells of it.
    run(&db, sql::write!("UPDATE listings SET sales = 7 WHERE seq = 1"));
    apply(&db, 2, Change::Edit(1));
    let page = update(&known, &db).page().json;
    assert!(page.contains("edit 2") && !page.contains("\"sales\":7"), "{page}");
}
