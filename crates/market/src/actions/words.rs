//! Describes escrow actions to their signers.

use cardano::slots::Millis;
use escrow::{Action, plan::Escrow, rules::Party};

use super::LockedPurchase;
use crate::cip30::span;

/// Returns the party's name in the API.
pub(super) const fn party(by: Party) -> &'static str {
    match by {
        Party::Buyer => "buyer",
        Party::Seller => "seller",
        Party::Arbiters => "arbiters",
    }
}

/// Describes an action and its consequences.
pub(super) fn of(action: Action, escrow: &Escrow, known: &LockedPurchase, now: Millis) -> String {
    let (datum, held) = (&escrow.datum, escrow.utxo.value.lovelace.display_tada());
    let deadlines = &datum.deadlines;
    match action {
        Action::SetRefundRequested if datum.has_result() => {
            let outlook = match known.expected_winner(action, datum) {
                Some(Party::Seller) => {
                    "It compares fingerprints alone, and what was delivered has the listed one: you will lose this dispute."
                }
                Some(_) => {
                    "It compares fingerprints alone, and the proof of delivery is of something else: you will win."
                }
                None => "It compares fingerprints alone: that of what was delivered with the listed one.",
            };
            format!(
                "Dispute the purchase: the seller can no longer collect the {held}. If neither side gives in, the arbiter \
                 decides, in {} at the earliest. {outlook}",
                span(deadlines.external_dispute_unlock, now)
            )
        }
        Action::SetRefundRequested => format!(
            "Ask for a refund of {held}: without a proof of delivery within {}, the money goes back. If the seller posts \
             one in time, the purchase is in dispute, and the arbiter decides.",
            span(deadlines.submit_result, now)
        ),
        Action::AuthorizeWithdrawal => {
            format!("Release {held} to the seller: this ends the dispute, and the money does not come back.")
        }
        Action::WithdrawRefund => format!("Take back {held} from the escrow."),
        Action::SubmitResult => "Post the fingerprint of what was delivered, as the sale's result.".to_owned(),
        Action::AuthorizeRefund => format!("Give the buyer {held} back: the buyer can take it from then on."),
        Action::Withdraw => {
            format!("Collect {held}: {} of it go to the creator, {}.", known.share.display_tada(), known.creator)
        }
        Action::WithdrawDisputed => format!("Settle the dispute about {held} as the arbiter signed."),
    }
}
