//! Generates the definitions of the tools from their types, and compares them with the files that are served.
//!
//! `UPDATE_TOOLS=1 cargo test -p agents schemas` rewrites the files.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{for_models, open::OpenTools, tests::Stall, tool::Effect, tool::Toolset, tools::OwnerTools};

/// Generates a JSON Schema 2020-12 (MCP's default dialect) without references. `input` is `true` for a tool's
/// arguments, `false` for its result.
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

/// Simplifies a schema. Removes `null` from optional fields, which may be absent instead, and Rust's number formats,
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

fn annotations(effect: Effect, title: &str) -> Value {
    match effect {
        Effect::Reads => json!({ "title": title, "readOnlyHint": true, "openWorldHint": false }),
        Effect::Spends => json!({
            "title": title, "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true,
        }),
    }
}

/// Generates the schema of a tool's result, including the readable forms that are added to amounts and times for
/// models.
pub(super) fn result<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>(false);
    readable(&mut schema);
    schema
}

/// Adds to a schema the members that `for_models::told` adds to a result.
fn readable(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                let beside: Vec<_> = properties.keys().filter_map(|name| for_models::readable_name(name)).collect();
                properties.extend(beside.into_iter().map(|name| (name, json!({ "type": "string" }))));
            }
            fields.values_mut().for_each(readable);
        }
        Value::Array(items) => items.iter_mut().for_each(readable),
        _ => {}
    }
}

/// Builds the definition of a tool from the type of its arguments. `output` is the schema of its result.
pub(super) fn definition<In: JsonSchema>(
    name: &str,
    effect: Effect,
    title: &str,
    description: &str,
    output: Option<Value>,
) -> Value {
    let mut definition = json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": schema::<In>(true),
        "annotations": annotations(effect, title),
    });
    if let Some(output) = output {
        definition["outputSchema"] = output;
    }
    definition
}

/// Returns the definitions of an endpoint's tools, as in `tools/list`.
fn listed<E: Toolset>() -> Value {
    E::declared().into_iter().map(|tool| (tool.definition)(tool.name, tool.effect)).collect()
}

fn signed_in() -> Value {
    listed::<OwnerTools<'_, Stall>>()
}

fn open() -> Value {
    listed::<OpenTools<'_, Stall>>()
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
