//! Signing in and out: `POST /auth/challenge`, `POST /auth/verify`, `POST /auth/logout`.

use api_types::{ChallengeRequest, Error, ErrorCode, Session, SessionAccount, SignIn};
use cardano::{
    Address,
    cip8::{Cip8Error, DataSignature, SignedMessage},
};
use edge::{answer::ErrorAnswer, ed25519::WebCrypto, serve::Response};
use market::{
    account::{self, NewWallet, NotSignedIn, Token},
    challenge::{self, Challenge, Purpose},
};

#[cfg(test)]
use serde_json::json;

use crate::{
    app::App,
    body::Json,
    error::{ApiError, not_signed_in, storage_full},
    limits::Counted,
    respond,
    route::{Limit, Route, route},
    session::Unchecked,
};

pub const ROUTES: &[Route] = &[
    route! {
        POST "/auth/challenge", Limit::Client(Counted::CHALLENGE) => challenge(Json<ChallengeRequest>);
        docs |of| of
            .names("challenge", "Account", "Request a sign-in challenge")
            .answers::<api_types::Challenge>(200, "A challenge for the wallet to sign within five minutes. It can be used once.")
    },
    route! {
        POST "/auth/verify", Limit::Client(Counted::SIGN_IN) => verify(Json<SignIn>);
        docs |of| of
            .names("signIn", "Account", "Sign in with a signed challenge")
            .answers::<Session>(200, "A session of seven days. The first sign-in creates the account and its service wallet.")
            .fails(&[401])
    },
    route! {
        POST "/auth/logout", Limit::Session => logout(Unchecked);
        docs |of| of
            .names("signOut", "Account", "End the session")
            .query("everywhere", "`true` ends all sessions of the account, so that a stolen token stops working as well.", json!({ "type": "boolean" }))
            .empty(204, "The session has ended.")
    },
];

/// Maximum number of addresses that a client may send in addition to the first.
const MAX_OTHERS: usize = 20;

/// 401: the signature of the challenge is invalid.
fn unsigned(error: impl Into<Cip8Error>) -> ErrorAnswer {
    let text = format_args!("the wallet's signature is not valid: {}", error.into());
    ErrorAnswer::unauthorized(Error::new(ErrorCode::InvalidSignature, text))
}

/// 401: the challenge was used, has expired, or never existed.
fn no_challenge() -> ErrorAnswer {
    let text = "the challenge expired or was used: ask for a new one (POST /auth/challenge)";
    ErrorAnswer::unauthorized(Error::new(ErrorCode::ChallengeExpired, text))
}

/// Issues a challenge for an address.
async fn challenge(
    app: &App,
    Json(ChallengeRequest { address, others }): Json<ChallengeRequest>,
) -> Result<Response, ApiError> {
    let owner = owner_of_wallet(app, &address, &others).await?;
    let Challenge { owner, nonce, digest, expires_at } =
        challenge::give(&app.challenges()?, Purpose::SignIn, owner, edge::random()?, app.now_ms).await?;
    respond::private(&api_types::Challenge { owner, digest, nonce, expires_at })
}

/// Returns the owner of a wallet: the one of its addresses that already has an account, or else `address`. All
/// addresses are tried, because wallets list them in varying order.
pub(super) async fn owner_of_wallet(app: &App, address: &str, others: &[String]) -> Result<Address, ApiError> {
    if others.len() > MAX_OTHERS {
        let rule = format_args!("at most {MAX_OTHERS} addresses");
        return Err(ErrorAnswer::bad_request(Error::of_field(ErrorCode::TooManyItems, "others", rule)).into());
    }
    let first = parsed("address", address)?;
    let others = others.iter().map(|other| parsed("others", other)).collect::<Result<Vec<_>, _>>()?;
    if others.is_empty() {
        return Ok(first);
    }
    Ok(account::sign_in_address(&app.database(), &first, &others).await?.unwrap_or(first))
}

fn parsed(field: &str, address: &str) -> Result<Address, ErrorAnswer> {
    let invalid = |error| ErrorAnswer::bad_request(Error::of_field(ErrorCode::InvalidAddress, field, error));
    Address::parse_cip30(address).map_err(invalid)
}

/// Opens a session for a signed challenge.
async fn verify(app: &App, Json(SignIn { owner, key, signature }): Json<SignIn>) -> Result<Response, ApiError> {
    let owner = parsed("owner", &owner)?;
    let signed = DataSignature::from_hex(&key, &signature).map_err(unsigned)?;
    let message = SignedMessage::parse(&signed.key, &signed.signature).map_err(unsigned)?;
    let challenge =
        challenge::find(&app.challenges()?, &Purpose::SignIn, &owner, message.payload(), app.now_ms).await?;
    let challenge = challenge.ok_or_else(no_challenge)?;
    let unverified = message.check(&owner, challenge.digest.as_bytes()).map_err(unsigned)?;
    unverified.verify(&WebCrypto).await.map_err(unsigned)?;

    let token = Token::new(edge::random()?);
    let keys = app.keys()?;
    let key_version = keys.current_version()?;
    let address = keys.wallet(key_version, &owner.to_string())?.enterprise_address();
    let wallet = NewWallet { address, key_version };
    let room = app.room().await?;
    let signed = account::sign_in(&app.database(), &challenge, &wallet, &token, room, app.now_ms).await;
    let account = signed.map_err(|error| match error {
        NotSignedIn::Answered => ApiError::from(no_challenge()),
        NotSignedIn::StorageFull => storage_full().into(),
        NotSignedIn::Database(error) => error.into(),
    })?;
    respond::private(&Session {
        token: token.reveal().to_owned(),
        expires_at: app.now_ms.saturating_add(account::session_ms(room)),
        account: SessionAccount { owner: account.owner, wallet_address: account.wallet_address },
    })
}

/// Ends a session; with `everywhere=true` in the query, all sessions of its account.
async fn logout(app: &App, Unchecked(token): Unchecked) -> Result<Response, ApiError> {
    let everywhere = app.request.url()?.query_pairs().any(|(name, value)| name == "everywhere" && value == "true");
    if account::sign_out(&app.database(), &token, everywhere, app.now_ms).await? {
        Ok(Response::empty(204))
    } else {
        Err(not_signed_in().into())
    }
}
