//! MCP for agents: `POST /mcp` with an account, `POST /mcp/open` without.

use std::{pin::pin, time::Duration};

use agents::{
    mcp::{
        self,
        dispatch::{self, RpcAnswer},
        message::{self, MAX_MESSAGE_BYTES, RpcCode, RpcError},
        open::OpenTools,
        progress::{self, ProgressToken},
        revision::Headers,
        tool::Toolset,
        tools::OwnerTools,
    },
    oauth::{Authority, grant::Caller},
};
use api_types::{Error, ErrorCode};
use cardano::json;
use edge::{
    answer::{ErrorAnswer, private_json},
    bearer::Bearer,
    http,
    serve::Response,
};
use futures_util::{
    future::{Either, select},
    stream::{self, StreamExt},
};

#[cfg(test)]
use crate::openapi::operations::{Document, Operation};
use crate::{
    app::App,
    body::Bytes,
    error::ApiError,
    limits::Counted,
    mcp_adapter::OwnerShop,
    route::{Argument, Asked, Limit, Needs, Route, route},
    routes::oauth,
};

/// Seconds between progress notifications.
const PROGRESS_S: u32 = 3;

pub const ROUTES: &[Route] = &[
    route! {
        POST "/mcp", Limit::Agent(Counted::MESSAGE) => signed_in(OwnPage, Agent, Message);
        docs |of| described(of.names("mcp", "MCP", "MCP for an owner's agent, which spends from the service wallet within the owner's limits"))
    },
    route! {
        POST "/mcp/open", Limit::Client(Counted::SESSION) => open(OwnPage, Message);
        docs |of| described(of.names("mcpOpen", "MCP", "MCP for agents with their own wallets, which pay over x402 in the tool call"))
    },
];

/// Describes the answers to MCP messages.
#[cfg(test)]
fn described(operation: Operation<'_>) -> Operation<'_> {
    operation
        .answers::<Document>(
            200,
            "A JSON-RPC response, or a stream of events if the client asked for progress notifications.",
        )
        .insert("/responses/200/content", "text/event-stream", serde_json::json!({ "schema": { "type": "string" } }))
        .empty(202, "The notification was accepted.")
        .answers::<Document>(400, "A JSON-RPC error.")
        .answers::<Document>(403, "The request comes from a web page of another origin.")
        .answers::<Document>(404, "A JSON-RPC error: the method does not exist.")
}

type Message = Bytes<api_types::mcp::RpcMessage, MAX_MESSAGE_BYTES>;

/// Proof that the request does not come from another site's web page, according to its `Origin` header. This protects
/// against DNS rebinding.
struct OwnPage;

impl Argument for OwnPage {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        let app = asked.app;
        let header = |name| app.request.headers().get(name);
        let (origin, host, own) = (header("origin")?, header("host")?, app.settings()?.base_url.as_deref());
        if mcp::page_allowed(origin.as_deref(), host.as_deref(), own) {
            return Ok(Self);
        }
        let text = "a page of another site may not call this service: use the address in /llms.txt";
        Err(ErrorAnswer::forbidden(Error::new(ErrorCode::ForeignPage, text)).into())
    }
}

/// The calling agent of a signed-in owner. Requests without a valid token get a 401, even for `initialize`, because
/// clients start to sign in only after a 401.
struct Agent(Caller);

impl Argument for Agent {
    const NEEDS: Needs = Needs::Agent;

    async fn of(Asked { app, limit, .. }: Asked<'_>) -> Result<Self, ApiError> {
        let (authority, database) = (app.authority()?, app.database());
        let server = oauth::server(app, &authority, &database);
        let bearer = Bearer::of(&app.request)?;
        // The agent's own limit comes first, so that an agent that exceeds it does not use up its network's limit.
        if let Bearer::Token(token) = &bearer
            && let Limit::Agent(counted) = limit
            && let Some(grant) = server.grant_named_by(token)
        {
            app.limit(counted, &grant).await?;
        }
        app.limit_client(Counted::SESSION).await?;
        let token = match bearer {
            Bearer::Token(token) => token,
            Bearer::Absent => return Err(unauthorized(&authority, None).into()),
            Bearer::Malformed => return Err(unauthorized(&authority, Some("invalid_token")).into()),
        };
        let caller = server.caller(&token).await?;
        let caller = caller.ok_or_else(|| unauthorized(&authority, Some("invalid_token")))?;
        app.line.note("wallet", &caller.account.wallet_address.to_string());
        Ok(Self(caller))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.security(&["agent"]).fails(&[401])
    }
}

/// Answers an MCP message of a signed-in owner's agent.
async fn signed_in(app: &App, _: OwnPage, Agent(caller): Agent, message: Message) -> Result<Response, ApiError> {
    respond(app, Some(caller), message).await
}

/// Answers an MCP message of an agent that is not signed in, and pays with a wallet of its own.
async fn open(app: &App, _: OwnPage, message: Message) -> Result<Response, ApiError> {
    respond(app, None, message).await
}

/// Answers an MCP message. `caller` is `None` for an agent that is not signed in, which may have its own wallet.
async fn respond(app: &App, caller: Option<Caller>, Bytes(body, _): Message) -> Result<Response, ApiError> {
    let header = |name| app.request.headers().get(name);
    let headers = Headers {
        protocol_version: header("mcp-protocol-version")?,
        method: header("mcp-method")?,
        name: header("mcp-name")?,
    };
    let message = match message::parse(&body, headers.allow_batch()) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(write(error.into())),
    };
    if let Some(caller) = &caller
        && !caller.scope.may_spend()
        && let Some(call) = message.calling(OwnerTools::<OwnerShop<'_>>::spends)
    {
        let text = "the owner allowed this agent to read only; nothing was paid: to buy, ask for the scope mcp, and have the owner connect the agent again";
        let refusal = RpcError::new(403, RpcCode::InvalidRequest, text);
        let answer = write(RpcAnswer { status: 403, body: Some(refusal.body(Some(&call.id))) });
        return Ok(
            answer.with_header("www-authenticate", app.authority()?.www_authenticate(Some("insufficient_scope")))
        );
    }
    let accept = header("accept")?;
    let progress = message.alone().and_then(|message| ProgressToken::of(message, &headers, accept.as_deref()));
    // While the call runs, memory is needed for the parsed message and a stream's response, but not for the body.
    let overhead = if progress.is_some() { http::REQUEST_OVERHEAD } else { 0 };
    let bytes = json::weight(&body).saturating_add(overhead);
    let held = http::hold(&app.request, bytes)?;
    drop(body);
    for _ in message.messages.iter().filter(|message| message.asks_shop()) {
        match &caller {
            Some(caller) => app.limit(Counted::TOOL, &caller.grant).await?,
            None => app.limit_client(Counted::TOOL).await?,
        }
    }
    let app = app.for_tool_call();
    let answer = async move {
        // The client's reservation of memory.
        let _held = held;
        match &caller {
            Some(caller) => dispatch::answer(&OwnerTools(&OwnerShop { app: &app, caller }), &headers, message).await,
            None => dispatch::answer(&OpenTools(&app), &headers, message).await,
        }
    };
    match progress {
        Some(token) => stream(token, answer),
        None => Ok(write(answer.await)),
    }
}

/// Streams progress notifications, and then the answer.
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

fn unauthorized(authority: &Authority, error: Option<&str>) -> ErrorAnswer {
    let text = "sign in first: see the resource metadata in WWW-Authenticate";
    let told = Error::new(ErrorCode::InvalidToken, text);
    ErrorAnswer::unauthorized(told).with_header("www-authenticate", authority.www_authenticate(error))
}
