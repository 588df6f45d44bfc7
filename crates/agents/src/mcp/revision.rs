//! Determines the protocol revision of a request.
//!
//! ```text
//!   initialize, with protocolVersion               the handshake of 2025-11-25 and before, whatever else is said
//!   header   _meta                                 (MCP-Protocol-Version, io.modelcontextprotocol/protocolVersion)
//!   absent   absent                                2025-03-26, which had no header
//!   2025-..  absent                                that one
//!   v        v                                     that one
//!   2026-..  absent                                -32602: a required field is missing
//!   v        w, or absent beside a _meta           -32020
//!   unknown  absent or the same                    -32022
//! ```

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::message::{RpcCode, RpcError, RpcRequest};

/// `_meta`: revision of the request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta`: capabilities of the client.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A supported revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// First revision with Streamable HTTP.
    V20250326,
    /// Adds structured content.
    V20250618,
    /// Last revision with a handshake.
    V20251125,
    /// Stateless: every request carries its revision and capabilities.
    V20260728,
}

impl Revision {
    /// All revisions, newest first.
    pub const ALL: [Self; 4] = [Self::V20260728, Self::V20251125, Self::V20250618, Self::V20250326];

    /// Returns the revision's name in the protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    /// Returns the revision with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Returns whether every request carries its revision and capabilities.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V20260728)
    }

    /// Returns the revision that a handshake for this name settles on: the named one, or the newest with a handshake.
    #[must_use]
    pub fn for_handshake(name: &str) -> Self {
        Self::named(name).filter(|revision| !revision.is_stateless()).unwrap_or(Self::V20251125)
    }
}

/// Headers that repeat parts of the message, as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// `MCP-Protocol-Version`.
    pub protocol_version: Option<String>,
    /// `Mcp-Method`.
    pub method: Option<String>,
    /// `Mcp-Name`.
    pub name: Option<String>,
}

fn mismatch(message: impl Into<String>) -> RpcError {
    RpcError::new(400, RpcCode::HeaderMismatch, message)
}

fn unsupported(requested: &str) -> RpcError {
    let data = json!({ "supported": Revision::ALL.map(Revision::as_str), "requested": requested });
    let error = RpcError::new(400, RpcCode::UnsupportedProtocolVersion, "Unsupported protocol version");
    RpcError { data: Some(data), ..error }
}

fn missing(field: &str) -> RpcError {
    RpcError::new(400, RpcCode::InvalidParams, format!("params._meta[\"{field}\"] is missing or of the wrong type"))
}

/// Determines the revision of a request.
///
/// # Errors
/// See the table above. For 2026-07-28, also if other required headers or `_meta` fields are missing.
pub fn of(headers: &Headers, request: &RpcRequest) -> Result<Revision, RpcError> {
    if request.method == "initialize" && request.params.contains_key("protocolVersion") {
        return Ok(Revision::V20251125);
    }
    let no_meta = Map::new();
    let meta = match request.params.get("_meta") {
        None => &no_meta,
        Some(Value::Object(meta)) => meta,
        Some(_) => return Err(RpcError::new(400, RpcCode::InvalidParams, "params._meta must be an object")),
    };
    let in_body = match meta.get(META_VERSION) {
        None => None,
        Some(version) => Some(version.as_str().ok_or_else(|| missing(META_VERSION))?),
    };
    let revision = match (headers.protocol_version.as_deref(), in_body) {
        (None, Some(_)) => return Err(mismatch("the header MCP-Protocol-Version is missing")),
        (Some(header), Some(body)) if header != body => {
            return Err(mismatch("MCP-Protocol-Version differs from the version in params._meta"));
        }
        // Only the stateless revisions have this method, so a client that calls it speaks one of them.
        (None, None) if request.method == "server/discover" => return Err(missing(META_VERSION)),
        (None, None) => Revision::V20250326,
        (Some(version), _) => Revision::named(version).ok_or_else(|| unsupported(version))?,
    };
    if revision.is_stateless() {
        stateless(headers, request, meta, in_body)?;
    }
    Ok(revision)
}

fn stateless(
    headers: &Headers,
    request: &RpcRequest,
    meta: &Map<String, Value>,
    in_body: Option<&str>,
) -> Result<(), RpcError> {
    if in_body.is_none() {
        return Err(missing(META_VERSION));
    }
    if !meta.get(META_CAPABILITIES).is_some_and(Value::is_object) {
        return Err(missing(META_CAPABILITIES));
    }
    if headers.method.as_ref() != Some(&request.method) {
        return Err(mismatch("the header Mcp-Method is missing or differs from the method in the body"));
    }
    let mirrored = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let in_body = request.params.get(mirrored).and_then(Value::as_str);
    let in_body = in_body
        .ok_or_else(|| RpcError::new(400, RpcCode::InvalidParams, format!("params.{mirrored} must be a string")))?;
    let in_header = headers.name.as_deref().and_then(decoded);
    if in_header.as_deref() != Some(in_body) {
        return Err(mismatch(format!("the header Mcp-Name is missing or differs from params.{mirrored}")));
    }
    Ok(())
}

/// Decodes a header's value. The form `=?base64?...?=` carries characters that headers cannot.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~')).then(|| value.to_owned()),
    }
}
