//! Settling a verified payment: written down, submitted, watched until the chain shows it.
//!
//! ```text
//!               claim                submit                    observe
//! verified ──> [claimed] ──────────> accepted ──> [submitted] ──> in a block ──> [included] ──> Confirmed
//!                 │                  no answer ──> [claimed]  ──> not yet     ──────────────> Pending
//!                 │                                              TTL passed   ──> [expired]  ──> Expired
//!                 └── refused at the only attempt ─────────────────────────────> [refused]  ──> Refused
//! ```
//!
//! - The claim is written before the first submission, under the transaction id of the bytes as received, so that a
//!   crash, a time-out or a second request meets it. Only these bytes are ever submitted for it.
//! - A claim is given up only when it is certain that no submission took effect: the ledger refused the one and only
//!   attempt. Attempts are counted in the store, so that two requests cannot both believe theirs was the only one.
//! - A transaction is public once it is broadcast. A repeated request is honoured only with the very header that made
//!   the claim, for the same resource, until the content was delivered (see [`replay`]).
//!
//! Source: the scheme document, "Pending settlement", "Duplicate Settlement Mitigation", rule 9.

mod admission;
mod evidence;
mod record;
mod response;
mod settle;

pub use admission::{Admission, AdmitError, Request, admit, admit_offer, replay};
pub use evidence::Evidence;
pub use record::{Claim, Claimed, Record, SettlementStore, State, StateError};
pub use settle::{Outcome, SettleError, Settler, Sleep};
