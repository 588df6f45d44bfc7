//! The buyer's verdict: what was said, what follows from it, and where the buyer says it. A verdict moves no money by itself:
//! the contract listens to signatures alone. For what a service wallet bought, the watcher signs.

use market::purchase::{Status, Verification};
use maud::{Markup, html};

use crate::{parts, view::Purchase};

/// What a buyer can have found, with what follows from it.
const FOUND: [(Verification, &str); 3] = [
    (Verification::Ok, "It is what was listed."),
    (Verification::Mismatch, "It is something else than what was listed."),
    (Verification::NoResultYet, "Nothing came yet."),
];

/// In a sentence.
pub const fn words(verdict: Verification) -> &'static str {
    match verdict {
        Verification::Ok => "It is what was listed",
        Verification::Mismatch => "It is not what was listed",
        Verification::NoResultYet => "Nothing was delivered yet",
    }
}

/// What follows from a verdict, or from none.
pub const fn follows(verdict: Option<Verification>, status: Status) -> &'static str {
    match (status, verdict) {
        (Status::Settled, _) => "The seller was paid at once, for good: a verdict tells others, and moves no money.",
        (Status::FundsLocked, Some(Verification::Mismatch)) => {
            "By itself this moves no money. Paid from your own wallet: ask for a refund above, and sign it. Paid from a service \
             wallet: the service disputes as soon as the delivery is posted, and takes the money back if none is."
        }
        (Status::ResultSubmitted, Some(Verification::Mismatch)) => {
            "By itself this moves no money. Paid from your own wallet: dispute above, in time, and sign it. Paid from a service \
             wallet: the service disputes by itself, within minutes."
        }
        (Status::FundsLocked | Status::ResultSubmitted, Some(Verification::Ok)) => {
            "The seller is paid when the time to dispute is over."
        }
        (Status::FundsLocked, _) => {
            "Compare what you got with what was listed. Without a proof of delivery the money goes back."
        }
        (Status::ResultSubmitted, _) => "Compare what you got with what was listed while you can dispute it.",
        (Status::RefundRequested | Status::Disputed, _) => {
            "The money was asked back already. The arbiter decides by the hashes, not by this."
        }
        _ => "The money has gone its way: a verdict tells others, and moves none.",
    }
}

/// Whether a verdict can still tell anybody anything.
const fn is_asked_for(status: Status) -> bool {
    !matches!(status, Status::Refunded | Status::RefundAuthorized | Status::Closed)
}

/// The section; nothing where nothing was said and nothing can be.
pub fn section(purchase: &Purchase) -> Markup {
    let Purchase { verification, status, .. } = *purchase;
    if verification.is_none() && !is_asked_for(status) {
        return html! {};
    }
    html! {
        section aria-labelledby="verdict" {
            h2 #verdict { "The buyer's verdict" }
            p {
                strong { (verification.map_or("Not given yet", words)) ". " }
                (follows(verification, status))
            }
            @if is_asked_for(status) { (form(verification, status)) }
        }
    }
}

/// Shown by the script, because somebody has to sign or be signed in.
fn form(said: Option<Verification>, status: Status) -> Markup {
    let open = matches!(status, Status::FundsLocked | Status::RefundRequested);
    let possible = FOUND.into_iter().filter(|(found, _)| open || *found != Verification::NoResultYet);
    html! {
        details #judge hidden {
            summary { @if said.is_some() { "Change it, if you bought this" } @else { "You bought this? Say what you found" } }
            form #verdicts.choices {
                @for (found, words) in possible {
                    label { input type="radio" name="verification" value=(found.as_str()); (words) }
                }
            }
            div.wallets {
                button #judge-account type="button" hidden { "Say so from your account" }
                div #judge-wallet {
                    p.note { "Sign with the wallet that paid. It costs nothing." }
                    div.offered #judges {}
                    (parts::no_wallet())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_found_something_else_is_told_what_to_do_while_it_can_be_done() {
        for (status, told) in [
            (Status::FundsLocked, "ask for a refund above"),
            (Status::ResultSubmitted, "dispute above"),
            (Status::Disputed, "asked back already"),
            (Status::Settled, "moves no money"),
            (Status::Withdrawn, "moves none"),
        ] {
            assert!(follows(Some(Verification::Mismatch), status).contains(told), "{status:?}");
        }
    }
}
