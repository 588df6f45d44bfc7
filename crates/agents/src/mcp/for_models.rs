//! Extends the API's JSON for models: adds amounts in tADA, times in ISO 8601, and links. Purchased content comes last,
//! so that a client that truncates a result loses nothing else.

use api_types::mcp::{Links, ListingSummary};
use cardano::{Lovelace, TxHash};
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Names of the members that contain POSIX ms as strings.
const TIMES: [&str; 7] = ["at", "createdAt", "expiresAt", "payBy", "submitResult", "unlock", "externalDisputeUnlock"];
/// Name of the member that contains purchased content and may be long.
const CONTENT: &str = "content";
/// Base URL of a public explorer of preprod transactions.
const EXPLORER: &str = "https://preprod.cardanoscan.io/transaction";
/// Upper bound of the cost of a purchase beyond its price: the network fee and a minimal change output.
const FEE_AND_CHANGE: Lovelace = Lovelace::from_ada(2);
/// Maximum length of a listing's description in search results, in ASCII characters. Any other character counts as two,
/// because some scripts take about one token per character. With this limit, fifty results stay below 25,000 tokens.
const MAX_DESCRIPTION: usize = 240;

/// Formats a JSON object as text for a model, with purchased content at the end.
pub(super) fn to_model_json(mut value: Value) -> String {
    explain(&mut value);
    let content = value.as_object_mut().and_then(|fields| fields.remove(CONTENT));
    let text = value.to_string();
    match (content, text.strip_suffix('}')) {
        (Some(content), Some("{")) => format!("{{\"{CONTENT}\":{content}}}"),
        (Some(content), Some(text)) => format!("{text},\"{CONTENT}\":{content}}}"),
        _ => text,
    }
}

/// Adds readable forms of amounts and times to an object and to all objects inside it.
fn explain(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(explain),
        Value::Object(fields) => {
            let readable: Vec<(String, Value)> =
                fields.iter().filter_map(|(name, value)| readable_member(name, value)).collect();
            fields.extend(readable);
            fields.iter_mut().filter(|(name, _)| *name != CONTENT).for_each(|(_, value)| explain(value));
        }
        _ => {}
    }
}

/// Returns the name and value of the readable member to insert beside an amount or a time, such as `priceTada` for
/// `priceLovelace`. Returns `None` for any other member.
fn readable_member(name: &str, value: &Value) -> Option<(String, Value)> {
    let (readable, text) = (readable_name(name)?, value.as_str()?);
    let told = if TIMES.contains(&name) { iso(text.parse().ok()?)? } else { tada(text.parse().ok()?) };
    Some((readable, told.into()))
}

/// Returns the name of the readable form of an amount or a time, such as `priceTada` for `priceLovelace`. Returns
/// `None` if `name` is that of another member.
pub(super) fn readable_name(name: &str) -> Option<String> {
    if name == "lovelace" {
        return Some("tada".to_owned());
    }
    let amount = name.strip_suffix("Lovelace").map(|of| format!("{of}Tada"));
    amount.or_else(|| TIMES.contains(&name).then(|| format!("{name}Iso")))
}

/// Formats an amount in tADA without its unit: `5`, `4.25`.
pub(super) fn tada(amount: Lovelace) -> String {
    amount.display_tada().to_string().trim_end_matches(" tADA").to_owned()
}

/// Formats POSIX ms in ISO 8601, to the second: `2026-11-26T14:00:00Z`. Returns `None` if the time is out of range.
pub(super) fn iso(ms: u64) -> Option<String> {
    let seconds = i64::try_from(ms / 1_000).ok()?;
    OffsetDateTime::from_unix_timestamp(seconds).ok()?.format(&Rfc3339).ok()
}

/// Returns links to the pages that show a purchase.
pub(super) fn links(origin: &str, tx: &TxHash) -> Links {
    Links { purchase: format!("{origin}/purchases/{tx}"), transaction: format!("{EXPLORER}/{tx}") }
}

/// Returns the amount available for one more purchase, given the balance, the limit per purchase (`most`), and the rest
/// of the daily budget (`left`).
pub(super) fn spendable(balance: Lovelace, most: Lovelace, left: Lovelace) -> Lovelace {
    most.min(left).min(balance.saturating_sub(FEE_AND_CHANGE))
}

/// Returns the listing with its description truncated for search results.
pub(super) fn with_short_description(listing: ListingSummary) -> ListingSummary {
    ListingSummary { description: cut(&listing.description), ..listing }
}

/// Describes a listing in one line: its price and a truncated description. Returns `None` if a member is missing.
pub(super) fn listing_line(listing: &Value) -> Option<String> {
    let price = listing.get("priceLovelace")?.as_str()?.parse().ok()?;
    Some(format!("{} tADA. {}", tada(price), cut(listing.get("description")?.as_str()?)))
}

fn cut(text: &str) -> String {
    let mut weight = 0_usize;
    for (at, letter) in text.char_indices() {
        weight = weight.saturating_add(if letter.is_ascii() { 1 } else { 2 });
        if weight > MAX_DESCRIPTION {
            return format!("{}…", text.get(..at).unwrap_or_default().trim_end());
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_and_times_have_both_forms_and_content_comes_last() {
        let json = r#"{"content":{"text":"x"},"priceLovelace":"4250000","purchase":{"events":[{"at":"1790000000000"}],
            "escrow":{"deadlines":{"unlock":"1790000000999"}}},"tx":"ab"}"#;
        let told = to_model_json(serde_json::from_str(json).unwrap());
        assert!(told.ends_with(r#","content":{"text":"x"}}"#), "{told}");
        let value: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&value["priceLovelace"], &value["priceTada"]), (&json!("4250000"), &json!("4.25")));
        assert_eq!(value["purchase"]["events"][0]["atIso"], "2026-09-21T14:13:20Z");
        assert_eq!(value["purchase"]["escrow"]["deadlines"]["unlockIso"], "2026-09-21T14:13:20Z");
    }

    #[test]
    fn a_sellers_text_is_passed_on_unchanged() {
        let json = r#"{"content":{"priceLovelace":"1","text":"y"},"title":"priceLovelace"}"#;
        let told = to_model_json(serde_json::from_str(json).unwrap());
        assert_eq!(told, r#"{"title":"priceLovelace","content":{"priceLovelace":"1","text":"y"}}"#);
    }

    #[test]
    fn spendable_is_the_least_of_limit_budget_and_balance_after_fees() {
        let spend = |balance: u32, most: u32, left: u32| {
            let ada = Lovelace::from_ada;
            tada(spendable(ada(balance), ada(most), ada(left)))
        };
        assert_eq!(spend(50, 10, 30), "10");
        assert_eq!(spend(50, 10, 4), "4");
        assert_eq!(spend(8, 10, 30), "6");
        assert_eq!(spend(1, 10, 0), "0");
    }

    /// The estimate is deliberately high: one token for every three ASCII characters, and one for each other character.
    #[test]
    fn fifty_results_are_below_twenty_five_thousand_tokens_in_any_script() {
        let tokens = |text: &str| {
            let ascii = text.chars().filter(char::is_ascii).count();
            ascii.div_ceil(3) + (text.chars().count() - ascii)
        };
        for letter in ["a", "漢", "é", "🙂"] {
            let listing = json!({
                "id": "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV", "title": letter.repeat(120), "description": letter.repeat(2_000),
                "priceLovelace": "5000000", "modes": ["instant", "protected"], "category": "Landing Page", "sales": 1000,
                "sellerReputation": { "score": 100, "basis": 1000 }, "sellerAddress": "a".repeat(108), "contentHash": "b",
                "sellerName": letter.repeat(40),
            });
            let listings = vec![with_short_description(serde_json::from_value(listing).unwrap()); 50];
            let text = to_model_json(json!({ "listings": listings }));
            assert!(tokens(&text) < 25_000, "{letter}: {}", tokens(&text));
        }
    }
}
