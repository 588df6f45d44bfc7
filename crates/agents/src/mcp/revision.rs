//! Determines the protocol revision of a request.
//!
//! ```text
//!   initialize, with protocolVersion               a handshake of 2025-11-25 or earlier, whatever the headers say
//!   header   _meta                                 (MCP-Protocol-Version, io.modelcontextprotocol/protocolVersion)
//!   absent   absent                                2025-03-26, which had no header
//!   2025-..  absent                                the header's revision
//!   v        v                                     revision v
//!   2026-..  absent                                error -32602: a required field is missing
//!   v        w, or absent beside a _meta           error -32020
//!   unknown  absent or the same                    error -32022
//! ```

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::message::{RpcCode, RpcError, RpcRequest};

/// Name of the member of `_meta` with the request's protocol revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Name of the member of `_meta` with the client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A supported revision of the MCP protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// Revision 2025-03-26, the first with Streamable HTTP.
    V20250326,
    /// Revision 2025-06-18, which adds structured content.
    V20250618,
    /// Revision 2025-11-25, the last with a handshake.
    V20251125,
    /// Revision 2026-07-28, which is stateless: every request carries its revision and the client's capabilities.
    V20260728,
}

impl Revision {
    /// List of all supported revisions, newest first.
    pub const ALL: [Self; 4] = [Self::V20260728, Self::V20251125, Self::V20250618, Self::V20250326];

    /// Returns the revision's date, which names it in the protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    /// Returns the supported revision with this name, or `None`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Returns whether this revision has no handshake, so that every request repeats the revision and the client's
    /// capabilities.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V20260728)
    }

    /// Returns the revision to use after a handshake that requests `name`: the requested revision if it is supported
    /// and has a handshake, otherwise the newest revision with a handshake.
    #[must_use]
    pub fn for_handshake(name: &str) -> Self {
        Self::named(name).filter(|revision| !revision.is_stateless()).unwrap_or(Self::V20251125)
    }
}

/// HTTP headers that repeat parts of the message; `None` for a missing header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Header `MCP-Protocol-Version`.
    pub protocol_version: Option<String>,
    /// Header `Mcp-Method`.
    pub method: Option<String>,
    /// Header `Mcp-Name`.
    pub name: Option<String>,
}

impl Headers {
    /// Returns whether the body may be a batch. Only MCP 2025-03-26 allows batches; a request without a version header
    /// counts as this revision.
    #[must_use]
    pub fn allow_batch(&self) -> bool {
        self.protocol_version.as_deref().is_none_or(|version| version == Revision::V20250326.as_str())
    }
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

/// Determines the protocol revision of a request by the table in this module's documentation.
///
/// # Errors
/// Returns the errors listed in the table. For 2026-07-28, also returns an error if other required headers or `_meta`
/// fields are missing.
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
        // Only the stateless revisions have this method, and they require the version in `_meta`.
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

/// Decodes a header's value, or returns `None` if it is malformed. Characters that headers cannot contain are encoded
/// as `=?base64?...?=`.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~')).then(|| value.to_owned()),
    }
}
