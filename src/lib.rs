//! The API worker. A request becomes an [`endpoint::Endpoint`], a route answers it, and every answer passes here.

mod app;
mod body;
mod cors;
mod endpoint;
mod error;
mod limits;
mod paywall;
mod respond;
mod routes;
mod session;
mod settings;
mod shop;

use app::App;
use edge::answer::ErrorAnswer;
use endpoint::{Endpoint, Resolved};
use error::ApiError;
use worker::{Context, Env, Method, Request, Response, Result, event};

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    let app = App::new(env);
    let method = request.method();
    let resolved = endpoint::resolve(&method, &request.path());
    let varies = match &resolved {
        Resolved::Route(endpoint) => routes::pages::varies(endpoint, &method),
        Resolved::Unknown => true,
        Resolved::Preflight(_) | Resolved::WrongMethod(_) => false,
    };
    let page = varies && routes::pages::wanted(&request)?;
    let answer = match resolved {
        Resolved::Preflight(allowed) => cors::preflight(allowed),
        Resolved::Unknown => Err(ApiError::NoSuchPath),
        Resolved::WrongMethod(allowed) => Err(ApiError::WrongMethod(allowed)),
        Resolved::Route(endpoint) if page => routes::pages::show(&app, &endpoint, &request).await,
        Resolved::Route(endpoint) => dispatch(&app, endpoint, request).await,
    };
    let refuse = |error: ErrorAnswer| if page { routes::pages::problem(&error) } else { error.into_response() };
    let mut response = answer.or_else(|error| refuse(error.answer()))?;
    if varies {
        response.headers_mut().append("vary", "Accept")?;
    }
    finish(&app, &method, response)
}

async fn dispatch(app: &App, endpoint: Endpoint, request: Request) -> Result<Response, ApiError> {
    match endpoint {
        Endpoint::Home | Endpoint::Sell => Err(ApiError::NoSuchPath),
        Endpoint::Health => routes::health::show(),
        Endpoint::Listings if request.method() == Method::Post => routes::listings::create(app, request).await,
        Endpoint::Listings => routes::listings::list(app, &request).await,
        Endpoint::Listing(id) => routes::listings::show(app, &id).await,
        Endpoint::Unlock(id) => routes::unlock::show(app, &id, &request).await,
        Endpoint::Preview(id) => routes::pages::preview(app, &id, &request).await,
        Endpoint::PaymentDraft(id) => routes::drafts::payment(app, &id, request).await,
        Endpoint::ActionDraft(id) => routes::drafts::action(app, &id, request).await,
        Endpoint::Purchases => routes::purchases::list(app, &request).await,
        Endpoint::Purchase(id) => routes::purchases::show(app, &id).await,
        Endpoint::Verification(id) => routes::purchases::verify(app, &id, request).await,
        Endpoint::Challenge => routes::auth::challenge(app, request).await,
        Endpoint::SignIn => routes::auth::verify(app, request).await,
        Endpoint::SignOut => routes::auth::logout(app, &request).await,
        Endpoint::Me => routes::me::show(app, &request).await,
        Endpoint::Buy => routes::me::buy(app, request).await,
        Endpoint::Withdraw => routes::me::withdraw(app, &request).await,
        Endpoint::AgentLimits => routes::me::set_limits(app, request).await,
        Endpoint::BoughtContent(id) => routes::me::content(app, &id, &request).await,
        Endpoint::Mcp => routes::mcp::signed_in(app, request).await,
        Endpoint::OpenMcp => routes::mcp::open(app, request).await,
        Endpoint::ResourceMetadata => routes::oauth::resource_metadata(app, &request),
        Endpoint::ServerMetadata => routes::oauth::server_metadata(app, &request),
        Endpoint::Register => routes::oauth::register(app, request).await,
        Endpoint::Authorize => routes::oauth::authorize(app, &request).await,
        Endpoint::ConnectChallenge => routes::oauth::challenge(app, &request).await,
        Endpoint::Approve => routes::oauth::approve(app, request).await,
        Endpoint::Token => routes::oauth::token(app, request).await,
        Endpoint::Asset(name) => routes::pages::asset(&name),
        Endpoint::Agents => routes::oauth::agents(app, &request).await,
        Endpoint::Agent(id) => routes::oauth::revoke(app, &id, &request).await,
        Endpoint::Creator(address) => routes::creators::show(app, &address, &request).await,
    }
}

/// What every answer carries: CORS, no sniffing, and (in development) the counts of what it cost.
fn finish(app: &App, method: &Method, mut response: Response) -> Result<Response> {
    let headers = response.headers_mut();
    cors::allow(headers)?;
    headers.set("x-content-type-options", "nosniff")?;
    if app.shows_usage() {
        headers.set("server-timing", &app.usage().server_timing())?;
    }
    if *method == Method::Head {
        let (status, headers) = (response.status_code(), response.headers().clone());
        return Ok(Response::empty()?.with_status(status).with_headers(headers));
    }
    Ok(response)
}
