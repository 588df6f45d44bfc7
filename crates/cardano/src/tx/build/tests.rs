//! What the builder promises, each transaction read back by the strict reader and judged by rules of the tests' own.

mod checker;
mod payments;
mod properties;
mod scripts;
mod sweeps;
