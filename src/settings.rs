//! What the operator configures of the API: read and parsed once in an isolate's life.

use std::{cell::RefCell, rc::Rc};

use edge::{
    bearer::SharedToken,
    keys::KeyStore,
    settings::{self, Kept, Lookup, SettingError},
};
use market::{catalogue::Quota, chain_state::Lead};
use worker::Env;

use crate::methods::Methods;

/// The API's settings.
pub struct Settings {
    /// The chain provider's base URL.
    pub blockfrost_url: String,
    /// Its project id.
    pub blockfrost_project: Option<String>,
    /// Calls that the provider's plan allows on a day.
    pub provider_calls: u64,
    /// Our own address, an origin; where it is not set, that of a request that came over loopback.
    pub base_url: Option<String>,
    /// Where pages link transactions: an address to which the id is appended.
    pub explorer_url: String,
    /// Whether answers tell what they cost: a development setting.
    pub shows_usage: bool,
    /// What an operator shows to read the status; without it no one can.
    pub operator: Option<SharedToken>,
    /// What sellers may take up.
    pub quota: Quota,
    /// What the database can hold, in bytes.
    pub database_bytes: u64,
    /// How far the chain's clock may be ahead of the worker's.
    pub lead: Lead,
}

thread_local! {
    static SETTINGS: Kept<Settings> = const { RefCell::new(None) };
    static KEYS: Kept<KeyStore> = const { RefCell::new(None) };
    static METHODS: Kept<Methods> = const { RefCell::new(None) };
}

/// Where transactions of preprod are shown.
const EXPLORER_URL: &str = "https://preprod.cardanoscan.io/transaction/";
/// Calls of a day in Blockfrost's free plan (<https://blockfrost.io/#pricing>).
const FREE_CALLS: u64 = 50_000;
/// Fewest characters of the operator's token.
const MIN_TOKEN: usize = 24;
/// More than any seller needs, and less than a number that SQL would round.
const MAX_QUOTA: u64 = 1 << 40;

impl Settings {
    fn read(lookup: &Lookup<'_>) -> Result<Self, SettingError> {
        const OPERATOR: &str = "OPERATOR_TOKEN";
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
            shows_usage: lookup("SHOW_USAGE").is_some(),
            operator: lookup(OPERATOR).map(|token| SharedToken::new(&token, MIN_TOKEN).ok_or(short)).transpose()?,
            quota: Quota {
                listings: quota("MAX_LISTINGS_PER_SELLER", default.listings)?,
                bytes: quota("MAX_BYTES_PER_SELLER", default.bytes)?,
                daily_bytes: quota("MAX_BYTES_PER_DAY", default.daily_bytes)?,
            },
            database_bytes: settings::database_bytes(lookup)?,
            lead: edge::settings::lead(lookup)?,
        })
    }

    /// This isolate's settings.
    pub fn of(env: &Env) -> Result<Rc<Self>, SettingError> {
        settings::once(&SETTINGS, || Self::read(&settings::of(env)))
    }
}

/// This isolate's keys.
pub fn keys(env: &Env) -> Result<Rc<KeyStore>, SettingError> {
    settings::once(&KEYS, || Ok(KeyStore::read(&settings::of(env))))
}

/// This isolate's ways to pay.
pub fn methods(env: &Env) -> Result<Rc<Methods>, SettingError> {
    settings::once(&METHODS, || Methods::configured(&settings::of(env), &*keys(env)?))
}
