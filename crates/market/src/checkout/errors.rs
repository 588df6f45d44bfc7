//! Errors of checkout, worded for the API's client.

use cardano::{Address, Lovelace, TxHash, chain::ChainError, tx::build::BuildError};
use outbox::OutboxError;
use sql::DatabaseError;
use x402_cardano::{Refusal, exact::VerifyError, method::OfferError, settlement::NotSettled, wire::SettlementResponse};

use super::pay::MIN_VALIDITY_SLOTS;
use crate::{
    contents::ContentsError,
    limits::SpendRefused,
    listing::DeliveryMode,
    payment::MAX_CHECKED,
    port_error::{PortError, from_by_way_of},
    proof::ProofError,
};

/// A temporary failure. The same request may succeed later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The database or the provider failed.
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("the payment {0} is not in a block yet: try again in a minute; nothing is paid twice")]
    NotIncluded(TxHash),
    #[error(
        "the payment {0} is in a block and waits for more confirmations: try again in a minute; nothing is paid twice"
    )]
    Unconfirmed(TxHash),
    #[error(
        "the payment {0} is locked, and its result is not in a block yet: try again in a minute; nothing is paid twice"
    )]
    NoResult(TxHash),
    #[error(
        "protected purchases are paused while this service catches up with the chain; nothing was paid; try again in a minute"
    )]
    ChainBehind,
    #[error(
        "the service was restored from a backup and still reads this wallet's purchases from the chain; nothing was paid; try again in a minute"
    )]
    Restoring,
    #[error(
        "the seller posted no result for {0} in time, so its content is not delivered: take the money back on the purchase's page"
    )]
    Refundable(TxHash),
    #[error("the purchase {0} was refunded: its content is no longer yours")]
    Refunded(TxHash),
}

from_by_way_of!(Unavailable, PortError: DatabaseError, ChainError, ContentsError, OutboxError);

/// Reason why a payment does not deliver content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayError {
    #[error("payment required: choose one of the offers")]
    Unpaid,
    /// The proof of an earlier purchase is invalid.
    #[error(transparent)]
    Proof(#[from] ProofError),
    #[error("this address has not bought this listing: pay for it")]
    NotOwned,
    /// The payment was rejected, so nothing was paid.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The payment exists, but its content cannot be delivered now. Contains the reason and the payment's settlement
    /// status.
    #[error("{0}")]
    NotSettled(Refusal, Box<SettlementResponse>),
    #[error("this payment was refunded: pay with a new transaction")]
    Refunded,
    #[error("this listing was taken off sale; nothing was paid")]
    OffSale,
    #[error(
        "this transaction is public, and no node's answer shows that this service was the first to submit it, so it does not show who sends it: send X-Service-Proof, signed by the payer, together with PAYMENT-SIGNATURE (a payment with a request commitment needs none); nothing is paid twice"
    )]
    Public,
    #[error(
        "too many failed payments: more than {MAX_CHECKED} of this payer's for this listing failed, and some may still be in a block; nothing was paid now; try again in one hour"
    )]
    TooManyUnresolved,
    #[error(
        "the payment is valid for less than {MIN_VALIDITY_SLOTS} seconds more: nothing was paid; build a new one, under new terms \
         where those expire soon"
    )]
    ExpiresTooSoon,
    #[error(
        "an unconfirmed payment spends an input of this one; nothing was paid: wait until it is in a block or expires, or spend other outputs"
    )]
    InputsTaken,
    #[error(
        "this payment identifier came with another payload before; nothing was paid: use a new one for a new payment"
    )]
    IdentifierTaken,
    /// The database or the provider failed.
    #[error(transparent)]
    Unavailable(Unavailable),
}

impl PayError {
    /// Returns the stable error code. This function defines all codes that x402 does not define.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unpaid => "PAYMENT-SIGNATURE header is required",
            Self::Proof(_) => "proof_refused",
            Self::NotOwned => "not_owned",
            Self::Refused(refusal) | Self::NotSettled(refusal, _) => refusal.code(),
            Self::Refunded => "payment_refunded",
            Self::OffSale => "listing_off_sale",
            Self::Public => "payment_public",
            Self::TooManyUnresolved => "payer_unresolved",
            Self::ExpiresTooSoon => "invalid_exact_cardano_payload_ttl_too_soon",
            Self::InputsTaken => "invalid_exact_cardano_payload_input_not_available",
            Self::IdentifierTaken => "payment_identifier_taken",
            Self::Unavailable(Unavailable::ChainBehind) => "protected_paused",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// Returns the payment's settlement status; `None` if no payment exists.
    #[must_use]
    pub const fn settlement(&self) -> Option<&SettlementResponse> {
        if let Self::NotSettled(_, settlement) = self { Some(settlement) } else { None }
    }

    /// Returns whether the error reports that a payment is not confirmed yet.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        matches!(self, Self::NotSettled(Refusal::Settlement(NotSettled::Pending), _))
    }

    /// Returns whether the error reports the status of an earlier payment. Payers may see such a status even if the
    /// listing is hidden.
    #[must_use]
    pub const fn reports_earlier_payment(&self) -> bool {
        matches!(self, Self::NotSettled(..) | Self::Refunded | Self::Public)
    }
}

impl From<NotSettled> for PayError {
    fn from(error: NotSettled) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Unavailable> for PayError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Refunded(_) => Self::Refunded,
            error => Self::Unavailable(error),
        }
    }
}

from_by_way_of!(PayError, Unavailable: DatabaseError, ChainError, OutboxError);

impl From<VerifyError> for PayError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Refused(refusal) => Self::Refused(refusal),
            VerifyError::Chain(error) => error.into(),
        }
    }
}

/// Reason why nothing was bought.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuyError {
    /// The listing does not exist, or is hidden and not owned by the account.
    #[error("listingId: no such listing")]
    UnknownListing,
    /// The listing does not allow this mode, or no payment method is configured for it.
    #[error("mode: this listing does not offer {}", .0.as_str())]
    NotOffered(DeliveryMode),
    /// A spending limit of the account does not allow the purchase.
    #[error(transparent)]
    SpendRefused(#[from] SpendRefused),
    #[error("this purchase is being made by another request: try again in a few seconds; nothing is paid twice")]
    SamePurchase,
    #[error("the wallet is busy with other payments; nothing was paid: try again in a few seconds")]
    Busy,
    #[error("not enough tADA in the Surety balance; nothing was paid: send at least {} more to {wallet}", missing.display_tada())]
    Insufficient { missing: Lovelace, wallet: Address },
    #[error("this is your own listing: you cannot pay yourself")]
    OwnListing,
    /// The listing's price is not the one that the buyer agreed to, or it changed during this request.
    #[error("the seller changed the price, and nothing was paid: read the listing again")]
    PriceChanged,
    #[error("the payment failed; nothing was paid: {0}")]
    Build(BuildError),
    /// An internal fault: no quote could be made, or our own payment failed verification.
    #[error("the payment failed; nothing was paid: {0}")]
    Terms(String),
    #[error("the ledger refused the payment; nothing was paid: {0}")]
    Ledger(String),
    #[error("the payment was in no block before it expired; nothing was paid: try again")]
    Expired,
    #[error(
        "the payment {0} is submitted and not in a block yet: call again to get the content; nothing is paid twice"
    )]
    Pending(TxHash),
    #[error(
        "the payment {0} is locked, and its result is not in a block yet: call again to get the content; nothing is paid twice"
    )]
    NoResult(TxHash),
    #[error(
        "the payment {0} is in a block and waits for more confirmations: call again to get the content; nothing is paid twice"
    )]
    Unconfirmed(TxHash),
    /// An earlier payment for this listing may still be included, and a new payment that conflicts with it cannot be
    /// built yet.
    #[error(
        "an earlier payment for this listing, {0}, failed but may still get into a block: try again in a minute; nothing was paid now, and nothing is paid twice"
    )]
    Unresolved(TxHash),
    /// The database or the provider failed.
    #[error(transparent)]
    Unavailable(Unavailable),
}

impl BuyError {
    /// Returns whether the same call may succeed soon, because a payment is unconfirmed or other payments block it.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Pending(_)
                | Self::NoResult(_)
                | Self::Unconfirmed(_)
                | Self::Unresolved(_)
                | Self::SamePurchase
                | Self::Busy
        )
    }
}

impl From<Unavailable> for BuyError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::NotIncluded(payment) => Self::Pending(payment),
            Unavailable::NoResult(lock) => Self::NoResult(lock),
            Unavailable::Unconfirmed(payment) => Self::Unconfirmed(payment),
            error => Self::Unavailable(error),
        }
    }
}

from_by_way_of!(BuyError, Unavailable: DatabaseError, ChainError, ContentsError, OutboxError);

impl From<OfferError> for BuyError {
    fn from(error: OfferError) -> Self {
        Self::Terms(error.to_string())
    }
}

impl From<Refusal> for BuyError {
    fn from(refusal: Refusal) -> Self {
        Self::Terms(refusal.to_string())
    }
}

/// Reason why a purchase cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    #[error("this account has no such purchase")]
    Unknown,
    #[error("this payment failed: nothing was paid")]
    Failed,
    #[error("this purchase was refunded: its content is no longer yours")]
    Refunded,
    /// The database or the provider failed, or the content may not be released yet.
    #[error(transparent)]
    Unavailable(Unavailable),
}

impl From<Unavailable> for NotRead {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Refunded(_) => Self::Refunded,
            error => Self::Unavailable(error),
        }
    }
}

from_by_way_of!(NotRead, Unavailable: DatabaseError);
