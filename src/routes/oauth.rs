//! `/.well-known/oauth-*`, `/oauth/*` with the consent page, and `/me/agents`

use agents::oauth::{
    Authority, ErrorCode, OAuthError, Server,
    approve::{ApprovalError, Approver, MAX_APPROVAL_BYTES},
    client::{ClientMetadata, MAX_REGISTRATION_BYTES},
    exchange::TokenRequest,
    grant::{self, Revocation},
    page,
};
use edge::{
    answer::{self, ErrorAnswer},
    d1::D1,
    documents::FetchedDocuments,
    ed25519::WebCrypto,
    http,
    serve::{Request, Response},
};
use market::account::{DEMO_KEY_VERSION, NewWallet};
use serde_json::Value;

use crate::{
    app::App,
    body,
    error::{ApiError, not_signed_in},
    limits::{Counted, Weight},
    respond,
    routes::{auth, pages::instead},
    session::required_token,
};

/// Bytes of a token request's form.
const MAX_FORM: usize = 16 << 10;

impl From<ApprovalError> for ApiError {
    fn from(error: ApprovalError) -> Self {
        let answer = match error {
            ApprovalError::Database(cause) => return cause.into(),
            ApprovalError::Challenges(cause) => return cause.into(),
            ApprovalError::NoMoreToday { wait_s } => ErrorAnswer::unavailable_for(wait_s, error),
            ApprovalError::Signature(_) | ApprovalError::NoChallenge => ErrorAnswer::unauthorized(error),
            ApprovalError::Expired(_) | ApprovalError::Address(_) | ApprovalError::Invalid(_) => {
                ErrorAnswer::bad_request(error)
            }
        };
        answer.into()
    }
}

/// The authorization server for this request.
pub fn server<'a>(app: &App, authority: &'a Authority, db: &'a D1) -> Server<'a, D1, FetchedDocuments, WebCrypto> {
    Server { authority, db, documents: &FetchedDocuments, jws: &WebCrypto, now_ms: app.now_ms }
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
    let no_room = |error: ApiError| OAuthError::new(ErrorCode::TemporarilyUnavailable, error.to_string());
    app.ample_room().await.map_err(no_room)?;
    let body = http::read_request(&mut request, MAX_REGISTRATION_BYTES).await?;
    let metadata = ClientMetadata::from_registration(&body)?;
    let network = edge::client::client(&request)?;
    let (authority, database) = (app.authority(&request)?, app.database());
    let client = server(app, &authority, &database).register(&metadata, &network).await?;
    Ok(answer::private_json(client).with_status(201))
}

/// The consent page.
pub async fn authorize(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Consent, request).await?;
    let (authority, database) = (app.authority(request)?, app.database());
    let query = request.query().unwrap_or_default();
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
    Ok(instead(app, request, response, html).with_header("cache-control", "no-store"))
}

/// What the owner's wallet is to sign.
pub async fn challenge(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Challenge, request).await?;
    let (authority, database, url) = (app.authority(request)?, app.database(), request.url()?);
    let parameter = |name: &'static str| {
        let value = url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        value.ok_or_else(|| ErrorAnswer::bad_request(format_args!("{name}: is required")))
    };
    let (sealed, address) = (parameter("request")?, parameter("address")?);
    let others = url.query_pairs().filter(|(name, _)| name == "other").map(|(_, value)| value.into_owned());
    let address = auth::owner_among(app, &address, &others.collect::<Vec<_>>()).await?.to_string();
    let (challenges, random) = (app.challenges()?, edge::random()?);
    let server = server(app, &authority, &database);
    respond::private(&server.challenge(&challenges, &sealed, &address, random).await?)
}

/// The owner's answer.
pub async fn approve(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::SignIn, &request).await?;
    app.ample_room().await?;
    let (authority, database) = (app.authority(&request)?, app.database());
    // Simple requests of other pages' forms have neither this origin nor this type.
    if request.headers().get("origin")?.is_some_and(|origin| origin != authority.issuer()) {
        return Err(ErrorAnswer::forbidden("only the consent page itself may send an answer").into());
    }
    if !has_type(&request, "application/json")? {
        return Err(ErrorAnswer::bad_request("the body must be application/json").into());
    }
    let answer = body::read(&mut request, MAX_APPROVAL_BYTES).await?;
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
    let (network, random) = (edge::client::client(&request)?, edge::random()?);
    respond::private(&server.grant(&approval, &wallet, &network, random).await?)
}

fn has_type(request: &Request, expected: &str) -> Result<bool, ApiError> {
    let sent = request.headers().get("content-type")?.unwrap_or_default();
    Ok(sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(expected))
}

/// The body of a request that must be a form.
async fn form(request: &mut Request) -> Result<String, ApiError> {
    if !has_type(request, "application/x-www-form-urlencoded")? {
        let text = "the body must be application/x-www-form-urlencoded";
        return Err(OAuthError::new(ErrorCode::InvalidRequest, text).into());
    }
    let body = http::read_request(request, MAX_FORM).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// RFC 7009: the client ends its sign-in.
pub async fn revoke_token(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Token, &request).await?;
    let (authority, database) = (app.authority(&request)?, app.database());
    server(app, &authority, &database).revoke_token(&form(&mut request).await?).await?;
    Ok(answer::private_json("{}".to_owned()))
}

pub async fn token(app: &App, mut request: Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Token, &request).await?;
    let (authority, database) = (app.authority(&request)?, app.database());
    let authorization = request.headers().get("authorization")?;
    let asked = TokenRequest::parse(&form(&mut request).await?, authorization.as_deref(), &authority)?;
    let tokens = server(app, &authority, &database).exchange(&asked).await?;
    Ok(respond::private(&tokens)?.with_header("pragma", "no-cache"))
}

/// The agents that an owner let in.
pub async fn agents(app: &App, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let session = required_token(request)?;
    // Two hundred of two kilobytes each.
    let _permit = app.limit_search(Weight::Long, request).await?;
    let list = grant::list(&app.database(), &session, app.now_ms).await?.ok_or_else(not_signed_in)?;
    Ok(answer::private_json(list))
}

/// The end of one.
pub async fn revoke_agent(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    app.limit_client(Counted::Session, request).await?;
    let session = required_token(request)?;
    match grant::revoke(&app.database(), &session, id, app.now_ms).await? {
        Revocation::Revoked => Ok(Response::empty(204)),
        Revocation::NotFound => Err(ErrorAnswer::not_found("this account has no such agent").into()),
        Revocation::SignedOut => Err(not_signed_in().into()),
    }
}
