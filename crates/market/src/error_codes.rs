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

/// Implements the conversion to [`Error`] for errors whose code depends on the variant. `in "name"` after a code names
/// the request's field that caused the error.
macro_rules! coded {
    ($($error:ty { $($case:pat $(if $guard:expr)? => $code:expr $(, in $field:literal)?;)+ })+) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                let (code, field): (ErrorCode, Option<&str>) = match &error {
                    $($case $(if $guard)? => ($code, None $(.or(Some($field)))?),)+
                };
                Self { field: field.map(str::to_owned), ..Self::new(code, error) }
            }
        }
    )+};
}

coded! {
    ProofError {
        ProofError::TooOld | ProofError::Used | ProofError::SignIn(SignInError::Expired) => ErrorCode::ProofExpired;
        ProofError::Malformed | ProofError::Signature(_) | ProofError::SignIn(_) => ErrorCode::InvalidProof;
        ProofError::Ahead => ErrorCode::ProofFromFuture;
        ProofError::OtherAddress(_) => ErrorCode::WrongSigner;
    }
    QuotaExceeded {
        QuotaExceeded::Listings(_) | QuotaExceeded::Bytes(_) => ErrorCode::QuotaExceeded;
        QuotaExceeded::Today { .. } => ErrorCode::DailyQuotaExceeded;
    }
    Unavailable {
        Unavailable::Port(_) | Unavailable::Restoring => ErrorCode::Unavailable;
        Unavailable::NotIncluded(_) | Unavailable::Unconfirmed(_) | Unavailable::NoResult(_)
            => ErrorCode::PaymentPending;
        Unavailable::ChainBehind => ErrorCode::ProtectedPaused;
        Unavailable::Refundable(_) => ErrorCode::Refundable;
        Unavailable::Refunded(_) => ErrorCode::Refunded;
    }
    SpendRefused {
        SpendRefused::SignedOut => ErrorCode::NotSignedIn;
        SpendRefused::PerPayment { .. } => ErrorCode::OverPurchaseLimit;
        SpendRefused::Daily { .. } => ErrorCode::OverDailyLimit;
        SpendRefused::Unapproved => ErrorCode::ApprovalNeeded;
        SpendRefused::Paused => ErrorCode::AgentsPaused;
        SpendRefused::ProtectedOnly => ErrorCode::ProtectedOnly;
        SpendRefused::Reputation { .. } => ErrorCode::ReputationTooLow;
    }
    WithdrawError {
        WithdrawError::NoOwner => ErrorCode::NoOwner;
        WithdrawError::Nothing { .. } => ErrorCode::NothingToWithdraw;
        WithdrawError::Busy => ErrorCode::WalletBusy;
        WithdrawError::Build(_) => ErrorCode::CannotBuild;
        WithdrawError::Ledger(_) => ErrorCode::PaymentFailed;
        WithdrawError::Port(_) => ErrorCode::Unavailable;
    }
    NoEscrow {
        NoEscrow::Unknown => ErrorCode::UnknownPurchase;
        NoEscrow::Instant => ErrorCode::NotProtected;
        NoEscrow::OtherContract => ErrorCode::EscrowUnavailable;
        NoEscrow::Busy | NoEscrow::Port(_) => ErrorCode::Unavailable;
    }
    PayError {
        PayError::Unpaid => ErrorCode::PaymentRequired;
        PayError::Proof(proof) => Error::from(proof.clone()).code;
        PayError::NotOwned => ErrorCode::NotOwned;
        PayError::Refused(Refusal::Settlement(NotSettled::Pending))
        | PayError::NotSettled(Refusal::Settlement(NotSettled::Pending), _) => ErrorCode::PaymentPending;
        PayError::Refused(refusal) if refusal.is_malformed() => ErrorCode::MalformedPayment;
        PayError::Refused(_) | PayError::NotSettled(..) | PayError::ExpiresTooSoon | PayError::InputsTaken
            => ErrorCode::PaymentRefused;
        PayError::Refunded => ErrorCode::Refunded;
        PayError::Public => ErrorCode::PaymentPublic;
        PayError::TooManyUnresolved => ErrorCode::PayerUnresolved;
        PayError::IdentifierTaken => ErrorCode::PaymentIdentifierTaken;
        PayError::OffSale => ErrorCode::UnknownListing;
        PayError::Unavailable(unavailable) => Error::from(unavailable.clone()).code;
    }
    BuyError {
        BuyError::UnknownListing => ErrorCode::UnknownListing, in "listingId";
        BuyError::NotOffered(_) => ErrorCode::NotOffered, in "mode";
        BuyError::SpendRefused(refused) => Error::from(*refused).code;
        BuyError::SamePurchase => ErrorCode::PurchaseInProgress;
        BuyError::Busy => ErrorCode::WalletBusy;
        BuyError::Insufficient { .. } => ErrorCode::InsufficientFunds;
        BuyError::OwnListing => ErrorCode::OwnListing;
        BuyError::PriceChanged => ErrorCode::PriceChanged;
        BuyError::Build(_) | BuyError::Terms(_) | BuyError::Ledger(_) | BuyError::Expired => ErrorCode::PaymentFailed;
        BuyError::Pending(_) | BuyError::NoResult(_) | BuyError::Unconfirmed(_) => ErrorCode::PaymentPending;
        BuyError::Unresolved(_) => ErrorCode::EarlierPaymentUnresolved;
        BuyError::Unavailable(unavailable) => Error::from(unavailable.clone()).code;
    }
    NotRead {
        NotRead::Unknown => ErrorCode::UnknownPurchase;
        NotRead::Failed => ErrorCode::PaymentFailed;
        NotRead::Refunded => ErrorCode::Refunded;
        NotRead::Unavailable(unavailable) => Error::from(unavailable.clone()).code;
    }
    PaymentDraftError {
        PaymentDraftError::NotOffered(_) => ErrorCode::NotOffered, in "mode";
        PaymentDraftError::OwnListing => ErrorCode::OwnListing;
        PaymentDraftError::Insufficient { .. } => ErrorCode::InsufficientFunds;
        PaymentDraftError::Scattered { .. } => ErrorCode::WalletScattered;
        PaymentDraftError::Build(_) => ErrorCode::CannotBuild, in "utxos";
        PaymentDraftError::Offer(_) | PaymentDraftError::CannotPay(_) => ErrorCode::Internal;
    }
    ActionError {
        ActionError::NoEscrow(why) => Error::from(why.clone()).code;
        ActionError::Ended(_) => ErrorCode::EscrowEnded;
        ActionError::State { .. }
        | ActionError::Plan(_)
        | ActionError::NotNow { .. }
        | ActionError::OnItsWay(_) => ErrorCode::ActionNotPossible;
        ActionError::Later(_) => ErrorCode::Unavailable;
        ActionError::TooEarly { .. } => ErrorCode::TooEarly;
        ActionError::TooLate { .. } => ErrorCode::TooLate;
        ActionError::NotYours { .. } | ActionError::OwnWallet(_) => ErrorCode::NotYours;
        ActionError::Insufficient { .. } => ErrorCode::InsufficientFunds;
        ActionError::Collateral { .. } => ErrorCode::NoCollateral;
        ActionError::Build(_) => ErrorCode::CannotBuild, in "utxos";
        ActionError::Refused(_) => ErrorCode::OutputNotFound;
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
