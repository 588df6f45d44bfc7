//! Tests how the endpoint determines the protocol revision of a request from its headers and `_meta`.

use futures_lite::future::block_on;
use serde_json::{Value, json};

use super::{
    dispatch::{self, RpcAnswer},
    message, page_allowed,
    revision::Headers,
    tests::{ID, Stall, listing},
    tools::OwnerTools,
};

const NEW: &str = "2026-07-28";

fn send(headers: &Headers, body: &[u8]) -> (u16, Value) {
    let stall = Stall::default();
    let answer = match message::parse(body, headers.allow_batch()) {
        Ok(body) => block_on(dispatch::answer(&OwnerTools(&stall), headers, body)),
        Err(error) => RpcAnswer::from(error),
    };
    (answer.status, answer.body.map_or(Value::Null, |body| serde_json::from_str(&body).unwrap()))
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn headers(version: &str, method: &str, name: Option<&str>) -> Headers {
    Headers { protocol_version: Some(version.into()), method: Some(method.into()), name: name.map(str::to_owned) }
}

#[test]
fn initialize_agrees_on_a_revision_that_both_sides_support() {
    for (asked, settled) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        (NEW, "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let body = request("initialize", json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": {} }));
        let (status, answer) = send(&Headers::default(), body.to_string().as_bytes());
        assert_eq!((status, answer["result"]["protocolVersion"].as_str()), (200, Some(settled)), "{asked}");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
        let about = &answer["result"]["serverInfo"];
        assert_eq!(about["websiteUrl"], "https://surety.example.com");
        let icon = about["icons"][0]["src"].as_str().unwrap();
        assert_eq!(icon.strip_prefix("https://surety.example.com"), Some(&*pages::asset::ICON.to_string()));
    }
}

#[test]
fn initialize_with_metadata_of_the_stateless_revision_is_accepted() {
    let mut params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    params["_meta"] = meta(NEW);
    let body = request("initialize", params).to_string();
    let (status, answer) = send(&headers(NEW, "initialize", None), body.as_bytes());
    assert_eq!((status, answer["result"]["protocolVersion"].as_str()), (200, Some("2025-11-25")));
}

/// Test case: the method, the headers for version and method, `_meta`, and the expected HTTP status and error code (0
/// for none).
type NegotiationCase<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<Value>, (u16, i64));

#[test]
fn headers_and_body_must_name_the_same_supported_revision() {
    let list = |meta: Option<Value>| request("tools/list", meta.map_or(json!({}), |meta| json!({ "_meta": meta })));
    let mut no_capabilities = meta(NEW);
    no_capabilities.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let mut odd_capabilities = meta(NEW);
    odd_capabilities["io.modelcontextprotocol/clientCapabilities"] = json!("all");
    let mut odd_version = meta(NEW);
    odd_version["io.modelcontextprotocol/protocolVersion"] = json!(1);
    let rows: Vec<NegotiationCase<'_>> = vec![
        ("before there was a header", None, None, None, (200, 0)),
        ("2025-03-26", Some("2025-03-26"), None, None, (200, 0)),
        ("2025-06-18", Some("2025-06-18"), None, None, (200, 0)),
        ("2025-11-25", Some("2025-11-25"), None, None, (200, 0)),
        ("2025-11-25 in both", Some("2025-11-25"), None, Some(meta("2025-11-25")), (200, 0)),
        ("2026-07-28", Some(NEW), Some("tools/list"), Some(meta(NEW)), (200, 0)),
        ("no header", None, Some("tools/list"), Some(meta(NEW)), (400, -32_020)),
        ("another header", Some("2025-11-25"), Some("tools/list"), Some(meta(NEW)), (400, -32_020)),
        ("another body", Some(NEW), Some("tools/list"), Some(meta("2025-11-25")), (400, -32_020)),
        ("no method header", Some(NEW), None, Some(meta(NEW)), (400, -32_020)),
        ("another method header", Some(NEW), Some("tools/call"), Some(meta(NEW)), (400, -32_020)),
        ("method header in capitals", Some(NEW), Some("TOOLS/LIST"), Some(meta(NEW)), (400, -32_020)),
        ("no meta", Some(NEW), Some("tools/list"), None, (400, -32_602)),
        ("no capabilities", Some(NEW), Some("tools/list"), Some(no_capabilities), (400, -32_602)),
        ("odd capabilities", Some(NEW), Some("tools/list"), Some(odd_capabilities), (400, -32_602)),
        ("odd version", Some(NEW), Some("tools/list"), Some(odd_version), (400, -32_602)),
        ("odd meta", Some(NEW), Some("tools/list"), Some(json!([])), (400, -32_602)),
        ("unknown in both", Some("2099-01-01"), Some("tools/list"), Some(meta("2099-01-01")), (400, -32_022)),
        ("unknown header", Some("1999-01-01"), None, None, (400, -32_022)),
        ("empty header", Some(""), None, None, (400, -32_022)),
    ];
    for (what, version, method, meta, expected) in rows {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let headers = Headers { protocol_version: owned(version), method: owned(method), name: None };
        let (status, answer) = send(&headers, list(meta).to_string().as_bytes());
        assert_eq!((status, answer["error"]["code"].as_i64().unwrap_or_default()), expected, "{what}: {answer}");
        assert_eq!(answer["id"], 1, "{what}");
    }
}

#[test]
fn an_unsupported_revision_is_answered_with_the_supported_ones() {
    let body = request("tools/list", json!({ "_meta": meta("1900-01-01") })).to_string();
    let (_, answer) = send(&headers("1900-01-01", "tools/list", None), body.as_bytes());
    assert_eq!(
        answer["error"]["data"],
        json!({ "supported": [NEW, "2025-11-25", "2025-06-18", "2025-03-26"], "requested": "1900-01-01" })
    );
}

#[test]
fn method_and_name_headers_must_equal_the_body() {
    for (what, header, name, expected) in [
        ("the same", Some("get_listing"), "get_listing", (200, 0)),
        ("encoded", Some("=?base64?Z2V0X2xpc3Rpbmc=?="), "get_listing", (200, 0)),
        ("missing", None, "get_listing", (400, -32_020)),
        ("another", Some("search_listings"), "get_listing", (400, -32_020)),
        ("encoded, another", Some("=?base64?c2VhcmNo?="), "get_listing", (400, -32_020)),
        ("encoded wrongly", Some("=?base64?%%?="), "get_listing", (400, -32_020)),
        ("in capitals", Some("Get_Listing"), "get_listing", (400, -32_020)),
        ("not ASCII", Some("gét"), "gét", (400, -32_020)),
        ("encoded, not ASCII", Some("=?base64?Z8OpdA==?="), "gét", (200, -32_602)),
        ("unknown tool", Some("nothing"), "nothing", (200, -32_602)),
    ] {
        let params = json!({ "_meta": meta(NEW), "name": name, "arguments": { "id": ID } });
        let body = request("tools/call", params).to_string();
        let (status, answer) = send(&headers(NEW, "tools/call", header), body.as_bytes());
        assert_eq!((status, answer["error"]["code"].as_i64().unwrap_or_default()), expected, "{what}: {answer}");
    }
    for (method, params, answered) in [("resources/read", "uri", 200), ("prompts/get", "name", 404)] {
        let body = request(method, json!({ "_meta": meta(NEW), params: "x" })).to_string();
        assert_eq!(send(&headers(NEW, method, Some("y")), body.as_bytes()).1["error"]["code"], -32_020);
        assert_eq!(send(&headers(NEW, method, Some("x")), body.as_bytes()).0, answered);
    }
}

#[test]
fn an_unknown_method_is_answered_method_not_found() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "subscriptions/listen",
        "resources/subscribe",
        "prompts/list",
        "nothing",
        "tasks/get",
    ] {
        let body = request(method, json!({ "_meta": meta(NEW) })).to_string();
        let (status, answer) = send(&headers(NEW, method, None), body.as_bytes());
        assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32_601)), "{method}");
    }
    for (method, code) in [("ping", Value::Null), ("prompts/list", json!(-32_601)), ("server/discover", json!(-32_601))]
    {
        let body = request(method, json!({})).to_string();
        let headers = Headers { protocol_version: Some("2025-11-25".into()), ..Headers::default() };
        let (status, answer) = send(&headers, body.as_bytes());
        assert_eq!((status, &answer["error"]["code"]), (200, &code), "{method}");
    }
    let bare = request("server/discover", json!({})).to_string();
    assert_eq!(send(&Headers::default(), bare.as_bytes()).0, 400);
}

#[test]
fn results_of_the_stateless_revision_carry_their_result_type() {
    let send = |method, params: Value, name| {
        let mut params = params;
        params["_meta"] = meta(NEW);
        send(&headers(NEW, method, name), request(method, params).to_string().as_bytes()).1["result"].clone()
    };
    let discovered = send("server/discover", json!({}), None);
    let listed = send("tools/list", json!({}), None);
    let called = send("tools/call", json!({ "name": "get_listing", "arguments": { "id": ID } }), Some("get_listing"));
    for result in [&discovered, &listed, &called] {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "surety", "{result}");
    }
    let [page, templates] = ["resources/list", "resources/templates/list"].map(|method| send(method, json!({}), None));
    let card = page["resources"][0]["uri"].as_str().unwrap();
    let read = send("resources/read", json!({ "uri": card }), Some(card));
    assert_eq!(read["contents"][0]["uri"], card);
    assert!(templates["resourceTemplates"][0]["uriTemplate"].as_str().unwrap().ends_with("/listings/{id}"));
    for result in [&discovered, &listed, &page, &templates, &read] {
        assert!(result["ttlMs"].as_u64().unwrap() > 0 && result["cacheScope"] == "public");
    }
    assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!(NEW)));
    assert_eq!(listed["tools"], serde_json::from_str::<Value>(include_str!("tools.json")).unwrap());
    let mut owned = json!(listing(ID));
    owned["owned"] = json!(false);
    owned["priceTada"] = json!("5");
    owned["createdAtIso"] = json!("1970-01-01T00:00:00Z");
    assert_eq!(called["structuredContent"], owned);
    assert_eq!(called["content"][0]["text"], owned.to_string());
    assert_eq!(called["isError"], false);
    assert!(called.get("ttlMs").is_none());
}

#[test]
fn results_of_earlier_revisions_have_no_newer_fields() {
    let headers = Headers { protocol_version: Some("2025-06-18".into()), ..Headers::default() };
    let listed = send(&headers, request("tools/list", json!({})).to_string().as_bytes()).1["result"].clone();
    assert_eq!(listed.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    let page = send(&headers, request("resources/list", json!({})).to_string().as_bytes()).1["result"].clone();
    assert_eq!(page.as_object().unwrap().keys().collect::<Vec<_>>(), ["nextCursor", "resources"]);
}

#[test]
fn notifications_and_unexpected_responses_get_202_without_a_body() {
    for body in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unknown", "params": { "_meta": meta(NEW) } }),
        json!({ "jsonrpc": "2.0", "id": 4, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": 1, "message": "" } }),
    ] {
        assert_eq!(send(&Headers::default(), body.to_string().as_bytes()), (202, Value::Null), "{body}");
    }
}

#[test]
fn a_body_that_is_not_one_bounded_message_is_refused() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let nested = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{deep}}}}}"#);
    // Each object takes seven bytes of JSON, but about four hundred bytes of memory.
    let junk = json!(vec![json!({ "": 0 }); 10_000]);
    let many = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "_meta": junk } }).to_string();
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(message::MAX_MESSAGE_BYTES) }).to_string();
    for (body, expected) in [
        ("", (400, -32_700)),
        ("{", (400, -32_700)),
        ("\u{feff}{}", (400, -32_700)),
        ("{} {}", (400, -32_600)),
        ("nonsense", (400, -32_700)),
        ("[]", (400, -32_600)),
        ("{}", (400, -32_600)),
        ("1", (400, -32_600)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":1}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, (400, -32_600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, (400, -32_600)),
        (nested.as_str(), (400, -32_700)),
        (large.as_str(), (413, -32_600)),
        (many.as_str(), (400, -32_600)),
    ] {
        let (status, answer) = send(&Headers::default(), body.as_bytes());
        let shown: String = body.chars().take(80).collect();
        assert_eq!((status, answer["error"]["code"].as_i64().unwrap()), expected, "{shown}");
        assert!(answer.get("id").is_none(), "{shown}");
    }
}

#[test]
fn request_ids_are_echoed_unchanged() {
    for id in [json!(0), json!(-7), json!("a"), json!(""), json!(9_007_199_254_740_991_i64)] {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        assert_eq!(send(&Headers::default(), body.to_string().as_bytes()).1["id"], id);
    }
}

#[test]
fn malformed_json_rpc_calls_are_refused() {
    for params in [json!({}), json!({ "name": 1 }), json!({ "name": "get_listing", "arguments": [] })] {
        let (status, answer) = send(&Headers::default(), request("tools/call", params).to_string().as_bytes());
        assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32_602)));
    }
}

#[test]
fn a_batch_is_answered_message_by_message_in_the_revision_that_has_batches_and_in_no_other() {
    let call = |id: u32, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} });
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let batch = |messages: &[Value]| serde_json::to_vec(messages).unwrap();
    let old = |version: Option<&str>| Headers { protocol_version: version.map(str::to_owned), ..Headers::default() };
    let mixed = batch(&[call(1, "ping"), notice.clone(), call(2, "tools/list"), call(3, "unknown")]);
    for version in [None, Some("2025-03-26")] {
        let (status, answers) = send(&old(version), &mixed);
        let ids: Vec<u64> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!((status, ids), (200, vec![1, 2, 3]));
        assert_eq!(answers[2]["error"]["code"], -32_601);
        assert_eq!(send(&old(version), &batch(std::slice::from_ref(&notice))), (202, Value::Null));
    }
    let eleven: Vec<Value> = (0..11).map(|id| call(id, "ping")).collect();
    for (version, body) in [
        (Some("2025-06-18"), mixed.clone()),
        (Some("2025-11-25"), mixed),
        (None, batch(&[call(1, "initialize")])),
        (None, batch(&[call(1, "ping"), json!(7)])),
        (None, batch(&eleven)),
    ] {
        let (status, answer) = send(&old(version), &body);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32_600)), "{version:?}");
    }
}

#[test]
fn calls_that_reach_the_shop_count_against_the_callers_limit() {
    let counts = |method| {
        let body = message::parse(request(method, json!({})).to_string().as_bytes(), true).unwrap();
        body.messages[0].asks_shop()
    };
    assert!(counts("tools/call") && counts("resources/list") && counts("resources/read"));
    assert!(!counts("tools/list") && !counts("initialize"));
}

#[test]
fn browser_requests_are_accepted_for_our_own_host_alone() {
    let own = Some("https://surety.example.com");
    for origin in [None, own, Some("http://localhost:6274"), Some("https://agent.example.com"), Some("null")] {
        for host in ["surety.example.com", "127.0.0.1:8787", "localhost:1", "[::1]:2"] {
            assert!(page_allowed(origin, Some(host), own), "{origin:?} {host}");
        }
    }
    for rebound in [
        "evil.example.com",
        "",
        "localhost.evil.example.com",
        "surety.example.com.evil.example",
        "127.0.0.1.nip.io",
        "127.0.0.1@evil.example.com",
    ] {
        assert!(!page_allowed(Some("https://evil.example.com"), Some(rebound), own), "{rebound}");
        assert!(!page_allowed(Some("https://evil.example.com"), Some(rebound), None), "{rebound}");
    }
    assert!(!page_allowed(own, None, own));
    assert!(!page_allowed(own, Some("surety.example.com"), None), "an address that is not configured is not ours");
}
