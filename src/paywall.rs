//! The paywall's terms: the ways to pay that are configured, and what a listing costs, as x402 says it.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use cardano::slots::Millis;
use edge::settings::{self, SettingError};
use market::{
    DeliveryMode, ListingId,
    catalogue::{self, Terms},
    chain_state,
    checkout::Way,
};
use sql::{Database, exactly};
use url::Url;
use worker::Env;
use x402_cardano::{
    escrow::TransferMethod,
    method::{DefaultMethod, EscrowMethod, MempoolPolicy},
    wire::{ConfirmationPolicy, PaymentRequired, PaymentRequirements, ResourceInfo, payment_identifier},
};

use crate::error::ApiError;

/// Terms that an isolate keeps in its memory. Listings never change, so what is kept is never stale.
const MAX_KEPT: usize = 2_000;

/// Waits in ms before each look for the transaction in a block: about 45 s together, two blocks of preprod.
pub const SCHEDULE: [Millis; 10] = [500, 1_000, 1_500, 2_500, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000];

thread_local! {
    static TERMS: RefCell<HashMap<String, Rc<Terms>>> = RefCell::new(HashMap::new());
    /// Settings do not change in an isolate's life; errors are not kept.
    static METHODS: RefCell<Option<Rc<Methods>>> = const { RefCell::new(None) };
}

/// The ways to pay that the operator configured.
pub struct Methods {
    instant: DefaultMethod,
    protected: Option<EscrowMethod>,
    /// Newer blocks that a payment waits for.
    pub confirmations: u64,
}

impl Methods {
    /// What the operator configured, read once in an isolate's life.
    ///
    /// # Errors
    /// A setting that is there and unusable.
    pub fn configured(env: &Env) -> Result<Rc<Self>, SettingError> {
        if let Some(kept) = METHODS.with_borrow(Clone::clone) {
            return Ok(kept);
        }
        let read = Rc::new(Self::read(env)?);
        METHODS.set(Some(read.clone()));
        Ok(read)
    }

    fn read(env: &Env) -> Result<Self, SettingError> {
        const CONFIRMATIONS: &str = "L1_CONFIRMATIONS";
        let unusable = || SettingError { name: CONFIRMATIONS.into(), problem: "must be a whole number from 0 to 20" };
        let policy = match settings::optional(env, CONFIRMATIONS) {
            None => ConfirmationPolicy::IN_BLOCK,
            Some(text) => text.parse().ok().and_then(ConfirmationPolicy::new).ok_or_else(unusable)?,
        };
        let confirmations = u64::try_from(policy.l1_confirmations()).map_err(|_| unusable())?;
        let instant = DefaultMethod::new(policy).map_err(|MempoolPolicy| unusable())?;
        Ok(Self { instant, protected: Self::protection(env, policy)?, confirmations })
    }

    /// Protected sales, where an escrow is deployed.
    fn protection(env: &Env, policy: ConfirmationPolicy) -> Result<Option<EscrowMethod>, SettingError> {
        const METHOD: &str = "ESCROW_TRANSFER_METHOD";
        let Some(deployment) = settings::deployment(env)? else { return Ok(None) };
        let unusable = |problem| SettingError { name: METHOD.into(), problem };
        let name: TransferMethod = match settings::optional(env, METHOD) {
            None => TransferMethod::default(),
            Some(name) => name.parse().map_err(|_| unusable("must be escrow or masumi"))?,
        };
        name.check_deployment(&deployment).map_err(|_| {
            unusable("must not be masumi unless the published blueprint is deployed: no stock client could pay")
        })?;
        let seller = settings::signing_key(env, "SELLER_SECRET")?;
        EscrowMethod::new(deployment, seller, name, policy).map(Some).map_err(|MempoolPolicy| unusable("is unusable"))
    }

    /// The ways to pay, cheapest first.
    pub fn ways(&self) -> Vec<Way<'_>> {
        let protected = self.protected.as_ref().map(|method| (DeliveryMode::Protected, method as _));
        std::iter::once((DeliveryMode::Instant, &self.instant as _)).chain(protected).collect()
    }
}

/// A listing's terms, and the clock of escrow matters.
#[derive(Clone, Debug)]
pub struct Priced {
    /// The terms.
    pub terms: Rc<Terms>,
    /// The later of the wall clock and the newest block's time, POSIX ms.
    pub clock: Millis,
}

/// A listing's terms: from this isolate's memory, or in one batch. The clock is read, in the same batch, only where the
/// listing offers protection.
pub async fn priced(database: &impl Database, id: &ListingId, now: Millis) -> Result<Option<Priced>, ApiError> {
    if let Some(terms) = TERMS.with_borrow(|kept| kept.get(id.as_str()).cloned()) {
        let clock = if terms.modes.contains(&DeliveryMode::Protected) {
            chain_state::clock(&database.run(chain_state::read_time()).await?, now)?
        } else {
            now
        };
        return Ok(Some(Priced { terms, clock }));
    }
    let [terms, time] = exactly(database.batch(vec![catalogue::terms(id), chain_state::read_time()]).await?)?;
    let Some(terms) = terms.first_json::<Terms>()?.map(Rc::new) else {
        return Ok(None);
    };
    TERMS.with_borrow_mut(|kept| {
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(id.as_str().to_owned(), terms.clone());
    });
    Ok(Some(Priced { clock: chain_state::clock(&time, now)?, terms }))
}

/// The whole 402: every way to pay, and why payment is asked for.
pub fn payment_required(terms: &Terms, accepts: Vec<PaymentRequirements>, url: &Url, code: &str) -> PaymentRequired {
    let mut resource = url.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    let resource = ResourceInfo {
        url: resource.to_string(),
        description: Some(terms.title.clone()),
        mime_type: Some("text/plain".to_owned()),
    };
    PaymentRequired {
        extensions: Some(payment_identifier::offered()),
        ..PaymentRequired::new(resource, accepts, Some(code))
    }
}
