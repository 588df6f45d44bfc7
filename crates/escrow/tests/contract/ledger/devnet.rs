//! A local ledger that makes a block only when a test asks for one.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use cardano::{
    Address, Lovelace, TxHash, blockfrost,
    chain::{ChainError, Submission, Tip, Utxo},
    evaluation::{Evaluate, Evaluation, evaluation, evaluation_request},
    params::ProtocolParameters,
    slots::Millis,
};
use serde_json::{Value, json};

/// Timeout of one request to the ledger. Even evaluations take only milliseconds.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Devnet {
    process: Child,
    host: String,
    state: PathBuf,
}

impl Devnet {
    pub fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let name = format!("escrow-devnet-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let state = env::temp_dir().join(name);
        let own = root.join(".tools/bin/node");
        let node = if own.exists() { own } else { PathBuf::from("node") };
        let mut process = Command::new(node)
            .args(["devnet/main.ts", "--port", "0", "--block-time", "0", "--state"])
            .arg(&state)
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the local ledger needs Node: run `make setup`");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.next().expect("the local ledger says where it listens").unwrap();
        let host = ready.rsplit_once("http://").expect(&ready).1.to_owned();
        Self { process, host, state }
    }

    /// Returns the base URL of the ledger's Blockfrost API.
    pub fn base(&self) -> String {
        format!("http://{}/api/v0", self.host)
    }

    pub fn parameters(&self) -> ProtocolParameters {
        blockfrost::protocol_parameters(&self.get("/api/v0/epochs/latest/parameters")).unwrap()
    }

    pub fn tip(&self) -> Tip {
        blockfrost::tip(&self.get("/api/v0/blocks/latest")).unwrap()
    }

    pub fn utxos_at(&self, address: &str) -> Vec<Utxo> {
        let (status, body) = self.request("GET", &format!("/api/v0/addresses/{address}/utxos"), "", &[]);
        if status == 404 { vec![] } else { blockfrost::unspent_outputs(&body, address).unwrap().utxos }
    }

    pub fn outputs_of(&self, tx: &TxHash) -> Vec<Utxo> {
        let traced = blockfrost::outputs(&self.get(&format!("/api/v0/txs/{tx}/utxos")), tx).unwrap();
        traced.into_iter().filter(|output| !output.not_on_ledger).map(|output| output.utxo).collect()
    }

    pub fn give(&self, to: &Address, amount: Lovelace) {
        self.control("faucet", &json!({ "address": to, "lovelace": amount }));
    }

    pub fn make_block(&self) {
        self.control("block", &json!({}));
    }

    /// Advances the ledger's clock until the newest block is at or after this time.
    pub fn advance_to(&self, time: Millis) {
        // Blocks made in quick succession run ahead of the clock, which has to catch up first.
        while let Some(missing) = time.checked_sub(self.tip().time_ms).filter(|missing| *missing > 0) {
            self.control("advance", &json!({ "seconds": missing.div_ceil(1_000) }));
        }
    }

    pub fn submit(&self, cbor: &[u8]) -> Submission {
        let (status, body) = self.request("POST", "/api/v0/tx/submit", "application/cbor", cbor);
        let text = String::from_utf8(body).unwrap();
        if status == 200 { Submission::Accepted } else { Submission::Refused(text) }
    }

    fn control(&self, what: &str, body: &Value) -> Value {
        let (status, answer) =
            self.request("POST", &format!("/control/{what}"), "application/json", body.to_string().as_bytes());
        assert_eq!(status, 200, "{what}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).unwrap()
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let (status, body) = self.request("GET", path, "", &[]);
        assert_eq!(status, 200, "{path}");
        body
    }

    fn request(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let kind = if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{kind}content-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("an HTTP answer");
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
        (head[9..12].parse().unwrap(), answer[end + 4..].to_vec())
    }
}

impl Evaluate for Devnet {
    async fn evaluate_chained(&self, cbor: &[u8], unconfirmed: &[Utxo]) -> Result<Evaluation, ChainError> {
        let json = evaluation_request(cbor, unconfirmed);
        let (status, body) =
            self.request("POST", "/api/v0/utils/txs/evaluate/utxos", "application/json", json.as_bytes());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        evaluation(&body)
    }
}

impl Drop for Devnet {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}
