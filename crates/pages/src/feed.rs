//! Atom feeds (RFC 4287): the newest listings, of all sellers or of one (`/feed.xml`), and an owner's events
//! (`/me/feed.xml`).

use api_types::Event;
use maud::{PreEscaped, html};

use crate::{format::stamp, view::Listing};

/// Number of listings in a feed.
pub const NEWEST: u32 = 30;

/// Renders the feed of all sellers, or of one `seller`. `origin` is the service's address.
#[must_use]
pub fn atom(origin: &str, seller: Option<&str>, listings: &[Listing]) -> String {
    let own = format!("{origin}/feed.xml{}", seller.map(|seller| format!("?seller={seller}")).unwrap_or_default());
    let updated = listings.iter().filter_map(|listing| listing.created_at).max().unwrap_or_default();
    let feed = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        feed xmlns="http://www.w3.org/2005/Atom" {
            title { "New prompts " @match seller { Some(seller) => { "by " (seller) }, None => { "on Surety" } } }
            id { (own) }
            updated { (stamp(updated)) }
            link rel="self" href=(own) {}
            link href={ (origin) "/" } {}
            @for listing in listings {
                @let url = format!("{origin}/listings/{}", listing.id);
                entry {
                    title { (readable(&listing.title)) }
                    id { (url) }
                    link href=(url) {}
                    updated { (stamp(listing.created_at.unwrap_or_default())) }
                    author { name { (author(listing)) } }
                    summary { (listing.price_lovelace.display_tada()) " · " (readable(&listing.description)) }
                }
            }
        }
    };
    feed.into_string()
}

/// Formats a listing's seller as the name and the address, or as the address alone if the seller has no name.
fn author(listing: &Listing) -> String {
    let address = listing.seller_address;
    listing.seller_name.as_ref().map_or_else(|| address.to_string(), |name| format!("{} ({address})", readable(name)))
}

/// Renders the private feed of an owner's events. Its address is a secret, so the document does not contain it.
#[must_use]
pub fn events(origin: &str, owner: &str, events: &[Event]) -> String {
    let own = format!("{origin}/me/events");
    let updated = events.iter().map(|event| event.at).max().unwrap_or_default();
    let feed = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        feed xmlns="http://www.w3.org/2005/Atom" {
            title { "Notices of your account on Surety" }
            id { (own) "#" (owner) }
            updated { (stamp(updated)) }
            author { name { "Surety" } }
            link href={ (origin) "/me" } {}
            @for event in events {
                @let undone = if event.undone_by.is_some() { "Undone: " } else { "" };
                entry {
                    title { (undone) (readable(&event.words())) }
                    id { (own) "#" (event.id) }
                    link href={ (origin) (event.path()) } {}
                    updated { (stamp(event.at)) }
                    summary { (event.kind.name()) }
                }
            }
        }
    };
    feed.into_string()
}

/// Removes characters that XML 1.0 does not allow.
fn readable(text: &str) -> String {
    let holds = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_feed_escapes_sellers_texts_and_has_an_entry_for_each_listing() {
        let listing: Listing = serde_json::from_value(json!({
            "id": "lst_1", "title": "</title><script>&", "description": "a\u{ffff}b", "priceLovelace": "2500000",
            "sellerAddress": "addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv", "modes": ["instant"],
            "contentHash": "0".repeat(64), "createdAt": "1655769600000", "sellerName": "<Ada>",
        }))
        .unwrap();
        let xml = atom("https://shop.example", None, &[listing]);
        assert!(xml.contains("<title>&lt;/title&gt;&lt;script&gt;&amp;</title>"), "{xml}");
        assert!(
            xml.contains("<summary>2.5 tADA · ab</summary>") && xml.contains("<updated>2022-06-21T00:00:00Z</updated>")
        );
        assert!(
            xml.contains("<name>&lt;Ada&gt; (addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv)</name>")
        );
        assert_eq!(atom("https://shop.example", Some("addr_test1"), &[]).matches("<entry>").count(), 0);
    }

    #[test]
    fn a_private_feed_escapes_texts_of_others_and_says_what_was_undone() {
        let event = |id: &str, undone_by: Option<&str>| -> Event {
            serde_json::from_value(json!({
                "id": id, "type": "sale", "at": "1655769600000", "role": "seller", "listingId": "lst_1",
                "title": "</title><script>&\u{ffff}", "amountLovelace": "2500000", "undoneBy": undone_by,
            }))
            .unwrap()
        };
        let xml = events("https://shop.example", "addr_test1", &[event("evt_2", None), event("evt_1", Some("evt_3"))]);
        assert!(xml.contains("<title>Sold: &lt;/title&gt;&lt;script&gt;&amp;. Your share: 2.5 tADA</title>"), "{xml}");
        assert_eq!(xml.matches("<title>Undone: Sold").count(), 1);
        assert_eq!(xml.matches("<entry>").count(), 2);
        assert!(xml.contains("<id>https://shop.example/me/events#evt_2</id>"));
    }
}
