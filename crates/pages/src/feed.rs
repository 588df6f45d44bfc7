//! `/feed.xml`: the newest listings, of all sellers or of one, as an Atom feed (RFC 4287).

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

/// Names a listing's seller: the address, after the name if there is one.
fn author(listing: &Listing) -> String {
    let address = listing.seller_address;
    listing.seller_name.as_ref().map_or_else(|| address.to_string(), |name| format!("{} ({address})", readable(name)))
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
}
