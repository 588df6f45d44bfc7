//! A facilitator: verifies and settles x402 payments for resource servers that do neither themselves.
//!
//! ```text
//! resource server                       facilitator                                   chain
//!   POST /verify ──────────────────────> rules of the scheme ──────────────────────────> read
//!   POST /settle ──────────────────────> record in the outbox ─> submit ─> wait ───────> block
//!     <── success, or settlement_pending ────────────────────────────┘
//!   POST /settle (same body) ──────────> continue with the recorded transaction
//! ```
//!
//! A settlement is an entry of the outbox, like every transaction of this service: it is recorded before it is
//! submitted, continued by the next request or by the watcher after a crash, and undone by a rollback. The transaction
//! id is the key, so a transaction is settled for one offer, and cannot also pay in this service's shop. Success is
//! reported once: every further request for the same transaction is answered `duplicate_settlement`, because a buyer
//! may send one payment to a resource server several times at once.
//!
//! Sources: x402 specification v2, section 7; `scheme_exact_cardano.md`, "Pending settlement" and "Duplicate Settlement
//! Mitigation".

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod keys;
mod settle;
mod store;

use cardano::{Address, slots::Millis};
use escrow::Deployment;
pub use keys::{KeyHash, Spent, spend};
use outbox::OutboxError;
use sql::DatabaseError;
use x402_cardano::{
    Refusal,
    escrow::TransferMethod,
    exact::{InvalidPayload, VerifyError},
    facilitator::InvalidRequirements,
    method::PaymentMethod,
    settlement::NotSettled,
    wire::Network,
};

/// The facilitator, with the database, the chain and the other ports that one request uses.
#[derive(Clone, Copy)]
pub struct Facilitator<'a, D, C, V, Z> {
    pub database: &'a D,
    pub chain: &'a C,
    pub signatures: &'a V,
    pub sleep: &'a Z,
    pub network: Network,
    /// The payment method `default`, which pays sellers directly.
    pub default: &'a dyn PaymentMethod,
    /// The payment method that pays into the escrow; `None` if this service has no escrow.
    pub escrow: Option<Escrow<'a>>,
    /// Milliseconds to wait before each poll for a block.
    pub schedule: &'a [Millis],
    /// Wall clock in POSIX milliseconds.
    pub now: Millis,
}

/// The escrow contract, as a payment method that other servers may offer to their buyers.
#[derive(Clone, Copy)]
pub struct Escrow<'a> {
    pub method: &'a dyn PaymentMethod,
    pub deployment: &'a Deployment,
    pub name: TransferMethod,
    /// The address that signs the quotes of this service's own shop. Payments for these quotes are refused here,
    /// because the shop itself must receive them.
    pub own_seller: Address,
}

/// Reason why a payment was not settled, or the failure that prevented an answer.
#[derive(Debug)]
enum Failed {
    Refused(Refusal),
    Unavailable(OutboxError),
}

macro_rules! refused {
    ($($error:ty),*) => {$(
        impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                Self::Refused(error.into())
            }
        }
    )*};
}
refused!(Refusal, NotSettled, InvalidRequirements, InvalidPayload);

impl From<OutboxError> for Failed {
    fn from(error: OutboxError) -> Self {
        Self::Unavailable(error)
    }
}

impl From<DatabaseError> for Failed {
    fn from(error: DatabaseError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<VerifyError> for Failed {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Refused(refusal) => Self::Refused(refusal),
            VerifyError::Chain(error) => Self::Unavailable(error.into()),
        }
    }
}
