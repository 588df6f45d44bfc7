//! Reasons why a payment is rejected. Each has a stable code and a message that tells the client what to do.
//!
//! If other implementations of the scheme have a code for the same error, that code is used (x402-foundation/x402,
//! `typescript/packages/mechanisms/cardano/src/constants.ts`), so that clients need only one table.

/// Declares an error enum whose variants each have a message and a stable code: `=> "code"` states the code, and
/// `as inner` takes the code of the contained error.
macro_rules! refusals {
    ($(#[$of_enum:meta])* pub enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident $(($($tuple:tt)*))? $({ $($fields:tt)* })?
            $(=> $code:literal)? $(as $inner:ident)?,)*
    }) => {
        $(#[$of_enum])*
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum $name {
            $($(#[$of_variant])* $variant $(($($tuple)*))? $({ $($fields)* })?,)*
        }

        impl $name {
            /// Returns the stable code of the error. If the reference implementation has a code for the same rule, that
            /// code is used.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $($(Self::$variant { .. } => $code,)?)*
                    $($(Self::$variant($inner) => $inner.code(),)?)*
                }
            }
        }
    };
}

use crate::{
    escrow::{AuthorizationError, LockError},
    exact::{
        InvalidPayload,
        rules::{
            InvalidDatum, InvalidInputs, InvalidMetadata, InvalidNonce, InvalidValidity, InvalidWitnesses, LimitBroken,
            NotConserved, NotPlain, OtherNetwork, Underpaid,
        },
    },
    facilitator::InvalidRequirements,
    method::InvalidQuote,
    request_commitment::InvalidCommitment,
    settlement::NotSettled,
    wire::{HeaderError, InvalidAccepted, payment_identifier::InvalidPaymentId},
};

/// Reason why a payment is rejected. Unless a variant says otherwise, nothing was paid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each is documented where it is defined")]
pub enum Refusal {
    /// The header is not an x402 v2 payment.
    #[error("PAYMENT-SIGNATURE cannot be read: {0}")]
    Header(#[from] HeaderError),
    #[error(transparent)]
    PaymentId(#[from] InvalidPaymentId),
    #[error(transparent)]
    Payload(#[from] InvalidPayload),
    #[error(transparent)]
    Accepted(#[from] InvalidAccepted),
    #[error(transparent)]
    Quote(#[from] InvalidQuote),
    /// The service's own requirements are invalid, which is a fault of the service.
    #[error("the payment requirements are invalid: {0}")]
    Requirements(&'static str),
    #[error(transparent)]
    ForeignRequirements(#[from] InvalidRequirements),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    #[error(transparent)]
    Network(#[from] OtherNetwork),
    #[error(transparent)]
    NotPlain(#[from] NotPlain),
    #[error(transparent)]
    Metadata(#[from] InvalidMetadata),
    #[error(transparent)]
    Datum(#[from] InvalidDatum),
    #[error(transparent)]
    Nonce(#[from] InvalidNonce),
    #[error(transparent)]
    Underpaid(#[from] Underpaid),
    #[error(transparent)]
    Witnesses(#[from] InvalidWitnesses),
    #[error(transparent)]
    Validity(#[from] InvalidValidity),
    #[error(transparent)]
    Inputs(#[from] InvalidInputs),
    #[error(transparent)]
    Value(#[from] NotConserved),
    #[error(transparent)]
    Limit(#[from] LimitBroken),
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The payment breaks a rule of a payment method outside of this crate ([`crate::method`]).
    #[error("{message}")]
    Method {
        /// Stable code of the rule.
        code: &'static str,
        /// Message that tells the client what to do.
        message: &'static str,
    },
    #[error(transparent)]
    Commitment(#[from] InvalidCommitment),
    /// The payment is valid but was not settled. If it is still pending ([`NotSettled::Pending`]), it may yet be
    /// included.
    #[error(transparent)]
    Settlement(#[from] NotSettled),
}

impl Refusal {
    /// Returns the stable code of the error, for use in JSON.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Header(_) => "invalid_exact_cardano_payload",
            Self::PaymentId(error) => error.code(),
            Self::Payload(error) => error.code(),
            Self::Accepted(error) => error.code(),
            Self::Quote(error) => error.code(),
            Self::Requirements(_) => "invalid_exact_cardano_requirements",
            Self::ForeignRequirements(error) => error.code(),
            Self::Authorization(error) => error.code(),
            Self::Network(error) => error.code(),
            Self::NotPlain(error) => error.code(),
            Self::Metadata(error) => error.code(),
            Self::Datum(error) => error.code(),
            Self::Nonce(error) => error.code(),
            Self::Underpaid(error) => error.code(),
            Self::Witnesses(error) => error.code(),
            Self::Validity(error) => error.code(),
            Self::Inputs(error) => error.code(),
            Self::Value(error) => error.code(),
            Self::Limit(error) => error.code(),
            Self::Lock(error) => error.code(),
            Self::Method { code, .. } => code,
            Self::Commitment(error) => error.code(),
            Self::Settlement(error) => error.code(),
        }
    }

    /// Returns `true` if the payment cannot be parsed. The HTTP status is 400 in this case, 500 for
    /// [`Refusal::Requirements`], which is the service's fault, and 402 for every other refusal (x402,
    /// `specs/transports-v2/http.md`, "Error Handling").
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        matches!(self, Self::Header(_) | Self::PaymentId(_) | Self::Payload(_))
    }
}
