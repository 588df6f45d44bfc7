//! HTTP requests in both directions, with limits on size and time.

use std::time::Duration;

use futures_util::StreamExt;
use worker::{AbortController, AbortSignal, ByteStream, Fetch, Fetcher, Request, Response};

use crate::{client::client, semaphore::Permit, serve};

/// Memory in bytes that a waiting request reserves in addition to its body.
pub const REQUEST_OVERHEAD: usize = 16 << 10;
/// Timeout for receiving a body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// `Retry-After` for a request that was rejected because the isolate's memory is used up, in seconds.
pub const RETRY_MEMORY_SECONDS: u32 = 5;

/// Reason why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body exceeds the maximum size, given in bytes. The rest of the body was not read.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// The connection broke while the body was received.
    #[error("the body could not be read")]
    Broken,
    /// The body did not arrive completely in time.
    #[error("the body did not arrive within {} seconds", BODY_TIME.as_secs())]
    Slow,
    /// The client, or all clients together, already hold as much of the isolate's memory as they may.
    #[error("the service is busy with other requests: try again in {RETRY_MEMORY_SECONDS} seconds")]
    OutOfMemory,
}

/// Reads a request's body of at most `limit` bytes.
///
/// # Errors
/// Returns [`BodyError`]. A body whose declared length exceeds the limit is rejected without being read.
pub async fn read_request(request: &serve::Request, limit: usize) -> Result<Vec<u8>, BodyError> {
    Ok(hold_request(request, limit).await?.0)
}

/// Reads a request's body like [`read_request`], for requests that keep the body while they wait. The returned permit
/// counts the body's memory against the client's limit until it is dropped.
///
/// # Errors
/// See [`read_request`].
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

/// Reserves memory for serving a request. The memory counts against the client's limit until the permit is dropped.
///
/// # Errors
/// [`BodyError::OutOfMemory`] if the client, or all clients together, would exceed their limit.
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

/// A response from another server.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// The header `Retry-After` in seconds; `None` if it is missing or has another form.
    pub retry_after: Option<u64>,
}

/// Reason why another server's response could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There was no answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The connection failed or broke.
    #[error("the connection failed")]
    Connection,
    /// The answer has more bytes than allowed.
    #[error("the answer is too large")]
    TooLarge,
}

/// Sends a request and reads the whole answer, with limits on time and size.
///
/// # Errors
/// Returns [`CallError`]. If the request writes, it may or may not have taken effect.
pub async fn call(request: Request, time: Duration, limit: usize) -> Result<Answer, CallError> {
    within(time, async |signal| {
        let response = Fetch::Request(request).send_with_signal(&signal).await.map_err(|_| CallError::Connection)?;
        answer(response, limit).await
    })
    .await
}

/// Sends a request to another worker over its service binding, like [`call`].
///
/// # Errors
/// See [`call`]. The other worker finishes its work even if this call times out.
pub async fn ask(service: &Fetcher, request: Request, time: Duration, limit: usize) -> Result<Answer, CallError> {
    within(time, async |_| {
        answer(service.fetch_request(request).await.map_err(|_| CallError::Connection)?, limit).await
    })
    .await
}

/// Status and headers of a response.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub status: u16,
    /// The header `Retry-After` in seconds; `None` if it is missing or has another form.
    pub retry_after: Option<u64>,
}

impl Head {
    fn of(response: &Response) -> Self {
        let retry_after = response.headers().get("retry-after").ok().flatten().and_then(|text| text.parse().ok());
        Self { status: response.status_code(), retry_after }
    }
}

/// Sends a request and returns the status of its response. The body is not read, whatever its length.
///
/// # Errors
/// [`CallError::TimedOut`] or [`CallError::Connection`]. If the request writes, it may or may not have taken effect.
pub async fn head(request: Request, time: Duration) -> Result<Head, CallError> {
    within(time, async |signal| {
        let mut response =
            Fetch::Request(request).send_with_signal(&signal).await.map_err(|_| CallError::Connection)?;
        // A stream that is dropped is cancelled, which frees the connection.
        drop(response.stream());
        Ok(Head::of(&response))
    })
    .await
}

/// Sends a request and passes the body of a 200 response to `take` in chunks as it arrives, until `take` returns
/// `false`.
///
/// # Errors
/// See [`call`].
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

/// Reads a whole response of at most `limit` bytes.
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
