//! Escrows on the local ledger, which runs the contract on the transactions that we plan.

mod devnet;
mod hostile;
mod lifecycle;
mod together;
mod world;
