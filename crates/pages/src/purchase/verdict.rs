//! The buyer's verdict, its consequences, and the buttons to give it.
//!
//! A verdict alone moves no money, because the contract requires signatures. For purchases from a Surety balance, the
//! watcher acts on it.

use market::purchase::{Status, Verification};
use maud::{Markup, html};

use crate::view::Purchase;

/// The possible verdicts, as the button says them and as shown to others.
const FOUND: [(Verification, &str, &str); 3] = [
    (Verification::Ok, "Yes, as listed", "it is what was listed"),
    (Verification::Mismatch, "No, something else", "it is not what was listed"),
    (Verification::NoResultYet, "Nothing came yet", "nothing came yet"),
];

/// Describes the consequences of a verdict, or of none.
const fn follows(verdict: Option<Verification>, status: Status) -> &'static str {
    match (status, verdict) {
        (Status::Settled, _) => "The seller was paid at once. An answer tells others; it moves no money.",
        (Status::FundsLocked, Some(Verification::Mismatch)) => {
            "This alone moves no money. Paid with your wallet? Ask for a refund above. Paid from your Surety balance? The \
             dispute starts by itself."
        }
        (Status::ResultSubmitted, Some(Verification::Mismatch)) => {
            "This alone moves no money. Paid with your wallet? Dispute above, in time. Paid from your Surety balance? The \
             dispute starts by itself, within minutes."
        }
        (Status::FundsLocked | Status::ResultSubmitted, Some(Verification::Ok)) => {
            "The seller is paid when the time to dispute is over."
        }
        (Status::FundsLocked | Status::ResultSubmitted, _) => "Your answer is shown here. It helps other buyers.",
        (Status::RefundRequested | Status::Disputed, _) => {
            "The money was asked back already. The arbiter compares the texts, whatever is answered here."
        }
        _ => "The money is paid out. An answer tells others; it moves no money.",
    }
}

/// Whether a verdict can still have an effect.
const fn is_asked_for(status: Status) -> bool {
    !matches!(status, Status::Refunded | Status::RefundAuthorized | Status::Closed)
}

/// Renders the section; `None` if there is no verdict and none can be given.
pub fn section(purchase: &Purchase) -> Option<Markup> {
    let Purchase { verification, status, .. } = *purchase;
    let asked = is_asked_for(status);
    (asked || verification.is_some()).then(|| {
        let open = matches!(status, Status::FundsLocked | Status::RefundRequested);
        let said = FOUND.into_iter().find(|(found, ..)| Some(*found) == verification);
        let possible = FOUND.into_iter().filter(|(found, ..)| open || *found != Verification::NoResultYet);
        html! {
            section.stack #judge aria-labelledby="verdict" {
                h3 #verdict { "Was it what was listed?" }
                p.small { @if let Some((.., said)) = said { b { "The buyer says: " (said) "." } " " } (follows(verification, status)) }
                @if asked {
                    div.acts #verdicts hidden {
                        @for (found, words, _) in possible {
                            button.quiet type="button" value=(found.as_str()) aria-pressed=[(verification == Some(found)).then_some("true")] { (words) }
                        }
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_verdict_shows_the_next_step_while_it_is_possible() {
        for (status, told) in [
            (Status::FundsLocked, "Ask for a refund above"),
            (Status::ResultSubmitted, "Dispute above"),
            (Status::Disputed, "asked back already"),
            (Status::Settled, "moves no money"),
            (Status::Withdrawn, "moves no money"),
        ] {
            assert!(follows(Some(Verification::Mismatch), status).contains(told), "{status:?}");
        }
    }
}
