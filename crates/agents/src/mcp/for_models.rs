//! Extends the API's JSON for models: adds amounts in tADA, times in ISO 8601, and links. Purchased content comes last,
//! so that a client that truncates a result loses nothing else.

use cardano::Lovelace;
use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Names of the members that contain POSIX ms as strings.
const TIMES: [&str; 7] = ["at", "createdAt", "expiresAt", "payBy", "submitResult", "unlock", "externalDisputeUnlock"];
/// Name of the member that contains purchased content and may be long.
const CONTENT: &str = "content";
/// Base URL of a public explorer of preprod transactions.
const EXPLORER: &str = "https://preprod.cardanoscan.io/transaction";
/// Upper bound of the cost of a purchase beyond its price: the network fee and a minimal change output.
const FEE_AND_CHANGE: Lovelace = Lovelace::from_ada(2);
/// Maximum length of a description in a list, in letters. A character of a script that models read one by one (CJK)
/// counts as two. With this limit, fifty results stay below 25,000 tokens.
const MAX_DESCRIPTION: usize = 240;

/// Formats a JSON object as text for a model, with purchased content at the end.
pub(super) fn told(mut value: Value) -> String {
    explain(&mut value);
    let content = value.as_object_mut().and_then(|fields| fields.remove(CONTENT));
    let text = value.to_string();
    match (content, text.strip_suffix('}')) {
        (Some(content), Some("{")) => format!("{{\"{CONTENT}\":{content}}}"),
        (Some(content), Some(text)) => format!("{text},\"{CONTENT}\":{content}}}"),
        _ => text,
    }
}

/// Adds readable forms of amounts and times, at every level.
fn explain(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(explain),
        Value::Object(fields) => {
            let beside: Vec<(String, Value)> = fields.iter().filter_map(|(name, value)| beside(name, value)).collect();
            fields.extend(beside);
            fields.iter_mut().filter(|(name, _)| *name != CONTENT).for_each(|(_, value)| explain(value));
        }
        _ => {}
    }
}

/// Returns the readable form of a member, as a member to add beside it, or `None` if the member is neither an amount
/// nor a time.
fn beside(name: &str, value: &Value) -> Option<(String, Value)> {
    let text = value.as_str()?;
    if name == "lovelace" {
        return Some(("tada".to_owned(), json!(tada(text.parse().ok()?))));
    }
    if let Some(of) = name.strip_suffix("Lovelace") {
        return Some((format!("{of}Tada"), json!(tada(text.parse().ok()?))));
    }
    let known = TIMES.contains(&name).then(|| text.parse().ok()).flatten()?;
    Some((format!("{name}Iso"), json!(iso(known)?)))
}

/// Formats an amount in tADA without its unit: `5`, `4.25`.
fn tada(amount: Lovelace) -> String {
    amount.display_tada().to_string().trim_end_matches(" tADA").to_owned()
}

/// Formats POSIX ms in ISO 8601, to the second: `2026-11-26T14:00:00Z`. Returns `None` if the time is out of range.
pub(super) fn iso(ms: u64) -> Option<String> {
    let seconds = i64::try_from(ms / 1_000).ok()?;
    OffsetDateTime::from_unix_timestamp(seconds).ok()?.format(&Rfc3339).ok()
}

/// Returns links to a purchase's page and its transaction.
pub(super) fn links(origin: &str, tx: &str) -> Value {
    json!({ "purchase": format!("{origin}/purchases/{tx}"), "transaction": format!("{EXPLORER}/{tx}") })
}

/// Adds to a wallet's JSON the amounts that can be spent today and now.
pub(super) fn spendable(fields: &mut Map<String, Value>, origin: &str) {
    let amount = |name: &str| fields.get(name).and_then(Value::as_str).and_then(|text| text.parse::<Lovelace>().ok());
    let [balance, most, budget, spent] =
        ["balanceLovelace", "maxPerPaymentLovelace", "dailyBudgetLovelace", "spentTodayLovelace"]
            .map(|name| amount(name).unwrap_or(Lovelace::ZERO));
    let left = budget.saturating_sub(spent);
    let now = most.min(left).min(balance.saturating_sub(FEE_AND_CHANGE));
    fields.insert("leftToday".into(), json!(tada(left)));
    fields.insert("canSpendNow".into(), json!(tada(now)));
    fields.insert("account".into(), json!(format!("{origin}/me")));
}

/// Adds the amount that this call paid, in tADA.
pub(super) fn paid_now(fields: &mut Map<String, Value>) {
    let owned = fields.get("alreadyOwned").and_then(Value::as_bool) == Some(true);
    let paid = fields.get("paidLovelace").and_then(Value::as_str).and_then(|text| text.parse().ok());
    let paid = paid.filter(|_| !owned).unwrap_or(Lovelace::ZERO);
    fields.insert("paidNow".into(), json!(tada(paid)));
}

/// Shortens a listing's JSON for a list: keeps the members that help to choose, and truncates the description.
pub(super) fn in_a_list(mut listing: Value) -> Value {
    const KEPT: [&str; 10] = [
        "id",
        "title",
        "description",
        "priceLovelace",
        "sellerAddress",
        "modes",
        "contentHash",
        "category",
        "sales",
        "sellerReputation",
    ];
    if let Value::Object(fields) = &mut listing {
        fields.retain(|name, _| KEPT.contains(&name.as_str()));
        if let Some(Value::String(description)) = fields.get_mut("description") {
            *description = cut(description);
        }
    }
    listing
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
    use super::*;

    #[test]
    fn amounts_and_times_have_both_forms_and_content_comes_last() {
        let json = r#"{"content":{"text":"x"},"priceLovelace":"4250000","purchase":{"events":[{"at":"1790000000000"}],
            "escrow":{"deadlines":{"unlock":"1790000000999"}}},"tx":"ab"}"#;
        let told = told(serde_json::from_str(json).unwrap());
        assert!(told.ends_with(r#","content":{"text":"x"}}"#), "{told}");
        let value: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&value["priceLovelace"], &value["priceTada"]), (&json!("4250000"), &json!("4.25")));
        assert_eq!(value["purchase"]["events"][0]["atIso"], "2026-09-21T14:13:20Z");
        assert_eq!(value["purchase"]["escrow"]["deadlines"]["unlockIso"], "2026-09-21T14:13:20Z");
    }

    #[test]
    fn a_sellers_text_is_passed_on_unchanged() {
        let json = r#"{"content":{"priceLovelace":"1","text":"y"},"title":"priceLovelace"}"#;
        let told = told(serde_json::from_str(json).unwrap());
        assert_eq!(told, r#"{"title":"priceLovelace","content":{"priceLovelace":"1","text":"y"}}"#);
    }

    #[test]
    fn spendable_is_the_least_of_limit_budget_and_balance_after_fees() {
        let spend = |balance: u32, most: u32, budget: u32, spent: u32| {
            let ada = |amount: u32| json!(Lovelace::from_ada(amount));
            let fields = [
                ("balanceLovelace", ada(balance)),
                ("maxPerPaymentLovelace", ada(most)),
                ("dailyBudgetLovelace", ada(budget)),
                ("spentTodayLovelace", ada(spent)),
            ];
            let mut fields: Map<String, Value> =
                fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
            spendable(&mut fields, "https://surety.example.com");
            [fields["canSpendNow"].clone(), fields["leftToday"].clone()]
        };
        assert_eq!(spend(50, 10, 30, 0), ["10", "30"]);
        assert_eq!(spend(50, 10, 30, 26), ["4", "4"]);
        assert_eq!(spend(8, 10, 30, 0), ["6", "30"]);
        assert_eq!(spend(1, 10, 30, 40), ["0", "0"]);
    }

    /// Assumes that a token has at most three letters, or one character of another script.
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
            });
            let listings = vec![in_a_list(listing); 50];
            let text = told(json!({ "listings": listings }));
            assert!(tokens(&text) < 25_000, "{letter}: {}", tokens(&text));
        }
    }
}
