//! When an action can be done, and who can do what.
//!
//! ```text
//!             opens           closes
//!  ── Early ────┤──── Open ─────┤──── Over ──
//! ```

use cardano::slots::Millis;

use super::{Party, Rule};
use crate::{datum::Datum, redeemer::Action};

/// When the contract permits an action, POSIX ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// From this time on; 0 where the action can be done at once.
    pub opens: Millis,
    /// Before this time; `None` where it stays possible as long as the escrow is as it is.
    pub closes: Option<Millis>,
}

/// Where a time stands to a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// Possible from this time on, POSIX ms.
    Early(Millis),
    /// Possible now.
    Open,
    /// Not possible any more, or too little time is left.
    Over,
}

impl Window {
    /// Where a time stands to the window, for an action that needs `margin` ms before the window closes. A window that
    /// opens too late for that is over before it opens.
    #[must_use]
    pub fn timing(self, now: Millis, margin: Millis) -> Timing {
        let starts = now.max(self.opens);
        match self.closes {
            Some(closes) if starts.saturating_add(margin) >= closes => Timing::Over,
            _ if now < self.opens => Timing::Early(self.opens),
            _ => Timing::Open,
        }
    }
}

impl Datum {
    /// When the contract permits an action on this escrow as it is now; `None` where no rule does.
    #[must_use]
    pub fn window(&self, action: Action) -> Option<Window> {
        Rule::find(action, self).map(|rule| rule.window(self))
    }

    /// What this party can do with this escrow as it is now, and when: also what is over or not open yet. Nothing for a
    /// party that is a script.
    pub fn windows_of(&self, party: Party) -> impl Iterator<Item = (Action, Window)> {
        let rules = Action::ALL.into_iter().filter_map(|action| Rule::find(action, self));
        let own = rules.filter(move |rule| rule.by == party && rule.signer(self).is_ok());
        own.map(|rule| (rule.action, rule.window(self)))
    }

    /// What this party can do at this time, each until when (`None`: as long as the escrow is as it is).
    pub fn open_to(&self, party: Party, now: Millis) -> impl Iterator<Item = (Action, Option<Millis>)> {
        let open = self.windows_of(party).filter(move |(_, window)| window.timing(now, 0) == Timing::Open);
        open.map(|(action, window)| (action, window.closes))
    }
}
