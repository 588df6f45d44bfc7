//! `GET /purchases`, `GET /purchases/{id}`, `POST /purchases/{id}/verification`

use cardano::{Address, TxHash, address::AddressError};
use edge::{ed25519::WebCrypto, http::read_request};
use market::{
    database::Database,
    proof::Proof,
    purchase::{self, Owned, Verification},
};
use serde::Deserialize;
use worker::{Request, Response};

use crate::{app::App, error::ApiError, respond};

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

/// A buyer's verdict, signed by the payer's wallet.
pub async fn verify(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    let forbidden = |why: String| ApiError::forbidden(why);
    let id: TxHash = id.parse().map_err(|_| unknown())?;
    let header = request.headers().get("x-service-proof")?;
    let body = read_request(&mut request, MAX_BODY).await?;
    let verdict: Verdict = serde_json::from_slice(&body)
        .map_err(|_| ApiError::bad_request("verification: must be \"ok\", \"mismatch\" or \"no_result_yet\""))?;
    let database = app.database()?;
    let bought: Owned = database.run(purchase::owner(&id)).await?.first_json()?.ok_or_else(unknown)?;
    let header =
        header.ok_or_else(|| forbidden("sign the verdict with the payer's wallet (X-Service-Proof)".into()))?;
    let proof = Proof::from_header(&header).map_err(|error| forbidden(error.to_string()))?;
    if proof.address != bought.buyer_address {
        return Err(forbidden("only the address that paid may judge the purchase".into()));
    }
    let digest = proof.unlock_digest(&bought.listing_id);
    proof.check(&WebCrypto, &digest, app.now_ms()).await.map_err(|error| forbidden(error.to_string()))?;
    let json = purchase::verify(&database, &id, verdict.verification).await?.ok_or_else(unknown)?;
    Ok(respond::json(json)?)
}
