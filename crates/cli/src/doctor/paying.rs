//! Probes that imitate x402 clients that pay, and directories that list paid resources.

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde_json::json;

use super::{Probe, about, at, ensure};
use crate::service::Ask;

pub(super) const PROBES: [Probe; 5] = [
    Probe {
        clients: "directories of x402",
        need: "the terms for GET, HEAD and POST",
        advice: "answer 402 with PAYMENT-REQUIRED to each",
        send: |it| {
            for method in ["GET", "HEAD", "POST"] {
                let answer = about(method, it.ask(method, &it.paywall()?, Ask::default(), 402))?;
                about(method, ensure(answer.header("payment-required").is_some(), "no PAYMENT-REQUIRED"))?;
            }
            Ok(())
        },
    },
    Probe {
        clients: "x402scan, AgentCash",
        need: "x-payment-info beside a 402 in /openapi.json",
        advice: "describe what the paid operation costs in OpenAPI",
        send: |it| {
            let document = it.get("/openapi.json")?;
            for method in ["get", "post"] {
                let paid = at(&document, &format!("/paths/~1listings~1{{id}}~1unlock/{method}"));
                for (holds, otherwise) in [
                    (at(paid, "/x-payment-info/protocols/0/x402").is_object(), "no x-payment-info with x402"),
                    (at(paid, "/x-payment-info/price/mode").is_string(), "no price"),
                    (at(paid, "/responses/402").is_object(), "no 402"),
                    (at(paid, "/security") == &json!([]), "it looks as if it needed a key"),
                ] {
                    about(method, ensure(holds, otherwise))?;
                }
            }
            Ok(())
        },
    },
    Probe {
        clients: "x402 wrappers in a browser",
        need: "a preflight with access-control-expose-headers",
        advice: "answer the headers that were asked for",
        send: |it| it.preflight(&it.paywall()?, "access-control-expose-headers,payment-signature"),
    },
    Probe {
        clients: "x402 clients with base64url",
        need: "PAYMENT-SIGNATURE in either alphabet",
        advice: "decode both alphabets, with padding or without",
        send: |it| {
            // The payment's base64 contains both characters in which the two alphabets differ.
            let payment = "{\"x402Version\":2,\"note\":\"???>>>\u{ff}\u{fe}\"}";
            let mut said = vec![];
            for header in [BASE64_STANDARD.encode(payment), BASE64_URL_SAFE_NO_PAD.encode(payment)] {
                let ask = Ask { headers: vec![("payment-signature", &header)], ..Ask::default() };
                let answer = it.service.ask("GET", &it.paywall()?, ask).map_err(|error| error.to_string())?;
                ensure(matches!(answer.status, 400 | 402), "another status than 400 and 402")?;
                said.push(answer.words());
            }
            said.dedup();
            ensure(said.len() == 1, &said.join("; "))
        },
    },
    Probe {
        clients: "catalogues and crawlers",
        need: "/openapi.json, /supported, /discovery/resources and /llms.txt",
        advice: "serve them without sign-in",
        send: |it| {
            for path in ["/openapi.json", "/supported", "/discovery/resources"] {
                about(path, it.get(path))?;
            }
            it.ask("GET", "/llms.txt", Ask::default(), 200).map(drop)
        },
    },
];
