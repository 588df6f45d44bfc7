//! Tests of the builder. Each transaction is decoded by the strict reader and checked against the ledger's rules, which
//! are written a second time here.

mod checker;
mod payments;
mod properties;
mod scripts;
mod sweeps;
