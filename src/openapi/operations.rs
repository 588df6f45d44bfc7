//! The operations of the API: parameters, bodies, and answers.

use api_types::{Error, OAuthError};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    route::{Limit, Route},
    routes,
};

/// Regular expression for the cursors of paginated lists.
const CURSOR: &str = r"^-?\d{1,15}\.-?\d{1,15}$";

/// Schema of a JSON object that another specification describes.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Document(Map<String, Value>);

/// Error answers of the API: status, name, description, and an additional header.
const ERRORS: [(u16, &str, &str, Option<&str>); 13] = [
    (400, "BadRequest", "The request is invalid; `error` says why.", None),
    (401, "Unauthorized", "The request is not authenticated: sign in, or sign the request.", Some("WWW-Authenticate")),
    (403, "Forbidden", "The client is authenticated, but may not do this.", None),
    (404, "NotFound", "The resource does not exist, or belongs to another account.", None),
    (405, "WrongMethod", "The path does not support this method.", Some("Allow")),
    (406, "NotAcceptable", "The endpoint has no answer of an accepted media type.", None),
    (409, "Conflict", "The request conflicts with the resource's state or with another request.", None),
    (410, "Gone", "The resource is not available any more.", None),
    (413, "TooLarge", "The body is too large.", None),
    (415, "UnsupportedType", "The body has an unsupported media type.", None),
    (
        429,
        "TooMany",
        "The client exceeded a rate limit: try again after the time in `Retry-After`.",
        Some("Retry-After"),
    ),
    (500, "Internal", "An internal error, or an invalid setting of the service.", None),
    (503, "Unavailable", "A part of the service does not answer. A retry is safe.", Some("Retry-After")),
];

/// Names of the groups of operations, in the order of the document.
const TAGS: [&str; 8] = ["Catalogue", "Paid content", "Purchases", "Account", "MCP", "OAuth", "x402", "System"];

/// Generates the OpenAPI document. `version` is the API's version.
pub fn document(version: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes::all() {
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.to_lowercase()] = Operation::of(route, &mut generator);
    }
    let error = schema::<Error>(&mut generator);
    let mut schemas = Value::Object(generator.take_definitions(true));
    never_null(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Surety",
            "version": version,
            "summary": "A marketplace for design prompts, paid in ADA over x402 with buyer protection",
            "description": "Amounts are lovelace in decimal strings (1 tADA = 1,000,000 lovelace), times are POSIX milliseconds, and addresses belong to Cardano's preprod network. Every path answers OPTIONS (CORS), and HEAD if it answers GET.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "tags": TAGS.map(|name| json!({ "name": name })),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": ERRORS.iter().map(|(_, name, text, header)| (*name, failure(text, *header, &error))).collect::<std::collections::BTreeMap<_, _>>(),
            "securitySchemes": {
                "session": { "type": "http", "scheme": "bearer", "description": "Token of a session: request a challenge by POST /auth/challenge, sign it, and send it to POST /auth/verify." },
                "agent": { "type": "http", "scheme": "bearer", "description": "An agent's access token (OAuth, scope `mcp`); see /.well-known/oauth-authorization-server." },
                "operator": { "type": "http", "scheme": "bearer", "description": "The operator's token, from the setting OPERATOR_TOKEN." },
                "proof": { "type": "apiKey", "in": "header", "name": "X-Service-Proof", "description": "Base64 of the JSON {address, timestamp, key, signature}, with a CIP-8 signature that is at most five minutes old." },
            },
        },
    })
}

/// Removes null from the schema of optional fields, which may be missing but are never null.
fn never_null(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(never_null),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|one| one != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(any)) = object.get_mut("anyOf") {
                any.retain(|one| one.get("type") != Some(&"null".into()));
                if let [Value::Object(only)] = any.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    object.extend(only);
                }
            }
            object.values_mut().for_each(never_null);
        }
        _ => {}
    }
}

fn failure(text: &str, header: Option<&str>, error: &Value) -> Value {
    let mut response = json!({ "description": text, "content": { "application/json": { "schema": error } } });
    if let (Some(header), Some(response)) = (header, response.as_object_mut()) {
        response.insert("headers".into(), json!({ header: { "required": true, "schema": { "type": "string" } } }));
    }
    response
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().into()
}

/// Builder for the OpenAPI description of an operation.
pub struct Operation<'a> {
    value: Value,
    generator: &'a mut SchemaGenerator,
}

impl<'a> Operation<'a> {
    /// Describes a route's operation, with the error answers for faults of the service.
    fn of(route: &Route, generator: &'a mut SchemaGenerator) -> Value {
        let value = json!({ "parameters": [], "security": [], "responses": {} });
        let operation = (route.describe)(Operation { value, generator }.fails(&[500, 503]));
        let operation = match route.endpoint.limit {
            Limit::Free => operation,
            _ => operation.fails(&[429]),
        };
        match route.endpoint.body {
            Some(body) => operation.fails(&[body.refusal]).value,
            None => operation.value,
        }
    }

    /// Sets the operation's name, group and summary.
    pub fn names(self, id: &str, tag: &str, summary: &str) -> Self {
        self.insert("", "operationId", id.into()).insert("", "tags", json!([tag])).insert("", "summary", summary.into())
    }

    /// Sets the security schemes. A request needs one of them.
    pub fn security(self, schemes: &[&str]) -> Self {
        let any: Value = schemes.iter().map(|scheme| json!({ *scheme: [] })).collect();
        self.insert("", "security", any)
    }

    pub fn insert(mut self, object: &str, name: &str, value: Value) -> Self {
        if let Some(Value::Object(object)) = self.value.pointer_mut(object) {
            object.insert(name.to_owned(), value);
        }
        self
    }

    pub fn more(self, text: &str) -> Self {
        self.insert("", "description", text.into())
    }

    pub fn parameter(mut self, location: &str, name: &str, required: bool, text: &str, schema: Value) -> Self {
        let parameter =
            json!({ "in": location, "name": name, "required": required, "description": text, "schema": schema });
        if let Some(Value::Array(parameters)) = self.value.pointer_mut("/parameters") {
            parameters.push(parameter);
        }
        self
    }

    pub fn path(self, name: &str, text: &str) -> Self {
        self.parameter("path", name, true, text, json!({ "type": "string", "minLength": 1 }))
    }

    /// Adds an optional query parameter with the schema of a type.
    pub fn query_of<T: JsonSchema>(self, name: &str, text: &str) -> Self {
        let schema = schema::<T>(self.generator);
        self.query(name, text, schema)
    }

    /// Adds the query parameter `cursor`, which selects a page of a list.
    pub fn cursor(self) -> Self {
        self.query(
            "cursor",
            "Cursor from the `Link` header of the previous page.",
            json!({ "type": "string", "pattern": CURSOR }),
        )
    }

    pub fn query(self, name: &str, text: &str, schema: Value) -> Self {
        self.parameter("query", name, false, text, schema)
    }

    pub fn body<T: JsonSchema>(self, media: &str) -> Self {
        let schema = schema::<T>(self.generator);
        self.insert("", "requestBody", json!({ "required": true, "content": { media: { "schema": schema } } }))
    }

    pub fn answers<T: JsonSchema>(self, status: u16, text: &str) -> Self {
        let schema = schema::<T>(self.generator);
        let response = json!({ "description": text, "content": { "application/json": { "schema": schema } } });
        self.insert("/responses", &status.to_string(), response)
    }

    pub fn text(self, status: u16, media: &str, text: &str) -> Self {
        let response = json!({ "description": text, "content": { media: { "schema": { "type": "string" } } } });
        self.insert("/responses", &status.to_string(), response)
    }

    pub fn empty(self, status: u16, text: &str) -> Self {
        self.insert("/responses", &status.to_string(), json!({ "description": text }))
    }

    pub fn header(self, status: u16, name: &str, text: &str, required: bool) -> Self {
        let header = json!({ "description": text, "required": required, "schema": { "type": "string" } });
        let response = format!("/responses/{status}");
        let operation = if self.value.pointer(&format!("{response}/headers")).is_none() {
            self.insert(&response, "headers", json!({}))
        } else {
            self
        };
        operation.insert(&format!("{response}/headers"), name, header)
    }

    pub fn fails(self, statuses: &[u16]) -> Self {
        statuses.iter().fold(self, |operation, status| {
            let name = ERRORS.iter().find(|(known, ..)| known == status).map(|(_, name, ..)| *name).unwrap();
            let response = json!({ "$ref": format!("#/components/responses/{name}") });
            operation.insert("/responses", &status.to_string(), response)
        })
    }

    /// Adds error answers in OAuth's format with these statuses.
    pub fn oauth_fails(self, statuses: &[u16]) -> Self {
        let schema = schema::<OAuthError>(self.generator);
        statuses.iter().fold(self, |operation, status| {
            let text = "A refusal in OAuth's form.";
            let response = json!({ "description": text, "content": { "application/json": { "schema": schema } } });
            operation.insert("/responses", &status.to_string(), response)
        })
    }

    /// Adds an HTML page as the answer with this status, for clients that prefer HTML.
    pub fn page(self, status: u16) -> Self {
        self.insert(
            &format!("/responses/{status}/content"),
            "text/html; charset=utf-8",
            json!({ "schema": { "type": "string" } }),
        )
    }

    pub fn tagged(self) -> Self {
        self.parameter("header", "If-None-Match", false, "ETag of an earlier answer.", json!({ "type": "string" }))
            .empty(304, "The answer has not changed.")
            .header(200, "ETag", "Version of the answer.", true)
    }
}
