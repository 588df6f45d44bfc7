//! The rules, one file per subject. A rule is a pure function from a [`PaymentContext`] or a [`VerificationContext`] to
//! `Ok` or a refusal. Each file contains the error of its rules, with their stable codes.

pub(super) mod datum;
pub(super) mod inputs;
pub(super) mod limits;
pub(super) mod metadata;
pub(super) mod network;
pub(super) mod nonce;
pub(super) mod payee;
pub(crate) mod plain;
pub(super) mod validity;
pub(super) mod value;
pub(super) mod witnesses;

use cardano::address::{NETWORK_ID, PaymentAddress};
pub use datum::InvalidDatum;
pub use inputs::InvalidInputs;
pub use limits::LimitBroken;
pub use metadata::InvalidMetadata;
pub use network::OtherNetwork;
pub use nonce::InvalidNonce;
pub use payee::Underpaid;
pub use plain::NotPlain;
pub use validity::InvalidValidity;
pub use value::NotConserved;
pub use witnesses::InvalidWitnesses;

use super::{Facts, Moment, Payment};
use crate::{Refusal, method::Offered};

/// A payment to be verified, with the offer that it pays for.
#[derive(Clone, Debug)]
pub struct PaymentContext<'a> {
    /// The offer, as this service made it; never the buyer's copy of it.
    pub offered: &'a Offered,
    /// The payment to be verified.
    pub payment: &'a Payment,
    pay_to: PaymentAddress,
    pay_to_bytes: Vec<u8>,
}

/// A payment to be verified, with the state of the chain.
#[derive(Clone, Copy, Debug)]
pub struct VerificationContext<'a> {
    /// The payment and its offer.
    pub case: &'a PaymentContext<'a>,
    /// State of the chain that the rules need.
    pub facts: &'a Facts,
    /// Time of verification.
    pub moment: Moment,
}

/// A rule that needs only the payment.
pub(super) type PaymentRule = fn(&PaymentContext<'_>) -> Result<(), Refusal>;
/// A rule that needs the state of the chain.
pub(super) type ChainRule = fn(&VerificationContext<'_>) -> Result<(), Refusal>;

impl<'a> PaymentContext<'a> {
    /// Creates the context in which a payment is verified against an offer.
    ///
    /// # Errors
    /// [`Refusal::Requirements`] if the offer's `payTo` is not a payable address, which is a fault of the service.
    pub fn new(offered: &'a Offered, payment: &'a Payment) -> Result<Self, Refusal> {
        let text = &offered.requirements.pay_to;
        let pay_to = text.parse::<PaymentAddress>().ok().filter(|address| address.to_string() == *text);
        let pay_to = pay_to.filter(|_| offered.requirements.network.id() == NETWORK_ID);
        let pay_to =
            pay_to.ok_or(Refusal::Requirements("payTo is not a base or enterprise address of a test network"))?;
        Ok(Self { offered, payment, pay_to, pay_to_bytes: pay_to.to_bytes() })
    }
}
