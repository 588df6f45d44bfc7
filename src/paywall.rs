//! The paywall's terms: what a listing costs, as x402 says it.

use std::{cell::RefCell, collections::HashMap};

use cardano::slots::Millis;
use market::{
    DeliveryMode, ListingId,
    catalogue::{self, Terms},
    database::Database,
};
use url::Url;
use x402_cardano::{
    exact::default,
    settlement::Sleep,
    wire::{Amount, ConfirmationPolicy, PaymentRequired, PaymentRequirements, ResourceInfo, Version2},
};

use crate::error::ApiError;

/// How long a payment may take, in seconds: the transaction's time to live is at most this far away.
pub const MAX_TIMEOUT_SECONDS: u32 = 300;

/// Terms that an isolate keeps in its memory. Listings never change, so what is kept is never stale.
const MAX_KEPT: usize = 2_000;

/// Waits in ms before each look for the transaction in a block: about 45 s together, two blocks of preprod.
pub const SCHEDULE: [Millis; 10] = [500, 1_000, 1_500, 2_500, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000];

/// Waiting by the runtime's timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer;

impl Sleep for Timer {
    async fn sleep(&self, ms: Millis) {
        edge::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

thread_local! {
    static TERMS: RefCell<HashMap<String, Terms>> = RefCell::new(HashMap::new());
}

/// A listing's terms: from this isolate's memory, or in one batch.
pub async fn terms(database: &impl Database, id: &ListingId) -> Result<Option<Terms>, ApiError> {
    if let Some(terms) = TERMS.with_borrow(|kept| kept.get(id.as_str()).cloned()) {
        return Ok(Some(terms));
    }
    let terms: Option<Terms> = database.run(catalogue::terms(id)).await?.first_json()?;
    if let Some(terms) = &terms {
        TERMS.with_borrow_mut(|kept| {
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(id.as_str().to_owned(), terms.clone());
        });
    }
    Ok(terms)
}

/// The requirements of an instant payment; `None` where the listing does not offer it.
pub fn instant(terms: &Terms) -> Option<PaymentRequirements> {
    let offered = terms.modes.contains(&DeliveryMode::Instant);
    let amount = Amount::new(terms.price_lovelace.get())?;
    offered.then(|| {
        default::requirements(&terms.seller_address, amount, MAX_TIMEOUT_SECONDS, ConfirmationPolicy::IN_BLOCK)
    })
}

/// The whole 402: every way to pay, and why payment is asked for.
pub fn payment_required(terms: &Terms, url: &Url, error: &str) -> PaymentRequired {
    let mut resource = url.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    PaymentRequired {
        x402_version: Version2,
        error: Some(error.to_owned()),
        resource: ResourceInfo {
            url: resource.to_string(),
            description: Some(terms.title.clone()),
            mime_type: Some("text/plain".to_owned()),
        },
        accepts: instant(terms).into_iter().collect(),
        extensions: None,
    }
}
