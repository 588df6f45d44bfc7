//! Requests from and to outside, bounded in bytes and time.

use std::time::Duration;

use futures_util::{
    StreamExt,
    future::{Either, select},
};
use worker::{AbortController, AbortSignal, ByteStream, Delay, Fetch, Request, Response};

use crate::serve;

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed: the rest was not read.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// The connection broke while it was read.
    #[error("the body could not be read")]
    Broken,
}

/// Reads a request's body, no more than `limit` bytes of it.
///
/// # Errors
/// Too large (by its declared length, or as it arrives), or broken.
pub async fn read_request(request: &mut serve::Request, limit: usize) -> Result<Vec<u8>, BodyError> {
    let declared = request.headers().get("content-length").ok().flatten();
    if declared.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge(limit));
    }
    match request.stream() {
        Ok(stream) => read(stream, limit).await,
        // A request without a body has no stream.
        Err(_) => Ok(Vec::new()),
    }
}

async fn read(mut stream: ByteStream, limit: usize) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| BodyError::Broken)?;
        if body.len().saturating_add(chunk.len()) > limit {
            return Err(BodyError::TooLarge(limit));
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
    mut take: impl FnMut(Vec<u8>) -> bool,
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
            if !take(piece) {
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
    match select(exchange, Delay::from(time)).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => {
            controller.abort();
            Err(CallError::TimedOut)
        }
    }
}

/// Reads a whole answer, no more than `limit` bytes of it.
///
/// # Errors
/// Too large, or broken.
pub async fn answer(mut response: Response, limit: usize) -> Result<Answer, CallError> {
    let Head { status, retry_after } = Head::of(&response);
    let body = match response.stream() {
        Ok(stream) => read(stream, limit).await.map_err(|error| match error {
            BodyError::TooLarge(_) => CallError::TooLarge,
            BodyError::Broken => CallError::Connection,
        })?,
        Err(_) => Vec::new(),
    };
    Ok(Answer { status, body, retry_after })
}
