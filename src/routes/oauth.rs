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
    http,
    serve::Response,
};
use market::account::{DEMO_KEY_VERSION, NewWallet};
use serde_json::{Value, json};

use crate::{
    app::App,
    body,
    error::{ApiError, not_signed_in},
    limits::{Counted, Weight},
    respond,
    routes::{auth, pages::instead},
    session::required_token,
};

/// Maximum size of a token request's form in bytes.
const MAX_FORM: usize = 16 << 10;

impl From<ApprovalError> for ApiError {
    fn from(error: ApprovalError) -> Self {
        let answer = match error {
            ApprovalError::Database(cause) => return cause.into(),
            ApprovalError::Challenges(cause) => return cause.into(),
            ApprovalError::NoMoreToday { wait_s } => {
                ErrorAnswer::unavailable_for(wait_s, Error::new(api_types::ErrorCode::DailyQuotaExceeded, error))
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

/// Returns the OAuth authorization server with this request's ports.
pub fn server<'a>(app: &App, authority: &'a Authority, db: &'a D1) -> Server<'a, D1, FetchedDocuments, WebCrypto> {
    Server { authority, db, documents: &FetchedDocuments, jws: &WebCrypto, now_ms: app.now_ms }
}

fn document(value: &Value) -> Response {
    Response::json(value.to_string()).with_header("cache-control", "public, max-age=300")
}

/// Serves the protected resource metadata (RFC 9728).
pub fn resource_metadata(app: &App) -> Result<Response, ApiError> {
    Ok(document(&app.authority()?.resource_metadata()))
}

/// Serves the authorization server metadata (RFC 8414).
pub fn server_metadata(app: &App) -> Result<Response, ApiError> {
    Ok(document(&app.authority()?.server_metadata()))
}

/// Registers a client (RFC 7591).
pub async fn register(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::REGISTER).await?;
    let no_room = |error: ApiError| OAuthError::new(ErrorCode::TemporarilyUnavailable, error.to_string());
    app.ample_room().await.map_err(no_room)?;
    let body = http::read_request(&app.request, MAX_REGISTRATION_BYTES).await?;
    let metadata = ClientMetadata::from_registration(&body)?;
    let network = edge::client::client(&app.request)?;
    let (authority, database) = (app.authority()?, app.database());
    let client = server(app, &authority, &database).register(&metadata, &network).await?;
    Ok(answer::private_json(client).with_status(201))
}

/// Shows the consent page.
pub async fn authorize(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::CONSENT).await?;
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
                    Response::empty(503).with_header("retry-after", error.wait_s.to_string())
                }
                _ => Response::empty(400),
            };
            (page::refused(&refusal), response)
        }
    };
    Ok(instead(app, response, html).with_header("cache-control", "no-store"))
}

/// Issues the challenge for the owner's wallet.
pub async fn challenge(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::CHALLENGE).await?;
    let (authority, database, url) = (app.authority()?, app.database(), app.request.url()?);
    let parameter = |name: &'static str| {
        let value = url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        let missing = || Error::of_field(api_types::ErrorCode::MissingField, name, "is required");
        value.ok_or_else(|| ErrorAnswer::bad_request(missing()))
    };
    let (sealed, address) = (parameter("request")?, parameter("address")?);
    let others = url.query_pairs().filter(|(name, _)| name == "other").map(|(_, value)| value.into_owned());
    let address = auth::owner_among(app, &address, &others.collect::<Vec<_>>()).await?.to_string();
    let (challenges, random) = (app.challenges()?, edge::random()?);
    let server = server(app, &authority, &database);
    respond::private(&server.challenge(&challenges, &sealed, &address, random).await?)
}

/// Approves or denies a request by the owner's signature.
pub async fn approve(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::SIGN_IN).await?;
    app.ample_room().await?;
    let (authority, database) = (app.authority()?, app.database());
    // Forms on other sites cannot send this origin or media type.
    if app.request.headers().get("origin")?.is_some_and(|origin| origin != authority.issuer()) {
        let text = "only the consent page itself may send an answer";
        return Err(ErrorAnswer::forbidden(Error::new(api_types::ErrorCode::ForeignPage, text)).into());
    }
    if !has_type(app, "application/json")? {
        let text = "the body must be application/json";
        return Err(ErrorAnswer::bad_request(Error::new(api_types::ErrorCode::UnsupportedMediaType, text)).into());
    }
    let answer = body::read(app, MAX_APPROVAL_BYTES).await?;
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

fn has_type(app: &App, expected: &str) -> Result<bool, ApiError> {
    let sent = app.request.headers().get("content-type")?.unwrap_or_default();
    Ok(sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(expected))
}

/// Reads a body that must be a form.
async fn form(app: &App) -> Result<String, ApiError> {
    if !has_type(app, "application/x-www-form-urlencoded")? {
        let text = "the body must be application/x-www-form-urlencoded";
        return Err(OAuthError::new(ErrorCode::InvalidRequest, text).into());
    }
    let body = http::read_request(&app.request, MAX_FORM).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Revokes a client's grant (RFC 7009).
pub async fn revoke_token(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::TOKEN).await?;
    let (authority, database) = (app.authority()?, app.database());
    server(app, &authority, &database).revoke_token(&form(app).await?).await?;
    Ok(answer::private_json("{}".to_owned()))
}

pub async fn token(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::TOKEN).await?;
    let (authority, database) = (app.authority()?, app.database());
    let authorization = app.request.headers().get("authorization")?;
    let asked = TokenRequest::parse(&form(app).await?, authorization.as_deref(), &authority)?;
    let tokens = server(app, &authority, &database).exchange(&asked, &edge::client::client(&app.request)?).await?;
    Ok(respond::private(&tokens)?.with_header("pragma", "no-cache"))
}

fn unknown_agent() -> Error {
    Error::new(api_types::ErrorCode::UnknownAgent, "this account has no such agent")
}

/// Lists the agents that an owner has approved.
pub async fn agents(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::SESSION).await?;
    let session = required_token(app)?;
    // Two hundred of two kilobytes each.
    let _permit = app.limit_search(Weight::LONG).await?;
    let list = grant::list(&app.database(), &session, app.now_ms).await?.ok_or_else(not_signed_in)?;
    Ok(answer::private_json(json!(list).to_string()))
}

/// Removes an agent.
pub async fn revoke_agent(app: &App, id: &str) -> Result<Response, ApiError> {
    app.limit_client(Counted::SESSION).await?;
    let session = required_token(app)?;
    match grant::revoke(&app.database(), &session, id, app.now_ms).await? {
        Revocation::Revoked => Ok(Response::empty(204)),
        Revocation::NotFound => Err(ErrorAnswer::not_found(unknown_agent()).into()),
        Revocation::SignedOut => Err(not_signed_in().into()),
    }
}
