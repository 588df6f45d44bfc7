//! `DELETE /listings/{id}`, `POST /listings/{id}/relist`: take a listing off sale, and offer it again.

use api_types::{Error, ErrorCode};
use edge::{answer::ErrorAnswer, serve::Response};
use market::{
    ListingId,
    catalogue::{
        self,
        take_off::{self, NotChanged, SaleState},
    },
    proof::{Proof, ProofError},
};

use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    proof::Seller,
    route::{Limit, Route, route},
    routes::listings,
};

pub const ROUTES: &[Route] = &[
    route! {
        DELETE "/listings/{id}", Limit::Client(Counted::OFFER) => take_off(ListingId, Seller);
        docs |of| of
            .names("takeListingOff", "Catalogue", "Take a listing off sale")
            .more("For the listing's seller. Buyers keep access to the content. Needs a session, or a proof for which the wallet signs sha256 of `service:take-off:v1` LF listingId LF address LF timestamp.")
            .empty(204, "The listing is off sale.")
            .fails(&[403])
    },
    route! {
        POST "/listings/{id}/relist", Limit::Client(Counted::OFFER) => relist(ListingId, Seller);
        docs |of| of
            .names("relistListing", "Catalogue", "Offer a listing again that its seller took off sale")
            .more("Needs a session, or a proof for which the wallet signs sha256 of `service:relist:v1` LF listingId LF address LF timestamp.")
            .answers::<api_types::Listing>(200, "The listing.")
            .fails(&[403])
    },
];

async fn take_off(app: &App, id: ListingId, seller: Seller) -> Result<Response, ApiError> {
    change(app, &id, seller, SaleState::OffSale).await?;
    Ok(Response::empty(204))
}

async fn relist(app: &App, id: ListingId, seller: Seller) -> Result<Response, ApiError> {
    change(app, &id, seller, SaleState::ForSale).await?;
    let json = catalogue::one(&app.database(), &id).await?;
    Ok(Response::json(json.ok_or_else(listings::unknown)?))
}

/// Takes a listing off sale, or offers it again, on behalf of its seller. A proof must be signed for this listing and
/// purpose.
async fn change(app: &App, id: &ListingId, seller: Seller, state: SaleState) -> Result<(), ApiError> {
    app.line.note("listing", id.as_str());
    let digest = |proof: &Proof| match state {
        SaleState::OffSale => proof.take_off_digest(id.as_str()),
        SaleState::ForSale => proof.relist_digest(id.as_str()),
    };
    let (seller, signed_at) = seller.verified(digest, app.now_ms).await?;
    Ok(take_off::change(&app.database(), id, &seller, state, signed_at, app.now_ms).await?.map_err(
        |why| match why {
            NotChanged::Unknown => listings::unknown(),
            NotChanged::ProofUsed => ErrorAnswer::unauthorized(ProofError::Used),
            NotChanged::NotYours => {
                let text = "only its seller may take this listing off sale or put it back";
                ErrorAnswer::forbidden(Error::new(ErrorCode::NotYours, text))
            }
        },
    )?)
}
