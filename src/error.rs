//! Why a request is not answered as it asked. Each route's errors answer for themselves ([`Refused`]): no route is named here.

use cardano::chain::ChainError;
use edge::{
    answer::{ErrorAnswer, Fault},
    http::BodyError,
    settings::SettingError,
};
use market::{PortError, challenge::ChallengesError, contents::ContentsError};
use sql::DatabaseError;

/// Seconds after which there may be room again: an operator has to make it.
const NO_ROOM_RETRY: u64 = 3_600;

/// An error that says what the client is told. Its text is its `Display`, stable, and says what to do.
pub trait Refused: std::error::Error + 'static {
    /// The status, and the header that it calls for.
    fn answer(&self) -> ErrorAnswer;
}

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
    /// Not the operator.
    #[error("a bearer token is needed: Authorization: Bearer OPERATOR_TOKEN")]
    NotOperator,
    /// The database has room only for what is paid for.
    #[error(
        "the service's storage is full: no new listings, accounts or agents for now; buying, and signing in to an account, still work"
    )]
    StorageFull,
    /// A body that cannot be read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A route's own.
    #[error("{0}")]
    Refused(Box<dyn Refused>),
    /// Ours alone.
    #[error(transparent)]
    Fault(Fault),
}

impl<E: Refused> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl ApiError {
    /// What the client is told.
    pub fn answer(&self) -> ErrorAnswer {
        match self {
            Self::NoSuchPath => ErrorAnswer::not_found(self.to_string()),
            Self::WrongMethod(allowed) => ErrorAnswer::wrong_method(allowed),
            Self::NotSignedIn | Self::NotOperator => ErrorAnswer::unauthorized(self.to_string()),
            Self::StorageFull => ErrorAnswer::unavailable_for(NO_ROOM_RETRY, self.to_string()),
            Self::Body(error) => error.into(),
            Self::Refused(error) => error.answer(),
            Self::Fault(fault) => fault.answer(),
        }
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
fault!(
    Fault,
    DatabaseError,
    ChainError,
    ChallengesError,
    ContentsError,
    PortError,
    SettingError,
    edge::RandomError,
    worker::Error
);
