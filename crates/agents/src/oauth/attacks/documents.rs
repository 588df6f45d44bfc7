//! Attacks with metadata documents, whose URLs and contents strangers choose.

use super::*;

#[test]
fn a_published_client_document_is_fetched_and_stored() {
    let world = World::new();
    world.web.publish(DOCUMENT, &document());
    for _ in 0..3 {
        let request = world.consent(DOCUMENT);
        assert_eq!(
            (request.client_name.as_str(), request.published_at.as_deref()),
            ("Published", Some("agent.example.com"))
        );
    }
    assert_eq!(world.web.asked.borrow().len(), 1);
    assert!(world.redeem(DOCUMENT, &world.code(DOCUMENT)).is_ok());
}

#[test]
fn documents_of_many_strangers_are_all_fetched_and_few_are_stored() {
    let world = World::new();
    let publish = |number: u32| {
        let url = format!("https://agent{number}.example.com/client.json");
        let mut document = document();
        document["client_id"] = json!(url);
        document["padding"] = json!("x".repeat(9_000));
        world.web.publish(&url, &document);
        url
    };
    for number in 0..600 {
        world.consent(&publish(number));
    }
    let lengths: Vec<u64> = block_on(world.db.fetch(sql::read!("SELECT length(body) FROM oauth_documents"))).unwrap();
    assert!(lengths.len() <= 500 && lengths.iter().sum::<u64>() < 5_000_000, "{lengths:?}");
    let late = publish(1_000);
    assert!(world.redeem(&late, &world.code(&late)).is_ok(), "as good as one that is kept");
}

#[test]
fn documents_at_private_or_odd_addresses_are_not_fetched() {
    let world = World::new();
    for url in [
        "https://127.0.0.1/client.json",
        "https://10.0.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/client.json",
        "https://[fd00::1]/client.json",
        "https://0x7f000001/client.json",
        "https://2130706433/client.json",
        "https://localhost/client.json",
        "https://router.local/client.json",
        "https://db.internal/client.json",
        "https://printer/client.json",
        "https://agent.example.com:8443/client.json",
        "https://user@agent.example.com/client.json",
        "https://agent.example.com/",
        "https://agent.example.com/a/../client.json",
        "https://agent.example.com/client.json#x",
        "http://agent.example.com/client.json",
        "file:///etc/passwd",
        "https://surety.example.com/oauth/register",
        "https://surety.example.com./oauth/register",
        &format!("https://agent.example.com/{}", "a".repeat(600)),
    ] {
        world.web.publish(url, &json!({ "client_id": url, "client_name": "x", "redirect_uris": [CALLBACK] }));
        let refusal = world.authorize(&query(&with(&authorization(""), "client_id", url))).unwrap_err();
        assert!(matches!(refusal.error.code, ErrorCode::InvalidClient | ErrorCode::InvalidRequest), "{url}");
    }
    assert_eq!(world.web.asked.borrow().len(), 0);
}

#[test]
fn a_document_that_is_not_its_clients_is_refused() {
    for (name, value) in [
        ("client_id", json!("https://other.example.com/client.json")),
        ("client_id", json!(null)),
        ("redirect_uris", json!([])),
        ("redirect_uris", json!(["http://agent.example.com/cb"])),
        ("client_secret", json!("s3cret")),
        ("token_endpoint_auth_method", json!("client_secret_post")),
    ] {
        let world = World::new();
        let mut document = document();
        document[name] = value;
        world.web.publish(DOCUMENT, &document);
        let refusal = world.authorize(&query(&authorization(DOCUMENT))).unwrap_err();
        assert_eq!(refusal.error.code, ErrorCode::InvalidClient, "{document}");
        // A rejected document is not stored.
        world.web.publish(DOCUMENT, &self::document());
        assert!(world.authorize(&query(&authorization(DOCUMENT))).is_ok());
    }
}

#[test]
fn a_temporary_fetch_fault_is_answered_from_the_last_good_copy() {
    let page = |status, content_type: &str| Fetched {
        status,
        content_type: content_type.into(),
        max_age_s: None,
        body: b"<title>Just a moment...</title>".to_vec(),
    };
    for fault in [
        None,
        Some(page(403, "text/html; charset=UTF-8")),
        Some(page(403, "application/json")),
        Some(page(429, "application/json")),
        Some(page(503, "text/plain")),
        Some(page(200, "text/html")),
    ] {
        let world = World::new();
        let publish = |page: Option<Fetched>| {
            let mut pages = world.web.pages.borrow_mut();
            pages.remove(DOCUMENT);
            pages.extend(page.map(|page| (DOCUMENT.to_owned(), page)));
        };
        publish(fault.clone());
        let refusal = world.authorize(&query(&authorization(DOCUMENT))).unwrap_err();
        assert_eq!(refusal.error.code, ErrorCode::TemporarilyUnavailable, "{fault:?}");
        assert!(refusal.error.retry_after_s > 0);
        world.web.publish(DOCUMENT, &document());
        assert!(world.authorize(&query(&authorization(DOCUMENT))).is_ok());
        publish(fault.clone());
        world.wait(20 * 24 * 60 * 60 * 1_000);
        assert_eq!(world.consent(DOCUMENT).client_name, "Published", "{fault:?}");
        // A document that is gone is not a temporary fault: its client has withdrawn it.
        publish(Some(page(404, "text/html")));
        let refusal = world.authorize(&query(&authorization(DOCUMENT))).unwrap_err();
        assert_eq!(refusal.error.code, ErrorCode::InvalidClient, "{fault:?}");
    }
}

#[test]
fn client_documents_are_advertised_only_where_they_can_be_fetched() {
    let offered = |base| authority(base, 7).server_metadata()["client_id_metadata_document_supported"].clone();
    assert_eq!(offered(BASE), true);
    assert_eq!(offered("http://127.0.0.1:8787"), false);
}

#[test]
fn redirected_oversized_and_untyped_documents_are_refused() {
    let world = World::new();
    world.web.publish(DOCUMENT, &document());
    let good = world.web.pages.borrow()[DOCUMENT].clone();
    let mut padded = document();
    padded["padding"] = json!("x".repeat(11_000));
    for bad in [
        Fetched { status: 302, ..good.clone() },
        Fetched { status: 404, ..good.clone() },
        Fetched { content_type: "text/plain".into(), ..good.clone() },
        Fetched { body: padded.to_string().into_bytes(), ..good.clone() },
        Fetched { body: vec![0xff], ..good.clone() },
    ] {
        world.web.pages.borrow_mut().insert(DOCUMENT.into(), bad.clone());
        let refusal = world.authorize(&query(&authorization(DOCUMENT))).unwrap_err();
        assert_eq!(refusal.error.code, ErrorCode::InvalidClient, "{bad:?}");
    }
}
