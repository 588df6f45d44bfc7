//! Settings of the arbiter. All are checked before any request is served.

use std::{borrow::Cow, cell::RefCell, rc::Rc};

use cardano::keys::SigningKey;
use edge::{
    bearer::SharedToken,
    chain::ClockLead,
    settings::{self, Cached, Lookup, SettingError},
};
use escrow::Deployment;
use worker::Env;

/// Minimum length of the arbiter's bearer token in characters.
const MIN_TOKEN: usize = 24;

/// The arbiter's configuration.
pub struct ArbiterSettings {
    pub token: SharedToken,
    pub key: SigningKey,
    pub deployment: Deployment,
    pub blockfrost_url: String,
    pub blockfrost_project: Option<String>,
    /// Maximum time by which the newest block may be ahead of the clock.
    pub lead: ClockLead,
}

thread_local! {
    static SETTINGS: Cached<ArbiterSettings> = const { RefCell::new(None) };
}

const fn unusable(name: &'static str, problem: &'static str) -> SettingError {
    SettingError { name: Cow::Borrowed(name), problem }
}

impl ArbiterSettings {
    /// Returns the settings. They are read and checked once per isolate.
    pub fn of(env: &Env) -> Result<Rc<Self>, SettingError> {
        settings::once(&SETTINGS, || Self::read(&settings::of(env)))
    }

    fn read(lookup: &Lookup<'_>) -> Result<Self, SettingError> {
        const TOKEN: &str = "ARBITER_TOKEN";
        let token = settings::required(lookup, TOKEN)?;
        let token = SharedToken::new(&token, MIN_TOKEN).ok_or(unusable(TOKEN, "must have at least 24 characters"))?;
        let key = settings::signing_key(lookup, "ARBITER_SECRET")?;
        let deployment = settings::deployment(lookup)?;
        let deployment = deployment.ok_or(unusable(settings::ESCROW_DEPLOYMENT, settings::NOT_SET))?;
        let votes = deployment.parameters.weight_of(&key.key_hash());
        if usize::try_from(deployment.parameters.required_admins).map_or(true, |required| required > votes) {
            return Err(unusable("ARBITER_SECRET", "is not the key that settles disputes of ESCROW_DEPLOYMENT alone"));
        }
        let blockfrost_url = settings::required(lookup, "BLOCKFROST_URL")?;
        let (blockfrost_project, lead) = (lookup("BLOCKFROST_PROJECT_ID"), settings::lead(lookup)?);
        Ok(Self { token, key, deployment, blockfrost_url, blockfrost_project, lead })
    }
}
