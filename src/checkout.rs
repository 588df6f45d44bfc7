//! The one maker of [`Checkout`]: what a request buys, pays and delivers with.

use std::rc::Rc;

use cardano::slots::Millis;
use edge::{
    chain::Blockfrost, contents::ContentStore, d1::D1, ed25519::WebCrypto, keys::KeyStore, serve::Request, timer::Timer,
};
use market::{
    catalogue::ListingTerms,
    checkout::{Checkout, PaymentOption},
    results::Seller,
};

use crate::{app::App, error::ApiError, methods::Methods, paywall::Priced};

/// Outside calls that one look for a block takes at most.
const CALLS_PER_LOOK: u32 = 3;

/// The ports of one request's checkout.
pub struct Ports {
    database: D1,
    chain: Blockfrost,
    contents: ContentStore,
    timer: Timer,
    methods: Rc<Methods>,
    keys: Rc<KeyStore>,
    note: Box<dyn Fn(&str)>,
    now: Millis,
    schedule: &'static [Millis],
}

impl Ports {
    /// The ports that this request's client, or account, may use. `schedule`: waits in ms before each look for a block, of which
    /// as many are made as there are outside calls left.
    pub fn of(app: &App, request: &Request, schedule: &'static [Millis]) -> Result<Self, ApiError> {
        let looks = usize::try_from(app.usage().calls_left() / CALLS_PER_LOOK).unwrap_or(0);
        let line = app.line().clone();
        Ok(Self {
            database: app.database(),
            chain: app.chain(request)?,
            contents: app.contents(request)?,
            timer: app.timer(),
            methods: app.methods()?,
            keys: app.keys()?,
            note: Box::new(move |text| line.note("checkout", text)),
            now: app.now_ms(),
            schedule: schedule.get(..looks.min(schedule.len())).unwrap_or(schedule),
        })
    }

    /// The payment methods by which a listing is sold.
    pub fn options(&self, terms: &ListingTerms) -> Vec<PaymentOption<'_>> {
        self.methods.options_for(terms)
    }

    /// The checkout of a listing; `hung_up` says whether the client has gone.
    pub fn checkout<'a>(
        &'a self,
        options: &'a [PaymentOption<'a>],
        priced: &Priced,
        hung_up: &'a dyn Fn() -> bool,
    ) -> Result<Checkout<'a, D1, Blockfrost, WebCrypto, Timer, ContentStore>, ApiError> {
        let seller = match self.methods.deployment() {
            Some(deployment) => self.keys.seller()?.map(|key| Seller { deployment, key }),
            None => None,
        };
        Ok(Checkout {
            database: &self.database,
            chain: &self.chain,
            signatures: &WebCrypto,
            sleep: &self.timer,
            contents: &self.contents,
            seller,
            options,
            now: self.now,
            clock: priced.clock,
            behind: priced.behind,
            schedule: self.schedule,
            confirmations: self.methods.confirmations,
            hung_up,
            note: &*self.note,
        })
    }
}
