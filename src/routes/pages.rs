//! Pages for browsers, rendered by the crate `pages` from the same queries as the JSON.

use agents::oauth::grant;
use api_types::Me;
use cardano::{Address, ContentHash};
use edge::{
    answer::{ErrorAnswer, Fault},
    serve::Response,
};
use market::{
    ListingId,
    catalogue::{self, Filter, take_off},
    chain_state, purchase, purchase_request, receipt,
};
use pages::{
    POLICY, accept,
    account::SHOWN,
    home::{self, Asked},
    preview::Size,
    test_wallet,
    view::{Listing, Purchase},
};
use serde::de::DeserializeOwned;
use sql::Database;
use x402_cardano::wire::{PAYMENT_REQUIRED, PAYMENT_SIGNATURE, PaymentRequired, decode_header};

use crate::{
    app::App,
    endpoint::Endpoint,
    error::{ApiError, no_such_path, not_signed_in},
    limits::{Counted, Weight},
    respond,
    routes::{creators, listings, me, purchase_requests, purchases, unlock},
    session::{required_token, shown_token},
};

/// Maximum size in bytes of the test wallet's script.
const MAX_TEST_WALLET: usize = 256 << 10;

/// A page. This enum, [`Page::at`] and [`show`] list all pages.
pub enum Page<'a> {
    Home,
    Sell,
    Me,
    PurchaseRequest(&'a str),
    Listing(&'a str),
    Unlock(&'a str),
    Creator(&'a str),
    Purchase(&'a str),
}

impl<'a> Page<'a> {
    /// Returns the page of an endpoint, or `None` if the endpoint has no page.
    pub fn at(endpoint: &'a Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::Home => Some(Self::Home),
            Endpoint::Sell => Some(Self::Sell),
            Endpoint::Me => Some(Self::Me),
            Endpoint::PurchaseRequest(id) => Some(Self::PurchaseRequest(id)),
            Endpoint::Listing(id) => Some(Self::Listing(id)),
            Endpoint::Unlock(id) => Some(Self::Unlock(id)),
            Endpoint::Creator(address) => Some(Self::Creator(address)),
            Endpoint::Purchase(id) => Some(Self::Purchase(id)),
            _ => None,
        }
    }

    /// Whether the page's endpoint also answers programs, so that the answer depends on the header `Accept`.
    pub const fn is_beside(&self) -> bool {
        !matches!(self, Self::Home | Self::Sell)
    }
}

/// Returns whether the request comes from a browser that wants a page. Clients that pay, or prove a payment, count as
/// programs.
pub fn wanted(app: &App) -> bool {
    let headers = app.request.headers();
    let accept = headers.get("accept").ok().flatten();
    // Checked first, because it suffices for most programs.
    let has = |name| headers.has(name).unwrap_or(false);
    accept::prefers_html(accept.as_deref()) && !has(PAYMENT_SIGNATURE) && !has("x-service-proof")
}

/// Renders a page.
pub async fn show(app: &App, page: &Page<'_>) -> Result<Response, ApiError> {
    match page {
        Page::Home => home(app).await,
        Page::Sell => kept(app, ::pages::sell::page(&app.public_origin()?)),
        Page::Me => account(app).await,
        Page::PurchaseRequest(id) => request_of_agent(app, id).await,
        Page::Listing(id) => listing(app, id).await,
        Page::Unlock(id) => paywall(app, id).await,
        Page::Creator(address) => creator(app, address).await,
        Page::Purchase(id) => purchase(app, id).await,
    }
}

/// Renders an error page with the error's status and headers.
pub fn problem(app: &App, error: &ErrorAnswer) -> Response {
    let html = ::pages::problem::page(error.status(), error.text());
    instead(app, error.clone().into_response(), html)
}

/// Serves a preview of a listing's content, to be shown in a frame of our pages.
pub async fn preview(app: &App, id: &str) -> Result<Response, ApiError> {
    let listing = listed(app, id).await?;
    let media = listing.preview_media.ok_or_else(listings::unknown)?;
    let small = app.request.query() == Some("small");
    let html = ::pages::preview::page(&media, if small { Size::Small } else { Size::Large });
    let response = headed(Response::text(html), &::pages::preview::HEADERS);
    Ok(response.with_header("cache-control", "public, max-age=3600"))
}

/// Serves the preview picture that other sites show with a link to a listing.
pub async fn picture(app: &App, id: &str) -> Result<Response, ApiError> {
    let listing = listed(app, id).await?;
    let png = ::pages::picture::png(&listing).map_err(Fault::in_making("a picture"))?;
    Ok(Response::bytes("image/png", &png).with_header("cache-control", "public, max-age=86400"))
}

/// Serves the test wallet's script to loopback requests of a shop on a local ledger. The platform serves all other static
/// files by itself.
pub async fn test_wallet(app: &App) -> Result<Response, ApiError> {
    app.test_ledger().ok_or_else(no_such_path)?;
    let file = app.static_file(MAX_TEST_WALLET).await?.ok_or_else(no_such_path)?;
    Ok(Response::bytes("text/javascript; charset=utf-8", &file).with_header("cache-control", "no-store"))
}

async fn home(app: &App) -> Result<Response, ApiError> {
    let url = app.request.url()?;
    let asked = Asked::read(url.query_pairs());
    // Forms send empty fields too.
    let said = url.query_pairs().filter(|(name, value)| !value.is_empty() && name != "limit");
    let mut filter = Filter::from_query(said).map_err(ErrorAnswer::bad_request)?.unwrap_or_default();
    filter.max_price = asked.max_price();
    filter.limit = Some(home::PAGE);
    let _permit = app.limit_search(Weight::of_listings(filter.page_size())).await?;
    let database = app.nearest();
    let catalogue::Page { json, next, some_words } = catalogue::page(&database, &filter).await?;
    let listings: Vec<Listing> = read(&json)?;
    let total = catalogue::count(&database, &filter).await?;
    let found = home::Found { listings: &listings, total, next: next.as_deref(), some_words };
    kept(app, home::page(&app.public_origin()?, &asked, &found))
}

async fn listing(app: &App, id: &str) -> Result<Response, ApiError> {
    let listing = listed(app, id).await?;
    let seller = catalogue::seller(&app.nearest(), &listing.seller_address).await?;
    kept(app, ::pages::listing::page(&app.public_origin()?, &listing, &seller))
}

/// Renders the paywall page, with the terms of the 402 answer that programs get.
async fn paywall(app: &App, id: &str) -> Result<Response, ApiError> {
    let asked = unlock::show(app, id).await?;
    let required = decode_header(asked.header(PAYMENT_REQUIRED).unwrap_or_default());
    let required: PaymentRequired = required.map_err(Fault::in_making("terms"))?;
    let listing = listed(app, id).await?;
    let escrow = required.accepts.iter().find_map(|entry| entry.extra.escrow());
    let offer = ::pages::paywall::Offer {
        listing: &listing,
        instant: required.accepts.iter().any(|entry| entry.extra.escrow().is_none()),
        protected: escrow.map(|extra| extra.terms.deadlines),
        explorer: &app.settings()?.explorer_url,
    };
    Ok(instead(app, asked, ::pages::paywall::page(&offer)))
}

async fn creator(app: &App, address: &str) -> Result<Response, ApiError> {
    let address: Address = address.parse().map_err(creators::invalid_address)?;
    let cursor = creators::after(&mut app.request.url()?.query_pairs())?;
    let _permit = app.limit_search(Weight::SHORT).await?;
    let database = app.nearest();
    let filter = Filter { seller: Some(address), limit: Some(home::PAGE), cursor, ..Filter::default() };
    let catalogue::Page { json, next, .. } = catalogue::page(&database, &filter).await?;
    let seller = catalogue::seller(&database, &address).await?;
    let (origin, listings) = (app.public_origin()?, read::<Vec<Listing>>(&json)?);
    kept(app, ::pages::creator::page(&origin, &address.to_string(), &seller, &listings, next.as_deref()))
}

async fn purchase(app: &App, id: &str) -> Result<Response, ApiError> {
    let id = purchases::id(id)?;
    app.limit_client(Counted::READ).await?;
    purchases::catch_up(app, &id).await;
    let (database, settings) = (app.database(), app.settings()?);
    let asked = (purchase::read(&id), receipt::read(&id), chain_state::read_time());
    let (found, receipt, time) = database.batch(asked).await?;
    let purchase: Purchase = found.first_json()?.ok_or_else(purchases::unknown)?;
    let receipt = receipt.ok_or_else(purchases::unknown)?;
    let listing = match purchase.listing_id.parse::<ListingId>() {
        Ok(listing) => take_off::bought(&database, &listing).await?,
        Err(_) => None,
    };
    let for_sale = listing.as_ref().is_some_and(|(_, for_sale)| *for_sale);
    let listing = listing.map(|(json, _)| read::<Listing>(&json)).transpose()?;
    let now = settings.lead.clock(time.unwrap_or(0), app.now_ms);
    let shown = ::pages::purchase::Shown {
        purchase: &purchase,
        listing: listing.as_ref(),
        for_sale,
        receipt,
        now,
        explorer: &settings.explorer_url,
    };
    Ok(fresh(app, ::pages::purchase::page(&shown)))
}

/// Shows the account of the request's session, or the sign-in page.
async fn account(app: &App) -> Result<Response, ApiError> {
    if shown_token(app)?.is_none() {
        return Ok(fresh(app, ::pages::account::sign_in()));
    }
    let (view, balance, _permit) = me::read(app, false).await?;
    let agents = grant::list(&app.database(), &required_token(app)?, app.now_ms).await?;
    // Shown without a balance too, so that owners can always remove agents.
    let balance = balance.ok();
    let me: Me = read(&view.json(balance.unwrap_or_default()))?;
    let bought: Vec<&str> = me.purchases.iter().take(SHOWN).map(|purchase| purchase.listing_id.as_str()).collect();
    let more = (
        catalogue::titles(&bought),
        purchase::sales(&me.owner),
        take_off::taken_off(&me.owner),
        purchase_request::waiting(&me.owner, app.now_ms),
    );
    let (titles, sales, taken_off, waiting) = app.database().batch(more).await?;
    let account = ::pages::account::Account {
        me,
        balance,
        waiting,
        titles,
        sales,
        taken_off: taken_off.all_json()?,
        agents: agents.ok_or_else(not_signed_in)?,
        explorer: app.settings()?.explorer_url.clone(),
    };
    Ok(fresh(app, ::pages::account::page(&account, app.now_ms)))
}

/// Shows an agent's purchase request to the session's owner, or the sign-in page.
async fn request_of_agent(app: &App, id: &str) -> Result<Response, ApiError> {
    if shown_token(app)?.is_none() {
        return Ok(fresh(app, ::pages::account::sign_in()));
    }
    let asked = purchase_requests::read(app, id).await?;
    Ok(fresh(app, ::pages::account::request(asked.as_ref())))
}

/// Returns a listing that is not hidden.
async fn listed(app: &App, id: &str) -> Result<Listing, ApiError> {
    let id = listings::id(id)?;
    app.limit_client(Counted::READ).await?;
    read(&catalogue::one(&app.nearest(), &id).await?.ok_or_else(listings::unknown)?)
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, ApiError> {
    Ok(serde_json::from_str(json).map_err(Fault::in_making("what is shown"))?)
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
fn kept(app: &App, html: String) -> Result<Response, ApiError> {
    let etag = format!("W/\"{}\"", ContentHash::of(html.as_bytes()));
    let made = || respond::tagged(instead(app, Response::empty(200), html), &etag);
    Ok(respond::not_modified(&app.request, &etag)?.unwrap_or_else(made))
}

/// Sends a page that must not be cached.
fn fresh(app: &App, html: String) -> Response {
    instead(app, Response::empty(200), html).with_header("cache-control", "no-store")
}

fn headed(response: Response, headers: &[(&'static str, &str)]) -> Response {
    headers.iter().fold(response, |response, (name, value)| response.with_header(name, *value))
}
