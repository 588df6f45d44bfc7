//! Requests from and to outside, bounded in bytes and time.

use std::{cell::RefCell, pin::pin, time::Duration};

use cardano::slots::Millis;
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use market::network::{UNKNOWN, site};
use worker::{AbortController, AbortSignal, ByteStream, Fetch, Fetcher, Request, Response};

use crate::{client::client, serve};

/// Bytes of bodies that an isolate holds while they are read, beyond what each begins with: it has 128 MB for everything.
const MAX_HELD: usize = 28 << 20;
/// A client's share of them: the longest body that any route reads.
const MAX_HELD_BY_ONE: usize = MAX_HELD / 4;
/// Bytes with which a body begins that are read whatever others hold: so long ones keep no short ones out.
const SHORT: usize = 16 << 10;
/// What a request counts for while it waits, beside what it brought: its future, and room to grow.
pub const BESIDE: usize = 16 << 10;
/// A client's share of what requests that wait take with such beginnings: some two hundred to four hundred at once. A minute's
/// rate may come at once, and would take as much as an isolate has.
const MAX_SHORT_BY_ONE: usize = 6 << 20;
/// An account's part of that: agents of many accounts come from one platform's network.
const MAX_BY_ACCOUNT: usize = MAX_SHORT_BY_ONE / 3;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// How long what a request holds counts, in ms: longer than any is served. Of one that the runtime cut off nobody says that it
/// ended.
const COUNTS_MS: Millis = 150_000;

thread_local! {
    /// What is held now, and how much was before.
    static HELD: RefCell<(Vec<Counted>, u64)> = const { RefCell::new((Vec::new(), 0)) };
}

/// Bytes of bodies: of how they begin, and of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    begun: usize,
    rest: usize,
}

impl Share {
    const fn and(self, more: Self) -> Self {
        Self { begun: self.begun.saturating_add(more.begun), rest: self.rest.saturating_add(more.rest) }
    }
}

/// What one request holds, of whose site, for which account, and since when.
#[derive(Debug)]
struct Counted {
    number: u64,
    site: String,
    account: Option<String>,
    began_ms: Millis,
    share: Share,
}

/// What one request holds, given back when this is dropped.
pub struct Held {
    number: u64,
    site: String,
    account: Option<String>,
}

impl Held {
    /// Nothing yet of what a client's requests hold.
    fn by(client: &str) -> Self {
        Self::of(client, None)
    }

    fn of(client: &str, account: Option<&str>) -> Self {
        let number = HELD.with_borrow_mut(|(_, begun)| std::mem::replace(begun, begun.wrapping_add(1)));
        Self { number, site: site(client).into_owned(), account: account.map(str::to_owned) }
    }

    /// So much of it, for an account, if any; `None` where its site's or its account's hold as much as they may.
    fn with(client: &str, account: Option<&str>, bytes: usize, now_ms: Millis) -> Option<Self> {
        let held = Self::of(client, account);
        held.add(Share { begun: bytes, rest: 0 }, now_ms).then_some(held)
    }

    /// Takes more of a body of which so much was read; whether there was room.
    fn take(&self, before: usize, bytes: usize, now_ms: Millis) -> bool {
        let begun = bytes.min(SHORT.saturating_sub(before));
        self.add(Share { begun, rest: bytes.saturating_sub(begun) }, now_ms)
    }

    fn add(&self, more: Share, now_ms: Millis) -> bool {
        HELD.with_borrow_mut(|(held, _)| {
            held.retain(|counted| now_ms < counted.began_ms.saturating_add(COUNTS_MS));
            let of = |counted: &Counted| counted.site == self.site;
            let own = held.iter().filter(|counted| of(counted)).fold(more, |all, counted| all.and(counted.share));
            let all = held.iter().fold(more, |all, counted| all.and(counted.share));
            let for_it = |counted: &&Counted| of(counted) && counted.account == self.account;
            let part = held.iter().filter(for_it).fold(more, |all, counted| all.and(counted.share));
            let in_part = self.account.is_none() || part.begun <= MAX_BY_ACCOUNT;
            let room = in_part && own.begun <= MAX_SHORT_BY_ONE && own.rest <= MAX_HELD_BY_ONE && all.rest <= MAX_HELD;
            if room {
                match held.iter_mut().find(|counted| counted.number == self.number) {
                    Some(counted) => counted.share = counted.share.and(more),
                    None => held.push(Counted {
                        number: self.number,
                        site: self.site.clone(),
                        account: self.account.clone(),
                        began_ms: now_ms,
                        share: more,
                    }),
                }
            }
            room
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|(held, _)| held.retain(|counted| counted.number != self.number));
    }
}

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed: the rest was not read.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// The connection broke while it was read.
    #[error("the body could not be read")]
    Broken,
    /// It took too long to arrive.
    #[error("the body did not arrive within {} seconds", BODY_TIME.as_secs())]
    Slow,
    /// As much is being read already, of this client's or of everybody's.
    #[error("too much is being sent at once")]
    Crowded,
}

/// Reads a request's body, no more than `limit` bytes of it.
///
/// # Errors
/// Too large (by its declared length, or as it arrives), slow, broken, or beside too much else.
pub async fn read_request(request: &mut serve::Request, limit: usize) -> Result<Vec<u8>, BodyError> {
    Ok(hold_request(request, limit).await?.0)
}

/// The same, and what its client is counted for until that is dropped: for bodies that wait.
///
/// # Errors
/// As [`read_request`].
pub async fn hold_request(request: &mut serve::Request, limit: usize) -> Result<(Vec<u8>, Option<Held>), BodyError> {
    let declared = request.headers().get("content-length").ok().flatten();
    if declared.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge(limit));
    }
    // A request without a body has no stream.
    let Ok(stream) = request.stream() else { return Ok((Vec::new(), None)) };
    let held = Held::by(&client(request).unwrap_or_default());
    let body = Box::pin(read(stream, limit, |before, bytes| held.take(before, bytes, crate::now_ms())));
    let body = match select(body, pin!(crate::sleep(BODY_TIME))).await {
        Either::Left((body, _)) => body?,
        Either::Right(_) => return Err(BodyError::Slow),
    };
    Ok((body, Some(held)))
}

/// What a request takes in memory while it is served, so many bytes: they count for its client, as bodies do that are read,
/// until this is dropped.
///
/// # Errors
/// As much of its client's is served already.
pub fn hold(request: &serve::Request, bytes: usize) -> Result<Held, BodyError> {
    Held::with(&client(request).unwrap_or_default(), None, bytes, crate::now_ms()).ok_or(BodyError::Crowded)
}

/// The same of what is done for an account, of which no more counts at once than a third of what its client's may.
///
/// # Errors
/// As much of its client's or of the account's is served already.
pub fn hold_of(request: &serve::Request, account: &str, bytes: usize) -> Result<Held, BodyError> {
    let client = client(request).unwrap_or_default();
    Held::with(&client, Some(account), bytes, crate::now_ms()).ok_or(BodyError::Crowded)
}

/// The same of any request that waits, whatever it waits for. A local stack's, of which everybody is one, are not counted.
///
/// # Errors
/// As many of its client's wait already.
pub fn wait(request: &serve::Request) -> Result<Option<Held>, BodyError> {
    let client = client(request).unwrap_or_default();
    if client == UNKNOWN {
        Ok(None)
    } else {
        Held::with(&client, None, BESIDE, crate::now_ms()).map(Some).ok_or(BodyError::Crowded)
    }
}

async fn read(
    mut stream: ByteStream,
    limit: usize,
    mut take: impl FnMut(usize, usize) -> bool,
) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| BodyError::Broken)?;
        if body.len().saturating_add(chunk.len()) > limit {
            return Err(BodyError::TooLarge(limit));
        }
        if !take(body.len(), chunk.len()) {
            return Err(BodyError::Crowded);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An answer from outside.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
    /// `Retry-After` in seconds, if it was given so.
    pub retry_after: Option<u64>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// None within the time allowed.
    #[error("no answer in time")]
    TimedOut,
    /// The connection failed or broke.
    #[error("the connection failed")]
    Connection,
    /// The answer has more bytes than allowed.
    #[error("the answer is too large")]
    TooLarge,
}

/// Sends a request and reads the whole answer, within a time and a size.
///
/// # Errors
/// No answer, or none within the bounds. The outcome of a request that writes is unknown then.
pub async fn call(request: Request, time: Duration, limit: usize) -> Result<Answer, CallError> {
    within(time, async |signal| {
        let response = Fetch::Request(request).send_with_signal(&signal).await.map_err(|_| CallError::Connection)?;
        answer(response, limit).await
    })
    .await
}

/// The same to another worker, over its service binding.
///
/// # Errors
/// As [`call`]. What it began goes on without whoever asked.
pub async fn ask(service: &Fetcher, request: Request, time: Duration, limit: usize) -> Result<Answer, CallError> {
    within(time, async |_| {
        answer(service.fetch_request(request).await.map_err(|_| CallError::Connection)?, limit).await
    })
    .await
}

/// What an answer begins with.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After` in seconds, if it was given so.
    pub retry_after: Option<u64>,
}

impl Head {
    fn of(response: &Response) -> Self {
        let retry_after = response.headers().get("retry-after").ok().flatten().and_then(|text| text.parse().ok());
        Self { status: response.status_code(), retry_after }
    }
}

/// Sends a request and hands the body of an answer with status 200 on as it arrives, until `take` wants no more of it.
///
/// # Errors
/// As [`call`].
pub async fn stream(
    request: Request,
    time: Duration,
    limit: usize,
    mut take: impl AsyncFnMut(Vec<u8>) -> bool,
) -> Result<Head, CallError> {
    within(time, async |signal| {
        let mut response =
            Fetch::Request(request).send_with_signal(&signal).await.map_err(|_| CallError::Connection)?;
        let head = Head::of(&response);
        let (200, Ok(mut body)) = (head.status, response.stream()) else { return Ok(head) };
        let mut read = 0_usize;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|_| CallError::Connection)?;
            read = read.saturating_add(piece.len());
            if read > limit {
                return Err(CallError::TooLarge);
            }
            if !take(piece).await {
                break;
            }
        }
        Ok(head)
    })
    .await
}

pub(crate) async fn within<T>(
    time: Duration,
    exchange: impl AsyncFnOnce(AbortSignal) -> Result<T, CallError>,
) -> Result<T, CallError> {
    let controller = AbortController::default();
    let exchange = Box::pin(exchange(controller.signal()));
    match select(exchange, pin!(crate::sleep(time))).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => {
            controller.abort();
            Err(CallError::TimedOut)
        }
    }
}

/// Reads a whole answer, no more than `limit` bytes of it.
pub(crate) async fn answer(mut response: Response, limit: usize) -> Result<Answer, CallError> {
    let Head { status, retry_after } = Head::of(&response);
    let body = match response.stream() {
        Ok(stream) => read(stream, limit, |_, _| true).await.map_err(|error| match error {
            BodyError::TooLarge(_) => CallError::TooLarge,
            _ => CallError::Connection,
        })?,
        Err(_) => Vec::new(),
    };
    Ok(Answer { status, body, retry_after })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that brings a short body at this time.
    fn begin(by: &str, now_ms: Millis) -> Option<Held> {
        let held = Held::with(by, None, BESIDE, now_ms)?;
        held.take(0, SHORT, now_ms).then_some(held)
    }

    #[test]
    fn short_bodies_of_one_client_are_bounded_and_leave_others_theirs() {
        let held: Vec<Held> = std::iter::from_fn(|| begin("a", 1)).collect();
        assert_eq!(held.len(), MAX_SHORT_BY_ONE / (BESIDE + SHORT));
        assert!(begin("b", 1).is_some());
        drop(held);
        let long = begin("a", 1).unwrap();
        assert!(long.take(SHORT, MAX_HELD_BY_ONE, 1), "the rest counts for itself, however it arrives");
        assert!(!long.take(SHORT, 1, 1));
        drop(long);
        HELD.with_borrow(|held| assert!(held.0.is_empty(), "{held:?}"));
    }

    #[test]
    fn an_account_has_a_part_of_its_networks() {
        let hold = |by, account| Held::with(by, account, BESIDE, 1);
        let held: Vec<Held> = std::iter::from_fn(|| hold("d", Some("one"))).collect();
        assert_eq!(held.len(), MAX_BY_ACCOUNT / BESIDE);
        assert!(hold("d", Some("other")).is_some());
        assert!(hold("d", None).is_some());
    }

    #[test]
    fn what_the_runtime_cut_off_does_not_count_for_ever() {
        std::iter::from_fn(|| begin("c", 1)).for_each(std::mem::forget);
        assert!(begin("c", COUNTS_MS).is_none());
        assert!(begin("c", COUNTS_MS + 1).is_some());
    }
}
