use cardano::Lovelace;
use market::receipt::Receipt;
use serde_json::{Value, json};

use super::*;
use crate::purchase::{Shown, page};

const SUBMIT: u64 = 1_000_000_000;
const UNLOCK: u64 = 2_000_000_000;
const ARBITER: u64 = 3_000_000_000;

fn purchase(events: &[&str], change: impl FnOnce(&mut Value)) -> Purchase {
    let id = "7".repeat(64);
    let tx = |n: usize| format!("{n:064x}");
    let event = |(n, status): (usize, &&str)| json!({ "status": status, "txHash": tx(n), "at": n.to_string() });
    let last = events.iter().rfind(|status| **status != "creator_paid");
    let proven = events.iter().any(|status| matches!(*status, "ResultSubmitted" | "Disputed"));
    let mut purchase = json!({
        "id": id, "listingId": "lst_1", "mode": "protected", "status": last, "txHash": id,
        "buyerAddress": "addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv",
        "events": events.iter().enumerate().map(event).collect::<Vec<_>>(),
        "escrow": { "address": "addr_test1", "inputHash": id, "identifierFromPurchaser": id, "deadlines": {
            "payBy": "500", "submitResult": SUBMIT.to_string(), "unlock": UNLOCK.to_string(),
            "externalDisputeUnlock": ARBITER.to_string() } },
    });
    if proven {
        purchase["escrow"]["resultHash"] = json!(id);
    }
    change(&mut purchase);
    serde_json::from_value(purchase).unwrap()
}

fn shown(purchase: &Purchase, now: u64) -> String {
    let receipt = Receipt { price: Lovelace::from_ada(5), fee: None, locked: Some(Lovelace::from_ada(6)) };
    page(&Shown { purchase, listing: None, for_sale: false, receipt, now, explorer: "https://e/" })
}

/// Returns the words of a page, without its tags.
fn words(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

/// A test case: the purchase's events, the time, the expected headline, the expected actions (for a purchase from a
/// wallet, and from a Surety balance), and whether the buyer may read the content.
type Row = (&'static [&'static str], u64, &'static str, [Option<BuyerAction>; 2], bool);

#[rustfmt::skip]
const STATES: &[Row] = {
    use BuyerAction::{Dispute, Release, RequestRefund, TakeRefund};
    &[
        (&["FundsLocked"], SUBMIT - 1, "Waiting for the proof of delivery", [Some(RequestRefund), Some(RequestRefund)], false),
        (&["FundsLocked"], SUBMIT, "No proof of delivery came in time", [Some(TakeRefund), Some(TakeRefund)], false),
        (&["FundsLocked", "RefundRequested"], SUBMIT - 1, "You asked for a refund", [None, None], false),
        (&["FundsLocked", "RefundRequested"], SUBMIT, "No proof of delivery came in time", [Some(TakeRefund), Some(TakeRefund)], false),
        (&["FundsLocked", "ResultSubmitted"], UNLOCK - 1, "Delivered", [Some(Dispute), Some(Dispute)], true),
        (&["FundsLocked", "ResultSubmitted"], UNLOCK, "Delivered", [None, None], true),
        (&["FundsLocked", "ResultSubmitted", "Disputed"], ARBITER - 1, "You disputed this purchase", [Some(Release), Some(Release)], true),
        (&["FundsLocked", "RefundRequested", "Disputed"], ARBITER, "You disputed this purchase", [Some(Release), Some(Release)], true),
        (&["FundsLocked", "ResultSubmitted", "Disputed", "WithdrawAuthorized"], 0, "You released the money", [None, None], true),
        (&["FundsLocked", "RefundAuthorized"], 0, "The seller agreed to a refund", [Some(TakeRefund), None], false),
        (&["FundsLocked", "ResultSubmitted", "withdrawing"], UNLOCK, "The seller is being paid", [None, None], true),
        (&["FundsLocked", "ResultSubmitted", "withdrawn"], UNLOCK, "Complete", [None, None], true),
        (&["FundsLocked", "ResultSubmitted", "withdrawn", "creator_paid"], UNLOCK, "Complete", [None, None], true),
        (&["FundsLocked", "refunded"], SUBMIT, "Refunded", [None, None], false),
        (&["FundsLocked", "ResultSubmitted", "Disputed", "RefundAuthorized", "refunded"], ARBITER, "Refunded", [None, None], false),
        (&["FundsLocked", "ResultSubmitted", "Disputed", "withdrawn"], ARBITER, "You lost the dispute", [None, None], true),
        (&["FundsLocked", "ResultSubmitted", "Disputed", "withdrawn", "creator_paid"], ARBITER, "You lost the dispute", [None, None], true),
        (&["FundsLocked", "ResultSubmitted", "Disputed", "refunded"], ARBITER, "You won the dispute", [None, None], false),
        (&["FundsLocked", "ResultSubmitted", "Disputed", "closed"], ARBITER, "The arbiter divided the money", [None, None], true),
        (&["FundsLocked", "closed"], ARBITER, "Closed", [None, None], true),
    ]
};

#[test]
fn each_state_has_one_headline_and_at_most_one_action_on_its_page() {
    for &(events, now, what, actions, readable) in STATES {
        for (balance, action) in [false, true].into_iter().zip(actions) {
            let purchase = purchase(events, |it| {
                if balance {
                    it["paidFromBalance"] = json!(true);
                }
            });
            let case = format!("{events:?} at {now}, from a balance {balance}");
            let told = tell(&purchase, now);
            assert_eq!((told.headline, told.action.map(|offer| offer.action)), (what, action), "{case}");
            assert!(told.changes_at_ms.is_none_or(|at| at > now), "{case}");
            assert_eq!(is_readable(&purchase), readable, "{case}");
            let html = shown(&purchase, now);
            let offered: Vec<&str> =
                html.split("data-action=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
            assert_eq!(offered, action.map(BuyerAction::name).into_iter().collect::<Vec<_>>(), "{case}");
            assert_eq!(html.matches("<h2 id=\"next\">").count(), 1, "{case}");
            assert_eq!(html.contains(" data-readable"), readable, "{case}");
            assert!(words(&html).contains(what), "{case}");
        }
    }
}

#[test]
fn what_happens_by_itself_is_said_so_with_its_time() {
    let from = |balance: bool, events: &[&str], now| {
        let purchase = purchase(events, |it| {
            if balance {
                it["paidFromBalance"] = json!(true);
            }
        });
        words(&shown(&purchase, now))
    };
    let locked: &[&str] = &["FundsLocked"];
    assert!(
        from(true, locked, 0).contains("If no proof comes by 13:46 UTC, your money returns to your balance by itself.")
    );
    assert!(from(false, locked, 0).contains("If no proof comes by 13:46 UTC, you take your money back here."));
    assert!(from(true, locked, SUBMIT).contains("Your money returns to your balance by itself"));
    assert!(from(true, &["FundsLocked", "ResultSubmitted"], 0).contains("the seller is paid at 03:33 UTC."));
}

#[test]
fn a_dispute_ends_with_its_decision_its_reason_and_its_transaction() {
    let decided = |winner: &str, end: &str| {
        purchase(&["FundsLocked", "ResultSubmitted", "Disputed", end], |it| {
            let reason = "the output does not hash to what the listing promised";
            it["decision"] = json!({ "winner": winner, "reason": reason, "txHash": "0".repeat(63) + "3" });
        })
    };
    for (winner, end, headline) in
        [("seller", "withdrawn", "You lost the dispute"), ("buyer", "refunded", "You won the dispute")]
    {
        let html = shown(&decided(winner, end), ARBITER);
        assert!(html.contains(headline) && html.contains("the output does not hash"), "{end}");
        assert!(html.contains(&format!("https://e/{:064x}", 3)), "{end}: its transaction");
        assert!(!html.contains("Complete"), "{end}: no normal sale");
    }
}

#[test]
fn an_instant_purchase_is_delivered_and_final() {
    let instant = purchase(&["settled"], |it| {
        it["escrow"] = Value::Null;
        it["mode"] = json!("instant");
    });
    let told = tell(&instant, 0);
    assert_eq!((told.headline, told.action.is_none(), is_readable(&instant)), ("Delivered", true, true));
    assert!(words(&shown(&instant, 0)).contains("buyer protection does not cover it"));
}
