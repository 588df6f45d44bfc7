//! How agents are let in: discovery, registration, consent, tokens.

use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::{Deployment, Finding, ORIGIN, Probe, at, ensure, expect, value};
use crate::service::Ask;

/// Of RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// A redirect URI that every client may register.
const LOOPBACK: &str = "http://127.0.0.1:33418/callback";
/// The one that an editor registers beside others.
const EDITOR: &str = "cursor://anysphere.cursor-mcp/oauth/callback";

pub(super) const PROBES: [Probe; 9] = [
    Probe {
        clients: "every MCP client",
        need: "the way from a 401 to the authorization server",
        mend: "BASE_URL must be the public origin, without a slash behind it",
        send: Deployment::leads_to_sign_in,
    },
    Probe {
        clients: "editors (Cursor, VS Code)",
        need: "registration of their own scheme beside https and loopback",
        mend: "leave out the redirect URIs that are not acceptable, and register the others",
        send: Deployment::registers_editors,
    },
    Probe {
        clients: "Claude Code, Codex, claude.ai, ChatGPT",
        need: "registration as each sends it",
        mend: "take every member of RFC 7591, also those without meaning here",
        send: Deployment::registers_each_body,
    },
    Probe {
        clients: "claude.ai",
        need: "the same client id for the same registration",
        mend: "derive the id from what is registered",
        send: Deployment::registers_again,
    },
    Probe {
        clients: "Claude Code, Codex",
        need: "metadata documents offered over https alone",
        mend: "offer client_id_metadata_document_supported where documents can be fetched",
        send: Deployment::offers_documents,
    },
    Probe {
        clients: "MCP SDKs",
        need: "the resource in each spelling, and scopes that are not known here",
        mend: "take the origin and a slash behind it for the resource, and leave out other scopes",
        send: Deployment::takes_spellings,
    },
    Probe {
        clients: "clients that sign out",
        need: "revocation (RFC 7009)",
        mend: "answer 200 to tokens that are not known",
        send: Deployment::revokes,
    },
    Probe {
        clients: "parallel sessions",
        need: "invalid_grant for a refresh token that is not known",
        mend: "answer 400 with OAuth's error, so that the client connects again",
        send: Deployment::refuses_old_refreshes,
    },
    Probe {
        clients: "agents in a browser",
        need: "any request header in a preflight, and a 401 that they can read",
        mend: "answer the headers that were asked for; do not refuse by Origin alone",
        send: Deployment::serves_pages,
    },
];

fn form(fields: &[(&str, &str)]) -> Ask<'static> {
    Ask { form: Some(Serializer::new(String::new()).extend_pairs(fields).finish()), ..Ask::default() }
}

impl Deployment {
    fn server(&self) -> Result<Value, String> {
        self.get("/.well-known/oauth-authorization-server")
    }

    fn leads_to_sign_in(&self) -> Finding {
        // As claude.ai probes.
        let ask = Ask { headers: vec![("accept", "*/*")], ..Ask::json(json!({})) };
        let refused = expect(self.service.ask("POST", "/mcp", ask), 401)?;
        let challenge = refused.header("www-authenticate").unwrap_or_default();
        ensure(challenge.contains("resource_metadata="), "WWW-Authenticate names no resource metadata")?;
        let (base, resource) = (self.service.base(), self.get("/.well-known/oauth-protected-resource/mcp")?);
        ensure(
            at(&resource, "/resource") == &json!(format!("{base}/mcp")),
            "the resource is not this address and /mcp",
        )?;
        ensure(at(&resource, "/authorization_servers/0") == base, "the authorization server is not this address")?;
        ensure(at(&self.server()?, "/issuer") == base, "the issuer is not this address")?;
        for path in ["oauth-protected-resource", "oauth-authorization-server/mcp", "openid-configuration"] {
            self.get(&format!("/.well-known/{path}"))?;
        }
        Ok(())
    }

    fn register(&self, uris: &[&str]) -> Result<Value, String> {
        let body = json!({ "client_name": "surety doctor", "redirect_uris": uris });
        value(&expect(self.service.ask("POST", "/oauth/register", Ask::json(body)), 201)?)
    }

    fn registers_editors(&self) -> Finding {
        let answer =
            self.register(&[EDITOR, "evil://callback", "https://www.cursor.com/agents/mcp/oauth/callback", LOOPBACK])?;
        let taken: Vec<String> =
            Vec::deserialize(at(&answer, "/redirect_uris")).map_err(|_| "no redirect_uris in the answer")?;
        ensure(taken.iter().any(|uri| uri == EDITOR), "the editor's own scheme was left out")?;
        ensure(!taken.iter().any(|uri| uri.starts_with("evil:")), "a scheme that anyone may claim was taken")
    }

    fn registers_each_body(&self) -> Finding {
        let callbacks = [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chatgpt.com/connector_platform_oauth_redirect",
            "http://localhost:52598/callback",
        ];
        for callback in callbacks {
            let body = json!({
                "client_name": "surety doctor", "redirect_uris": [callback],
                "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
                "token_endpoint_auth_method": "none", "application_type": "native", "scope": "mcp mcp:read",
            });
            let answer = expect(self.service.ask("POST", "/oauth/register", Ask::json(body)), 201);
            answer.map_err(|reason| format!("{callback}: {reason}"))?;
        }
        let none = json!({ "redirect_uris": ["http://evil.example.com/callback"] });
        let refused = expect(self.service.ask("POST", "/oauth/register", Ask::json(none)), 400)?;
        ensure(at(&value(&refused)?, "/error") == "invalid_redirect_uri", "another error than invalid_redirect_uri")
    }

    fn registers_again(&self) -> Finding {
        let [first, second] = [self.register(&[LOOPBACK])?, self.register(&[LOOPBACK])?];
        ensure(
            at(&first, "/client_id").is_string() && at(&first, "/client_id") == at(&second, "/client_id"),
            "another client id",
        )
    }

    fn offers_documents(&self) -> Finding {
        let offered = at(&self.server()?, "/client_id_metadata_document_supported") == true;
        let https = self.service.base().starts_with("https://");
        ensure(offered == https, if https { "they are not offered" } else { "they are offered over http" })
    }

    fn takes_spellings(&self) -> Finding {
        let client = self.register(&[LOOPBACK])?;
        let (client, base) = (at(&client, "/client_id").as_str().unwrap_or_default(), self.service.base());
        for (resource, scope) in [
            (format!("{base}/mcp"), "mcp"),
            (format!("{base}/mcp/"), "openid offline_access"),
            (base.to_owned(), "agent:own"),
            (format!("{base}/"), "mcp:read"),
        ] {
            let query = Serializer::new(String::new())
                .extend_pairs([
                    ("response_type", "code"),
                    ("client_id", client),
                    ("redirect_uri", LOOPBACK),
                    ("code_challenge", CHALLENGE),
                    ("code_challenge_method", "S256"),
                    ("resource", &resource),
                    ("scope", scope),
                ])
                .finish();
            let page = self.service.ask("GET", &format!("/oauth/authorize?{query}"), Ask::default());
            expect(page, 200).map_err(|reason| format!("resource {resource}, scope {scope}: {reason}"))?;
        }
        Ok(())
    }

    fn revokes(&self) -> Finding {
        ensure(at(&self.server()?, "/revocation_endpoint").is_string(), "no revocation_endpoint")?;
        expect(self.service.ask("POST", "/oauth/revoke", form(&[("token", "surety_rt_unknown")])), 200).map(drop)
    }

    fn refuses_old_refreshes(&self) -> Finding {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", "surety_rt_unknown"), ("client_id", "client_unknown")];
        let answer = expect(self.service.ask("POST", "/oauth/token", form(&fields)), 400)?;
        ensure(at(&value(&answer)?, "/error") == "invalid_grant", "another error than invalid_grant")
    }

    fn serves_pages(&self) -> Finding {
        self.preflight(
            "/mcp",
            "authorization,cache-control,content-type,idempotency-key,last-event-id,mcp-protocol-version",
        )?;
        let ask = Ask { headers: vec![("origin", ORIGIN)], ..Ask::json(json!({})) };
        let answer = expect(self.service.ask("POST", "/mcp", ask), 401)?;
        let exposed = answer.header("access-control-expose-headers").unwrap_or_default().to_ascii_lowercase();
        ensure(exposed.contains("www-authenticate"), "pages cannot read WWW-Authenticate")
    }
}
