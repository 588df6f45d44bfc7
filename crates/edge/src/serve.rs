//! Converts requests from JavaScript and responses to JavaScript. A response crosses the border in one call, with all
//! its headers, whereas the `worker` crate makes one call for each header.
//!
//! ```text
//! entry.js ── request, method, url ──> serve ──> the worker's future, polled once
//!          <── Response ─────────────── ready     answered from memory at once, without a promise
//!          <── a promise of one ─────── pending
//! ```

use std::{
    borrow::Cow,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use futures_util::TryStream;
use js_sys::Uint8Array;
use url::Url;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;
use worker::{ByteStream, Error, Headers, ResponseBody, Result, console_error};

#[wasm_bindgen]
extern "C" {
    /// Creates a `Response` in entry.js with a text as its body. `headers` has one line `name:value` for each header.
    #[wasm_bindgen(js_namespace = ["globalThis", "surety"], js_name = respond)]
    fn respond_text(status: u16, headers: &str, body: &str) -> JsValue;
    /// Creates a `Response` in entry.js like `respond_text`, with a body of bytes, a stream, or null.
    #[wasm_bindgen(js_namespace = ["globalThis", "surety"], js_name = respond)]
    fn respond_value(status: u16, headers: &str, body: &JsValue) -> JsValue;
}

/// Response header with the request's unique id, which its log line contains too.
pub const REQUEST_ID: &str = "x-request-id";

/// A request, as received from entry.js.
#[derive(Debug)]
pub struct Request {
    raw: web_sys::Request,
    method: String,
    url: String,
}

impl Request {
    /// Wraps the runtime's request. `method` and `url` are its properties, which entry.js has read already.
    #[must_use]
    pub fn new(raw: web_sys::Request, method: String, url: String) -> Self {
        Self { raw, method, url }
    }

    /// Returns the method, in upper case.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the path as it is in the URL, with percent-encoding.
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.url.get(self.path_start()..).filter(|path| !path.is_empty()).unwrap_or("/");
        path.find(['?', '#']).and_then(|end| path.get(..end)).unwrap_or(path)
    }

    /// Returns the query as it is in the URL, without the question mark; `None` if the URL has no query.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        let (before, _) = self.url.split_once('#').unwrap_or((&self.url, ""));
        before.split_once('?').map(|(_, query)| query)
    }

    /// Returns the origin: `https://host`, with a port if it is not the default.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.url.get(..self.path_start()).unwrap_or_default()
    }

    /// Returns the index at which the path begins. The runtime's URLs always have a path.
    fn path_start(&self) -> usize {
        let host = self.url.find("://").map_or(0, |at| at.saturating_add(3));
        let path = self.url.get(host..).and_then(|rest| rest.find('/'));
        path.map_or(self.url.len(), |path| host.saturating_add(path))
    }

    /// Parses the request's URL.
    ///
    /// # Errors
    /// Returns an error if the runtime provided an invalid URL.
    pub fn url(&self) -> Result<Url> {
        Url::parse(&self.url).map_err(|error| Error::RustError(error.to_string()))
    }

    /// Returns the request's headers.
    #[must_use]
    pub fn headers(&self) -> Headers {
        Headers(self.raw.headers())
    }

    /// Returns the runtime's request object.
    #[must_use]
    pub const fn inner(&self) -> &web_sys::Request {
        &self.raw
    }

    /// Returns whether the request may have a body, possibly an empty one.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.raw.body().is_some()
    }

    /// Returns the request's body as a stream.
    ///
    /// # Errors
    /// Returns an error if the request has no body.
    pub fn stream(&self) -> Result<ByteStream> {
        // The runtime's own `clone` would tee the body.
        worker::Request::from(Clone::clone(&self.raw)).stream()
    }
}

/// Headers of a response, in order, each name at most once.
#[derive(Clone, Debug, Default)]
struct HeaderList(Vec<(&'static str, String)>);

impl HeaderList {
    /// Sets a header. Returns `false` if the value contains a character that headers cannot contain.
    fn set(&mut self, name: &'static str, value: String) -> bool {
        if !value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
            return false;
        }
        match self.0.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
        true
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the headers as lines `name:value`.
    fn lines(&self) -> String {
        self.0.iter().flat_map(|(name, value)| [name, ":", value, "\n"]).collect()
    }
}

#[derive(Clone, Debug)]
enum Body {
    Empty,
    Text(Cow<'static, str>),
    /// A body that JavaScript holds: bytes, or a stream.
    Value(JsValue),
}

/// The UTF-8 bytes of a text, held by JavaScript so that they can be sent in many responses without being copied from
/// WebAssembly and encoded each time.
#[derive(Clone, Debug)]
pub struct JsText(Uint8Array);

impl JsText {
    /// Copies a Rust string to JavaScript.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Uint8Array::from(text.as_bytes()))
    }

    /// Copies the text from JavaScript back to a Rust string.
    #[must_use]
    pub fn copy(&self) -> String {
        String::from_utf8(self.0.to_vec()).unwrap_or_default()
    }
}

/// A response, which [`serve`] converts to the runtime's `Response`.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    headers: HeaderList,
    body: Body,
}

impl Response {
    fn new(body: Body) -> Self {
        Self { status: 200, headers: HeaderList::default(), body }
    }

    fn typed(kind: &'static str, body: Body) -> Self {
        Self { headers: HeaderList(vec![("content-type", kind.to_owned())]), ..Self::new(body) }
    }

    /// Creates a 200 response with a plain text as its body.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::typed("text/plain; charset=utf-8", Body::Text(text.into()))
    }

    /// Creates a 200 response with a JSON text as its body.
    #[must_use]
    pub fn json(text: impl Into<Cow<'static, str>>) -> Self {
        Self::typed("application/json", Body::Text(text.into()))
    }

    /// Creates a 200 response whose body is a JSON text that JavaScript holds.
    #[must_use]
    pub fn js_json(text: &JsText) -> Self {
        Self::typed("application/json", Body::Value(text.0.clone().into()))
    }

    /// Creates a 200 response with these bytes as its body. `kind` is their media type.
    #[must_use]
    pub fn bytes(kind: &'static str, bytes: &[u8]) -> Self {
        Self::typed(kind, Body::Value(Uint8Array::from(bytes).into()))
    }

    /// Creates a response with this status and without a body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self::new(Body::Empty).with_status(status)
    }

    /// Creates a 200 response whose body is a stream of bytes.
    ///
    /// # Errors
    /// Returns an error if the runtime could not create a stream.
    pub fn from_stream<S>(stream: S) -> Result<Self>
    where
        S: TryStream + 'static,
        S::Ok: Into<Vec<u8>>,
        S::Error: Into<Error>,
    {
        match worker::Response::from_stream(stream)?.body() {
            ResponseBody::Stream(stream) => Ok(Self::new(Body::Value(stream.clone().into()))),
            ResponseBody::Empty | ResponseBody::Body(_) => Err(Error::RustError("a stream that is none".into())),
        }
    }

    /// Replaces the response's status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Sets a response header. Omits the header if its value contains a character that headers cannot contain, and logs
    /// that.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if !self.headers.set(name, value.into()) {
            console_error!("a header {name:?} that cannot be sent");
        }
        self
    }

    /// Replaces the response's body by a text.
    #[must_use]
    pub fn with_text(self, text: impl Into<Cow<'static, str>>) -> Self {
        Self { body: Body::Text(text.into()), ..self }
    }

    /// Removes the response's body.
    #[must_use]
    pub fn without_body(self) -> Self {
        Self { body: Body::Empty, ..self }
    }

    /// Returns the response's status.
    #[must_use]
    pub const fn status_code(&self) -> u16 {
        self.status
    }

    /// Returns the value of a response header, or `None` if it is not set.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    fn into_js(self) -> JsValue {
        let headers = self.headers.lines();
        match self.body {
            Body::Empty => respond_value(self.status, &headers, &JsValue::NULL),
            Body::Text(text) => respond_text(self.status, &headers, &text),
            Body::Value(value) => respond_value(self.status, &headers, &value),
        }
    }
}

/// Polls a request's future once. Returns a `Response` if the future is ready, else a promise of one.
///
/// If the future is not ready, `waits` decides whether the request may wait. `Ok` is a guard that is held until the
/// response is ready; `Err` is a response to send instead, and the future is dropped.
pub fn serve<H: 'static>(
    answer: impl Future<Output = Response> + 'static,
    waits: impl FnOnce() -> std::result::Result<H, Response>,
) -> JsValue {
    let mut answer: Pin<Box<dyn Future<Output = Response>>> = Box::pin(answer);
    // The waker may do nothing, because the promise polls a pending future again with a waker of its own.
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(response) => response.into_js(),
        Poll::Pending => match waits() {
            Err(instead) => instead.into_js(),
            Ok(held) => future_to_promise(async move {
                let response = answer.await;
                drop(held);
                Ok(response.into_js())
            })
            .into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_set_once_and_cannot_contain_line_breaks() {
        let mut headers = HeaderList::default();
        assert!(headers.set("ETag", "\"1\"".into()));
        assert!(headers.set("etag", "\"2\"".into()));
        assert_eq!(headers.get("ETAG"), Some("\"2\""));
        for value in ["x\ny: z", "x\r", "\0", "\u{1}", "\u{7f}", "é"] {
            assert!(!headers.set("a", value.into()), "{value:?}");
        }
        assert!(headers.set("allow", "GET".into()));
        assert_eq!(headers.lines(), "ETag:\"2\"\nallow:GET\n");
    }
}
