//! `/feed.xml`: the newest listings, of all sellers or of one, as an Atom feed (RFC 4287).

use std::fmt::Write;

use crate::{format::stamp, view::Listing};

/// Listings in a feed.
pub const NEWEST: u32 = 30;

/// The feed; `origin` is our own address.
#[must_use]
pub fn atom(origin: &str, seller: Option<&str>, listings: &[Listing]) -> String {
    let query = seller.map(|seller| format!("?seller={seller}")).unwrap_or_default();
    let updated = listings.iter().filter_map(|listing| listing.created_at).max().unwrap_or_default();
    let title = seller.map_or_else(|| "New prompts on Surety".to_owned(), |seller| format!("New prompts by {seller}"));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>{title}</title>\n<id>{origin}/feed.xml{query}</id>\n<updated>{}</updated>\n\
         <link rel=\"self\" href=\"{origin}/feed.xml{query}\"/>\n<link href=\"{origin}/\"/>\n",
        stamp(updated)
    );
    for listing in listings {
        // Writing to a text never fails.
        let _written = write!(
            xml,
            "<entry>\n<title>{}</title>\n<id>{origin}/listings/{id}</id>\n<link href=\"{origin}/listings/{id}\"/>\n\
             <updated>{}</updated>\n<author><name>{}</name></author>\n<summary>{} · {}</summary>\n</entry>\n",
            escaped(&listing.title),
            stamp(listing.created_at.unwrap_or_default()),
            listing.seller_address,
            listing.price_lovelace.display_tada(),
            escaped(&listing.description),
            id = listing.id,
        );
    }
    xml.push_str("</feed>\n");
    xml
}

/// A text in XML 1.0, without the characters that it cannot hold.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() && !matches!(c, '\n' | '\t') => {}
            c => safe.push(c),
        }
    }
    safe
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
            "contentHash": "0".repeat(64), "createdAt": "1655769600000",
        }))
        .unwrap();
        let xml = atom("https://shop.example", None, &[listing]);
        assert!(xml.contains("<title>&lt;/title&gt;&lt;script&gt;&amp;</title>"), "{xml}");
        assert!(
            xml.contains("<summary>2.5 tADA · ab</summary>") && xml.contains("<updated>2022-06-21T00:00:00Z</updated>")
        );
        assert_eq!(atom("https://shop.example", Some("addr_test1"), &[]).matches("<entry>").count(), 0);
    }
}
