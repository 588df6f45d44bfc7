//! A client of Blockfrost's API over any HTTP library.

use super::{Holdings, inclusion, outputs, protocol_parameters, tip, transaction, unspent_outputs};
use crate::{
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    evaluation::{Evaluate, Evaluation, evaluation, evaluation_request},
    hash::TxHash,
    money::Lovelace,
    params::ProtocolParameters,
};

/// Number of outputs on one page of an answer: the provider's maximum.
const PAGE: usize = 100;
/// Maximum number of pages to read from each end of an address's list of unspent outputs.
const MAX_PAGES_AT_AN_END: usize = 10;
/// Maximum number of characters of a node's reason for a rejection. Longer reasons are truncated.
const MAX_REASON: usize = 500;

/// An HTTP request: a `POST` if it has a body, else a `GET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Absolute URL.
    pub url: &'a str,
    /// Value of the header `project_id`. Empty for a provider that needs none.
    pub project_id: &'a str,
    /// Value of the header `content-type`, and the body.
    pub body: Option<(&'static str, &'a [u8])>,
}

/// Status and body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Body of the answer, a few megabytes at most.
    pub body: Vec<u8>,
}

/// An HTTP client. Implement this trait with the HTTP library of your platform.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Http {
    /// Sends a request and returns the answer, whatever its status. Implementations must limit the time and the size of
    /// an answer. They must not retry, because a submission must not be repeated.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    async fn send(&self, request: Request<'_>) -> Result<Response, String>;
}

/// A client of Blockfrost, or of a provider with the same API. It implements [`Chain`] and [`Evaluate`], builds for
/// every platform, `wasm32` included, and leaves the HTTP itself to [`Http`]. With the feature `ureq` there is a ready
/// implementation for native programs.
///
/// ```
/// use surety_cardano::{blockfrost::{Client, Http, Request, Response}, chain::Chain};
///
/// /// On Cloudflare Workers, for example, `send` would call `worker::Fetch`.
/// struct Recorded;
///
/// impl Http for Recorded {
///     async fn send(&self, request: Request<'_>) -> Result<Response, String> {
///         assert_eq!(request.url, "https://cardano-preprod.blockfrost.io/api/v0/blocks/latest");
///         let hash = "ab".repeat(32);
///         let body = format!(r#"{{"hash":"{hash}","height":7,"slot":90,"time":1655769690}}"#).into_bytes();
///         Ok(Response { status: 200, body })
///     }
/// }
///
/// # futures_lite::future::block_on(async {
/// let chain = Client::new(Recorded, "https://cardano-preprod.blockfrost.io/api/v0", "preprod...");
/// assert_eq!(chain.tip().await?.height, 7);
/// # Ok::<(), surety_cardano::chain::ChainError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Client<H> {
    http: H,
    base: String,
    project_id: String,
}

impl<H: Http> Client<H> {
    /// Creates a client of the provider at this base URL, including `/api/v0`. `project_id` is empty for a provider
    /// that needs none.
    pub fn new(http: H, base: &str, project_id: &str) -> Self {
        Self { http, base: base.trim_end_matches('/').to_owned(), project_id: project_id.to_owned() }
    }

    async fn send(&self, path: &str, body: Option<(&'static str, &[u8])>) -> Result<Response, ChainError> {
        let url = format!("{}{path}", self.base);
        let request = Request { url: &url, project_id: &self.project_id, body };
        self.http.send(request).await.map_err(|error| ChainError::Unavailable(format!("{path}: {error}")))
    }

    /// Reads a path. Returns `None` if the provider answers 404.
    async fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ChainError> {
        match self.send(path, None).await? {
            Response { status: 200, body } => Ok(Some(body)),
            Response { status: 404, .. } => Ok(None),
            Response { status, .. } => Err(failure(path, status)),
        }
    }

    async fn known(&self, path: &str) -> Result<Vec<u8>, ChainError> {
        self.read(path).await?.ok_or_else(|| ChainError::Malformed(format!("{path}: not found")))
    }
}

fn failure(path: &str, status: u16) -> ChainError {
    match status {
        402 => ChainError::QuotaUsedUp,
        403 => ChainError::Forbidden(status),
        418 | 425 | 429 => ChainError::RateLimited,
        _ => ChainError::Unavailable(format!("{path}: status {status}")),
    }
}

impl<H: Http> Chain for Client<H> {
    async fn tip(&self) -> Result<Tip, ChainError> {
        tip(&self.known("/blocks/latest").await?)
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        protocol_parameters(&self.known("/epochs/latest/parameters").await?)
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        self.read(&format!("/txs/{tx}/utxos")).await?.map(|body| outputs(&body, tx)).transpose()
    }

    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        self.read(&format!("/txs/{tx}/cbor")).await?.map(|body| transaction(&body, tx)).transpose()
    }

    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        Ok(self.read(&format!("/mempool/{tx}")).await?.is_some())
    }

    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        self.read(&format!("/txs/{tx}")).await?.map(|body| inclusion(&body, tx)).transpose()
    }

    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        let mut holdings = Holdings::default();
        for (page, end) in Holdings::pages(MAX_PAGES_AT_AN_END) {
            let path = format!("/addresses/{address}/utxos?count={PAGE}&page={page}&order={}", end.order());
            // An address that was never used is unknown to the provider.
            let Some(body) = self.read(&path).await? else { break };
            if !holdings.take(end, unspent_outputs(&body, address)?, PAGE) || enough(holdings.utxos()) {
                break;
            }
        }
        Ok(holdings.into_utxos())
    }

    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError> {
        let utxos = self.utxos_at(address, |_| false).await?;
        let sum = utxos.iter().try_fold(Lovelace::ZERO, |sum, utxo| sum.checked_add(utxo.value.lovelace));
        sum.ok_or_else(|| ChainError::Malformed("more lovelace than there is".into()))
    }

    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError> {
        const PATH: &str = "/tx/submit";
        match self.send(PATH, Some(("application/cbor", cbor))).await? {
            Response { status: 200 | 202, .. } => Ok(Submission::Accepted),
            Response { status: 400, body } => {
                Ok(Submission::Refused(String::from_utf8_lossy(&body).chars().take(MAX_REASON).collect()))
            }
            Response { status, .. } => Err(failure(PATH, status)),
        }
    }
}

impl<H: Http> Evaluate for Client<H> {
    async fn evaluate_chained(&self, cbor: &[u8], unconfirmed: &[Utxo]) -> Result<Evaluation, ChainError> {
        const PATH: &str = "/utils/txs/evaluate/utxos";
        let body = evaluation_request(cbor, unconfirmed);
        match self.send(PATH, Some(("application/json", body.as_bytes()))).await? {
            Response { status: 200, body } => evaluation(&body),
            Response { status, .. } => Err(failure(PATH, status)),
        }
    }
}
