//! The API worker. Each request is routed to a [`Route`](route::Route) and answered by a function in `routes`. Every
//! answer passes through this module.

mod app;
mod body;
mod checkout;
mod cors;
mod dispatch;
mod error;
mod limits;
mod mcp_adapter;
mod methods;
mod openapi;
mod paywall;
mod proof;
mod read_cache;
mod receipts;
mod respond;
mod route;
mod routes;
mod session;
mod settings;

use app::App;
use dispatch::Resolved;
use edge::{
    answer::ErrorAnswer,
    http,
    serve::{REQUEST_ID, Request, Response},
};
use error::{ApiError, no_such_path};
use route::Page;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::Env;

/// Answers a request. Called by entry.js.
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
    // The method is passed by name, because the `worker` crate's enum turns unknown methods into GET.
    let request = app.request.clone();
    let method = request.method();
    let resolved = dispatch::resolve(method, request.path());
    let page = match &resolved {
        Resolved::Route(route, _) => route.page,
        _ => Page::None,
    };
    let varies = matches!(page, Page::Beside(_)) || matches!(resolved, Resolved::Unknown);
    let shown = if varies { routes::pages::wanted(&app) } else { matches!(page, Page::Alone) };
    app.line.note("method", method);
    if let Resolved::Route(route, _) = &resolved {
        app.line.note("route", route.path);
    }
    let answer = match resolved {
        Resolved::Preflight(allowed) => cors::preflight(&allowed, &request),
        Resolved::Moved(without) => Ok(respond::moved(&request, without)),
        Resolved::Unknown => Err(no_such_path().into()),
        Resolved::WrongMethod(allowed) => Err(ErrorAnswer::wrong_method(allowed).into()),
        Resolved::Route(route, parameter) => match page {
            Page::Beside(page) if shown => page.answer(&app, parameter).await,
            _ => route.endpoint.answer(&app, parameter).await,
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
