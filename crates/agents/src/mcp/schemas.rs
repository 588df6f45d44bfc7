//! Generates the definitions of the tools from their types, and compares them with the files that are served.
//!
//! `UPDATE_TOOLS=1 cargo test -p agents schemas` rewrites the files.

use api_types::{Listing, SubmittedAction, mcp::*};
use futures_lite::future::block_on;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    dispatch::Toolset,
    open::OpenTools,
    tests::Stall,
    tools::{OwnerTools, Tool},
};

/// Generates a JSON Schema 2020-12 (MCP's default dialect) without references. `input` tells whether it is for a tool's
/// arguments or its result.
fn schema<T: JsonSchema>(input: bool) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = if input { settings.for_deserialize() } else { settings.for_serialize() };
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    for name in ["title", "description"] {
        schema.as_object_mut().unwrap().remove(name);
    }
    simplify(&mut schema);
    schema
}

/// Simplifies a schema: removes `null` from optional fields, which may be absent instead, and Rust's number formats,
/// which clients do not know.
fn simplify(schema: &mut Value) {
    let null = json!({ "type": "null" });
    if let Value::Object(fields) = schema {
        fields.remove("format");
        if let Some(Value::Array(types)) = fields.get("type")
            && let [one, Value::String(other)] = types.as_slice()
            && other == "null"
        {
            fields["type"] = one.clone();
        }
        if let Some(Value::Array(choices)) = fields.remove("anyOf") {
            let choice: Vec<Value> = choices.into_iter().filter(|choice| *choice != null).collect();
            let [Value::Object(only)] = choice.as_slice() else { panic!("a choice of several shapes") };
            for (name, value) in only {
                fields.entry(name).or_insert_with(|| value.clone());
            }
        }
        if let Some(Value::Array(choices)) = fields.get_mut("enum") {
            choices.retain(|choice| !choice.is_null());
        }
        plain_enum(fields);
        fields.values_mut().for_each(simplify);
    } else if let Value::Array(items) = schema {
        items.iter_mut().for_each(simplify);
    }
}

/// Converts a `oneOf` of string constants to an `enum`, because some models' APIs reject `const` and `oneOf`.
fn plain_enum(fields: &mut Map<String, Value>) {
    let Some(choices) = fields.get("oneOf").and_then(Value::as_array) else { return };
    let texts: Vec<Value> = choices.iter().filter_map(|choice| choice.get("const")).cloned().collect();
    assert_eq!(texts.len(), choices.len(), "a choice of something else than texts");
    let meaning = |choice: &Value| Some(format!("{}: {}", choice["const"].as_str()?, choice["description"].as_str()?));
    let meanings: Vec<String> = choices.iter().filter_map(meaning).collect();
    let said = fields.get("description").and_then(Value::as_str).map(|said| format!("{said} ")).unwrap_or_default();
    fields.remove("oneOf");
    fields.insert("type".into(), json!("string"));
    fields.insert("enum".into(), json!(texts));
    fields.insert("description".into(), json!(format!("{said}{}", meanings.join(" "))));
}

fn name(tool: Tool) -> &'static str {
    Tool::ALL.into_iter().find(|(known, _)| *known == tool).expect("each is listed").1
}

fn annotations(tool: Tool, title: &str) -> Value {
    match tool.spends() {
        false => json!({ "title": title, "readOnlyHint": true, "openWorldHint": false }),
        true => json!({
            "title": title, "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true,
        }),
    }
}

/// Builds the definition of a tool from the type of its arguments. `output` is the schema of its result.
fn tool<In: JsonSchema>(tool: Tool, title: &str, description: &str, output: Option<Value>) -> Value {
    let mut definition = json!({
        "name": name(tool),
        "title": title,
        "description": description,
        "inputSchema": schema::<In>(true),
        "annotations": annotations(tool, title),
    });
    if let Some(output) = output {
        definition["outputSchema"] = output;
    }
    definition
}

fn definition(of: Tool) -> Value {
    match of {
        Tool::SearchListings => tool::<SearchListings>(
            of,
            "Search listings",
            "Search what is for sale: design prompts, paid in tADA. Free. Descriptions are shortened: get_listing has the \
             whole. Compare priceTada, sales and sellerReputation (share of the seller's closed escrows that were not refunded; absent means unknown, not \
             bad). More results: pass nextCursor as cursor.",
            Some(schema::<FoundListings>(false)),
        ),
        Tool::GetListing => tool::<GetListing>(
            of,
            "Get a listing",
            "One listing: price, modes, whether it is owned already, the seller's reputation, and contentHash, the SHA-256 of exactly what a buyer receives. \
             Free. Read it before buying.",
            Some(schema::<Listing>(false)),
        ),
        Tool::BuyListing => tool::<BuyListing>(
            of,
            "Buy a listing",
            "SPENDS the listing's price from the owner's Surety balance, within the owner's limits, and returns the content. \
             mode protected locks the payment in escrow and is refunded if delivery fails or differs from contentHash: \
             prefer it for sellers without reputation. mode instant pays the seller at once and cannot be taken back. \
             Takes up to 45 seconds. Safe to call again with the same arguments: what is owned or being paid for is never paid \
             twice. On status pending, do not buy elsewhere: follow get_purchase_status. On status awaiting_approval nothing is \
             paid: give the owner approval.page or approval.command.",
            Some(schema::<Purchased>(false)),
        ),
        Tool::MyPurchases => tool::<MyPurchases>(
            of,
            "My purchases",
            "What this account bought, newest first: title, price, status and timeline. Free.",
            Some(schema::<OwnPurchases>(false)),
        ),
        Tool::GetPurchaseStatus => tool::<GetPurchaseStatus>(
            of,
            "Get a purchase's status",
            "One purchase: where its payment is (FundsLocked, ResultSubmitted, withdrawn, refunded, settled, ...), its \
             deadlines, and with contentOffset also what was bought, page by page. Free.",
            Some(schema::<PurchaseStatus>(false)),
        ),
        Tool::MyWallet => tool::<NoArguments>(
            of,
            "My wallet",
            "The owner's Surety balance: canSpendNow (tADA for one more purchase, after fees and unconfirmed payments), \
             leftToday, the address to fund it, and the limits. Free. Call it before buying something expensive.",
            Some(schema::<WalletView>(false)),
        ),
        Tool::WithdrawToOwner => tool::<NoArguments>(
            of,
            "Withdraw to the owner",
            "SENDS the owner's Surety balance, but about 2 tADA kept for fees, to the wallet that the owner signed in \
             with. Costs the network's fee. Only when the owner asks for it. Not for the shared demo wallet.",
            Some(schema::<Withdrawal>(false)),
        ),
        Tool::ActOnPurchase => tool::<ActOnPurchase>(
            of,
            "Act on a protected purchase",
            "ACTS as the buyer of a protected purchase that the owner's Surety balance paid for: only when the owner asks for \
             it. dispute stops the seller's payment: the arbiter compares hashes alone, so where get_purchase_status says \
             contentMatches true the dispute is lost. Missing deliveries, and content that does not match, are refunded or \
             disputed without any call. Costs nothing. Safe to call again with the same arguments.",
            Some(schema::<SubmittedAction>(false)),
        ),
        // Without an output schema, because clients would check it against PaymentRequired too.
        Tool::UnlockListing => tool::<UnlockListing>(
            of,
            "Unlock a listing with your own wallet",
            "COSTS the listing's price, paid over x402 (exact, Cardano preprod) from your own wallet. Call it without \
             payment: the error result is a PaymentRequired object whose accepts lists default (pays the seller at once) \
             and escrow (locks the payment, refunded if delivery fails). Sign the transaction for one of them and call \
             again with the PaymentPayload in _meta[\"x402/payment\"]: the content comes back, the settlement in \
             _meta[\"x402/payment-response\"]. To get the content again, send _meta[\"x-service-proof\"] signed by the wallet that paid, or \
             repeat a payment that carries a payment-identifier: nothing is paid again.",
            None,
        ),
    }
}

/// Returns the definitions of an endpoint's tools, as in `tools/list`.
fn listed(endpoint: &impl Toolset) -> Value {
    let answers = |(_, name): &(Tool, &str)| block_on(endpoint.call(name, Map::new(), &Map::new())).is_some();
    Tool::ALL.into_iter().filter(answers).map(|(tool, _)| definition(tool)).collect()
}

fn signed_in() -> Value {
    listed(&OwnerTools(&Stall::default()))
}

fn open() -> Value {
    listed(&OpenTools(&Stall::default()))
}

fn check(name: &str, served: &str, made: &Value) {
    let text = format!("{}\n", serde_json::to_string_pretty(made).unwrap());
    if std::env::var_os("UPDATE_TOOLS").is_some() {
        let path = format!("{}/src/mcp/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, text).unwrap();
    } else {
        assert_eq!(served, text, "the types have changed: UPDATE_TOOLS=1 cargo test -p agents schemas");
    }
}

#[test]
fn a_search_needs_no_argument() {
    for served in [include_str!("tools.json"), include_str!("open-tools.json")] {
        let tools: Vec<Value> = serde_json::from_str(served).unwrap();
        let search = tools.iter().find(|tool| tool["name"] == "search_listings").unwrap();
        assert_eq!(search["inputSchema"]["required"], Value::Null);
        assert!(search["inputSchema"]["properties"]["category"]["enum"].is_array());
    }
}

#[test]
fn the_served_tools_match_their_types() {
    check("tools.json", include_str!("tools.json"), &signed_in());
    check("open-tools.json", include_str!("open-tools.json"), &open());
}

#[test]
fn every_tool_describes_its_input_output_and_effect() {
    for tool in signed_in().as_array().unwrap().iter().chain(open().as_array().unwrap()) {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 50 && tool["title"].is_string());
        assert!(tool["annotations"]["readOnlyHint"].is_boolean());
        if let Some(output) = tool.get("outputSchema") {
            assert_eq!(output["type"], "object", "{tool}");
        }
        for refused in ["$ref", "\"const\"", "oneOf", "anyOf"] {
            assert!(!tool.to_string().contains(refused), "{refused}: {tool}");
        }
        every_choice_has_a_type(tool);
    }
}

fn every_choice_has_a_type(schema: &Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(choices)) = fields.get("enum") {
                assert!(fields["type"] == "string" && choices.iter().all(Value::is_string), "{schema}");
            }
            fields.values().for_each(every_choice_has_a_type);
        }
        Value::Array(items) => items.iter().for_each(every_choice_has_a_type),
        _ => {}
    }
}
