//! Attacks with answers to the consent page that the account's owner did not give.

use market::challenge::{CHALLENGE_MS, Purpose, give};

use super::*;

#[test]
fn a_consent_request_expires_after_ten_minutes() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let body = world.approval(&world.consent(&client));
    world.wait(CONSENT_MS);
    assert!(matches!(world.check(&body), Err(ApprovalError::Expired(_))));
}

#[test]
fn a_consent_request_is_approved_once() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let approval = world.check(&world.approval(&world.consent(&client))).unwrap();
    assert!(world.grant(&approval).is_ok());
    assert!(matches!(world.grant(&approval), Err(ApprovalError::Expired(_))));
}

#[test]
fn a_second_approval_with_other_limits_changes_no_limit() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let mut body = world.approval(&world.consent(&client));
    world.grant(&world.check(&body).unwrap()).unwrap();
    body["maxPerPaymentAda"] = json!(100);
    body["dailyBudgetAda"] = json!(500);
    assert!(world.grant(&world.check(&body).unwrap()).is_err());
    let limits = "SELECT CAST(max_per_payment AS TEXT) FROM accounts";
    assert_eq!(block_on(world.db.fetch::<Vec<String>>(sql::read!(limits))).unwrap(), ["10000000"]);
}

/// Submits the consent form with these changed fields, and returns the given columns of the account as a JSON array.
fn limits_after(world: &World, client: &str, changes: Value, columns: &str) -> String {
    let mut body = world.approval(&world.consent(client));
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    world.grant(&world.check(&body).unwrap()).unwrap();
    let limits = format!("SELECT json_array({columns}) FROM accounts");
    block_on(world.db.fetch::<Vec<String>>(sql::read!(limits))).unwrap()[0].clone()
}

#[test]
fn connecting_again_raises_limits_only_where_the_owner_changed_the_numbers() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let connect = |changes| limits_after(&world, &client, changes, "max_per_payment, daily_budget");
    assert_eq!(connect(json!({ "keepLimits": true })), "[10000000,30000000]", "a new account has those of the form");
    assert_eq!(connect(json!({ "maxPerPaymentAda": 2, "dailyBudgetAda": 5 })), "[2000000,5000000]");
    assert_eq!(connect(json!({ "keepLimits": true })), "[2000000,5000000]");
    assert_eq!(connect(json!({ "keepLimits": false })), "[10000000,30000000]");
}

#[test]
fn connecting_again_changes_the_approval_price_only_where_the_owner_changed_it() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let connect = |changes| limits_after(&world, &client, changes, "max_per_payment, ask_above");
    assert_eq!(connect(json!({})), "[10000000,null]", "off at first");
    assert_eq!(connect(json!({ "keepLimits": true, "maxPerPaymentAda": 90, "askAboveAda": 4 })), "[10000000,4000000]");
    assert_eq!(connect(json!({ "maxPerPaymentAda": 9 })), "[9000000,4000000]");
    assert_eq!(connect(json!({ "keepLimits": true, "askAboveAda": null })), "[9000000,4000000]");
    assert_eq!(connect(json!({ "keepLimits": true, "askAboveAda": 100 })), "[9000000,null]");
    for wrong in [json!(101), json!(-1), json!(1.5), json!("4")] {
        let mut body = world.approval(&world.consent(&client));
        body["askAboveAda"] = wrong.clone();
        assert!(matches!(world.check(&body), Err(ApprovalError::Invalid(_))), "{wrong}");
    }
}

#[test]
fn connecting_again_changes_the_rules_for_agents_only_where_the_owner_set_them() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let connect = |changes| limits_after(&world, &client, changes, "protected_only, min_reputation, agents_paused");
    assert_eq!(connect(json!({})), "[0,0,0]", "off at first");
    assert_eq!(connect(json!({ "keepLimits": true, "protectedOnly": true, "minReputation": 80 })), "[1,80,0]");
    assert_eq!(connect(json!({ "protectedOnly": null, "minReputation": null })), "[1,80,0]");
    assert_eq!(connect(json!({ "minReputation": 0 })), "[1,0,0]");
    block_on(world.db.execute::<()>(sql::write!("UPDATE accounts SET agents_paused = 1"))).unwrap();
    assert_eq!(connect(json!({})), "[1,0,1]", "a new agent does not end a pause");
    for (field, wrong) in [("minReputation", json!(101)), ("minReputation", json!(-1)), ("protectedOnly", json!("yes"))]
    {
        let mut body = world.approval(&world.consent(&client));
        body[field] = wrong.clone();
        assert!(matches!(world.check(&body), Err(ApprovalError::Invalid(_))), "{field} {wrong}");
    }
}

#[test]
fn an_owner_may_grant_fewer_scopes_than_requested_and_never_more() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    for (asked, answered, allowed) in [
        ("mcp", "mcp:read", Scope::Read),
        ("mcp", "mcp", Scope::All),
        ("mcp:read", "mcp", Scope::Read),
        ("mcp:read", "mcp:read", Scope::Read),
    ] {
        let request = world.authorize(&query(&with(&authorization(&client), "scope", asked))).unwrap();
        let mut body = world.approval(&request);
        body["scope"] = json!(answered);
        assert_eq!(world.check(&body).unwrap().scope, allowed, "{asked} {answered}");
        body["scope"] = json!("admin");
        assert!(matches!(world.check(&body), Err(ApprovalError::Invalid(_))));
    }
}

#[test]
fn a_request_that_the_service_did_not_issue_is_refused() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let honest = world.consent(&client);
    let mut body = world.approval(&honest);
    for forged in [
        honest.seal(&authority(BASE, 8)),
        honest.seal(&authority("https://twin.example.com", 7)),
        String::new(),
        "eyJpZCI6IjEifQ".into(),
        "A".repeat(100_000),
    ] {
        body["request"] = json!(forged);
        assert!(matches!(world.check(&body), Err(ApprovalError::Expired(_) | ApprovalError::Invalid(_))));
    }
}

#[test]
fn a_signature_for_one_request_approves_no_other() {
    // Cross-site request forgery, and an agent that shows one request and sends another.
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let (shown, sent) = (world.consent(&client), world.consent(&client));
    let mut body = world.approval(&shown);
    body["request"] = json!(sent.seal(&world.authority));
    assert_eq!(world.check(&body), Err(ApprovalError::NoChallenge));
}

#[test]
fn a_signature_of_another_wallet_approves_nothing() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let request = world.consent(&client);
    let mut body = world.approval(&request);
    let (_, own) = world.signed(&request, 2);
    let (key, other) = wallet(2);
    let owners = world.challenge(&request.seal(&world.authority), &wallet(1).1.to_string()).unwrap();
    let the_owners = cardano::cip8::sign(&key, &other, owners.digest.as_bytes()).unwrap();
    for (signed, what) in [(own, "a challenge of its own"), (the_owners, "the owner's challenge")] {
        body["key"] = json!(hex::encode(&signed.key));
        body["signature"] = json!(hex::encode(&signed.signature));
        let refused = world.check(&body);
        assert!(
            matches!(refused, Err(ApprovalError::NoChallenge | ApprovalError::Signature(_))),
            "{what}: {refused:?}"
        );
    }
}

#[test]
fn a_signature_for_signing_in_connects_no_agent() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let request = world.consent(&client);
    let (key, owner) = wallet(1);
    let given = block_on(give(&world.challenges, Purpose::SignIn, owner, [9; 32], world.now())).unwrap();
    let signed = cardano::cip8::sign(&key, &owner, given.digest.as_bytes()).unwrap();
    let mut body = world.approval(&request);
    body["key"] = json!(hex::encode(&signed.key));
    body["signature"] = json!(hex::encode(&signed.signature));
    assert_eq!(world.check(&body), Err(ApprovalError::NoChallenge));
}

#[test]
fn an_expired_or_unknown_challenge_approves_nothing() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let body = world.approval(&world.consent(&client));
    world.wait(CHALLENGE_MS - 1);
    assert!(world.check(&body).is_ok());
    world.wait(1);
    assert_eq!(world.check(&body), Err(ApprovalError::NoChallenge));
    let unseen = world.approval(&world.consent(&client));
    world.challenges.0.borrow_mut().clear();
    assert_eq!(world.check(&unseen), Err(ApprovalError::NoChallenge));
}

#[test]
fn a_strangers_challenge_for_the_same_owner_leaves_the_owners_alone() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let request = world.consent(&client);
    let body = world.approval(&request);
    let (_, owner) = wallet(1);
    let strangers = world.challenge(&request.seal(&world.authority), &owner.to_string()).unwrap();
    assert_eq!(strangers.owner, owner);
    assert!(world.check(&body).is_ok());
}

#[test]
fn no_signature_at_all_approves_nothing() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let mut body = world.approval(&world.consent(&client));
    for name in ["key", "signature", "owner"] {
        let mut body = body.clone();
        body.as_object_mut().unwrap().remove(name);
        assert!(matches!(world.check(&body), Err(ApprovalError::Invalid(_))), "{name}");
    }
    body["mode"] = json!("trust-me");
    assert!(matches!(world.check(&body), Err(ApprovalError::Invalid(_))));
}

#[test]
fn limits_beyond_what_is_allowed_are_refused() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let body = world.approval(&world.consent(&client));
    for (name, value) in [
        ("maxPerPaymentAda", json!(0)),
        ("maxPerPaymentAda", json!(101)),
        ("maxPerPaymentAda", json!(-1)),
        ("maxPerPaymentAda", json!(1.5)),
        ("maxPerPaymentAda", json!("10")),
        ("maxPerPaymentAda", json!(1e30)),
        ("dailyBudgetAda", json!(501)),
        ("dailyBudgetAda", json!(null)),
    ] {
        let mut body = body.clone();
        body[name] = value;
        assert!(matches!(world.check(&body), Err(ApprovalError::Invalid(_))), "{body}");
    }
}

#[test]
fn the_demo_wallets_limits_cannot_be_changed() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let request = world.consent(&client).seal(&world.authority);
    let body = json!({ "request": request, "mode": "demo", "maxPerPaymentAda": 100, "dailyBudgetAda": 500 });
    world.grant(&world.check(&body).unwrap()).unwrap();
    let limits = "SELECT json_array(owner, max_per_payment, daily_budget) FROM accounts";
    let limits = block_on(world.db.fetch::<Vec<String>>(sql::read!(limits))).unwrap();
    assert_eq!(limits, [r#"["demo",10000000,30000000]"#]);
}

#[test]
fn the_demo_wallet_is_not_offered_where_it_is_switched_off() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let request = world.consent(&client).seal(&world.authority);
    let body = json!({ "request": request, "mode": "demo", "maxPerPaymentAda": 1, "dailyBudgetAda": 1 });
    let port = cardano::keys::Native;
    let (answer, challenges) = (serde_json::from_value(body).unwrap(), &world.challenges);
    let refused = block_on(world.server().check(challenges, &port, false, &answer));
    assert!(matches!(refused, Err(ApprovalError::Invalid(_))));
}

#[test]
fn a_mainnet_address_gets_no_challenge() {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let sealed = world.consent(&client).seal(&world.authority);
    let mainnet = format!("61{}", "ab".repeat(28));
    let refused = world.challenge(&sealed, &mainnet);
    assert!(matches!(refused, Err(ApprovalError::Address(_))));
}

#[test]
fn the_consent_page_ignores_another_client_in_the_form() {
    // Only the sealed request is approved; other fields are ignored.
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let mut body = world.approval(&world.consent(&client));
    body["client_id"] = json!("client_other");
    body["redirect_uri"] = json!("https://evil.example.com/");
    let approved = world.grant(&world.check(&body).unwrap()).unwrap();
    assert!(approved.redirect.starts_with("http://127.0.0.1/callback?"));
}

#[test]
fn an_approval_deletes_only_a_few_expired_requests_of_strangers() {
    let cost = |left: u32| {
        let world = World::new();
        let client = world.register(&[CALLBACK]);
        assert!(world.grant(&world.check(&world.approval(&world.consent(&client))).unwrap()).is_ok());
        let unused = "INSERT INTO oauth_grants (id, request, owner, client_id, client_name, redirect_uri, resource, scope, \
              code_challenge, client_auth, rotated_at_ms, created_at_ms, used_at_ms) \
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n <= ?1) \
            SELECT printf('%032x', n), printf('%032x', n), owner, client_id, client_name, redirect_uri, resource, scope, \
              code_challenge, client_auth, created_at_ms, created_at_ms, created_at_ms FROM n, (SELECT * FROM oauth_grants)";
        block_on(world.db.execute::<()>(sql::write!(unused, left))).unwrap();
        world.wait(25 * 60 * 60 * 1_000);
        let before = world.db.steps();
        let client = world.register(&["https://other.example.com/"]);
        let mut asked = authorization(&client);
        asked.retain(|(name, _)| *name != "redirect_uri");
        asked.push(("redirect_uri", "https://other.example.com/"));
        let request = world.authorize(&query(&asked)).unwrap();
        assert!(world.grant(&world.check(&world.approval(&request)).unwrap()).is_ok());
        world.db.steps() - before
    };
    let (few, many) = (cost(2_000), cost(20_000));
    assert!(
        many < few + 10_000,
        "{few} steps where strangers left 2,000 approvals, {many} where they left ten times as many"
    );
}
