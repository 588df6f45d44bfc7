//! Escrows on the local ledger, which runs the contract: transactions planned here, judged there.

mod devnet;
mod hostile;
mod lifecycle;
mod together;
mod world;
