//! `surety sign-in`, `sign-out`, `account`, `purchases`

use api_types::{Challenge, ChallengeRequest, Me, Purchase, SignIn};
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

/// Signs the service's challenge.
pub fn sign_in(shop: &Shop) -> Result<(), Failure> {
    let (key, address) = signer(shop)?;
    let asked = json!(ChallengeRequest { address: address.to_string(), others: vec![] });
    let challenge: Challenge = shop.service.json("POST", "/auth/challenge", Ask::json(asked))?;
    if challenge.owner != address {
        return Err(Failure::Refused(format!("the service's challenge is for another wallet, {}", challenge.owner)));
    }
    let (key, signature) = proof::sign(&key, &address, &challenge.digest)?;
    let answer = json!(SignIn { owner: address.to_string(), key, signature });
    let api_types::Session { token, expires_at, account } =
        shop.service.json("POST", "/auth/verify", Ask::json(answer))?;
    shop.home.write(SESSION, &Session { api: shop.service.base().to_owned(), token, expires_at })?;
    let wallet = account.wallet_address;
    let words = format!("signed in as {address}\nSurety balance at {wallet}");
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
    let (me, told) = me(shop)?;
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
    shop.tell.result(&told, &words)
}

/// Prints what was bought.
pub fn purchases(shop: &Shop) -> Result<(), Failure> {
    let (me, told) = me(shop)?;
    let line = |it: &Purchase| {
        format!("{}  {:<9}  {:<17}  {}", it.id, it.mode.as_str(), it.status.words(), plain(&it.listing_id))
    };
    let lines: Vec<String> = me.purchases.iter().map(line).collect();
    let words = if lines.is_empty() { "nothing was bought yet".to_owned() } else { lines.join("\n") };
    shop.tell.result(told.get("purchases").unwrap_or(&json!([])), &words)
}

fn me(shop: &Shop) -> Result<(Me, Value), Failure> {
    let authorization = bearer(&session(shop)?);
    shop.service.told("GET", "/me", Ask { headers: vec![("authorization", &authorization)], ..Ask::default() })
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
