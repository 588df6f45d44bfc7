//! What one request has used of what it may use.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

/// Outside calls that one request may make: under the 50 subrequests of Workers' free plan, with room for D1.
pub const MAX_OUTSIDE_CALLS: u32 = 40;

/// Counts of one request; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Usage(Rc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    batches: Cell<u32>,
    statements: Cell<u32>,
    calls: Cell<u32>,
    rows_read: Cell<u64>,
    rows_written: Cell<u64>,
    /// Outside calls that may be made; [`MAX_OUTSIDE_CALLS`] where none is given.
    most: Option<u32>,
    reads: Option<RefCell<BTreeMap<String, u64>>>,
}

fn add(cell: &Cell<u32>, count: u32) {
    cell.set(cell.get().saturating_add(count));
}

impl Usage {
    /// Counts with a budget of so many outside calls. With `reads`, they also list the statements and the rows that
    /// each read, to find scans.
    #[must_use]
    pub fn new(calls: u32, reads: bool) -> Self {
        Self(Rc::new(Counts { most: Some(calls), reads: reads.then(RefCell::default), ..Counts::default() }))
    }

    fn most(&self) -> u32 {
        self.0.most.unwrap_or(MAX_OUTSIDE_CALLS)
    }

    /// Whether the rows that statements read are to be reported.
    #[must_use]
    pub fn wants_reads(&self) -> bool {
        self.0.reads.is_some()
    }

    /// Notes what a statement read.
    pub fn read(&self, sql: &str, rows: u64) {
        if let Some(reads) = &self.0.reads {
            let mut reads = reads.borrow_mut();
            let sum = reads.entry(sql.to_owned()).or_default();
            *sum = sum.saturating_add(rows);
        }
    }

    /// The statements that were run, with the rows that they read, if that was wanted.
    #[must_use]
    pub fn reads(&self) -> Option<BTreeMap<String, u64>> {
        self.0.reads.as_ref().map(|reads| reads.borrow().clone())
    }

    /// Notes a batch of statements.
    pub fn batch(&self, statements: usize) {
        add(&self.0.batches, 1);
        add(&self.0.statements, u32::try_from(statements).unwrap_or(u32::MAX));
    }

    /// Notes the rows that a statement went through and changed.
    pub fn rows(&self, read: u64, written: u64) {
        for (cell, count) in [(&self.0.rows_read, read), (&self.0.rows_written, written)] {
            cell.set(cell.get().saturating_add(count));
        }
    }

    /// All counts, as members of a JSON object.
    #[must_use]
    pub fn members(&self) -> String {
        let Counts { batches, statements, calls, rows_read, rows_written, .. } = &*self.0;
        format!(
            "\"calls\":{},\"batches\":{},\"statements\":{},\"rowsRead\":{},\"rowsWritten\":{}",
            calls.get(),
            batches.get(),
            statements.get(),
            rows_read.get(),
            rows_written.get()
        )
    }

    /// Takes one outside call from the budget; `false` when none is left.
    #[must_use]
    pub fn call(&self) -> bool {
        let allowed = self.0.calls.get() < self.most();
        if allowed {
            add(&self.0.calls, 1);
        }
        allowed
    }

    /// Takes one call for more of an answer that others made long: not from the second half of the budget.
    #[must_use]
    pub fn call_for_length(&self) -> bool {
        self.calls_left() > self.most().div_euclid(2) && self.call()
    }

    /// Outside calls that are left.
    #[must_use]
    pub fn calls_left(&self) -> u32 {
        self.most().saturating_sub(self.0.calls.get())
    }

    /// Outside calls so far.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.calls.get()
    }

    /// For a `Server-Timing` header: how many batches, statements and outside calls there were, and how much memory the program
    /// has by now, in MiB: it never shrinks.
    #[must_use]
    pub fn server_timing(&self) -> String {
        let Counts { batches, statements, calls, .. } = &*self.0;
        format!(
            "d1-batches;desc=\"{}\", d1-statements;desc=\"{}\", outside-calls;desc=\"{}\", memory;desc=\"{}\"",
            batches.get(),
            statements.get(),
            calls.get(),
            memory_pages() / 16
        )
    }
}

/// Pages of 64 KiB that a program of WebAssembly has.
fn memory_pages() -> usize {
    #[cfg(target_arch = "wasm32")]
    return core::arch::wasm32::memory_size(0);
    #[cfg(not(target_arch = "wasm32"))]
    0
}
