//! Error codes for clients: maps each error of a use case to a code, and to the request's field that caused it, if any.

use api_types::{Error, ErrorCode};
use x402_cardano::{Refusal, settlement::NotSettled, wire::sign_in_with_x::SignInError};

use crate::{
    actions::{ActionError, NoEscrow},
    catalogue::QuotaExceeded,
    checkout::{BuyError, NotRead, PayError, PaymentDraftError, Unavailable},
    cip30::InvalidWallet,
    limits::SpendRefused,
    proof::ProofError,
    withdraw::WithdrawError,
};

/// Implements the conversion to [`Error`] for error types in which each variant has a code.
macro_rules! coded {
    ($($error:ty { $($case:pat => $code:ident,)+ })+) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                let code = match &error {
                    $($case => ErrorCode::$code,)+
                };
                Self::new(code, error)
            }
        }
    )+};
}

coded! {
    ProofError {
        ProofError::TooOld | ProofError::Used | ProofError::SignIn(SignInError::Expired) => ProofExpired,
        ProofError::Malformed | ProofError::Signature(_) | ProofError::SignIn(_) => InvalidProof,
        ProofError::Ahead => ProofFromFuture,
        ProofError::OtherAddress(_) => WrongSigner,
    }
    QuotaExceeded {
        QuotaExceeded::Listings(_) | QuotaExceeded::Bytes(_) => QuotaExceeded,
        QuotaExceeded::Today { .. } => DailyQuotaExceeded,
    }
    Unavailable {
        Unavailable::Port(_) | Unavailable::Restoring => Unavailable,
        Unavailable::NotIncluded(_) | Unavailable::Unconfirmed(_) | Unavailable::NoResult(_) => PaymentPending,
        Unavailable::ChainBehind => ProtectedPaused,
        Unavailable::Refundable(_) => Refundable,
        Unavailable::Refunded(_) => Refunded,
    }
    SpendRefused {
        SpendRefused::SignedOut => NotSignedIn,
        SpendRefused::PerPayment { .. } => OverPurchaseLimit,
        SpendRefused::Daily { .. } => OverDailyLimit,
        SpendRefused::Unapproved => ApprovalNeeded,
        SpendRefused::Paused => AgentsPaused,
        SpendRefused::ProtectedOnly => ProtectedOnly,
        SpendRefused::Reputation { .. } => ReputationTooLow,
    }
    WithdrawError {
        WithdrawError::NoOwner => NoOwner,
        WithdrawError::Nothing { .. } => NothingToWithdraw,
        WithdrawError::Busy => WalletBusy,
        WithdrawError::Build(_) => CannotBuild,
        WithdrawError::Ledger(_) => PaymentFailed,
        WithdrawError::Port(_) => Unavailable,
    }
    NoEscrow {
        NoEscrow::Unknown => UnknownPurchase,
        NoEscrow::Instant => NotProtected,
        NoEscrow::OtherContract => EscrowUnavailable,
        NoEscrow::Busy | NoEscrow::Port(_) => Unavailable,
    }
}

impl From<PayError> for Error {
    fn from(error: PayError) -> Self {
        let code = match &error {
            PayError::Unpaid => ErrorCode::PaymentRequired,
            PayError::Proof(proof) => Self::from(proof.clone()).code,
            PayError::NotOwned => ErrorCode::NotOwned,
            PayError::Refused(Refusal::Settlement(NotSettled::Pending))
            | PayError::NotSettled(Refusal::Settlement(NotSettled::Pending), _) => ErrorCode::PaymentPending,
            PayError::Refused(refusal) if refusal.is_malformed() => ErrorCode::MalformedPayment,
            PayError::Refused(_) | PayError::NotSettled(..) | PayError::ExpiresTooSoon | PayError::InputsTaken => {
                ErrorCode::PaymentRefused
            }
            PayError::Refunded => ErrorCode::Refunded,
            PayError::Public => ErrorCode::PaymentPublic,
            PayError::TooManyUnresolved => ErrorCode::PayerUnresolved,
            PayError::IdentifierTaken => ErrorCode::PaymentIdentifierTaken,
            PayError::OffSale => ErrorCode::UnknownListing,
            PayError::Unavailable(unavailable) => Self::from(unavailable.clone()).code,
        };
        Self::new(code, error)
    }
}

impl From<BuyError> for Error {
    fn from(error: BuyError) -> Self {
        let (code, field) = match &error {
            BuyError::UnknownListing => (ErrorCode::UnknownListing, Some("listingId")),
            BuyError::NotOffered(_) => (ErrorCode::NotOffered, Some("mode")),
            BuyError::SpendRefused(refused) => (Self::from(*refused).code, None),
            BuyError::SamePurchase => (ErrorCode::PurchaseInProgress, None),
            BuyError::Busy => (ErrorCode::WalletBusy, None),
            BuyError::Insufficient { .. } => (ErrorCode::InsufficientFunds, None),
            BuyError::OwnListing => (ErrorCode::OwnListing, None),
            BuyError::PriceChanged => (ErrorCode::PriceChanged, None),
            BuyError::Build(_) | BuyError::Terms(_) | BuyError::Ledger(_) | BuyError::Expired => {
                (ErrorCode::PaymentFailed, None)
            }
            BuyError::Pending(_) | BuyError::NoResult(_) | BuyError::Unconfirmed(_) => {
                (ErrorCode::PaymentPending, None)
            }
            BuyError::Unresolved(_) => (ErrorCode::EarlierPaymentUnresolved, None),
            BuyError::Unavailable(unavailable) => (Self::from(unavailable.clone()).code, None),
        };
        Self { field: field.map(str::to_owned), ..Self::new(code, error) }
    }
}

impl From<NotRead> for Error {
    fn from(error: NotRead) -> Self {
        let code = match &error {
            NotRead::Unknown => ErrorCode::UnknownPurchase,
            NotRead::Failed => ErrorCode::PaymentFailed,
            NotRead::Refunded => ErrorCode::Refunded,
            NotRead::Unavailable(unavailable) => Self::from(unavailable.clone()).code,
        };
        Self::new(code, error)
    }
}

impl From<PaymentDraftError> for Error {
    fn from(error: PaymentDraftError) -> Self {
        let (code, field) = match &error {
            PaymentDraftError::NotOffered(_) => (ErrorCode::NotOffered, Some("mode")),
            PaymentDraftError::OwnListing => (ErrorCode::OwnListing, None),
            PaymentDraftError::Insufficient { .. } => (ErrorCode::InsufficientFunds, None),
            PaymentDraftError::Scattered { .. } => (ErrorCode::WalletScattered, None),
            PaymentDraftError::Build(_) => (ErrorCode::CannotBuild, Some("utxos")),
            PaymentDraftError::Offer(_) | PaymentDraftError::CannotPay(_) => (ErrorCode::Internal, None),
        };
        Self { field: field.map(str::to_owned), ..Self::new(code, error) }
    }
}

impl From<ActionError> for Error {
    fn from(error: ActionError) -> Self {
        let (code, field) = match &error {
            ActionError::NoEscrow(why) => (Self::from(why.clone()).code, None),
            ActionError::Ended(_) => (ErrorCode::EscrowEnded, None),
            ActionError::State { .. }
            | ActionError::Plan(_)
            | ActionError::NotNow { .. }
            | ActionError::OnItsWay(_) => (ErrorCode::ActionNotPossible, None),
            ActionError::Later(_) => (ErrorCode::Unavailable, None),
            ActionError::TooEarly { .. } => (ErrorCode::TooEarly, None),
            ActionError::TooLate { .. } => (ErrorCode::TooLate, None),
            ActionError::NotYours { .. } | ActionError::OwnWallet(_) => (ErrorCode::NotYours, None),
            ActionError::Insufficient { .. } => (ErrorCode::InsufficientFunds, None),
            ActionError::Collateral { .. } => (ErrorCode::NoCollateral, None),
            ActionError::Build(_) => (ErrorCode::CannotBuild, Some("utxos")),
            ActionError::Refused(_) => (ErrorCode::OutputNotFound, None),
        };
        Self { field: field.map(str::to_owned), ..Self::new(code, error) }
    }
}

impl From<InvalidWallet> for Error {
    fn from(error: InvalidWallet) -> Self {
        match error {
            InvalidWallet::ChangeAddress(why) => Self::of_field(ErrorCode::InvalidAddress, "changeAddress", why),
            InvalidWallet::Address(index, why) => {
                Self::of_field(ErrorCode::InvalidAddress, format_args!("addresses[{index}]"), why)
            }
            InvalidWallet::TooMany { list, .. } => {
                Self { field: Some(list.to_owned()), ..Self::new(ErrorCode::TooManyItems, error) }
            }
            InvalidWallet::NotAnOutput { list, index } | InvalidWallet::Mainnet { list, index } => {
                Self { field: Some(format!("{list}[{index}]")), ..Self::new(ErrorCode::InvalidValue, error) }
            }
        }
    }
}
