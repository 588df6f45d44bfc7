//! The extension `bazaar`, which describes how to call a paid resource, so that directories of paid resources can list
//! it.
//!
//! The extension's JSON contains the description in `info`, and a JSON Schema of it. If a path has parameters, all its
//! resources are listed under one `routeTemplate`. The JSON depends only on the resource, so it can be built once.
//! Source: x402-foundation/x402, `specs/extensions/bazaar.md`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{Extensions, json_text};

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "bazaar";
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Paid resources that are called by `GET` on paths with parameters.
#[derive(Clone, Debug)]
pub struct Get {
    route_template: &'static str,
    output: &'static str,
    schema: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GetDeclared<'a> {
    info: Value,
    schema: &'a RawValue,
    route_template: &'a str,
}

/// Returns the names of the parameters in a path template.
fn parameters(template: &str) -> impl Iterator<Item = &str> {
    template.split('/').filter_map(|segment| segment.strip_prefix(':'))
}

impl Get {
    /// Describes the resources of a path template that contains `:name` in place of each parameter, such as
    /// `/listings/:id/unlock`. `output` is the type of the response to a paid request: `text` or `json`.
    #[must_use]
    pub fn new(route_template: &'static str, output: &'static str) -> Self {
        let names: Vec<_> = parameters(route_template).collect();
        let types: BTreeMap<_, _> = names.iter().map(|name| (name, json!({ "type": "string" }))).collect();
        let input = json!({
            "type": { "type": "string", "const": "http" },
            "method": { "type": "string", "enum": ["GET"] },
            "pathParams": {
                "type": "object",
                "properties": types,
                "required": names,
                "additionalProperties": false,
            },
        });
        Self { route_template, output, schema: json_text(&schema(&input, &["type", "method"])) }
    }

    /// Returns this extension's entry in the `extensions` of a 402, given the values of the path's parameters, in
    /// order.
    #[must_use]
    pub fn extension(&self, values: &[&str]) -> Extensions {
        let values: BTreeMap<_, _> = parameters(self.route_template).zip(values).collect();
        let info = json!({
            "input": { "type": "http", "method": "GET", "pathParams": values },
            "output": { "type": self.output },
        });
        let Self { schema, route_template, .. } = self;
        Extensions::of(NAME, &GetDeclared { info, schema, route_template })
    }
}

/// A paid tool of an MCP server that uses the transport *streamable HTTP*.
#[derive(Clone, Copy, Debug)]
pub struct Tool<'a> {
    /// Name by which `tools/call` calls the tool.
    pub name: &'a str,
    /// Description of the tool for people.
    pub description: &'a str,
    /// JSON Schema of the tool's arguments, as in the server's list of tools.
    pub input_schema: &'a Value,
}

impl Tool<'_> {
    /// Returns this extension's entry in the `extensions` of a 402.
    #[must_use]
    pub fn extension(&self) -> Extensions {
        let input = json!({
            "type": { "type": "string", "const": "mcp" },
            "toolName": { "type": "string" },
            "description": { "type": "string" },
            "transport": { "type": "string", "enum": ["streamable-http", "sse"] },
            "inputSchema": { "type": "object" },
        });
        let block = json!({
            "info": {
                "input": {
                    "type": "mcp",
                    "toolName": self.name,
                    "description": self.description,
                    "transport": "streamable-http",
                    "inputSchema": self.input_schema,
                },
                "output": { "type": "json" },
            },
            "schema": schema(&input, &["type", "toolName", "inputSchema"]),
        });
        Extensions::of(NAME, &block)
    }
}

fn schema(input: &Value, required: &[&str]) -> Value {
    json!({
        "$schema": DRAFT,
        "type": "object",
        "properties": {
            "input": { "type": "object", "properties": input, "required": required, "additionalProperties": false },
            "output": { "type": "object", "properties": { "type": { "type": "string" } }, "required": ["type"] },
        },
        "required": ["input"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_listed_once_with_what_stands_in_it_here() {
        let get = Get::new("/listings/:id/unlock", "text");
        let block = json!(get.extension(&["lst_1"]))[NAME].take();
        assert_eq!(block["routeTemplate"], "/listings/:id/unlock");
        assert_eq!(block["info"]["input"], json!({ "type": "http", "method": "GET", "pathParams": { "id": "lst_1" } }));
        assert_eq!(block["schema"]["properties"]["input"]["properties"]["pathParams"]["required"], json!(["id"]));
    }

    #[test]
    fn a_tool_is_listed_by_its_name_and_arguments() {
        let input_schema = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
        let tool = Tool { name: "unlock", description: "Unlocks", input_schema: &input_schema };
        let block = json!(tool.extension())[NAME].take();
        assert_eq!(block["info"]["input"]["toolName"], "unlock");
        assert_eq!(block["info"]["input"]["inputSchema"], input_schema);
        assert_eq!(block.get("routeTemplate"), None);
    }
}
