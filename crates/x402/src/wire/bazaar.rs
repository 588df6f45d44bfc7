//! The extension `bazaar`, which describes how to call a paid resource, so that directories of paid resources can list
//! it.
//!
//! The extension's JSON contains the description in `info`, and a JSON Schema of it. If a path has parameters, all its
//! resources are listed under one `routeTemplate`. The JSON depends only on the resource, so it can be built once.
//! Source: x402-foundation/x402, `specs/extensions/bazaar.md`.

use serde_json::{Map, Value, json};

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "bazaar";
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A paid resource that is called by `GET` on a path with parameters.
#[derive(Clone, Copy, Debug)]
pub struct Get<'a> {
    /// Path with `:name` in place of each parameter, such as `/listings/:id/unlock`.
    pub route_template: &'a str,
    /// Names of the path's parameters, with their values for this resource.
    pub path_params: &'a [(&'a str, &'a str)],
    /// Type of the response to a paid request: `text` or `json`.
    pub output: &'a str,
}

impl Get<'_> {
    /// Returns the extension's JSON, under its name, for the `extensions` of a 402.
    #[must_use]
    pub fn extension(&self) -> Map<String, Value> {
        let texts = |of: fn(&str) -> Value| -> Map<String, Value> {
            self.path_params.iter().map(|(name, value)| ((*name).to_owned(), of(value))).collect()
        };
        let names: Vec<&str> = self.path_params.iter().map(|(name, _)| *name).collect();
        let input = json!({
            "type": { "type": "string", "const": "http" },
            "method": { "type": "string", "enum": ["GET"] },
            "pathParams": {
                "type": "object",
                "properties": texts(|_| json!({ "type": "string" })),
                "required": names,
                "additionalProperties": false,
            },
        });
        let block = json!({
            "info": {
                "input": { "type": "http", "method": "GET", "pathParams": texts(|value| value.into()) },
                "output": { "type": self.output },
            },
            "schema": schema(&input, &["type", "method"]),
            "routeTemplate": self.route_template,
        });
        Map::from_iter([(NAME.to_owned(), block)])
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
    /// Returns the extension's JSON, under its name, for the `extensions` of a 402.
    #[must_use]
    pub fn extension(&self) -> Map<String, Value> {
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
        Map::from_iter([(NAME.to_owned(), block)])
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
        let get = Get { route_template: "/listings/:id/unlock", path_params: &[("id", "lst_1")], output: "text" };
        let block = get.extension().remove(NAME).unwrap();
        assert_eq!(block["routeTemplate"], "/listings/:id/unlock");
        assert_eq!(block["info"]["input"], json!({ "type": "http", "method": "GET", "pathParams": { "id": "lst_1" } }));
        assert_eq!(block["schema"]["properties"]["input"]["properties"]["pathParams"]["required"], json!(["id"]));
        assert_eq!(get.extension(), get.extension());
    }

    #[test]
    fn a_tool_is_listed_by_its_name_and_arguments() {
        let input_schema = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
        let tool = Tool { name: "unlock", description: "Unlocks", input_schema: &input_schema };
        let block = tool.extension().remove(NAME).unwrap();
        assert_eq!(block["info"]["input"]["toolName"], "unlock");
        assert_eq!(block["info"]["input"]["inputSchema"], input_schema);
        assert_eq!(block.get("routeTemplate"), None);
    }
}
