//! A blocking client for a Blockfrost-compatible provider, for command line tools.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on a person's own machine")]

use std::{thread::sleep, time::Duration};

use cardano::{
    TxHash,
    blockfrost::{self, Holdings, Request, Response, Ureq},
    chain::{ChainError, Inclusion, Tip, TracedOutput, Utxo},
    evaluation::{Evaluate, Evaluation, evaluation, evaluation_request},
    params::ProtocolParameters,
};
use clap::Args;

/// Number of outputs on one page of a response: the provider's maximum.
const PAGE: usize = 100;
/// Maximum number of pages to read from each end of an address's list of unspent outputs.
const MAX_PAGES_AT_AN_END: usize = 10;
const SUBMIT: &str = "/tx/submit";

/// Command line options that select the provider.
#[derive(Args, Clone)]
pub struct Provider {
    /// Base URL, including `/api/v0`.
    #[arg(long, env = "BLOCKFROST_URL", default_value = "https://cardano-preprod.blockfrost.io/api/v0")]
    blockfrost: String,
    /// Project id, if the provider requires one.
    #[arg(long, env = "BLOCKFROST_PROJECT_ID", hide_env_values = true, default_value = "")]
    project_id: String,
}

/// Reason why the chain could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider did not answer, or asked to retry later.
    #[error("{path}: {why}")]
    Unreachable {
        /// Path of the request.
        path: String,
        /// The provider's error message, or the reason why there is no response.
        why: String,
    },
    /// A node or the ledger rejected a submitted transaction. Contains the node's reason.
    #[error("the ledger refuses the transaction: {0}")]
    Refused(String),
    /// The provider answered with an error status.
    #[error("{path}: {why}")]
    Call {
        /// Path of the request.
        path: String,
        /// Status and error message of the response.
        why: String,
    },
    /// The response does not have the documented shape.
    #[error(transparent)]
    Answer(#[from] ChainError),
    /// No block included the transaction within this number of seconds.
    #[error("transaction {0} is not in a block after {1} s; ask again later")]
    NotIncluded(TxHash, u64),
}

impl Provider {
    /// Creates a client for the provider at this base URL (including `/api/v0`). `project_id` is empty for a provider
    /// that needs none.
    #[must_use]
    pub const fn new(blockfrost: String, project_id: String) -> Self {
        Self { blockfrost, project_id }
    }

    /// Returns the base URL.
    #[must_use]
    pub fn base(&self) -> &str {
        self.blockfrost.trim_end_matches('/')
    }

    fn call(&self, path: &str, body: Option<&[u8]>) -> Result<Option<Vec<u8>>, ProviderError> {
        let failed = |why: String| ProviderError::Unreachable { path: path.to_owned(), why };
        let url = format!("{}{path}", self.base());
        let kind = |body: &[u8]| if body.starts_with(b"{") { "application/json" } else { "application/cbor" };
        let request = Request { url: &url, project_id: &self.project_id, body: body.map(|body| (kind(body), body)) };
        let Response { status, body } = Ureq::default().call(request).map_err(failed)?;
        match status {
            200 | 202 => Ok(Some(body)),
            404 => Ok(None),
            418 | 425 | 429 | 500.. => Err(failed(said(status, &body))),
            400 if path == SUBMIT => Err(ProviderError::Refused(said(status, &body))),
            _ => Err(ProviderError::Call { path: path.to_owned(), why: said(status, &body) }),
        }
    }

    fn known(&self, path: &str) -> Result<Vec<u8>, ProviderError> {
        let missing = || ProviderError::Call { path: path.to_owned(), why: "not found".into() };
        self.call(path, None)?.ok_or_else(missing)
    }

    /// Returns the network magic of the provider's chain, which is 1 for preprod.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn network_magic(&self) -> Result<u64, ProviderError> {
        Ok(blockfrost::network_magic(&self.known("/genesis")?)?)
    }

    /// Returns the newest block of the chain.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn tip(&self) -> Result<Tip, ProviderError> {
        Ok(blockfrost::tip(&self.known("/blocks/latest")?)?)
    }

    /// Returns the protocol parameters of the current epoch.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn protocol_parameters(&self) -> Result<ProtocolParameters, ProviderError> {
        Ok(blockfrost::protocol_parameters(&self.known("/epochs/latest/parameters")?)?)
    }

    /// Returns the unspent outputs at an address (bech32), up to a limit. If the outputs hold too many native tokens,
    /// those with the least lovelace per token are left out.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn utxos_at(&self, address: &str) -> Result<Vec<Utxo>, ProviderError> {
        let mut holdings = Holdings::default();
        for (page, end) in Holdings::pages(MAX_PAGES_AT_AN_END) {
            let path = format!("/addresses/{address}/utxos?count={PAGE}&page={page}&order={}", end.order());
            let Some(body) = self.call(&path, None)? else { break };
            if !holdings.take(end, blockfrost::unspent_outputs(&body, address)?, PAGE) {
                break;
            }
        }
        Ok(holdings.into_utxos())
    }

    /// Returns whether the chain has ever included an output at this address.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn is_used(&self, address: &str) -> Result<bool, ProviderError> {
        Ok(self.call(&format!("/addresses/{address}"), None)?.is_some())
    }

    /// Returns the outputs of a transaction, or `None` if the provider does not know it.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ProviderError> {
        let body = self.call(&format!("/txs/{tx}/utxos"), None)?;
        Ok(body.map(|body| blockfrost::outputs(&body, tx)).transpose()?)
    }

    /// Returns a transaction's bytes, or `None` if the provider does not know it.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ProviderError> {
        let body = self.call(&format!("/txs/{tx}/cbor"), None)?;
        Ok(body.map(|body| blockfrost::transaction(&body, tx)).transpose()?)
    }

    /// Returns the block that includes a transaction, or `None` if no block does.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ProviderError> {
        let body = self.call(&format!("/txs/{tx}"), None)?;
        Ok(body.map(|body| blockfrost::inclusion(&body, tx)).transpose()?)
    }

    /// Submits a transaction.
    ///
    /// # Errors
    /// See [`ProviderError`].
    pub fn submit(&self, cbor: &[u8]) -> Result<(), ProviderError> {
        self.call(SUBMIT, Some(cbor)).map(|_| ())
    }

    /// Polls the provider until a block includes a transaction, for at most this number of seconds.
    ///
    /// # Errors
    /// Returns [`ProviderError::NotIncluded`] when the time is up; see [`ProviderError`] for the others.
    pub fn wait_for(&self, tx: &TxHash, seconds: u64) -> Result<Inclusion, ProviderError> {
        const PAUSE: Duration = Duration::from_millis(500);
        for _ in 0..seconds.saturating_mul(2) {
            if let Some(block) = self.inclusion_of(tx)? {
                return Ok(block);
            }
            sleep(PAUSE);
        }
        Err(ProviderError::NotIncluded(*tx, seconds))
    }
}

/// Formats an error response as text: its status and its body.
fn said(status: u16, body: &[u8]) -> String {
    format!("status {status}: {}", String::from_utf8_lossy(body))
}

impl Evaluate for Provider {
    async fn evaluate_chained(&self, cbor: &[u8], unconfirmed: &[Utxo]) -> Result<Evaluation, ChainError> {
        let body = evaluation_request(cbor, unconfirmed);
        let answer = self.call("/utils/txs/evaluate/utxos", Some(body.as_bytes()));
        let answer = answer.map_err(|error| ChainError::Unavailable(error.to_string()))?;
        evaluation(&answer.ok_or_else(|| ChainError::Unavailable("the provider evaluates nothing".to_owned()))?)
    }
}
