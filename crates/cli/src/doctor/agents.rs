//! What agents ask over MCP, at the address that needs no sign-in.

use serde_json::{Value, json};

use super::{Deployment, Finding, Probe, at, ensure, expect, value};
use crate::service::Ask;

/// Letters of one result: below what clients put aside, at three letters a token.
const MAX_RESULT: usize = 75_000;
/// The revision in which every request says everything.
const STATELESS: &str = "2026-07-28";

pub(super) const PROBES: [Probe; 6] = [
    Probe {
        clients: "MCP clients of each revision",
        need: "the handshakes of 2025, and discovery of 2026-07-28",
        mend: "answer initialize and server/discover at one address",
        send: Deployment::speaks_each_revision,
    },
    Probe {
        clients: "models with strict schemas",
        need: "tools without const, choices of shapes or references",
        mend: "write enums of strings, with their type",
        send: Deployment::has_plain_schemas,
    },
    Probe {
        clients: "models that write numbers their own way",
        need: "80.0 taken, a text explained, an unknown tool answered with the known ones",
        mend: "read whole numbers written as fractions; say what to send instead",
        send: Deployment::reads_numbers,
    },
    Probe {
        clients: "models with little room",
        need: "fifty results below 25,000 tokens",
        mend: "shorten the descriptions in results",
        send: Deployment::keeps_results_short,
    },
    Probe {
        clients: "clients that attach resources",
        need: "listings as resources, and -32602 for what is not there",
        mend: "serve resources/list and resources/read",
        send: Deployment::lists_resources,
    },
    Probe {
        clients: "agents with a wallet of their own",
        need: "x402's terms in an unpaid tool result, as an object and as text",
        mend: "answer isError with PaymentRequired in structuredContent and in content",
        send: Deployment::asks_agents_to_pay,
    },
];

impl Deployment {
    /// What `/mcp/open` answers to a request of the last revision with a handshake.
    fn rpc(&self, method: &str, params: &Value) -> Result<Value, String> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let headers = vec![("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-11-25")];
        let answer = self.service.ask("POST", "/mcp/open", Ask { headers, ..Ask::json(message) });
        value(&expect(answer, 200)?)
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let answer = self.rpc("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        Ok(at(&answer, "/result").clone())
    }

    fn speaks_each_revision(&self) -> Finding {
        for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "doctor" } });
            let answer = self.rpc("initialize", &params)?;
            ensure(
                at(&answer, "/result/protocolVersion") == revision,
                &format!("the handshake of {revision} ends with another revision"),
            )?;
            ensure(at(&answer, "/result/serverInfo/icons/0/src").is_string(), "serverInfo has no icon")?;
        }
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } });
        let headers = vec![("mcp-protocol-version", STATELESS), ("mcp-method", "server/discover")];
        let answer = self.service.ask("POST", "/mcp/open", Ask { headers, ..Ask::json(message) });
        let answer = value(&expect(answer, 200)?)?;
        let versions = at(&answer, "/result/supportedVersions").as_array().cloned().unwrap_or_default();
        ensure(versions.contains(&json!(STATELESS)), "server/discover does not name its own revision")
    }

    fn has_plain_schemas(&self) -> Finding {
        let answer = self.rpc("tools/list", &json!({}))?;
        let tools = at(&answer, "/result/tools").to_string();
        ensure(tools.contains("unlock_listing"), "no list of tools")?;
        let refused = ["\"const\"", "\"oneOf\"", "\"anyOf\"", "\"$ref\"", "null"];
        let found = refused.into_iter().find(|word| tools.contains(word));
        found.map_or(Ok(()), |word| Err(format!("a schema has {word}")))
    }

    fn reads_numbers(&self) -> Finding {
        let taken = self.call("search_listings", &json!({ "minReputation": 0.0, "limit": 5.0 }))?;
        ensure(at(&taken, "/isError") == false, "5.0 is not taken for 5")?;
        let text = self.call("search_listings", &json!({ "maxPriceAda": "5" }))?;
        let said = at(&text, "/content/0/text").as_str().unwrap_or_default();
        ensure(said.contains("must be a number"), &format!("a price as text is answered with: {said}"))?;
        let unknown = self.rpc("tools/call", &json!({ "name": "buy", "arguments": {} }))?;
        let said = at(&unknown, "/error/message").as_str().unwrap_or_default();
        ensure(said.contains("unlock_listing"), &format!("an unknown tool is answered with: {said}"))
    }

    fn keeps_results_short(&self) -> Finding {
        let found = self.call("search_listings", &json!({ "limit": 50 }))?;
        let text = at(&found, "/content/0/text").as_str().unwrap_or_default();
        let listings = at(&found, "/structuredContent/listings").as_array().map_or(0, Vec::len);
        ensure(listings > 0, "no results")?;
        // Of fewer results, as many times less.
        let letters = text.chars().count().saturating_mul(50).checked_div(listings).unwrap_or_default();
        ensure(letters < MAX_RESULT, &format!("fifty results have some {letters} letters"))
    }

    fn lists_resources(&self) -> Finding {
        self.on_sale()?;
        let page = self.rpc("resources/list", &json!({}))?;
        let first = at(&page, "/result/resources/0/uri");
        let card = self.rpc("resources/read", &json!({ "uri": first }))?;
        ensure(at(&card, "/result/contents/0/uri") == first, "the first resource cannot be read")?;
        let missing = self.rpc("resources/read", &json!({ "uri": "surety:nothing" }))?;
        ensure(at(&missing, "/error/code") == -32_602, "what is not there has another code than -32602")
    }

    fn asks_agents_to_pay(&self) -> Finding {
        let asked = self.call("unlock_listing", &json!({ "id": self.on_sale()? }))?;
        let required = at(&asked, "/structuredContent");
        ensure(at(&asked, "/isError") == true, "an unpaid call is no error")?;
        ensure(at(required, "/accepts/0/payTo").is_string(), "structuredContent has no terms")?;
        let text = at(&asked, "/content/0/text").as_str().unwrap_or_default();
        ensure(
            serde_json::from_str::<Value>(text).is_ok_and(|text| text == *required),
            "the text is not the same object",
        )
    }
}
