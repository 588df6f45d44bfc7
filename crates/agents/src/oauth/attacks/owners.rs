//! Attacks on the list and the revocation of an owner's grants, and on the server's metadata.

use super::*;

#[test]
fn a_revoked_agent_is_refused_at_once() {
    let world = World::new();
    let (client, tokens) = world.sign_in();
    let grant = world.caller(&tokens.access_token).unwrap().grant;
    let (mine, theirs) = (session(&world, &wallet(1).1.to_string()), session(&world, "another owner"));

    let signed_out = market::account::Token::new([9; 32]);
    let revoke = |session| block_on(grant::revoke(&world.db, session, &grant, world.now())).unwrap();
    assert_eq!(revoke(&theirs), Revocation::NotFound);
    assert_eq!(revoke(&signed_out), Revocation::SignedOut);
    assert!(world.caller(&tokens.access_token).is_some());
    let listed = block_on(grant::list(&world.db, &mine, world.now())).unwrap().unwrap();
    assert_eq!((&listed[0].id, listed[0].spent_today_lovelace), (&grant, cardano::Lovelace::ZERO));
    assert_eq!(block_on(grant::list(&world.db, &theirs, world.now())).unwrap(), Some(vec![]));

    assert_eq!(revoke(&mine), Revocation::Revoked);
    assert!(world.caller(&tokens.access_token).is_none());
    assert!(world.refresh(&client, &tokens.refresh_token).is_err());
    assert_eq!(block_on(grant::list(&world.db, &mine, world.now())).unwrap(), Some(vec![]));
}

pub fn session(world: &World, owner: &str) -> market::account::Token {
    let token = market::account::Token::new([owner.len() as u8; 32]);
    let account: Write = sql::write!(
        "INSERT INTO accounts (owner, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, created_at_ms) \
               VALUES (?1, ?1, printf('%056d', 0), 1, 10000000, 30000000, 0) ON CONFLICT DO NOTHING",
        owner
    );
    let session: Write =
        sql::write!("INSERT INTO sessions VALUES (?1, ?2, ?3)", token.hash(), owner, world.now() + 1_000);
    block_on(world.db.batch(vec![account, session])).unwrap();
    token
}

#[test]
fn issuers_have_one_spelling() {
    let secrets = Secrets::new(&[1; 32]).unwrap();
    for valid in
        ["https://surety.example.com", "http://127.0.0.1:8787", "http://localhost:8787", "https://a.example:8443"]
    {
        assert!(Authority::new(valid, secrets.clone()).is_ok(), "{valid}");
    }
    for bad in [
        "https://surety.example.com/",
        "http://surety.example.com",
        "https://surety.example.com/api",
        "https://Surety.example.com",
        "surety.example.com",
        "https://surety.example.com:443",
    ] {
        assert!(Authority::new(bad, secrets.clone()).is_err(), "{bad}");
    }
    assert!(Secrets::new(&[1; 31]).is_err());
}

#[test]
fn documents_redirects_and_challenges_name_the_same_issuer_and_resource() {
    let world = World::new();
    let (server, resource) = (world.authority.server_metadata(), world.authority.resource_metadata());
    assert_eq!(server["issuer"], BASE);
    assert_eq!(resource["authorization_servers"], json!([BASE]));
    assert_eq!(resource["resource"], format!("{BASE}/mcp"));
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    let challenge = world.authority.www_authenticate(None);
    assert_eq!(
        challenge,
        format!("Bearer resource_metadata=\"{BASE}/.well-known/oauth-protected-resource/mcp\", scope=\"mcp\"")
    );
    let client = world.register(&[CALLBACK]);
    let denied = world.consent(&client).denied(&world.authority);
    assert_eq!(parameter(&denied, "iss").as_deref(), Some(BASE));
    assert_eq!(parameter(&denied, "error").as_deref(), Some("access_denied"));
}

#[test]
fn a_sealed_request_opens_to_the_original_request() {
    let world = World::new();
    let request = world.consent(&world.register(&[CALLBACK]));
    let sealed = request.seal(&world.authority);
    assert_eq!(ConsentRequest::open(&sealed, &world.authority, world.now()).unwrap(), request);
}
