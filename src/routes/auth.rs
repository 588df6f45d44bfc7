//! `POST /auth/challenge`, `POST /auth/verify`, `POST /auth/logout`

use cardano::{
    Address,
    address::AddressError,
    cip8::{Cip8Error, DataSignature, SignedMessage},
};
use edge::serve::{Request, Response};
use edge::{
    answer::{self, ErrorAnswer},
    ed25519::WebCrypto,
};
use market::{
    account::{self, NewWallet, NotSignedIn, Token},
    challenge::{self, Challenge, Purpose},
};
use serde_json::json;

use crate::{
    app::App,
    body::JsonBody,
    error::{ApiError, Refused},
    limits::Counted,
    session::Shown,
};

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Not a preprod key address, in this field.
    #[error("{0}: {1}")]
    Address(&'static str, AddressError),
    /// Not the owner's signature of the challenge.
    #[error("the wallet's signature did not check out: {0}")]
    Signature(#[from] Cip8Error),
    /// Answered before, expired, or never given.
    #[error("no live challenge for this address: ask for a new one (POST /auth/challenge)")]
    NoChallenge,
}

impl Refused for SignInError {
    fn answer(&self) -> ErrorAnswer {
        match self {
            Self::Address(..) => ErrorAnswer::bad_request(self.to_string()),
            Self::Signature(_) | Self::NoChallenge => ErrorAnswer::unauthorized(self.to_string()),
        }
    }
}

/// A challenge for an address.
pub async fn challenge(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Challenge, &request).await?;
    let owner = JsonBody::read(&mut request, |body| address(body, "address")).await?;
    let Challenge { owner, nonce, digest, expires_at } =
        challenge::give(&app.challenges()?, Purpose::SignIn, owner, edge::random()?, app.now_ms()).await?;
    let answer = json!({ "owner": owner, "digest": digest, "nonce": nonce, "expiresAt": expires_at });
    Ok(answer::private_json(answer.to_string())?)
}

fn address(body: &JsonBody, name: &'static str) -> Result<Address, ApiError> {
    let address = Address::parse_cip30(body.text(name)?);
    Ok(address.map_err(|error| SignInError::Address(name, error))?)
}

/// A session, for a signed challenge.
pub async fn verify(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::SignIn, &request).await?;
    let (owner, signed) = JsonBody::read(&mut request, |body| {
        let (owner, key, signature) = (address(body, "owner")?, body.text("key")?, body.text("signature")?);
        Ok((owner, DataSignature::from_hex(key, signature).map_err(SignInError::from)?))
    })
    .await?;
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
        NotSignedIn::NoRoom => ApiError::NoRoom,
        NotSignedIn::Database(error) => error.into(),
    })?;
    let answer = json!({
        "token": token.reveal(),
        "expiresAt": app.now_ms().saturating_add(account::session_ms(room)),
        "account": { "owner": account.owner, "walletAddress": account.wallet_address },
    });
    Ok(answer::private_json(answer.to_string())?)
}

/// The end of a session; with `everywhere=true` in the query, of all sessions of its account.
pub async fn logout(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let token = Shown::required(request)?;
    let everywhere = request.url()?.query_pairs().any(|(name, value)| name == "everywhere" && value == "true");
    if account::sign_out(&app.database(), &token, everywhere, app.now_ms()).await? {
        Ok(Response::empty()?.with_status(204))
    } else {
        Err(ApiError::NotSignedIn)
    }
}
