//! Answers MCP messages.

use serde_json::{Map, Value, json};

use super::{
    message::{Body, Message, RpcCode, RpcError, RpcRequest, invalid_params, object},
    resources,
    revision::{Headers, Revision},
    shop::Shelf,
    tool::{ToolResult, Toolset},
};

/// Time in ms for which clients may cache the server's description and its lists of tools. Both change only when a new
/// version is deployed.
const TTL_MS: u32 = 60 * 60 * 1_000;
/// Time in ms for which clients may cache the catalogue of listings.
const FOR_SALE_TTL_MS: u32 = 60 * 1_000;

/// An HTTP answer to an MCP body: a status and an optional JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcAnswer {
    pub status: u16,
    /// JSON body; `None` for a 202, which answers notifications.
    pub body: Option<String>,
}

impl From<RpcError> for RpcAnswer {
    fn from(error: RpcError) -> Self {
        Self { status: error.status, body: Some(error.body(None)) }
    }
}

/// Answers the MCP messages of an HTTP body: a single message, or a batch whose messages are processed in order.
pub async fn answer(tools: &impl Toolset, headers: &Headers, body: Body) -> RpcAnswer {
    let Body { messages, is_batch } = body;
    let mut answers = Vec::with_capacity(messages.len());
    for message in messages {
        answers.push(answer_one(tools, headers, message).await);
    }
    if !is_batch && let Some(answer) = answers.pop() {
        return answer;
    }
    let bodies: Vec<String> = answers.into_iter().filter_map(|answer| answer.body).collect();
    if bodies.is_empty() {
        return RpcAnswer { status: 202, body: None };
    }
    RpcAnswer { status: 200, body: Some(format!("[{}]", bodies.join(","))) }
}

async fn answer_one(tools: &impl Toolset, headers: &Headers, message: Message) -> RpcAnswer {
    match message {
        Message::Request(request) => {
            let id = &request.id;
            let (status, body) = match respond(tools, headers, &request).await {
                Ok((tool, fields)) => (200, written(id, tool.as_ref(), fields)),
                Err(error) => (error.status, error.body(Some(id))),
            };
            RpcAnswer { status, body: Some(body) }
        }
        Message::Notification | Message::Response => RpcAnswer { status: 202, body: None },
    }
}

/// Builds the JSON-RPC response. The result of a tool may be long, so its JSON is inserted as text and not parsed
/// again.
fn written(id: &Value, tool: Option<&ToolResult>, fields: Map<String, Value>) -> String {
    let fields = Value::Object(fields).to_string();
    let result = match (tool, fields.strip_prefix('{').unwrap_or_default()) {
        (None, _) => fields,
        (Some(tool), "}") => format!("{{{}}}", tool.members()),
        (Some(tool), fields) => format!("{{{},{fields}", tool.members()),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

/// Processes a request. Returns the tool's result (`None` if the request calls no tool) and the other members of the
/// response's `result`.
async fn respond<E: Toolset>(
    tools: &E,
    headers: &Headers,
    request: &RpcRequest,
) -> Result<(Option<ToolResult>, Map<String, Value>), RpcError> {
    let is_stateless = super::revision::of(headers, request)?.is_stateless();
    let (shelf, params) = (tools.shelf(), &request.params);
    let kept = |result, ttl| if is_stateless { cacheable(result, ttl) } else { result };
    let mut tool = None;
    let mut fields = match (request.method.as_str(), is_stateless) {
        ("initialize", false) => return Ok((None, initialize(tools, request)?)),
        ("ping", false) => Map::new(),
        ("server/discover", true) => kept(discovery::<E>(), TTL_MS),
        ("tools/list", _) => kept(tools_list::<E>(request)?, TTL_MS),
        ("tools/call", _) => {
            let called = tool.insert(tools_call(tools, request).await?);
            let meta = std::mem::take(&mut called.meta);
            if meta.is_empty() { Map::new() } else { Map::from_iter([("_meta".to_owned(), meta.into())]) }
        }
        ("resources/list", _) => kept(resources::list(shelf, params).await?, FOR_SALE_TTL_MS),
        ("resources/templates/list", _) => {
            one_page(request)?;
            kept(resources::templates(shelf), TTL_MS)
        }
        ("resources/read", _) => kept(resources::read(shelf, params).await?, FOR_SALE_TTL_MS),
        _ => {
            let status = if is_stateless { 404 } else { 200 };
            return Err(RpcError::new(status, RpcCode::MethodNotFound, "Method not found"));
        }
    };
    if is_stateless {
        fields.insert("resultType".into(), "complete".into());
        if let Value::Object(meta) = fields.entry("_meta").or_insert_with(|| json!({})) {
            meta.insert("io.modelcontextprotocol/serverInfo".into(), server_info(shelf));
        }
    }
    Ok((tool, fields))
}

fn server_info(shelf: &impl Shelf) -> Value {
    let origin = shelf.origin();
    json!({
        "name": "surety",
        "title": "Surety",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Design prompts for tADA on Cardano's preprod network, with buyer protection",
        "websiteUrl": origin,
        "icons": [{ "src": format!("{origin}{}", pages::asset::ICON), "mimeType": "image/svg+xml", "sizes": ["any"] }],
    })
}

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {} })
}

fn cacheable(mut result: Map<String, Value>, ttl_ms: u32) -> Map<String, Value> {
    result.insert("ttlMs".into(), ttl_ms.into());
    result.insert("cacheScope".into(), "public".into());
    result
}

fn initialize<E: Toolset>(tools: &E, request: &RpcRequest) -> Result<Map<String, Value>, RpcError> {
    let version = request.params.get("protocolVersion").and_then(Value::as_str);
    let version = version.ok_or_else(|| invalid_params("params.protocolVersion must be a string"))?;
    Ok(object(json!({
        "protocolVersion": Revision::for_handshake(version).as_str(),
        "capabilities": capabilities(),
        "serverInfo": server_info(tools.shelf()),
        "instructions": E::INSTRUCTIONS,
    })))
}

fn discovery<E: Toolset>() -> Map<String, Value> {
    object(json!({
        "supportedVersions": Revision::ALL.map(Revision::as_str),
        "capabilities": capabilities(),
        "instructions": E::INSTRUCTIONS,
    }))
}

/// Returns an error if the request contains a pagination cursor, because the requested list has only one page.
fn one_page(request: &RpcRequest) -> Result<(), RpcError> {
    match request.params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(invalid_params("Unknown cursor: the list has one page")),
    }
}

fn tools_list<E: Toolset>(request: &RpcRequest) -> Result<Map<String, Value>, RpcError> {
    one_page(request)?;
    let tools: Value = serde_json::from_str(E::TOOLS)
        .map_err(|_| RpcError::new(200, RpcCode::InternalError, "the list of tools cannot be read"))?;
    Ok(object(json!({ "tools": tools })))
}

fn tool_names<E: Toolset>(_: &E) -> Vec<&'static str> {
    E::declared().into_iter().map(|tool| tool.name).collect()
}

async fn tools_call(tools: &impl Toolset, request: &RpcRequest) -> Result<ToolResult, RpcError> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| invalid_params("params.name must be a string"))?;
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(invalid_params("params.arguments must be an object")),
    };
    let no_meta = Map::new();
    let meta = request.params.get("_meta").and_then(Value::as_object).unwrap_or(&no_meta);
    let result = tools.call(name, arguments, meta).await;
    result.ok_or_else(|| invalid_params(&format!("Unknown tool. There are: {}", tool_names(tools).join(", "))))
}
