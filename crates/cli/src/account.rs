//! `surety sign-in`, `sign-out`, `account`, `purchases`, `limits`, `name`, `agents`, `approvals`, `approve`, `decline`
//! and `withdraw`: the commands for an account.

use api_types::{
    Agent, AgentPause, AgentRules, Answer as RequestDecision, Challenge, ChallengeRequest, Limits, LimitsSet, Me,
    NewLimits, NewSellerName, Purchase, PurchaseRequest, RequestAnswer, RequestStatus, SellerNameSet, Session, SignIn,
    Withdrawal,
};
use cardano::Lovelace;
use clap::{Args, Subcommand};
use market::proof::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Shop,
    failure::Failure,
    now_ms, proof,
    service::{Answer, Ask},
    tell::{plain, time_of},
};

const SESSION: &str = "session.json";
/// Maximum number of the wallet's addresses that a sign-in may send in addition to the first.
const MAX_OTHERS: usize = 20;

/// Limits for purchases from the Surety balance. A limit that is not given stays as it is.
#[derive(Args)]
pub struct LimitsArguments {
    /// Maximum price of one purchase, in whole ADA: 1 to 100.
    #[arg(long, value_name = "ADA")]
    per_purchase: Option<u32>,
    /// Maximum sum of all purchases of a day (UTC), in whole ADA: at most 500.
    #[arg(long, value_name = "ADA")]
    per_day: Option<u32>,
    /// Price in whole ADA above which an agent must ask for approval: 0 for every purchase. No purchase costs more than
    /// 100 ADA, so 100 turns approvals off.
    #[arg(long, value_name = "ADA")]
    ask_above: Option<u32>,
    /// Whether agents may make only protected purchases.
    #[arg(long, value_name = "true|false", action = clap::ArgAction::Set)]
    protected_only: Option<bool>,
    /// Minimum reputation of the sellers from whom agents may buy: 0 for every seller, at most 100.
    #[arg(long, value_name = "SCORE")]
    min_reputation: Option<u32>,
}

/// Subcommands of `agents`.
#[derive(Subcommand)]
pub enum AgentsCommand {
    /// Take away an agent's access.
    Remove {
        /// The agent's id, as `agents` shows it.
        id: String,
    },
    /// Stop all agents at once from buying, withdrawing and acting on purchases.
    Pause,
    /// Let paused agents buy, withdraw and act on purchases again.
    Resume,
}

/// The session of a signed-in account, as stored in the wallet's folder.
#[derive(Deserialize, Serialize)]
struct SignedIn {
    /// Address of the service that issued the session.
    api: String,
    session: Session,
}

/// Signs in with the wallet. Sends the wallet's addresses to the service, which chooses one of them as the account's
/// owner. The key of the chosen address signs the service's challenge.
pub fn sign_in(shop: &Shop) -> Result<(), Failure> {
    let keys = shop.home.keys()?;
    let address = keys.address();
    let others = keys.addresses().iter().skip(1).take(MAX_OTHERS).map(ToString::to_string).collect();
    let asked = json!(ChallengeRequest { address: address.to_string(), others });
    let challenge: Challenge = shop.service.post("/auth/challenge", Ask::json(&asked))?;
    let owner = keys.addresses().into_iter().find(|address| *address == challenge.owner);
    let other = || {
        Failure::Refused(
            "the service asked for a signature of something other than a sign-in: nothing was signed".into(),
        )
    };
    let owner = owner.ok_or_else(other)?;
    if challenge.digest != digest(&["service:signin:v1", &owner.to_string(), &challenge.nonce]) {
        return Err(other());
    }
    let (key, signature) = proof::sign(keys.owner(&owner)?, &owner, &challenge.digest)?;
    let answer = json!(SignIn { owner: owner.to_string(), key, signature });
    let session: Session = shop.service.post("/auth/verify", Ask::json(&answer))?;
    let words = format!("signed in as {owner}\nSurety balance at {}", session.account.wallet_address);
    let told = json!({ "owner": owner, "account": session.account, "expiresAt": session.expires_at });
    shop.home.write(SESSION, &SignedIn { api: shop.service.base().to_owned(), session })?;
    shop.tell.result(&told, &words)
}

/// Ends the session, on the service and on this machine.
pub fn sign_out(shop: &Shop) -> Result<(), Failure> {
    let answer = ask(shop, "POST", "/auth/logout", None)?;
    // 401 means that the session had already ended.
    if !matches!(answer.status, 204 | 401) {
        return Err(answer.failure());
    }
    shop.home.remove(SESSION)?;
    shop.tell.result(&json!({ "signedIn": false }), "signed out")
}

/// Prints the signed-in account: its Surety balance, limits and listings.
pub fn show(shop: &Shop) -> Result<(), Failure> {
    let me: Me = ask(shop, "GET", "/me", None)?.json()?;
    let words = format!(
        "owner           {}{8}\nSurety balance  {2} at {1}\nlimits          {3} per purchase, {4} per day, {5} spent today\nbought {6}, sells {7}",
        plain(&me.owner),
        me.wallet.address,
        me.wallet.balance_lovelace.display_tada(),
        me.limits.max_per_payment_lovelace.display_tada(),
        me.limits.daily_budget_lovelace.display_tada(),
        me.limits.spent_today_lovelace.display_tada(),
        me.purchases.len(),
        me.listings.len(),
        me.seller_name.as_deref().map(|name| format!(" ({})", plain(name))).unwrap_or_default(),
    );
    shop.tell.result(&json!(me), &words)
}

/// Prints the purchases of the signed-in account.
pub fn purchases(shop: &Shop) -> Result<(), Failure> {
    let me: Me = ask(shop, "GET", "/me", None)?.json()?;
    let line = |it: &Purchase| {
        format!("{}  {:<9}  {:<17}  {}", it.id, it.mode.as_str(), it.status.words(), plain(&it.listing_id))
    };
    let lines: Vec<String> = me.purchases.iter().map(line).collect();
    let words = if lines.is_empty() { "nothing was bought yet".to_owned() } else { lines.join("\n") };
    shop.tell.result(&json!(me.purchases), &words)
}

/// Changes the limits that the arguments give, and prints all limits.
pub fn limits(shop: &Shop, arguments: &LimitsArguments) -> Result<(), Failure> {
    let LimitsArguments { per_purchase, per_day, ask_above, protected_only, min_reputation } = *arguments;
    let now: Me = ask(shop, "GET", "/me", None)?.json()?;
    let numbers = [per_purchase, per_day, ask_above, min_reputation];
    if numbers == [None; 4] && protected_only.is_none() {
        let words = limit_words(&now.limits);
        return shop.tell.result(&json!(now.limits), &words);
    }
    let whole = |lovelace: Lovelace| u32::try_from(lovelace.get() / 1_000_000).unwrap_or(u32::MAX);
    let new = NewLimits {
        max_per_payment_ada: per_purchase.unwrap_or_else(|| whole(now.limits.max_per_payment_lovelace)),
        daily_budget_ada: per_day.unwrap_or_else(|| whole(now.limits.daily_budget_lovelace)),
        ask_above_ada: ask_above,
        protected_only,
        min_reputation,
    };
    let set: LimitsSet = ask(shop, "PUT", "/me/agent-limits", Some(&json!(new)))?.json()?;
    let limits = Limits {
        max_per_payment_lovelace: set.max_per_payment_lovelace,
        daily_budget_lovelace: set.daily_budget_lovelace,
        ask_above_lovelace: set.ask_above_lovelace,
        rules: set.rules,
        ..now.limits
    };
    shop.tell.result(&json!(limits), &limit_words(&limits))
}

/// Sets or removes the account's display name as a seller.
pub fn set_name(shop: &Shop, name: &str) -> Result<(), Failure> {
    let new = NewSellerName { seller_name: Some(name.to_owned()).filter(|name| !name.is_empty()) };
    let set: SellerNameSet = ask(shop, "PUT", "/me/seller-name", Some(&json!(new)))?.json()?;
    let words = set.seller_name.as_deref().map_or_else(|| "no name is shown".to_owned(), plain);
    shop.tell.result(&json!(set), &words)
}

fn limit_words(limits: &Limits) -> String {
    let asks = limits
        .ask_above_lovelace
        .map_or("for no purchase".to_owned(), |above| format!("above {}", above.display_tada()));
    let AgentRules { protected_only, min_reputation, agents_paused } = limits.rules;
    let modes = if protected_only { "with protection only" } else { "in each mode" };
    let sellers = match min_reputation {
        0 => "every seller".to_owned(),
        least => format!("sellers with a reputation of at least {least}"),
    };
    let paused = if agents_paused { "\nall agents are paused: `surety agents resume` lets them go on" } else { "" };
    format!(
        "{} per purchase, {} per day, {} spent today\nagents ask for approval: {asks}\nagents buy {modes}, from {sellers}{paused}",
        limits.max_per_payment_lovelace.display_tada(),
        limits.daily_budget_lovelace.display_tada(),
        limits.spent_today_lovelace.display_tada(),
    )
}

/// Prints the agents that may buy for the account, removes one of them, or pauses or resumes all.
pub fn agents(shop: &Shop, command: Option<&AgentsCommand>) -> Result<(), Failure> {
    if let Some(AgentsCommand::Pause | AgentsCommand::Resume) = command {
        let paused = matches!(command, Some(AgentsCommand::Pause));
        let set: AgentPause = ask(shop, "PUT", "/me/agent-pause", Some(&json!(AgentPause { paused })))?.json()?;
        let words = if set.paused {
            "all agents are paused: none can buy, withdraw, or act on a purchase until `surety agents resume`"
        } else {
            "agents may go on"
        };
        return shop.tell.result(&json!(set), words);
    }
    if let Some(AgentsCommand::Remove { id }) = command {
        let answer = ask(shop, "DELETE", &format!("/me/agents/{}", segment(id)), None)?;
        if answer.status != 204 {
            return Err(answer.failure());
        }
        return shop.tell.result(&json!({ "id": id, "removed": true }), &format!("{} can do nothing more", plain(id)));
    }
    let agents: Vec<Agent> = ask(shop, "GET", "/me/agents", None)?.json()?;
    let line = |agent: &Agent| {
        let old = agent.old_token_at.map(|at| {
            let from = agent.old_token_from.as_deref().unwrap_or("an unknown network");
            format!(
                "\n  an old key of this agent was used at {} from {}: `surety agents remove {}` if that was not you",
                time_of(at),
                plain(from),
                plain(&agent.id)
            )
        });
        format!(
            "{}  {}  last used {}, spent {} today{}",
            plain(&agent.id),
            plain(&agent.client_name),
            time_of(agent.last_used_at),
            agent.spent_today_lovelace.display_tada(),
            old.unwrap_or_default()
        )
    };
    let lines: Vec<String> = agents.iter().map(line).collect();
    let words = if lines.is_empty() { "no agent has access".to_owned() } else { lines.join("\n") };
    shop.tell.result(&json!(agents), &words)
}

/// Prints the purchases that agents ask the owner to approve.
pub fn approvals(shop: &Shop) -> Result<(), Failure> {
    let waiting: Vec<PurchaseRequest> = ask(shop, "GET", "/me/requests", None)?.json()?;
    let lines: Vec<String> = waiting.iter().map(request_words).collect();
    let words = if lines.is_empty() { "no purchase waits for approval".to_owned() } else { lines.join("\n") };
    shop.tell.result(&json!(waiting), &words)
}

/// Approves or declines a purchase that an agent asked for.
pub fn answer(shop: &Shop, id: &str, answer: RequestDecision) -> Result<(), Failure> {
    let path = format!("/me/requests/{}", segment(id));
    let asked: PurchaseRequest = ask(shop, "POST", &path, Some(&json!(RequestAnswer { answer })))?.json()?;
    let what = match asked.status {
        RequestStatus::Approved => {
            format!("approved: {} may buy it once, until {}", plain(&asked.client_name), time_of(asked.expires_at))
        }
        RequestStatus::Declined => "declined".to_owned(),
        RequestStatus::Used => "the agent bought it, or is paying".to_owned(),
        RequestStatus::Waiting => "it waits for an answer".to_owned(),
    };
    shop.tell.result(&json!(asked), &format!("{}\n{what}", request_words(&asked)))
}

fn request_words(asked: &PurchaseRequest) -> String {
    format!(
        "{}  {} for {} ({}), asked by {}, until {}\n  `surety approve {0}`, `surety decline {0}`",
        plain(&asked.id),
        plain(&asked.title),
        asked.price_lovelace.display_tada(),
        asked.mode.as_str(),
        plain(&asked.client_name),
        time_of(asked.expires_at)
    )
}

/// Sends the Surety balance to the owner's wallet.
pub fn withdraw(shop: &Shop) -> Result<(), Failure> {
    let sent: Withdrawal = ask(shop, "POST", "/me/wallet/withdraw", None)?.json()?;
    let words = format!("sending {} to your wallet, in transaction {}", sent.lovelace.display_tada(), sent.tx);
    shop.tell.result(&json!(sent), &words)
}

/// Escapes a text for use as one segment of a URL's path, whatever characters the user typed.
fn segment(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns the unexpired session at the current service, or `None` if there is none.
fn live(shop: &Shop) -> Result<Option<SignedIn>, Failure> {
    let kept: Option<SignedIn> = shop.home.read(SESSION)?;
    Ok(kept.filter(|kept| kept.api == shop.service.base() && kept.session.expires_at > now_ms()))
}

/// Returns whether the wallet has an unexpired session at the current service.
///
/// # Errors
/// Returns an error if the stored session cannot be read.
pub fn is_signed_in(shop: &Shop) -> Result<bool, Failure> {
    Ok(live(shop)?.is_some())
}

/// Sends a request with the session's token. The token is sent only to the service that issued it.
///
/// # Errors
/// Returns an error if there is no session, or if the service does not answer.
pub fn ask(shop: &Shop, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, Failure> {
    let signed_out = || Failure::Refused(format!("not signed in at {}: `surety sign-in`", shop.service.base()));
    let authorization = format!("Bearer {}", live(shop)?.ok_or_else(signed_out)?.session.token);
    let ask = body.map(Ask::json).unwrap_or_default();
    shop.service.ask(method, path, Ask { headers: vec![("authorization", &authorization)], ..ask })
}
