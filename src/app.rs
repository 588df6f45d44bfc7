//! Context of a request: the ports to database, chain and stores, created when first used, and the request's usage
//! counters.

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
    time::Duration,
};

use agents::oauth::{Authority, Secrets};
use api_types::{DeliveryMode, ErrorCode};
use cardano::keys::SigningKey;
use edge::serve::Request;
use edge::{
    Usage,
    answer::Fault,
    chain::Blockfrost,
    challenges::KvChallenges,
    contents::ContentStore,
    d1::{D1, Nearest},
    keys::KeyStore,
    log::Line,
    metrics::DataPoint,
    settings::SettingError,
    timer::Timer,
};
use market::{
    account::{Account, DEMO_KEY_VERSION, DEMO_OWNER},
    chain_state::ClockLead,
    headroom::StorageHeadroom,
};
use sql::{Database, One, Read};
use worker::{Env, Url, WorkerVersionMetadata};

use crate::{
    error::{ApiError, storage_full},
    limits::{self, Counted},
    methods::Methods,
    settings::{self, Settings},
};

/// Maximum time in ms for which a request polls the chain. Purchases take 20 to 60 seconds.
pub const MAX_REQUEST_MS: u64 = 60_000;
/// Maximum duration of an MCP tool call in ms. MCP clients time out after about 60 seconds, so the tool answers earlier
/// and says how to continue.
pub const MAX_CALL_MS: u64 = 42_000;

/// Timeout for reading a static file from the platform.
const STATIC_FILE_TIME: Duration = Duration::from_secs(5);

/// Name of the setting with the service's own address.
const BASE_URL: &str = "BASE_URL";

thread_local! {
    static AUTHORITY: RefCell<Option<Rc<Authority>>> = const { RefCell::new(None) };
}

/// A request and the worker's bindings. Clones refer to the same request.
#[derive(Clone)]
pub struct App {
    env: Env,
    pub request: Rc<Request>,
    pub usage: Usage,
    /// The request's log line.
    pub line: Line,
    /// Time at which the request arrived, POSIX ms.
    pub now_ms: u64,
    /// Maximum duration of the request in ms.
    pub max_ms: u64,
    settings: OnceCell<Rc<Settings>>,
}

/// Returns whether a request was sent to a loopback address, as only happens in development.
fn is_loopback(url: &Url) -> bool {
    url.scheme() == "http" && matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

impl App {
    pub fn new(env: Env, request: Request) -> Self {
        let (usage, now_ms) = (Usage::default(), edge::now_ms());
        let line = Line::begin("request", now_ms, usage.clone());
        Self { env, request: Rc::new(request), usage, line, now_ms, max_ms: MAX_REQUEST_MS, settings: OnceCell::new() }
    }

    /// Returns this context with a tool call's maximum duration, which is shorter than a request's.
    pub fn for_tool_call(&self) -> Self {
        Self { max_ms: MAX_CALL_MS, ..self.clone() }
    }

    /// Returns the time at which the request stops polling and answers, in POSIX ms.
    const fn until(&self) -> u64 {
        self.now_ms.saturating_add(self.max_ms)
    }

    /// Returns a timer that waits at most until the request has to answer.
    pub const fn timer(&self) -> Timer {
        Timer::until(self.until())
    }

    /// Returns the settings.
    pub fn settings(&self) -> Result<&Settings, ApiError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = Settings::of(&self.env)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// Returns the program's version, with the deployment's tag if there is one.
    pub fn version(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let told: Result<WorkerVersionMetadata, _> = self.env.get_binding("VERSION");
        match told.ok().map(|told| told.tag()).filter(|tag| !tag.is_empty()) {
            Some(tag) => format!("{version} ({tag})"),
            None => version.to_owned(),
        }
    }

    /// Returns whether responses report the request's cost, for development.
    pub fn shows_usage(&self) -> bool {
        self.settings().is_ok_and(|settings| settings.shows_usage)
    }

    /// Returns whether the chain is a local ledger, on which tests move the time ahead of the wall clock.
    pub fn is_on_local_ledger(&self) -> bool {
        self.settings().is_ok_and(|settings| settings.lead == ClockLead::LocalLedger)
    }

    /// Returns the database's primary, for reads that decide about money, limits, sessions or claims, and for all
    /// writes.
    pub fn database(&self) -> D1 {
        D1::new(&self.env, "DB", self.usage.clone())
    }

    /// Returns the database's nearest replica, for the catalogue and other answers that may be some seconds old.
    pub fn nearest(&self) -> Nearest {
        Nearest::new(&self.env, "DB", self.usage.clone())
    }

    /// Returns whether the database has free space, according to the last answer that this isolate received from it. If
    /// that answer showed too little space, asks the database again.
    pub async fn room(&self) -> Result<StorageHeadroom, ApiError> {
        let most = self.settings()?.database_bytes;
        if StorageHeadroom::of(edge::d1::size(), most) == StorageHeadroom::Short {
            let any: Read<One<u8>> = sql::read!("SELECT 1");
            self.database().fetch(any).await?;
        }
        Ok(StorageHeadroom::of(edge::d1::size(), most))
    }

    /// Returns an error if the database is almost full. Callers check this before they store rows that nobody pays for.
    pub async fn ample_room(&self) -> Result<(), ApiError> {
        if self.room().await? == StorageHeadroom::Short { Err(storage_full().into()) } else { Ok(()) }
    }

    /// Returns the content store.
    pub fn contents(&self) -> Result<ContentStore, ApiError> {
        Ok(ContentStore::bound(&self.env, self.database(), self.usage.clone(), limits::client(&self.request)?))
    }

    /// Returns a handle on the chain's provider. Until it has submitted a transaction, its calls wait in a queue for
    /// the turn of the request's client.
    pub fn chain(&self) -> Result<Blockfrost, ApiError> {
        self.chain_for(&limits::client(&self.request)?)
    }

    /// Returns a handle on the chain's provider. Until it has submitted a transaction, its calls wait in a queue for
    /// the turn of `who`, a client or an account.
    pub fn chain_for(&self, who: &str) -> Result<Blockfrost, ApiError> {
        let settings = self.settings()?;
        let project = settings.blockfrost_project.clone();
        let asks = (self.env.clone(), who.to_owned(), settings.provider_calls);
        Ok(Blockfrost::new(&settings.blockfrost_url, project, self.usage.clone(), settings.lead, self.until())
            .with_admission(move || Box::pin(limits::admit(asks.clone()))))
    }

    /// Returns the configured payment methods.
    pub fn methods(&self) -> Result<Rc<Methods>, ApiError> {
        Ok(settings::methods(&self.env)?)
    }

    /// Returns the platform's keys.
    pub fn keys(&self) -> Result<Rc<KeyStore>, ApiError> {
        Ok(settings::keys(&self.env)?)
    }

    /// Returns the challenge store.
    pub fn challenges(&self) -> Result<KvChallenges, ApiError> {
        Ok(KvChallenges::bound(&self.env)?)
    }

    /// Returns the address of the local ledger, which pages need for the test wallet; `None` on public networks, and
    /// for requests that did not come over loopback.
    pub fn test_ledger(&self) -> Option<Url> {
        let local = self.is_on_local_ledger() && is_loopback(&self.request.url().ok()?);
        local.then(|| Url::parse(&self.settings().ok()?.blockfrost_url).ok()).flatten()
    }

    /// Returns the static file at the request's path, or `None` if there is none. A file larger than `limit` bytes is
    /// an error.
    pub async fn static_file(&self, limit: usize) -> Result<Option<Vec<u8>>, ApiError> {
        let request = worker::Request::new(self.request.url()?.as_str(), worker::Method::Get)?;
        let answer = edge::http::ask(&self.env.assets("ASSETS")?, request, STATIC_FILE_TIME, limit).await;
        let answer = answer.map_err(Fault::inconsistent("a static file"))?;
        Ok((answer.status == 200).then_some(answer.body))
    }

    /// Returns the service's configured origin; if none is configured, the origin of a request over loopback.
    pub fn origin(&self) -> Result<String, ApiError> {
        if let Some(base) = &self.settings()?.base_url {
            return Ok(base.clone());
        }
        let url = self.request.url()?;
        let unset = SettingError { name: BASE_URL.into(), problem: edge::settings::NOT_SET };
        Ok(is_loopback(&url).then(|| url.origin().ascii_serialization()).ok_or(unset)?)
    }

    /// Returns the configured origin, or else the request's own, for documents that use the origin only in links.
    pub fn public_origin(&self) -> Result<String, ApiError> {
        match &self.settings()?.base_url {
            Some(base) => Ok(base.clone()),
            None => Ok(self.request.origin().to_owned()),
        }
    }

    /// Returns the OAuth authorization server, whose issuer is the service's origin.
    pub fn authority(&self) -> Result<Rc<Authority>, ApiError> {
        let base = self.origin()?;
        if let Some(kept) = AUTHORITY.with_borrow(|kept| kept.clone().filter(|kept| kept.issuer() == base)) {
            return Ok(kept);
        }
        let keys = self.keys()?;
        let secrets = Secrets::new(keys.master(keys.current_version()?)?).map_err(Fault::inconsistent("tokens"))?;
        let problem = "must be an origin: https://host (http for loopback only), without path or trailing slash";
        let authority = Authority::new(&base, secrets).map_err(|_| SettingError { name: BASE_URL.into(), problem })?;
        let authority = Rc::new(authority);
        AUTHORITY.set(Some(authority.clone()));
        Ok(authority)
    }

    /// Returns whether a demo wallet is configured.
    pub fn has_demo_wallet(&self) -> bool {
        self.keys().is_ok_and(|keys| keys.wallet(DEMO_KEY_VERSION, DEMO_OWNER).is_ok())
    }

    /// Derives the key of an account's service wallet, and checks that it has the stored address.
    pub fn account_key(&self, account: &Account) -> Result<SigningKey, ApiError> {
        Ok(self.keys()?.wallet_at(account.key_version, &account.owner, &account.wallet_address)?)
    }

    /// Records a payment in the metrics, with the time that this request took. `error` is the reason why the content
    /// was not delivered, or `None` if it was.
    pub fn record_payment(&self, mode: Option<DeliveryMode>, error: Option<ErrorCode>) {
        let time = Duration::from_millis(edge::now_ms().saturating_sub(self.now_ms));
        DataPoint::Payment { mode, error, time, calls: self.usage.calls() }.write(&self.env);
    }

    /// Counts an action against the rate limit of `who`, which is a client or an account.
    pub async fn limit(&self, action: Counted, who: &str) -> Result<(), ApiError> {
        limits::take(&self.env, action, who).await
    }

    /// Counts an action against the client's rate limit.
    pub async fn limit_client(&self, action: Counted) -> Result<(), ApiError> {
        self.limit(action, &limits::client(&self.request)?).await
    }
}
