//! `PATCH /listings/{id}`: edits a listing for its seller.

use api_types::{Error, ErrorCode};
use edge::{answer::ErrorAnswer, serve::Response};
use market::{
    ListingId,
    catalogue::edit::{self, NotEdited},
    listing::changes::Changes,
};

use crate::{
    app::App,
    body::Bytes,
    error::ApiError,
    limits::Counted,
    proof::Seller,
    route::{Limit, Route, route},
    routes::listings,
};

pub const ROUTES: &[Route] = &[route! {
    PATCH "/listings/{id}", Limit::Client(Counted::OFFER) => edit(ListingId, Seller, ChangesBody);
    docs |of| of
        .names("editListing", "Catalogue", "Edit a listing")
        .more("For the listing's seller. Absent fields stay as they are, and the content never changes. An offer at the old price can be paid until it expires. Needs a session, or a proof for which the wallet signs sha256 of `service:edit:v1` LF listingId LF sha256(body) LF address LF timestamp.")
        .answers::<api_types::Listing>(200, "The edited listing.")
        .fails(&[400, 403])
}];

/// Maximum size of the body in bytes. JSON may take six bytes for one byte of a text.
const MAX_BODY: usize = 64 << 10;

/// Body of an edit, as raw bytes, because a proof signs the bytes.
type ChangesBody = Bytes<api_types::ListingChanges, MAX_BODY>;

/// Edits a listing for the owner of the session, or for the signer of a proof over the listing and the body.
async fn edit(app: &App, id: ListingId, seller: Seller, Bytes(body, _): ChangesBody) -> Result<Response, ApiError> {
    app.line.note("listing", id.as_str());
    let changes = Changes::read(&body).map_err(ErrorAnswer::bad_request)?;
    let (seller, _) = seller.verified(|proof| proof.edit_digest(id.as_str(), &body), app.now_ms).await?;
    let edited = edit::edit(&app.database(), &app.contents()?, &id, &seller, &changes, app.now_ms).await?;
    Ok(Response::json(edited.map_err(|why| match why {
        NotEdited::Unknown => listings::unknown(),
        NotEdited::NotYours => {
            ErrorAnswer::forbidden(Error::new(ErrorCode::NotYours, "only its seller may edit this listing"))
        }
        NotEdited::Invalid(error) => ErrorAnswer::bad_request(error),
        NotEdited::TooOften => {
            let seconds = edit::RETRY_SECONDS;
            let text = format_args!("this listing's price was changed too often: try again in {seconds} seconds");
            ErrorAnswer::too_many(seconds, Error::new(ErrorCode::RateLimited, text))
        }
    })?))
}
