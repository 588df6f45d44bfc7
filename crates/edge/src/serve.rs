//! Requests and answers as they cross into the runtime and back. An answer crosses once, headers and all, where the
//! `worker` crate's types cross for each of them.
//!
//! ```text
//! entry.js ── request, method, url ──> serve ──> the worker's future, polled once
//!          <── Response ─────────────── ready     what is in memory is answered at once,
//!          <── a promise of one ─────── pending   without a promise
//! ```

use std::{
    borrow::Cow,
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use futures_util::TryStream;
use url::Url;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;
use worker::{ByteStream, Error, Headers, ResponseBody, Result, console_error};

#[wasm_bindgen]
extern "C" {
    /// entry.js keeps headers, lines `name:value`, under this index.
    #[wasm_bindgen(js_namespace = ["globalThis", "surety"], js_name = keep)]
    fn keep(index: u32, headers: &str);
    /// entry.js makes a `Response` of a status, the headers of this index, lines of others, and a text.
    #[wasm_bindgen(js_namespace = ["globalThis", "surety"], js_name = respond)]
    fn respond_text(status: u16, index: u32, own: &str, body: &str) -> JsValue;
    /// A response of bytes, a stream, a text that JavaScript keeps, or nothing.
    #[wasm_bindgen(js_namespace = ["globalThis", "surety"], js_name = respond)]
    fn respond_value(status: u16, index: u32, own: &str, body: &JsValue) -> JsValue;
}

/// A request's id, another in each answer.
pub const REQUEST_ID: &str = "x-request-id";
/// Headers that are kept, of so many characters each at most: a longer value is another in each answer.
const MAX_SHARED_HEADERS: usize = 64;
const MAX_SHARED_LENGTH: usize = 200;

/// A request that came in.
#[derive(Debug)]
pub struct Request {
    raw: web_sys::Request,
    method: String,
    url: String,
}

impl Request {
    /// The runtime's request, with what entry.js read of it.
    #[must_use]
    pub fn new(raw: web_sys::Request, method: String, url: String) -> Self {
        Self { raw, method, url }
    }

    /// Its method, in capitals.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Its path, as the URL spells it.
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.url.get(self.path_start()..).filter(|path| !path.is_empty()).unwrap_or("/");
        path.find(['?', '#']).and_then(|end| path.get(..end)).unwrap_or(path)
    }

    /// Its query, without the question mark, as the URL spells it.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        let (before, _) = self.url.split_once('#').unwrap_or((&self.url, ""));
        before.split_once('?').map(|(_, query)| query)
    }

    /// The origin that it was sent to: `https://host`, with a port where that is an unusual one.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.url.get(..self.path_start()).unwrap_or_default()
    }

    /// Where the path begins: the runtime's URLs have one, after the first slash that is not of the scheme's two.
    fn path_start(&self) -> usize {
        let host = self.url.find("://").map_or(0, |at| at.saturating_add(3));
        let path = self.url.get(host..).and_then(|rest| rest.find('/'));
        path.map_or(self.url.len(), |path| host.saturating_add(path))
    }

    /// Its whole URL.
    ///
    /// # Errors
    /// The runtime gave what is none.
    pub fn url(&self) -> Result<Url> {
        Url::parse(&self.url).map_err(|error| Error::RustError(error.to_string()))
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> Headers {
        Headers(self.raw.headers())
    }

    /// The runtime's own object.
    #[must_use]
    pub const fn inner(&self) -> &web_sys::Request {
        &self.raw
    }

    /// Whether it may have a body, be it an empty one.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.raw.body().is_some()
    }

    /// Its body.
    ///
    /// # Errors
    /// It has none.
    pub fn stream(&self) -> Result<ByteStream> {
        // Not the runtime's own `clone`, which splits the body in two.
        worker::Request::from(Clone::clone(&self.raw)).stream()
    }
}

/// Headers of an answer, in order, each name once.
#[derive(Clone, Debug, Default)]
struct HeaderList(Vec<(&'static str, String)>);

impl HeaderList {
    /// Sets a header, whatever it was before; `false` for a value that HTTP does not carry as it is.
    fn set(&mut self, name: &'static str, value: String) -> bool {
        if !value.is_ascii() || value.contains(['\n', '\r', '\0']) {
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

    /// Lines `name:value` of those that many answers have, and of those that are this answer's own.
    fn write(&self, common: &mut String, own: &mut String) {
        for (name, value) in &self.0 {
            let is_shared = value.len() <= MAX_SHARED_LENGTH && *name != REQUEST_ID;
            let text = if is_shared { &mut *common } else { &mut *own };
            text.extend([name, ":", value, "\n"]);
        }
    }
}

/// The headers that JavaScript keeps, lines each, each under its index.
///
/// Most answers have the same few again and again. Slots are given in turn: a new text replaces the one that was
/// kept there.
#[derive(Default)]
struct SharedHeaders {
    kept: Vec<String>,
    next: usize,
}

impl SharedHeaders {
    fn index(&mut self, lines: &str) -> u32 {
        // Seldom of equal length, so this compares next to nothing.
        let at = self.kept.iter().position(|kept| kept == lines).unwrap_or_else(|| self.keep(lines));
        u32::try_from(at).unwrap_or_default()
    }

    fn keep(&mut self, lines: &str) -> usize {
        let at = self.next;
        self.next = at.saturating_add(1) % MAX_SHARED_HEADERS;
        match self.kept.get_mut(at) {
            Some(before) => lines.clone_into(before),
            None => self.kept.push(lines.to_owned()),
        }
        keep(u32::try_from(at).unwrap_or_default(), lines);
        at
    }
}

#[derive(Clone, Debug)]
enum Body {
    Empty,
    Text(Cow<'static, str>),
    /// A JavaScript string, bytes, or a stream.
    Value(JsValue),
}

/// A text that JavaScript keeps: given out as often as needed, it is never copied into or out of this program again.
#[derive(Clone, Debug)]
pub struct KeptText(JsValue);

impl KeptText {
    /// Hands a text over to be kept.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(JsValue::from_str(text))
    }

    /// A copy of it.
    #[must_use]
    pub fn copy(&self) -> String {
        self.0.as_string().unwrap_or_default()
    }
}

/// An answer that is being sent.
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

    /// 200 with a plain text.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::typed("text/plain; charset=utf-8", Body::Text(text.into()))
    }

    /// 200 with a JSON text that is finished.
    #[must_use]
    pub fn json(text: impl Into<Cow<'static, str>>) -> Self {
        Self::typed("application/json", Body::Text(text.into()))
    }

    /// 200 with a JSON text that is kept.
    #[must_use]
    pub fn kept_json(text: &KeptText) -> Self {
        Self::typed("application/json", Body::Value(text.0.clone()))
    }

    /// 200 with bytes of a media type.
    #[must_use]
    pub fn bytes(kind: &'static str, bytes: &[u8]) -> Self {
        Self::typed(kind, Body::Value(js_sys::Uint8Array::from(bytes).into()))
    }

    /// A status, and nothing else.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self::new(Body::Empty).with_status(status)
    }

    /// 200 with bytes as they come.
    ///
    /// # Errors
    /// The runtime makes no stream.
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

    /// This response with another status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// This response with a header, whatever it was before. One that HTTP does not carry is left out, and the log says so.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if !self.headers.set(name, value.into()) {
            console_error!("a header {name:?} that cannot be sent");
        }
        self
    }

    /// This response with another text.
    #[must_use]
    pub fn with_text(self, text: impl Into<Cow<'static, str>>) -> Self {
        Self { body: Body::Text(text.into()), ..self }
    }

    /// This response without its body.
    #[must_use]
    pub fn without_body(self) -> Self {
        Self { body: Body::Empty, ..self }
    }

    /// Its status.
    #[must_use]
    pub const fn status_code(&self) -> u16 {
        self.status
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    fn into_js(self) -> JsValue {
        thread_local! {
            static LINES: RefCell<(String, String, SharedHeaders)> = RefCell::default();
        }
        LINES.with_borrow_mut(|(common, own, shared)| {
            common.clear();
            own.clear();
            self.headers.write(common, own);
            let index = shared.index(common);
            match self.body {
                Body::Empty => respond_value(self.status, index, own, &JsValue::NULL),
                Body::Text(text) => respond_text(self.status, index, own, &text),
                Body::Value(value) => respond_value(self.status, index, own, &value),
            }
        })
    }
}

/// Runs what answers a request: a `Response` where it does not wait, and a promise of one otherwise. `waits` says what
/// is kept meanwhile. Where no more may wait, it says what is answered instead, and what was begun is dropped.
pub fn serve<H: 'static>(
    answer: impl Future<Output = Response> + 'static,
    waits: impl FnOnce() -> std::result::Result<H, Response>,
) -> JsValue {
    let mut answer: Pin<Box<dyn Future<Output = Response>>> = Box::pin(answer);
    // A future that waits is polled again, with a waker that wakes it, as soon as this returns.
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
        for value in ["x\ny: z", "x\r", "\0", "é"] {
            assert!(!headers.set("a", value.into()), "{value:?}");
        }
        assert!(headers.set("PAYMENT-REQUIRED", "e".repeat(MAX_SHARED_LENGTH + 1)));
        let (mut common, mut own) = (String::new(), String::new());
        headers.write(&mut common, &mut own);
        assert_eq!(common, "ETag:\"2\"\n");
        assert_eq!(own, format!("PAYMENT-REQUIRED:{}\n", "e".repeat(MAX_SHARED_LENGTH + 1)));
    }
}
