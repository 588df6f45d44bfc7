//! Attacks on client authentication.

use super::*;

struct Keyed {
    world: World,
    key: ClientKey,
}

impl Keyed {
    fn new(key: ClientKey) -> Self {
        let world = World::new();
        let mut metadata = document();
        metadata["token_endpoint_auth_method"] = json!("private_key_jwt");
        metadata["jwks_uri"] = json!("https://agent.example.com/jwks.json");
        world.web.publish(DOCUMENT, &metadata);
        world.web.publish("https://agent.example.com/jwks.json", &json!({ "keys": [key.jwk("k1")] }));
        Self { world, key }
    }

    fn claims(&self) -> Value {
        let now = self.world.now() / 1_000;
        json!({ "iss": DOCUMENT, "sub": DOCUMENT, "aud": BASE, "exp": now + 60, "iat": now, "jti": hex::encode(self.world.random()) })
    }

    fn assertion(&self, header: &Value, claims: &Value) -> String {
        self.key.jwt(header, claims)
    }

    fn header(&self) -> Value {
        json!({ "alg": self.key.alg(), "kid": "k1" })
    }

    fn redeem(&self, code: &str, assertion: &str) -> Result<Tokens, OAuthError> {
        let mut form = redemption(DOCUMENT, code);
        form.extend([("client_assertion_type", ASSERTION_TYPE), ("client_assertion", assertion)]);
        self.world.token(&form)
    }

    fn refused(&self, header: &Value, claims: &Value) {
        let code = self.world.code(DOCUMENT);
        let error = self.redeem(&code, &self.assertion(header, claims)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidClient, "{header} {claims}");
        assert!(self.redeem(&code, &self.assertion(&self.header(), &self.claims())).is_ok());
    }
}

#[test]
fn a_client_proves_itself_with_its_key() {
    for key in [ClientKey::es256(), ClientKey::rs256()] {
        let keyed = Keyed::new(key);
        let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
        assert!(keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).is_ok());
        let mut claims = keyed.claims();
        claims["aud"] = json!(["x", format!("{BASE}/oauth/token")]);
        assert!(keyed.redeem(&keyed.world.code(DOCUMENT), &keyed.assertion(&keyed.header(), &claims)).is_ok());
    }
}

#[test]
fn an_assertion_is_used_once() {
    let keyed = Keyed::new(ClientKey::es256());
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    assert!(keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).is_ok());
    let again = keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).unwrap_err();
    assert_eq!(again.code, ErrorCode::InvalidClient);
}

#[test]
fn assertions_store_no_row_for_an_expired_code_and_few_for_a_live_grant() {
    const REQUESTS: usize = 150;
    let keyed = Keyed::new(ClientKey::es256());
    let rows = || {
        let counted = keyed.world.db.fetch::<One<usize>>(sql::read!("SELECT count(*) FROM oauth_assertions"));
        block_on(counted).unwrap().0
    };
    let assertion = || keyed.assertion(&keyed.header(), &keyed.claims());

    let code = keyed.world.code(DOCUMENT);
    assert!(keyed.redeem(&code, &assertion()).is_ok());
    for _ in 0..REQUESTS {
        assert_eq!(keyed.redeem(&code, &assertion()).unwrap_err().code, ErrorCode::InvalidGrant);
    }
    assert_eq!(rows(), 1, "the code was redeemed");

    // An attacker who knows a code, but not its verifier.
    let (code, other) = (keyed.world.code(DOCUMENT), "x".repeat(VERIFIER.len()));
    let guess = || {
        let assertion = assertion();
        let mut form = redemption(DOCUMENT, &code);
        form.retain(|(name, _)| *name != "code_verifier");
        form.extend([("code_verifier", other.as_str())]);
        form.extend([("client_assertion_type", ASSERTION_TYPE), ("client_assertion", assertion.as_str())]);
        keyed.world.token(&form).unwrap_err().code
    };
    let refused: Vec<_> = (0..REQUESTS).map(|_| guess()).collect();
    let of = |code| refused.iter().filter(|refused| **refused == code).count();
    assert_eq!((of(ErrorCode::InvalidGrant), of(ErrorCode::TemporarilyUnavailable)), (100, REQUESTS - 100));
    assert_eq!(rows(), 101);

    // The grant of the unredeemed code is deleted with the next approval.
    keyed.world.wait(25 * 60 * 60 * 1_000);
    let _ = keyed.world.code(DOCUMENT);
    for _ in 0..REQUESTS {
        assert_eq!(keyed.redeem(&code, &assertion()).unwrap_err().code, ErrorCode::InvalidGrant);
    }
    assert_eq!(rows(), 101);
}

#[test]
fn assertions_for_others_or_other_times_are_refused() {
    let keyed = Keyed::new(ClientKey::es256());
    let now = keyed.world.now() / 1_000;
    for (name, value) in [
        ("aud", json!("https://elsewhere.example.com")),
        ("iss", json!("https://other.example.com/client.json")),
        ("sub", json!("https://other.example.com/client.json")),
        ("exp", json!(now - 61)),
        ("exp", json!(now + 100_000)),
        ("nbf", json!(now + 3_600)),
        ("iat", json!(now + 3_600)),
        ("jti", json!("")),
        ("jti", json!(null)),
        ("aud", json!({ "$serde_json::private::RawValue": "[]" })),
    ] {
        let mut claims = keyed.claims();
        claims[name] = value;
        keyed.refused(&keyed.header(), &claims);
    }
}

#[test]
fn unsigned_and_confused_assertions_are_refused() {
    let keyed = Keyed::new(ClientKey::rs256());
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "HS256", "kid": "k1" }),
        json!({ "alg": "ES256", "kid": "k1" }),
        json!({ "alg": "RS512", "kid": "k1" }),
        json!({ "alg": "RS256", "kid": "other" }),
        json!({ "alg": "RS256", "kid": "k1", "crit": ["b64"] }),
    ] {
        keyed.refused(&header, &keyed.claims());
    }
}

#[test]
fn an_assertion_signed_with_a_key_that_the_client_does_not_publish_is_refused() {
    let keyed = Keyed::new(ClientKey::es256());
    let (code, thief) = (keyed.world.code(DOCUMENT), ClientKey::es256());
    let mut header = keyed.header();
    header["jwk"] = thief.jwk("k1");
    header["jku"] = json!("https://evil.example.com/jwks.json");
    let forged = thief.jwt(&header, &keyed.claims());
    assert_eq!(keyed.redeem(&code, &forged).unwrap_err().code, ErrorCode::InvalidClient);
    assert!(!keyed.world.web.asked.borrow().iter().any(|url| url.contains("evil")));
}

#[test]
fn a_client_that_declares_a_key_redeems_no_code_without_an_assertion() {
    let keyed = Keyed::new(ClientKey::es256());
    let code = keyed.world.code(DOCUMENT);
    let error = keyed.world.token(&redemption(DOCUMENT, &code)).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidClient);
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    assert!(keyed.redeem(&code, &assertion).is_ok(), "who has the key still can");
}

#[test]
fn a_registered_client_with_keys_gets_no_tokens_without_an_assertion_and_keeps_its_code() {
    let (world, key) = (World::new(), ClientKey::es256());
    let body = json!({ "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt",
        "jwks": { "keys": [key.jwk("k1")] } });
    let client = world.register_body(&body).unwrap()["client_id"].as_str().unwrap().to_owned();
    let code = world.code(&client);
    assert_eq!(world.redeem(&client, &code).unwrap_err().code, ErrorCode::InvalidClient);
    let now = world.now() / 1_000;
    let claims = json!({ "iss": client, "sub": client, "aud": BASE, "exp": now + 60, "iat": now, "jti": "once" });
    let assertion = key.jwt(&json!({ "alg": key.alg(), "kid": "k1" }), &claims);
    let mut form = redemption(&client, &code);
    form.extend([("client_assertion_type", ASSERTION_TYPE), ("client_assertion", assertion.as_str())]);
    assert!(world.token(&form).is_ok());
}

#[test]
fn an_assertion_of_a_client_without_keys_is_refused() {
    let world = World::new();
    world.web.publish(DOCUMENT, &document());
    let code = world.code(DOCUMENT);
    let keyed = Keyed { world, key: ClientKey::es256() };
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    assert_eq!(keyed.redeem(&code, &assertion).unwrap_err().code, ErrorCode::InvalidClient);
}

#[test]
fn a_client_that_used_an_assertion_once_needs_one_at_every_refresh() {
    let keyed = Keyed::new(ClientKey::es256());
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    let tokens = keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).unwrap();
    let stolen = keyed.world.refresh(DOCUMENT, &tokens.refresh_token).unwrap_err();
    assert_eq!(stolen.code, ErrorCode::InvalidGrant);
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", tokens.refresh_token.as_str()),
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", assertion.as_str()),
    ];
    assert!(keyed.world.token(&form).is_ok());
}

#[test]
fn a_withdrawn_key_is_forgotten_and_a_new_one_found() {
    let mut keyed = Keyed::new(ClientKey::es256());
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    assert!(keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).is_ok());
    let old = std::mem::replace(&mut keyed.key, ClientKey::es256());
    keyed.world.web.publish("https://agent.example.com/jwks.json", &json!({ "keys": [keyed.key.jwk("k2")] }));
    keyed.world.wait(61_000);
    let assertion = keyed.assertion(&json!({ "alg": "ES256", "kid": "k2" }), &keyed.claims());
    assert!(keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).is_ok());
    let assertion = old.jwt(&json!({ "alg": "ES256", "kid": "k1" }), &keyed.claims());
    assert!(keyed.redeem(&keyed.world.code(DOCUMENT), &assertion).is_err());
}

#[test]
fn no_document_is_fetched_for_a_client_without_a_code_or_token() {
    let keyed = Keyed::new(ClientKey::es256());
    let assertion = keyed.assertion(&keyed.header(), &keyed.claims());
    let error = keyed.redeem("surety_code_made_up", &assertion).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidGrant);
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", "surety_rt_made_up"),
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", assertion.as_str()),
    ];
    assert_eq!(keyed.world.token(&form).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(keyed.world.web.asked.borrow().is_empty());
}

#[test]
fn every_query_of_the_authorization_server_fits_the_schema() {
    let keyed = Keyed::new(ClientKey::es256());
    let world = &keyed.world;
    keyed.redeem(&world.code(DOCUMENT), &keyed.assertion(&keyed.header(), &keyed.claims())).unwrap();
    let (client, tokens) = world.sign_in();
    let refreshed = world.refresh(&client, &tokens.refresh_token).unwrap();
    assert!(world.caller(&refreshed.access_token).is_some());
    block_on(world.server().revoke_token(&query(&[("token", &refreshed.refresh_token)]))).unwrap();
    let session = market::account::Token::new([9; 32]);
    assert_eq!(block_on(grant::list(&world.db, &session, world.now())), Ok(None));
    assert_eq!(block_on(grant::revoke(&world.db, &session, "a grant", world.now())), Ok(Revocation::SignedOut));
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(sql::sqlite::unchecked(&sources), Vec::<String>::new());
}
