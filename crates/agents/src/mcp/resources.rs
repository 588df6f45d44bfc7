//! Listings as MCP resources: the public description of each under its public URL, never its content.
//!
//! Source: MCP's "Resources". A missing resource is error -32602 in every revision, as in the newest one.

use market::{
    catalogue::{Filter, Page},
    listing::ListingId,
};
use serde_json::{Map, Value, json};

use super::{
    for_models::{listing_line, to_model_json},
    message::{RpcCode, RpcError, invalid_params, object},
    shop::{Shelf, ShopError, parsed},
};

/// Number of resources per page.
const PAGE: u32 = 50;
const JSON: &str = "application/json";

fn address(shelf: &impl Shelf, id: &str) -> String {
    format!("{}/listings/{id}", shelf.origin())
}

fn failed(error: &ShopError) -> RpcError {
    RpcError::new(200, RpcCode::InternalError, error.to_string())
}

/// Returns a page of listings, newest first, as MCP resources.
///
/// # Errors
/// [`RpcError`] if the cursor is invalid or the shop does not answer.
pub(super) async fn list(shelf: &impl Shelf, params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    let cursor = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(cursor) => Some(
            cursor
                .as_str()
                .and_then(|cursor| cursor.parse().ok())
                .ok_or_else(|| invalid_params("Unknown cursor: pass the nextCursor of an earlier page"))?,
        ),
    };
    let filter = Filter { limit: Some(PAGE), cursor, ..Filter::default() };
    let Page { json: text, next, .. } = shelf.search(filter).await.map_err(|error| failed(&error))?;
    let listings: Vec<Value> = parsed(&text).map_err(|error| failed(&error))?;
    let resources: Vec<Value> = listings.iter().filter_map(|listing| resource(shelf, listing)).collect();
    let mut page = object(json!({ "resources": resources }));
    page.extend(next.map(|next| ("nextCursor".to_owned(), json!(next))));
    Ok(page)
}

fn resource(shelf: &impl Shelf, listing: &Value) -> Option<Value> {
    let id = listing.get("id")?.as_str()?;
    Some(json!({
        "uri": address(shelf, id),
        "name": id,
        "title": listing.get("title")?,
        "description": listing_line(listing)?,
        "mimeType": JSON,
    }))
}

/// Returns the answer to MCP's `resources/templates/list`: the URI template of listings.
pub(super) fn templates(shelf: &impl Shelf) -> Map<String, Value> {
    let listing = json!({
        "uriTemplate": address(shelf, "{id}"),
        "name": "listing",
        "title": "A listing",
        "description": "What is for sale, at what price and how; the id is one of search_listings.",
        "mimeType": JSON,
    });
    object(json!({ "resourceTemplates": [listing] }))
}

/// Returns the public description of one listing.
///
/// # Errors
/// [`RpcError`] if no listing has this URI, or if the shop does not answer.
pub(super) async fn read(shelf: &impl Shelf, params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    let uri = params.get("uri").and_then(Value::as_str).ok_or_else(|| invalid_params("params.uri must be a string"))?;
    let missing = || {
        let error = invalid_params("Resource not found");
        RpcError { data: Some(json!({ "uri": uri })), ..error }
    };
    let id: ListingId = uri.strip_prefix(&address(shelf, "")).and_then(|id| id.parse().ok()).ok_or_else(missing)?;
    let listing = shelf.listing(&id).await.map_err(|error| match error {
        ShopError::NoListing => missing(),
        error => failed(&error),
    })?;
    let listing = parsed(&listing).map_err(|error| failed(&error))?;
    Ok(object(json!({ "contents": [{ "uri": uri, "mimeType": JSON, "text": to_model_json(listing) }] })))
}

#[cfg(test)]
mod tests {
    use futures_lite::future::block_on;

    use super::*;
    use crate::mcp::tests::{ID, Stall};

    const CARD: &str = "https://surety.example.com/listings/lst_01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn params(value: Value) -> Map<String, Value> {
        object(value)
    }

    #[test]
    fn listings_are_paged_each_with_its_price_and_address() {
        let stall = Stall::default();
        let page = block_on(list(&stall, &params(json!({ "cursor": "7.1" })))).unwrap();
        assert_eq!(page["nextCursor"], "7.1");
        let listed = json!({
            "uri": CARD, "name": ID, "title": "A hero", "description": "5 tADA. With a gradient", "mimeType": JSON,
        });
        assert_eq!(page["resources"], json!([listed]));
        let asked = stall.filters.borrow()[0].clone();
        assert!(asked.cursor.is_some() && asked.limit == Some(PAGE));
        for cursor in [json!("x"), json!(1), json!({})] {
            assert!(block_on(list(&stall, &params(json!({ "cursor": cursor })))).is_err());
        }
    }

    #[test]
    fn a_card_is_read_by_its_address_and_has_no_content() {
        let stall = Stall { content: Some("the secret prompt".into()), ..Stall::default() };
        let read = |uri: Value| block_on(read(&stall, &params(json!({ "uri": uri }))));
        let card = read(json!(CARD)).unwrap();
        assert_eq!((&card["contents"][0]["uri"], &card["contents"][0]["mimeType"]), (&json!(CARD), &json!(JSON)));
        let text = card["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("\"priceTada\":\"5\"") && !text.contains("secret"), "{text}");
        for missing in ["https://other.example.com/listings/lst_01ARZ3NDEKTSV4RRFFQ69G5FAV", &CARD[..40], ID, ""] {
            let error = read(json!(missing)).unwrap_err();
            assert_eq!((error.code, error.data), (RpcCode::InvalidParams, Some(json!({ "uri": missing }))));
        }
        assert!(read(json!(1)).is_err());
        let gone = Stall { refusal: Some(ShopError::NoListing), ..Stall::default() };
        assert!(block_on(super::read(&gone, &params(json!({ "uri": CARD })))).unwrap_err().data.is_some());
    }
}
