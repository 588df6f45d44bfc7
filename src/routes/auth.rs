//! `POST /auth/challenge`, `POST /auth/verify`, `POST /auth/logout`

use cardano::{
    Address,
    cip8::{DataSignature, SignedMessage},
    hash::blake2b,
};
use edge::ed25519::WebCrypto;
use market::account::{self, Challenge, NewWallet, Token};
use serde_json::json;
use worker::{Request, Response};

use crate::{app::App, body::Body, error::ApiError, limits::Limiter, respond, session};

/// A challenge for an address.
pub async fn challenge(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit(Limiter::Challenge, &app.client(&request)).await?;
    let body = Body::read(&mut request).await?;
    let owner = address(&body, "address")?;
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

fn address(body: &Body, name: &str) -> Result<Address, ApiError> {
    Address::parse_cip30(body.text(name)?).map_err(|error| ApiError::bad_request(format!("{name}: {error}")))
}

/// A session, for a signed challenge.
pub async fn verify(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit(Limiter::SignIn, &app.client(&request)).await?;
    let body = Body::read(&mut request).await?;
    let owner = address(&body, "owner")?;
    let (key, signature) = (body.text("key")?, body.text("signature")?);
    let bad = |error: cardano::cip8::Cip8Error| {
        ApiError::unauthorized(format!("the wallet's signature did not check out: {error}"))
    };
    let gone =
        || ApiError::unauthorized("no live challenge for this address: ask for a new one (POST /auth/challenge)");
    let signed = DataSignature::from_hex(key, signature).map_err(bad)?;
    let message = SignedMessage::parse(&signed.key, &signed.signature).map_err(bad)?;
    let kept = app.challenges()?.find::<Challenge>(&format!("signin:{}", hex_of(message.payload()))).await;
    let challenge = kept.map_err(|error| ApiError::unavailable_because("challenges", error))?.ok_or_else(gone)?;
    if challenge.owner != owner || challenge.expires_at <= app.now_ms() {
        return Err(gone());
    }
    let unverified = message.check(&owner, challenge.digest.as_bytes()).map_err(bad)?;
    unverified.verify(&WebCrypto).await.map_err(|error| bad(error.into()))?;

    let token = Token::new(edge::random().map_err(|error| ApiError::internal("randomness", error))?);
    let key_version = app.key_version()?;
    let address = app.wallet_key(key_version, &owner.to_string())?.enterprise_address();
    let wallet = NewWallet { address, key_version };
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
