//! `POST /auth/challenge`, `POST /auth/verify`, `POST /auth/logout`

use api_types::{ChallengeRequest, Session, SessionAccount, SignIn};
use cardano::{
    Address,
    address::AddressError,
    cip8::{Cip8Error, DataSignature, SignedMessage},
};
use edge::serve::{Request, Response};
use edge::{answer::ErrorAnswer, ed25519::WebCrypto};
use market::{
    account::{self, NewWallet, NotSignedIn, Token},
    challenge::{self, Challenge, Purpose},
};

use crate::{
    app::App,
    body,
    error::{ApiError, Refused},
    limits::Counted,
    respond,
    session::PresentedToken,
};

/// Addresses that are looked at beside the first.
const MAX_OTHERS: usize = 20;

/// Why a request has no session.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// More addresses than are looked at.
    #[error("others: at most {MAX_OTHERS} addresses")]
    TooManyOthers,
    /// Not a preprod key address, in this field.
    #[error("{0}: {1}")]
    Address(&'static str, AddressError),
    /// Not the owner's signature of the challenge.
    #[error("the wallet's signature is not valid: {0}")]
    Signature(#[from] Cip8Error),
    /// Answered before, expired, or never given.
    #[error("the challenge expired or was used: ask for a new one (POST /auth/challenge)")]
    NoChallenge,
}

impl Refused for SignInError {
    fn answer(&self) -> ErrorAnswer {
        match self {
            Self::Address(..) | Self::TooManyOthers => ErrorAnswer::bad_request(self.to_string()),
            Self::Signature(_) | Self::NoChallenge => ErrorAnswer::unauthorized(self.to_string()),
        }
    }
}

/// A challenge for an address.
pub async fn challenge(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Challenge, &request).await?;
    let ChallengeRequest { address, others } = body::read(&mut request).await?;
    let owner = owner_among(app, &address, &others).await?;
    let Challenge { owner, nonce, digest, expires_at, .. } =
        challenge::give(&app.challenges()?, Purpose::SignIn, owner, edge::random()?, app.now_ms()).await?;
    respond::private(&api_types::Challenge { owner, digest, nonce, expires_at })
}

/// The owner among a wallet's addresses, which wallets list in any order.
pub(super) async fn owner_among(app: &App, address: &str, others: &[String]) -> Result<Address, ApiError> {
    if others.len() > MAX_OTHERS {
        return Err(SignInError::TooManyOthers.into());
    }
    let first = parsed("address", address)?;
    let others = others.iter().map(|other| parsed("others", other)).collect::<Result<Vec<_>, _>>()?;
    if others.is_empty() {
        return Ok(first);
    }
    Ok(account::known_among(&app.database(), &first, &others).await?.unwrap_or(first))
}

fn parsed(field: &'static str, address: &str) -> Result<Address, SignInError> {
    Address::parse_cip30(address).map_err(|error| SignInError::Address(field, error))
}

/// A session, for a signed challenge.
pub async fn verify(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::SignIn, &request).await?;
    let SignIn { owner, key, signature } = body::read(&mut request).await?;
    let owner = parsed("owner", &owner)?;
    let signed = DataSignature::from_hex(&key, &signature).map_err(SignInError::from)?;
    let message = SignedMessage::parse(&signed.key, &signed.signature).map_err(SignInError::from)?;
    let challenge =
        challenge::find(&app.challenges()?, &Purpose::SignIn, &owner, message.payload(), app.now_ms()).await?;
    let challenge = challenge.ok_or(SignInError::NoChallenge)?;
    let unverified = message.check(&owner, challenge.digest.as_bytes()).map_err(SignInError::from)?;
    unverified.verify(&WebCrypto).await.map_err(|error| SignInError::Signature(error.into()))?;

    let token = Token::new(edge::random()?);
    let keys = app.keys()?;
    let key_version = keys.current_version()?;
    let address = keys.wallet(key_version, &owner.to_string())?.enterprise_address();
    let wallet = NewWallet { address, key_version };
    let room = app.room().await?;
    let signed = account::sign_in(&app.database(), &challenge, &wallet, &token, room, app.now_ms()).await;
    let account = signed.map_err(|error| match error {
        NotSignedIn::Answered => SignInError::NoChallenge.into(),
        NotSignedIn::StorageFull => ApiError::StorageFull,
        NotSignedIn::Database(error) => error.into(),
    })?;
    respond::private(&Session {
        token: token.reveal().to_owned(),
        expires_at: app.now_ms().saturating_add(account::session_ms(room)),
        account: SessionAccount { owner: account.owner, wallet_address: account.wallet_address },
    })
}

/// The end of a session; with `everywhere=true` in the query, of all sessions of its account.
pub async fn logout(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let token = PresentedToken::required(request)?;
    let everywhere = request.url()?.query_pairs().any(|(name, value)| name == "everywhere" && value == "true");
    if account::sign_out(&app.database(), &token, everywhere, app.now_ms()).await? {
        Ok(Response::empty(204))
    } else {
        Err(ApiError::NotSignedIn)
    }
}
