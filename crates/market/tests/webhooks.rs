//! Webhooks and private feeds in the database: each event is sent at least once and in order, whoever fails or races, and
//! no owner keeps others waiting.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use api_types::{Event, Webhook, WebhookStatus, check};
use market::{
    account::{Account, Token},
    feed,
    webhook::{self, Claimed, Failure, LEASE_MS, Message, Salt, Secret, WebhookUrl, claim},
};
use sql::{Both, Database, One, sqlite::Sqlite};

use crate::support::{NOON, block, one, sign_up};

const DOWN: Failure = Failure::NoAnswer;
const DAY: u64 = 24 * 60 * 60 * 1_000;

fn database() -> Sqlite {
    Sqlite::of(market::schema::MIGRATIONS).unwrap()
}

fn happens(db: &Sqlite, account: &Account, at: u64) {
    let insert =
        sql::write!("INSERT INTO events (owner, kind, at_ms) VALUES (?1, 'sale', ?2)", account.owner.as_str(), at);
    block(db.execute::<()>(insert)).unwrap();
}

fn url() -> WebhookUrl {
    WebhookUrl::parse("https://hooks.example.com/surety", false).unwrap()
}

fn set(db: &Sqlite, account: &Account, salt: u8, now: u64) -> (String, Webhook) {
    let write = webhook::set(&account.owner, &url(), &Salt::new([salt; 16]), 1, now);
    let (One(salt), webhook) = block(db.batch((write, webhook::read(&account.owner)))).unwrap();
    (salt, webhook.unwrap())
}

fn claims(db: &Sqlite, now: u64, most: u32) -> Vec<Claimed> {
    block(db.execute(claim(now, most))).unwrap()
}

fn only(mut claimed: Vec<Claimed>) -> Claimed {
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed.remove(0)
}

/// Returns the positions and ids of the events that a claimed webhook is to send.
fn to_send(db: &Sqlite, claimed: &Claimed) -> Vec<(u64, String)> {
    let events = block(db.fetch(claimed.waiting(10))).unwrap();
    events.into_iter().map(|Both(position, event)| (position.seq, event.id)).collect()
}

fn record(db: &Sqlite, claimed: &Claimed, delivered: Option<u64>, failed: Option<(u64, Failure)>, now: u64) {
    block(db.execute(claimed.record(&claimed.outcome(delivered, failed, now), now))).unwrap();
}

fn state(db: &Sqlite, account: &Account) -> Webhook {
    block(db.fetch(webhook::read(&account.owner))).unwrap().unwrap()
}

#[test]
fn a_webhook_gets_the_events_after_it_was_added_once_each_and_in_order() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    happens(&db, &account, NOON);
    set(&db, &account, 1, NOON);
    assert_eq!(claims(&db, NOON, 10), [], "nothing is sent of what was before");
    (1..=3).for_each(|second| happens(&db, &account, NOON + second));
    let first = only(claims(&db, NOON + 10, 10));
    let events = to_send(&db, &first);
    assert_eq!(events.len(), 3);
    assert!(events.windows(2).all(|two| two[0].0 < two[1].0));
    // The second fails; a fourth happens meanwhile.
    happens(&db, &account, NOON + 11);
    record(&db, &first, Some(events[0].0), Some((events[1].0, DOWN)), NOON + 12);
    assert_eq!(claims(&db, NOON + 12, 10), [], "it is left alone for a minute");
    let second = only(claims(&db, NOON + 60_012, 10));
    let rest = to_send(&db, &second);
    assert_eq!(rest[..2], events[1..], "the same ids");
    assert_eq!(rest.len(), 3);
    record(&db, &second, Some(rest[2].0), None, NOON + 60_013);
    assert_eq!(claims(&db, NOON + DAY, 10), [], "all was sent");
    happens(&db, &account, NOON + DAY);
    assert_eq!(to_send(&db, &only(claims(&db, NOON + DAY, 10))).len(), 1);
}

#[test]
fn ticks_at_once_send_an_event_once_and_a_tick_that_dies_does_not_lose_it() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    set(&db, &account, 1, NOON);
    happens(&db, &account, NOON);
    let dead = only(claims(&db, NOON, 10));
    for moment in [0, 1, 60_000, LEASE_MS - 1] {
        assert_eq!(claims(&db, NOON + moment, 10), [], "another tick at {moment}");
    }
    let next = only(claims(&db, NOON + LEASE_MS, 10));
    assert_eq!(to_send(&db, &next), to_send(&db, &dead), "the same event, with the same id");
    let seq = to_send(&db, &next)[0].0;
    // The first one was only slow.
    record(&db, &dead, None, Some((seq, DOWN)), NOON + LEASE_MS + 1);
    assert_eq!(state(&db, &account).status, WebhookStatus::Active, "its lease is over");
    record(&db, &next, Some(seq), None, NOON + LEASE_MS + 2);
    assert_eq!(claims(&db, NOON + DAY, 10), []);
}

#[test]
fn an_event_between_reading_and_recording_is_due_at_once() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    set(&db, &account, 1, NOON);
    happens(&db, &account, NOON);
    let claimed = only(claims(&db, NOON, 10));
    let seq = to_send(&db, &claimed)[0].0;
    happens(&db, &account, NOON + 1);
    record(&db, &claimed, Some(seq), None, NOON + 2);
    assert_eq!(to_send(&db, &only(claims(&db, NOON + 2, 10))).len(), 1);
}

#[test]
fn an_owner_who_changes_or_removes_the_webhook_while_it_is_sent_decides() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    let (first, added) = set(&db, &account, 1, NOON);
    assert_eq!(first, Salt::new([1; 16]).as_str());
    assert_eq!((added.status, added.secret), (WebhookStatus::Active, None));
    happens(&db, &account, NOON);
    let claimed = only(claims(&db, NOON, 10));
    let seq = to_send(&db, &claimed)[0].0;
    let (kept, _) = set(&db, &account, 2, NOON + 1);
    assert_eq!(kept, first, "another address, and the same secret");
    record(&db, &claimed, Some(seq), None, NOON + 2);
    assert_eq!(
        to_send(&db, &only(claims(&db, NOON + 2, 10))),
        [(seq, to_send(&db, &claimed)[0].1.clone())],
        "to the new one, too"
    );
    assert!(block(db.execute(webhook::remove(&account.owner))).unwrap().is_some());
    set(&db, &account, 3, NOON + 3);
    record(&db, &claimed, None, Some((seq, DOWN)), NOON + 4);
    assert_eq!(state(&db, &account).status, WebhookStatus::Active, "the old one's failure is not the new one's");
}

#[test]
fn after_three_days_of_failures_it_is_off_and_once_on_again_goes_on_where_it_stopped() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    set(&db, &account, 1, NOON);
    happens(&db, &account, NOON);
    let mut now = NOON;
    let mut tries = 0;
    while state(&db, &account).status != WebhookStatus::Off {
        if let Some(claimed) = claims(&db, now, 10).pop() {
            // Given up after a day, the event is over; others follow.
            let Some((seq, _)) = to_send(&db, &claimed).first().cloned() else { unreachable!() };
            record(&db, &claimed, None, Some((seq, Failure::Status { status: 500, retry_after_ms: None })), now);
            tries += 1;
        }
        happens(&db, &account, now);
        now += 30 * 60_000;
        assert!(now < NOON + 4 * DAY);
    }
    assert!(now - NOON >= 3 * DAY && tries < 160, "{tries}");
    let off = state(&db, &account);
    assert!(off.off_since.is_some() && off.failure.as_deref() == Some("the address answered with status 500"));
    happens(&db, &account, now);
    assert_eq!(claims(&db, now + DAY, 10), [], "nothing is sent while it is off");
    assert_eq!(block(db.batch(webhook::test(&account.owner, now))).unwrap(), ((), (), ()));
    assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM events WHERE kind = 'test'"), "0");
    set(&db, &account, 2, now);
    assert_eq!(state(&db, &account).status, WebhookStatus::Active);
    assert!(to_send(&db, &only(claims(&db, now, 10))).len() > 1, "what it missed");
}

#[test]
fn an_owner_with_many_events_keeps_no_other_waiting() {
    let db = database();
    let accounts: Vec<Account> = (1..=6).map(|number| sign_up(&db, number, NOON).0).collect();
    accounts.iter().for_each(|account| drop(set(&db, account, 1, NOON)));
    (0..1_000).for_each(|_| happens(&db, &accounts[0], NOON));
    accounts.iter().skip(1).for_each(|account| happens(&db, account, NOON + 1));
    let mut served = std::collections::BTreeSet::new();
    // Two webhooks per tick.
    for tick in 0..3 {
        for claimed in claims(&db, NOON + 1_000 + tick * 60_000, 2) {
            let seq = to_send(&db, &claimed)[0].0;
            record(&db, &claimed, Some(seq), None, NOON + 1_001 + tick * 60_000);
            served.insert(claimed.owner);
        }
    }
    assert_eq!(served.len(), accounts.len(), "everyone within as many ticks as there are shares");
}

#[test]
fn the_webhooks_that_are_due_are_found_without_reading_the_others() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    set(&db, &account, 1, NOON);
    let steps = || {
        happens(&db, &account, NOON);
        let before = db.steps();
        let claimed = only(claims(&db, NOON, 10));
        let steps = db.steps() - before;
        let seq = to_send(&db, &claimed).last().unwrap().0;
        record(&db, &claimed, Some(seq), None, NOON);
        steps
    };
    let few = steps();
    let many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000)";
    for sql in [
        format!(
            "INSERT INTO accounts (owner, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, created_at_ms) {many} SELECT 'o' || n, 'w' || n, printf('%056d', n), 1, 1000000, 1000000, 0 FROM n"
        ),
        format!(
            "INSERT INTO webhooks (owner, url, salt, key_version, created_at_ms, sent_seq) {many} SELECT 'o' || n, '', printf('%032d', n), 1, 0, 0 FROM n"
        ),
    ] {
        block(db.execute::<()>(sql::write!(sql))).unwrap();
    }
    assert!(steps() < few * 2, "{few}");
}

#[test]
fn a_test_message_waits_behind_the_rest_and_cannot_be_piled_up() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    let tests = || one(&db, "SELECT CAST(count(*) AS TEXT) FROM events WHERE kind = 'test'");
    block(db.batch(webhook::test(&account.owner, NOON))).unwrap();
    assert_eq!(tests(), "0", "without a webhook");
    set(&db, &account, 1, NOON);
    happens(&db, &account, NOON);
    for second in 0..600 {
        block(db.batch(webhook::test(&account.owner, NOON + second * 1_000))).unwrap();
    }
    assert_eq!(tests(), "1", "one waits");
    let claimed = only(claims(&db, NOON + 600_000, 10));
    let events = to_send(&db, &claimed);
    assert_eq!(events.len(), 2);
    // It fails; the owner mends the receiver and does not want to wait for an hour.
    record(
        &db,
        &claimed,
        None,
        Some((events[0].0, Failure::Status { status: 503, retry_after_ms: Some(3_600_000) })),
        NOON + 600_001,
    );
    assert_eq!(claims(&db, NOON + 700_000, 10), []);
    block(db.batch(webhook::test(&account.owner, NOON + 700_000))).unwrap();
    let claimed = only(claims(&db, NOON + 700_000, 10));
    record(&db, &claimed, Some(events[1].0), None, NOON + 700_001);
    for minute in 12..600 {
        block(db.batch(webhook::test(&account.owner, NOON + minute * 60_000))).unwrap();
        for claimed in claims(&db, NOON + minute * 60_000, 10) {
            let seq = to_send(&db, &claimed)[0].0;
            record(&db, &claimed, Some(seq), None, NOON + minute * 60_000);
        }
    }
    assert!(tests().parse::<u32>().unwrap() <= 2, "{}", tests());
}

#[test]
fn an_agent_that_asks_for_ever_other_things_fills_nobodys_log() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    let grant = "0000000000000000000000000000000a";
    block(db.execute::<()>(sql::write!(
        "INSERT INTO oauth_grants (id, request, owner, client_id, client_name, redirect_uri, resource, scope, \
           code_challenge, client_auth, generation, rotated_at_ms, created_at_ms, used_at_ms) \
         VALUES (?1, ?1, ?2, 'client', 'Shopper', '', '', 'mcp', printf('%043d', 0), 'none', 1, ?3, ?3, ?3)",
        grant,
        account.owner.as_str(),
        NOON
    )))
    .unwrap();
    let ask = |number: u64, at: u64| {
        block(db.execute::<()>(sql::write!(
            "INSERT INTO purchase_requests (id, owner, grant_id, listing_id, mode, price, asked_at_ms, expires_at_ms) \
             VALUES (printf('%032d', ?1), ?2, ?3, 'lst_' || ?1, 'instant', 1, ?4, ?4 + 86400000)",
            number,
            account.owner.as_str(),
            grant,
            at
        )))
        .unwrap();
    };
    (0..300).for_each(|number| ask(number, NOON + number));
    assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM events"), "20");
    ask(300, NOON + 3_600_100);
    assert_eq!(one(&db, "SELECT CAST(count(*) AS TEXT) FROM events"), "21", "an hour later");
}

#[test]
fn a_feeds_token_opens_it_until_it_is_replaced_or_revoked_and_is_not_stored() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    let (first, second) = (Token::new([1; 32]), Token::new([2; 32]));
    let owner_of = |token: &Token| block(db.fetch(feed::owner_of(token))).unwrap();
    assert_eq!(owner_of(&first), None);
    block(db.execute(feed::renew(&account.owner, &first, NOON))).unwrap();
    assert_eq!(owner_of(&first), Some(account.owner.clone()));
    assert_eq!(block(db.fetch(feed::since(&account.owner))).unwrap(), Some(NOON));
    assert!(!one(&db, "SELECT json_group_array(token_hash) FROM event_feeds").contains(first.reveal()));
    block(db.execute(feed::renew(&account.owner, &second, NOON + 1))).unwrap();
    assert_eq!((owner_of(&first), owner_of(&second)), (None, Some(account.owner.clone())));
    assert!(block(db.execute(feed::revoke(&account.owner))).unwrap().is_some());
    assert_eq!(owner_of(&second), None);
    assert_eq!(block(db.execute(feed::revoke(&account.owner))).unwrap(), None, "and again");
}

#[test]
pub fn a_webhook_has_every_field() {
    let db = database();
    let (account, _) = sign_up(&db, 1, NOON);
    set(&db, &account, 1, NOON);
    happens(&db, &account, NOON);
    let claimed = only(claims(&db, NOON, 10));
    let seq = to_send(&db, &claimed)[0].0;
    happens(&db, &account, NOON);
    record(&db, &claimed, Some(seq), Some((seq + 1, Failure::Status { status: 410, retry_after_ms: None })), NOON);
    let off = Webhook { secret: Some("whsec_".into()), ..state(&db, &account) };
    assert_eq!(off.status, WebhookStatus::Off, "the address is gone");
    check::complete::<Webhook>(&[&serde_json::json!(off).to_string()]).unwrap();
    db.check(&(feed::owner_of(&Token::new([1; 32])), feed::since(""), feed::revoke(""), webhook::remove(""))).unwrap();
    db.check(&(webhook::test("", NOON), feed::renew("", &Token::new([1; 32]), NOON))).unwrap();
    assert!(!one(&db, "SELECT json_group_array(json_array(url, salt)) FROM webhooks").contains("whsec"));
}

#[test]
fn a_message_is_json_of_the_event_with_the_headers_of_the_specification() {
    let event: Event = serde_json::from_value(serde_json::json!({
        "id": "evt_0", "type": "sale", "at": "1655769600000", "role": "seller", "title": "A \"hero\"",
    }))
    .unwrap();
    let secret = Secret::derive(&[7; 32], 1, "owner", &Salt::new([1; 16])).unwrap();
    let message = Message::new(&event, &secret, NOON + 1_999).unwrap();
    let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
    assert_eq!((body["type"].as_str(), body["timestamp"].as_str()), (Some("sale"), Some("2022-06-21T00:00:00Z")));
    assert_eq!(serde_json::from_value::<Event>(body["data"].clone()).unwrap(), event);
    let at = (NOON + 1_999) / 1_000;
    let signature = secret.sign("evt_0", at, &message.body).unwrap();
    let expected = [
        ("content-type", "application/json".to_owned()),
        ("webhook-id", "evt_0".to_owned()),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", signature),
    ];
    assert_eq!(message.headers, expected);
    let later = Message::new(&event, &secret, NOON + 60_000).unwrap();
    assert_eq!(later.body, message.body, "a retry has the same id and body, and another time");
    assert_ne!(later.headers[3], message.headers[3]);
}
