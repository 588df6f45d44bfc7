//! What a route works with: the ports, made when they are first needed, and the request's counts.

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

use agents::oauth::{Authority, Secrets};
use cardano::keys::SigningKey;
use edge::serve::Request;
use edge::{
    Usage, answer::Fault, chain::Blockfrost, challenges::KvChallenges, contents::ContentStore, d1::D1, keys::KeyStore,
    log::Line, semaphore::Permit, settings::SettingError, timer::Timer,
};
use market::{
    account::{Account, DEMO_KEY_VERSION, DEMO_OWNER},
    chain_state::Lead,
    headroom::StorageHeadroom,
};
use sql::{Database, statement};
use worker::{Env, Url, WorkerVersionMetadata};

use crate::{
    error::{ApiError, storage_full},
    limits::{self, Counted, Weight},
    methods::Methods,
    settings::{self, Settings},
};

/// Longest that a request asks the chain: purchases take 20 to 60 seconds.
pub const MAX_REQUEST_MS: u64 = 60_000;
/// The most for a tool call, in ms: clients give one up near 60 seconds, and an answer before says what to do next.
pub const MAX_CALL_MS: u64 = 42_000;

/// The setting that says where we are.
const BASE_URL: &str = "BASE_URL";

thread_local! {
    static AUTHORITY: RefCell<Option<Rc<Authority>>> = const { RefCell::new(None) };
}

/// One request's view of the worker's bindings. Clones are the same request's.
#[derive(Clone)]
pub struct App {
    env: Env,
    pub request: Rc<Request>,
    pub usage: Usage,
    /// What the log says of the request.
    pub line: Line,
    /// POSIX ms at which the request came in.
    pub now_ms: u64,
    /// How long the request may take, in ms.
    pub max_ms: u64,
    settings: OnceCell<Rc<Settings>>,
}

/// Whether a request came to this machine's own address, by which no public deployment is reached.
fn is_loopback(url: &Url) -> bool {
    url.scheme() == "http" && matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

impl App {
    pub fn new(env: Env, request: Request) -> Self {
        let (usage, now_ms) = (Usage::default(), edge::now_ms());
        let line = Line::begin("request", now_ms, usage.clone());
        Self { env, request: Rc::new(request), usage, line, now_ms, max_ms: MAX_REQUEST_MS, settings: OnceCell::new() }
    }

    /// This app for a tool call, which has less time.
    pub fn for_tool_call(&self) -> Self {
        Self { max_ms: MAX_CALL_MS, ..self.clone() }
    }

    /// POSIX ms at which the request stops asking the chain, and answers with what it knows.
    const fn until(&self) -> u64 {
        self.now_ms.saturating_add(self.max_ms)
    }

    /// Waiting, within the request's time.
    pub const fn timer(&self) -> Timer {
        Timer::until(self.until())
    }

    /// What the operator configured.
    pub fn settings(&self) -> Result<&Settings, ApiError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = Settings::of(&self.env)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// This program's version, and the deployment's tag where the runtime tells one.
    pub fn version(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let told: Result<WorkerVersionMetadata, _> = self.env.get_binding("VERSION");
        match told.ok().map(|told| told.tag()).filter(|tag| !tag.is_empty()) {
            Some(tag) => format!("{version} ({tag})"),
            None => version.to_owned(),
        }
    }

    /// Whether answers tell what they cost.
    pub fn shows_usage(&self) -> bool {
        self.settings().is_ok_and(|settings| settings.shows_usage)
    }

    /// Whether the chain's clock may be ahead by anything: a setting for a local ledger, which answers show.
    pub fn is_on_local_ledger(&self) -> bool {
        self.settings().is_ok_and(|settings| settings.lead == Lead::LocalLedger)
    }

    pub fn database(&self) -> D1 {
        D1::new(&self.env, "DB", self.usage.clone())
    }

    /// Whether the database has room for free writes, by what it last said. An isolate learns that from its own writes.
    /// Without one it asks again, as an operator may have made room.
    pub async fn room(&self) -> Result<StorageHeadroom, ApiError> {
        let most = self.settings()?.database_bytes;
        if StorageHeadroom::of(edge::d1::size(), most) == StorageHeadroom::Short {
            self.database().run(statement!("SELECT 'how large it is'")).await?;
        }
        Ok(StorageHeadroom::of(edge::d1::size(), most))
    }

    /// Whether there is room, for what is written only where there is.
    pub async fn ample_room(&self) -> Result<(), ApiError> {
        if self.room().await? == StorageHeadroom::Short { Err(storage_full().into()) } else { Ok(()) }
    }

    /// What is sold.
    pub fn contents(&self) -> Result<ContentStore, ApiError> {
        Ok(ContentStore::bound(&self.env, self.database(), self.usage.clone(), limits::client(&self.request)?))
    }

    /// The chain's provider. Calls before anything is paid wait for their client's turn.
    pub fn chain(&self) -> Result<Blockfrost, ApiError> {
        let settings = self.settings()?;
        let project = settings.blockfrost_project.clone();
        let asks = (self.env.clone(), limits::client(&self.request)?, settings.provider_calls);
        Ok(Blockfrost::new(&settings.blockfrost_url, project, self.usage.clone())
            .until(self.until())
            .leading(settings.lead)
            .admitting(move || Box::pin(limits::admit(asks.clone()))))
    }

    /// The ways to pay that are configured.
    pub fn methods(&self) -> Result<Rc<Methods>, ApiError> {
        Ok(settings::methods(&self.env)?)
    }

    /// The platform's keys.
    pub fn keys(&self) -> Result<Rc<KeyStore>, ApiError> {
        Ok(settings::keys(&self.env)?)
    }

    /// Where challenges are kept until they expire.
    pub fn challenges(&self) -> Result<KvChallenges, ApiError> {
        Ok(KvChallenges::bound(&self.env)?)
    }

    /// The ledger whose test wallet pages bring along: on a local ledger, for requests over loopback alone.
    pub fn test_ledger(&self) -> Option<Url> {
        let local = self.is_on_local_ledger() && is_loopback(&self.request.url().ok()?);
        local.then(|| Url::parse(&self.settings().ok()?.blockfrost_url).ok()).flatten()
    }

    /// Our one address, an origin: where it is not set, that of a request that came over loopback.
    pub fn origin(&self) -> Result<String, ApiError> {
        if let Some(base) = &self.settings()?.base_url {
            return Ok(base.clone());
        }
        let url = self.request.url()?;
        let unset = SettingError { name: BASE_URL.into(), problem: edge::settings::NOT_SET };
        Ok(is_loopback(&url).then(|| url.origin().ascii_serialization()).ok_or(unset)?)
    }

    /// The origin for documents that only say where things are: where it is not set, that of the request.
    pub fn public_origin(&self) -> Result<String, ApiError> {
        match &self.settings()?.base_url {
            Some(base) => Ok(base.clone()),
            None => Ok(self.request.origin().to_owned()),
        }
    }

    /// The authorization server that we are, under our one address.
    pub fn authority(&self) -> Result<Rc<Authority>, ApiError> {
        let base = self.origin()?;
        if let Some(kept) = AUTHORITY.with_borrow(|kept| kept.clone().filter(|kept| kept.issuer() == base)) {
            return Ok(kept);
        }
        let keys = self.keys()?;
        let secrets = Secrets::new(keys.master(keys.current_version()?)?).map_err(Fault::in_making("tokens"))?;
        let problem = "must be an origin: https://host (http for loopback only), without path or trailing slash";
        let authority = Authority::new(&base, secrets).map_err(|_| SettingError { name: BASE_URL.into(), problem })?;
        let authority = Rc::new(authority);
        AUTHORITY.set(Some(authority.clone()));
        Ok(authority)
    }

    /// Whether there is a demo wallet.
    pub fn has_demo_wallet(&self) -> bool {
        self.keys().is_ok_and(|keys| keys.wallet(DEMO_KEY_VERSION, DEMO_OWNER).is_ok())
    }

    /// The key of an account's service wallet, for the address on record and no other.
    pub fn account_key(&self, account: &Account) -> Result<SigningKey, ApiError> {
        Ok(self.keys()?.wallet_at(account.key_version, &account.owner, &account.wallet_address)?)
    }

    /// Counts one of an action of `who`.
    pub async fn limit(&self, action: Counted, who: &str) -> Result<(), ApiError> {
        limits::take(&self.env, action, who).await
    }

    /// Counts one of an action of the client.
    pub async fn limit_client(&self, action: Counted) -> Result<(), ApiError> {
        self.limit(action, &limits::client(&self.request)?).await
    }

    /// Counts a search of the client, and holds room for its answer until that is made.
    pub async fn limit_search(&self, weight: Weight) -> Result<Permit, ApiError> {
        self.limit_client(Counted::SEARCH).await?;
        weight.hold(&self.request).await
    }
}
