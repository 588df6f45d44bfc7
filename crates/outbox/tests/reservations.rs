//! Reservations follow the state of their entries, whatever happens to these, on SQLite with the outbox's schema.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "test")]

use cardano::{TxHash, TxRef, chain::Inclusion, keys::SigningKey};
use futures_lite::future::block_on;
use outbox::{Decision, Entry, EntryState, Kind, NewEntry, Provenance, SCHEMA, by_id, change, write_down};
use proptest::prelude::*;
use sql::{Database, sqlite::Sqlite};

const HOUR_MS: u64 = 60 * 60 * 1_000;

fn output(number: u8) -> TxRef {
    TxRef { tx: TxHash::new([number; 32]), index: 0 }
}

/// A transaction of a service wallet with a purpose of its own.
fn draft(number: u8, spends: &[u8], collateral: &[u8]) -> NewEntry {
    let outputs = |numbers: &[u8]| numbers.iter().copied().map(output).collect();
    NewEntry {
        tx: TxHash::new([100 + number; 32]),
        kind: Kind::Result,
        purpose: format!("purpose {number}"),
        wallet: Some(SigningKey::from_seed(&[1; 32]).unwrap().enterprise_address()),
        cbor: vec![],
        valid_until: 1_000,
        provenance: Provenance::Ours,
        spends: outputs(spends),
        collateral: outputs(collateral),
        acts_on: vec![],
        guard: None,
    }
}

/// A block whose time is `hour` hours.
fn block(hour: u64) -> Inclusion {
    Inclusion { block: TxHash::new([9; 32]), height: hour, slot: hour, time_ms: hour * HOUR_MS, valid: true }
}

struct World(Sqlite);

impl World {
    fn new() -> Self {
        Self(Sqlite::of(&[SCHEMA]).unwrap())
    }

    fn claims_at(&self, draft: &NewEntry, hour: u64) -> bool {
        block_on(self.0.execute(write_down(draft, hour * HOUR_MS))).unwrap().is_some()
    }

    fn claims(&self, draft: &NewEntry) -> bool {
        self.claims_at(draft, 0)
    }

    fn entry(&self, draft: &NewEntry) -> Option<Entry> {
        block_on(self.0.fetch(by_id(&draft.tx))).unwrap()
    }

    fn decide(&self, draft: &NewEntry, decision: &Decision) {
        block_on(self.0.execute(change(&self.entry(draft).unwrap(), decision).unwrap())).unwrap();
    }

    fn reserved(&self) -> Vec<String> {
        block_on(self.0.fetch(sql::read!("SELECT tx_in || ' by ' || tx_id FROM reservations"))).unwrap()
    }
}

#[test]
fn collateral_is_free_once_its_block_is_known_and_reserved_again_after_a_rollback() {
    let world = World::new();
    let first = draft(1, &[1], &[2]);
    assert!(world.claims(&first));
    world.decide(&first, &Decision::Include(block(0)));
    world.decide(&first, &Decision::Reopen);
    assert!(!world.claims(&draft(2, &[2], &[])), "two open entries would use one output");
    world.decide(&first, &Decision::Include(block(0)));
    assert!(world.claims(&draft(2, &[2], &[])));
}

#[test]
fn an_entry_that_is_included_after_its_end_reserves_what_it_spent_even_after_a_rollback() {
    for end in [Decision::Refuse("refused".into()), Decision::Expire] {
        let world = World::new();
        let first = draft(1, &[1], &[]);
        assert!(world.claims(&first));
        world.decide(&first, &end);
        assert_eq!(world.reserved(), [""; 0]);
        world.decide(&first, &Decision::Include(block(0)));
        assert!(!world.claims(&draft(2, &[1], &[])), "a block has spent it");
        world.decide(&first, &Decision::Reopen);
        assert!(!world.claims(&draft(2, &[1], &[])), "the first may be included again");
    }
}

#[test]
fn an_output_of_two_entries_is_free_when_both_have_ended() {
    let world = World::new();
    let [first, second, third] = [1, 2, 3].map(|number| draft(number, &[number + 10], &[1]));
    assert!(world.claims(&first));
    world.decide(&first, &Decision::Include(block(0)));
    assert!(world.claims(&second), "the first only put it up");
    world.decide(&first, &Decision::Reopen);
    world.decide(&second, &Decision::Refuse("refused".into()));
    assert!(!world.claims(&third), "the first is open again");
    world.decide(&first, &Decision::Expire);
    assert!(world.claims(&third));
}

#[test]
fn what_a_block_has_spent_is_reserved_for_two_hours() {
    let world = World::new();
    let (first, second) = (draft(1, &[1], &[]), draft(2, &[2], &[]));
    assert!(world.claims(&first));
    assert!(world.claims(&second));
    world.decide(&first, &Decision::Include(block(1)));
    assert!(world.claims_at(&draft(3, &[3], &[]), 3));
    assert_eq!(world.reserved().len(), 3);
    assert!(world.claims_at(&draft(4, &[4], &[]), 4));
    assert_eq!(world.reserved().len(), 3, "the included one's is removed, and no other");
}

#[derive(Clone, Debug)]
enum Event {
    Claim(usize),
    Decide(usize, Decision),
}

fn event() -> impl Strategy<Value = Event> {
    let decision = prop_oneof![
        Just(Decision::Accept),
        Just(Decision::Refuse("refused".into())),
        Just(Decision::Expire),
        (0..2u64).prop_map(|hour| Decision::Include(block(hour))),
        (0..2u64).prop_map(|hour| Decision::ChangeBlock(block(hour))),
        Just(Decision::Reopen),
    ];
    prop_oneof![
        (0..6usize).prop_map(Event::Claim),
        (0..6usize, decision).prop_map(|(which, d)| Event::Decide(which, d))
    ]
}

/// The outputs that an entry of this state must reserve.
fn reserves(draft: &NewEntry, state: EntryState) -> Vec<TxRef> {
    match state {
        EntryState::Claimed | EntryState::Submitted => [draft.spends.as_slice(), &draft.collateral].concat(),
        EntryState::Included => draft.spends.clone(),
        EntryState::Refused | EntryState::Expired => vec![],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn reservations_equal_what_the_states_say_and_no_claim_takes_a_reserved_output(
        uses in proptest::collection::vec((proptest::sample::subsequence(vec![1, 2, 3], 1..=2), 1..4u8), 6),
        events in proptest::collection::vec(event(), 1..40),
    ) {
        let world = World::new();
        let drafts: Vec<NewEntry> = (0..6u8)
            .zip(&uses)
            .map(|(number, (spends, put_up))| {
                let put_up = if spends.contains(put_up) { vec![] } else { vec![*put_up] };
                draft(number, spends, &put_up)
            })
            .collect();
        let reserved_by = |draft: &NewEntry| world.entry(draft).map(|entry| reserves(draft, entry.state)).unwrap_or_default();
        for event in events {
            match event {
                Event::Claim(which) => {
                    let draft = &drafts[which];
                    let taken: Vec<TxRef> = drafts.iter().flat_map(&reserved_by).collect();
                    let is_free = [draft.spends.as_slice(), &draft.collateral].concat().iter().all(|it| !taken.contains(it));
                    let is_over = world.entry(draft).is_none_or(|entry| entry.state == EntryState::Refused);
                    prop_assert_eq!(world.claims(draft), is_free && is_over);
                }
                Event::Decide(which, decision) if world.entry(&drafts[which]).is_some() => {
                    world.decide(&drafts[which], &decision);
                }
                Event::Decide(..) => {}
            }
            let mut expected: Vec<String> = drafts
                .iter()
                .flat_map(|draft| reserved_by(draft).into_iter().map(|output| format!("{output} by {}", draft.tx)))
                .collect();
            let mut found = world.reserved();
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
