//! Counts the resources that a request uses, and limits its outgoing calls.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use serde::Serialize;

/// Maximum number of outgoing calls of a request. It is below the 50 subrequests of Workers' free plan, to leave room
/// for D1.
pub const MAX_OUTSIDE_CALLS: u32 = 40;

/// Counters of the resources that one request uses. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct Usage(Rc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    batches: Cell<u32>,
    statements: Cell<u32>,
    calls: Cell<u32>,
    rows_read: Cell<u64>,
    rows_written: Cell<u64>,
    /// Maximum number of outgoing calls; `None` for [`MAX_OUTSIDE_CALLS`].
    max_calls: Option<u32>,
    reads: Option<RefCell<BTreeMap<String, u64>>>,
}

/// Counters of a request, as its log line reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Costs {
    /// Number of outgoing calls.
    pub calls: u32,
    pub batches: u32,
    pub statements: u32,
    pub rows_read: u64,
    pub rows_written: u64,
}

fn add(cell: &Cell<u32>, count: u32) {
    cell.set(cell.get().saturating_add(count));
}

impl Usage {
    /// Creates counters with a budget of `calls` outgoing calls. If `reads` is set, they also record how many rows each
    /// SQL statement read, to find table scans.
    #[must_use]
    pub fn new(calls: u32, reads: bool) -> Self {
        Self(Rc::new(Counts { max_calls: Some(calls), reads: reads.then(RefCell::default), ..Counts::default() }))
    }

    fn max_calls(&self) -> u32 {
        self.0.max_calls.unwrap_or(MAX_OUTSIDE_CALLS)
    }

    /// Returns whether the rows that each SQL statement reads are recorded.
    #[must_use]
    pub fn wants_reads(&self) -> bool {
        self.0.reads.is_some()
    }

    /// Records that an SQL statement read this number of rows, if these counters record reads.
    pub fn read(&self, sql: &str, rows: u64) {
        if let Some(reads) = &self.0.reads {
            let mut reads = reads.borrow_mut();
            let sum = reads.entry(sql.to_owned()).or_default();
            *sum = sum.saturating_add(rows);
        }
    }

    /// Returns the recorded SQL statements with the numbers of rows that they read; `None` if they are not recorded.
    #[must_use]
    pub fn reads(&self) -> Option<BTreeMap<String, u64>> {
        self.0.reads.as_ref().map(|reads| reads.borrow().clone())
    }

    /// Counts a batch of SQL statements.
    pub fn batch(&self, statements: usize) {
        add(&self.0.batches, 1);
        add(&self.0.statements, u32::try_from(statements).unwrap_or(u32::MAX));
    }

    /// Counts the rows that an SQL statement read and wrote.
    pub fn rows(&self, read: u64, written: u64) {
        for (cell, count) in [(&self.0.rows_read, read), (&self.0.rows_written, written)] {
            cell.set(cell.get().saturating_add(count));
        }
    }

    /// Returns all counters.
    #[must_use]
    pub fn costs(&self) -> Costs {
        let Counts { batches, statements, calls, rows_read, rows_written, .. } = &*self.0;
        Costs {
            calls: calls.get(),
            batches: batches.get(),
            statements: statements.get(),
            rows_read: rows_read.get(),
            rows_written: rows_written.get(),
        }
    }

    /// Takes one outgoing call from the budget. Returns `false` if none is left.
    #[must_use]
    pub fn call(&self) -> bool {
        let allowed = self.0.calls.get() < self.max_calls();
        if allowed {
            add(&self.0.calls, 1);
        }
        allowed
    }

    /// Takes one call from the budget for a further part of a long answer. Returns `false` once half of the budget is
    /// used, because the other half is reserved for actual calls.
    #[must_use]
    pub fn call_for_length(&self) -> bool {
        self.calls_left() > self.max_calls().div_euclid(2) && self.call()
    }

    /// Returns the number of outgoing calls left in the budget.
    #[must_use]
    pub fn calls_left(&self) -> u32 {
        self.max_calls().saturating_sub(self.0.calls.get())
    }

    /// Returns the number of outgoing calls made.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.calls.get()
    }

    /// Formats the value of a `Server-Timing` header: the numbers of batches, statements and outgoing calls, and the
    /// program's memory in MiB, which never shrinks.
    #[must_use]
    pub fn server_timing(&self) -> String {
        let Costs { calls, batches, statements, .. } = self.costs();
        let memory = memory_pages() / 16;
        format!(
            "d1-batches;desc=\"{batches}\", d1-statements;desc=\"{statements}\", outside-calls;desc=\"{calls}\", \
             memory;desc=\"{memory}\""
        )
    }
}

/// Returns the number of 64 KiB pages of WebAssembly memory.
fn memory_pages() -> usize {
    #[cfg(target_arch = "wasm32")]
    return core::arch::wasm32::memory_size(0);
    #[cfg(not(target_arch = "wasm32"))]
    0
}
