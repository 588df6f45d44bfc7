//! The operations of the API: parameters, bodies, and answers.

use api_types::{
    Actions, Agent, Approval, Bought, Buy, Category, Challenge, ChallengeRequest, ConnectChallenge, Connected, Creator,
    DeliveryMode, Error, Health, LimitsSet, Listing, Me, NewActionDraft, NewBuyerAction, NewLimits, NewListing,
    NewPaymentDraft, OAuthError, PaymentDraft, Purchase, PurchaseRequest, Readiness, Registered, Registration,
    RequestAnswer, Revocation, ServiceStatus, Session, SignIn, Sort, SubmittedAction, TokenRequest, Tokens, Verdict,
    Withdrawal, mcp::RpcMessage,
};
use market::catalogue::discovery::MAX_ADDRESSES;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value, json};
use x402_cardano::wire::discovery::{DEFAULT_LIMIT, DiscoveryPage, MAX_LIMIT, SearchPage, Supported};

/// Regular expression for the cursors of paginated lists.
const CURSOR: &str = r"^-?\d{1,15}\.-?\d{1,15}$";

/// Schema of a JSON object that another specification describes.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Document(Map<String, Value>);

/// Error answers of the API: status, name, description, and an additional header.
const ERRORS: [(u16, &str, &str, Option<&str>); 13] = [
    (400, "BadRequest", "The request is not what it should be; `error` names what.", None),
    (401, "Unauthorized", "Who asks is not known: sign in, or sign the request.", Some("WWW-Authenticate")),
    (403, "Forbidden", "Known who asks, but not allowed.", None),
    (404, "NotFound", "There is no such thing, or not for whom asks.", None),
    (405, "WrongMethod", "The path takes other methods.", Some("Allow")),
    (406, "NotAcceptable", "What is accepted is not what the endpoint answers.", None),
    (409, "Conflict", "Another request has what this one would take.", None),
    (410, "Gone", "It was there, and is not to be had any more.", None),
    (413, "TooLarge", "The body has more bytes than are read.", None),
    (415, "UnsupportedType", "The body is of another type.", None),
    (429, "TooMany", "Asked for too often: try again after a while.", Some("Retry-After")),
    (500, "Internal", "Our own mistake, or the operator's.", None),
    (503, "Unavailable", "Something that is needed does not answer. Trying again is safe.", Some("Retry-After")),
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
    for (path, operations) in operations(&mut generator) {
        let with_method = operations.into_iter().map(|(method, operation)| (method.to_owned(), operation.0));
        paths.insert(path.to_owned(), Value::Object(with_method.collect()));
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
            "description": "Amounts are lovelace as decimal texts (1 tADA = 1,000,000), times POSIX ms, addresses those of Cardano's preprod network. Every path answers OPTIONS (CORS), and HEAD where it answers GET.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "tags": TAGS.map(|name| json!({ "name": name })),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": ERRORS.iter().map(|(_, name, text, header)| (*name, failure(text, *header, &error))).collect::<std::collections::BTreeMap<_, _>>(),
            "securitySchemes": {
                "session": { "type": "http", "scheme": "bearer", "description": "A session: POST /auth/challenge, sign, POST /auth/verify." },
                "agent": { "type": "http", "scheme": "bearer", "description": "An agent's access token (OAuth, scope mcp): /.well-known/oauth-authorization-server." },
                "operator": { "type": "http", "scheme": "bearer", "description": "The operator's token: the secret OPERATOR_TOKEN." },
                "proof": { "type": "apiKey", "in": "header", "name": "X-Service-Proof", "description": "Base64 of JSON {address, timestamp, key, signature}: a CIP-8 signature, at most 5 minutes old." },
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

#[derive(Clone)]
struct Operation(Value);

/// Creates an operation with its name, group and summary. Server errors are always possible.
fn operation(id: &str, tag: &str, summary: &str) -> Operation {
    let operation = json!({ "operationId": id, "tags": [tag], "summary": summary, "parameters": [], "security": [], "responses": {} });
    Operation(operation).fails(&[500, 503])
}

impl Operation {
    fn set(mut self, path: &str, value: Value) -> Self {
        if let Some(found) = self.0.pointer_mut(path) {
            *found = value;
        }
        self
    }

    fn insert(mut self, object: &str, name: &str, value: Value) -> Self {
        if let Some(Value::Object(object)) = self.0.pointer_mut(object) {
            object.insert(name.to_owned(), value);
        }
        self
    }

    fn more(self, text: &str) -> Self {
        self.insert("", "description", text.into())
    }

    fn parameter(mut self, location: &str, name: &str, required: bool, text: &str, schema: Value) -> Self {
        let parameter =
            json!({ "in": location, "name": name, "required": required, "description": text, "schema": schema });
        if let Some(Value::Array(parameters)) = self.0.pointer_mut("/parameters") {
            parameters.push(parameter);
        }
        self
    }

    fn path(self, name: &str, text: &str) -> Self {
        self.parameter("path", name, true, text, json!({ "type": "string", "minLength": 1 }))
    }

    fn query(self, name: &str, text: &str, schema: Value) -> Self {
        self.parameter("query", name, false, text, schema)
    }

    fn body<T: JsonSchema>(self, generator: &mut SchemaGenerator, media: &str) -> Self {
        let schema = schema::<T>(generator);
        self.insert("", "requestBody", json!({ "required": true, "content": { media: { "schema": schema } } }))
    }

    fn answers<T: JsonSchema>(self, generator: &mut SchemaGenerator, status: u16, text: &str) -> Self {
        let schema = schema::<T>(generator);
        let response = json!({ "description": text, "content": { "application/json": { "schema": schema } } });
        self.insert("/responses", &status.to_string(), response)
    }

    fn text(self, status: u16, media: &str, text: &str) -> Self {
        let response = json!({ "description": text, "content": { media: { "schema": { "type": "string" } } } });
        self.insert("/responses", &status.to_string(), response)
    }

    fn empty(self, status: u16, text: &str) -> Self {
        self.insert("/responses", &status.to_string(), json!({ "description": text }))
    }

    fn header(self, status: u16, name: &str, text: &str, required: bool) -> Self {
        let header = json!({ "description": text, "required": required, "schema": { "type": "string" } });
        let response = format!("/responses/{status}");
        let operation = if self.0.pointer(&format!("{response}/headers")).is_none() {
            self.insert(&response, "headers", json!({}))
        } else {
            self
        };
        operation.insert(&format!("{response}/headers"), name, header)
    }

    fn fails(self, statuses: &[u16]) -> Self {
        statuses.iter().fold(self, |operation, status| {
            let name = ERRORS.iter().find(|(known, ..)| known == status).map(|(_, name, ..)| *name).unwrap();
            let response = json!({ "$ref": format!("#/components/responses/{name}") });
            operation.insert("/responses", &status.to_string(), response)
        })
    }

    /// Adds error answers in OAuth's format with these statuses.
    fn oauth_fails(self, generator: &mut SchemaGenerator, statuses: &[u16]) -> Self {
        let schema = schema::<OAuthError>(generator);
        statuses.iter().fold(self, |operation, status| {
            let text = "A refusal in OAuth's form.";
            let response = json!({ "description": text, "content": { "application/json": { "schema": schema } } });
            operation.insert("/responses", &status.to_string(), response)
        })
    }

    /// Adds an HTML page as the answer with this status, for clients that prefer HTML.
    fn page(self, status: u16) -> Self {
        self.insert(&format!("/responses/{status}/content"), MARKUP, json!({ "schema": { "type": "string" } }))
    }

    fn session(self) -> Self {
        self.set("/security", json!([{ "session": [] }])).fails(&[401, 429])
    }

    fn tagged(self) -> Self {
        self.parameter("header", "If-None-Match", false, "The ETag of an earlier answer.", json!({ "type": "string" }))
            .empty(304, "Nothing changed since.")
            .header(200, "ETag", "Names this state.", true)
    }
}

type Operations = Vec<(&'static str, Vec<(&'static str, Operation)>)>;

fn operations(generator: &mut SchemaGenerator) -> Operations {
    let groups = [catalogue, paywall, purchases, sign_in, account, agents, oauth, directories, documents];
    groups.into_iter().flat_map(|group| group(generator)).collect()
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const MARKUP: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

fn cursor() -> Value {
    json!({ "type": "string", "pattern": CURSOR })
}

fn list_listings(g: &mut SchemaGenerator) -> Operation {
    let filters = schema::<Sort>(g);
    let categories = schema::<Category>(g);
    let modes = schema::<DeliveryMode>(g);
    operation("listListings", "Catalogue", "What is for sale")
        .more("Without a query the newest listings. The `Link` header (rel=\"next\") leads to the next page. A page looks at 10,000 listings: where few of them are meant it is short, and its `Link` leads on; with `q`, the newest 10,000 that have the words.")
        .query(
            "q",
            "Words in title or description, the first twelve; the last may be a beginning.",
            json!({ "type": "string", "maxLength": 200 }),
        )
        .query("category", "Only of this category.", categories)
        .query("mode", "Only what is offered so.", modes)
        .query("sort", "The order.", filters)
        .query("limit", "At most this many.", json!({ "type": "integer", "minimum": 1, "maximum": 200 }))
        .query("cursor", "From the `Link` header.", cursor())
        .answers::<Vec<Listing>>(g, 200, "Listings.")
        .header(200, "Link", "The next page, if there is one.", false)
        .tagged()
        .fails(&[400, 429])
}

fn catalogue(g: &mut SchemaGenerator) -> Operations {
    let list = list_listings(g);
    let create = operation("createListing", "Catalogue", "Offer something for sale")
        .more("What a seller, and all sellers together on one day, may take up is limited: 400 and 503 say how. With a session its owner sells; without one the wallet of `sellerAddress` signs: sha256 of `service:listing:v1` LF sellerAddress LF sha256(content) LF priceLovelace LF timestamp.")
        .set("/security", json!([{ "session": [] }, { "proof": [] }]))
        .body::<NewListing>(g, JSON)
        .answers::<Listing>(g, 201, "The listing.")
        .header(201, "Location", "Its path.", true)
        .fails(&[400, 401, 429]);
    let show = operation("getListing", "Catalogue", "One listing")
        .path("id", "The listing's id.")
        .answers::<Listing>(g, 200, "The listing.")
        .page(200)
        .fails(&[404, 429]);
    let preview = operation("getPreview", "Catalogue", "A listing's recording, in the service's own frame")
        .path("id", "The listing's id.")
        .query("small", "Said, the frame is for a list.", json!({ "type": "string" }))
        .text(200, MARKUP, "A page that shows nothing else.")
        .fails(&[404, 429]);
    let picture = operation("getPicture", "Catalogue", "What a link to a listing shows elsewhere (Open Graph)")
        .path("id", "The listing's id.")
        .text(200, "image/png", "A picture of 600 by 315 pixels.")
        .fails(&[404, 429]);
    let creator = operation("getCreator", "Catalogue", "What a seller sells")
        .path("address", "The seller's preprod address.")
        .query("cursor", "From the `Link` header.", cursor())
        .answers::<Creator>(g, 200, "The seller's listings, sales and reputation.")
        .page(200)
        .header(200, "Link", "The next page, if there is one.", false)
        .fails(&[400, 429]);
    vec![
        ("/listings", vec![("get", list), ("post", create)]),
        ("/listings/{id}", vec![("get", show), ("delete", take_off())]),
        ("/listings/{id}/relist", vec![("post", relist(g))]),
        ("/listings/{id}/preview", vec![("get", preview)]),
        ("/listings/{id}/picture.png", vec![("get", picture)]),
        ("/creators/{address}", vec![("get", creator)]),
    ]
}

fn take_off() -> Operation {
    operation("takeListingOff", "Catalogue", "Take a listing off sale")
        .more("By its seller: buyers keep what they bought. A session, or a proof: the wallet signs sha256 of `service:take-off:v1` LF listingId LF address LF timestamp.")
        .set("/security", json!([{ "session": [] }, { "proof": [] }]))
        .path("id", "The listing's id.")
        .empty(204, "It is off sale.")
        .fails(&[401, 403, 404, 429])
}

fn relist(g: &mut SchemaGenerator) -> Operation {
    operation("relistListing", "Catalogue", "Put a listing back on sale that its seller took off")
        .more("A session, or a proof: the wallet signs sha256 of `service:relist:v1` LF listingId LF address LF timestamp.")
        .set("/security", json!([{ "session": [] }, { "proof": [] }]))
        .path("id", "The listing's id.")
        .answers::<Listing>(g, 200, "The listing.")
        .fails(&[401, 403, 404, 429])
}

fn paywall(g: &mut SchemaGenerator) -> Operations {
    let unlock = operation("unlockListing", "Paid content", "Pay for a listing over x402, or get it again")
        .more("Without a header: 402 with the terms. With `PAYMENT-SIGNATURE`: verified, submitted, and the content once the payment is in a block (20 to 60 seconds). With `X-Service-Proof`: the content again; the wallet signs sha256 of `service:unlock:v1` LF listingId LF address LF timestamp. On `settlement_pending` send the same request again.")
        // In the format that x402 directories read (docs/agents.md). The price is the listing's.
        .insert("", "x-payment-info", json!({ "price": { "mode": "dynamic", "currency": "ADA", "min": "1" }, "protocols": [{ "x402": {} }] }))
        .path("id", "The listing's id.")
        .parameter("header", "X-Service-Proof", false, "A returning buyer's signature, as `proof` says.", json!({ "type": "string" }))
        .parameter("header", "PAYMENT-SIGNATURE", false, "Base64 of an x402 PaymentPayload.", json!({ "type": "string" }))
        .text(200, TEXT, "The content.")
        .header(200, "PAYMENT-RESPONSE", "After a payment: base64 of an x402 SettlementResponse, with a signed receipt.", false)
        .header(200, "X-Service-Purchase", "For a returning buyer: the purchase.", false)
        .answers::<Error>(g, 402, "Payment is required, or was refused.")
        .page(402)
        .header(402, "PAYMENT-REQUIRED", "Base64 of an x402 PaymentRequired: `accepts`, and the code of the refusal.", true)
        .header(402, "PAYMENT-RESPONSE", "How a payment that was tried stands.", false)
        .fails(&[400, 404, 409, 429]);
    let draft = operation("draftPayment", "Paid content", "Have a payment drafted, for a wallet to sign")
        .more("For clients that build no transactions: sign it, put it into `payment.payload.transaction`, and send that to the paywall.")
        .path("id", "The listing's id.")
        .body::<NewPaymentDraft>(g, JSON)
        .answers::<PaymentDraft>(g, 200, "The draft.")
        .fails(&[400, 404, 413, 429]);
    let post =
        unlock.clone().set("/operationId", json!("postUnlock")).set("/summary", json!("Buy, for clients that post"));
    vec![
        ("/listings/{id}/unlock", vec![("get", unlock), ("post", post)]),
        ("/listings/{id}/payment-draft", vec![("post", draft)]),
    ]
}

fn purchases(g: &mut SchemaGenerator) -> Operations {
    let list = operation("listPurchases", "Purchases", "What a seller sold, newest first")
        .parameter("query", "seller", true, "The seller's preprod address.", json!({ "type": "string" }))
        .parameter(
            "query",
            "buyer",
            false,
            "Only what this address bought. May be given up to 100 times: any of them.",
            json!({ "type": "string" }),
        )
        .answers::<Vec<Purchase>>(g, 200, "Purchases.")
        .fails(&[400, 429]);
    let show = operation("getPurchase", "Purchases", "One purchase with its timeline")
        .path("id", "The payment's or the lock's transaction.")
        .answers::<Purchase>(g, 200, "The purchase.")
        .page(200)
        .fails(&[404, 429]);
    let statement = operation("getPurchaseStatement", "Purchases", "What the service knows of a purchase, signed")
        .more("A compact JWS (EdDSA) with a key of `/.well-known/did.json`. Its payload is a PurchaseStatement: the listing, its content's hash and price, and the purchase with its timeline as known at `issuedAt`.")
        .path("id", "The payment's or the lock's transaction.")
        .text(200, "application/jose", "The JWS.")
        .fails(&[404, 429]);
    let action = operation("draftAction", "Purchases", "What may be done with a protected purchase, or one of it for a wallet to sign")
        .more("Without `action`: what the contract lets each party do now, until when, and what it costs. With it: a transaction to sign and submit.")
        .path("id", "The purchase.")
        .body::<NewActionDraft>(g, JSON)
        .answers::<Actions>(g, 200, "The actions, or the draft of one.")
        .fails(&[400, 403, 404, 409, 413, 429]);
    let verify = operation("judgePurchase", "Purchases", "Say whether what was delivered is what was listed")
        .more(
            "Signed by the payer as for unlocking; or in the session of the account whose service wallet paid. For such a \
             purchase `mismatch` also starts a dispute, while the contract permits one; otherwise a verdict moves no money.",
        )
        .set("/security", json!([{ "proof": [] }, { "session": [] }]))
        .path("id", "The purchase.")
        .body::<Verdict>(g, JSON)
        .answers::<Purchase>(g, 200, "The purchase with the verdict.")
        .fails(&[400, 401, 403, 404, 413, 429]);
    vec![
        ("/purchases", vec![("get", list)]),
        ("/purchases/{id}", vec![("get", show)]),
        ("/purchases/{id}/statement", vec![("get", statement)]),
        ("/purchases/{id}/verification", vec![("post", verify)]),
        ("/purchases/{id}/action-draft", vec![("post", action)]),
    ]
}

fn sign_in(g: &mut SchemaGenerator) -> Operations {
    let challenge = operation("challenge", "Account", "Begin to sign in")
        .body::<ChallengeRequest>(g, JSON)
        .answers::<Challenge>(g, 200, "What the wallet is to sign, once, within 5 minutes.")
        .fails(&[400, 413, 429]);
    let verify = operation("signIn", "Account", "Sign in with a signed challenge")
        .body::<SignIn>(g, JSON)
        .answers::<Session>(g, 200, "A session of 7 days; the first one makes the account and its wallet.")
        .fails(&[400, 401, 413, 429]);
    let logout = operation("signOut", "Account", "End the session")
        .query(
            "everywhere",
            "`true` ends all sessions of the account: a copied one, too.",
            json!({ "type": "boolean" }),
        )
        .session()
        .empty(204, "It is over.");
    vec![
        ("/auth/challenge", vec![("post", challenge)]),
        ("/auth/verify", vec![("post", verify)]),
        ("/auth/logout", vec![("post", logout)]),
    ]
}

fn account(g: &mut SchemaGenerator) -> Operations {
    let me = operation("getMe", "Account", "Wallet, limits, purchases, listings").session().answers::<Me>(
        g,
        200,
        "The account.",
    );
    let buy = operation("buy", "Account", "Buy from the service wallet, within the limits")
        .more("Takes 20 to 60 seconds. What is owned already is free.")
        .session()
        .body::<Buy>(g, JSON)
        .answers::<Bought>(g, 200, "What was bought.")
        .fails(&[400, 413]);
    let withdraw = operation("withdraw", "Account", "Send the service wallet's money to its owner")
        .session()
        .answers::<Withdrawal>(g, 200, "What was sent.")
        .fails(&[400]);
    let limits = operation("setAgentLimits", "Account", "Set what may be spent")
        .session()
        .body::<NewLimits>(g, JSON)
        .answers::<LimitsSet>(g, 200, "The limits.")
        .fails(&[400, 413]);
    let content = operation("getPurchaseContent", "Account", "What a purchase bought, again")
        .session()
        .path("id", "The purchase.")
        .text(200, TEXT, "The content.")
        .fails(&[404, 410]);
    let act = operation("actOnPurchase", "Account", "Act as the buyer of what the service wallet paid for")
        .more(
            "The service signs. A repeated request is answered with the same transaction. `POST /purchases/{id}/action-draft` \
             lists what is possible, and what follows from it.",
        )
        .session()
        .path("id", "The purchase.")
        .body::<NewBuyerAction>(g, JSON)
        .answers::<SubmittedAction>(g, 200, "The transaction, which is on its way or in a block.")
        .fails(&[400, 403, 404, 409, 413]);
    let list = operation("listAgents", "Account", "The agents that were let in")
        .session()
        .answers::<Vec<Agent>>(g, 200, "Agents.");
    let revoke = operation("revokeAgent", "Account", "Let an agent in no more")
        .session()
        .path("id", "The agent.")
        .empty(204, "It is revoked.")
        .fails(&[404]);
    let requests = operation("listPurchaseRequests", "Account", "What agents ask you to approve")
        .session()
        .answers::<Vec<PurchaseRequest>>(g, 200, "The requests that wait for an answer, the oldest first.");
    let request = operation("getPurchaseRequest", "Account", "A purchase that an agent asks to be approved")
        .session()
        .path("id", "The request.")
        .answers::<PurchaseRequest>(g, 200, "The request.")
        .fails(&[404]);
    let answer = operation("answerPurchaseRequest", "Account", "Approve or decline it")
        .more("An approval is good for an hour and for one purchase.")
        .session()
        .path("id", "The request.")
        .body::<RequestAnswer>(g, JSON)
        .answers::<PurchaseRequest>(g, 200, "The request as it stands now.")
        .fails(&[400, 404, 413]);
    vec![
        ("/me", vec![("get", me)]),
        ("/me/buy", vec![("post", buy)]),
        ("/me/wallet/withdraw", vec![("post", withdraw)]),
        ("/me/agent-limits", vec![("put", limits)]),
        ("/me/purchases/{id}/content", vec![("get", content)]),
        ("/me/purchases/{id}/actions", vec![("post", act)]),
        ("/me/agents", vec![("get", list)]),
        ("/me/agents/{id}", vec![("delete", revoke)]),
        ("/me/requests", vec![("get", requests)]),
        ("/me/requests/{id}", vec![("get", request), ("post", answer)]),
    ]
}

fn agents(g: &mut SchemaGenerator) -> Operations {
    let rpc = |g: &mut SchemaGenerator, id: &str, summary: &str| {
        operation(id, "MCP", summary)
            .body::<RpcMessage>(g, JSON)
            .answers::<Document>(g, 200, "A JSON-RPC response; a stream of events where progress was asked for.")
            .insert("/responses/200/content", "text/event-stream", json!({ "schema": { "type": "string" } }))
            .empty(202, "A notification was taken.")
            .fails(&[413, 429])
            .answers::<Document>(g, 400, "A JSON-RPC error.")
            .answers::<Document>(g, 403, "A page of another origin may not ask.")
            .answers::<Document>(g, 404, "A JSON-RPC error: no such method.")
    };
    let signed_in = rpc(g, "mcp", "MCP for an owner's agent: it spends from the service wallet within the limits")
        .set("/security", json!([{ "agent": [] }]))
        .fails(&[401]);
    let open = rpc(g, "mcpOpen", "MCP for agents with wallets of their own: they pay over x402 inside the call");
    vec![("/mcp", vec![("post", signed_in)]), ("/mcp/open", vec![("post", open)])]
}

fn oauth(g: &mut SchemaGenerator) -> Operations {
    let text = || json!({ "type": "string" });
    let register = operation("registerClient", "OAuth", "Register a client (RFC 7591)")
        .body::<Registration>(g, JSON)
        .answers::<Registered>(g, 201, "The client.")
        .fails(&[429])
        .oauth_fails(g, &[400]);
    let authorize = ["response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method"];
    let authorize = authorize
        .into_iter()
        .fold(operation("authorize", "OAuth", "The page on which an owner lets an agent in"), |operation, name| {
            operation.parameter("query", name, true, "RFC 6749, RFC 7636.", text())
        });
    let authorize = authorize
        .query("state", "Comes back to the client.", text())
        .text(200, MARKUP, "The page.")
        .text(400, MARKUP, "A page that says what is wrong.")
        .insert("/responses/503/content", MARKUP, json!({ "schema": { "type": "string" } }))
        .fails(&[429]);
    let challenge = operation("connectChallenge", "OAuth", "What the owner's wallet is to sign")
        .parameter("query", "request", true, "The sealed request of the page.", text())
        .parameter("query", "address", true, "Hexadecimal, as CIP-30 gives it.", text())
        .query("other", "More addresses of the same wallet, up to 20: as in POST /auth/challenge.", text())
        .answers::<ConnectChallenge>(g, 200, "sha256 of `service:connect:v1` LF owner LF nonce.")
        .fails(&[400, 429]);
    let approve = operation("approve", "OAuth", "The owner's answer")
        .body::<Approval>(g, JSON)
        .answers::<Connected>(g, 200, "The agent is let in.")
        .fails(&[400, 401, 403, 413, 429]);
    let token = operation("token", "OAuth", "A code or a refresh token for new tokens")
        .body::<TokenRequest>(g, FORM)
        .answers::<Tokens>(g, 200, "Tokens: the old refresh token is used up.")
        .fails(&[413, 429])
        .oauth_fails(g, &[400, 401]);
    let revoke = operation("revokeToken", "OAuth", "A client signs out (RFC 7009)")
        .body::<Revocation>(g, FORM)
        .answers::<Document>(g, 200, "The token opens nothing (any more): an empty object.")
        .fails(&[413, 429])
        .oauth_fails(g, &[400]);
    let mut metadata =
        |id: &str, summary: &str| operation(id, "OAuth", summary).answers::<Document>(g, 200, "The document.");
    let resource = metadata("resourceMetadata", "Which authorization server protects /mcp (RFC 9728)");
    let resource_of_mcp = metadata("mcpResourceMetadata", "The metadata of /mcp");
    let server = metadata("serverMetadata", "The authorization server (RFC 8414)");
    let server_of_mcp = metadata("mcpServerMetadata", "Server metadata under the resource's path");
    let openid = metadata("openidConfiguration", "Server metadata for clients that look for OpenID Connect");
    vec![
        ("/oauth/register", vec![("post", register)]),
        ("/oauth/authorize", vec![("get", authorize)]),
        ("/oauth/challenge", vec![("get", challenge)]),
        ("/oauth/approve", vec![("post", approve)]),
        ("/oauth/token", vec![("post", token)]),
        ("/oauth/revoke", vec![("post", revoke)]),
        ("/.well-known/oauth-protected-resource", vec![("get", resource)]),
        ("/.well-known/oauth-protected-resource/mcp", vec![("get", resource_of_mcp)]),
        ("/.well-known/oauth-authorization-server", vec![("get", server)]),
        ("/.well-known/oauth-authorization-server/mcp", vec![("get", server_of_mcp)]),
        ("/.well-known/openid-configuration", vec![("get", openid)]),
    ]
}

fn directories(g: &mut SchemaGenerator) -> Operations {
    let supported = operation("supported", "x402", "What may be paid by, and which extensions there are")
        .answers::<Supported>(g, 200, "As x402's specification has it (7.3).");
    let text = || json!({ "type": "string" });
    let filtered = |operation: Operation| {
        operation
            .query("type", "`http`: all there is.", text())
            .query("payTo", "An address that buyers may pay to.", text())
            .query("scheme", "`exact`: all there is.", text())
            .query("network", "`cardano:preprod`: all there is.", text())
            .query("extensions", "A key of each resource's extensions.", text())
            .query(
                "limit",
                "At most this many.",
                json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT }),
            )
    };
    let resources =
        filtered(operation("discoveryResources", "x402", "What can be paid for, as x402's directories list it"))
            .query(
                "offset",
                "After so many.",
                json!({ "type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 0 }),
            )
            .answers::<DiscoveryPage>(g, 200, "A page, newest first.")
            .fails(&[400, 429]);
    let search = filtered(operation("discoverySearch", "x402", "What can be paid for and answers a question"))
        .parameter(
            "query",
            "query",
            true,
            "The question, in your words.",
            json!({ "type": "string", "maxLength": 200 }),
        )
        .query("cursor", "From the page before.", text())
        .answers::<SearchPage>(g, 200, "A page, the best first.")
        .fails(&[400, 429]);
    let did = operation("didDocument", "x402", "The keys that receipts are signed with (did:web)").answers::<Document>(
        g,
        200,
        "The DID document.",
    );
    vec![
        ("/supported", vec![("get", supported)]),
        ("/discovery/resources", vec![("get", resources)]),
        ("/discovery/search", vec![("get", search)]),
        ("/.well-known/did.json", vec![("get", did)]),
    ]
}

fn documents(g: &mut SchemaGenerator) -> Operations {
    let health = operation("health", "System", "Whether the service runs").answers::<Health>(g, 200, "It does.");
    let ready = operation("ready", "System", "Whether the service can sell now")
        .more("For monitoring services. Names what is wrong and nothing more; the operator's status has the details.")
        .answers::<Readiness>(g, 200, "It can.")
        .answers::<Readiness>(g, 503, "It cannot, or an alarm is raised.");
    let status = operation("operatorStatus", "System", "How the service stands, for its operator")
        .more("There is no such path where the service has no OPERATOR_TOKEN.")
        .answers::<ServiceStatus>(g, 200, "How it stands.")
        .fails(&[401, 404])
        .set("/security", json!([{ "operator": [] }]));
    let openapi = operation("openApi", "System", "This document").answers::<Document>(g, 200, "OpenAPI 3.1.");
    let docs = operation("docs", "System", "This document, for people").text(200, MARKUP, "A page.");
    let test_wallet = operation("testWallet", "System", "The test wallet's script, on a local ledger alone")
        .path("folder", "A hash of the static files.")
        .text(200, "text/javascript; charset=utf-8", "The script.")
        .fails(&[404]);
    let robots = operation("robots", "System", "Where crawlers may go").text(200, TEXT, "robots.txt.");
    let feed = operation("feed", "Catalogue", "The newest listings as an Atom feed")
        .query("seller", "Only of this seller.", json!({ "type": "string" }))
        .text(200, "application/atom+xml; charset=utf-8", "A feed.")
        .fails(&[400, 429]);
    let sitemap = operation("sitemap", "System", "The pages")
        .more(&format!("The newest {MAX_ADDRESSES} listings among them."))
        .text(200, "application/xml", "A sitemap.")
        .fails(&[429]);
    let llms = operation("llms", "System", "The service for language models").text(
        200,
        "text/markdown; charset=utf-8",
        "llms.txt.",
    );
    let page = |id: &str, summary: &str| {
        operation(id, "System", summary)
            .text(200, MARKUP, "A page, for clients that prefer HTML.")
            .fails(&[400, 404, 429])
    };
    vec![
        ("/", vec![("get", page("home", "The catalogue for people"))]),
        ("/sell", vec![("get", page("sell", "Offer something for sale, for people"))]),
        ("/health", vec![("get", health)]),
        ("/health/ready", vec![("get", ready)]),
        ("/operator/status", vec![("get", status)]),
        ("/openapi.json", vec![("get", openapi)]),
        ("/docs", vec![("get", docs)]),
        ("/assets/{folder}/test-wallet.js", vec![("get", test_wallet)]),
        ("/robots.txt", vec![("get", robots)]),
        ("/feed.xml", vec![("get", feed)]),
        ("/sitemap.xml", vec![("get", sitemap)]),
        ("/llms.txt", vec![("get", llms)]),
    ]
}
