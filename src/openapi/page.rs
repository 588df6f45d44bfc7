//! The API reference as a page without scripts.

use maud::{DOCTYPE, Markup, html};
use serde_json::{Map, Value};

/// Example commands that readers can paste into a shell. They list what is for sale, and decode the first listing's
/// terms. `{origin}` is replaced by the service's address when the page is served. A test runs the commands.
const WALK: &str = "\
SURETY={origin}

# What is for sale, and the id of the newest
curl -s \"$SURETY/listings?limit=1\"; echo
ID=$(curl -s \"$SURETY/listings?limit=1\" | grep -o 'lst_[0-9A-Z]*' | head -n 1)

# Ask for its content. The answer is 402: pay first
curl -s -o /dev/null -w '%{http_code}\\n' \"$SURETY/listings/$ID/unlock\"

# What to pay stands in a header, as base64 of JSON
curl -s -D - -o /dev/null \"$SURETY/listings/$ID/unlock\" |
  tr -d '\\r' | grep -i '^payment-required:' | cut -d ' ' -f 2 | base64 --decode
";

fn walk() -> Markup {
    html! {
        section #walk {
            h2 { "A purchase with curl" }
            p { "Paste this into a shell. It pays nothing." }
            pre tabindex="0" { code { (WALK) } }
            p {
                "Each entry of " code { "accepts" } " is a way to pay: " code { "amount" } " lovelace to " code { "payTo" }
                ", before " code { "maxTimeoutSeconds" } " have passed. One with " code { "extra.terms" } " is protected."
            }
            p {
                "To pay, have a transaction drafted (" a href="#draftPayment" { code { "POST /listings/{id}/payment-draft" } }
                "), sign it with your wallet, and send the request again with it in " code { "PAYMENT-SIGNATURE" } " ("
                a href="#unlockListing" { code { "GET /listings/{id}/unlock" } } "). The answer is the text."
            }
        }
    }
}

/// Renders the document as a page.
pub fn page(document: &Value) -> String {
    let info = |name: &str| document.pointer(&format!("/info/{name}")).and_then(Value::as_str).unwrap_or_default();
    let tags: Vec<&str> =
        document.get("tags").and_then(Value::as_array).into_iter().flatten().map(|tag| text(tag, "name")).collect();
    let of = |tag: &str| entries(document).filter(move |entry| entry.tag == tag).collect::<Vec<_>>();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "API · " (info("title")) }
                meta name="description" content=(info("summary"));
                link rel="icon" href="data:,";
                link rel="stylesheet" href="{style}";
            }
            body {
                header {
                    p { a href="/" { "‹ Surety" } }
                    h1 { (info("title")) " API " small { (info("version")) } }
                    p { (info("summary")) ". " (info("description")) }
                    p { a href="/openapi.json" { "openapi.json" } " (OpenAPI 3.1) · " a href="/llms.txt" { "llms.txt" } }
                    (walk())
                }
                nav aria-label="Operations" {
                    @for tag in &tags {
                        h2 { (tag) }
                        ul {
                            @for entry in of(tag) {
                                li { a href={ "#" (entry.id) } { code { (entry.method) " " (entry.path) } } }
                            }
                        }
                    }
                }
                main {
                    @for entry in tags.iter().flat_map(|tag| of(tag)) { (section(document, &entry)) }
                    h2 id="types" { "Types" }
                    @for (name, schema) in object(document, "/components/schemas") { (type_(name, schema)) }
                }
            }
        }
    };
    page.into_string()
}

struct Entry<'a> {
    method: String,
    path: &'a str,
    tag: &'a str,
    id: &'a str,
    value: &'a Value,
}

fn object<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn entries(document: &Value) -> impl Iterator<Item = Entry<'_>> {
    object(document, "/paths").flat_map(|(path, methods)| {
        methods.as_object().into_iter().flat_map(Map::iter).map(move |(method, value)| Entry {
            method: method.to_uppercase(),
            path,
            tag: value.pointer("/tags/0").and_then(Value::as_str).unwrap_or_default(),
            id: text(value, "operationId"),
            value,
        })
    })
}

fn section(document: &Value, entry: &Entry) -> Markup {
    let Entry { method, path, id, value, .. } = entry;
    let security: Vec<&str> = value
        .get("security")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|one| one.as_object().and_then(|one| one.keys().next()).map_or("none", String::as_str))
        .collect();
    html! {
        section id=(id) {
            h2 { code { (method) " " (path) } }
            p { (text(value, "summary")) "." }
            @if let Some(more) = value.get("description").and_then(Value::as_str) { p { (more) } }
            p.auth { "Authentication: " @if security.is_empty() { "none" } @else { (security.join(" or ")) } }
            @if value.get("parameters").and_then(Value::as_array).is_some_and(|all| !all.is_empty()) {
                table {
                    thead { tr { th { "Parameter" } th { "Type" } th { "Meaning" } } }
                    tbody {
                        @for one in value.get("parameters").and_then(Value::as_array).into_iter().flatten() {
                            tr {
                                td { code { (text(one, "name")) } " " small { (text(one, "in")) @if one.get("required") == Some(&true.into()) { ", required" } } }
                                td { (kind(one.get("schema").unwrap_or(&Value::Null))) }
                                td { (text(one, "description")) }
                            }
                        }
                    }
                }
            }
            @for (media, content) in object(value, "/requestBody/content") {
                p { "Body: " code { (media) } " " (kind(content.get("schema").unwrap_or(&Value::Null))) }
            }
            table {
                thead { tr { th { "Status" } th { "Answer" } th { "Meaning" } } }
                tbody {
                    @for (status, response) in object(value, "/responses") {
                        @let response = resolved(document, response);
                        tr {
                            td { (status) }
                            td {
                                @for (media, content) in object(response, "/content") {
                                    div { code { (media) } " " (kind(content.get("schema").unwrap_or(&Value::Null))) }
                                }
                                @for (name, _) in object(response, "/headers") { div { "header " code { (name) } } }
                            }
                            td { (text(response, "description")) }
                        }
                    }
                }
            }
        }
    }
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

/// Describes a schema in a few words, with links to types.
fn kind(schema: &Value) -> Markup {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let choices: Vec<&str> =
        schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    html! {
        @if let Some(name) = name {
            a href={ "#type-" (name) } { (name) }
        } @else if let Some(items) = schema.get("items") {
            "array of " (kind(items))
        } @else if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
            @for (index, one) in any.iter().filter(|one| text(one, "type") != "null").enumerate() {
                @if index > 0 { " or " }
                (kind(one))
            }
        } @else if !choices.is_empty() {
            (choices.join(" | "))
        } @else {
            (match schema.get("type") {
                Some(Value::Array(types)) => types.first().and_then(Value::as_str).unwrap_or_default(),
                Some(Value::String(one)) => one,
                _ => "any",
            })
            @if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) { " " code { (pattern) } }
        }
    }
}

fn type_(name: &str, schema: &Value) -> Markup {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    html! {
        section id={ "type-" (name) } {
            h3 { (name) }
            @if let Some(about) = schema.get("description").and_then(Value::as_str) { p { (about) } }
            @if schema.get("properties").is_some() {
                table {
                    thead { tr { th { "Field" } th { "Type" } th { "Meaning" } } }
                    tbody {
                        @for (field, of) in object(schema, "/properties") {
                            tr {
                                td { code { (field) } @if !required.contains(&field.as_str()) { " " small { "optional" } } }
                                td { (kind(of)) }
                                td { (text(of, "description")) }
                            }
                        }
                    }
                }
            } @else {
                p { (kind(schema)) @for one in schema.get("oneOf").and_then(Value::as_array).into_iter().flatten() { " · " code { (text(one, "const")) (one.get("enum").and_then(Value::as_array).map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ")).unwrap_or_default()) } } }
            }
        }
    }
}
