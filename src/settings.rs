//! Settings of the API, read once per isolate.

use std::{cell::RefCell, rc::Rc};

use edge::{
    bearer::SharedToken,
    keys::KeyStore,
    settings::{self, Cached, Lookup, SettingError},
};
use market::{catalogue::Quota, chain_state::ClockLead};
use pages::guide::Contact;
use worker::Env;

use crate::methods::Methods;

/// The API's settings.
pub struct Settings {
    /// Base URL of the chain's provider.
    pub blockfrost_url: String,
    /// Project id at the chain's provider; `None` for a provider that needs none.
    pub blockfrost_project: Option<String>,
    /// Daily quota of calls to the chain's provider.
    pub provider_calls: u64,
    /// The service's origin; `None` to use the origin of requests over loopback.
    pub base_url: Option<String>,
    /// Address of a block explorer, to which a transaction's id is appended.
    pub explorer_url: String,
    /// Address at which people reach the operator; `None` if the pages name none.
    pub contact: Option<Contact>,
    /// Whether responses report the request's cost, for development.
    pub shows_usage: bool,
    /// Token for reading the operator's status; if `None`, nobody can read it.
    pub operator: Option<SharedToken>,
    /// Storage quotas of sellers.
    pub quota: Quota,
    /// Maximum size of the database in bytes.
    pub database_bytes: u64,
    /// Callers that may use the routes of the x402 facilitator.
    pub facilitator: FacilitatorAccess,
    /// How far the newest block's time may be ahead of the clock.
    pub lead: ClockLead,
}

thread_local! {
    static SETTINGS: Cached<Settings> = const { RefCell::new(None) };
    static KEYS: Cached<KeyStore> = const { RefCell::new(None) };
    static METHODS: Cached<Methods> = const { RefCell::new(None) };
}

/// The default block explorer.
const EXPLORER_URL: &str = "https://preprod.cardanoscan.io/transaction/";
/// Daily calls in Blockfrost's free plan (<https://blockfrost.io/#pricing>).
const FREE_CALLS: u64 = 50_000;
/// Minimum length of the operator's token in characters.
const MIN_TOKEN: usize = 24;
/// Maximum storage quota that can be configured. It is above any seller's needs, and D1, which passes integers as
/// doubles, represents it exactly.
const MAX_QUOTA: u64 = 1 << 40;

/// Callers that may use `POST /verify` and `POST /settle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacilitatorAccess {
    /// Nobody: the paths do not exist.
    Off,
    /// Everybody.
    Open,
    /// Servers with a key of the operator.
    Keys,
}

impl FacilitatorAccess {
    fn read(lookup: &Lookup<'_>) -> Result<Self, SettingError> {
        const NAME: &str = "FACILITATOR";
        match lookup(NAME).as_deref().map(str::trim) {
            None | Some("off") => Ok(Self::Off),
            Some("open") => Ok(Self::Open),
            Some("keys") => Ok(Self::Keys),
            Some(_) => Err(SettingError { name: NAME.into(), problem: "must be off, open or keys" }),
        }
    }
}

impl Settings {
    fn read(lookup: &Lookup<'_>) -> Result<Self, SettingError> {
        const OPERATOR: &str = "OPERATOR_TOKEN";
        const CONTACT: &str = "OPERATOR_CONTACT";
        let no_address = SettingError { name: CONTACT.into(), problem: "must be a mail address or an https address" };
        let short = SettingError { name: OPERATOR.into(), problem: "must have at least 24 characters" };
        let default = Quota::default();
        let quota = |name, default| {
            settings::whole_number(lookup, name, default, 1..=MAX_QUOTA, "must be a whole number from 1")
        };
        Ok(Self {
            blockfrost_url: settings::required(lookup, "BLOCKFROST_URL")?,
            blockfrost_project: lookup("BLOCKFROST_PROJECT_ID"),
            provider_calls: settings::whole_number(
                lookup,
                "PROVIDER_CALLS_PER_DAY",
                FREE_CALLS,
                100..=MAX_QUOTA,
                "must be a whole number from 100",
            )?,
            base_url: lookup("BASE_URL"),
            explorer_url: lookup("EXPLORER_URL").unwrap_or_else(|| EXPLORER_URL.to_owned()),
            contact: lookup(CONTACT).map(|text| Contact::parse(&text).ok_or(no_address)).transpose()?,
            shows_usage: lookup("SHOW_USAGE").is_some(),
            operator: lookup(OPERATOR).map(|token| SharedToken::new(&token, MIN_TOKEN).ok_or(short)).transpose()?,
            quota: Quota {
                listings: quota("MAX_LISTINGS_PER_SELLER", default.listings)?,
                bytes: quota("MAX_BYTES_PER_SELLER", default.bytes)?,
                daily_bytes: quota("MAX_BYTES_PER_DAY", default.daily_bytes)?,
            },
            database_bytes: settings::database_bytes(lookup)?,
            facilitator: FacilitatorAccess::read(lookup)?,
            lead: edge::settings::lead(lookup)?,
        })
    }

    /// Returns the settings of this isolate.
    pub fn of(env: &Env) -> Result<Rc<Self>, SettingError> {
        settings::once(&SETTINGS, || Self::read(&settings::of(env)))
    }
}

/// Returns the keys of this isolate.
pub fn keys(env: &Env) -> Result<Rc<KeyStore>, SettingError> {
    settings::once(&KEYS, || Ok(KeyStore::read(&settings::of(env))))
}

/// Returns the payment methods of this isolate.
pub fn methods(env: &Env) -> Result<Rc<Methods>, SettingError> {
    settings::once(&METHODS, || Methods::configured(&settings::of(env), &*keys(env)?))
}
