//! The rules, one file each. A rule is a pure function from a [`Case`] to a refusal or nothing.

pub mod accepted;
pub mod amount;
pub mod fee;
pub mod inputs;
pub mod metadata;
pub mod min_utxo;
pub mod network;
pub mod nonce;
pub mod plain;
pub mod recipient;
pub mod size;
pub mod ttl;
pub mod value;
pub mod witnesses;

use super::{Facts, Moment, Offer};
use crate::{Refusal, wire::PaymentRequirements};

/// A payment to judge, with what was asked for.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// What is asked for: ours, never what the buyer says it is.
    pub requirements: &'a PaymentRequirements,
    /// What is offered.
    pub offer: &'a Offer,
}

/// A payment to judge, with the chain around it.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The payment.
    pub case: Case<'a>,
    /// What the chain says.
    pub facts: &'a Facts,
    /// When.
    pub moment: Moment,
}

/// A rule that needs nothing but the payment.
pub type Rule = fn(&Case<'_>) -> Result<(), Refusal>;
/// A rule that needs the chain.
pub type ChainRule = fn(&Situation<'_>) -> Result<(), Refusal>;
