//! `GET /purchases`, `GET /purchases/{id}`, `POST /purchases/{id}/verification`

use api_types::Verdict;
use cardano::{Address, TxHash, address::AddressError};
use edge::serve::{Request, Response};
use edge::{answer::ErrorAnswer, ed25519::WebCrypto, http::read_request};
use market::{
    payment::{self, PaymentRecord},
    proof::{Proof, ProofError},
    purchase,
};
use sql::Database;

use crate::{
    app::App,
    error::{ApiError, Refused},
    limits::{Counted, Weight},
    session::{MaybeSession, Session},
};

/// Buyers that one question may name: as many addresses as wallets show.
const MAX_BUYERS: usize = 100;
/// Bytes of a verdict's body.
const MAX_BODY: usize = 4 << 10;

/// Why there is no purchase, or no verdict on it.
#[derive(Debug, thiserror::Error)]
pub enum PurchaseError {
    /// No purchase has this id.
    #[error("no such purchase")]
    Unknown,
    /// Whose sales?
    #[error("seller: is required (a preprod address)")]
    NoSeller,
    /// Not a preprod key address.
    #[error("seller: {0}")]
    Seller(AddressError),
    /// Not a preprod key address.
    #[error("buyer: {0}")]
    Buyer(AddressError),
    /// More than anyone has.
    #[error("buyer: at most {MAX_BUYERS}")]
    Buyers,
    /// Not a verdict.
    #[error("verification: must be \"ok\", \"mismatch\" or \"no_result_yet\"")]
    Verdict,
    /// A proof that proves nothing.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Signed by another address.
    #[error("only the address that paid may judge the purchase")]
    NotThePayer,
    /// Neither a proof nor a session.
    #[error(
        "sign the verdict with the payer's wallet (X-Service-Proof), or sign in to the account whose Surety balance paid"
    )]
    NoProof,
    /// Another account's.
    #[error("only the account whose Surety balance paid may judge the purchase")]
    NotYours,
}

impl Refused for PurchaseError {
    fn answer(&self) -> ErrorAnswer {
        let text = self.to_string();
        match self {
            Self::Unknown => ErrorAnswer::not_found(text),
            Self::NoSeller | Self::Seller(_) | Self::Buyer(_) | Self::Buyers | Self::Verdict => {
                ErrorAnswer::bad_request(text)
            }
            Self::Proof(_) | Self::NotThePayer | Self::NoProof | Self::NotYours => ErrorAnswer::forbidden(text),
        }
    }
}

/// What a seller sold, to all or to the buyers that are named.
pub async fn list(app: &App, request: &Request) -> Result<Response, ApiError> {
    let url = request.url()?;
    let named = |wanted: &'static str| {
        url.query_pairs().filter_map(move |(name, value)| (name == wanted).then(|| value.parse::<Address>()))
    };
    let seller = named("seller").next().ok_or(PurchaseError::NoSeller)?.map_err(PurchaseError::Seller)?;
    let buyers: Result<Vec<_>, _> = named("buyer").map(|buyer| buyer.map(|address| *address.payment_key())).collect();
    let buyers = buyers.map_err(PurchaseError::Buyer)?;
    if buyers.len() > MAX_BUYERS {
        return Err(PurchaseError::Buyers.into());
    }
    let _permit = app.limit_search(Weight::Long, request).await?;
    Ok(Response::json(purchase::of_seller(&app.database(), &seller, &buyers).await?))
}

/// One purchase with its timeline.
pub async fn show(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    let id: TxHash = id.parse().map_err(|_| PurchaseError::Unknown)?;
    app.limit_client(Counted::Read, request).await?;
    let json = purchase::one(&app.database(), &id).await?.ok_or(PurchaseError::Unknown)?;
    Ok(Response::json(json))
}

/// A buyer's verdict: signed by the payer's wallet; or in a session, of the account whose service wallet paid.
pub async fn verify(app: &App, id: &str, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Verdict, &request).await?;
    let id: TxHash = id.parse().map_err(|_| PurchaseError::Unknown)?;
    let body = read_request(&mut request, MAX_BODY).await?;
    let verdict: Verdict = serde_json::from_slice(&body).map_err(|_| PurchaseError::Verdict)?;
    let database = app.database();
    let bought: Option<PaymentRecord> = database.run(payment::by_tx(&id)).await?.first_json()?;
    let bought = bought.filter(PaymentRecord::is_purchase).ok_or(PurchaseError::Unknown)?;
    match request.headers().get("x-service-proof")? {
        Some(proof) => signed_by_payer(app, &proof, &bought).await?,
        None => paid_by_account(app, &request, &bought).await?,
    }
    let json = purchase::verify(&database, &id, verdict.verification).await?.ok_or(PurchaseError::Unknown)?;
    Ok(Response::json(json))
}

async fn signed_by_payer(app: &App, header: &str, bought: &PaymentRecord) -> Result<(), PurchaseError> {
    let proof = Proof::recent(header, app.now_ms())?;
    if proof.address.payment_key() != bought.payer.payment_key() {
        return Err(PurchaseError::NotThePayer);
    }
    let digest = proof.unlock_digest(bought.listing_id.as_str());
    Ok(proof.check(&WebCrypto, &digest, app.now_ms()).await?)
}

/// Only the service holds a service wallet's key: its account judges what it bought.
async fn paid_by_account(app: &App, request: &Request, bought: &PaymentRecord) -> Result<(), ApiError> {
    let MaybeSession(session) = MaybeSession::of(app, request).await?;
    let Session { account, .. } = session.ok_or(PurchaseError::NoProof)?;
    if account.wallet_address == bought.payer { Ok(()) } else { Err(PurchaseError::NotYours.into()) }
}
