//! `surety sign-in`, `sign-out`, `account`, `purchases`

use cardano::{Address, ContentHash, Lovelace};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Shop, failure::Failure, now_ms, proof, service::Ask, tell::plain, wallet::signer};

const SESSION: &str = "session.json";

/// What `sign-in` leaves behind.
#[derive(Deserialize, Serialize)]
struct Session {
    /// The service that it is of.
    api: String,
    token: String,
    /// POSIX ms.
    expires_at: u64,
}

#[derive(Deserialize)]
struct Challenge {
    owner: Address,
    digest: ContentHash,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedIn {
    token: String,
    expires_at: u64,
    account: Value,
}

/// Signs the service's challenge.
pub fn sign_in(shop: &Shop) -> Result<(), Failure> {
    let (key, address) = signer(shop)?;
    let ask = |body| Ask { body: Some(body), ..Ask::default() };
    let challenge: Challenge = shop.service.json("POST", "/auth/challenge", ask(json!({ "address": address })))?;
    if challenge.owner != address {
        return Err(Failure::Refused(format!("the service's challenge is for another wallet, {}", challenge.owner)));
    }
    let (key, signature) = proof::sign(&key, &address, &challenge.digest)?;
    let answer = json!({ "owner": address, "key": key, "signature": signature });
    let SignedIn { token, expires_at, account } = shop.service.json("POST", "/auth/verify", ask(answer))?;
    shop.home.write(SESSION, &Session { api: shop.service.base().to_owned(), token, expires_at })?;
    let wallet = account.get("walletAddress").and_then(Value::as_str).map(plain).unwrap_or_default();
    let words = format!("signed in as {address}\nservice wallet {wallet}");
    shop.tell.result(&json!({ "owner": address, "account": account, "expiresAt": expires_at }), &words)
}

/// Ends the session, here and there.
pub fn sign_out(shop: &Shop) -> Result<(), Failure> {
    let token = session(shop)?;
    let authorization = bearer(&token);
    let ask = Ask { headers: vec![("authorization", &authorization)], ..Ask::default() };
    let answer = shop.service.ask("POST", "/auth/logout", ask)?;
    // 401: it was over already.
    if !matches!(answer.status, 204 | 401) {
        return Err(answer.failure());
    }
    shop.home.remove(SESSION)?;
    shop.tell.result(&json!({ "signedIn": false }), "signed out")
}

/// Prints the account.
pub fn show(shop: &Shop) -> Result<(), Failure> {
    let me = me(shop)?;
    let says = |path: &str| me.pointer(path).and_then(Value::as_str).map(plain).unwrap_or_default();
    let tada = |path: &str| says(path).parse::<Lovelace>().unwrap_or_default().display_tada();
    let count = |path: &str| me.pointer(path).and_then(Value::as_array).map_or(0, Vec::len);
    let words = format!(
        "owner           {}\nservice wallet  {} with {}\nlimits          {} each, {} a day, {} spent today\nbought {}, sells {}",
        says("/owner"),
        says("/wallet/address"),
        tada("/wallet/balanceLovelace"),
        tada("/limits/maxPerPaymentLovelace"),
        tada("/limits/dailyBudgetLovelace"),
        tada("/limits/spentTodayLovelace"),
        count("/purchases"),
        count("/listings"),
    );
    shop.tell.result(&me, &words)
}

/// Prints what was bought.
pub fn purchases(shop: &Shop) -> Result<(), Failure> {
    let me = me(shop)?;
    let purchases = me.get("purchases").cloned().unwrap_or_else(|| json!([]));
    let line = |purchase: &Value| {
        let says = |name: &str| purchase.get(name).and_then(Value::as_str).map(plain).unwrap_or_default();
        format!("{}  {:<9}  {:<18}  {}", says("id"), says("mode"), says("status"), says("listingId"))
    };
    let lines: Vec<String> = purchases.as_array().into_iter().flatten().map(line).collect();
    let words = if lines.is_empty() { "nothing was bought yet".to_owned() } else { lines.join("\n") };
    shop.tell.result(&purchases, &words)
}

fn me(shop: &Shop) -> Result<Value, Failure> {
    let authorization = bearer(&session(shop)?);
    shop.service.json("GET", "/me", Ask { headers: vec![("authorization", &authorization)], ..Ask::default() })
}

fn bearer(session: &Session) -> String {
    format!("Bearer {}", session.token)
}

/// The session with this service: its token goes to no other.
fn session(shop: &Shop) -> Result<Session, Failure> {
    let kept: Option<Session> = shop.home.read(SESSION)?;
    let live = kept.filter(|kept| kept.api == shop.service.base() && kept.expires_at > now_ms());
    live.ok_or_else(|| Failure::Refused(format!("not signed in at {}: `surety sign-in`", shop.service.base())))
}
