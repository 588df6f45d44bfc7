//! Why a payment is refused: the errors of every part, a stable code each, a message that says what to do.
//!
//! Codes that the scheme's other implementations use for the same fact are theirs (x402-foundation/x402,
//! `typescript/packages/mechanisms/cardano/src/constants.ts`), so that clients need one table.

/// An enum of errors whose variants say, in one place, what happened, what to do, and the stable code.
macro_rules! refusals {
    ($(#[$of_enum:meta])* pub enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident $(($($tuple:tt)*))? $({ $($fields:tt)* })? => $code:literal,)*
    }) => {
        $(#[$of_enum])*
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum $name {
            $($(#[$of_variant])* $variant $(($($tuple)*))? $({ $($fields)* })?,)*
        }

        impl $name {
            /// The stable code; the reference implementation's where it has one for the same rule.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $code,)*
                }
            }
        }
    };
}

use crate::{
    escrow::LockError,
    exact::{
        InvalidPayload,
        rules::{
            InvalidDatum, InvalidInputs, InvalidMetadata, InvalidNonce, InvalidValidity, InvalidWitnesses, LimitBroken,
            NotConserved, NotPlain, OtherNetwork, Underpaid,
        },
    },
    method::InvalidQuote,
    request_commitment::InvalidCommitment,
    settlement::NotSettled,
    wire::{HeaderError, InvalidAccepted, payment_identifier::InvalidPaymentId},
};

/// Why a payment is refused. Nothing was paid, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each is documented where it is defined")]
pub enum Refusal {
    /// The header is not a v2 payment.
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
    /// The requirements, which are ours, make no sense. A fault of the service.
    #[error("the payment requirements are invalid: {0}")]
    Requirements(&'static str),
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
    #[error(transparent)]
    Commitment(#[from] InvalidCommitment),
    /// Verified, and not settled. [`NotSettled::Pending`] may still be paid.
    #[error(transparent)]
    Settlement(#[from] NotSettled),
}

impl Refusal {
    /// The code that stands for this refusal on the wire; it never changes.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Header(_) => "invalid_exact_cardano_payload",
            Self::PaymentId(error) => error.code(),
            Self::Payload(error) => error.code(),
            Self::Accepted(error) => error.code(),
            Self::Quote(error) => error.code(),
            Self::Requirements(_) => "invalid_exact_cardano_requirements",
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
            Self::Commitment(error) => error.code(),
            Self::Settlement(error) => error.code(),
        }
    }

    /// Whether the payment cannot even be read, which HTTP answers with 400. Every other refusal is a 402, and
    /// [`Refusal::Requirements`], which is the service's own fault, a 500 (x402, `specs/transports-v2/http.md`, "Error
    /// Handling").
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        matches!(self, Self::Header(_) | Self::PaymentId(_) | Self::Payload(_))
    }
}
