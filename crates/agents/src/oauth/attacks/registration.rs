//! Attacks with client registrations and unsupported grant types.

use super::*;

#[test]
fn registering_again_gives_the_same_client_and_keeps_earlier_registrations() {
    let world = World::new();
    let first = world.register(&[CALLBACK]);
    let other = world.register(&["https://app.example.com/cb"]);
    assert_eq!(world.register(&[CALLBACK]), first);
    assert_ne!(first, other);
    world.wait(400 * 24 * 60 * 60 * 1_000);
    assert!(world.authorize(&query(&authorization(&first))).is_ok());
}

#[test]
fn a_repeated_registration_counts_for_the_quota_when_it_extends_the_retention() {
    let world = World::new();
    let taken =
        || block_on(world.db.fetch::<One<u64>>(sql::read!("SELECT sum(bytes) FROM registered_days"))).unwrap().0;
    let first = world.register(&[CALLBACK]);
    let once = taken();
    (0..50).for_each(|_| assert_eq!(world.register(&[CALLBACK]), first));
    assert_eq!(taken(), once);
    for days in 1..=3 {
        world.wait(24 * 60 * 60 * 1_000);
        (0..5).for_each(|_| assert_eq!(world.register(&[CALLBACK]), first));
        assert_eq!(taken(), once * (days + 1));
    }
}

#[test]
fn redirect_uris_must_be_https_or_loopback() {
    for uri in [
        "http://app.example.com/callback",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil://callback",
        "file:///etc/passwd",
        "vbscript:x",
        "blob:https://app.example.com/x",
        "https://user:password@app.example.com/",
        "https://app.example.com/#x",
        "https://app.example.com/a/../b",
        "https:\\\\app.example.com/",
        "http://127.0.0.1.nip.io/callback",
        "http://localhost.evil.example.com/",
        "//app.example.com/callback",
        "/callback",
        "",
        &format!("https://app.example.com/{}", "a".repeat(1_100)),
    ] {
        assert_eq!(registration_refused(json!({ "redirect_uris": [uri] })), ErrorCode::InvalidRedirectUri, "{uri}");
    }
}

#[test]
fn an_editor_registers_all_its_addresses_at_once_and_uses_each() {
    let editor = "cursor://anysphere.cursor-mcp/oauth/callback";
    let app = "com.example.agent:/oauth2redirect";
    let taken = [editor, app, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"];
    let world = World::new();
    let mut uris = taken.to_vec();
    uris.insert(1, "evil://callback");
    let answer = world.register_body(&json!({ "client_name": "An editor", "redirect_uris": uris })).unwrap();
    assert_eq!(answer["redirect_uris"], json!(taken), "the answer says what is registered");
    let client = answer["client_id"].as_str().unwrap();
    for uri in taken {
        let request = world.authorize(&query(&with(&authorization(client), "redirect_uri", uri))).unwrap();
        let approved = world.grant(&world.check(&world.approval(&request)).unwrap()).unwrap();
        assert!(approved.redirect.starts_with(&format!("{uri}?code=")), "{}", approved.redirect);
        let code = parameter(&approved.redirect, "code").unwrap();
        assert!(world.token(&with(&redemption(client, &code), "redirect_uri", uri)).is_ok(), "{uri}");
    }
    for other in [
        "evil://callback",
        "cursor://anysphere.cursor-mcp/oauth/callback/",
        "cursor://other/oauth/callback",
        "CURSOR://anysphere.cursor-mcp/oauth/callback",
        "com.example.agent:/other",
        "com.example.agent.other:/oauth2redirect",
    ] {
        let refusal = world.authorize(&query(&with(&authorization(client), "redirect_uri", other))).unwrap_err();
        assert_eq!((refusal.error.code, refusal.back), (ErrorCode::InvalidRequest, None), "{other}");
    }
}

#[test]
fn registrations_without_usable_redirect_uris_are_refused() {
    let many: Vec<String> = (0..33).map(|n| format!("https://app.example.com/{n}")).collect();
    for uris in [json!([]), json!("https://app.example.com/"), json!([1]), json!(null), json!(many)] {
        assert_eq!(registration_refused(json!({ "redirect_uris": uris })), ErrorCode::InvalidRedirectUri);
    }
}

#[test]
fn oversized_and_malformed_registrations_are_refused() {
    let large = format!(r#"{{"redirect_uris":["{CALLBACK}"],"x":"{}"}}"#, "x".repeat(MAX_REGISTRATION_BYTES));
    let hidden = format!(r#"{{"redirect_uris":["{CALLBACK}"],"x":{{"$serde_json::private::RawValue":"[]"}}}}"#);
    for body in [large.as_bytes(), hidden.as_bytes(), b"", b"[]", b"{", b"\xff", "[".repeat(5_000).as_bytes()] {
        let refused = ClientMetadata::from_registration(body).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidClientMetadata);
    }
}

#[test]
fn names_that_deceive_are_refused() {
    for name in ["Shop\u{202e}per", "Shop\nper", "\u{200b}Claude", &"x".repeat(101)] {
        assert_eq!(registration_refused(json!({ "client_name": name })), ErrorCode::InvalidClientMetadata, "{name:?}");
    }
    assert_eq!(registration_refused(json!({ "client_name": { "a": 1 } })), ErrorCode::InvalidClientMetadata);
}

#[test]
fn a_client_that_asks_for_a_secret_gets_none() {
    let world = World::new();
    let body = json!({ "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_basic" });
    let answer = world.register_body(&body).unwrap();
    assert_eq!(answer["token_endpoint_auth_method"], "none");
    assert_eq!(answer.get("client_secret"), None);
}

#[test]
fn client_passwords_are_refused() {
    let world = World::new();
    let form = query(&redemption("client_x", "code"));
    let refused = TokenRequest::parse(&form, Some("Basic Y2xpZW50Og=="), &world.authority).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidClient);
    let refused = TokenRequest::parse(&format!("{form}&client_secret=x"), None, &world.authority).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidClient);
}

#[test]
fn a_password_or_client_credentials_grant_is_refused() {
    for grant in ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange"] {
        assert_eq!(not_redeemed_with("grant_type", grant), ErrorCode::UnsupportedGrantType);
    }
}
