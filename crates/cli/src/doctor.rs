//! `surety doctor URL`: sends a deployment what stock clients and wallets send, and says which of them it serves.
//!
//! It pays nothing and signs with a key made for the run. What it leaves is one registration of a client, which ends in a day.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cardano::keys::SigningKey;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::{
    failure::Failure,
    proof,
    service::{Answer, Ask, Service},
    tell::{Tell, plain},
};

/// A page of another site.
const ORIGIN: &str = "https://agent.example.com";
/// Of RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// A redirect URI that every client may register.
const LOOPBACK: &str = "http://127.0.0.1:33418/callback";
/// The one that an editor registers beside others.
const EDITOR: &str = "cursor://anysphere.cursor-mcp/oauth/callback";
/// A COSE_Sign1's tag, 18.
const SIGN1_TAG: &str = "d2";

/// `surety doctor`.
#[derive(Args)]
pub struct DoctorArguments {
    /// The deployment; by default the one of --api.
    url: Option<String>,
}

/// What a probe finds wrong.
type Finding = Result<(), String>;

/// What one kind of client sends.
struct Probe {
    /// Who sends it.
    clients: &'static str,
    /// What they need.
    need: &'static str,
    /// What to do where it is not there.
    mend: &'static str,
    send: fn(&Deployment) -> Finding,
}

const PROBES: [Probe; 15] = [
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
    Probe {
        clients: "directories of x402",
        need: "the terms for GET, HEAD and POST",
        mend: "answer 402 with PAYMENT-REQUIRED to each",
        send: Deployment::answers_probes,
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
        clients: "wallets",
        need: "COSE_Sign1 as wallets write it, and under tag 18",
        mend: "take the tag off before the message is read",
        send: Deployment::reads_signatures,
    },
    Probe {
        clients: "big and mixed wallets",
        need: "a draft from 600 outputs, of which some have no key",
        mend: "leave out what no key spends, and draft from the largest",
        send: Deployment::drafts_for_big_wallets,
    },
    Probe {
        clients: "wallets on another network",
        need: "word of it before they sign",
        mend: "look the paying output up where checkInputs is set",
        send: Deployment::warns_other_networks,
    },
    Probe {
        clients: "catalogues and crawlers",
        need: "/openapi.json, /supported, /discovery/resources and /llms.txt",
        mend: "serve them without sign-in",
        send: Deployment::describes_itself,
    },
];

/// What is examined.
struct Deployment {
    service: Service,
    /// Something that is for sale there.
    listing: Option<String>,
    key: SigningKey,
}

/// Runs every probe.
///
/// # Errors
/// A usage error, no answer at all, or (exit code 1) what a probe found.
pub fn run(api: &str, tell: &Tell, arguments: &DoctorArguments) -> Result<(), Failure> {
    let service = Service::at(arguments.url.as_deref().unwrap_or(api))?;
    let listings: Vec<Value> = service.json("GET", "/listings?limit=1", Ask::default())?;
    let listing = listings.first().and_then(|one| one.get("id")?.as_str()).map(str::to_owned);
    let mut seed = [0_u8; 32];
    getrandom::fill(&mut seed).map_err(|error| Failure::Refused(format!("no randomness: {error}")))?;
    let key = SigningKey::from_seed(&seed).map_err(|error| Failure::Refused(error.to_string()))?;
    let deployment = Deployment { service, listing, key };
    let (mut told, mut words, mut failed) = (Vec::new(), Vec::new(), 0_usize);
    for Probe { clients, need, mend, send } in PROBES {
        let finding = send(&deployment);
        let found = finding.as_ref().err().map(|reason| plain(reason));
        words.push(match &found {
            None => format!("ok    {clients}: {need}"),
            Some(reason) => format!("FAIL  {clients}: {need}: {reason}; {mend}"),
        });
        failed = failed.saturating_add(usize::from(found.is_some()));
        told.push(json!({ "clients": clients, "need": need, "ok": found.is_none(), "reason": found, "mend": mend }));
    }
    tell.result(&json!(told), &words.join("\n"))?;
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::Refused(format!("{failed} of {} kinds of clients are not served", PROBES.len())))
}

/// The answer to `ask` where it has this status.
fn expect(answer: Result<Answer, Failure>, status: u16) -> Result<Answer, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status == status {
        Ok(answer)
    } else {
        Err(format!("{} instead of {status}: {}", answer.status, answer.words()))
    }
}

/// What stands at this place (RFC 6901), or null.
fn at<'a>(value: &'a Value, place: &str) -> &'a Value {
    value.pointer(place).unwrap_or(&Value::Null)
}

fn value(answer: &Answer) -> Result<Value, String> {
    serde_json::from_slice(&answer.body).map_err(|_| "no JSON".to_owned())
}

fn ensure(holds: bool, otherwise: &str) -> Finding {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

fn form(fields: &[(&str, &str)]) -> Ask<'static> {
    Ask { form: Some(Serializer::new(String::new()).extend_pairs(fields).finish()), ..Ask::default() }
}

impl Deployment {
    fn get(&self, path: &str) -> Result<Value, String> {
        value(&expect(self.service.ask("GET", path, Ask::default()), 200)?)
    }

    fn server(&self) -> Result<Value, String> {
        self.get("/.well-known/oauth-authorization-server")
    }

    fn leads_to_sign_in(&self) -> Finding {
        let refused = expect(self.service.ask("POST", "/mcp", Ask::json(json!({}))), 401)?;
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

    fn preflight(&self, path: &str, headers: &str) -> Finding {
        let asked = vec![
            ("origin", ORIGIN),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", headers),
        ];
        let answer = expect(self.service.ask("OPTIONS", path, Ask { headers: asked, ..Ask::default() }), 204)?;
        let allowed = answer.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
        let missing = headers.split(',').find(|name| !allowed.split(',').any(|one| one.trim() == name.trim()));
        missing.map_or(Ok(()), |name| Err(format!("{name} is not allowed")))
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

    /// The address of the paywall of something that is for sale.
    fn paywall(&self) -> Result<String, String> {
        let listing = self.listing.as_ref().ok_or("nothing is for sale here: list something first")?;
        Ok(format!("/listings/{listing}/unlock"))
    }

    fn answers_probes(&self) -> Finding {
        let path = self.paywall()?;
        for method in ["GET", "HEAD", "POST"] {
            let answer = expect(self.service.ask(method, &path, Ask::default()), 402);
            let answer = answer.map_err(|reason| format!("{method}: {reason}"))?;
            ensure(answer.header("payment-required").is_some(), &format!("{method}: no PAYMENT-REQUIRED"))?;
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

    fn reads_signatures(&self) -> Finding {
        let path = self.paywall()?;
        let listing = self.listing.as_deref().unwrap_or_default();
        for tag in ["", SIGN1_TAG] {
            let proof = proof::of_purchase_tagged(&self.key, listing, tag).map_err(|error| error.to_string())?;
            let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::default() };
            let answer = expect(self.service.ask("GET", &path, ask), 402)?;
            ensure(answer.words().contains("has not bought"), &answer.words())?;
        }
        Ok(())
    }

    /// A draft for a wallet that holds 50 tADA in one output, a little in 600, and something that no key spends.
    fn draft(&self, check: bool) -> Result<Answer, String> {
        let listing = self.listing.as_ref().ok_or("nothing is for sale here: list something first")?;
        let listed: Value = self.get(&format!("/listings/{listing}"))?;
        let own = hex::encode(self.key.enterprise_address().to_bytes());
        let output = |place: u16, address: &str, lovelace: u64| {
            format!("82825820{}19{place:04x}82581d{address}1b{lovelace:016x}", "ab".repeat(32))
        };
        let small = (1..=600).map(|place| output(place, &own, 1_000_000));
        let script = output(601, &format!("70{}", "0b".repeat(28)), 9_000_000);
        let utxos: Vec<String> = small.chain([script, output(602, &own, 5_000_000_000_000)]).collect();
        let body =
            json!({ "mode": at(&listed, "/modes/0"), "utxos": utxos, "changeAddress": own, "checkInputs": check });
        self.service
            .ask("POST", &format!("/listings/{listing}/payment-draft"), Ask::json(body))
            .map_err(|error| error.to_string())
    }

    fn drafts_for_big_wallets(&self) -> Finding {
        let draft = value(&expect(Ok(self.draft(false)?), 200)?)?;
        ensure(at(&draft, "/transaction").as_str().is_some_and(|cbor| cbor.starts_with("84")), "no transaction")
    }

    fn warns_other_networks(&self) -> Finding {
        let refused = expect(Ok(self.draft(true)?), 400)?;
        ensure(refused.words().contains("preprod"), &refused.words())
    }

    fn describes_itself(&self) -> Finding {
        for path in ["/openapi.json", "/supported", "/discovery/resources"] {
            self.get(path).map_err(|reason| format!("{path}: {reason}"))?;
        }
        expect(self.service.ask("GET", "/llms.txt", Ask::default()), 200).map(drop)
    }
}
