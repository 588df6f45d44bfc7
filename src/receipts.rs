//! Issues signed receipts and statements about purchases, and publishes the key in a DID document.
//!
//! Receipts are optional: if signing fails, the content is delivered without one, and the failure is logged.

use std::{cell::RefCell, rc::Rc};

use api_types::PurchaseStatement;
use cardano::keys::SigningKey;
use edge::{answer::Fault, keys::KeyStore, serve::Response};
use market::{catalogue::ListingTerms, purchase::PurchaseRow};
use x402_cardano::wire::{
    SettlementResponse,
    offer_receipt::{DidWeb, Receipt, jws},
};

#[cfg(test)]
use crate::openapi::operations::Document;
use crate::{
    app::App,
    error::ApiError,
    paywall,
    route::{Limit, Route, route},
};

/// The signer of receipts, cached per isolate.
struct Issuer {
    origin: String,
    key_id: String,
    key: SigningKey,
}

thread_local! {
    static ISSUER: RefCell<Option<Rc<Issuer>>> = const { RefCell::new(None) };
}

/// Returns the name of the key that signs receipts under a version of the master secret. The name must never change,
/// because receipts contain it.
fn key_name(version: u32) -> String {
    format!("receipts-{version}")
}

fn identity(origin: &str) -> Result<DidWeb, ApiError> {
    let unusable = || Fault::Inconsistent(format!("{origin} has no did:web"));
    Ok(DidWeb::of_origin(origin).ok_or_else(unusable)?)
}

impl Issuer {
    fn of(app: &App) -> Result<Rc<Self>, ApiError> {
        let origin = app.origin()?;
        if let Some(kept) = ISSUER.with_borrow(|kept| kept.clone().filter(|kept| kept.origin == origin)) {
            return Ok(kept);
        }
        let keys: Rc<KeyStore> = app.keys()?;
        let version = keys.current_version()?;
        let key_id = identity(&origin)?.key_id(&key_name(version));
        let issuer = Rc::new(Self { key_id, key: keys.receipts(version)?, origin });
        ISSUER.set(Some(issuer.clone()));
        Ok(issuer)
    }
}

/// Adds a receipt to a successful settlement.
pub fn attach(app: &App, terms: &ListingTerms, settlement: &mut SettlementResponse) {
    match Issuer::of(app) {
        Ok(issuer) => {
            let receipt = Receipt {
                network: api_types::NETWORK,
                resource_url: &paywall::resource_url(&issuer.origin, &terms.id),
                payer: settlement.payer.as_deref().unwrap_or_default(),
                issued_at: edge::now_ms() / 1_000,
                transaction: &settlement.transaction,
            };
            settlement.extensions = receipt.signed(&issuer.key_id, &issuer.key);
        }
        Err(error) => app.line.note("noReceipt", &error.to_string()),
    }
}

/// Signs a statement about a purchase: a compact JWS of a [`PurchaseStatement`].
///
/// # Errors
/// Returns an error if the service's address or key is not configured.
pub fn statement(app: &App, row: PurchaseRow) -> Result<String, ApiError> {
    let issuer = Issuer::of(app)?;
    let (listing, purchase) = (row.listing(), row.into());
    let service = issuer.origin.clone();
    let statement = PurchaseStatement { version: 1, service, issued_at: app.now_ms, listing, purchase };
    let unsigned = || Fault::Inconsistent("a statement has no canonical JSON".into());
    Ok(jws(&issuer.key_id, &issuer.key, &statement).ok_or_else(unsigned)?)
}

pub const ROUTES: &[Route] = &[route! {
    GET "/.well-known/did.json", Limit::Free => did_document();
    docs |of| of
        .names("didDocument", "x402", "Get the public keys of receipts (did:web)")
        .answers::<Document>(200, "The DID document.")
}];

/// Serves the DID document with the public keys that verify receipts. It contains former keys too, because old receipts
/// must remain verifiable.
async fn did_document(app: &App) -> Result<Response, ApiError> {
    let did = identity(&app.origin()?)?;
    let keys = app.keys()?.receipt_keys();
    let keys: Vec<_> = keys.into_iter().map(|(version, key)| (key_name(version), key.public_key())).collect();
    Ok(Response::json(did.document(&keys).to_string()).with_header("cache-control", "public, max-age=300"))
}
