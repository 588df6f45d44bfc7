//! Structured logs: one line of JSON for each request and each run of the watcher.
//!
//! ```text
//! {"log":"request","id":"5f0c21e9-00002a","listing":"lst_...","method":"GET","route":"/listings/{id}/unlock","status":402,
//!  "ms":3,"calls":0,"batches":1,"statements":2,"rowsRead":2,"rowsWritten":0}
//! ```
//!
//! A line is written when its last clone is dropped, which for a streamed answer is the end of the stream. It contains
//! the route's template and the added fields, but never a token, a signature, a header, a body or a listing's content.

use std::{
    cell::{Cell, RefCell},
    fmt::Write as _,
    rc::Rc,
};

use serde::Serialize;
use serde_json::{Map, Value};
use worker::{console_error, console_log};

use crate::usage::{Costs, Usage};

/// Maximum length of a field in characters. Longer values are truncated, because an error may quote the whole answer of
/// another service.
const MAX_NOTE: usize = 500;

thread_local! {
    /// Random id of this isolate, the first part of each line's id.
    static ISOLATE: String = crate::random::<4>().map(hex::encode).unwrap_or_default();
    static BEGUN: Cell<u32> = const { Cell::new(0) };
}

fn next_id() -> String {
    let begun = BEGUN.get().wrapping_add(1);
    BEGUN.set(begun);
    ISOLATE.with(|isolate| format!("{isolate}-{begun:06x}"))
}

/// Logs a fault that occurred outside of any request and any run of the watcher.
pub fn fault(error: &dyn std::error::Error) {
    let cause = serde_json::Value::from(causes(error));
    console_error!("{{\"log\":\"fault\",\"cause\":{cause}}}");
}

/// Formats an error with all its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // A transparent error has the same text as its source.
        if !text.ends_with(&said) {
            let _ = write!(text, ": {said}");
        }
        source = cause.source();
    }
    text
}

/// A log line that is still open. Clones share it, and it is written when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Line(Rc<Open>);

#[derive(Debug)]
struct Open {
    name: &'static str,
    id: String,
    started_ms: u64,
    usage: Usage,
    status: Cell<Option<u16>>,
    failed: Cell<bool>,
    notes: RefCell<Map<String, Value>>,
}

/// The text of a log line.
#[derive(Serialize)]
struct LineText<'a> {
    log: &'static str,
    id: &'a str,
    #[serde(flatten)]
    notes: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    ms: u64,
    #[serde(flatten)]
    costs: Costs,
}

impl Line {
    /// Begins a log line. `started_ms` is the time in POSIX milliseconds, and `usage` has the counters that the line
    /// reports.
    #[must_use]
    pub fn begin(name: &'static str, started_ms: u64, usage: Usage) -> Self {
        let (status, failed, notes) = (Cell::default(), Cell::default(), RefCell::default());
        Self(Rc::new(Open { name, id: next_id(), started_ms, usage, status, failed, notes }))
    }

    /// Returns the line's id: eight characters for the isolate, and a number.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Adds a field to the log line. Values under the same name are joined by `; `, and long ones are truncated.
    pub fn note(&self, name: &'static str, value: &str) {
        let mut notes = self.0.notes.borrow_mut();
        let before = notes.get(name).and_then(Value::as_str).map(|before| format!("{before}; ")).unwrap_or_default();
        let cut = before.chars().chain(value.chars()).take(MAX_NOTE).collect::<String>();
        notes.insert(name.to_owned(), cut.into());
    }

    /// Adds the fields of a struct to the log line.
    pub fn note_fields(&self, fields: &impl Serialize) {
        if let Ok(Value::Object(fields)) = serde_json::to_value(fields) {
            self.0.notes.borrow_mut().extend(fields);
        }
    }

    /// Adds an error with all its causes to the log line, and marks the line as an error.
    pub fn cause(&self, error: &dyn std::error::Error) {
        self.note("cause", &causes(error));
        self.alarm();
    }

    /// Marks the log line as one that an operator must look at.
    pub fn alarm(&self) {
        self.0.failed.set(true);
    }

    /// Sets the HTTP status that the log line reports.
    pub fn status(&self, status: u16) {
        self.0.status.set(Some(status));
    }
}

impl Open {
    fn text(&self, now_ms: u64) -> String {
        let text = LineText {
            log: self.name,
            id: &self.id,
            notes: &self.notes.borrow(),
            status: self.status.get(),
            ms: now_ms.saturating_sub(self.started_ms),
            costs: self.usage.costs(),
        };
        serde_json::to_string(&text).unwrap_or_default()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let text = self.text(crate::now_ms());
        if self.failed.get() || self.status.get().is_some_and(|status| status >= 500) {
            console_error!("{text}");
        } else {
            console_log!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Open {
        Open {
            name: "request",
            id: "a-1".into(),
            started_ms: 5,
            usage: Usage::default(),
            status: Cell::new(Some(402)),
            failed: Cell::default(),
            notes: RefCell::default(),
        }
    }

    fn read(open: Open, now_ms: u64) -> serde_json::Value {
        let text = open.text(now_ms);
        // Dropping it would read the runtime's clock.
        std::mem::forget(open);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_log_line_has_the_outcome_and_the_cost() {
        let open = open();
        open.usage.batch(2);
        open.usage.rows(7, 1);
        assert_eq!(
            read(open, 8),
            serde_json::json!({
                "log": "request", "id": "a-1", "status": 402, "ms": 3,
                "calls": 0, "batches": 1, "statements": 2, "rowsRead": 7, "rowsWritten": 1,
            })
        );
    }

    #[test]
    fn notes_are_escaped_and_cut_and_errors_keep_their_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("outside")]
        struct Outer(#[source] std::fmt::Error);
        let line = Line(Rc::new(open()));
        line.note("words", "say \"no\"\n");
        line.note("long", &"é".repeat(1_000));
        line.note("twice", "a");
        line.note("twice", "b");
        line.note_fields(&serde_json::json!({ "read": 1, "notes": [] }));
        line.cause(&Outer(std::fmt::Error));
        let Ok(open) = Rc::try_unwrap(line.0) else { panic!("one line") };
        let told = read(open, 0);
        assert_eq!(told["words"], "say \"no\"\n");
        assert_eq!(told["long"].as_str().unwrap().chars().count(), MAX_NOTE);
        assert_eq!(told["twice"], "a; b");
        assert_eq!(told["read"], 1);
        assert_eq!(told["cause"], format!("outside: {}", std::fmt::Error));
        assert_eq!(told["ms"], 0, "a clock that went back");
    }
}
