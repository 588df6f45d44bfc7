//! `GET /listings`, `POST /listings`, `GET /listings/{id}`

use std::rc::Rc;

use cardano::Address;
use edge::serve::{Request, Response};
use edge::{
    answer::{ErrorAnswer, Fault},
    ed25519::WebCrypto,
    http::{BodyError, hold_request},
    semaphore::Permit,
};
use market::{
    ListingId,
    catalogue::{self, Filter, InvalidParameter, Page, QuotaExceeded, Source, Stored},
    listing::{self, InvalidField, NewListing},
    proof::{Proof, ProofError},
};
use url::form_urlencoded;

use crate::{
    app::App,
    error::{ApiError, Refused},
    limits::{Counted, Weight, client},
    read_cache::{self, VersionedDatabase},
    respond,
    session::{MaybeSession, Session},
};

/// Why there is no listing, or no new one.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// No listing has this id, or the operator hid it.
    #[error("no such listing")]
    Unknown,
    /// A query parameter.
    #[error(transparent)]
    Query(#[from] InvalidParameter),
    /// A field of the offer.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// Neither a session nor a proof.
    #[error("sign in, or sign the offer with the seller's wallet (header X-Service-Proof)")]
    NoProof,
    /// A proof that proves nothing.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Another address sells it.
    #[error("only its seller may take this listing off sale or put it back")]
    NotYours,
    /// A signature that was used with other words around it.
    #[error("this signature already made another listing: sign the changed offer anew")]
    OfferChanged,
    /// The seller's quota, or the day's.
    #[error(transparent)]
    QuotaExceeded(QuotaExceeded),
}

impl Refused for ListingError {
    fn answer(&self) -> ErrorAnswer {
        let text = self.to_string();
        match self {
            Self::Unknown => ErrorAnswer::not_found(text),
            Self::QuotaExceeded(QuotaExceeded::Today { wait_s, .. }) => ErrorAnswer::unavailable_for(*wait_s, text),
            Self::Query(_) | Self::Field(_) | Self::QuotaExceeded(_) => ErrorAnswer::bad_request(text),
            Self::NotYours => ErrorAnswer::forbidden(text),
            Self::NoProof | Self::Proof(_) | Self::OfferChanged => ErrorAnswer::unauthorized(text),
        }
    }
}

/// The catalogue, or the page of it that the query names.
pub async fn list(app: &App, request: &Request) -> Result<Response, ApiError> {
    let query = request.query().unwrap_or_default();
    let filter = Filter::from_query(form_urlencoded::parse(query.as_bytes())).map_err(ListingError::from)?;
    let page = match filter {
        // Whatever the query says besides.
        None => read_cache::newest(app, request).await?,
        Some(filter) => {
            let read = async |database: Rc<VersionedDatabase>| catalogue::page(&*database, &filter).await.map(Some);
            let page = read_cache::answer(
                app,
                request,
                Some(Weight::of_listings(filter.page_size())),
                &format!("/listings?{query}"),
                read,
            )
            .await?;
            page.ok_or_else(|| Fault::Inconsistent("a page without listings".into()))?
        }
    };
    let etag = format!("W/\"catalogue-{}\"", page.version);
    if let Some(response) = respond::not_modified(request, &etag)? {
        return Ok(response);
    }
    let response = respond::tagged(Response::kept_json(&page.json), &etag);
    Ok(respond::linked(response, request, page.next.as_deref())?)
}

/// One listing.
pub async fn show(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    let id: ListingId = id.parse().map_err(|_| ListingError::Unknown)?;
    app.line().note("listing", id.as_str());
    let read = async |database: Rc<VersionedDatabase>| {
        let json = catalogue::one(&*database, &id).await?;
        Ok(json.map(|json| Page { json, next: None }))
    };
    let page = read_cache::answer(app, request, None, id.as_str(), read).await?;
    Ok(Response::kept_json(&page.ok_or(ListingError::Unknown)?.json))
}

/// Bytes of a new listing's body: its content, in which JSON may spell a byte with six, and all the rest.
const MAX_BODY: usize = 6 * listing::MAX_CONTENT_BYTES + (64 << 10);

/// Who offers.
enum Seller {
    /// The owner of the session's account.
    Owner(Address),
    /// The signer: a recent proof, of which the signature is checked against what it is for.
    Signer(Proof),
}

impl Seller {
    /// Who offers, known before anything of the offer is read.
    async fn of(app: &App, request: &Request) -> Result<Self, ApiError> {
        if let MaybeSession(Some(Session { account, .. })) = MaybeSession::of(app, request).await? {
            let owner = account.owner.parse();
            let owner = owner.map_err(|error| Fault::Inconsistent(format!("an owner that cannot sell: {error}")))?;
            return Ok(Self::Owner(owner));
        }
        let header = request.headers().get("x-service-proof")?.ok_or(ListingError::NoProof)?;
        Ok(Self::Signer(Proof::recent(&header, app.now_ms()).map_err(ListingError::from)?))
    }

    const fn owner(&self) -> Option<Address> {
        match self {
            Self::Owner(owner) => Some(*owner),
            Self::Signer(_) => None,
        }
    }

    /// That the signer signed this offer: the digest of what was signed. `None` where a session makes it.
    async fn check(&self, offer: &NewListing, now_ms: u64) -> Result<Option<String>, ProofError> {
        let Self::Signer(proof) = self else { return Ok(None) };
        if proof.address != offer.seller {
            return Err(ProofError::OtherAddress(offer.seller));
        }
        let digest = proof.listing_digest(&offer.content_hash(), &offer.signed_price);
        proof.check(&WebCrypto, &digest, now_ms).await?;
        Ok(Some(digest.to_string()))
    }
}

/// A new listing: the session's owner sells, or the address that signed the offer.
pub async fn create(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Offer, &request).await?;
    app.ample_room().await?;
    let seller = Seller::of(app, &request).await?;
    let (offer, _held) = read(&mut request, seller.owner()).await?;
    let proof = seller.check(&offer, app.now_ms()).await.map_err(ListingError::from)?;
    let id = ListingId::new(app.now_ms(), edge::random()?);
    let (database, contents, quota) = (app.database(), app.contents(&request)?, app.settings()?.quota);
    let source = Source { proof: proof.as_deref(), network: &client(&request)? };
    match catalogue::store(&database, &contents, &id, &offer, source, quota, app.now_ms()).await? {
        Stored::Listing { id, json } => {
            Ok(Response::json(json).with_status(201).with_header("location", format!("/listings/{id}")))
        }
        Stored::OfferChanged => Err(ListingError::OfferChanged.into()),
        Stored::QuotaExceeded(room) => Err(ListingError::QuotaExceeded(room).into()),
    }
}

/// The offer in the body, of which nothing else is kept, and what its client is counted for until that is stored.
async fn read(request: &mut Request, seller: Option<Address>) -> Result<(NewListing, Option<Permit>), ApiError> {
    let (body, held) = hold_request(request, MAX_BODY).await.map_err(|error| match error {
        BodyError::TooLarge(_) => ApiError::from(ListingError::from(listing::content_too_long())),
        error => error.into(),
    })?;
    Ok((NewListing::read(&body, seller).map_err(ListingError::from)?, held))
}
