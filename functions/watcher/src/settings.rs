//! Settings of the watcher, read once per isolate.

use std::{cell::RefCell, rc::Rc};

use edge::{
    MAX_OUTSIDE_CALLS,
    keys::KeyStore,
    settings::{self, Cached, Lookup, SettingError},
};
use escrow::Deployment;
use market::chain_state::ClockLead;
use worker::Env;

/// Maximum value of the setting for outgoing calls per run of the watcher: the paid plan's 1,000 subrequests, minus
/// room for D1.
const MOST_CALLS_PER_TICK: u32 = 900;

/// The watcher's settings.
pub struct WatcherSettings {
    pub blockfrost_url: String,
    pub blockfrost_project: Option<String>,
    pub deployment: Option<Deployment>,
    /// Whether the watcher acts as the seller (posts results and collects money). If not, it only acts for buyers.
    pub sells: bool,
    /// Maximum number of outgoing calls per run of the watcher; by default as many as Workers' free plan allows.
    pub calls_per_tick: u32,
    /// Maximum size of the database in bytes.
    pub database_bytes: u64,
    /// Maximum time by which the newest block may be ahead of the clock.
    pub lead: ClockLead,
    pub arbiter_token: Option<String>,
    /// Whether the watcher answers HTTP requests, for development.
    pub answers: bool,
}

thread_local! {
    static SETTINGS: Cached<WatcherSettings> = const { RefCell::new(None) };
    static KEYS: Cached<KeyStore> = const { RefCell::new(None) };
}

impl WatcherSettings {
    /// Returns the settings of this isolate.
    pub fn of(env: &Env) -> Result<Rc<Self>, SettingError> {
        settings::once(&SETTINGS, || Self::read(&settings::of(env)))
    }

    fn read(lookup: &Lookup<'_>) -> Result<Self, SettingError> {
        const CALLS: &str = "CALLS_PER_TICK";
        let unusable = SettingError { name: CALLS.into(), problem: "must be a whole number from 40 to 900" };
        let range = u64::from(MAX_OUTSIDE_CALLS)..=u64::from(MOST_CALLS_PER_TICK);
        let calls = settings::whole_number(lookup, CALLS, MAX_OUTSIDE_CALLS.into(), range, unusable.problem)?;
        Ok(Self {
            blockfrost_url: settings::required(lookup, "BLOCKFROST_URL")?,
            blockfrost_project: lookup("BLOCKFROST_PROJECT_ID"),
            deployment: settings::deployment(lookup)?,
            sells: settings::switch(lookup, "SELLER_AGENT", true)?,
            calls_per_tick: u32::try_from(calls).map_err(|_| unusable)?,
            database_bytes: settings::database_bytes(lookup)?,
            lead: settings::lead(lookup)?,
            arbiter_token: lookup("ARBITER_TOKEN"),
            answers: lookup("DEV").is_some(),
        })
    }
}

/// Returns the keys of this isolate.
pub fn keys(env: &Env) -> Result<Rc<KeyStore>, SettingError> {
    settings::once(&KEYS, || Ok(KeyStore::read(&settings::of(env))))
}
