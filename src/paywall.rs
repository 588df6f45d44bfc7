//! The paywall's terms: what a listing costs, as x402 says it.

use sql::{Database, exactly};
use std::{cell::RefCell, collections::HashMap};

use cardano::{Address, keys::SigningKey, slots::Millis};
use edge::{
    keys::KeyStore,
    settings::{self, Lookup, SettingError},
};
use escrow::Deployment;
use market::{
    DeliveryMode, ListingId,
    catalogue::{self, Terms},
    chain_state,
};
use url::Url;
use x402_cardano::{
    escrow::{Issuer, Quote, TransferMethod},
    exact::default,
    wire::{Amount, ConfirmationPolicy, PaymentRequired, PaymentRequirements, ResourceInfo, Version2},
};

use crate::{app::App, error::ApiError};

/// How long a payment may take, in seconds: the transaction's time to live is at most this far away.
pub const MAX_TIMEOUT_SECONDS: u32 = 300;

/// Terms that an isolate keeps in its memory. Listings never change, so what is kept is never stale.
const MAX_KEPT: usize = 2_000;

/// Waits in ms before each look for the transaction in a block: about 45 s together, two blocks of preprod.
pub const SCHEDULE: [Millis; 10] = [500, 1_000, 1_500, 2_500, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000];

thread_local! {
    static TERMS: RefCell<HashMap<String, Terms>> = RefCell::new(HashMap::new());
}

/// The seller of record of protected sales, and the escrow that they lock into.
pub struct Protection {
    deployment: Deployment,
    seller: SigningKey,
    seller_address: Address,
    method: TransferMethod,
}

impl Protection {
    /// What the operator configured; `None` where no escrow is deployed.
    ///
    /// # Errors
    /// A setting that is there and unusable.
    pub fn configured(lookup: &Lookup<'_>, keys: &KeyStore) -> Result<Option<Self>, SettingError> {
        let Some(deployment) = settings::deployment(lookup)? else { return Ok(None) };
        let method = settings::transfer_method(lookup, &deployment)?;
        let seller = keys.required_seller()?.clone();
        let seller_address = seller.enterprise_address();
        Ok(Some(Self { deployment, seller, seller_address, method }))
    }

    /// Who signs quotes.
    pub const fn issuer(&self) -> Issuer<'_> {
        Issuer {
            seller: &self.seller,
            seller_address: self.seller_address,
            deployment: &self.deployment,
            method: self.method,
        }
    }

    /// The method's name on the wire.
    pub const fn method(&self) -> &'static str {
        self.method.name()
    }

    /// A quote for a protected sale, where the listing offers it. One signature; nothing is stored.
    pub fn quote(&self, terms: &Terms, clock: Millis, nonce: [u8; 32]) -> Option<Quote> {
        let offered = terms.modes.contains(&DeliveryMode::Protected);
        offered.then(|| self.issuer().issue(&terms.sale(), clock, nonce).ok()).flatten()
    }
}

/// A listing's terms, and the clock of escrow matters.
#[derive(Clone, Debug)]
pub struct Priced {
    /// The terms.
    pub terms: Terms,
    /// The later of the wall clock and the newest block's time, POSIX ms.
    pub clock: Millis,
}

/// A listing's terms: from this isolate's memory, or in one batch. The clock is read, in the same batch, only where the
/// listing offers protection.
pub async fn priced(app: &App, database: &impl Database, id: &ListingId) -> Result<Option<Priced>, ApiError> {
    let (now, lead) = (app.now_ms(), app.settings()?.lead);
    if let Some(terms) = TERMS.with_borrow(|kept| kept.get(id.as_str()).cloned()) {
        let clock = if terms.modes.contains(&DeliveryMode::Protected) {
            chain_state::clock(&database.run(chain_state::read_time()).await?, now, lead)?
        } else {
            now
        };
        return Ok(Some(Priced { terms, clock }));
    }
    let [terms, time] = exactly(database.batch(vec![catalogue::terms(id), chain_state::read_time()]).await?)?;
    let Some(terms) = terms.first_json::<Terms>()? else {
        return Ok(None);
    };
    TERMS.with_borrow_mut(|kept| {
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(id.as_str().to_owned(), terms.clone());
    });
    Ok(Some(Priced { clock: chain_state::clock(&time, now, lead)?, terms }))
}

/// The requirements of an instant payment; `None` where the listing does not offer it.
pub fn instant(terms: &Terms) -> Option<PaymentRequirements> {
    let offered = terms.modes.contains(&DeliveryMode::Instant);
    let amount = Amount::new(terms.price_lovelace.get())?;
    let policy = ConfirmationPolicy::IN_BLOCK;
    offered.then(|| default::requirements(&terms.seller_address, amount, MAX_TIMEOUT_SECONDS, policy))
}

/// The whole 402: every way to pay, and why payment is asked for.
pub fn payment_required(terms: &Terms, accepts: Vec<PaymentRequirements>, url: &Url, error: &str) -> PaymentRequired {
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
        accepts,
        extensions: None,
    }
}
