//! Requests from and to outside, bounded in bytes and time.

use std::time::Duration;

use futures_util::StreamExt;
use worker::{AbortController, AbortSignal, ByteStream, Fetch, Fetcher, Request, Response};

use crate::{client::client, semaphore::Permit, serve};

/// Bytes that a request counts for while it waits, besides its body: its future, and room to grow.
pub const REQUEST_OVERHEAD: usize = 16 << 10;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Seconds after which there may be memory again.
pub const RETRY_MEMORY_SECONDS: u32 = 5;

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
    /// The isolate holds as much as it may, of this client's or of all clients'.
    #[error("the service is busy with other requests: try again in {RETRY_MEMORY_SECONDS} seconds")]
    OutOfMemory,
}

/// Reads a request's body, no more than `limit` bytes of it.
///
/// # Errors
/// Too large (by its declared length, or as it arrives), slow, broken, or beside too much else.
pub async fn read_request(request: &serve::Request, limit: usize) -> Result<Vec<u8>, BodyError> {
    Ok(hold_request(request, limit).await?.0)
}

/// [`read_request`] with a permit that counts for its client until it is dropped: for bodies that wait.
///
/// # Errors
/// As [`read_request`].
pub async fn hold_request(request: &serve::Request, limit: usize) -> Result<(Vec<u8>, Option<Permit>), BodyError> {
    let declared = request.headers().get("content-length").ok().flatten();
    if declared.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge(limit));
    }
    // A request without a body has no stream.
    let Ok(stream) = request.stream() else { return Ok((Vec::new(), None)) };
    let held = hold(request, 0)?;
    let body = crate::within(BODY_TIME, read(stream, limit, |bytes| held.grow(bytes))).await;
    Ok((body.ok_or(BodyError::Slow)??, Some(held)))
}

/// What a request takes in memory while it is served, so many bytes: they count for its client until this is dropped.
///
/// # Errors
/// Its client, or all together, hold as much as they may.
pub fn hold(request: &serve::Request, bytes: usize) -> Result<Permit, BodyError> {
    Permit::try_hold(&client(request).unwrap_or_default(), bytes).ok_or(BodyError::OutOfMemory)
}

async fn read(mut stream: ByteStream, limit: usize, mut take: impl FnMut(usize) -> bool) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| BodyError::Broken)?;
        if body.len().saturating_add(chunk.len()) > limit {
            return Err(BodyError::TooLarge(limit));
        }
        if !take(chunk.len()) {
            return Err(BodyError::OutOfMemory);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An answer from outside.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
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

/// [`call`] to another worker, over its service binding.
///
/// # Errors
/// As [`call`]. What it began goes on when the client has gone.
pub async fn ask(service: &Fetcher, request: Request, time: Duration, limit: usize) -> Result<Answer, CallError> {
    within(time, async |_| {
        answer(service.fetch_request(request).await.map_err(|_| CallError::Connection)?, limit).await
    })
    .await
}

/// What an answer begins with.
#[derive(Clone, Copy, Debug)]
pub struct Head {
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
    let answer = crate::within(time, exchange(controller.signal())).await;
    answer.unwrap_or_else(|| {
        controller.abort();
        Err(CallError::TimedOut)
    })
}

/// Reads a whole answer, no more than `limit` bytes of it.
pub(crate) async fn answer(mut response: Response, limit: usize) -> Result<Answer, CallError> {
    let Head { status, retry_after } = Head::of(&response);
    let body = match response.stream() {
        Ok(stream) => read(stream, limit, |_| true).await.map_err(|error| match error {
            BodyError::TooLarge(_) => CallError::TooLarge,
            _ => CallError::Connection,
        })?,
        Err(_) => Vec::new(),
    };
    Ok(Answer { status, body, retry_after })
}
