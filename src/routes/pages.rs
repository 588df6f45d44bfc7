//! Pages for browsers, rendered by the crate `pages` from the same queries as the JSON.

use agents::oauth::grant;
use api_types::{Error, ErrorCode};
use cardano::{Address, ContentHash, TxHash};
use edge::{
    answer::{ErrorAnswer, Fault},
    http::hold_request,
    semaphore::Permit,
    serve::Response,
};
use market::{
    ListingId,
    catalogue::{self, Filter, take_off},
    chain_state, event, feed,
    listing::MAX_CONTENT_BYTES,
    purchase,
    purchase_request::{self, RequestId},
    receipt, webhook,
};
use pages::{
    POLICY, accept,
    account::{MAX_EVENTS, MAX_PURCHASES_AND_LISTINGS},
    guide,
    home::{self, SearchQuery},
    markdown, test_wallet,
    view::{Listing, Purchase},
};
use serde::de::DeserializeOwned;
use sql::{Both, Database};
use x402_cardano::wire::{
    PAYMENT_REQUIRED, PAYMENT_SIGNATURE, PaymentRequired, decode_header, sign_in_with_x::SIGN_IN_WITH_X,
};

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::{ApiError, no_such_path, not_signed_in},
    limits::{AnswerMemory, Counted},
    respond,
    route::{self, Argument, Body, Limit, PROOF, Route, route},
    routes::{creators, listings, me, purchases, unlock},
    session::Session,
};

/// Maximum size in bytes of the test wallet's script.
const MAX_TEST_WALLET: usize = 256 << 10;

pub const ROUTES: &[Route] = &[
    route! {
        GET "/", Limit::Client(Counted::SEARCH) => home();
        only page;
        docs |of| described(of.names("home", "System", "The catalogue as a page"))
    },
    route! {
        GET "/sell", Limit::Free => sell();
        only page;
        docs |of| described(of.names("sell", "System", "The page on which a seller offers a listing"))
    },
    route! {
        GET "/protection", Limit::Free => protection();
        only page;
        docs |of| described(of.names("protection", "System", "How protection works, for people"))
    },
    route! {
        GET "/help", Limit::Free => help();
        only page;
        docs |of| described(of.names("help", "System", "Answers, and the operator's contact"))
    },
    route! {
        GET "/about", Limit::Free => about();
        only page;
        docs |of| described(of.names("about", "System", "About the service, and what it is not"))
    },
    route! {
        GET "/connect", Limit::Free => connect();
        only page;
        docs |of| described(of.names("connect", "System", "Commands that connect an agent"))
    },
    route! {
        POST "/markdown", Limit::Client(Counted::OFFER) => rendered(MarkdownBody);
        docs |of| of
            .names("renderMarkdown", "System", "A text as the pages show it for reading")
            .more("CommonMark with tables. HTML in the text is shown as text. Nothing is stored.")
            .text(200, "text/html; charset=utf-8", "The text as HTML, a fragment.")
    },
    route! {
        GET "/listings/{id}/preview", Limit::Client(Counted::READ) => preview(ListingId);
        docs |of| of
            .names("getPreview", "Catalogue", "A listing's preview, as a document for a frame")
            .text(200, "text/html; charset=utf-8", "A page that shows only the preview.")
    },
    route! {
        GET "/listings/{id}/picture.png", Limit::Client(Counted::READ) => picture(ListingId);
        docs |of| of
            .names("getPicture", "Catalogue", "The picture that other sites show with a link to a listing (Open Graph)")
            .text(200, "image/png", "A picture of 600 by 315 pixels.")
    },
    route! {
        GET "/assets/{folder}/test-wallet.js", Limit::Free => test_wallet(String);
        docs |of| of
            .names("testWallet", "System", "The test wallet's script, served only on a local ledger")
            .path("folder", "A hash of the static files.")
            .text(200, "text/javascript; charset=utf-8", "The script.")
            .fails(&[404])
    },
];

/// A text in Markdown. It counts against the client's memory limit until it is rendered.
struct MarkdownBody(String, Option<Permit>);

impl Argument for MarkdownBody {
    const BODY: Option<Body> = Some(Body::of(MAX_CONTENT_BYTES));

    async fn of(asked: route::Asked<'_>) -> Result<Self, ApiError> {
        let (bytes, held) = hold_request(&asked.app.request, MAX_CONTENT_BYTES).await?;
        let text = String::from_utf8(bytes).map_err(|_| {
            let rule = "must be text in UTF-8";
            ErrorAnswer::bad_request(Error::of_field(ErrorCode::MalformedBody, "body", rule))
        })?;
        Ok(Self(text, held))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<String>("text/markdown").fails(&[400])
    }
}

/// Describes, for the OpenAPI document, a path that serves only a page.
#[cfg(test)]
fn described(operation: Operation<'_>) -> Operation<'_> {
    operation.text(200, "text/html; charset=utf-8", "A page, for clients that prefer HTML.").fails(&[400, 404])
}

/// Returns whether the request comes from a browser that wants a page. Clients that pay, or prove a payment, count as
/// programs.
pub fn wanted(app: &App) -> bool {
    let headers = app.request.headers();
    let accept = headers.get("accept").ok().flatten();
    // Checked first, because it suffices for most programs.
    let has = |name| headers.has(name).unwrap_or(false);
    accept::prefers_html(accept.as_deref()) && !has(PAYMENT_SIGNATURE) && !has(PROOF) && !has(SIGN_IN_WITH_X)
}

/// Renders an error page with the error's status and headers.
pub fn problem(app: &App, error: &ErrorAnswer) -> Response {
    let html = ::pages::problem::page(error.status(), error.text());
    instead(app, error.clone().into_response(), html)
}

/// Serves a preview of a listing's content, to be shown in a frame of our pages.
async fn preview(app: &App, id: ListingId) -> Result<Response, ApiError> {
    let listing = listed(app, &id).await?;
    let media = listing.preview_media.ok_or_else(listings::unknown)?;
    let html = ::pages::preview::page(&media);
    let response = headed(Response::text(html), &::pages::preview::HEADERS);
    Ok(response.with_header("cache-control", "public, max-age=3600"))
}

/// Serves the preview picture that other sites show with a link to a listing.
async fn picture(app: &App, id: ListingId) -> Result<Response, ApiError> {
    let listing = listed(app, &id).await?;
    let png = ::pages::picture::png(&listing).map_err(Fault::inconsistent("a picture"))?;
    Ok(Response::bytes("image/png", &png).with_header("cache-control", "public, max-age=86400"))
}

/// Serves the test wallet's script to loopback requests of a shop on a local ledger. The platform serves all other
/// static files by itself.
async fn test_wallet(app: &App, _: String) -> Result<Response, ApiError> {
    app.test_ledger().ok_or_else(no_such_path)?;
    let file = app.static_file(MAX_TEST_WALLET).await?.ok_or_else(no_such_path)?;
    Ok(Response::bytes("text/javascript; charset=utf-8", &file).with_header("cache-control", "no-store"))
}

async fn sell(app: &App) -> Result<Response, ApiError> {
    let page = revalidated(app, ::pages::sell::page(&app.public_origin()?))?;
    let policy = page.header(POLICY).map(::pages::sell::policy);
    Ok(match policy {
        Some(policy) => page.with_header(POLICY, policy),
        None => page,
    })
}

async fn home(app: &App) -> Result<Response, ApiError> {
    let url = app.request.url()?;
    let asked = SearchQuery::read(url.query_pairs());
    // Forms send empty fields too.
    let said = url.query_pairs().filter(|(name, value)| !value.is_empty() && name != "limit");
    let mut filter = Filter::from_query(said).map_err(ErrorAnswer::bad_request)?.unwrap_or_default();
    filter.max_price = asked.max_price();
    filter.limit = Some(home::PAGE);
    let _permit = AnswerMemory::of_listings(filter.page_size()).hold(&app.request).await?;
    let database = app.nearest();
    let catalogue::Page { json, next, some_words } = catalogue::page(&database, &filter).await?;
    let listings: Vec<Listing> = read(&json)?;
    let total = catalogue::count(&database, &filter).await?;
    let found = home::SearchResults { listings: &listings, total, next: next.as_deref(), some_words };
    revalidated(app, home::page(&app.public_origin()?, &asked, &found))
}

pub async fn listing(app: &App, id: ListingId) -> Result<Response, ApiError> {
    let listing = match listed(app, &id).await {
        Ok(listing) => listing,
        Err(error) => return off_sale(app, &id, error).await,
    };
    let seller = catalogue::seller(&app.nearest(), &listing.seller_address).await?;
    revalidated(app, ::pages::listing::page(&app.public_origin()?, &listing, &seller))
}

/// Renders the paywall page, with the terms of the 402 answer that programs get.
pub async fn paywall(app: &App, id: ListingId) -> Result<Response, ApiError> {
    let asked = match unlock::show(app, id.clone()).await {
        Ok(asked) => asked,
        Err(error) => return off_sale(app, &id, error).await,
    };
    let required = decode_header(asked.header(PAYMENT_REQUIRED).unwrap_or_default());
    let required: PaymentRequired = required.map_err(Fault::inconsistent("terms"))?;
    let listing = listed(app, &id).await?;
    let is_offered = |protected| required.accepts.iter().any(|entry| entry.extra.escrow().is_some() == protected);
    let offer = ::pages::paywall::Offer {
        listing: &listing,
        instant: is_offered(false),
        protected: is_offered(true),
        explorer: &app.settings()?.explorer_url,
    };
    Ok(instead(app, asked, ::pages::paywall::page(&offer)))
}

/// Renders the page of a listing that its seller has taken off sale, with the error's status. Returns the error itself
/// for any other listing.
async fn off_sale(app: &App, id: &ListingId, error: ApiError) -> Result<Response, ApiError> {
    match app.database().fetch(take_off::bought(id)).await? {
        Some(take_off::Bought { json, for_sale: false }) => {
            let html = ::pages::listing::off_sale(&read(&json)?);
            Ok(instead(app, error.answer().into_response(), html))
        }
        _ => Err(error),
    }
}

/// Renders a seller's sales, with buyers' addresses abbreviated.
pub async fn sales(app: &App) -> Result<Response, ApiError> {
    let _permit = AnswerMemory::LONG.hold(&app.request).await?;
    let (seller, sales) = purchases::found(app).await?;
    let sold: Vec<&str> = sales.iter().take(MAX_PURCHASES_AND_LISTINGS).map(|sale| sale.listing_id.as_str()).collect();
    let titles = app.database().fetch(catalogue::titles(&sold)).await?;
    Ok(uncached(app, ::pages::creator::sales(&seller, &sales, &titles)))
}

pub async fn creator(app: &App, address: Address) -> Result<Response, ApiError> {
    let cursor = creators::after(&mut app.request.url()?.query_pairs())?;
    let _permit = AnswerMemory::SHORT.hold(&app.request).await?;
    let database = app.nearest();
    let filter = Filter { seller: Some(address), limit: Some(home::PAGE), cursor, ..Filter::default() };
    let catalogue::Page { json, next, .. } = catalogue::page(&database, &filter).await?;
    let seller = catalogue::seller(&database, &address).await?;
    let (origin, listings) = (app.public_origin()?, read::<Vec<Listing>>(&json)?);
    revalidated(app, ::pages::creator::page(&origin, &address.to_string(), &seller, &listings, next.as_deref()))
}

pub async fn purchase(app: &App, id: TxHash) -> Result<Response, ApiError> {
    purchases::catch_up(app, &id).await;
    let (database, settings) = (app.database(), app.settings()?);
    let asked = (purchase::read(&id), receipt::read(&id), chain_state::read_time());
    let (found, receipt, time) = database.batch(asked).await?;
    let purchase: Purchase = found.ok_or_else(purchases::unknown)?.into();
    let receipt = receipt.ok_or_else(purchases::unknown)?;
    let listing = match purchase.listing_id.parse::<ListingId>() {
        Ok(listing) => database.fetch(take_off::bought(&listing)).await?,
        Err(_) => None,
    };
    let for_sale = listing.as_ref().is_some_and(|listing| listing.for_sale);
    let listing = listing.map(|listing| read::<Listing>(&listing.json)).transpose()?;
    let now = settings.lead.clock(time.unwrap_or(0), app.now_ms);
    let shown = ::pages::purchase::Shown {
        purchase: &purchase,
        listing: listing.as_ref(),
        for_sale,
        receipt,
        now,
        explorer: &settings.explorer_url,
    };
    Ok(uncached(app, ::pages::purchase::page(&shown)))
}

/// Shows the account of the request's session, or the sign-in page.
pub async fn account(app: &App, session: Option<Session>) -> Result<Response, ApiError> {
    let Some(session) = session else { return Ok(uncached(app, ::pages::account::sign_in())) };
    let token = session.token.clone();
    let (me, balance, _permit) = me::read(app, session, false).await?;
    let agents = grant::list(&app.database(), &token, app.now_ms).await?;
    // The page is shown without a balance too, so that owners can always remove agents.
    let balance = balance.ok();
    let bought: Vec<&str> =
        me.purchases.iter().take(MAX_PURCHASES_AND_LISTINGS).map(|purchase| purchase.listing_id.as_str()).collect();
    let more = (
        catalogue::titles(&bought),
        purchase::sales(&me.owner),
        take_off::taken_off(&me.owner),
        purchase_request::waiting(&me.owner, app.now_ms),
        event::newest(&me.owner, None, MAX_EVENTS),
        feed::since(&me.owner),
        webhook::read(&me.owner),
    );
    let (titles, sales, taken_off, waiting, events, feed_since, webhook) = app.database().batch(more).await?;
    let account = ::pages::account::Account {
        me,
        balance,
        waiting,
        events: events.into_iter().map(|Both(_, event)| event).collect(),
        feed_since,
        webhook,
        titles,
        sales,
        taken_off: taken_off.iter().map(|json| read(json)).collect::<Result<_, _>>()?,
        agents: agents.ok_or_else(not_signed_in)?,
        explorer: app.settings()?.explorer_url.clone(),
    };
    Ok(uncached(app, ::pages::account::page(&account, app.now_ms)))
}

/// Shows an agent's purchase request to the session's owner, or the sign-in page.
pub async fn request_of_agent(app: &App, session: Option<Session>, id: String) -> Result<Response, ApiError> {
    let Some(session) = session else { return Ok(uncached(app, ::pages::account::sign_in())) };
    let asked = match RequestId::parse(&id) {
        Some(id) => purchase_request::read(&app.database(), &session.token, id, app.now_ms).await?,
        None => None,
    };
    Ok(uncached(app, ::pages::account::request(asked.as_ref())))
}

async fn protection(app: &App) -> Result<Response, ApiError> {
    revalidated(app, guide::protection(&app.public_origin()?))
}

async fn help(app: &App) -> Result<Response, ApiError> {
    revalidated(app, guide::help(&app.public_origin()?, app.settings()?.contact.as_ref()))
}

async fn about(app: &App) -> Result<Response, ApiError> {
    revalidated(app, guide::about(&app.public_origin()?, app.settings()?.contact.as_ref()))
}

async fn connect(app: &App) -> Result<Response, ApiError> {
    revalidated(app, guide::connect(&app.public_origin()?))
}

/// Renders Markdown as HTML for reading. A browser that opens the answer as a page may neither run nor load anything.
async fn rendered(_: &App, MarkdownBody(text, _held): MarkdownBody) -> Result<Response, ApiError> {
    let html = markdown::render(&text).into_string();
    let response = headed(Response::text(html), &::pages::HEADERS);
    Ok(response.with_header(POLICY, "default-src 'none'; sandbox").with_header("cache-control", "no-store"))
}

/// Returns a listing that is not hidden.
async fn listed(app: &App, id: &ListingId) -> Result<Listing, ApiError> {
    read(&catalogue::one(&app.nearest(), id).await?.ok_or_else(listings::unknown)?)
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, ApiError> {
    Ok(serde_json::from_str(json).map_err(Fault::inconsistent("what is shown"))?)
}

/// Replaces a response's body by a page. On a local ledger, the page includes the test wallet.
pub fn instead(app: &App, answer: Response, html: String) -> Response {
    let ledger = app.test_ledger();
    let html = ledger.as_ref().map_or(html.clone(), |ledger| test_wallet::inside(&html, ledger));
    let response = headed(answer.with_text(html), &::pages::HEADERS);
    match ledger {
        Some(ledger) => response.with_header(POLICY, test_wallet::policy(&ledger)),
        None => response,
    }
}

/// Sends a page that caches must revalidate.
fn revalidated(app: &App, html: String) -> Result<Response, ApiError> {
    let etag = format!("W/\"{}\"", ContentHash::of(html.as_bytes()));
    let made = || respond::tagged(instead(app, Response::empty(200), html), &etag);
    Ok(respond::not_modified(&app.request, &etag)?.unwrap_or_else(made))
}

/// Sends a page that must not be cached.
fn uncached(app: &App, html: String) -> Response {
    instead(app, Response::empty(200), html).with_header("cache-control", "no-store")
}

fn headed(response: Response, headers: &[(&'static str, &str)]) -> Response {
    headers.iter().fold(response, |response, (name, value)| response.with_header(name, *value))
}
