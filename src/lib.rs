//! The API worker. A request is routed to an [`endpoint::Endpoint`] and answered by a function in `routes`; every
//! answer passes through here.

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

/// Called by entry.js for each request.
#[wasm_bindgen]
pub fn serve(request: web_sys::Request, method: String, url: String, env: Env) -> JsValue {
    let app = App::new(env, Request::new(request, method, url));
    let (line, request) = (app.line.clone(), app.request.clone());
    edge::serve::serve(answer(app), move || {
        http::hold(&request, http::REQUEST_OVERHEAD).map_err(|error| {
            let response = everywhere(ApiError::from(error).answer().into_response());
            line.status(response.status_code());
            response.with_header(REQUEST_ID, line.id())
        })
    })
}

async fn answer(app: App) -> Response {
    // The name is used because the runtime's enum turns unknown methods into GET.
    let request = app.request.clone();
    let method = request.method();
    let resolved = endpoint::resolve(method, request.path());
    let page = match &resolved {
        Resolved::Route(endpoint) => Page::at(endpoint),
        _ => None,
    };
    let varies = page.as_ref().is_some_and(Page::is_beside) || matches!(resolved, Resolved::Unknown);
    // If the path has only a page, every client gets it.
    let shown = if varies { routes::pages::wanted(&app) } else { page.is_some() };
    app.line.note("method", method);
    if let Resolved::Route(endpoint) = &resolved {
        app.line.note("route", endpoint.template());
    }
    let answer = match resolved {
        Resolved::Preflight(allowed) => cors::preflight(&allowed, &request),
        Resolved::Moved(without) => Ok(respond::moved(&request, without)),
        Resolved::Unknown => Err(no_such_path().into()),
        Resolved::WrongMethod(allowed) => Err(ErrorAnswer::wrong_method(allowed).into()),
        Resolved::Route(endpoint) => match Page::at(&endpoint).filter(|_| shown) {
            Some(page) => routes::pages::show(&app, &page).await,
            None => dispatch(&app, endpoint).await,
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
            if shown { routes::pages::problem(&app, &told) } else { told.into_response() }
        }
    };
    finish(&app, method, if varies { response.with_header("vary", "Accept") } else { response })
}

async fn dispatch(app: &App, endpoint: Endpoint) -> Result<Response, ApiError> {
    match endpoint {
        // Handled as pages before.
        Endpoint::Home | Endpoint::Sell => Err(no_such_path().into()),
        Endpoint::Health => routes::health::show(),
        Endpoint::Ready => routes::health::ready(app).await,
        Endpoint::OperatorStatus => routes::status::show(app).await,
        Endpoint::CreateListing => routes::listings::create(app).await,
        Endpoint::Listings => routes::listings::list(app).await,
        Endpoint::TakeOff(id) => routes::take_off::change(app, &id, SaleState::OffSale).await,
        Endpoint::Relist(id) => routes::take_off::change(app, &id, SaleState::ForSale).await,
        Endpoint::Listing(id) => routes::listings::show(app, &id).await,
        Endpoint::Unlock(id) | Endpoint::UnlockByPost(id) => routes::unlock::show(app, &id).await,
        Endpoint::Preview(id) => routes::pages::preview(app, &id).await,
        Endpoint::Picture(id) => routes::pages::picture(app, &id).await,
        Endpoint::PaymentDraft(id) => routes::drafts::payment(app, &id).await,
        Endpoint::ActionDraft(id) => routes::drafts::action(app, &id).await,
        Endpoint::Purchases => routes::purchases::list(app).await,
        Endpoint::Purchase(id) => routes::purchases::show(app, &id).await,
        Endpoint::Statement(id) => routes::purchases::statement(app, &id).await,
        Endpoint::Verification(id) => routes::purchases::verify(app, &id).await,
        Endpoint::Challenge => routes::auth::challenge(app).await,
        Endpoint::SignIn => routes::auth::verify(app).await,
        Endpoint::SignOut => routes::auth::logout(app).await,
        Endpoint::Me => routes::me::show(app).await,
        Endpoint::Buy => routes::me::buy(app).await,
        Endpoint::Withdraw => routes::me::withdraw(app).await,
        Endpoint::AgentLimits => routes::me::set_limits(app).await,
        Endpoint::BoughtContent(id) => routes::me::content(app, &id).await,
        Endpoint::BuyerAction(id) => routes::me::act(app, &id).await,
        Endpoint::PurchaseRequests => routes::purchase_requests::list(app).await,
        Endpoint::PurchaseRequest(id) => routes::purchase_requests::show(app, &id).await,
        Endpoint::AnswerRequest(id) => routes::purchase_requests::answer(app, &id).await,
        Endpoint::Mcp => routes::mcp::signed_in(app).await,
        Endpoint::OpenMcp => routes::mcp::open(app).await,
        Endpoint::ResourceMetadata => routes::oauth::resource_metadata(app),
        Endpoint::ServerMetadata | Endpoint::OpenidConfiguration => routes::oauth::server_metadata(app),
        Endpoint::Register => routes::oauth::register(app).await,
        Endpoint::Authorize => routes::oauth::authorize(app).await,
        Endpoint::ConnectChallenge => routes::oauth::challenge(app).await,
        Endpoint::Approve => routes::oauth::approve(app).await,
        Endpoint::Token => routes::oauth::token(app).await,
        Endpoint::Revoke => routes::oauth::revoke_token(app).await,
        Endpoint::TestWallet(_) => routes::pages::test_wallet(app).await,
        Endpoint::Agents => routes::oauth::agents(app).await,
        Endpoint::Agent(id) => routes::oauth::revoke_agent(app, &id).await,
        Endpoint::Supported => routes::discovery::supported(app),
        Endpoint::DiscoveryResources => routes::discovery::resources(app).await,
        Endpoint::DiscoverySearch => routes::discovery::search(app).await,
        Endpoint::DidDocument => receipts::did_document(app),
        Endpoint::Robots => routes::crawlers::robots(app),
        Endpoint::Feed => routes::crawlers::feed(app).await,
        Endpoint::Sitemap => routes::crawlers::sitemap(app).await,
        Endpoint::OpenApi => Ok(openapi::document()),
        Endpoint::Docs => openapi::docs(app),
        Endpoint::Llms => routes::crawlers::llms(app),
        Endpoint::Creator(address) => routes::creators::show(app, &address).await,
    }
}

/// Adds the headers that every response has.
fn everywhere(response: Response) -> Response {
    cors::allow(response).with_header("x-content-type-options", "nosniff")
}

/// Adds CORS, `nosniff`, the request's id, and, in development, the cost of the request.
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
