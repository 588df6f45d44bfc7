//! `/robots.txt`, `/sitemap.xml`, `/feed.xml` and `/llms.txt`, for crawlers, feed readers and language models.

use std::rc::Rc;

use cardano::Address;
use edge::serve::Response;
use market::catalogue::{self, Filter, Page, discovery};
use pages::{feed, view::Listing};
#[cfg(test)]
use serde_json::json;
use sql::DatabaseError;

use crate::{
    app::App,
    error::ApiError,
    limits::{AnswerMemory, Counted},
    read_cache::{self, VersionedDatabase},
    route::{Limit, OnMiss, Route, route},
    routes::creators,
};

pub const ROUTES: &[Route] = &[
    route! {
        GET "/robots.txt", Limit::Free => robots();
        docs |of| of.names("robots", "System", "Rules for crawlers").text(200, "text/plain; charset=utf-8", "robots.txt.")
    },
    route! {
        GET "/sitemap.xml", Limit::OnMiss(Counted::SEARCH) => sitemap(OnMiss);
        docs |of| of
            .names("sitemap", "System", "List of the pages, for crawlers")
            .more(&format!("Includes the newest {} listings.", discovery::MAX_ADDRESSES))
            .text(200, "application/xml", "A sitemap.")
    },
    route! {
        GET "/feed.xml", Limit::OnMiss(Counted::SEARCH) => feed(OnMiss);
        docs |of| of
            .names("feed", "Catalogue", "The newest listings as an Atom feed")
            .query("seller", "Restricts the feed to listings of this seller.", json!({ "type": "string" }))
            .text(200, "application/atom+xml; charset=utf-8", "A feed.")
            .fails(&[400])
    },
    route! {
        GET "/llms.txt", Limit::Free => llms();
        docs |of| of
            .names("llms", "System", "Description of the service for language models")
            .text(200, "text/markdown; charset=utf-8", "llms.txt.")
    },
];

/// Paths in the sitemap other than listings.
const PATHS: [&str; 8] = ["/", "/sell", "/protection", "/connect", "/help", "/about", "/docs", "/llms.txt"];

fn typed(response: Response, kind: &str, max_age: &str) -> Response {
    response.with_header("content-type", kind).with_header("cache-control", max_age)
}

/// Serves `/robots.txt`, which allows the public pages and excludes those that need a signature, a session or money.
async fn robots(app: &App) -> Result<Response, ApiError> {
    let origin = app.public_origin()?;
    let body = format!(
        "User-agent: *\nDisallow: /auth/\nDisallow: /me\nDisallow: /oauth/\nDisallow: /mcp\n\nSitemap: {origin}/sitemap.xml\n"
    );
    Ok(Response::text(body).with_header("cache-control", "public, max-age=3600"))
}

/// Serves the sitemap: the pages in [`PATHS`] and the newest listings.
async fn sitemap(app: &App, limit: OnMiss) -> Result<Response, ApiError> {
    let origin = app.public_origin()?;
    let read = async |database: Rc<VersionedDatabase>| {
        let listings = discovery::addresses(&*database).await?;
        Ok(Page { json: urls(&origin, &listings), ..Page::default() })
    };
    let page = read_cache::list(app, limit, AnswerMemory::LONG, &format!("{origin}/sitemap.xml"), read).await?;
    Ok(typed(Response::js_json(&page.json), "application/xml", "public, max-age=300"))
}

fn urls(origin: &str, listings: &str) -> String {
    let pages = PATHS.iter().map(|path| format!("<url><loc>{origin}{path}</loc></url>\n"));
    // Origins, ids and dates contain no special characters of XML.
    let listings = listings.lines().filter_map(|line| line.split_once(' '));
    let listings =
        listings.map(|(id, day)| format!("<url><loc>{origin}/listings/{id}</loc><lastmod>{day}</lastmod></url>\n"));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{}</urlset>\n",
        pages.chain(listings).collect::<String>()
    )
}

/// Renders the newest listings as an Atom feed, of all sellers or one.
async fn feed(app: &App, limit: OnMiss) -> Result<Response, ApiError> {
    let origin = app.public_origin()?;
    let seller = app.request.url()?.query_pairs().find_map(|(name, value)| (name == "seller").then(|| value.parse()));
    let seller: Option<Address> = seller.transpose().map_err(creators::invalid_address)?;
    let filter = Filter { seller, limit: Some(feed::NEWEST), ..Filter::default() };
    let named = seller.map(|seller| seller.to_string());
    let read = async |database: Rc<VersionedDatabase>| {
        let page = catalogue::page(&*database, &filter).await?;
        let listings: Vec<Listing> =
            serde_json::from_str(&page.json).map_err(|error| DatabaseError(error.to_string()))?;
        Ok(Page { json: feed::atom(&origin, named.as_deref(), &listings), ..Page::default() })
    };
    let name = format!("{origin}/feed.xml {}", named.as_deref().unwrap_or_default());
    let page = read_cache::list(app, limit, AnswerMemory::of_listings(filter.page_size()), &name, read).await?;
    Ok(typed(Response::js_json(&page.json), "application/atom+xml; charset=utf-8", "public, max-age=300"))
}

/// Describes the service for language models.
async fn llms(app: &App) -> Result<Response, ApiError> {
    let origin = app.public_origin()?;
    let text = Response::text(LLMS.replace("{origin}", &origin));
    Ok(typed(text, "text/markdown; charset=utf-8", "public, max-age=3600"))
}

const LLMS: &str = include_str!("llms.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sitemap_has_each_listing_once() {
        let pages = PATHS.len();
        let xml = urls("https://shop.example", "lst_2 2026-11-02\nlst_1 2026-11-01");
        assert_eq!(xml.matches("<url>").count(), pages + 2);
        assert!(xml.contains("<loc>https://shop.example/listings/lst_1</loc><lastmod>2026-11-01</lastmod>"));
        assert_eq!(urls("https://shop.example", "").matches("<url>").count(), pages);
    }
}
