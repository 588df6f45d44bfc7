//! Reads the chain through Blockfrost's HTTP API, one call at a time.

use std::{env, error::Error, time::Duration};

use cardano::{
    Lovelace, TxHash,
    blockfrost::{self, Holdings},
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    params::ProtocolParameters,
};

/// Maximum size of a response, in bytes.
const MAX_ANSWER: u64 = 8 << 20;
/// Number of outputs on a page (the provider's maximum), and number of pages to read from each end of the list.
const PAGE: usize = 100;
const MAX_PAGES_AT_AN_END: usize = 10;

/// A client for one provider.
pub struct Blockfrost {
    agent: ureq::Agent,
    base: String,
    project: String,
}

impl Blockfrost {
    /// Creates a client with the URL and project id in the environment.
    pub fn from_environment() -> Result<Self, Box<dyn Error>> {
        let base = env::var("BLOCKFROST_URL").unwrap_or_else(|_| "https://cardano-preprod.blockfrost.io/api/v0".into());
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(30)));
        let agent = config.http_status_as_error(false).build().into();
        Ok(Self { agent, base, project: env::var("BLOCKFROST_PROJECT_ID").unwrap_or_default() })
    }

    /// Sends a request and returns the response's status and body. With a `transaction`, submits it.
    fn call(&self, path: &str, transaction: Option<&[u8]>) -> Result<(u16, Vec<u8>), ChainError> {
        let url = format!("{}{path}", self.base);
        let answer = match transaction {
            None => self.agent.get(&url).header("project_id", &self.project).call(),
            Some(cbor) => {
                let request = self.agent.post(&url).header("project_id", &self.project);
                request.header("content-type", "application/cbor").send(cbor)
            }
        };
        let mut answer = answer.map_err(|error| ChainError::Unavailable(error.to_string()))?;
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        Ok((answer.status().as_u16(), body.map_err(|error| ChainError::Unavailable(error.to_string()))?))
    }

    /// Returns the body of a successful response, or `None` if the provider answers 404.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ChainError> {
        match self.call(path, None)? {
            (200, body) => Ok(Some(body)),
            (404, _) => Ok(None),
            (429, _) => Err(ChainError::RateLimited),
            (status, _) => Err(ChainError::Unavailable(format!("{path}: status {status}"))),
        }
    }

    fn known(&self, path: &str) -> Result<Vec<u8>, ChainError> {
        self.read(path)?.ok_or_else(|| ChainError::Malformed(format!("{path}: not found")))
    }
}

impl Chain for Blockfrost {
    async fn tip(&self) -> Result<Tip, ChainError> {
        blockfrost::tip(&self.known("/blocks/latest")?)
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        blockfrost::protocol_parameters(&self.known("/epochs/latest/parameters")?)
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        self.read(&format!("/txs/{tx}/utxos"))?.map(|body| blockfrost::outputs(&body, tx)).transpose()
    }

    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        self.read(&format!("/txs/{tx}/cbor"))?.map(|body| blockfrost::transaction(&body, tx)).transpose()
    }

    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        Ok(self.read(&format!("/mempool/{tx}"))?.is_some())
    }

    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        self.read(&format!("/txs/{tx}"))?.map(|body| blockfrost::inclusion(&body, tx)).transpose()
    }

    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        let mut holdings = Holdings::default();
        for (page, end) in Holdings::pages(MAX_PAGES_AT_AN_END) {
            let path = format!("/addresses/{address}/utxos?count={PAGE}&page={page}&order={}", end.order());
            let Some(body) = self.read(&path)? else { break };
            if !holdings.take(end, blockfrost::utxos(&body, address)?, PAGE) || enough(holdings.utxos()) {
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
        match self.call("/tx/submit", Some(cbor))? {
            (200 | 202, _) => Ok(Submission::Accepted),
            (400, body) => Ok(Submission::Refused(String::from_utf8_lossy(&body).chars().take(500).collect())),
            (418 | 425 | 429, _) => Err(ChainError::RateLimited),
            (status, _) => Err(ChainError::Unavailable(format!("status {status}"))),
        }
    }
}
