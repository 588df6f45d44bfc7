//! `POST /mcp`, `POST /mcp/open`

use std::{pin::pin, time::Duration};

use agents::{
    mcp::{
        self,
        dispatch::{self, RpcAnswer},
        message::{self, MAX_MESSAGE_BYTES, Message, RpcCode, RpcError},
        open::OpenTools,
        progress::{self, ProgressToken},
        revision::Headers,
        tools::{OwnerTools, Tool},
    },
    oauth::grant::{self, Caller},
};
use cardano::json;
use edge::serve::{Request, Response};
use edge::{answer::private_json, bearer::Bearer, http, semaphore::Permit};
use futures_util::{
    future::{Either, select},
    stream::{self, StreamExt},
};

use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    mcp_adapter::{Counter, OwnerShop},
};

/// Seconds between two notifications of a call's progress.
const PROGRESS_S: u32 = 3;

/// A message of an agent whose owner signed in. Nothing is answered to others, not even `initialize`: a client that
/// got an answer without a token would never ask for one.
pub async fn signed_in(app: &App, request: Request) -> Result<Response, ApiError> {
    if let Some(refusal) = reject_foreign_origin(app, &request)? {
        return Ok(refusal);
    }
    let authority = app.authority(&request)?;
    let bearer = Bearer::of(&request)?;
    // First, by what the token says of itself: an agent beyond its own limit uses nothing of its network's.
    if let Bearer::Token(token) = &bearer
        && let Some(grant) = grant::named_by(&authority, token, app.now_ms())
    {
        app.limit(Counted::Message, &grant).await?;
    }
    app.limit_client(Counted::Session, &request).await?;
    let token = match bearer {
        Bearer::Token(token) => token,
        Bearer::Absent => return Ok(unauthorized(authority.challenge(false))),
        Bearer::Malformed => return Ok(unauthorized(authority.challenge(true))),
    };
    let Some(caller) = grant::caller(&app.database(), &authority, &token, app.now_ms()).await? else {
        return Ok(unauthorized(authority.challenge(true)));
    };
    app.line().note("wallet", &caller.account.wallet_address.to_string());
    respond(app, request, Visitor::Agent(Box::new(caller))).await
}

/// A message of an agent with a wallet of its own.
pub async fn open(app: &App, request: Request) -> Result<Response, ApiError> {
    if let Some(refusal) = reject_foreign_origin(app, &request)? {
        return Ok(refusal);
    }
    app.limit_client(Counted::Session, &request).await?;
    respond(app, request, Visitor::Anyone).await
}

/// Who sent a message, and so which tools there are.
enum Visitor {
    /// The agent of an account.
    Agent(Box<Caller>),
    /// A client with a wallet of its own, or none.
    Anyone,
}

/// A message that is being answered.
struct McpExchange {
    app: App,
    request: Request,
    visitor: Visitor,
    mirrored: Mirrored,
    /// What its client is counted for meanwhile.
    _held: Permit,
}

/// The headers that repeat what a message says.
struct Mirrored {
    version: Option<String>,
    method: Option<String>,
    name: Option<String>,
}

impl Mirrored {
    fn of(request: &Request) -> Result<Self, ApiError> {
        let header = |name| request.headers().get(name);
        let (version, method) = (header("mcp-protocol-version")?, header("mcp-method")?);
        Ok(Self { version, method, name: header("mcp-name")? })
    }

    fn headers(&self) -> Headers<'_> {
        let Self { version, method, name } = self;
        Headers { protocol_version: version.as_deref(), method: method.as_deref(), name: name.as_deref() }
    }
}

impl McpExchange {
    async fn answer(self, message: Message) -> RpcAnswer {
        let Self { app, request, visitor, mirrored, .. } = &self;
        let headers = mirrored.headers();
        match visitor {
            Visitor::Agent(caller) => {
                dispatch::answer(&OwnerTools(&OwnerShop::new(app, request, caller)), &headers, message).await
            }
            Visitor::Anyone => dispatch::answer(&OpenTools(&Counter { app, request }), &headers, message).await,
        }
    }
}

async fn respond(app: &App, mut request: Request, visitor: Visitor) -> Result<Response, ApiError> {
    let body = http::read_request(&mut request, MAX_MESSAGE_BYTES).await?;
    let message = match message::parse(&body) {
        Ok(message) => message,
        Err(error) => return Ok(write(error.into())),
    };
    if let Visitor::Agent(caller) = &visitor
        && !caller.scope.may_spend()
        && let Some(call) = message.calling(|name| Tool::named(name).is_some_and(Tool::spends))
    {
        let text = "the owner allowed this agent to read only; nothing was paid: to buy, ask for the scope mcp, and have the owner connect the agent again";
        let refusal = RpcError::new(403, RpcCode::InvalidRequest, text);
        let answer = write(RpcAnswer { status: 403, body: Some(refusal.body(Some(&call.id))) });
        return Ok(answer.with_header("www-authenticate", app.authority(&request)?.insufficient_scope()));
    }
    let (mirrored, accept) = (Mirrored::of(&request)?, request.headers().get("accept")?);
    let progress = ProgressToken::of(&message, &mirrored.headers(), accept.as_deref());
    // The message waits for as long as the call takes, not what it was read from; and a stream once its response is given.
    let overhead = if progress.is_some() { http::REQUEST_OVERHEAD } else { 0 };
    let bytes = json::weight(&body).saturating_add(overhead);
    let held = http::hold(&request, bytes)?;
    drop(body);
    if message.asks_shop() {
        match &visitor {
            Visitor::Agent(caller) => app.limit(Counted::Tool, &caller.grant).await?,
            Visitor::Anyone => app.limit_client(Counted::Tool, &request).await?,
        }
    }
    let exchange = McpExchange { app: app.for_tool_call(), request, visitor, mirrored, _held: held };
    match progress {
        Some(token) => stream(token, exchange.answer(message)),
        None => Ok(write(exchange.answer(message).await)),
    }
}

/// Tells every few seconds that the call is at work, and then its answer.
fn stream(token: ProgressToken, answer: impl Future<Output = RpcAnswer> + 'static) -> Result<Response, ApiError> {
    let started = (0_u32, Box::pin(answer));
    let later = stream::unfold(Some(started), move |working| {
        let token = token.clone();
        async move {
            let (seconds, answer) = working?;
            if seconds == 0 {
                return Some((token.event(0), Some((PROGRESS_S, answer))));
            }
            let pause = pin!(edge::sleep(Duration::from_secs(PROGRESS_S.into())));
            Some(match select(answer, pause).await {
                Either::Left((answer, _)) => (progress::last_event(&answer), None),
                Either::Right(((), answer)) => {
                    (token.event(seconds), Some((seconds.saturating_add(PROGRESS_S), answer)))
                }
            })
        }
    });
    let response = Response::from_stream(later.map(|event| Ok::<_, worker::Error>(event.into_bytes())))?;
    Ok(response.with_header("content-type", "text/event-stream").with_header("cache-control", "no-store"))
}

fn write(RpcAnswer { status, body }: RpcAnswer) -> Response {
    match body {
        Some(body) => private_json(body).with_status(status),
        None => Response::empty(status),
    }
}

/// The refusal of a page that reached us under a name that is not ours.
fn reject_foreign_origin(app: &App, request: &Request) -> Result<Option<Response>, ApiError> {
    let header = |name| request.headers().get(name);
    let (origin, host, own) = (header("origin")?, header("host")?, app.settings()?.base_url.as_deref());
    if mcp::page_allowed(origin.as_deref(), host.as_deref(), own) {
        return Ok(None);
    }
    let error = RpcError::new(
        403,
        RpcCode::InvalidRequest,
        "a page of another site may not call this service: use the address in /llms.txt",
    );
    Ok(Some(write(error.into())))
}

fn unauthorized(challenge: String) -> Response {
    let body = r#"{"error":"sign in first: see the resource metadata in WWW-Authenticate"}"#;
    private_json(body.to_owned()).with_status(401).with_header("www-authenticate", challenge)
}
