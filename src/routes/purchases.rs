//! `GET /purchases`, `GET /purchases/{id}`, `POST /purchases/{id}/verification`

use cardano::{Address, TxHash, address::AddressError};
use edge::{ed25519::WebCrypto, http::read_request};
use market::{
    account::{self, Account},
    proof::Proof,
    purchase::{self, Owned, Verification},
};
use serde::Deserialize;
use sql::Database;
use worker::{Request, Response};

use crate::{app::App, error::ApiError, respond, session};

/// Bytes of a verdict's body.
const MAX_BODY: usize = 4 << 10;

fn unknown() -> ApiError {
    ApiError::not_found("no such purchase")
}

/// What a seller sold.
pub async fn list(app: &App, request: &Request) -> Result<Response, ApiError> {
    let url = request.url()?;
    let seller = url.query_pairs().find_map(|(name, value)| (name == "seller").then(|| value.into_owned()));
    let seller = seller.ok_or_else(|| ApiError::bad_request("seller: is required (a preprod address)"))?;
    let seller: Address =
        seller.parse().map_err(|error: AddressError| ApiError::bad_request(format!("seller: {error}")))?;
    Ok(respond::json(purchase::of_seller(&app.database()?, &seller).await?)?)
}

/// One purchase with its timeline.
pub async fn show(app: &App, id: &str) -> Result<Response, ApiError> {
    let id: TxHash = id.parse().map_err(|_| unknown())?;
    let json = purchase::one(&app.database()?, &id).await?.ok_or_else(unknown)?;
    Ok(respond::json(json)?)
}

#[derive(Deserialize)]
struct Verdict {
    verification: Verification,
}

/// A buyer's verdict: signed by the payer's wallet; or in a session, of the account whose service wallet paid.
pub async fn verify(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    let id: TxHash = id.parse().map_err(|_| unknown())?;
    let body = read_request(&mut request, MAX_BODY).await?;
    let verdict: Verdict = serde_json::from_slice(&body)
        .map_err(|_| ApiError::bad_request("verification: must be \"ok\", \"mismatch\" or \"no_result_yet\""))?;
    let database = app.database()?;
    let bought: Owned = database.run(purchase::owner(&id)).await?.first_json()?.ok_or_else(unknown)?;
    match request.headers().get("x-service-proof")? {
        Some(proof) => signed_by_payer(app, &proof, &bought).await?,
        None => paid_by_account(app, &database, &request, &bought).await?,
    }
    let json = purchase::verify(&database, &id, verdict.verification).await?.ok_or_else(unknown)?;
    Ok(respond::json(json)?)
}

async fn signed_by_payer(app: &App, header: &str, bought: &Owned) -> Result<(), ApiError> {
    let proof = Proof::from_header(header).map_err(|error| ApiError::forbidden(error.to_string()))?;
    if proof.address != bought.buyer_address {
        return Err(ApiError::forbidden("only the address that paid may judge the purchase"));
    }
    let digest = proof.unlock_digest(&bought.listing_id);
    let checked = proof.check(&WebCrypto, &digest, app.now_ms()).await;
    checked.map_err(|error| ApiError::forbidden(error.to_string()))
}

/// Nobody but the service holds a service wallet's key: its account judges what it bought.
async fn paid_by_account(
    app: &App,
    database: &impl Database,
    request: &Request,
    bought: &Owned,
) -> Result<(), ApiError> {
    let Some(token) = session::token(request)? else {
        return Err(ApiError::forbidden(
            "sign the verdict with the payer's wallet (X-Service-Proof); for what a service wallet bought, be signed in",
        ));
    };
    let live = database.run(account::by_session(&token.hash(), app.now_ms())).await?;
    let account: Account = live.first_json()?.ok_or_else(|| ApiError::unauthorized(session::SIGN_IN))?;
    if account.wallet_address == bought.buyer_address {
        Ok(())
    } else {
        Err(ApiError::forbidden("only the account whose service wallet paid may judge the purchase"))
    }
}
