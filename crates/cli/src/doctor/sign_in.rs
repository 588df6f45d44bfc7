//! Probes that imitate OAuth clients: discovery, registration, consent, tokens.

use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::{Deployment, ORIGIN, Probe, about, at, ensure, text};
use crate::service::Ask;

/// A PKCE code challenge: the example of RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// A redirect URI on loopback, which every client may register.
const LOOPBACK: &str = "http://127.0.0.1:33418/callback";
/// A redirect URI with a private scheme, as an editor registers it.
const EDITOR: &str = "cursor://anysphere.cursor-mcp/oauth/callback";

fn encoded(fields: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn form(fields: &[(&str, &str)]) -> Ask<'static> {
    Ask { body: Some(("application/x-www-form-urlencoded", encoded(fields))), ..Ask::default() }
}

impl Deployment {
    fn server(&self) -> Result<Value, String> {
        self.get("/.well-known/oauth-authorization-server")
    }

    fn register(&self, uris: &[&str]) -> Result<Value, String> {
        let body = json!({ "client_name": "surety doctor", "redirect_uris": uris });
        self.json("POST", "/oauth/register", Ask::json(&body), 201)
    }
}

pub(super) const PROBES: [Probe; 9] = [
    Probe {
        clients: "every MCP client",
        need: "the way from a 401 to the authorization server",
        advice: "BASE_URL must be the public origin, without a slash behind it",
        send: |it| {
            // The request with which claude.ai probes a server.
            let ask = Ask { headers: vec![("accept", "*/*")], ..Ask::json(&json!({})) };
            let refused = it.ask("POST", "/mcp", ask, 401)?;
            let challenge = refused.header("www-authenticate").unwrap_or_default();
            ensure(challenge.contains("resource_metadata="), "WWW-Authenticate names no resource metadata")?;
            let (base, known) = (it.service.base(), it.get("/.well-known/oauth-protected-resource/mcp")?);
            let resource = format!("{base}/mcp");
            ensure(text(&known, "/resource") == resource, "the resource is not this address and /mcp")?;
            ensure(at(&known, "/authorization_servers/0") == base, "the authorization server is not this address")?;
            ensure(at(&it.server()?, "/issuer") == base, "the issuer is not this address")?;
            for path in ["oauth-protected-resource", "oauth-authorization-server/mcp", "openid-configuration"] {
                it.get(&format!("/.well-known/{path}"))?;
            }
            Ok(())
        },
    },
    Probe {
        clients: "editors (Cursor, VS Code)",
        need: "registration of their own scheme beside https and loopback",
        advice: "leave out the redirect URIs that are not acceptable, and register the others",
        send: |it| {
            let web = "https://www.cursor.com/agents/mcp/oauth/callback";
            let answer = it.register(&[EDITOR, "evil://callback", web, LOOPBACK])?;
            let taken = at(&answer, "/redirect_uris").as_array().ok_or("no redirect_uris in the answer")?;
            ensure(taken.contains(&json!(EDITOR)), "the editor's own scheme was left out")?;
            ensure(!taken.contains(&json!("evil://callback")), "a scheme that anyone may claim was taken")
        },
    },
    Probe {
        clients: "Claude Code, Codex, claude.ai, ChatGPT",
        need: "registration as each sends it",
        advice: "take every member of RFC 7591, also those without meaning here",
        send: |it| {
            for callback in [
                "https://claude.ai/api/mcp/auth_callback",
                "https://chatgpt.com/connector_platform_oauth_redirect",
                "http://localhost:52598/callback",
            ] {
                let body = json!({
                    "client_name": "surety doctor", "redirect_uris": [callback],
                    "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
                    "token_endpoint_auth_method": "none", "application_type": "native", "scope": "mcp mcp:read",
                });
                about(callback, it.ask("POST", "/oauth/register", Ask::json(&body), 201))?;
            }
            let none = json!({ "redirect_uris": ["http://evil.example.com/callback"] });
            let refused = it.json("POST", "/oauth/register", Ask::json(&none), 400)?;
            ensure(at(&refused, "/error") == "invalid_redirect_uri", "another error than invalid_redirect_uri")
        },
    },
    Probe {
        clients: "claude.ai",
        need: "the same client id for the same registration",
        advice: "derive the id from what is registered",
        send: |it| {
            let [first, second] = [it.register(&[LOOPBACK])?, it.register(&[LOOPBACK])?];
            let [first, second] = [text(&first, "/client_id"), text(&second, "/client_id")];
            ensure(!first.is_empty() && first == second, "another client id")
        },
    },
    Probe {
        clients: "Claude Code, Codex",
        need: "metadata documents offered over https alone",
        advice: "offer client_id_metadata_document_supported where documents can be fetched",
        send: |it| {
            let offered = at(&it.server()?, "/client_id_metadata_document_supported") == true;
            let https = it.service.base().starts_with("https://");
            ensure(offered == https, if https { "they are not offered" } else { "they are offered over http" })
        },
    },
    Probe {
        clients: "MCP SDKs",
        need: "the resource in each spelling, and scopes that are not known here",
        advice: "take the origin and a slash behind it for the resource, and leave out other scopes",
        send: |it| {
            let client = it.register(&[LOOPBACK])?;
            for (spelling, scope) in
                [("/mcp", "mcp"), ("/mcp/", "openid offline_access"), ("", "agent:own"), ("/", "mcp:read")]
            {
                let resource = format!("{}{spelling}", it.service.base());
                let query = encoded(&[
                    ("response_type", "code"),
                    ("client_id", text(&client, "/client_id")),
                    ("redirect_uri", LOOPBACK),
                    ("code_challenge", CHALLENGE),
                    ("code_challenge_method", "S256"),
                    ("resource", &resource),
                    ("scope", scope),
                ]);
                let page = it.ask("GET", &format!("/oauth/authorize?{query}"), Ask::default(), 200);
                about(&format!("resource {resource}, scope {scope}"), page)?;
            }
            Ok(())
        },
    },
    Probe {
        clients: "clients that sign out",
        need: "revocation (RFC 7009)",
        advice: "answer 200 to tokens that are not known",
        send: |it| {
            ensure(at(&it.server()?, "/revocation_endpoint").is_string(), "no revocation_endpoint")?;
            it.ask("POST", "/oauth/revoke", form(&[("token", "surety_rt_unknown")]), 200).map(drop)
        },
    },
    Probe {
        clients: "parallel sessions",
        need: "invalid_grant for a refresh token that is not known",
        advice: "answer 400 with OAuth's error, so that the client connects again",
        send: |it| {
            let fields = [
                ("grant_type", "refresh_token"),
                ("refresh_token", "surety_rt_unknown"),
                ("client_id", "client_unknown"),
            ];
            let answer = it.json("POST", "/oauth/token", form(&fields), 400)?;
            ensure(at(&answer, "/error") == "invalid_grant", "another error than invalid_grant")
        },
    },
    Probe {
        clients: "agents in a browser",
        need: "any request header in a preflight, and a 401 that they can read",
        advice: "answer the headers that were asked for; do not refuse by Origin alone",
        send: |it| {
            it.preflight(
                "/mcp",
                "authorization,cache-control,content-type,idempotency-key,last-event-id,mcp-protocol-version",
            )?;
            let ask = Ask { headers: vec![("origin", ORIGIN)], ..Ask::json(&json!({})) };
            let answer = it.ask("POST", "/mcp", ask, 401)?;
            let exposed = answer.header("access-control-expose-headers").unwrap_or_default().to_ascii_lowercase();
            ensure(exposed.contains("www-authenticate"), "pages cannot read WWW-Authenticate")
        },
    },
];
