//! Access and refresh tokens: too old, of another place, used again.

use super::*;

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
    block_on(world.db.run(statement!(grants))).unwrap();
    assert!(world.caller(&tokens.access_token).is_none());
}

#[test]
fn a_token_of_another_issuer_with_the_same_secret_opens_nothing_here() {
    let world = World::new();
    let (_, tokens) = world.sign_in();
    let other = authority("https://twin.example.com", 7);
    assert!(block_on(grant::caller(&world.db, &other, &tokens.access_token, world.now())).unwrap().is_none());
}

#[test]
fn a_token_made_with_another_secret_opens_nothing_here() {
    let world = World::new();
    let (_, tokens) = world.sign_in();
    let other = authority(BASE, 8);
    assert!(block_on(grant::caller(&world.db, &other, &tokens.access_token, world.now())).unwrap().is_none());
}

#[test]
fn garbage_is_no_token() {
    let world = World::new();
    for garbage in ["", "surety_at_", "surety_at_%%%", "null", &"a".repeat(10_000), "surety_at_AAAA"] {
        assert!(world.caller(garbage).is_none(), "{garbage}");
    }
}

#[test]
fn a_stolen_database_opens_nothing() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let dump = "SELECT json_group_array(json_array(id, request, owner, client_id, code_challenge)) FROM oauth_grants";
    let dump = block_on(world.db.run(statement!(dump))).unwrap().rows.concat();
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
fn a_refresh_token_used_again_later_ends_the_family() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let second = world.refresh(&client, &first.refresh_token).unwrap();
    world.wait(RETRY_MS);
    assert_eq!(world.refresh(&client, &first.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.refresh(&client, &second.refresh_token).is_err());
    assert!(world.caller(&second.access_token).is_none());
    assert!(world.caller(&first.access_token).is_none());
}

#[test]
fn a_refresh_token_two_generations_old_ends_the_family_at_once() {
    let world = World::new();
    let (client, first) = world.sign_in();
    let second = world.refresh(&client, &first.refresh_token).unwrap();
    let third = world.refresh(&client, &second.refresh_token).unwrap();
    assert!(world.refresh(&client, &first.refresh_token).is_err());
    assert!(world.caller(&third.access_token).is_none());
}

#[test]
fn a_refresh_token_in_another_clients_hands_is_of_no_use() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let other = world.register(&["https://other.example.com/callback"]);
    assert_eq!(world.refresh(&other, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(world.refresh(&client, &tokens.refresh_token).is_ok());
    // Nor is its successor had by asking again.
    assert_eq!(world.refresh(&other, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn a_refresh_token_that_nobody_used_ends() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    world.wait(REFRESH_MS);
    assert_eq!(world.refresh(&client, &tokens.refresh_token).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn a_refresh_for_more_than_was_granted_is_refused() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let form =
        [("grant_type", "refresh_token"), ("refresh_token", tokens.refresh_token.as_str()), ("client_id", &client)];
    assert_eq!(world.token(&with(&form, "scope", "admin")).unwrap_err().code, ErrorCode::InvalidScope);
    let elsewhere = with(&form, "resource", "https://elsewhere.example.com/mcp");
    assert_eq!(world.token(&elsewhere).unwrap_err().code, ErrorCode::InvalidTarget);
    assert!(world.token(&form).is_ok());
}
