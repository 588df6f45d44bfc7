//! `DELETE /listings/{id}`, `POST /listings/{id}/relist`: take a listing off sale, and offer it again.

use api_types::{Error, ErrorCode};
use edge::{answer::ErrorAnswer, ed25519::WebCrypto, serve::Response};
use market::catalogue::{
    self,
    take_off::{self, NotChanged, SaleState},
};

use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    routes::listings::{self, Seller},
};

/// Takes a listing off sale, or offers it again, on behalf of its seller. The request must have a session, or a proof
/// that is signed for this listing and purpose. Answers 204 when the listing is off sale, or the listing when it is for
/// sale.
pub async fn change(app: &App, id: &str, state: SaleState) -> Result<Response, ApiError> {
    app.limit_client(Counted::OFFER).await?;
    let id = listings::id(id)?;
    app.line.note("listing", id.as_str());
    let seller = match Seller::of(app).await? {
        Seller::Owner(owner) => owner,
        Seller::Signer(proof) => {
            let digest = match state {
                SaleState::OffSale => proof.take_off_digest(id.as_str()),
                SaleState::ForSale => proof.relist_digest(id.as_str()),
            };
            proof.check(&WebCrypto, &digest, app.now_ms).await.map_err(ErrorAnswer::unauthorized)?;
            proof.address
        }
    };
    let database = app.database();
    take_off::change(&database, &id, &seller, state, app.now_ms).await?.map_err(|why| match why {
        NotChanged::Unknown => listings::unknown(),
        NotChanged::NotYours => {
            let text = "only its seller may take this listing off sale or put it back";
            ErrorAnswer::forbidden(Error::new(ErrorCode::NotYours, text))
        }
    })?;
    match state {
        SaleState::OffSale => Ok(Response::empty(204)),
        SaleState::ForSale => {
            let json = catalogue::one(&database, &id).await?;
            Ok(Response::json(json.ok_or_else(listings::unknown)?))
        }
    }
}
