//! Attacks with manipulated parameters of authorization requests.

use super::*;

#[test]
fn redirects_go_only_where_the_client_registered() {
    let world = World::new();
    let client = world.register(&[CALLBACK, "https://app.example.com/callback"]);
    let parameters = authorization(&client);
    for elsewhere in [
        "https://evil.example.com/callback",
        "https://app.example.com/callback/",
        "https://app.example.com/callback?x=1",
        "https://app.example.com/callback/../other",
        "https://app.example.com:8443/callback",
        "https://app.example.com.evil.example.com/callback",
        "https://app.example.com@evil.example.com/callback",
        "https://APP.example.com/callback",
        "http://app.example.com/callback",
        "http://127.0.0.1/callback#fragment",
        "http://127.0.0.1:5000/elsewhere",
        "http://127.0.0.1.evil.example.com/callback",
        "http://2130706433/callback",
        "http://localhost/callback",
        "http:\\\\127.0.0.1\\callback",
        "javascript:alert(1)",
    ] {
        let refusal = world.authorize(&query(&with(&parameters, "redirect_uri", elsewhere))).unwrap_err();
        assert_eq!(refusal.error.code, ErrorCode::InvalidRequest, "{elsewhere}");
        assert_eq!(refusal.back, None, "{elsewhere}: no way back to a stranger");
    }
}

#[test]
fn an_error_leads_back_only_to_a_registered_address_and_names_the_issuer() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let parameters = with(&authorization(&client), "response_type", "token");
    let back = world.authorize(&query(&parameters)).unwrap_err().back.unwrap();
    assert!(back.starts_with("http://127.0.0.1/callback?"));
    assert_eq!(parameter(&back, "error").as_deref(), Some("unsupported_response_type"));
    assert_eq!(parameter(&back, "iss").as_deref(), Some(BASE));
    assert_eq!(parameter(&back, "state").as_deref(), Some("af0ifjsldkj"));
}

#[test]
fn a_request_without_redirect_uri_is_refused() {
    assert_eq!(refused_with("redirect_uri", ""), ErrorCode::InvalidRequest);
}

#[test]
fn an_unknown_client_is_refused() {
    assert_eq!(refused_with("client_id", "client_unknown"), ErrorCode::InvalidClient);
}

#[test]
fn a_request_without_pkce_is_refused() {
    assert_eq!(refused_with("code_challenge", ""), ErrorCode::InvalidRequest);
}

#[test]
fn pkce_is_not_downgraded_to_plain() {
    assert_eq!(refused_with("code_challenge_method", "plain"), ErrorCode::InvalidRequest);
    assert_eq!(refused_with("code_challenge_method", ""), ErrorCode::InvalidRequest);
}

#[test]
fn a_challenge_that_is_no_digest_is_refused() {
    for odd in ["short", &"a".repeat(44), &format!("{}=", &CHALLENGE[..42]), &format!("{}N", &CHALLENGE[..42])] {
        assert_eq!(refused_with("code_challenge", odd), ErrorCode::InvalidRequest, "{odd}");
    }
}

#[test]
fn tokens_are_not_given_out_in_the_redirect() {
    assert_eq!(refused_with("response_type", "token"), ErrorCode::UnsupportedResponseType);
    assert_eq!(refused_with("response_type", "code token"), ErrorCode::UnsupportedResponseType);
}

#[test]
fn answers_in_fragments_and_request_objects_are_refused() {
    assert_eq!(refused_with("response_mode", "fragment"), ErrorCode::InvalidRequest);
    assert_eq!(refused_with("request_uri", "https://evil.example.com/request.jwt"), ErrorCode::InvalidRequest);
}

#[test]
fn a_request_for_another_resource_is_refused() {
    for elsewhere in [
        "https://elsewhere.example.com/mcp",
        "https://surety.example.com/mcp//",
        "https://surety.example.com/mcp/open",
        "https://surety.example.com/MCP",
        "https://surety.example.com/mcp#x",
        "https://surety.example.com\\mcp",
        "https://surety.example.com:8443",
        "https://surety.example.com.evil.example.com",
    ] {
        assert_eq!(refused_with("resource", elsewhere), ErrorCode::InvalidTarget, "{elsewhere}");
    }
}

#[test]
fn every_spelling_of_our_resource_is_accepted_and_tokens_name_the_canonical_one() {
    for spelling in [
        "https://surety.example.com/mcp",
        "https://surety.example.com/mcp/",
        "https://surety.example.com",
        "https://surety.example.com/",
        "HTTPS://Surety.Example.com/mcp",
    ] {
        let world = World::new();
        let client = world.register(&[CALLBACK]);
        let request = world.authorize(&query(&with(&authorization(&client), "resource", spelling))).unwrap();
        assert_eq!(request.resource, "https://surety.example.com/mcp", "{spelling}");
        let approved = world.grant(&world.check(&world.approval(&request)).unwrap()).unwrap();
        let code = parameter(&approved.redirect, "code").unwrap();
        let tokens = world.token(&with(&redemption(&client, &code), "resource", spelling)).unwrap();
        assert!(world.caller(&tokens.access_token).is_some(), "{spelling}");
    }
}

#[test]
fn granted_scopes_are_those_requested_by_name_and_never_grow() {
    for scope in Scope::EVERY.iter().copied() {
        let world = World::new();
        let client = world.register(&[CALLBACK]);
        let request = world.authorize(&query(&with(&authorization(&client), "scope", scope.as_str()))).unwrap();
        assert_eq!(request.scope, scope);
        for answered in Scope::EVERY {
            let mut answer = world.approval(&request);
            answer["scope"] = serde_json::json!(answered);
            let allowed = world.check(&answer).unwrap().scope;
            assert!(allowed >= scope && allowed >= *answered, "{scope:?} {answered:?} {allowed:?}");
            assert!(scope.may_spend() || !allowed.may_spend());
        }
        let approved = world.grant(&world.check(&world.approval(&request)).unwrap()).unwrap();
        let tokens = world.redeem(&client, &parameter(&approved.redirect, "code").unwrap()).unwrap();
        assert_eq!(tokens.scope, scope);
        assert_eq!(world.caller(&tokens.access_token).unwrap().scope, scope, "the database keeps it");
    }
}

#[test]
fn unknown_scopes_are_left_out_and_the_answer_names_the_granted_ones() {
    for (asked, granted) in [
        ("", Scope::All),
        ("mcp", Scope::All),
        ("offline_access", Scope::All),
        ("openid profile mcp", Scope::All),
        ("agent:own", Scope::All),
        ("mcp mcp:read", Scope::All),
        ("mcp:read offline_access", Scope::Read),
        ("mcp:read", Scope::Read),
    ] {
        let world = World::new();
        let client = world.register(&[CALLBACK]);
        let request = world.authorize(&query(&with(&authorization(&client), "scope", asked))).unwrap();
        let approved = world.grant(&world.check(&world.approval(&request)).unwrap()).unwrap();
        let code = parameter(&approved.redirect, "code").unwrap();
        let tokens = world.redeem(&client, &code).unwrap();
        assert_eq!(tokens.scope, granted, "{asked}");
        assert_eq!(world.caller(&tokens.access_token).unwrap().scope, granted, "{asked}");
        assert_eq!(world.refresh(&client, &tokens.refresh_token).unwrap().scope, granted, "{asked}");
    }
}

#[test]
fn our_resource_beside_another_is_refused() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let mut parameters = authorization(&client);
    parameters.push(("resource", "https://elsewhere.example.com/mcp"));
    assert_eq!(world.authorize(&query(&parameters)).unwrap_err().error.code, ErrorCode::InvalidTarget);
}

#[test]
fn a_parameter_sent_twice_is_refused() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    for name in ["redirect_uri", "client_id", "state", "code_challenge"] {
        let mut parameters = authorization(&client);
        parameters.push((name, "https://evil.example.com/callback"));
        assert_eq!(world.authorize(&query(&parameters)).unwrap_err().error.code, ErrorCode::InvalidRequest, "{name}");
    }
}

#[test]
fn oversized_requests_are_refused() {
    assert_eq!(refused_with("state", &"s".repeat(3_000)), ErrorCode::InvalidRequest);
    assert_eq!(refused_with("state", &"s".repeat(20_000)), ErrorCode::InvalidRequest);
    let world = World::new();
    let many: Vec<String> = (0..100).map(|n| format!("p{n}=x")).collect();
    assert_eq!(world.authorize(&many.join("&")).unwrap_err().error.code, ErrorCode::InvalidRequest);
}
