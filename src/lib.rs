//! The API worker. A request becomes an [`endpoint::Endpoint`], a route answers it, and every answer passes here.

mod app;
mod body;
mod checkout;
mod cors;
mod endpoint;
mod error;
mod limits;
mod mcp_adapter;
mod methods;
mod openapi;
mod paywall;
mod read_cache;
mod receipts;
mod respond;
mod routes;
mod session;
mod settings;

use app::App;
use edge::{
    answer::ErrorAnswer,
    http,
    serve::{REQUEST_ID, Request, Response},
};
use endpoint::{Endpoint, Resolved};
use error::{ApiError, no_such_path};
use market::catalogue::take_off::SaleState;
use routes::pages::Page;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::Env;

/// What entry.js calls with each request, and what it read of it.
#[wasm_bindgen]
pub fn serve(request: web_sys::Request, method: String, url: String, env: Env) -> JsValue {
    let (app, request) = (App::new(env), Request::new(request, method, url));
    let (line, waiting) = (app.line.clone(), request.headers_only());
    edge::serve::serve(answer(app, request), move || {
        http::hold(&waiting, http::REQUEST_OVERHEAD).map_err(|error| {
            let response = everywhere(ApiError::from(error).answer().into_response());
            line.status(response.status_code());
            response.with_header(REQUEST_ID, line.id())
        })
    })
}

async fn answer(app: App, request: Request) -> Response {
    // By its own name: the runtime's enum takes each method that it does not know for GET.
    let method = request.method().to_owned();
    let resolved = endpoint::resolve(&method, request.path());
    let page = match &resolved {
        Resolved::Route(endpoint) => Page::at(endpoint),
        _ => None,
    };
    let varies = page.as_ref().is_some_and(Page::is_beside) || matches!(resolved, Resolved::Unknown);
    // Where there is only a page, every client gets it.
    let shown = if varies { routes::pages::wanted(&request) } else { page.is_some() };
    let reader = shown.then(|| request.headers_only());
    app.line.note("method", &method);
    if let Resolved::Route(endpoint) = &resolved {
        app.line.note("route", endpoint.template());
    }
    let answer = match resolved {
        Resolved::Preflight(allowed) => cors::preflight(&allowed, &request),
        Resolved::Moved(without) => Ok(respond::moved(&request, without)),
        Resolved::Unknown => Err(no_such_path().into()),
        Resolved::WrongMethod(allowed) => Err(ErrorAnswer::wrong_method(allowed).into()),
        Resolved::Route(endpoint) => match Page::at(&endpoint).filter(|_| shown) {
            Some(page) => routes::pages::show(&app, &page, &request).await,
            None => dispatch(&app, endpoint, request).await,
        },
    };
    let response = match answer {
        Ok(response) => response,
        Err(error) => {
            let told = error.answer();
            if told.status() >= 500 {
                app.line.cause(&error);
            } else {
                app.line.note("refused", told.text());
            }
            match reader {
                Some(reader) => routes::pages::problem(&app, &reader, &told),
                None => told.into_response(),
            }
        }
    };
    finish(&app, &method, if varies { response.with_header("vary", "Accept") } else { response })
}

async fn dispatch(app: &App, endpoint: Endpoint, request: Request) -> Result<Response, ApiError> {
    match endpoint {
        // Pages are shown before, to everyone.
        Endpoint::Home | Endpoint::Sell => Err(no_such_path().into()),
        Endpoint::Health => routes::health::show(),
        Endpoint::OperatorStatus => routes::status::show(app, &request).await,
        Endpoint::CreateListing => routes::listings::create(app, request).await,
        Endpoint::Listings => routes::listings::list(app, &request).await,
        Endpoint::TakeOff(id) => routes::take_off::change(app, &id, SaleState::OffSale, &request).await,
        Endpoint::Relist(id) => routes::take_off::change(app, &id, SaleState::ForSale, &request).await,
        Endpoint::Listing(id) => routes::listings::show(app, &id, &request).await,
        Endpoint::Unlock(id) | Endpoint::UnlockByPost(id) => routes::unlock::show(app, &id, &request).await,
        Endpoint::Preview(id) => routes::pages::preview(app, &id, &request).await,
        Endpoint::Picture(id) => routes::pages::picture(app, &id, &request).await,
        Endpoint::PaymentDraft(id) => routes::drafts::payment(app, &id, request).await,
        Endpoint::ActionDraft(id) => routes::drafts::action(app, &id, request).await,
        Endpoint::Purchases => routes::purchases::list(app, &request).await,
        Endpoint::Purchase(id) => routes::purchases::show(app, &id, &request).await,
        Endpoint::Verification(id) => routes::purchases::verify(app, &id, request).await,
        Endpoint::Challenge => routes::auth::challenge(app, request).await,
        Endpoint::SignIn => routes::auth::verify(app, request).await,
        Endpoint::SignOut => routes::auth::logout(app, &request).await,
        Endpoint::Me => routes::me::show(app, &request).await,
        Endpoint::Buy => routes::me::buy(app, request).await,
        Endpoint::Withdraw => routes::me::withdraw(app, &request).await,
        Endpoint::AgentLimits => routes::me::set_limits(app, request).await,
        Endpoint::BoughtContent(id) => routes::me::content(app, &id, &request).await,
        Endpoint::PurchaseRequest(id) => routes::purchase_requests::show(app, &id, &request).await,
        Endpoint::AnswerRequest(id) => routes::purchase_requests::answer(app, &id, request).await,
        Endpoint::Mcp => routes::mcp::signed_in(app, request).await,
        Endpoint::OpenMcp => routes::mcp::open(app, request).await,
        Endpoint::ResourceMetadata => routes::oauth::resource_metadata(app, &request),
        Endpoint::ServerMetadata | Endpoint::OpenidConfiguration => routes::oauth::server_metadata(app, &request),
        Endpoint::Register => routes::oauth::register(app, request).await,
        Endpoint::Authorize => routes::oauth::authorize(app, &request).await,
        Endpoint::ConnectChallenge => routes::oauth::challenge(app, &request).await,
        Endpoint::Approve => routes::oauth::approve(app, request).await,
        Endpoint::Token => routes::oauth::token(app, request).await,
        Endpoint::Revoke => routes::oauth::revoke_token(app, request).await,
        Endpoint::Asset(name) => routes::pages::asset(app, &name, &request),
        Endpoint::Agents => routes::oauth::agents(app, &request).await,
        Endpoint::Agent(id) => routes::oauth::revoke_agent(app, &id, &request).await,
        Endpoint::Supported => routes::discovery::supported(app),
        Endpoint::DiscoveryResources => routes::discovery::resources(app, &request).await,
        Endpoint::DiscoverySearch => routes::discovery::search(app, &request).await,
        Endpoint::DidDocument => receipts::did_document(app, &request),
        Endpoint::Robots => routes::crawlers::robots(app, &request),
        Endpoint::Feed => routes::crawlers::feed(app, &request).await,
        Endpoint::Sitemap => routes::crawlers::sitemap(app, &request).await,
        Endpoint::OpenApi => Ok(openapi::document()),
        Endpoint::Docs => openapi::docs(app, &request),
        Endpoint::Llms => routes::crawlers::llms(app, &request),
        Endpoint::Creator(address) => routes::creators::show(app, &address, &request).await,
    }
}

/// What pages are told of every answer.
fn everywhere(response: Response) -> Response {
    cors::allow(response).with_header("x-content-type-options", "nosniff")
}

/// What every answer carries: CORS, no sniffing, the request's id, and (in development) the counts of what it cost.
fn finish(app: &App, method: &str, response: Response) -> Response {
    let mut response = everywhere(response);
    if app.shows_usage() {
        response = response.with_header("server-timing", app.usage.server_timing());
    }
    if app.is_on_local_ledger() {
        response = response.with_header("x-local-ledger", "on");
    }
    app.line.status(response.status_code());
    let response = response.with_header(REQUEST_ID, app.line.id());
    if method == "HEAD" { response.without_body() } else { response }
}
