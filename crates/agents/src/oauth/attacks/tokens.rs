//! Attacks with access and refresh tokens that are expired, of other servers, or already used.

use super::{owners::session, *};

#[test]
fn an_access_token_ends_after_seven_days() {
    let world = World::new();
    let (_, tokens) = world.sign_in();
    world.wait(ACCESS_MS - 1);
    assert!(world.caller(&tokens.access_token).is_some());
    world.wait(1);
    assert!(world.caller(&tokens.access_token).is_none());
}

#[test]
fn a_token_for_another_resource_opens_nothing_here() {
    let world = World::new();
    let (_, tokens) = world.sign_in();
    let grants = "UPDATE oauth_grants SET resource = 'https://elsewhere.example.com/mcp'";
    block_on(world.db.execute::<()>(sql::write!(grants))).unwrap();
    assert!(world.caller(&tokens.access_token).is_none());
}

#[test]
fn a_token_of_another_issuer_with_the_same_secret_opens_nothing_here() {
    let world = World::new();
    let (_, tokens) = world.sign_in();
    let other = authority("https://twin.example.com", 7);
    assert!(block_on(world.server_of(&other).caller(&tokens.access_token)).unwrap().is_none());
}

#[test]
fn a_token_made_with_another_secret_opens_nothing_here() {
    let world = World::new();
    let (_, tokens) = world.sign_in();
    let other = authority(BASE, 8);
    assert!(block_on(world.server_of(&other).caller(&tokens.access_token)).unwrap().is_none());
}

#[test]
fn a_malformed_token_is_refused() {
    let world = World::new();
    for garbage in ["", "surety_at_", "surety_at_%%%", "null", &"a".repeat(10_000), "surety_at_AAAA"] {
        assert!(world.caller(garbage).is_none(), "{garbage}");
    }
}

#[test]
fn no_value_in_the_database_works_as_a_token() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let dump = "SELECT concat_ws(' ', id, request, owner, client_id, code_challenge) FROM oauth_grants";
    let dump = block_on(world.db.fetch::<Vec<String>>(sql::read!(dump))).unwrap().concat();
    assert!(dump.contains(&client));
    for secret in [&tokens.access_token, &tokens.refresh_token] {
        assert!(!dump.contains(secret.as_str()));
    }
}

#[test]
fn a_refresh_token_used_again_within_a_minute_gives_the_same_tokens() {
    let world = World::new();
    let (client, first) = world.sign_in();
    world.wait(ACCESS_MS / 2);
    let second = world.refresh(&client, &first.refresh_token).unwrap();
    world.wait(RETRY_MS - 1);
    let again = world.refresh(&client, &first.refresh_token).unwrap();
    assert_eq!((&again.refresh_token, &again.access_token), (&second.refresh_token, &second.access_token));
    assert!(world.refresh(&client, &second.refresh_token).is_ok());
}

#[test]
fn a_refresh_token_used_again_later_is_refused_and_ends_no_other_session() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let second = world.refresh(&client, &first.refresh_token).unwrap();
    world.wait(RETRY_MS);
    assert_eq!(world.refresh(&client, &first.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.caller(&second.access_token).is_some());
    assert!(world.refresh(&client, &second.refresh_token).is_ok());
}

#[test]
fn a_refresh_token_two_generations_old_is_refused_at_once() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let second = world.refresh(&client, &first.refresh_token).unwrap();
    let third = world.refresh(&client, &second.refresh_token).unwrap();
    assert_eq!(world.refresh(&client, &first.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.caller(&third.access_token).is_some());
    assert!(world.refresh(&client, &third.refresh_token).is_ok());
}

#[test]
fn an_old_refresh_token_is_told_to_the_owner_with_time_and_network_and_a_retry_is_not() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let owner = session(&world, &wallet(1).1.to_string());
    let told = |at| {
        let agents = block_on(grant::list(&world.db, &owner, at)).unwrap().unwrap();
        (agents[0].old_token_at, agents[0].old_token_from.clone())
    };
    let began = world.now();
    let second = world.refresh(&client, &first.refresh_token).unwrap();
    world.refresh(&client, &first.refresh_token).unwrap();
    assert_eq!(told(began), (None, None), "a retry within a minute");
    world.wait(RETRY_MS);
    let then = world.now();
    world.refresh(&client, &first.refresh_token).unwrap_err();
    assert_eq!(told(began), (Some(then), Some("203.0.113.7".to_owned())));
    world.refresh(&client, &second.refresh_token).unwrap();
    assert_eq!(told(began), (Some(then), Some("203.0.113.7".to_owned())));
}

#[test]
fn a_refresh_token_presented_by_another_client_is_refused() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let other = world.register(&["https://other.example.com/callback"]);
    assert_eq!(world.refresh(&other, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.refresh(&client, &tokens.refresh_token).is_ok());
    // Retrying does not return its successor either.
    assert_eq!(world.refresh(&other, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn an_unused_refresh_token_expires() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    world.wait(REFRESH_MS);
    assert_eq!(world.refresh(&client, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn a_refresh_gets_the_granted_scopes_and_no_more() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let form =
        [("grant_type", "refresh_token"), ("refresh_token", tokens.refresh_token.as_str()), ("client_id", &client)];
    assert_eq!(world.token(&with(&form, "scope", "openid admin")).unwrap().scope, Scope::All);
    let elsewhere = with(&form, "resource", "https://elsewhere.example.com/mcp");
    assert_eq!(world.token(&elsewhere).unwrap_err().code, ErrorCode::InvalidTarget);
    assert!(world.token(&form).is_ok());
    let reader = world.authorize(&query(&with(&authorization(&client), "scope", "mcp:read"))).unwrap();
    let approved = world.grant(&world.check(&world.approval(&reader)).unwrap()).unwrap();
    let tokens = world.redeem(&client, &parameter(&approved.redirect, "code").unwrap()).unwrap();
    let more = with(&form, "refresh_token", &tokens.refresh_token);
    assert_eq!(world.token(&with(&more, "scope", "mcp")).unwrap().scope, Scope::Read);
}

#[test]
fn a_client_that_signs_out_ends_its_sign_in_and_no_other() {
    let revoke = |world: &World, form: &[(&str, &str)]| block_on(world.server().revoke_token(&query(form)));
    for kind in [TokenKind::Access, TokenKind::Refresh] {
        let world = World::new();
        let (client, first) = world.sign_in();
        let (_, other) = world.sign_in();
        let second = world.refresh(&client, &first.refresh_token).unwrap();
        let token = if kind == TokenKind::Access { &second.access_token } else { &second.refresh_token };
        // None of these requests revokes anything, although each gets the same answer as a request that does.
        revoke(&world, &[("token", first.refresh_token.as_str()), ("client_id", &client)]).unwrap();
        revoke(&world, &[("token", "surety_rt_AAAA")]).unwrap();
        revoke(&world, &[("token", token), ("client_id", "client_other")]).unwrap();
        assert!(world.caller(&second.access_token).is_some());
        revoke(&world, &[("token", token), ("client_id", &client), ("token_type_hint", "refresh_token")]).unwrap();
        assert!(world.caller(&second.access_token).is_none());
        assert_eq!(world.refresh(&client, &second.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
        assert!(world.caller(&other.access_token).is_some());
        assert_eq!(revoke(&world, &[]).unwrap_err().code, ErrorCode::InvalidRequest);
    }
}
