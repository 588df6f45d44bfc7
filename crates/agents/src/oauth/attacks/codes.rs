//! Attacks with authorization codes that are stolen, replayed, forged, or redeemed by other clients.

use super::*;

#[test]
fn an_owner_who_approves_gives_an_agent_tokens() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let request = world.consent(&client);
    let approved = world.grant(&world.check(&world.approval(&request)).unwrap()).unwrap();
    assert_eq!(parameter(&approved.redirect, "state").as_deref(), Some("af0ifjsldkj"));
    assert_eq!(parameter(&approved.redirect, "iss").as_deref(), Some(BASE));
    assert_eq!(approved.owner, wallet(1).1.to_string());

    let tokens = world.redeem(&client, &parameter(&approved.redirect, "code").unwrap()).unwrap();
    assert_eq!(tokens.expires_in, ACCESS_MS / 1_000);
    let caller = world.caller(&tokens.access_token).unwrap();
    assert_eq!(caller.account.wallet_address, approved.agent_address);
    assert_eq!(caller.account.max_per_payment.get(), 10_000_000);
}

#[test]
fn a_loopback_redirect_may_use_any_port() {
    let world = World::new();
    let client = world.register(&[CALLBACK, "http://[::1]/callback", "http://localhost/callback"]);
    for port in ["http://127.0.0.1:51004/callback", "http://[::1]:4/callback", "http://localhost:80/callback"] {
        let parameters = authorization(&client);
        let honest = with(&parameters, "redirect_uri", port);
        // :80 is http's default port, which no canonical URL contains.
        assert_eq!(world.authorize(&query(&honest)).is_ok(), !port.contains(":80/"), "{port}");
    }
}

#[test]
fn a_code_works_once_and_its_replay_revokes_the_tokens() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let code = world.code(&client);
    let tokens = world.redeem(&client, &code).unwrap();
    assert_eq!(world.redeem(&client, &code).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.caller(&tokens.access_token).is_none());
    assert_eq!(world.refresh(&client, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn a_code_expires_after_two_minutes() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let code = world.code(&client);
    world.wait(approve::CODE_MS);
    assert_eq!(world.redeem(&client, &code).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn a_code_without_its_verifier_is_refused() {
    assert_eq!(not_redeemed_with("code_verifier", ""), ErrorCode::InvalidRequest);
}

#[test]
fn a_code_with_another_verifier_is_refused() {
    assert_eq!(not_redeemed_with("code_verifier", &"a".repeat(43)), ErrorCode::InvalidGrant);
}

#[test]
fn a_code_with_its_challenge_as_verifier_is_refused() {
    assert_eq!(not_redeemed_with("code_verifier", CHALLENGE), ErrorCode::InvalidGrant);
}

#[test]
fn verifiers_short_enough_to_guess_are_not_taken() {
    assert_eq!(not_redeemed_with("code_verifier", "short"), ErrorCode::InvalidRequest);
}

#[test]
fn a_code_with_another_redirect_uri_is_refused() {
    assert_eq!(not_redeemed_with("redirect_uri", "http://127.0.0.1/other"), ErrorCode::InvalidGrant);
}

#[test]
fn a_code_for_another_resource_is_refused() {
    assert_eq!(not_redeemed_with("resource", "https://elsewhere.example.com/mcp"), ErrorCode::InvalidTarget);
}

#[test]
fn a_code_presented_by_another_client_is_refused() {
    let world = World::new();
    let (mine, other) = (world.register(&[CALLBACK]), world.register(&["https://other.example.com/callback"]));
    let code = world.code(&mine);
    assert_eq!(world.redeem(&other, &code).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.redeem(&mine, &code).is_ok());
}

#[test]
fn a_forged_code_is_refused() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let code = world.code(&client);
    let (head, last) = code.split_at(code.len() - 2);
    let forged = format!("{head}{}", if last == "AA" { "BB" } else { "AA" });
    assert_eq!(world.redeem(&client, &forged).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.redeem(&client, &code).is_ok());
}

#[test]
fn a_token_of_one_kind_is_refused_as_another_kind() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    assert!(world.caller(&tokens.refresh_token).is_none());
    assert_eq!(world.refresh(&client, &tokens.access_token).unwrap_err().code, ErrorCode::InvalidGrant);
    let renamed = tokens.refresh_token.replace("surety_rt_", "surety_at_");
    assert!(world.caller(&renamed).is_none());
    assert!(world.caller(&world.code(&client)).is_none());
}
