//! Each moment of each action: on it, a millisecond past it, and without the bound that would show it.

use escrow::{
    Datum,
    rules::{DatumTime, Rule},
};

use super::{Case, Group, honest_pairs, named};
use crate::escrow::matrix::{honest::Spending, rules::Broken};

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("times");
    for (action, state) in honest_pairs() {
        let spending = Spending::new(action, state);
        let name = named(action, state);
        let Some(rule) = Rule::find(action, &spending.datum) else { continue };
        let (Some(from), Some(until)) = (spending.validity.from, spending.validity.until) else { continue };
        group.forbidden(Broken::Bounded, format!("{name} without an end"), &spending, |tx| tx.validity.until = None);
        match rule.starts {
            [] => group.permitted(format!("{name} without a beginning"), &spending, |tx| tx.validity.from = None),
            moments => {
                group.permitted(format!("{name} at the first moment"), &spending, |_| ());
                let late = with(&spending, moments, from.saturating_add(1));
                group.forbidden(Broken::NotEarly, format!("{name} 1 ms early"), &late, |_| ());
                let name = format!("{name} without a beginning");
                group.forbidden(Broken::NotEarly, name, &spending, |tx| tx.validity.from = None);
            }
        }
        if !rule.ends.is_empty() {
            let edge = with(&spending, rule.ends, until.saturating_add(1));
            group.permitted(format!("{name} at the last moment"), &edge, |_| ());
            let over = with(&spending, rule.ends, until);
            group.forbidden(Broken::NotLate, format!("{name} 1 ms late"), &over, |_| ());
        }
        for moment in rule.ends {
            let missed = with(&spending, rule.ends, until);
            let only = with(&missed, &[*moment], until.saturating_add(1));
            group.permitted(format!("{name} before {moment:?} only"), &only, |_| ());
        }
    }
    group.cases
}

/// The same spending at the same time, of an escrow in which these moments are at another time.
fn with(spending: &Spending, moments: &[DatumTime], time: u64) -> Spending {
    let mut datum: Datum = spending.datum.clone();
    for moment in moments {
        match moment {
            DatumTime::SellerCooldown => datum.seller_cooldown = time,
            DatumTime::BuyerCooldown => datum.buyer_cooldown = time,
            DatumTime::SubmitResult => datum.deadlines.submit_result = time,
            DatumTime::Unlock => datum.deadlines.unlock = time,
            DatumTime::ExternalDisputeUnlock => datum.deadlines.external_dispute_unlock = time,
        }
    }
    Spending { datum, ..spending.clone() }
}
