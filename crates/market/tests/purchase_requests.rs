//! Purchases by an agent that need the owner's approval, requested, answered, and used by the claim; and the owner's
//! rules for agents.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use api_types::{Answer, PurchaseRequest, RequestStatus};
use cardano::{Lovelace, keys::SigningKey};
use market::{
    DeliveryMode, ListingId,
    account::{self, Account, RuleChanges},
    claim::{Blocked, Claim, WalletBlocked, conditions},
    limits::{Authorization, SpendRefused},
    purchase_request::{self, APPROVAL_MS, Asked, MAX_WAITING, MAX_WAITING_PER_AGENT, REQUEST_MS, RequestId},
};
use outbox::Decision;
use sql::{Database, sqlite::Sqlite};

use crate::support::{
    NOON, Paying, block, given, inclusion, list, one, paying_for, payment, reread, sign_up, step, token,
};

const ADA: u64 = 1_000_000;
const UNTIL: u64 = (NOON - 1_655_683_200_000) / 1_000 + 300;
const AGENT: &str = "0000000000000000000000000000000a";
const OTHER: &str = "0000000000000000000000000000000b";

/// An account whose agents need approval above 3 tADA, and a listing for 5.
struct World {
    db: Sqlite,
    account: Account,
    key: SigningKey,
    listing: ListingId,
}

/// Connects an agent to the account.
fn connect(db: &Sqlite, account: &Account, grant: &str) {
    block(db.execute::<()>(sql::write!(
        "INSERT INTO oauth_grants (id, request, owner, client_id, client_name, redirect_uri, resource, scope, \
           code_challenge, client_auth, generation, rotated_at_ms, created_at_ms, used_at_ms) \
         VALUES (?1, ?1, ?2, 'client', 'Shopper', '', '', 'mcp', printf('%043d', 0), 'none', 1, 0, 0, 0)",
        grant,
        account.owner.as_str()
    )))
    .unwrap();
}

impl World {
    fn new() -> Self {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let (account, key) = sign_up(&db, 1, NOON);
        [AGENT, OTHER].iter().for_each(|grant| connect(&db, &account, grant));
        let listing = list(&db, 1, 5 * ADA);
        let world = Self { db, account, key, listing };
        world.asks_above(3);
        world
    }

    fn asks_above(&self, ada: u32) {
        let limits = account::limits(10, 500).unwrap();
        let rules = RuleChanges::parse(Some(ada), None, None).unwrap();
        assert!(block(account::set_limits(&self.db, &token(1), limits, rules, NOON)).unwrap().is_some());
    }

    fn account(&self, grant: &str) -> Account {
        Account { authorization: Some(Authorization::Grant(grant.into())), ..reread(&self.db, 1, NOON) }
    }

    /// A payment by an agent, with the faucet's output of this number.
    fn paying(&self, grant: &str, coin: u8) -> Paying {
        let account = self.account(grant);
        let built = payment(&account, &self.key, &[given(&account, coin, 200 * ADA)], 5 * ADA, UNTIL);
        paying_for(&account, &self.listing, &built, 5 * ADA)
    }

    fn asked<'a>(&'a self, grant: &'a str, listing: &'a ListingId) -> Asked<'a> {
        let price = Lovelace::new(5 * ADA).unwrap();
        Asked { owner: &self.account.owner, grant, listing, mode: DeliveryMode::Instant, price }
    }

    fn ask(&self, grant: &str, random: u8, now: u64) -> Option<PurchaseRequest> {
        block(self.asked(grant, &self.listing).ask(&self.db, RequestId::new([random; 16]), now)).unwrap()
    }

    fn answer(&self, asked: &PurchaseRequest, answer: Answer, now: u64) -> Option<PurchaseRequest> {
        let id = RequestId::parse(&asked.id).unwrap();
        block(purchase_request::answer(&self.db, &token(1), id, answer, now)).unwrap()
    }

    /// Requests an approval, and gets it.
    fn approved(&self, grant: &str, now: u64) -> PurchaseRequest {
        let asked = self.ask(grant, 1, now).unwrap();
        let approved = self.answer(&asked, Answer::Approve, now).unwrap();
        assert_eq!((approved.status, approved.expires_at), (RequestStatus::Approved, now + APPROVAL_MS));
        approved
    }

    fn standing(&self, asked: &PurchaseRequest) -> PurchaseRequest {
        let id = RequestId::parse(&asked.id).unwrap();
        block(purchase_request::read(&self.db, &token(1), id, NOON)).unwrap().unwrap()
    }
}

const UNAPPROVED: Claim<WalletBlocked> = Claim::Blocked(WalletBlocked::SpendRefused(SpendRefused::Unapproved));

fn is_new(claim: &Claim<WalletBlocked>) -> bool {
    matches!(claim, Claim::New(_))
}

#[test]
fn an_agent_buys_above_the_price_only_what_its_owner_approved() {
    let world = World::new();
    assert_eq!(world.paying(AGENT, 1).claim(&world.db, NOON), UNAPPROVED);
    assert_eq!(one(&world.db, "SELECT CAST(count(*) AS TEXT) FROM outbox"), "0", "nothing is written");
    let asked = world.ask(AGENT, 1, NOON).unwrap();
    assert_eq!(
        (asked.status, asked.title.as_str(), asked.client_name.as_str()),
        (RequestStatus::Waiting, "Listing 1", "Shopper")
    );
    assert_eq!(world.paying(AGENT, 1).claim(&world.db, NOON), UNAPPROVED, "asking is no approval");
    world.answer(&asked, Answer::Approve, NOON).unwrap();
    assert_eq!(world.paying(OTHER, 1).claim(&world.db, NOON), UNAPPROVED, "another agent");
    let protected = Paying { mode: DeliveryMode::Protected, ..world.paying(AGENT, 1) };
    assert_eq!(protected.claim(&world.db, NOON), UNAPPROVED, "in another mode");
    let elsewhere = Paying { listing: list(&world.db, 2, 5 * ADA), ..world.paying(AGENT, 1) };
    assert_eq!(elsewhere.claim(&world.db, NOON), UNAPPROVED, "another listing");
    let dearer = Paying { price: 5 * ADA + 1, ..world.paying(AGENT, 1) };
    assert_eq!(dearer.claim(&world.db, NOON), UNAPPROVED, "at a higher price");
    assert_eq!(world.paying(AGENT, 1).claim(&world.db, NOON + APPROVAL_MS), UNAPPROVED, "too late");
    assert!(is_new(&world.paying(AGENT, 1).claim(&world.db, NOON + APPROVAL_MS - 1)));
}

#[test]
fn an_account_without_an_approval_price_buys_without_approval() {
    let off = World::new();
    off.asks_above(100);
    assert_eq!(reread(&off.db, 1, NOON).ask_above, None);
    assert!(is_new(&off.paying(AGENT, 1).claim(&off.db, NOON)));
    let at_the_price = World::new();
    at_the_price.asks_above(5);
    assert!(is_new(&at_the_price.paying(AGENT, 1).claim(&at_the_price.db, NOON)), "above it, and not at it");
    let every = World::new();
    every.asks_above(0);
    assert_eq!(every.paying(AGENT, 1).claim(&every.db, NOON), UNAPPROVED, "each purchase");
    let owner = World::new();
    let account = reread(&owner.db, 1, NOON);
    assert!(matches!(account.authorization, Some(Authorization::Session(_))));
    let by_session = Paying { account: Some(account), ..owner.paying(AGENT, 1) };
    assert!(is_new(&by_session.claim(&owner.db, NOON)), "the owner's own purchase");
}

#[test]
fn concurrent_claims_on_one_approval_grant_one() {
    let world = World::new();
    let approved = world.approved(AGENT, NOON);
    let payments: Vec<Paying> = (1..=20).map(|coin| world.paying(AGENT, coin)).collect();
    let claims: Vec<Claim<WalletBlocked>> = payments.iter().map(|payment| payment.claim(&world.db, NOON)).collect();
    assert_eq!(claims.iter().filter(|claim| is_new(claim)).count(), 1);
    let used = world.standing(&approved);
    assert_eq!((used.status, used.tx), (RequestStatus::Used, None), "no purchase before its block");
    // Without the conditions that usually block a second payment: the listing is owned, or being paid for.
    step(&world.db, &payments[0].tx(), &Decision::Include(inclusion(1)));
    assert_eq!(world.standing(&approved).tx, Some(payments[0].tx()));
    one(&world.db, "UPDATE purchases SET status = 'refunded' RETURNING id");
    for payment in &payments[1..] {
        assert_eq!(payment.claim(&world.db, NOON), UNAPPROVED, "the approval is used up");
    }
    assert_eq!(world.answer(&approved, Answer::Approve, NOON).unwrap().status, RequestStatus::Used, "permanently");
    let again = world.ask(AGENT, 2, NOON).unwrap();
    assert_eq!(again.status, RequestStatus::Waiting);
    assert_ne!(again.id, approved.id);
}

#[test]
fn a_payment_that_fails_gives_its_approval_back_while_that_lasts() {
    for decision in [Decision::Refuse("no".into()), Decision::Expire] {
        let world = World::new();
        let approved = world.approved(AGENT, NOON);
        let first = world.paying(AGENT, 1);
        assert!(is_new(&first.claim(&world.db, NOON)));
        step(&world.db, &first.tx(), &decision);
        assert_eq!(world.standing(&approved).status, RequestStatus::Approved);
        // The first payment was looked up on the chain.
        let second = |coin| Paying { checked: 1, replaced: 1, ..world.paying(AGENT, coin) };
        assert_eq!(second(2).claim(&world.db, NOON + APPROVAL_MS), UNAPPROVED, "its hour is over");
        assert!(is_new(&second(2).claim(&world.db, NOON + 1)));
        step(&world.db, &second(2).tx(), &Decision::Include(inclusion(1)));
        assert_eq!(world.standing(&approved).tx, Some(second(2).tx()));
    }
}

#[test]
fn a_payment_that_needs_no_approval_gives_back_none_that_was_used_up() {
    let world = World::new();
    world.approved(AGENT, NOON);
    let first = world.paying(AGENT, 1);
    assert!(is_new(&first.claim(&world.db, NOON)));
    step(&world.db, &first.tx(), &Decision::Include(inclusion(1)));
    one(&world.db, "UPDATE purchases SET status = 'refunded' RETURNING id");
    world.asks_above(100);
    let free = world.paying(AGENT, 2);
    assert!(is_new(&free.claim(&world.db, NOON)));
    step(&world.db, &free.tx(), &Decision::Refuse("no".into()));
    world.asks_above(3);
    let third = Paying { checked: 1, replaced: 1, ..world.paying(AGENT, 3) };
    assert_eq!(third.claim(&world.db, NOON), UNAPPROVED);
}

#[test]
pub fn a_paid_or_pending_purchase_needs_no_second_approval() {
    let world = World::new();
    world.approved(AGENT, NOON);
    let payment = world.paying(AGENT, 1);
    assert!(is_new(&payment.claim(&world.db, NOON)));
    assert_eq!(payment.claim(&world.db, NOON + 2 * APPROVAL_MS), Claim::Blocked(WalletBlocked::Any(Blocked::Claimed)));
    let other = world.paying(AGENT, 2);
    assert_eq!(
        other.claim(&world.db, NOON + 2 * APPROVAL_MS),
        Claim::Blocked(WalletBlocked::Any(Blocked::PaymentOpen { tx: payment.tx() }))
    );
    step(&world.db, &payment.tx(), &Decision::Include(inclusion(1)));
    assert_eq!(
        other.claim(&world.db, NOON + 2 * APPROVAL_MS),
        Claim::Blocked(WalletBlocked::Any(Blocked::Owned { purchase: payment.tx() }))
    );
}

#[test]
fn equal_purchase_requests_are_one_until_answered() {
    let world = World::new();
    let asked = world.ask(AGENT, 1, NOON).unwrap();
    assert_eq!(asked.expires_at, NOON + REQUEST_MS);
    assert_eq!(world.ask(AGENT, 2, NOON + REQUEST_MS - 1), Some(asked.clone()), "asked again");
    let declined = world.answer(&asked, Answer::Decline, NOON).unwrap();
    assert_eq!(declined.status, RequestStatus::Declined);
    assert_eq!(world.ask(AGENT, 3, NOON + 1), Some(declined), "no means no");
    assert_eq!(world.paying(AGENT, 1).claim(&world.db, NOON + 1), UNAPPROVED);
    assert_eq!(
        world.answer(&asked, Answer::Approve, NOON + 2).unwrap().status,
        RequestStatus::Approved,
        "on second thought"
    );
    assert_eq!(world.answer(&asked, Answer::Decline, NOON + 3).unwrap().status, RequestStatus::Declined);
    assert_eq!(world.paying(AGENT, 1).claim(&world.db, NOON + 4), UNAPPROVED);
    let over = NOON + 2 * REQUEST_MS;
    assert_eq!(world.answer(&asked, Answer::Approve, over), None, "it is over");
    assert_ne!(world.ask(AGENT, 4, over).unwrap().id, asked.id);
}

#[test]
fn only_the_owner_answers_purchase_requests_of_connected_agents() {
    let world = World::new();
    sign_up(&world.db, 2, NOON);
    let asked = world.ask(AGENT, 1, NOON).unwrap();
    let id = RequestId::parse(&asked.id).unwrap();
    for stranger in [token(2), token(3)] {
        assert_eq!(block(purchase_request::read(&world.db, &stranger, id, NOON)).unwrap(), None);
        assert_eq!(block(purchase_request::answer(&world.db, &stranger, id, Answer::Approve, NOON)).unwrap(), None);
    }
    assert_eq!(world.standing(&asked).status, RequestStatus::Waiting);
    world.answer(&asked, Answer::Approve, NOON).unwrap();
    one(&world.db, &format!("UPDATE oauth_grants SET revoked_at_ms = 1 WHERE id = '{AGENT}' RETURNING id"));
    assert_eq!(world.answer(&asked, Answer::Approve, NOON), None);
    assert_eq!(
        world.paying(AGENT, 1).claim(&world.db, NOON),
        Claim::Blocked(WalletBlocked::SpendRefused(SpendRefused::SignedOut))
    );
    assert_eq!(world.ask(AGENT, 2, NOON), None);
}

#[test]
fn an_agent_and_an_account_have_bounded_numbers_of_open_requests() {
    let world = World::new();
    let ask = |grant: &str, number: u8| {
        let listing = list(&world.db, number, 5 * ADA);
        block(world.asked(grant, &listing).ask(&world.db, RequestId::new([number; 16]), NOON)).unwrap()
    };
    let per_agent = u8::try_from(MAX_WAITING_PER_AGENT).unwrap();
    let asked: Vec<PurchaseRequest> = (2..2 + per_agent).map(|number| ask(AGENT, number).unwrap()).collect();
    assert_eq!(ask(AGENT, 50), None, "of one agent");
    world.answer(&asked[0], Answer::Decline, NOON).unwrap();
    assert!(ask(AGENT, 51).is_some(), "an answer makes room");
    assert!(ask(OTHER, 52).is_some(), "another agent is not kept from asking");
    let all = MAX_WAITING.div_ceil(MAX_WAITING_PER_AGENT);
    let agents: Vec<String> = (0..all).map(|number| format!("{number:032x}")).collect();
    agents.iter().for_each(|agent| connect(&world.db, &world.account, agent));
    let mut number = 60;
    let open = || block(world.db.fetch(purchase_request::waiting(&world.account.owner, NOON))).unwrap().len();
    for agent in &agents {
        for _ in 0..per_agent {
            number += 1;
            let is_full = open() == MAX_WAITING as usize;
            assert_eq!(ask(agent, number).is_none(), is_full, "of all agents together");
        }
    }
    assert_eq!(open(), MAX_WAITING as usize);
    one(&world.db, &format!("UPDATE oauth_grants SET revoked_at_ms = 1 WHERE id = '{AGENT}' RETURNING id"));
    assert!(ask(OTHER, 200).is_some(), "an agent's removal makes room");
}

/// Sets the rules of the account's agents, without an approval price.
fn set_rules(world: &World, protected_only: bool, min_reputation: u32) {
    let rules = RuleChanges::parse(Some(100), Some(protected_only), Some(min_reputation)).unwrap();
    let limits = account::limits(10, 500).unwrap();
    block(account::set_limits(&world.db, &token(1), limits, rules, NOON)).unwrap().unwrap();
}

fn pause(world: &World, paused: bool) {
    let account = block(account::pause_agents(&world.db, &token(1), paused, NOON)).unwrap().unwrap();
    assert_eq!(account.rules.agents_paused, paused);
}

fn seller_has(world: &World, withdrawn: u32, refunded: u32) {
    let sql = format!(
        "UPDATE sellers SET withdrawn = {withdrawn}, refunded = {refunded} \
         WHERE address = (SELECT seller_address FROM listings WHERE id = '{}') RETURNING address",
        world.listing
    );
    one(&world.db, &sql);
}

#[test]
fn a_rule_set_between_an_agents_check_and_its_claim_refuses_the_claim() {
    type Set = fn(&World);
    let cases: [(Set, SpendRefused); 3] = [
        (|world| pause(world, true), SpendRefused::Paused),
        (|world| set_rules(world, true, 0), SpendRefused::ProtectedOnly),
        (|world| set_rules(world, false, 80), SpendRefused::Reputation { least: 80 }),
    ];
    for (set, refused) in cases {
        let world = World::new();
        set_rules(&world, false, 0);
        let price = Lovelace::new(5 * ADA).unwrap();
        let check = |grant| {
            let account = world.account(grant);
            block(world.db.fetch(conditions(&account, &world.listing, DeliveryMode::Instant, price, NOON))).unwrap()
        };
        let (payment, account) = (world.paying(AGENT, 1), reread(&world.db, 1, NOON));
        assert_eq!(check(AGENT), None);
        set(&world);
        assert_eq!(check(AGENT), Some(WalletBlocked::SpendRefused(refused)));
        for payment in [payment, world.paying(OTHER, 2)] {
            assert_eq!(payment.claim(&world.db, NOON), Claim::Blocked(WalletBlocked::SpendRefused(refused)));
        }
        assert_eq!(one(&world.db, "SELECT CAST(count(*) AS TEXT) FROM outbox"), "0", "nothing is written");
        assert!(matches!(account.authorization, Some(Authorization::Session(_))));
        let own = Paying { account: Some(account), ..world.paying(AGENT, 3) };
        assert!(is_new(&own.claim(&world.db, NOON)), "the owner's own purchase");
    }
}

#[test]
fn agents_buy_what_the_owners_rules_allow() {
    let protected = World::new();
    set_rules(&protected, true, 0);
    let payment = Paying { mode: DeliveryMode::Protected, ..protected.paying(AGENT, 1) };
    assert!(is_new(&payment.claim(&protected.db, NOON)));
    for (withdrawn, refunded, least, allowed) in [
        (0, 0, 0, true),
        (0, 0, 1, false),
        (8, 2, 80, true),
        (8, 2, 81, false),
        (189, 11, 95, true),
        (189, 11, 96, false),
        (1, 0, 100, true),
        (0, 1, 1, false),
    ] {
        let world = World::new();
        seller_has(&world, withdrawn, refunded);
        set_rules(&world, false, least);
        assert_eq!(is_new(&world.paying(AGENT, 1).claim(&world.db, NOON)), allowed, "{withdrawn} {refunded} {least}");
    }
    let paused = World::new();
    set_rules(&paused, false, 0);
    pause(&paused, true);
    set_rules(&paused, false, 0);
    assert!(!is_new(&paused.paying(AGENT, 1).claim(&paused.db, NOON)), "limits do not end a pause");
    pause(&paused, false);
    assert!(is_new(&paused.paying(AGENT, 1).claim(&paused.db, NOON)));
}

#[test]
fn a_rule_that_is_not_named_stays_and_only_the_owner_sets_them() {
    let world = World::new();
    set_rules(&world, true, 80);
    world.asks_above(3);
    let rules = reread(&world.db, 1, NOON).rules;
    assert_eq!((rules.protected_only, rules.min_reputation), (true, 80));
    assert!(RuleChanges::parse(None, None, Some(101)).is_err());
    assert_eq!(block(account::pause_agents(&world.db, &token(9), true, NOON)).unwrap(), None);
    assert!(!reread(&world.db, 1, NOON).rules.agents_paused);
}

#[test]
fn a_payment_that_was_claimed_before_a_pause_is_still_found() {
    let world = World::new();
    set_rules(&world, false, 0);
    let payment = world.paying(AGENT, 1);
    assert!(is_new(&payment.claim(&world.db, NOON)));
    pause(&world, true);
    let blocked = |payment: &Paying| payment.claim(&world.db, NOON);
    assert_eq!(
        blocked(&world.paying(AGENT, 2)),
        Claim::Blocked(WalletBlocked::Any(Blocked::PaymentOpen { tx: payment.tx() }))
    );
    step(&world.db, &payment.tx(), &Decision::Include(inclusion(1)));
    let owned = Blocked::Owned { purchase: payment.tx() };
    assert_eq!(blocked(&world.paying(AGENT, 2)), Claim::Blocked(WalletBlocked::Any(owned)));
}
