//! `/.well-known/oauth-*`, `/oauth/*` with the consent page, and `/me/agents`.

use agents::oauth::{
    Authority, ErrorCode, OAuthError, Server,
    approve::{ApprovalError, Approver, MAX_APPROVAL_BYTES},
    client::{ClientMetadata, MAX_REGISTRATION_BYTES},
    exchange::TokenRequest,
    grant::{self, Revocation},
    page,
};
use api_types::Error;
use edge::{
    answer::{self, ErrorAnswer},
    d1::D1,
    documents::FetchedDocuments,
    ed25519::WebCrypto,
    serve::Response,
};
use market::account::{DEMO_KEY_VERSION, NewWallet};
use serde_json::{Value, json};

#[cfg(test)]
use crate::openapi::operations::{Document, Operation};
use crate::{
    app::App,
    body::{Bytes, Form, Json, has_type},
    error::{ApiError, not_signed_in},
    limits::{AnswerMemory, Counted},
    respond,
    route::{Argument, Asked, Limit, Route, route},
    routes::{auth, pages::instead},
    session::Unchecked,
};

pub const ROUTES: &[Route] = &[
    route! {
        GET "/.well-known/oauth-protected-resource", Limit::Free => resource_metadata();
        docs |of| metadata(of.names("resourceMetadata", "OAuth", "Metadata of the protected resource /mcp (RFC 9728)"))
    },
    route! {
        GET "/.well-known/oauth-protected-resource/mcp", Limit::Free => resource_metadata();
        docs |of| metadata(of.names("mcpResourceMetadata", "OAuth", "Metadata of /mcp, under the resource's path"))
    },
    route! {
        GET "/.well-known/oauth-authorization-server", Limit::Free => server_metadata();
        docs |of| metadata(of.names("serverMetadata", "OAuth", "Metadata of the authorization server (RFC 8414)"))
    },
    route! {
        GET "/.well-known/oauth-authorization-server/mcp", Limit::Free => server_metadata();
        docs |of| metadata(of.names("mcpServerMetadata", "OAuth", "Metadata of the authorization server, under the resource's path"))
    },
    route! {
        GET "/.well-known/openid-configuration", Limit::Free => server_metadata();
        docs |of| metadata(of.names("openidConfiguration", "OAuth", "Metadata of the authorization server, for clients that look for OpenID Connect"))
    },
    route! {
        POST "/oauth/register", Limit::Client(Counted::REGISTER) =>
            register(Bytes<api_types::Registration, MAX_REGISTRATION_BYTES>);
        docs |of| of
            .names("registerClient", "OAuth", "Register a client (RFC 7591)")
            .answers::<api_types::Registered>(201, "The client.")
            .oauth_fails(&[400])
    },
    route! {
        GET "/oauth/authorize", Limit::Client(Counted::CONSENT) => authorize();
        docs |of| ["response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method"]
            .into_iter()
            .fold(of.names("authorize", "OAuth", "Show the page on which an owner approves an agent"), |of, name| {
                of.parameter("query", name, true, "As defined by RFC 6749 and RFC 7636.", json!({ "type": "string" }))
            })
            .query("state", "Value that is returned to the client unchanged.", json!({ "type": "string" }))
            .text(200, "text/html; charset=utf-8", "The page.")
            .text(400, "text/html; charset=utf-8", "A page that explains the error.")
            .page(503)
    },
    route! {
        GET "/oauth/challenge", Limit::Client(Counted::CHALLENGE) => challenge();
        docs |of| of
            .names("connectChallenge", "OAuth", "Request the challenge for the owner's wallet")
            .parameter("query", "request", true, "The sealed consent request, from the consent page.", json!({ "type": "string" }))
            .parameter("query", "address", true, "Address of the wallet, in hexadecimal as CIP-30 returns it.", json!({ "type": "string" }))
            .query("other", "Further addresses of the same wallet, at most 20, as in POST /auth/challenge.", json!({ "type": "string" }))
            .answers::<api_types::ConnectChallenge>(200, "sha256 of `service:connect:v1` LF owner LF nonce.")
            .fails(&[400])
    },
    route! {
        POST "/oauth/approve", Limit::Client(Counted::SIGN_IN) =>
            approve(ConsentPage, Json<api_types::Approval, MAX_APPROVAL_BYTES>);
        docs |of| of
            .names("approve", "OAuth", "Approve an agent, as its owner")
            .answers::<api_types::Connected>(200, "The agent has access.")
            .fails(&[401, 403])
    },
    route! {
        POST "/oauth/token", Limit::Client(Counted::TOKEN) => token(Form<api_types::TokenRequest>);
        docs |of| of
            .names("token", "OAuth", "Exchange a code or a refresh token for new tokens")
            .answers::<api_types::Tokens>(200, "New tokens. The presented refresh token is replaced.")
            .oauth_fails(&[401])
    },
    route! {
        POST "/oauth/revoke", Limit::Client(Counted::TOKEN) => revoke_token(Form<api_types::Revocation>);
        docs |of| of
            .names("revokeToken", "OAuth", "Revoke a client's token (RFC 7009)")
            .answers::<Document>(200, "The token is not valid, or not any more. The answer is an empty object.")
    },
    route! {
        GET "/me/agents", Limit::Session => agents(Unchecked);
        docs |of| of
            .names("listAgents", "Account", "List the agents that have access")
            .answers::<Vec<api_types::Agent>>(200, "Agents.")
    },
    route! {
        DELETE "/me/agents/{id}", Limit::Session => revoke_agent(Unchecked, String);
        docs |of| of
            .names("revokeAgent", "Account", "Revoke an agent's access")
            .path("id", "The agent.")
            .empty(204, "The agent has no access any more.")
            .fails(&[404])
    },
];

#[cfg(test)]
fn metadata(operation: Operation<'_>) -> Operation<'_> {
    operation.answers::<Document>(200, "The document.")
}

impl From<ApprovalError> for ApiError {
    fn from(error: ApprovalError) -> Self {
        let answer = match error {
            ApprovalError::Database(cause) => return cause.into(),
            ApprovalError::Challenges(cause) => return cause.into(),
            ApprovalError::NoMoreToday { retry_after_s } => {
                ErrorAnswer::unavailable_for(retry_after_s, Error::new(api_types::ErrorCode::DailyQuotaExceeded, error))
            }
            ApprovalError::Signature(_) => {
                ErrorAnswer::unauthorized(Error::new(api_types::ErrorCode::InvalidSignature, error))
            }
            ApprovalError::NoChallenge => {
                ErrorAnswer::unauthorized(Error::new(api_types::ErrorCode::ChallengeExpired, error))
            }
            ApprovalError::Expired(_) => {
                ErrorAnswer::bad_request(Error::new(api_types::ErrorCode::ConsentExpired, error))
            }
            ApprovalError::Address(_) => {
                ErrorAnswer::bad_request(Error::new(api_types::ErrorCode::InvalidAddress, error))
            }
            ApprovalError::Invalid(_) => {
                ErrorAnswer::bad_request(Error::new(api_types::ErrorCode::InvalidValue, error))
            }
        };
        answer.into()
    }
}

/// Returns the OAuth authorization server for this request.
pub fn server<'a>(app: &App, authority: &'a Authority, db: &'a D1) -> Server<'a, D1, FetchedDocuments, WebCrypto> {
    Server { authority, db, documents: &FetchedDocuments, jws: &WebCrypto, now_ms: app.now_ms }
}

fn document(value: &Value) -> Response {
    Response::json(value.to_string()).with_header("cache-control", "public, max-age=300")
}

/// Serves the protected resource metadata (RFC 9728).
async fn resource_metadata(app: &App) -> Result<Response, ApiError> {
    Ok(document(&app.authority()?.resource_metadata()))
}

/// Serves the authorization server metadata (RFC 8414).
async fn server_metadata(app: &App) -> Result<Response, ApiError> {
    Ok(document(&app.authority()?.server_metadata()))
}

/// Registers a client (RFC 7591).
async fn register(
    app: &App,
    Bytes(body, _): Bytes<api_types::Registration, MAX_REGISTRATION_BYTES>,
) -> Result<Response, ApiError> {
    let no_room = |error: ApiError| OAuthError::new(ErrorCode::TemporarilyUnavailable, error.to_string());
    app.ample_room().await.map_err(no_room)?;
    let metadata = ClientMetadata::from_registration(&body)?;
    let network = edge::client::client(&app.request)?;
    let (authority, database) = (app.authority()?, app.database());
    let client = server(app, &authority, &database).register(&metadata, &network).await?;
    Ok(answer::private_json(client).with_status(201))
}

/// Shows the consent page.
async fn authorize(app: &App) -> Result<Response, ApiError> {
    let (authority, database) = (app.authority()?, app.database());
    let query = app.request.query().unwrap_or_default();
    let asked = server(app, &authority, &database).consent_request(query, edge::random()?).await;
    let (html, response) = match asked {
        Ok(consent) => (page::consent(&consent, &authority, app.has_demo_wallet(), app.now_ms), Response::empty(200)),
        Err(refusal) => {
            let error = &refusal.error;
            if let Some(cause) = &error.cause {
                app.line.cause(cause);
            }
            let response = match error.code {
                ErrorCode::TemporarilyUnavailable => {
                    Response::empty(503).with_header("retry-after", error.retry_after_s.to_string())
                }
                _ => Response::empty(400),
            };
            (page::refused(&refusal), response)
        }
    };
    Ok(instead(app, response, html).with_header("cache-control", "no-store"))
}

/// Issues the challenge for the owner's wallet.
async fn challenge(app: &App) -> Result<Response, ApiError> {
    let (authority, database, url) = (app.authority()?, app.database(), app.request.url()?);
    let parameter = |name: &'static str| {
        let value = url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        let missing = || Error::of_field(api_types::ErrorCode::MissingField, name, "is required");
        value.ok_or_else(|| ErrorAnswer::bad_request(missing()))
    };
    let (sealed, address) = (parameter("request")?, parameter("address")?);
    let others = url.query_pairs().filter(|(name, _)| name == "other").map(|(_, value)| value.into_owned());
    let address = auth::owner_of_wallet(app, &address, &others.collect::<Vec<_>>()).await?.to_string();
    let (challenges, random) = (app.challenges()?, edge::random()?);
    let server = server(app, &authority, &database);
    respond::private(&server.challenge(&challenges, &sealed, &address, random).await?)
}

/// Proof that the consent page sent the request: forms on other sites cannot send this origin or media type.
struct ConsentPage;

impl Argument for ConsentPage {
    async fn of(Asked { app, .. }: Asked<'_>) -> Result<Self, ApiError> {
        let issuer = app.authority()?;
        if app.request.headers().get("origin")?.is_some_and(|origin| origin != issuer.issuer()) {
            let text = "only the consent page itself may send an answer";
            return Err(ErrorAnswer::forbidden(Error::new(api_types::ErrorCode::ForeignPage, text)).into());
        }
        if !has_type(app, "application/json")? {
            let text = "the body must be application/json";
            return Err(ErrorAnswer::bad_request(Error::new(api_types::ErrorCode::UnsupportedMediaType, text)).into());
        }
        Ok(Self)
    }
}

/// Approves or denies a request by the owner's signature.
async fn approve(
    app: &App,
    _: ConsentPage,
    Json(answer): Json<api_types::Approval, MAX_APPROVAL_BYTES>,
) -> Result<Response, ApiError> {
    app.ample_room().await?;
    let (authority, database) = (app.authority()?, app.database());
    let (challenges, demo) = (app.challenges()?, app.has_demo_wallet());
    let server = server(app, &authority, &database);
    let approval = server.check(&challenges, &WebCrypto, demo, &answer).await?;
    let keys = app.keys()?;
    let key_version = match approval.approver {
        Approver::Demo => DEMO_KEY_VERSION,
        Approver::Wallet(_) => keys.current_version()?,
    };
    let address = keys.wallet(key_version, &approval.approver.owner())?.enterprise_address();
    let wallet = NewWallet { address, key_version };
    let (network, random) = (edge::client::client(&app.request)?, edge::random()?);
    respond::private(&server.grant(&approval, &wallet, &network, random).await?)
}

/// Revokes a client's grant (RFC 7009).
async fn revoke_token(app: &App, Form(form, _): Form<api_types::Revocation>) -> Result<Response, ApiError> {
    let (authority, database) = (app.authority()?, app.database());
    server(app, &authority, &database).revoke_token(&form).await?;
    Ok(answer::private_json("{}".to_owned()))
}

async fn token(app: &App, Form(form, _): Form<api_types::TokenRequest>) -> Result<Response, ApiError> {
    let (authority, database) = (app.authority()?, app.database());
    let authorization = app.request.headers().get("authorization")?;
    let asked = TokenRequest::parse(&form, authorization.as_deref(), &authority)?;
    let tokens = server(app, &authority, &database).exchange(&asked, &edge::client::client(&app.request)?).await?;
    Ok(respond::private(&tokens)?.with_header("pragma", "no-cache"))
}

fn unknown_agent() -> Error {
    Error::new(api_types::ErrorCode::UnknownAgent, "this account has no such agent")
}

/// Lists the agents that an owner has approved.
async fn agents(app: &App, Unchecked(session): Unchecked) -> Result<Response, ApiError> {
    // Up to two hundred agents of two kilobytes each.
    let _permit = AnswerMemory::LONG.hold(&app.request).await?;
    let list = grant::list(&app.database(), &session, app.now_ms).await?.ok_or_else(not_signed_in)?;
    Ok(answer::private_json(json!(list).to_string()))
}

async fn revoke_agent(app: &App, Unchecked(session): Unchecked, id: String) -> Result<Response, ApiError> {
    match grant::revoke(&app.database(), &session, &id, app.now_ms).await? {
        Revocation::Revoked => Ok(Response::empty(204)),
        Revocation::NotFound => Err(ErrorAnswer::not_found(unknown_agent()).into()),
        Revocation::SignedOut => Err(not_signed_in().into()),
    }
}
