//! Decides when the operator is notified of alarms.
//!
//! A notification is due when the set of alarms changes, again every six hours for as long as it lasts, and once when
//! it is over. Two sets are equal if they have the same names equally often. Messages are not compared, because they
//! contain figures that change with every run of the watcher.

use api_types::{Alarm, AlarmName};
use cardano::slots::Millis;
use serde::{Deserialize, Serialize};
use sql::Write;

/// Time in ms after which the operator is notified again of alarms that persist.
const REMINDER_MS: Millis = 6 * 60 * 60 * 1_000;
/// Number of consecutive runs of the watcher that must fail before the operator is notified. A provider that fails once
/// usually answers a minute later.
const FAILURES: u32 = 3;
/// Maximum number of characters of a notification's text, because Discord rejects messages of more than 2,000.
const MAX_TEXT: usize = 1_900;

/// Alarms that the operator was last notified of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// Names of the alarms, sorted.
    pub names: Vec<AlarmName>,
    /// Time of the notification, POSIX ms.
    pub at: Millis,
}

/// Reason for a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The set of alarms changed.
    Raised,
    /// The same set of alarms has lasted for six hours since the last notification.
    Reminder,
    /// No alarm is left.
    Over,
}

/// A notification in the form that webhooks expect. Slack and Mattermost show `text`, Discord shows `content`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notification {
    pub text: String,
    pub content: String,
    pub event: Event,
    pub alarms: Vec<Alarm>,
}

/// Returns whether the alarm of a failed run of the watcher is worth a notification after this many consecutive
/// failures.
#[must_use]
pub fn is_worth_notifying(failed: &Alarm, failures: u32) -> bool {
    failed.name != AlarmName::TickFailed || failures >= FAILURES
}

impl Notified {
    /// Creates the record that the operator was notified of these alarms at this time (POSIX ms).
    #[must_use]
    pub fn of(alarms: &[Alarm], at: Millis) -> Self {
        let mut names: Vec<AlarmName> = alarms.iter().map(|alarm| alarm.name).collect();
        names.sort_unstable();
        Self { names, at }
    }

    /// Returns the notification that is due now, or `None`.
    #[must_use]
    pub fn due(&self, alarms: &[Alarm], now: Millis) -> Option<Notification> {
        let current = Self::of(alarms, now);
        let event = match (current.names.is_empty(), current.names == self.names) {
            (true, true) => return None,
            (true, false) => Event::Over,
            (false, false) => Event::Raised,
            (false, true) if now.saturating_sub(self.at) >= REMINDER_MS => Event::Reminder,
            (false, true) => return None,
        };
        let text = text(event, alarms);
        Some(Notification { content: text.clone(), text, event, alarms: alarms.to_vec() })
    }

    /// Builds the statement that records a delivered notification.
    pub fn record(&self) -> Write {
        sql::write!("UPDATE last_tick SET notified = ?1 WHERE id = 1", serde_json::json!(self).to_string())
    }
}

fn text(event: Event, alarms: &[Alarm]) -> String {
    let heading = match event {
        Event::Raised => "Surety: alarm",
        Event::Reminder => "Surety: the alarm lasts",
        Event::Over => return "Surety: all clear, no alarm is left".to_owned(),
    };
    let lines = alarms.iter().map(|Alarm { message, advice, .. }| format!("\n- {message}\n  {advice}"));
    let text: String = std::iter::once(heading.to_owned()).chain(lines).collect();
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_750_000_000_000;

    fn alarm(name: AlarmName, message: &str) -> Alarm {
        Alarm::new(name, message)
    }

    fn event(notified: &Notified, alarms: &[Alarm], now: Millis) -> Option<Event> {
        notified.due(alarms, now).map(|notification| notification.event)
    }

    #[test]
    fn a_set_of_alarms_is_notified_when_it_changes_every_six_hours_and_when_it_is_over() {
        let old = [alarm(AlarmName::OldBlock, "4 minutes old")];
        assert_eq!(event(&Notified::default(), &[], NOW), None);
        assert_eq!(event(&Notified::default(), &old, NOW), Some(Event::Raised));
        let told = Notified::of(&old, NOW);
        let older = [alarm(AlarmName::OldBlock, "5 minutes old")];
        assert_eq!(event(&told, &older, NOW + 60_000), None, "a figure is no change");
        assert_eq!(event(&told, &older, NOW + REMINDER_MS), Some(Event::Reminder));
        let both = [alarm(AlarmName::DisputeLate, "a dispute"), older[0].clone()];
        assert_eq!(event(&told, &both, NOW + 1), Some(Event::Raised));
        let twice = [both[0].clone(), both[0].clone(), older[0].clone()];
        assert_eq!(event(&Notified::of(&both, NOW), &twice, NOW + 1), Some(Event::Raised), "a second dispute");
        assert_eq!(event(&told, &[], NOW + 1), Some(Event::Over));
    }

    #[test]
    fn a_notification_says_what_to_do_within_the_length_that_discord_shows() {
        let told = Notified::default().due(&[alarm(AlarmName::DisputeLate, "a dispute")], NOW).unwrap();
        assert!(told.text.contains("a dispute\n  ARBITER_TOKEN differs"), "{}", told.text);
        let long = alarm(AlarmName::TickFailed, &"é".repeat(5_000));
        assert_eq!(Notified::default().due(&[long], NOW).unwrap().content.chars().count(), MAX_TEXT);
    }

    #[test]
    fn one_failed_tick_is_no_notification_and_a_refused_project_is() {
        let failed = alarm(AlarmName::TickFailed, "503");
        assert!(!is_worth_notifying(&failed, FAILURES - 1) && is_worth_notifying(&failed, FAILURES));
        assert!(is_worth_notifying(&alarm(AlarmName::ProviderRefusesProject, "403"), 1));
    }
}
