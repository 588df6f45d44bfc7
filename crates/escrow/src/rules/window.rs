//! Time windows in which actions are possible, and the actions that a party can take.
//!
//! ```text
//!             opens           closes
//!  ── Early ────┤──── Open ─────┤──── Over ──
//! ```

use cardano::slots::Millis;

use super::{Party, Rule};
use crate::{datum::Datum, redeemer::Action};

/// Time window in which the contract permits an action, in POSIX milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Start of the window, inclusive; 0 if the action is possible at once.
    pub opens: Millis,
    /// End of the window, exclusive; `None` if the window stays open until another action changes the escrow.
    pub closes: Option<Millis>,
}

/// Position of a point in time relative to a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// The window opens at this time, in POSIX milliseconds.
    Early(Millis),
    /// The window is open.
    Open,
    /// The window has closed, or too little time remains before it closes.
    Over,
}

impl Window {
    /// Compares a time with the window, for an action that must happen at least `margin` milliseconds before the window
    /// closes. A window that is shorter than `margin` is never open.
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
    /// Returns the time window of an action on this escrow, or `None` if the contract does not permit the action.
    #[must_use]
    pub fn window(&self, action: Action) -> Option<Window> {
        Rule::find(action, self).map(|rule| rule.window(self))
    }

    /// Returns the actions that the rules allow a party in the escrow's state, each with its time window. A window may
    /// already be over or may not be open yet. Yields nothing if the party's address belongs to a script.
    pub fn windows_of(&self, party: Party) -> impl Iterator<Item = (Action, Window)> {
        let rules = Action::ALL.into_iter().filter_map(|action| Rule::find(action, self));
        let own = rules.filter(move |rule| rule.by == party && rule.signer(self).is_ok());
        own.map(|rule| (rule.action, rule.window(self)))
    }

    /// Returns each action that a party can take on this escrow at `now`, with the end of its time window. The end is
    /// `None` if the window stays open until another action changes the escrow.
    pub fn open_to(&self, party: Party, now: Millis) -> impl Iterator<Item = (Action, Option<Millis>)> {
        let open = self.windows_of(party).filter(move |(_, window)| window.timing(now, 0) == Timing::Open);
        open.map(|(action, window)| (action, window.closes))
    }
}
