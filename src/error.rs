//! The boundary's one map from what went wrong to a status and a stable text that says what to do.
//!
//! Each family of routes has an enum of its refusals, whose texts are their `Display`; the statuses are all here.

use agents::oauth::approve::ApprovalError;
use cardano::chain::ChainError;
use edge::{
    answer::{ErrorAnswer, Fault},
    http::BodyError,
    settings::SettingError,
};
use market::{
    actions::{ActionError, NoEscrow},
    catalogue::NoRoom,
    challenge::ChallengesError,
    checkout::Unavailable,
    contents::ContentsError,
};
use sql::DatabaseError;

use crate::{
    body::FieldError,
    limits::TooMany,
    routes::{
        auth::SignInError, creators::CreatorError, discovery::DiscoveryError, drafts::DraftingError,
        listings::ListingError, me::AccountError, oauth::AgentError, purchases::PurchaseError, unlock::UnlockError,
    },
};

/// Seconds after which there may be room again: an operator has to make it.
const NO_ROOM_RETRY: u64 = 3_600;

/// Why a request is not answered as it asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No route.
    #[error("no such path")]
    NoSuchPath,
    /// A route, but not for this method; it takes these.
    #[error("this path takes only {0}")]
    WrongMethod(&'static str),
    /// No session, or none that is live.
    #[error("not signed in, or the session is over: sign in again (POST /auth/challenge)")]
    NotSignedIn,
    /// Asked for too often.
    #[error(transparent)]
    TooMany(TooMany),
    /// The database has room only for what is paid for.
    #[error(
        "the service has no room for new listings, accounts and agents at the moment: what is listed can be bought, and who has an account can sign in"
    )]
    NoRoom,
    /// A body that cannot be read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A body whose fields are not what they should be.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Of `/auth`.
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// Of `/listings`.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// Of `/listings/{id}/unlock`, but for what is answered with 402.
    #[error(transparent)]
    Unlock(#[from] UnlockError),
    /// Of `/listings/{id}/payment-draft` and `/purchases/{id}/action-draft`.
    #[error(transparent)]
    Draft(#[from] DraftingError),
    /// Of `/creators`.
    #[error(transparent)]
    Creator(#[from] CreatorError),
    /// Of `/discovery`.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// Of `/me`.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// Of `/purchases`.
    #[error(transparent)]
    Purchase(#[from] PurchaseError),
    /// Of `/oauth` and `/me/agents`, but for what is answered in OAuth's own form.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Ours alone.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl ApiError {
    /// What the client is told.
    pub fn answer(&self) -> ErrorAnswer {
        let text = || self.to_string();
        match self {
            Self::NoSuchPath => ErrorAnswer::not_found(text()),
            Self::WrongMethod(allowed) => ErrorAnswer::wrong_method(allowed),
            Self::NotSignedIn => ErrorAnswer::unauthorized(text()),
            Self::TooMany(error) => ErrorAnswer::too_many(error.seconds, text()),
            Self::NoRoom => ErrorAnswer::unavailable_for(NO_ROOM_RETRY, text()),
            Self::Body(error) => error.into(),
            Self::Field(_) => ErrorAnswer::bad_request(text()),
            Self::SignIn(error) => match error {
                SignInError::Address(..) => ErrorAnswer::bad_request(text()),
                SignInError::Signature(_) | SignInError::NoChallenge => ErrorAnswer::unauthorized(text()),
            },
            Self::Listing(error) => match error {
                ListingError::Unknown => ErrorAnswer::not_found(text()),
                ListingError::NoRoom(NoRoom::Today { wait_s, .. }) => ErrorAnswer::unavailable_for(*wait_s, text()),
                ListingError::Query(_) | ListingError::Field(_) | ListingError::NoRoom(_) => {
                    ErrorAnswer::bad_request(text())
                }
                ListingError::NoProof | ListingError::Proof(_) | ListingError::OfferChanged => {
                    ErrorAnswer::unauthorized(text())
                }
            },
            Self::Unlock(error) => match error {
                UnlockError::UnknownListing => ErrorAnswer::not_found(text()),
                UnlockError::Malformed(_) => ErrorAnswer::bad_request(text()),
                UnlockError::IdentifierTaken(_) => ErrorAnswer::conflict(text()),
                UnlockError::NotNow(_) => ErrorAnswer::unavailable(text()),
            },
            Self::Draft(error) => match error {
                DraftingError::UnknownListing => ErrorAnswer::not_found(text()),
                DraftingError::NotActed(error) => acted(error, text()),
                DraftingError::Mode
                | DraftingError::Commitment
                | DraftingError::Action
                | DraftingError::NoContract
                | DraftingError::Wallet(_)
                | DraftingError::NotOnChain(_)
                | DraftingError::NotDrafted(_) => ErrorAnswer::bad_request(text()),
            },
            Self::Creator(CreatorError::Address(_) | CreatorError::Cursor) => ErrorAnswer::bad_request(text()),
            Self::Discovery(_) => ErrorAnswer::bad_request(text()),
            Self::Account(error) => match error {
                AccountError::UnknownPurchase => ErrorAnswer::not_found(text()),
                AccountError::Refunded => ErrorAnswer::gone(text()),
                AccountError::Pending(_) => ErrorAnswer::unavailable(text()),
                AccountError::Limits(_)
                | AccountError::Mode
                | AccountError::UnknownListing
                | AccountError::NotBought(_)
                | AccountError::NotWithdrawn(_) => ErrorAnswer::bad_request(text()),
            },
            Self::Purchase(error) => match error {
                PurchaseError::Unknown => ErrorAnswer::not_found(text()),
                PurchaseError::NoSeller
                | PurchaseError::Seller(_)
                | PurchaseError::Buyer(_)
                | PurchaseError::Buyers
                | PurchaseError::Verdict => ErrorAnswer::bad_request(text()),
                PurchaseError::Proof(_)
                | PurchaseError::NotThePayer
                | PurchaseError::NoProof
                | PurchaseError::NotYours => ErrorAnswer::forbidden(text()),
            },
            Self::Agent(error) => match error {
                AgentError::Approval(ApprovalError::Database(cause)) => Fault::from(cause.clone()).answer(),
                AgentError::Approval(ApprovalError::NoMoreToday { wait_s }) => {
                    ErrorAnswer::unavailable_for(*wait_s, text())
                }
                AgentError::Approval(ApprovalError::Challenges(cause)) => Fault::from(cause.clone()).answer(),
                AgentError::Approval(ApprovalError::Signature(_) | ApprovalError::NoChallenge) => {
                    ErrorAnswer::unauthorized(text())
                }
                AgentError::Approval(
                    ApprovalError::Expired(_) | ApprovalError::Address(_) | ApprovalError::Invalid(_),
                )
                | AgentError::NotJson
                | AgentError::Missing(_) => ErrorAnswer::bad_request(text()),
                AgentError::Origin => ErrorAnswer::forbidden(text()),
                AgentError::UnknownAgent => ErrorAnswer::not_found(text()),
            },
            Self::Fault(fault) => fault.answer(),
        }
    }
}

/// Why a party's action is not drafted.
fn acted(error: &ActionError, text: String) -> ErrorAnswer {
    match error {
        ActionError::NotYours { .. } => ErrorAnswer::forbidden(text),
        ActionError::NoEscrow(NoEscrow::Busy) => ErrorAnswer::unavailable(text),
        ActionError::NoEscrow(NoEscrow::Unknown) => ErrorAnswer::not_found(text),
        ActionError::NoEscrow(_)
        | ActionError::Insufficient { .. }
        | ActionError::Collateral { .. }
        | ActionError::Build(_) => ErrorAnswer::bad_request(text),
        ActionError::Ended(_)
        | ActionError::State { .. }
        | ActionError::TooEarly { .. }
        | ActionError::TooLate { .. }
        | ActionError::Refused(_)
        | ActionError::Plan(_) => ErrorAnswer::conflict(text),
    }
}

macro_rules! fault {
    ($($kind:ty),*) => {$(
        impl From<$kind> for ApiError {
            fn from(error: $kind) -> Self {
                Self::Fault(error.into())
            }
        }
    )*};
}
fault!(DatabaseError, ChainError, ChallengesError, ContentsError, SettingError, edge::RandomError, worker::Error);

impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Database(error) => error.into(),
            Unavailable::Chain(error) => error.into(),
            Unavailable::Contents(error) => error.into(),
            Unavailable::Unconfirmed(_) | Unavailable::NoResult(_) | Unavailable::Crowded => {
                UnlockError::NotNow(error).into()
            }
        }
    }
}
