//! What x402 clients and directories ask of the paywall, and of the documents about it.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;

use super::{Deployment, Finding, Probe, at, ensure, expect};
use crate::service::Ask;

pub(super) const PROBES: [Probe; 5] = [
    Probe {
        clients: "directories of x402",
        need: "the terms for GET, HEAD and POST",
        mend: "answer 402 with PAYMENT-REQUIRED to each",
        send: Deployment::answers_probes,
    },
    Probe {
        clients: "x402scan, AgentCash",
        need: "x-payment-info beside a 402 in /openapi.json",
        mend: "describe what the paid operation costs in OpenAPI",
        send: Deployment::prices_its_operations,
    },
    Probe {
        clients: "x402 wrappers in a browser",
        need: "a preflight with access-control-expose-headers",
        mend: "answer the headers that were asked for",
        send: Deployment::allows_wrappers,
    },
    Probe {
        clients: "x402 clients with base64url",
        need: "PAYMENT-SIGNATURE in either alphabet",
        mend: "decode both alphabets, with padding or without",
        send: Deployment::reads_either_alphabet,
    },
    Probe {
        clients: "catalogues and crawlers",
        need: "/openapi.json, /supported, /discovery/resources and /llms.txt",
        mend: "serve them without sign-in",
        send: Deployment::describes_itself,
    },
];

impl Deployment {
    fn answers_probes(&self) -> Finding {
        let path = self.paywall()?;
        for method in ["GET", "HEAD", "POST"] {
            let answer = expect(self.service.ask(method, &path, Ask::default()), 402);
            let answer = answer.map_err(|reason| format!("{method}: {reason}"))?;
            ensure(answer.header("payment-required").is_some(), &format!("{method}: no PAYMENT-REQUIRED"))?;
        }
        Ok(())
    }

    fn prices_its_operations(&self) -> Finding {
        let document = self.get("/openapi.json")?;
        for method in ["get", "post"] {
            let paid = at(&document, &format!("/paths/~1listings~1{{id}}~1unlock/{method}"));
            let info = at(paid, "/x-payment-info");
            ensure(at(info, "/protocols/0/x402").is_object(), &format!("{method}: no x-payment-info with x402"))?;
            ensure(at(info, "/price/mode").is_string(), &format!("{method}: no price"))?;
            ensure(at(paid, "/responses/402").is_object(), &format!("{method}: no 402"))?;
            ensure(at(paid, "/security") == &json!([]), &format!("{method}: it looks as if it needed a key"))?;
        }
        Ok(())
    }

    fn allows_wrappers(&self) -> Finding {
        self.preflight(&self.paywall()?, "access-control-expose-headers,payment-signature")
    }

    fn reads_either_alphabet(&self) -> Finding {
        // Both letters in which the alphabets differ.
        let header = BASE64_URL_SAFE_NO_PAD.encode("{\"x402Version\":2,\"note\":\"???>>>\u{ff}\u{fe}\"}");
        let ask = Ask { headers: vec![("payment-signature", &header)], ..Ask::default() };
        let answer = self.service.ask("GET", &self.paywall()?, ask).map_err(|error| error.to_string())?;
        ensure(matches!(answer.status, 400 | 402), "another status than 400 and 402")?;
        ensure(!answer.words().contains("base64"), &answer.words())
    }

    fn describes_itself(&self) -> Finding {
        for path in ["/openapi.json", "/supported", "/discovery/resources"] {
            self.get(path).map_err(|reason| format!("{path}: {reason}"))?;
        }
        expect(self.service.ask("GET", "/llms.txt", Ask::default()), 200).map(drop)
    }
}
