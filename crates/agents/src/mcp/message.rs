//! Parses JSON-RPC 2.0 messages: one per body, or in MCP 2025-03-26 a batch.

use cardano::json::{MAX_VALUES, has_more_values};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// Maximum size of a message, in bytes. A payment with its transaction takes up to about 70 kB in base64.
pub const MAX_MESSAGE_BYTES: usize = 128 * 1_024;
/// Maximum number of messages in a batch. Each tool call in a batch counts against the caller's rate limits.
const MAX_BATCH: usize = 10;
/// Maximum length of a request's id in characters.
const MAX_ID: usize = 256;

/// A JSON-RPC message from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A request, to which the server responds.
    Request(RpcRequest),
    /// A notification, to which the server does not respond.
    Notification,
    /// A response. It is accepted but ignored, because the server never sends requests.
    Response,
}

/// The messages of an HTTP body.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub messages: Vec<Message>,
    /// Whether the body is a JSON array of messages. The answer is an array then, too.
    pub is_batch: bool,
}

impl Body {
    /// Returns the body's only message, or `None` if the body is a batch.
    #[must_use]
    pub fn alone(&self) -> Option<&Message> {
        self.messages.first().filter(|_| !self.is_batch)
    }

    /// Returns the first request that calls a tool whose name satisfies `predicate`, or `None`.
    #[must_use]
    pub fn calling(&self, predicate: impl Fn(&str) -> bool) -> Option<&RpcRequest> {
        self.messages.iter().find_map(|message| message.calling(&predicate))
    }
}

/// A JSON-RPC request.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcRequest {
    /// Id of the request, a string or an integer, which the response repeats.
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
}

impl Message {
    /// Returns whether the message calls a tool or reads listings, so that it counts against the caller's rate limits.
    #[must_use]
    pub fn asks_shop(&self) -> bool {
        let asking = ["tools/call", "resources/list", "resources/read"];
        matches!(self, Self::Request(request) if asking.contains(&request.method.as_str()))
    }

    /// Returns the request if it calls a tool whose name satisfies `predicate`, or else `None`.
    #[must_use]
    pub fn calling(&self, predicate: impl Fn(&str) -> bool) -> Option<&RpcRequest> {
        let Self::Request(request) = self else { return None };
        let named = request.params.get("name").and_then(Value::as_str).is_some_and(predicate);
        (request.method == "tools/call" && named).then_some(request)
    }
}

/// Error codes of JSON-RPC and of MCP 2026-07-28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcCode {
    /// The body is not JSON.
    ParseError = -32_700,
    /// The body is not a JSON-RPC message.
    InvalidRequest = -32_600,
    /// The method is unknown.
    MethodNotFound = -32_601,
    /// The parameters have the wrong shape.
    InvalidParams = -32_602,
    /// The server failed.
    InternalError = -32_603,
    /// The HTTP headers contradict the body.
    HeaderMismatch = -32_020,
    /// The protocol revision is not supported.
    UnsupportedProtocolVersion = -32_022,
}

/// A JSON-RPC error with the HTTP status of its response.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub status: u16,
    pub code: RpcCode,
    pub message: String,
    /// Additional data that the protocol requires for this error; `None` for most errors.
    pub data: Option<Value>,
}

/// Returns the members of a JSON object; an empty map for any other JSON value.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Creates an `invalid params` error, which is sent with HTTP status 200.
pub(super) fn invalid_params(text: &str) -> RpcError {
    RpcError::new(200, RpcCode::InvalidParams, text)
}

impl RpcError {
    /// Creates an error with an HTTP status, a JSON-RPC code and a message.
    #[must_use]
    pub fn new(status: u16, code: RpcCode, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    /// Builds the body of the error response. `id` is the request's id, or `None` if it could not be parsed.
    #[must_use]
    pub fn body(&self, id: Option<&Value>) -> String {
        let error = [("code", json!(self.code as i32)), ("message", json!(self.message))];
        let error: Value = error.into_iter().chain(self.data.clone().map(|data| ("data", data))).collect();
        match id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            None => json!({ "jsonrpc": "2.0", "error": error }),
        }
        .to_string()
    }
}

/// The members of a JSON-RPC message. Duplicate members are an error, because another parser could read a different
/// one.
#[derive(Deserialize)]
struct Raw {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    params: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Value>,
}

/// Deserialises a member that is present, so that `null` is distinguished from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Parses an HTTP body into messages. `version` is the header `MCP-Protocol-Version`.
///
/// # Errors
/// [`RpcError`] if the body is too large, has too many values, is not JSON, is not a message, or is a batch although
/// `allows_batch` is `false`.
pub fn parse(body: &[u8], allows_batch: bool) -> Result<Body, RpcError> {
    let invalid = |text: &str| RpcError::new(400, RpcCode::InvalidRequest, text);
    if body.len() > MAX_MESSAGE_BYTES {
        let text = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
        return Err(RpcError::new(413, RpcCode::InvalidRequest, text));
    }
    if has_more_values(body, MAX_VALUES) {
        return Err(invalid("a message has no more values than a call with its payment"));
    }
    let malformed = |error: serde_json::Error| {
        if error.is_data() {
            invalid("not a JSON-RPC 2.0 message: an object with jsonrpc, id, method and params (an object)")
        } else {
            RpcError::new(400, RpcCode::ParseError, "the body is not JSON")
        }
    };
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        let raw: Raw = serde_json::from_slice(body).map_err(malformed)?;
        return Ok(Body { messages: vec![message(raw)?], is_batch: false });
    }
    if !allows_batch {
        return Err(invalid("send one message per request: only MCP 2025-03-26 has batches"));
    }
    let raw: Vec<Raw> = serde_json::from_slice(body).map_err(malformed)?;
    if !(1..=MAX_BATCH).contains(&raw.len()) {
        return Err(invalid(&format!("a batch has 1 to {MAX_BATCH} messages")));
    }
    let messages = raw.into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
    let opens = |message: &Message| matches!(message, Message::Request(request) if request.method == "initialize");
    if messages.iter().any(opens) {
        return Err(invalid("initialize is never part of a batch"));
    }
    Ok(Body { messages, is_batch: true })
}

fn message(raw: Raw) -> Result<Message, RpcError> {
    let invalid = |text: &str| RpcError::new(400, RpcCode::InvalidRequest, text);
    if raw.jsonrpc != "2.0" {
        return Err(invalid("jsonrpc must be \"2.0\""));
    }
    match (raw.method, raw.id) {
        (Some(method), Some(id)) if is_id(&id) => {
            Ok(Message::Request(RpcRequest { id, method, params: raw.params.unwrap_or_default() }))
        }
        (Some(_), Some(_)) => Err(invalid("id must be a string or a whole number")),
        (Some(_), None) => Ok(Message::Notification),
        (None, Some(_)) if raw.result.is_some() != raw.error.is_some() => Ok(Message::Response),
        _ => Err(invalid("method is missing")),
    }
}

/// Returns whether a value is a valid request id or progress token: a string or an integer.
pub(super) fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.chars().count() <= MAX_ID,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}
