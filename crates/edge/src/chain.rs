//! Implements the `Chain` trait with Blockfrost's HTTP API: timeouts, bounded retries of reads, and a budget of calls.

mod cache;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cache::{AddressUtxos, BlockTransactions, Lookup, ProviderCache, RECENT_MS, Shared, refusal};
use cardano::{
    Lovelace, TxHash, TxRef,
    blockfrost::{self, AnswerReader, Collect, Holdings, LovelaceReader, TransactionOutputs, UnspentPage},
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    evaluation::{Evaluate, Evaluation, evaluation, evaluation_request},
    history::{AddressTransaction, History, Place},
    params::ProtocolParameters,
};
use futures_util::future::LocalBoxFuture;
pub use market::chain_state::ClockLead;
use market::{chain_state::MAX_LEAD_MS, limits::DAY_MS};
use worker::{Headers, Method, Request, RequestInit};

use crate::{
    http::{Answer, CallError, Head, call, stream},
    usage::Usage,
};

/// Timeout of a read. Blockfrost usually answers in well under a second, and a hung provider must not hang a purchase.
const READ_TIME: Duration = Duration::from_secs(5);
/// Timeout of a submission. It is longer than for a read, because the provider must wait for its node.
const SUBMIT_TIME: Duration = Duration::from_secs(15);
/// Path at the provider for evaluating a transaction that spends unconfirmed outputs.
const EVALUATE_CHAINED: &str = "/utils/txs/evaluate/utxos";
/// Timeout of an evaluation, in which the provider runs the scripts.
const EVALUATION_TIME: Duration = Duration::from_secs(10);
/// Maximum size in bytes of an answer that is not streamed. Such answers are transactions, and lists of at most 100
/// short entries.
const MAX_ANSWER: usize = 1 << 20;
/// Maximum size of a streamed answer, in bytes. The outputs of one transaction can take this much JSON: a transaction
/// can reference 450 outputs of other transactions, with 1,600 tokens (95 bytes each) and 11 kB of datum in each
/// output.
const MAX_STREAMED: usize = 96 << 20;
/// Number of bytes of a streamed answer that count as one outgoing call. Reading an answer of the maximum size takes
/// one and a half seconds of CPU time, so a single request must not read several of them.
const BYTES_PER_OUTSIDE_CALL: usize = 6 << 20;
/// Timeout of a streamed answer, long enough for an answer of the maximum size.
const STREAM_TIME: Duration = Duration::from_secs(30);
/// Timeout of a streamed answer after a request has spent its allowance for slow answers.
const SHORT_TIME: Duration = Duration::from_secs(1);
/// Pauses before the retries of a read, so a read makes at most three attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(600)];
/// Maximum `Retry-After` that this client waits for. If the provider asks for more, the call fails.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(2);
/// Maximum age in ms at which waiting requests use a cached newest block on a local ledger. It is shorter than on a
/// public network, because a local ledger can make several blocks a second.
const LOCAL_RECENT_MS: u64 = 400;
/// Interval at which a request checks the cache for the answer to another request's call.
const ASKED_PAUSE: Duration = Duration::from_millis(50);
/// Number of unspent outputs, or of a block's transactions, per page: Blockfrost's maximum.
const PAGE: usize = 100;
/// Maximum number of pages that are read from each end of a wallet's list of unspent outputs: 1,000 outputs in total.
/// Anyone can fill these pages by sending tiny outputs to the wallet, but at the ledger's minimum value that gives the
/// wallet 900 ADA.
const MAX_PAGES_AT_AN_END: usize = 5;
/// Path at the provider for submitting transactions.
const SUBMIT: &str = "/tx/submit";
/// Maximum length in characters to which a rejection's reason is truncated.
const MAX_REASON: usize = 2_000;

/// Number of bytes of an answer that count as one more provider call against the client's limit, because a client can
/// cause long answers. Ordinary answers are a tenth as long.
const BYTES_PER_CALL: usize = 128 << 10;

/// Party that determines the length of a provider's answer, and so could make it long on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LengthSetBy {
    /// Determined by the author of a transaction, who pays a fee for the transaction's size.
    Author,
    /// Determined by anyone who sends outputs to a wallet, at the price of the lovelace in these outputs.
    Sender,
}

/// Future that checks whether the client has provider calls left. It returns an error if there are none.
type Admission = LocalBoxFuture<'static, Result<(), ChainError>>;

/// A client for a Blockfrost-compatible provider.
pub struct Blockfrost {
    base: String,
    project_id: Option<String>,
    usage: Usage,
    newest: Cell<Option<Tip>>,
    until_ms: u64,
    /// Remaining time in ms for reading answers whose length the author of a transaction determines.
    long_answer_ms_left: Cell<u64>,
    lead: ClockLead,
    admit: Option<Box<dyn Fn() -> Admission>>,
    /// `true` once a transaction was submitted through this client.
    has_submitted: Cell<bool>,
}

thread_local! {
    /// Caches of recent answers, by provider. They live as long as the isolate.
    static CACHES: RefCell<BTreeMap<String, ProviderCache>> = const { RefCell::new(BTreeMap::new()) };
}

impl Blockfrost {
    /// Creates a client for the provider at this base URL (including `/api/v0`). `lead` is how far a block's time may be
    /// ahead of the clock.
    ///
    /// `until_ms` is a deadline in POSIX milliseconds, so that a hung provider cannot hold a request for minutes. After
    /// the deadline no new call is made, but the answer to a submission is still awaited. Half of the time until the
    /// deadline may be spent on reading answers whose length the author of a transaction determines.
    #[must_use]
    pub fn new(base: &str, project_id: Option<String>, usage: Usage, lead: ClockLead, until_ms: u64) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        let long_answer_ms_left = Cell::new(until_ms.saturating_sub(crate::now_ms()).div_euclid(2));
        let (newest, admit, has_submitted) = (Cell::new(None), None, Cell::new(false));
        Self { base, project_id, usage, newest, until_ms, long_answer_ms_left, lead, admit, has_submitted }
    }

    /// Sets a function that decides whether the client may cause more provider calls. The function is awaited before
    /// each call, and again while a long answer arrives; its error stops the call. After the first submission it is no
    /// longer called, because a payment that was submitted has priority.
    #[must_use]
    pub fn with_admission(self, admit: impl Fn() -> Admission + 'static) -> Self {
        Self { admit: Some(Box::new(admit)), ..self }
    }

    async fn admitted(&self) -> Result<(), ChainError> {
        match &self.admit {
            Some(admit) if !self.has_submitted.get() => admit().await,
            _ => Ok(()),
        }
    }

    /// Returns the newest block, from an answer that is at most `age` ms old.
    async fn tip_within(&self, age: u64) -> Result<Tip, ChainError> {
        let began = crate::now_ms();
        let is_recent = |_: &Tip, at| at > crate::now_ms().saturating_sub(age).min(began);
        let tip = self.shared(|cache| &mut cache.tip, is_recent, async || self.tip().await).await?;
        self.newest.set(Some(tip));
        Ok(tip)
    }

    /// Returns the cached answer at `place` if `is_current` accepts it and its time, or else calls `ask` and caches the
    /// answer for other requests of this isolate.
    ///
    /// If another request is already calling `ask`, this one polls the cache until the answer is there. It cannot await
    /// the other request's call, because Workers tie a call to its request.
    async fn shared<T: Clone>(
        &self,
        place: impl Fn(&mut ProviderCache) -> &mut Shared<T>,
        is_current: impl Fn(&T, u64) -> bool,
        ask: impl AsyncFnOnce() -> Result<T, ChainError>,
    ) -> Result<T, ChainError> {
        loop {
            match self.cached(|cache| place(cache).look(&is_current, crate::now_ms())) {
                Lookup::Fresh(value) => return Ok(value),
                Lookup::Requested => crate::sleep(ASKED_PAUSE).await,
                Lookup::Stale => {
                    let answer = ask().await;
                    self.cached(|cache| place(cache).answered(answer.as_ref().ok().cloned(), crate::now_ms()));
                    return answer;
                }
            }
        }
    }

    /// Reads the ids of a block's transactions.
    async fn transactions_in(&self, block: TxHash) -> Result<BlockTransactions, ChainError> {
        let body = self.read(&format!("/blocks/{block}/txs?count={PAGE}")).await?;
        let ids = body.map(|body| blockfrost::block_transactions(&body)).transpose()?;
        // A full page may not be the only one.
        let ids = ids.filter(|ids| ids.len() < PAGE).map(|ids| Rc::new(ids.into_iter().collect()));
        Ok(BlockTransactions { block, ids })
    }

    /// Calls `with` on this isolate's cache of the provider's answers, and returns the result.
    fn cached<T>(&self, with: impl FnOnce(&mut ProviderCache) -> T) -> T {
        CACHES.with_borrow_mut(|caches| with(caches.entry(self.base.clone()).or_default()))
    }

    /// Returns the error with which this provider recently refused to serve our project (for example, an invalid
    /// project id), or `None` if it serves us. While it refuses, nothing can be verified or submitted, so nothing
    /// should be offered.
    #[must_use]
    pub fn refused(&self) -> Option<ChainError> {
        self.cached(|cache| cache.refused(crate::now_ms()))
    }

    /// Sets the maximum time in ms for reading answers whose length the author of a transaction determines.
    #[must_use]
    pub fn with_long_answer_time(self, length_ms: u64) -> Self {
        Self { long_answer_ms_left: Cell::new(length_ms), ..self }
    }

    /// Returns the timeout of a call: `time`, or the time until the deadline if that is shorter.
    fn within(&self, time: Duration) -> Duration {
        time.min(Duration::from_millis(self.until_ms.saturating_sub(crate::now_ms())))
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        time: Duration,
    ) -> Result<Answer, ChainError> {
        let is_read = path != SUBMIT;
        if is_read {
            self.admitted().await?;
        }
        let request = self.budgeted(method, path, body)?;
        let time = if is_read { self.within(time) } else { time };
        let answer = call(request, time, MAX_ANSWER).await.map_err(unanswered)?;
        self.cached(|cache| cache.answered(answer.status, crate::now_ms()));
        Ok(answer)
    }

    /// Builds a request to the provider. Returns an error if the deadline has passed or the budget of calls is used up.
    fn budgeted(&self, method: Method, path: &str, body: Option<&[u8]>) -> Result<Request, ChainError> {
        if crate::now_ms() > self.until_ms {
            return Err(ChainError::TimeOver);
        }
        if !self.usage.call() {
            return Err(ChainError::BudgetExhausted);
        }
        self.request(method, path, body).map_err(|error| ChainError::Malformed(error.to_string()))
    }

    fn request(&self, method: Method, path: &str, body: Option<&[u8]>) -> worker::Result<Request> {
        let headers = Headers::new();
        if let Some(project_id) = &self.project_id {
            headers.set("project_id", project_id)?;
        }
        let mut init = RequestInit::new();
        if let Some(body) = body {
            let kind = if path == EVALUATE_CHAINED { "application/json" } else { "application/cbor" };
            headers.set("content-type", kind)?;
            init.with_body(Some(js_sys::Uint8Array::from(body).into()));
        }
        init.with_method(method).with_headers(headers);
        Request::new_with_init(&format!("{}{path}", self.base), &init)
    }

    /// Reads a path, with retries of temporary failures. Returns `None` for a 404.
    async fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ChainError> {
        repeat(async || {
            let Answer { status, body, retry_after } = self.once(Method::Get, path, None, READ_TIME).await?;
            Ok((Head { status, retry_after }, body))
        })
        .await
    }

    /// Returns the number of calls that the provider counted for our project on the UTC day of `now` (POSIX
    /// milliseconds), or `None` if the provider does not report it.
    ///
    /// # Errors
    /// Returns [`ChainError`] if the provider does not answer.
    pub async fn calls_on_day_of(&self, now: u64) -> Result<Option<u64>, ChainError> {
        let Some(body) = self.read("/metrics").await? else { return Ok(None) };
        let malformed = |error| ChainError::Malformed(format!("metrics: {error}"));
        // For each day, its start in POSIX seconds and the number of calls.
        let days: Vec<BTreeMap<String, u64>> = serde_json::from_slice(&body).map_err(malformed)?;
        let today = |time: &u64| time.saturating_mul(1_000) / DAY_MS == now / DAY_MS;
        let days = days.iter().filter(|day| day.get("time").is_some_and(today));
        Ok(Some(days.filter_map(|day| day.get("calls")).sum()))
    }

    /// Streams a list into a collector. `length` tells who determines the length of the list. Returns `None` for a 404.
    async fn collect<C: Collect>(
        &self,
        path: &str,
        length: LengthSetBy,
        new: impl Fn() -> C,
    ) -> Result<Option<C::Out>, ChainError> {
        let read = repeat(async || {
            let mut reader = AnswerReader::new(new());
            let head = self.streamed(path, length, &mut |piece| reader.push(piece)).await?;
            Ok((head, reader))
        });
        read.await?.map(AnswerReader::finish).transpose()
    }

    /// Streams an answer into a collector, without retries.
    async fn streamed(
        &self,
        path: &str,
        length: LengthSetBy,
        push: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<Head, ChainError> {
        self.admitted().await?;
        let mut time = self.within(STREAM_TIME);
        if length == LengthSetBy::Author {
            time = time.min(Duration::from_millis(self.long_answer_ms_left.get()).max(SHORT_TIME));
        }
        let request = self.budgeted(Method::Get, path, None)?;
        let (mut read, mut admitted, began_ms) = (0_usize, Ok(()), crate::now_ms());
        let head = stream(request, time, MAX_STREAMED, async |piece| {
            let before = read;
            read = read.saturating_add(piece.len());
            admitted = self.charge_growth(before, read, length).await;
            admitted.is_ok() && push(piece)
        });
        let head = head.await;
        if length == LengthSetBy::Author {
            let took_ms = crate::now_ms().saturating_sub(began_ms);
            self.long_answer_ms_left.set(self.long_answer_ms_left.get().saturating_sub(took_ms));
        }
        admitted?;
        if let Ok(head) = &head {
            self.cached(|cache| cache.answered(head.status, crate::now_ms()));
        }
        head.map_err(|error| match error {
            CallError::TimedOut if length == LengthSetBy::Author && self.long_answer_ms_left.get() == 0 => {
                ChainError::TooLong
            }
            error => unanswered(error),
        })
    }

    /// Charges the client's limit and the budget of outgoing calls for an answer that has grown from `before` to `read`
    /// bytes.
    async fn charge_growth(&self, before: usize, read: usize, length: LengthSetBy) -> Result<(), ChainError> {
        let begun = |bytes: usize, each: usize| bytes.saturating_sub(1).div_euclid(each);
        for _ in begun(before, BYTES_PER_CALL)..begun(read, BYTES_PER_CALL) {
            self.admitted().await?;
        }
        for _ in begun(before, BYTES_PER_OUTSIDE_CALL)..begun(read, BYTES_PER_OUTSIDE_CALL) {
            if length == LengthSetBy::Author && !self.usage.call_for_length() {
                return Err(ChainError::TooLong);
            }
        }
        Ok(())
    }

    async fn read_known(&self, path: &str) -> Result<Vec<u8>, ChainError> {
        self.read(path).await?.ok_or_else(|| ChainError::Malformed(format!("no {path}")))
    }
}

impl Chain for Blockfrost {
    async fn tip(&self) -> Result<Tip, ChainError> {
        let body = self.read_known("/blocks/latest").await?;
        let (tip, epoch) = (blockfrost::tip(&body)?, blockfrost::epoch(&body)?);
        let now = crate::now_ms();
        let ahead = tip.time_ms.saturating_sub(now);
        if self.lead == ClockLead::Bounded && ahead > MAX_LEAD_MS {
            return Err(ChainError::FutureBlock { ahead_s: ahead.div_euclid(1_000) });
        }
        self.newest.set(Some(tip));
        self.cached(|cache| cache.store_tip(tip, epoch, now));
        Ok(tip)
    }

    async fn recent_tip(&self) -> Result<Tip, ChainError> {
        // The local ledger's clock may jump.
        self.tip_within(if self.lead == ClockLead::Bounded { RECENT_MS } else { 0 }).await
    }

    fn last_read_tip(&self) -> Option<Tip> {
        self.newest.get()
    }

    async fn shared_tip(&self) -> Result<Tip, ChainError> {
        self.tip_within(if self.lead == ClockLead::Bounded { RECENT_MS } else { LOCAL_RECENT_MS }).await
    }

    async fn block_includes(&self, tx: &TxHash, block: &Tip) -> Result<Option<bool>, ChainError> {
        let is_current = |listed: &BlockTransactions, _| listed.block == block.hash;
        let ask = async || self.transactions_in(block.hash).await;
        let listed = self.shared(|cache| &mut cache.transactions, is_current, ask).await?;
        Ok(listed.ids.map(|ids| ids.contains(tx)))
    }

    fn cached_tip_with(&self, tx: &TxHash) -> Option<Tip> {
        let tip = self.newest.get()?;
        let lists = |listed: &BlockTransactions| {
            listed.block == tip.hash && listed.ids.as_ref().is_some_and(|ids| ids.contains(tx))
        };
        self.cached(|cache| cache.transactions.last().is_some_and(lists)).then_some(tip)
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        if let Some(parameters) = self.cached(|cache| cache.parameters(crate::now_ms())) {
            return Ok(parameters);
        }
        let body = self.read_known("/epochs/latest/parameters").await?;
        let (parameters, epoch) = (blockfrost::protocol_parameters(&body)?, blockfrost::epoch(&body)?);
        self.cached(|cache| cache.store_parameters(parameters.clone(), epoch, crate::now_ms()));
        Ok(parameters)
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        self.collect(&format!("/txs/{tx}/utxos"), LengthSetBy::Author, || TransactionOutputs::of(*tx)).await
    }

    async fn outputs_among(
        &self,
        tx: &TxHash,
        named: &BTreeSet<TxRef>,
        most_tokens: usize,
    ) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        let path = format!("/txs/{tx}/utxos");
        self.collect(&path, LengthSetBy::Author, || TransactionOutputs::among(*tx, named.clone(), most_tokens)).await
    }

    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        let body = self.read(&format!("/txs/{tx}/cbor")).await?;
        body.map(|body| blockfrost::transaction(&body, tx)).transpose()
    }

    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        Ok(self.read(&format!("/mempool/{tx}")).await?.is_some())
    }

    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        let body = self.read(&format!("/txs/{tx}")).await?;
        body.map(|body| blockfrost::inclusion(&body, tx)).transpose()
    }

    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        let mut holdings = Holdings::default();
        for (page, end) in Holdings::pages(MAX_PAGES_AT_AN_END) {
            let order = end.order();
            let path = format!("/addresses/{address}/utxos?count={PAGE}&page={page}&order={order}");
            let read =
                match self.collect(&path, LengthSetBy::Sender, || UnspentPage::at(address).without_datums()).await {
                    // The client has used up its share. The outputs read so far can be spent.
                    Err(ChainError::ClientRateLimited) if !holdings.utxos().is_empty() => break,
                    read => read?,
                };
            // An address that was never used is unknown to the provider.
            let Some(read) = read else { break };
            if !holdings.take(end, read, PAGE) || enough(holdings.utxos()) {
                break;
            }
        }
        Ok(holdings.into_utxos())
    }

    async fn shared_utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        let block = self.cached(|cache| cache.tip.last().map(|tip| tip.hash));
        let is_current =
            |cached: &AddressUtxos, _| cached.address == address && cached.block == block && enough(&cached.utxos);
        let ask = async || {
            let utxos = self.utxos_at(address, &enough).await?.into();
            Ok(AddressUtxos { address: address.to_owned(), block, utxos })
        };
        Ok(self.shared(|cache| &mut cache.utxos, is_current, ask).await?.utxos.to_vec())
    }

    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError> {
        // An address that was never used is unknown to the provider and holds nothing.
        let balance =
            self.collect(&format!("/addresses/{address}"), LengthSetBy::Sender, LovelaceReader::default).await?;
        Ok(balance.unwrap_or(Lovelace::ZERO))
    }

    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError> {
        self.has_submitted.set(true);
        let answer = self.once(Method::Post, SUBMIT, Some(cbor), SUBMIT_TIME).await?;
        match answer.status {
            200 | 202 => Ok(Submission::Accepted),
            400 => Ok(Submission::Refused(reason(&answer.body))),
            // 425: the node's mempool is full.
            429 | 425 | 418 => Err(ChainError::RateLimited),
            status => Err(refusal(status).unwrap_or_else(|| ChainError::Unavailable(format!("status {status}")))),
        }
    }
}

impl History for Blockfrost {
    async fn block_at(&self, height: u64) -> Result<Option<Tip>, ChainError> {
        self.read(&format!("/blocks/{height}")).await?.map(|body| blockfrost::tip(&body)).transpose()
    }

    async fn blocks_before(&self, block: &TxHash, count: usize) -> Result<Option<Vec<Tip>>, ChainError> {
        let body = self.read(&format!("/blocks/{block}/previous?count={count}")).await?;
        body.map(|body| blockfrost::blocks(&body)).transpose()
    }

    async fn address_transactions(
        &self,
        address: &str,
        from: Option<Place>,
        count: usize,
    ) -> Result<Vec<AddressTransaction>, ChainError> {
        let from = from.map(|Place { height, position }| format!("&from={height}:{position}")).unwrap_or_default();
        let path = format!("/addresses/{address}/transactions?order=asc&count={count}{from}");
        // An address that was never used is unknown to the provider.
        self.read(&path).await?.map_or(Ok(vec![]), |body| blockfrost::address_transactions(&body))
    }
}

impl Evaluate for Blockfrost {
    async fn evaluate_chained(&self, cbor: &[u8], unconfirmed: &[Utxo]) -> Result<Evaluation, ChainError> {
        // Unlike a submission, an evaluation takes the transaction as text.
        let (path, body) = match unconfirmed {
            [] => ("/utils/txs/evaluate", hex::encode(cbor)),
            [_, ..] => (EVALUATE_CHAINED, evaluation_request(cbor, unconfirmed)),
        };
        let answer = repeat(async || {
            let answer = self.once(Method::Post, path, Some(body.as_bytes()), EVALUATION_TIME).await?;
            // A rejection is an answer too.
            let status = if answer.status == 400 { 200 } else { answer.status };
            Ok((Head { status, retry_after: answer.retry_after }, answer))
        });
        match answer.await? {
            None => Err(ChainError::Malformed(format!("no {path}"))),
            Some(Answer { status: 400, body, .. }) => Ok(Evaluation::Refused(reason(&body))),
            Some(Answer { body, .. }) => evaluation(&body),
        }
    }
}

/// Calls `ask`, and retries temporary failures. Returns `None` for a 404.
async fn repeat<T>(ask: impl AsyncFn() -> Result<(Head, T), ChainError>) -> Result<Option<T>, ChainError> {
    let mut pauses = PAUSES.into_iter();
    loop {
        let (error, asked) = match ask().await {
            Ok((Head { status: 200, .. }, answer)) => return Ok(Some(answer)),
            Ok((Head { status: 404, .. }, _)) => return Ok(None),
            Ok((Head { status: 429 | 418, retry_after }, _)) => (ChainError::RateLimited, retry_after),
            Ok((Head { status, .. }, _)) if status >= 500 => {
                (ChainError::Unavailable(format!("status {status}")), None)
            }
            // A retry would be refused as well.
            Ok((Head { status, .. }, _)) => {
                return Err(refusal(status).unwrap_or_else(|| ChainError::Malformed(format!("status {status}"))));
            }
            Err(error @ ChainError::Unavailable(_)) => (error, None),
            Err(error) => return Err(error),
        };
        let asked = asked.map(Duration::from_secs);
        match pauses.next() {
            Some(pause) if asked.is_none_or(|asked| asked <= MAX_RETRY_AFTER) => {
                crate::sleep(asked.unwrap_or(pause)).await;
            }
            _ => return Err(error),
        }
    }
}

fn unanswered(error: CallError) -> ChainError {
    match error {
        CallError::TooLarge => ChainError::Malformed("an answer that is too large".into()),
        CallError::TimedOut | CallError::Connection => ChainError::Unavailable(error.to_string()),
    }
}

/// Extracts the node's reason from a rejection (Blockfrost's `message`) and truncates it.
fn reason(body: &[u8]) -> String {
    let message = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|json| Some(json.get("message")?.as_str()?.to_owned()))
        .unwrap_or_else(|| "the ledger refuses the transaction".to_owned());
    message.chars().take(MAX_REASON).collect()
}
