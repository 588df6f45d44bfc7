//! Tests with escrows on the local ledger, which runs the contract on the transactions that the planner makes.

mod devnet;
mod example;
mod hostile;
mod lifecycle;
mod together;
mod world;
