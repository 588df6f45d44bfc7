//! Progress notifications for tool calls that wait for the chain, on a stream that ends with the answer.
//!
//! Sources: MCP's "Progress" (the client provides the token, and values only grow) and "Streamable HTTP" (a POST may be
//! answered with `text/event-stream`, whose last event is the response).

use serde_json::{Value, json};

use super::{
    dispatch::RpcAnswer,
    message::{Message, RpcRequest, is_id},
    revision::{self, Headers},
};

/// Names of the tools that pay, and therefore wait for a block.
const SLOW: [&str; 2] = ["buy_listing", "unlock_listing"];

/// The token with which a client identifies the progress notifications of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressToken(Value);

impl ProgressToken {
    /// Returns the progress token if the call must be answered as a stream: the tool may wait for a block, the client
    /// sent a token, and the client accepts event streams. Otherwise returns `None`. Invalid requests are never
    /// streamed, because a stream's HTTP status is always 200.
    #[must_use]
    pub fn of(message: &Message, headers: &Headers, accept: Option<&str>) -> Option<Self> {
        let Message::Request(request) = message else { return None };
        let token = token(request).filter(|token| is_id(token))?;
        let slow = request.params.get("name").and_then(Value::as_str).is_some_and(|name| SLOW.contains(&name));
        let takes_events = accept?
            .split(',')
            .any(|range| range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream"));
        let streams = request.method == "tools/call" && slow && takes_events;
        (streams && revision::of(headers, request).is_ok()).then(|| Self(token.clone()))
    }

    /// Returns the event that reports for how many seconds the call has been running.
    #[must_use]
    pub fn event(&self, seconds: u32) -> String {
        let message = match seconds {
            0 => "Checking the listing and the wallet".to_owned(),
            _ => format!("At work for {seconds} s: a payment waits for its block, about 20 s"),
        };
        let params = json!({ "progressToken": self.0, "progress": seconds, "message": message });
        event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string())
    }
}

fn token(request: &RpcRequest) -> Option<&Value> {
    request.params.get("_meta")?.get("progressToken")
}

/// Returns the last event of the stream: the answer to the call.
#[must_use]
pub fn last_event(answer: &RpcAnswer) -> String {
    event(answer.body.as_deref().unwrap_or_default())
}

/// Formats JSON without line breaks as a server-sent event.
fn event(json: &str) -> String {
    format!("event: message\ndata: {json}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::message;

    const BOTH: Option<&str> = Some("application/json, text/event-stream");

    fn asked(body: &Value, headers: &Headers, accept: Option<&str>) -> Option<ProgressToken> {
        ProgressToken::of(&message::parse(body.to_string().as_bytes(), true).unwrap().messages[0], headers, accept)
    }

    fn call(tool: &str, token: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": token } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    }

    #[test]
    fn a_paying_call_with_a_progress_token_is_streamed_to_a_client_that_accepts_streams() {
        let headers = Headers::default();
        for token in [json!("a"), json!(7)] {
            assert_eq!(asked(&call("buy_listing", &token), &headers, BOTH), Some(ProgressToken(token)));
        }
        for accept in [None, Some("*/*"), Some("application/json"), Some("text/event-streams")] {
            assert_eq!(asked(&call("buy_listing", &json!(1)), &headers, accept), None, "{accept:?}");
        }
        assert_eq!(asked(&call("search_listings", &json!(1)), &headers, BOTH), None, "it does not wait");
    }

    #[test]
    fn malformed_progress_tokens_and_refused_requests_get_a_plain_answer() {
        for token in [json!(null), json!({}), json!(1.5), json!("x".repeat(257))] {
            assert_eq!(asked(&call("buy_listing", &token), &Headers::default(), BOTH), None, "{token}");
        }
        let unsupported = Headers { protocol_version: Some("2020-01-01".into()), ..Headers::default() };
        assert_eq!(asked(&call("buy_listing", &json!(1)), &unsupported, BOTH), None);
    }

    #[test]
    fn each_event_is_one_line_of_json_and_progress_increases() {
        let token = ProgressToken(json!("line\nbreak"));
        let values = [0, 3, 6].map(|seconds| {
            let event = token.event(seconds);
            let data = event.strip_prefix("event: message\ndata: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap();
            assert!(!data.contains('\n'));
            let sent: Value = serde_json::from_str(data).unwrap();
            assert_eq!(sent["params"]["progressToken"], "line\nbreak");
            sent["params"]["progress"].as_u64().unwrap()
        });
        assert!(values.is_sorted());
    }
}
