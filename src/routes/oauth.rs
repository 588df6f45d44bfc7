//! `/.well-known/oauth-*`, `/oauth/*` with the consent page, and `/me/agents`

use agents::oauth::{
    ErrorCode, OAuthError,
    approve::{self, ApprovalError, Approver, MAX_APPROVAL_BYTES},
    authorize,
    client::{self, ClientMetadata, MAX_REGISTRATION_BYTES},
    exchange::{self, TokenRequest},
    grant::{self, Revocation},
    page, revoke,
};
use edge::serve::{Request, Response};
use edge::{
    answer::{self, ErrorAnswer, Fault},
    documents::FetchedDocuments,
    ed25519::WebCrypto,
    http,
    http::BodyError,
};
use market::account::{DEMO_KEY_VERSION, NewWallet};
use serde_json::Value;

use crate::{
    app::App,
    error::{ApiError, Refused},
    limits::{Counted, Weight},
    respond,
    routes::{auth, pages::instead},
    session::PresentedToken,
};

/// Bytes of a token request's form.
const MAX_FORM: usize = 16 << 10;

/// Why an owner's answer, or a wish about an agent, is not taken.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Of the consent page.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The answer was sent by another page.
    #[error("only the consent page itself may send an answer")]
    Origin,
    /// A body of another type.
    #[error("the body must be application/json")]
    NotJson,
    /// A parameter of the query is missing.
    #[error("{0}: is required")]
    Missing(&'static str),
    /// The account has no such agent.
    #[error("this account has no such agent")]
    UnknownAgent,
}

impl Refused for AgentError {
    fn answer(&self) -> ErrorAnswer {
        let text = self.to_string();
        match self {
            Self::Approval(ApprovalError::Database(cause)) => Fault::from(cause.clone()).answer(),
            Self::Approval(ApprovalError::Challenges(cause)) => Fault::from(cause.clone()).answer(),
            Self::Approval(ApprovalError::NoMoreToday { wait_s }) => ErrorAnswer::unavailable_for(*wait_s, text),
            Self::Approval(ApprovalError::Signature(_) | ApprovalError::NoChallenge) => ErrorAnswer::unauthorized(text),
            Self::Approval(ApprovalError::Expired(_) | ApprovalError::Address(_) | ApprovalError::Invalid(_))
            | Self::NotJson
            | Self::Missing(_) => ErrorAnswer::bad_request(text),
            Self::Origin => ErrorAnswer::forbidden(text),
            Self::UnknownAgent => ErrorAnswer::not_found(text),
        }
    }
}

fn document(value: &Value) -> Response {
    Response::json(value.to_string()).with_header("cache-control", "public, max-age=300")
}

/// RFC 9728.
pub fn resource_metadata(app: &App, request: &Request) -> Result<Response, ApiError> {
    Ok(document(&app.authority(request)?.resource_metadata()))
}

/// RFC 8414.
pub fn server_metadata(app: &App, request: &Request) -> Result<Response, ApiError> {
    Ok(document(&app.authority(request)?.server_metadata()))
}

/// RFC 7591.
pub async fn register(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Register, &request).await?;
    if let Err(error) = app.ample_room().await {
        return refuse(app, &OAuthError::new(ErrorCode::TemporarilyUnavailable, error.to_string()));
    }
    let body = match http::read_request(&mut request, MAX_REGISTRATION_BYTES).await {
        Ok(body) => body,
        Err(error @ BodyError::TooLarge(_)) => {
            return refuse(app, &OAuthError::new(ErrorCode::InvalidClientMetadata, error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let registered = match ClientMetadata::from_registration(&body) {
        Ok(metadata) => {
            let network = edge::client::client(&request)?;
            client::register(&app.database(), &metadata, &network, app.now_ms()).await
        }
        Err(error) => Err(error),
    };
    match registered {
        Ok(client) => Ok(answer::private_json(client).with_status(201)),
        Err(error) => refuse(app, &error),
    }
}

/// The consent page.
pub async fn authorize(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Consent, request).await?;
    let (authority, url) = (app.authority(request)?, request.url()?);
    let (database, now) = (app.database(), app.now_ms());
    let query = url.query().unwrap_or_default();
    let asked = authorize::request(&database, &FetchedDocuments, &authority, query, edge::random()?, now).await;
    let (html, response) = match asked {
        Ok(consent) => (page::consent(&consent, &authority, app.has_demo_wallet(), now), Response::empty(200)),
        Err(refusal) => {
            log(app, &refusal.error);
            let response = match refusal.error.code {
                ErrorCode::TemporarilyUnavailable => retry_later(Response::empty(503), &refusal.error),
                _ => Response::empty(400),
            };
            (page::refused(&refusal), response)
        }
    };
    Ok(instead(app, request, response, html).with_header("cache-control", "no-store"))
}

/// What the owner's wallet is to sign.
pub async fn challenge(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Challenge, request).await?;
    let (authority, url) = (app.authority(request)?, request.url()?);
    let parameter = |name: &'static str| {
        let value = url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        value.ok_or(AgentError::Missing(name))
    };
    let (sealed, address) = (parameter("request")?, parameter("address")?);
    let others = url.query_pairs().filter(|(name, _)| name == "other").map(|(_, value)| value.into_owned());
    let address = auth::owner_among(app, &address, &others.collect::<Vec<_>>()).await?.to_string();
    let asked =
        approve::challenge(&authority, &app.challenges()?, &sealed, &address, edge::random()?, app.now_ms()).await;
    let challenge = asked.map_err(AgentError::from)?;
    respond::private(&challenge)
}

/// The owner's answer.
pub async fn approve(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::SignIn, &request).await?;
    app.ample_room().await?;
    let authority = app.authority(&request)?;
    // Simple requests of other pages' forms have neither this origin nor this type.
    if request.headers().get("origin")?.is_some_and(|origin| origin != authority.issuer()) {
        return Err(AgentError::Origin.into());
    }
    if !has_type(&request, "application/json")? {
        return Err(AgentError::NotJson.into());
    }
    let body = http::read_request(&mut request, MAX_APPROVAL_BYTES).await?;
    let (challenges, demo) = (app.challenges()?, app.has_demo_wallet());
    let approval = approve::check(&authority, &challenges, &WebCrypto, demo, &body, app.now_ms()).await;
    let approval = approval.map_err(AgentError::from)?;
    let keys = app.keys()?;
    let key_version = match approval.approver {
        Approver::Demo => DEMO_KEY_VERSION,
        Approver::Wallet(_) => keys.current_version()?,
    };
    let address = keys.wallet(key_version, &approval.approver.owner())?.enterprise_address();
    let wallet = NewWallet { address, key_version };
    let (database, network, random) = (app.database(), edge::client::client(&request)?, edge::random()?);
    let connected = approve::grant(&database, &authority, &approval, &wallet, &network, random, app.now_ms()).await;
    respond::private(&connected.map_err(AgentError::from)?)
}

fn has_type(request: &Request, expected: &str) -> Result<bool, ApiError> {
    let sent = request.headers().get("content-type")?.unwrap_or_default();
    Ok(sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(expected))
}

/// The body of a request that must be a form.
async fn form(request: &mut Request) -> Result<Result<String, OAuthError>, ApiError> {
    if !has_type(request, "application/x-www-form-urlencoded")? {
        let text = "the body must be application/x-www-form-urlencoded";
        return Ok(Err(OAuthError::new(ErrorCode::InvalidRequest, text)));
    }
    let body = http::read_request(request, MAX_FORM).await?;
    Ok(Ok(String::from_utf8_lossy(&body).into_owned()))
}

/// RFC 7009: the client ends its sign-in.
pub async fn revoke_token(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Token, &request).await?;
    let authority = app.authority(&request)?;
    let ended = match form(&mut request).await? {
        Ok(form) => revoke::revoke(&app.database(), &authority, &form, app.now_ms()).await,
        Err(error) => Err(error),
    };
    match ended {
        Ok(()) => Ok(answer::private_json("{}".to_owned())),
        Err(error) => refuse(app, &error),
    }
}

pub async fn token(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Token, &request).await?;
    let authority = app.authority(&request)?;
    let authorization = request.headers().get("authorization")?;
    let form = form(&mut request).await?;
    let parsed = form.and_then(|form| TokenRequest::parse(&form, authorization.as_deref(), &authority));
    let tokens = match parsed {
        Ok(asked) => {
            let database = app.database();
            exchange::exchange(&database, &FetchedDocuments, &WebCrypto, &authority, &asked, app.now_ms()).await
        }
        Err(error) => Err(error),
    };
    match tokens {
        Ok(tokens) => Ok(respond::private(&tokens)?.with_header("pragma", "no-cache")),
        Err(error) => refuse(app, &error),
    }
}

fn log(app: &App, error: &OAuthError) {
    if let Some(cause) = &error.cause {
        app.line().cause(cause);
    }
}

fn refuse(app: &App, error: &OAuthError) -> Result<Response, ApiError> {
    log(app, error);
    let response = answer::private_json(error.json()).with_status(error.code.status());
    Ok(match error.code {
        ErrorCode::TemporarilyUnavailable => retry_later(response, error),
        ErrorCode::InvalidClient => {
            response.with_header("www-authenticate", "Basic realm=\"no client here has a password\"")
        }
        _ => response,
    })
}

fn retry_later(response: Response, error: &OAuthError) -> Response {
    response.with_header("retry-after", error.wait_s.to_string())
}

/// The agents that an owner let in.
pub async fn agents(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let session = PresentedToken::required(request)?;
    // Two hundred of two kilobytes each.
    let _permit = app.limit_search(Weight::Long, request).await?;
    let list = grant::list(&app.database(), &session, app.now_ms()).await?.ok_or(ApiError::NotSignedIn)?;
    Ok(answer::private_json(list))
}

/// The end of one.
pub async fn revoke_agent(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let session = PresentedToken::required(request)?;
    match grant::revoke(&app.database(), &session, id, app.now_ms()).await? {
        Revocation::Revoked => Ok(Response::empty(204)),
        Revocation::NotFound => Err(AgentError::UnknownAgent.into()),
        Revocation::SignedOut => Err(ApiError::NotSignedIn),
    }
}
