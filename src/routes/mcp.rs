//! `POST /mcp`, `POST /mcp/open`

use agents::{
    mcp::{
        self, dispatch,
        dispatch::{RpcAnswer, Toolset},
        message::{self, MAX_MESSAGE_BYTES, RpcCode, RpcError},
        open::OpenTools,
        revision::Headers,
        tools::OwnerTools,
    },
    oauth::grant,
};
use edge::{bearer::Bearer, http};
use worker::{Request, Response};

use crate::{
    app::App,
    error::ApiError,
    limits::Limiter,
    shop::{OpenCounter, OwnerShop},
};

/// A message of an agent whose owner signed in. Nothing is answered to anybody else, not even `initialize`: a client that
/// got an answer without a token would never ask for one.
pub async fn signed_in(app: &App, mut request: Request) -> Result<Response, ApiError> {
    if let Some(refusal) = stranger(app, &request)? {
        return Ok(refusal);
    }
    let authority = app.authority(&request)?;
    app.limit_client(Limiter::Session, &request).await?;
    let token = match Bearer::of(&request)? {
        Bearer::Token(token) => token,
        Bearer::Absent => return unauthorized(&authority.challenge(false)),
        Bearer::Malformed => return unauthorized(&authority.challenge(true)),
    };
    let Some(caller) = grant::caller(&app.database()?, &authority, &token, app.now_ms()).await? else {
        return unauthorized(&authority.challenge(true));
    };
    let body = http::read_request(&mut request, MAX_MESSAGE_BYTES).await?;
    let key = caller.grant.clone();
    let tools = OwnerTools(OwnerShop::new(app, &request, caller));
    respond(app, &request, &tools, &body, &key).await
}

/// A message of an agent with a wallet of its own.
pub async fn open(app: &App, mut request: Request) -> Result<Response, ApiError> {
    if let Some(refusal) = stranger(app, &request)? {
        return Ok(refusal);
    }
    let body = http::read_request(&mut request, MAX_MESSAGE_BYTES).await?;
    let key = crate::limits::client(&request)?;
    let tools = OpenTools(OpenCounter::new(app, &request));
    respond(app, &request, &tools, &body, &key).await
}

async fn respond(
    app: &App,
    request: &Request,
    tools: &impl Toolset,
    body: &[u8],
    key: &str,
) -> Result<Response, ApiError> {
    let message = match message::parse(body) {
        Ok(message) => message,
        Err(error) => return write(error.into()),
    };
    if message.calls_tool() {
        app.limit(Limiter::Tool, key).await?;
    }
    let header = |name| request.headers().get(name);
    let (version, method, name) = (header("mcp-protocol-version")?, header("mcp-method")?, header("mcp-name")?);
    let headers = Headers { protocol_version: version.as_deref(), method: method.as_deref(), name: name.as_deref() };
    write(dispatch::answer(tools, &headers, message).await)
}

fn write(answer: RpcAnswer) -> Result<Response, ApiError> {
    let Some(body) = answer.body else {
        return Ok(Response::empty()?.with_status(answer.status));
    };
    Ok(edge::answer::private_json(body)?.with_status(answer.status))
}

/// The refusal of a page that may not call us.
fn stranger(app: &App, request: &Request) -> Result<Option<Response>, ApiError> {
    let origin = request.headers().get("origin")?;
    let own = app.settings()?.base_url.as_deref().unwrap_or_default();
    if mcp::origin_allowed(origin.as_deref(), own) {
        return Ok(None);
    }
    let error = RpcError::new(403, RpcCode::InvalidRequest, "pages of this origin may not call the MCP endpoint");
    write(error.into()).map(Some)
}

fn unauthorized(challenge: &str) -> Result<Response, ApiError> {
    let body = r#"{"error":"sign in first: see the resource metadata in WWW-Authenticate"}"#;
    let mut response = edge::answer::private_json(body.to_owned())?.with_status(401);
    response.headers_mut().set("www-authenticate", challenge)?;
    Ok(response)
}
