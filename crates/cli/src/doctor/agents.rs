//! Probes that imitate MCP clients, sent to the MCP address that needs no sign-in.

use serde_json::{Value, json};

use super::{Deployment, Probe, at, ensure, text};
use crate::service::Ask;

/// Length in characters from which clients truncate a tool result: 25,000 tokens of three characters.
const MAX_RESULT: usize = 75_000;
/// MCP protocol revision that has no handshake.
const STATELESS: &str = "2026-07-28";

impl Deployment {
    /// Sends a request to `/mcp/open`.
    fn mcp(&self, headers: Vec<(&'static str, &str)>, method: &str, params: &Value) -> Result<Value, String> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.json("POST", "/mcp/open", Ask { headers, ..Ask::json(&message) }, 200)
    }

    /// Sends a request in the newest MCP protocol revision that has a handshake.
    fn rpc(&self, method: &str, params: &Value) -> Result<Value, String> {
        let headers = vec![("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-11-25")];
        self.mcp(headers, method, params)
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let answer = self.rpc("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        Ok(at(&answer, "/result").clone())
    }
}

pub(super) const PROBES: [Probe; 6] = [
    Probe {
        clients: "MCP clients of each revision",
        need: "the handshakes of 2025, and discovery of 2026-07-28",
        advice: "answer initialize and server/discover at one address",
        send: |it| {
            for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
                let answer = it.rpc(
                    "initialize",
                    &json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "doctor" } }),
                )?;
                let other = format!("the handshake of {revision} ends with another revision");
                ensure(at(&answer, "/result/protocolVersion") == revision, &other)?;
                ensure(at(&answer, "/result/serverInfo/icons/0/src").is_string(), "serverInfo has no icon")?;
            }
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {},
            });
            let headers = vec![("mcp-protocol-version", STATELESS), ("mcp-method", "server/discover")];
            let answer = it.mcp(headers, "server/discover", &json!({ "_meta": meta }))?;
            let versions = at(&answer, "/result/supportedVersions").as_array();
            let named = versions.is_some_and(|versions| versions.contains(&json!(STATELESS)));
            ensure(named, "server/discover does not name its own revision")
        },
    },
    Probe {
        clients: "models with strict schemas",
        need: "tools without const, choices of shapes or references",
        advice: "write enums of strings, with their type",
        send: |it| {
            let tools = at(&it.rpc("tools/list", &json!({}))?, "/result/tools").to_string();
            ensure(tools.contains("unlock_listing"), "no list of tools")?;
            let refused = ["\"const\"", "\"oneOf\"", "\"anyOf\"", "\"$ref\"", "null"];
            let found = refused.into_iter().find(|word| tools.contains(word));
            found.map_or(Ok(()), |word| Err(format!("a schema has {word}")))
        },
    },
    Probe {
        clients: "models that write numbers their own way",
        need: "80.0 taken, a text explained, an unknown tool answered with the known ones",
        advice: "read whole numbers written as fractions; say what to send instead",
        send: |it| {
            let taken = it.call("search_listings", &json!({ "minReputation": 0.0, "limit": 5.0 }))?;
            ensure(at(&taken, "/isError") == false, "5.0 is not taken for 5")?;
            let price = it.call("search_listings", &json!({ "maxPriceAda": "5" }))?;
            let said = text(&price, "/content/0/text");
            ensure(said.contains("must be a number"), &format!("a price as text is answered with: {said}"))?;
            let unknown = it.rpc("tools/call", &json!({ "name": "buy", "arguments": {} }))?;
            let said = text(&unknown, "/error/message");
            ensure(said.contains("unlock_listing"), &format!("an unknown tool is answered with: {said}"))
        },
    },
    Probe {
        clients: "models with little room",
        need: "fifty results below 25,000 tokens",
        advice: "shorten the descriptions in results",
        send: |it| {
            let found = it.call("search_listings", &json!({ "limit": 50 }))?;
            let listings = at(&found, "/structuredContent/listings").as_array().map_or(0, Vec::len);
            let letters = text(&found, "/content/0/text").chars().count();
            // Scaled to fifty results.
            let of_fifty = letters.saturating_mul(50).checked_div(listings).ok_or("no results")?;
            ensure(of_fifty < MAX_RESULT, &format!("fifty results have some {of_fifty} letters"))
        },
    },
    Probe {
        clients: "clients that attach resources",
        need: "listings as resources, and -32602 for what is not there",
        advice: "serve resources/list and resources/read",
        send: |it| {
            it.on_sale()?;
            let page = it.rpc("resources/list", &json!({}))?;
            let first = at(&page, "/result/resources/0/uri");
            let card = it.rpc("resources/read", &json!({ "uri": first }))?;
            ensure(at(&card, "/result/contents/0/uri") == first, "the first resource cannot be read")?;
            let missing = it.rpc("resources/read", &json!({ "uri": "surety:nothing" }))?;
            ensure(at(&missing, "/error/code") == -32_602, "what is not there has another code than -32602")
        },
    },
    Probe {
        clients: "agents with a wallet of their own",
        need: "x402's terms in an unpaid tool result, as an object and as text",
        advice: "answer isError with PaymentRequired in structuredContent and in content",
        send: |it| {
            let asked = it.call("unlock_listing", &json!({ "id": it.on_sale()? }))?;
            let required = at(&asked, "/structuredContent");
            ensure(at(&asked, "/isError") == true, "an unpaid call is no error")?;
            ensure(at(required, "/accepts/0/payTo").is_string(), "structuredContent has no terms")?;
            let written = serde_json::from_str::<Value>(text(&asked, "/content/0/text"));
            ensure(written.is_ok_and(|written| written == *required), "the text is not the same object")
        },
    },
];
