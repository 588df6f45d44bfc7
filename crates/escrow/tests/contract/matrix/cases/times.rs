//! Cases of the time bounds of each action: met exactly, missed by a millisecond, and with a validity interval that
//! lacks the bound.

use surety_escrow::rules::DatumTime;

use super::{Broken, MatrixCases, Spending, honest};

pub(super) fn cases(cases: &mut MatrixCases) {
    for (name, spending, rule) in honest() {
        let (from, until) = (spending.validity.from.unwrap(), spending.validity.until.unwrap());
        cases.forbidden(Broken::Bounded, format!("{name} without an end"), &spending, |tx| tx.validity.until = None);
        let open = format!("{name} without a beginning");
        if rule.starts.is_empty() {
            cases.permitted(open, &spending, |tx| tx.validity.from = None);
        } else {
            cases.permitted(format!("{name} at the first moment"), &spending, |_| ());
            let late = with(&spending, rule.starts, from + 1);
            cases.forbidden(Broken::NotEarly, format!("{name} 1 ms early"), &late, |_| ());
            cases.forbidden(Broken::Bounded, open, &spending, |tx| tx.validity.from = None);
        }
        let missed = with(&spending, rule.ends, until);
        if !rule.ends.is_empty() {
            let edge = with(&spending, rule.ends, until + 1);
            cases.permitted(format!("{name} at the last moment"), &edge, |_| ());
            cases.forbidden(Broken::NotLate, format!("{name} 1 ms late"), &missed, |_| ());
        }
        for moment in rule.ends {
            let only = with(&missed, &[*moment], until + 1);
            cases.permitted(format!("{name} before {moment:?} only"), &only, |_| ());
        }
    }
}

/// Returns a copy of the action on an escrow whose time fields `moments` are set to `time`.
fn with(spending: &Spending, moments: &[DatumTime], time: u64) -> Spending {
    let mut spending = spending.clone();
    let datum = &mut spending.datum;
    for moment in moments {
        *match moment {
            DatumTime::SellerCooldown => &mut datum.seller_cooldown,
            DatumTime::BuyerCooldown => &mut datum.buyer_cooldown,
            DatumTime::SubmitResult => &mut datum.deadlines.submit_result,
            DatumTime::Unlock => &mut datum.deadlines.unlock,
            DatumTime::ExternalDisputeUnlock => &mut datum.deadlines.external_dispute_unlock,
        } = time;
    }
    spending
}
