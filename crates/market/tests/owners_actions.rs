//! Actions of an account's owner on what its service wallet paid for: one transaction, whoever asks and however often,
//! and nobody else's purchase. On a chain in memory.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::cell::RefCell;

use crate::support::{
    NOON, block,
    interrupted::Interrupted,
    one, person,
    sales::{PRICE, Sales, creator, run},
    sign_up,
};
use api_types::{
    BuyerAction::{self, Dispute, Release, RequestRefund, TakeRefund},
    Disputes,
    arbiter::{Finding, ResolveResult},
};
use cardano::{Lovelace, TxHash, chain::Utxo, keys::SigningKey};
use escrow::{
    Action,
    dispute::Split,
    evidence::{Checks, Winner},
};
use market::{
    account::Account,
    actions::{ActionError, Actions, NoEscrow, Owner},
    catalogue,
    chain_state::ClockLead,
    contents::InDatabase,
    purchase,
};
use sql::Database;

fn perform_on(
    sales: &Sales,
    database: &impl Database,
    lock: &TxHash,
    action: BuyerAction,
    (account, key): &(Account, SigningKey),
) -> Result<TxHash, ActionError> {
    let actions = Actions {
        database,
        chain: &sales.ledger,
        contents: &InDatabase(database),
        deployment: &sales.deployment,
        now: sales.now(),
        lead: ClockLead::Bounded,
    };
    let before = sales.ledger.calls.replace(0);
    let done = block(actions.perform(lock, action, &Owner { account, key, platform: &sales.platform.seller }));
    sales.ledger.calls.set(before);
    done
}

fn perform(
    sales: &Sales,
    lock: &TxHash,
    action: BuyerAction,
    owner: &(Account, SigningKey),
) -> Result<TxHash, ActionError> {
    perform_on(sales, &sales.db, lock, action, owner)
}

/// A sale to a service wallet, whose key the watcher has, too.
fn sold_to_account() -> (Sales, (Account, SigningKey), TxHash) {
    let mut sales = Sales::new();
    let owner = sign_up(&sales.db, 7, NOON);
    sales.platform.wallets = vec![owner.1.clone()];
    let lock = sales.sell(&owner.1);
    (sales, owner, lock)
}

fn entries(sales: &Sales, kind: &str) -> String {
    one(&sales.db, &format!("SELECT CAST(count(*) AS TEXT) FROM outbox WHERE kind = '{kind}'"))
}

#[test]
fn an_owner_disputes_and_releases_what_the_balance_paid() {
    let (sales, owner, lock) = sold_to_account();
    sales.ticks(3);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    let disputed = perform(&sales, &lock, Dispute, &owner).unwrap();
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "Disputed");
    assert_eq!(perform(&sales, &lock, Dispute, &owner), Ok(disputed), "it is done, and not done again");
    assert!(matches!(perform(&sales, &lock, TakeRefund, &owner), Err(ActionError::NotNow { .. })));
    // The contract gives each party a pause between two actions.
    assert!(matches!(perform(&sales, &lock, Release, &owner), Err(ActionError::TooEarly { .. })));
    sales.until(20);
    let released = perform(&sales, &lock, Release, &owner).unwrap();
    assert_eq!(perform(&sales, &lock, Release, &owner), Ok(released), "on its way");
    sales.ticks(2);
    assert!(["WithdrawAuthorized", "withdrawing", "withdrawn"].contains(&sales.status(&lock).as_str()));
}

#[test]
fn a_request_for_a_refund_never_starts_a_dispute() {
    let (sales, owner, lock) = sold_to_account();
    sales.ledger.mine();
    sales.includes(&lock);
    assert!(matches!(perform(&sales, &lock, Dispute, &owner), Err(ActionError::NotNow { .. })), "nothing is posted");
    sales.post(&lock).unwrap();
    assert!(
        matches!(perform(&sales, &lock, RequestRefund, &owner), Err(ActionError::OnItsWay(_))),
        "a proof is on its way"
    );
    sales.ledger.mine();
    let refused = perform(&sales, &lock, RequestRefund, &owner);
    assert!(matches!(refused, Err(ActionError::NotNow { .. } | ActionError::OnItsWay(_))), "{refused:?}");
    assert_eq!(entries(&sales, "dispute"), "0");
}

#[test]
pub fn an_owner_asks_for_a_refund_and_takes_it_when_no_proof_comes() {
    let (sales, owner, lock) = sold_to_account();
    sales.ledger.mine();
    sales.includes(&lock);
    let asked = perform(&sales, &lock, RequestRefund, &owner).unwrap();
    assert_eq!(perform(&sales, &lock, RequestRefund, &owner), Ok(asked));
    sales.ledger.mine();
    sales.until(17);
    assert!(sales.ledger.inclusion(&asked).is_some());
    let taken = perform(&sales, &lock, TakeRefund, &owner).unwrap();
    assert_eq!(perform(&sales, &lock, TakeRefund, &owner), Ok(taken));
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "refunded");
    assert_eq!(perform(&sales, &lock, TakeRefund, &owner), Ok(taken), "taken once");
    let to = owner.0.wallet_address.to_string();
    let whole = |utxo: &Utxo| utxo.address == to && utxo.value.lovelace.get() == PRICE;
    assert_eq!(sales.ledger.unspent().iter().filter(|utxo| whole(utxo)).count(), 1, "the platform pays the fee");
}

#[test]
fn an_owners_dispute_and_the_watchers_at_once_are_one_transaction() {
    for at in ["INSERT INTO outbox", "SELECT p.mode"] {
        let (sales, owner, lock) = sold_to_account();
        sales.ticks(3);
        run(&sales, &format!("UPDATE payments SET verification = 'mismatch' WHERE tx_id = '{lock}'"));
        run(&sales, "UPDATE escrow_watch SET next_at_ms = 0");
        let twice = RefCell::new(None);
        let first = {
            let beside = Interrupted::before(&sales.db, at, || {
                sales.tick();
                twice.replace(Some(perform(&sales, &lock, Dispute, &owner)));
            });
            perform_on(&sales, &beside, &lock, Dispute, &owner).unwrap()
        };
        assert_eq!(twice.into_inner(), Some(Ok(first)), "the watcher, and a second click");
        assert_eq!(entries(&sales, "dispute"), "1");
        sales.ticks(2);
        assert_eq!(sales.status(&lock), "Disputed");
    }
}

#[test]
fn an_account_acts_on_no_purchase_but_its_own() {
    let (sales, _, lock) = sold_to_account();
    sales.ticks(3);
    let stranger = sign_up(&sales.db, 8, NOON);
    let refused = perform(&sales, &lock, Dispute, &stranger);
    assert_eq!(refused, Err(ActionError::NoEscrow(NoEscrow::Unknown)));
    // Actions on a purchase that the owner's own wallet paid for need that wallet's signature.
    let bought = sales.sell_another(&person(8));
    sales.ticks(3);
    assert!(matches!(perform(&sales, &bought, Dispute, &stranger), Err(ActionError::OwnWallet(_))));
    assert_eq!(entries(&sales, "dispute"), "0");
}

#[test]
pub fn a_result_in_a_block_shows_without_a_tick() {
    let (sales, _, lock) = sold_to_account();
    sales.ledger.mine();
    sales.includes(&lock);
    sales.post(&lock).unwrap();
    sales.ledger.mine();
    assert_eq!(sales.status(&lock), "FundsLocked");
    let actions = Actions {
        database: &sales.db,
        chain: &sales.ledger,
        contents: &InDatabase(&sales.db),
        deployment: &sales.deployment,
        now: sales.now(),
        lead: ClockLead::Bounded,
    };
    block(actions.catch_up(&lock)).unwrap();
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    let calls = sales.ledger.calls.replace(0);
    block(actions.catch_up(&lock)).unwrap();
    assert_eq!(sales.ledger.calls.get(), 0, "nothing is on its way any more, after {calls} calls");
}

#[test]
fn a_dispute_that_the_hashes_decide_is_foretold() {
    let (sales, owner, lock) = sold_to_account();
    sales.ticks(3);
    let told = |sales: &Sales, lock: &TxHash| {
        let actions = Actions {
            database: &sales.db,
            chain: &sales.ledger,
            contents: &InDatabase(&sales.db),
            deployment: &sales.deployment,
            now: sales.now(),
            lead: ClockLead::Bounded,
        };
        let possible = block(actions.possible(lock)).unwrap();
        possible.actions.into_iter().find(|one| one.name == Some(Dispute)).unwrap()
    };
    let dispute = told(&sales, &lock);
    assert_eq!(dispute.expected_winner.as_deref(), Some("seller"));
    assert!(dispute.words.contains("you will lose"), "{}", dispute.words);
    let wrong = sales.sell_another(&owner.1);
    sales.ledger.mine();
    sales.does(&wrong, Action::SubmitResult);
    sales.ticks(1);
    let delivered = format!(
        "INSERT INTO escrow_watch (purchase_id, utxo, next_at_ms, delivered_hash) \
           SELECT purchase_id, utxo, next_at_ms, '{}' FROM escrows WHERE purchase_id = '{wrong}' \
         ON CONFLICT (purchase_id) DO UPDATE SET delivered_hash = excluded.delivered_hash",
        "11".repeat(32)
    );
    run(&sales, &delivered);
    let dispute = told(&sales, &wrong);
    assert_eq!(dispute.expected_winner.as_deref(), Some("buyer"));
    assert!(dispute.words.contains("you will win"), "{}", dispute.words);
}

#[test]
pub fn a_dispute_shows_its_decision_with_reason_and_transaction() {
    let (sales, owner, lock) = sold_to_account();
    sales.ticks(3);
    perform(&sales, &lock, Dispute, &owner).unwrap();
    sales.ticks(2);
    let checks =
        Checks { escrow_is_for_listing: true, output_is_what_seller_posted: true, output_matches_listing: true };
    let reason = "delivered as listed".to_owned();
    let verdict = Finding { winner: Some(Winner::Seller), reason, evidence_deadline: String::new(), checks };
    let payout = Split { buyer: Lovelace::ZERO, seller: Lovelace::from_ada(10) };
    let tx = TxHash::new([9; 32]);
    sales.platform.arbiter.replace(Some(ResolveResult::Paid { verdict, payout, tx }));
    sales.until(48);
    sales.ticks(1);
    let shown = || block(purchase::one(&sales.db, &lock)).unwrap().unwrap();
    let decision = shown().decision.unwrap();
    assert_eq!((decision.winner.as_str(), decision.reason.as_str()), ("seller", "delivered as listed"));
    assert_eq!(decision.tx_hash, None, "the chain pays it out");
    sales.settles(&lock);
    sales.ticks(2);
    let figures = block(catalogue::seller(&sales.db, &creator())).unwrap();
    assert_eq!(figures.disputes, Some(Disputes { decided: 1, lost: 0 }));
    let shown = shown();
    assert_eq!(
        shown.decision.unwrap().tx_hash,
        shown.events.iter().find(|it| it.status == "withdrawn").map(|it| it.tx_hash)
    );
}
