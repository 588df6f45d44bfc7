//! `surety sign-in`, `sign-out`, `account` and `purchases`.

use api_types::{Challenge, ChallengeRequest, Me, Purchase, Session, SignIn};
use market::proof::digest;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Shop,
    failure::Failure,
    now_ms, proof,
    service::{Answer, Ask},
    tell::plain,
};

const SESSION: &str = "session.json";

/// Stored session.
#[derive(Deserialize, Serialize)]
struct SignedIn {
    /// The service that issued the session.
    api: String,
    session: Session,
}

/// Signs in by signing the service's challenge.
pub fn sign_in(shop: &Shop) -> Result<(), Failure> {
    let key = shop.home.key()?;
    let address = key.address();
    let asked = json!(ChallengeRequest { address: address.to_string(), others: vec![] });
    let challenge: Challenge = shop.service.post("/auth/challenge", Ask::json(&asked))?;
    if challenge.digest != digest(&["service:signin:v1", &address.to_string(), &challenge.nonce]) {
        return Err(Failure::Refused(
            "the service asks to sign something else than a sign-in: nothing was signed".into(),
        ));
    }
    let (key, signature) = proof::sign(&key, &address, &challenge.digest)?;
    let answer = json!(SignIn { owner: address.to_string(), key, signature });
    let session: Session = shop.service.post("/auth/verify", Ask::json(&answer))?;
    let words = format!("signed in as {address}\nSurety balance at {}", session.account.wallet_address);
    let told = json!({ "owner": address, "account": session.account, "expiresAt": session.expires_at });
    shop.home.write(SESSION, &SignedIn { api: shop.service.base().to_owned(), session })?;
    shop.tell.result(&told, &words)
}

/// Ends the session, on the service and on this machine.
pub fn sign_out(shop: &Shop) -> Result<(), Failure> {
    let answer = ask(shop, "POST", "/auth/logout")?;
    // 401 means that it had ended already.
    if !matches!(answer.status, 204 | 401) {
        return Err(answer.failure());
    }
    shop.home.remove(SESSION)?;
    shop.tell.result(&json!({ "signedIn": false }), "signed out")
}

/// Prints the account.
pub fn show(shop: &Shop) -> Result<(), Failure> {
    let me: Me = ask(shop, "GET", "/me")?.json()?;
    let words = format!(
        "owner           {}\nSurety balance  {2} at {1}\nlimits          {3} per purchase, {4} per day, {5} spent today\nbought {6}, sells {7}",
        plain(&me.owner),
        me.wallet.address,
        me.wallet.balance_lovelace.display_tada(),
        me.limits.max_per_payment_lovelace.display_tada(),
        me.limits.daily_budget_lovelace.display_tada(),
        me.limits.spent_today_lovelace.display_tada(),
        me.purchases.len(),
        me.listings.len(),
    );
    shop.tell.result(&json!(me), &words)
}

/// Prints the account's purchases.
pub fn purchases(shop: &Shop) -> Result<(), Failure> {
    let me: Me = ask(shop, "GET", "/me")?.json()?;
    let line = |it: &Purchase| {
        format!("{}  {:<9}  {:<17}  {}", it.id, it.mode.as_str(), it.status.words(), plain(&it.listing_id))
    };
    let lines: Vec<String> = me.purchases.iter().map(line).collect();
    let words = if lines.is_empty() { "nothing was bought yet".to_owned() } else { lines.join("\n") };
    shop.tell.result(&json!(me.purchases), &words)
}

/// Sends a request with the session's token, only to the service that issued it.
fn ask(shop: &Shop, method: &str, path: &str) -> Result<Answer, Failure> {
    let base = shop.service.base();
    let kept: Option<SignedIn> = shop.home.read(SESSION)?;
    let live = kept.filter(|kept| kept.api == base && kept.session.expires_at > now_ms());
    let signed_out = || Failure::Refused(format!("not signed in at {base}: `surety sign-in`"));
    let authorization = format!("Bearer {}", live.ok_or_else(signed_out)?.session.token);
    shop.service.ask(method, path, Ask { headers: vec![("authorization", &authorization)], ..Ask::default() })
}
