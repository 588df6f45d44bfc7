//! `DELETE /listings/{id}`, `POST /listings/{id}/relist`: a seller takes a listing off sale, and puts it back.

use cardano::Address;
use edge::serve::{Request, Response};
use edge::{answer::Fault, ed25519::WebCrypto};
use market::{
    ListingId,
    catalogue::{
        self,
        take_off::{self, NotChanged, SaleState},
    },
    proof::Proof,
};

use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    routes::listings::ListingError,
    session::{MaybeSession, Session},
};

/// Makes a listing what its seller wants: 204 off sale, or the listing that is for sale again.
pub async fn change(app: &App, id: &str, state: SaleState, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Offer, request).await?;
    let id: ListingId = id.parse().map_err(|_| ListingError::Unknown)?;
    app.line().note("listing", id.as_str());
    let seller = seller(app, &id, state, request).await?;
    let database = app.database();
    take_off::change(&database, &id, &seller, state, app.now_ms()).await?.map_err(|why| match why {
        NotChanged::Unknown => ListingError::Unknown,
        NotChanged::NotYours => ListingError::NotYours,
    })?;
    match state {
        SaleState::OffSale => Ok(Response::empty(204)),
        SaleState::ForSale => {
            let json = catalogue::one(&database, &id).await?;
            Ok(Response::json(json.ok_or(ListingError::Unknown)?))
        }
    }
}

/// The address that asks: the owner of the session, or the signer of a proof for this listing and this purpose.
async fn seller(app: &App, id: &ListingId, state: SaleState, request: &Request) -> Result<Address, ApiError> {
    if let MaybeSession(Some(Session { account, .. })) = MaybeSession::of(app, request).await? {
        let owner = account.owner.parse();
        return Ok(owner.map_err(|error| Fault::Inconsistent(format!("an owner that cannot sell: {error}")))?);
    }
    let header = request.headers().get("x-service-proof")?.ok_or(ListingError::NoProof)?;
    let proof = Proof::recent(&header, app.now_ms()).map_err(ListingError::from)?;
    let digest = match state {
        SaleState::OffSale => proof.take_off_digest(id.as_str()),
        SaleState::ForSale => proof.relist_digest(id.as_str()),
    };
    proof.check(&WebCrypto, &digest, app.now_ms()).await.map_err(ListingError::from)?;
    Ok(proof.address)
}
