//! `POST /auth/challenge`, `POST /auth/verify`, `POST /auth/logout`

use cardano::{Address, cip8::SignedMessage, hash::blake2b};
use edge::{ed25519::WebCrypto, http::read_request};
use market::account::{self, Challenge, Token};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use worker::{Request, Response};

use crate::{app::App, error::ApiError, limits::Limiter, respond, session};

/// Bytes of a body that carries an address or a signature.
const MAX_BODY: usize = 8 << 10;

/// Reads a small JSON body of this shape.
pub async fn body<T: DeserializeOwned>(request: &mut Request) -> Result<T, ApiError> {
    let body = read_request(request, MAX_BODY).await?;
    serde_json::from_slice(&body).map_err(|error| ApiError::bad_request(format!("body: {error}")))
}

#[derive(Deserialize)]
struct Ask {
    address: String,
}

/// A challenge for an address.
pub async fn challenge(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit(Limiter::Challenge, &app.client(&request)).await?;
    let ask: Ask = body(&mut request).await?;
    let owner =
        Address::parse_cip30(&ask.address).map_err(|error| ApiError::bad_request(format!("address: {error}")))?;
    let nonce = edge::random::<32>().map_err(|error| ApiError::internal("randomness", error))?;
    let digest = account::signin_digest(&owner, &hex_of(&nonce));
    let expires_at = app.now_ms().saturating_add(account::CHALLENGE_MS);
    let challenge = Challenge { owner, digest, expires_at };
    let challenges = app.challenges()?;
    let seconds = account::CHALLENGE_MS / 1_000;
    // Wallets that sign a hash of the message answer with that hash: the challenge is found by it too.
    for key in [digest.to_string(), hex_of(&blake2b::<28>(digest.as_bytes()))] {
        let kept = challenges.keep(&format!("signin:{key}"), &challenge, seconds).await;
        kept.map_err(|error| ApiError::unavailable_because("challenges", error))?;
    }
    Ok(respond::json(json!({ "owner": owner, "digest": digest, "expiresAt": expires_at }).to_string())?)
}

#[derive(Deserialize)]
struct Answer {
    owner: Option<String>,
    key: Option<String>,
    signature: Option<String>,
}

/// A session, for a signed challenge.
pub async fn verify(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit(Limiter::SignIn, &app.client(&request)).await?;
    let answer: Answer = body(&mut request).await?;
    let missing = |name| ApiError::bad_request(format!("{name}: is required"));
    let owner = answer.owner.filter(|owner| !owner.is_empty()).ok_or_else(|| missing("owner"))?;
    let key = answer.key.ok_or_else(|| missing("key"))?;
    let signature = answer.signature.ok_or_else(|| missing("signature"))?;
    let owner = Address::parse_cip30(&owner).map_err(|error| ApiError::bad_request(format!("owner: {error}")))?;
    let bad = |error: cardano::cip8::Cip8Error| {
        ApiError::unauthorized(format!("the wallet's signature did not check out: {error}"))
    };
    let gone =
        || ApiError::unauthorized("no live challenge for this address: ask for a new one (POST /auth/challenge)");
    let message = SignedMessage::parse(&key, &signature).map_err(bad)?;
    let kept = app.challenges()?.find::<Challenge>(&format!("signin:{}", hex_of(message.payload()))).await;
    let challenge = kept.map_err(|error| ApiError::unavailable_because("challenges", error))?.ok_or_else(gone)?;
    if challenge.owner != owner || challenge.expires_at <= app.now_ms() {
        return Err(gone());
    }
    let unverified = message.check(&owner, challenge.digest.as_bytes()).map_err(bad)?;
    unverified.verify(&WebCrypto).await.map_err(|error| bad(error.into()))?;

    let token = Token::new(edge::random().map_err(|error| ApiError::internal("randomness", error))?);
    let wallet = app.wallet_key(account::KEY_VERSION, &owner.to_string())?.enterprise_address();
    let account =
        account::sign_in(&app.database()?, &challenge, &wallet, &token, app.now_ms()).await?.ok_or_else(gone)?;
    let answer = json!({
        "token": token.reveal(),
        "expiresAt": app.now_ms().saturating_add(account::SESSION_MS),
        "account": { "owner": account.owner, "walletAddress": account.wallet_address },
    });
    let mut response = respond::json(answer.to_string())?;
    response.headers_mut().set("cache-control", "no-store")?;
    Ok(response)
}

/// The end of a session.
pub async fn logout(app: &App, request: &Request) -> Result<Response, ApiError> {
    let token = session::required(request)?;
    if account::sign_out(&app.database()?, &token, app.now_ms()).await? {
        Ok(Response::empty()?.with_status(204))
    } else {
        Err(ApiError::unauthorized(session::SIGN_IN))
    }
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
