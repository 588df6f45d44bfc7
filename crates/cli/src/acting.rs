//! `surety status`, `request-refund`, `dispute`, `refund`, `release`, `read` and `verdict`: the commands after a
//! purchase.
//!
//! If the wallet paid for a purchase, the wallet signs its actions. If a Surety balance paid, the session authorizes
//! the action and the service signs it.

use std::{path::PathBuf, thread::sleep, time::Duration};

use api_types::{
    ActionTiming, BuyerAction, DeliveryMode, Me, NewBuyerAction, PossibleActions, Purchase, PurchaseStatus,
    SubmittedAction,
};
use cardano::{Address, TxHash, chain::Utxo, slots::Millis};
use clap::Args;
use escrow::{Action, plan::Escrow, rules::Timing, spend::Spent};
use market::ListingId;
use provider::ProviderError;
use serde_json::json;
use x402_cardano::escrow::listing_input_hash;

use crate::{
    Shop, account,
    chain::described,
    failure::Failure,
    keys::Keys,
    proof,
    redelivery::{hand_over, purchases_of},
    service::Ask,
    settling::Payment,
    tell::{self, counted, plain, time_of},
    verify::{DraftedTx, NotAsAsked, SigningWallet, action::action},
};

/// Maximum time to wait until a block includes a transaction, in seconds. A drafted transaction is valid for three
/// minutes.
const WAIT_SECONDS: u64 = 240;
/// Maximum number of drafts for one action. A new draft is needed if another transaction spends the escrow first.
const MAX_TRIES: u32 = 3;
/// Maximum time to wait for another party's transaction, in seconds.
const MOVE_SECONDS: u32 = 90;
/// Maximum number of transactions to follow from the lock of an escrow to the escrow's current output.
const MAX_STEPS: usize = 32;

/// Returns the name of the command for a buyer's action, and the message to show once a block includes the action.
const fn told(action: BuyerAction) -> (&'static str, &'static str) {
    match action {
        BuyerAction::RequestRefund => ("request-refund", "the money is asked back"),
        BuyerAction::Dispute => ("dispute", "the purchase is disputed"),
        BuyerAction::TakeRefund => ("refund", "the money is back"),
        BuyerAction::Release => ("release", "the money is released to the seller"),
    }
}

/// Maps a buyer's action to the contract's redeemer.
const fn redeemer(action: BuyerAction) -> Action {
    match action {
        BuyerAction::RequestRefund | BuyerAction::Dispute => Action::SetRefundRequested,
        BuyerAction::TakeRefund => Action::WithdrawRefund,
        BuyerAction::Release => Action::AuthorizeWithdrawal,
    }
}

/// Argument that names a purchase.
#[derive(Args)]
pub struct PurchaseArgument {
    /// The purchase's id (64 hexadecimal characters), or the id of the listing that this wallet bought.
    #[arg(value_parser = named)]
    purchase: Named,
}

/// Arguments of `dispute`.
#[derive(Args)]
pub struct DisputeArguments {
    #[command(flatten)]
    purchase: PurchaseArgument,
    /// Dispute even if the delivered content has the listed hash, although the arbiter will then decide for the seller.
    #[arg(long)]
    anyway: bool,
}

/// Arguments of `verdict`.
#[derive(Args)]
pub struct VerdictArguments {
    #[command(flatten)]
    purchase: PurchaseArgument,
    /// The buyer's finding: ok, mismatch or no_result_yet.
    #[arg(value_parser = ["ok", "mismatch", "no_result_yet"])]
    verdict: String,
}

/// A purchase, named by its own id or by the id of its listing.
#[derive(Clone, Debug)]
enum Named {
    Purchase(TxHash),
    Listing(ListingId),
}

fn named(text: &str) -> Result<Named, &'static str> {
    let purchase = text.parse().map(Named::Purchase).ok();
    let named = purchase.or_else(|| text.parse().map(Named::Listing).ok());
    named.ok_or("a purchase's id has 64 hexadecimal characters, a listing's begins with lst_")
}

impl PurchaseArgument {
    /// Returns the id of the purchase. If the user named a listing, looks up this wallet's purchase of it.
    ///
    /// # Errors
    /// Returns an error if the wallet has not bought the listing, or if the service does not answer.
    pub fn id(&self, shop: &Shop) -> Result<TxHash, Failure> {
        let listing = match &self.purchase {
            Named::Purchase(id) => return Ok(*id),
            Named::Listing(listing) => listing,
        };
        let keys = shop.home.keys()?;
        let address = keys.address();
        let bought = purchases_of(shop, &keys, &shop.service.listing(listing)?.seller_address)?;
        let is_it = |one: &&Purchase| one.listing_id == listing.as_str() && one.status != PurchaseStatus::Refunded;
        if let Some(found) = bought.iter().find(is_it) {
            return Ok(found.id);
        }
        let from_balance = match account::is_signed_in(shop)? {
            true => account::ask(shop, "GET", "/me", None)?.json::<Me>()?.purchases,
            false => vec![],
        };
        let none = || Failure::Refused(format!("{address} owns no purchase of {listing}: name it by its own id"));
        Ok(from_balance.iter().find(is_it).ok_or_else(none)?.id)
    }

    /// Returns the id of the purchase's listing, from the argument or from this wallet's own records.
    ///
    /// The service is not asked, because a dishonest service could name a listing that this wallet bought elsewhere,
    /// and use the wallet's signature to get that listing's content.
    fn listing(&self, id: &TxHash, shop: &Shop) -> Result<String, Failure> {
        if let Named::Listing(listing) = &self.purchase {
            return Ok(listing.to_string());
        }
        let unknown =
            || Failure::Usage(format!("this wallet has no record of the purchase {id}: name its listing instead"));
        Ok(Payment::of_purchase(shop, id)?.ok_or_else(unknown)?.listing.id)
    }

    /// Checks that the hash in the escrow's datum is that of the listing that the user named. The check is needed
    /// because the service chose the escrow, and may be wrong or dishonest.
    fn must_be_of(&self, escrow: &Escrow, shop: &Shop) -> Result<(), Failure> {
        let Named::Listing(listing) = &self.purchase else { return Ok(()) };
        let sold = shop.service.listing(listing)?;
        if escrow.datum.input_hash == listing_input_hash(&sold.id, &sold.content_hash).as_bytes() {
            return Ok(());
        }
        Err(NotAsAsked::Terms(format!("the escrow that the service names is not for {listing}")).into())
    }
}

/// Prints a purchase's state and the actions that its buyer can take.
pub fn status(shop: &Shop, purchase: &PurchaseArgument) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    let known: Purchase = shop.service.get(&format!("/purchases/{id}"))?;
    let mut result = json!(known);
    let mut lines = vec![
        format!("purchase  {id}"),
        format!("listing   {}", plain(&known.listing_id)),
        format!("mode      {}", known.mode.as_str()),
        format!("status    {}", known.status.words()),
    ];
    for event in &known.events {
        lines.push(format!("  {}  {:<32}  {}", time_of(event.at), plain(event.words(known.mode)), event.tx_hash));
    }
    if let Some(decision) = &known.decision {
        lines.push(format!("arbiter   for the {}: {}", plain(&decision.winner), plain(&decision.reason)));
    }
    if known.mode == DeliveryMode::Protected {
        let path = format!("/purchases/{id}/action-draft");
        let PossibleActions { state, actions, .. } = shop.service.post(&path, Ask::default())?;
        // The watcher may be behind the chain.
        if state != known.status {
            lines.push(format!("on the chain already: {}", state.words()));
        }
        for possible in &actions {
            let when = match possible.timing {
                ActionTiming::Open => "now".to_owned(),
                ActionTiming::Early => format!("from {} on", time_of(possible.opens)),
                ActionTiming::Over => continue,
            };
            let command = possible.name.map(|action| told(action).0);
            let line = |command| format!("\n{}\n  `surety {command} {id}`  ({when})", plain(&possible.words));
            lines.extend(command.map(line));
        }
        if let Some(fields) = result.as_object_mut() {
            fields.extend([("state".into(), json!(state)), ("actions".into(), json!(actions))]);
        }
    }
    shop.tell.result(&result, &lines.join("\n"))
}

/// Arguments of `read`.
#[derive(Args)]
pub struct ReadArguments {
    #[command(flatten)]
    purchase: PurchaseArgument,
    /// Write the content to this file instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Prints the content of a purchase of the signed-in account.
pub fn read(shop: &Shop, ReadArguments { purchase, out }: &ReadArguments) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    let answer = account::ask(shop, "GET", &format!("/me/purchases/{id}/content"), None)?;
    if answer.status != 200 {
        return Err(answer.failure());
    }
    let bought: Purchase = shop.service.get(&format!("/purchases/{id}"))?;
    let told = json!({ "listing": bought.listing_id, "purchase": id });
    hand_over(shop, told, &answer.body, out.as_ref())
}

/// Reports to the service whether the delivered content is the listed one.
pub fn verdict(shop: &Shop, VerdictArguments { purchase, verdict }: &VerdictArguments) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    let (path, body) = (format!("/purchases/{id}/verification"), json!({ "verification": verdict }));
    let judged: Purchase = if is_from_balance(shop, &id)? {
        account::ask(shop, "POST", &path, Some(&body))?.json()?
    } else {
        let keys = shop.home.keys()?;
        let listing = purchase.listing(&id, shop)?;
        let bought: Purchase = shop.service.get(&format!("/purchases/{id}"))?;
        let proof = proof::of_purchase(keys.owner(&bought.buyer_address)?, &listing)?;
        shop.service.post(&path, Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::json(&body) })?
    };
    shop.tell.result(&json!(judged), &format!("verdict on {id}: {verdict}"))
}

/// Asks the service whether a purchase was paid from an account's Surety balance. In that case, the service signs the
/// actions on the purchase, and this wallet's key is not needed.
fn is_from_balance(shop: &Shop, id: &TxHash) -> Result<bool, Failure> {
    let answer = shop.service.ask("GET", &format!("/purchases/{id}"), Ask::default())?;
    // The service has not seen the purchase in a block yet.
    if answer.status == 404 {
        return Ok(false);
    }
    Ok(answer.json::<Purchase>()?.paid_from_balance == Some(true))
}

/// Disputes a delivery. Refuses a dispute that is certain to be lost, unless `--anyway` is given.
pub fn dispute(shop: &Shop, DisputeArguments { purchase, anyway }: &DisputeArguments) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    if !anyway {
        let possible: PossibleActions = shop.service.post(&format!("/purchases/{id}/action-draft"), Ask::default())?;
        let dispute = possible.actions.into_iter().find(|possible| possible.name == Some(BuyerAction::Dispute));
        if let Some(lost) = dispute.filter(|dispute| dispute.expected_winner.as_deref() == Some("seller")) {
            return Err(Failure::Refused(format!("{} `--anyway` disputes all the same", plain(&lost.words))));
        }
    }
    act(shop, purchase, BuyerAction::Dispute)
}

/// Performs a buyer's action on a protected purchase.
pub fn act(shop: &Shop, purchase: &PurchaseArgument, what: BuyerAction) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    if is_from_balance(shop, &id)? {
        let body = json!(NewBuyerAction { action: what });
        let path = format!("/me/purchases/{id}/actions");
        let done: SubmittedAction = account::ask(shop, "POST", &path, Some(&body))?.json()?;
        let words = format!("{} is submitted, in transaction {}: `surety status {id}`", what.name(), done.tx);
        return shop.tell.result(&json!(done), &words);
    }
    let keys = shop.home.keys()?;
    shop.chain.must_be_preprod()?;
    let _locked = shop.home.lock()?;
    for _ in 0..MAX_TRIES {
        let escrow = current(shop, &id, &keys)?;
        purchase.must_be_of(&escrow, shop)?;
        must_fit(what, &escrow, &id)?;
        not_early(&escrow, redeemer(what), shop.chain.clock()?)?;
        match attempt(shop, &id, (redeemer(what), &escrow), &keys) {
            Ok(tx) => {
                shop.tell.progress("the shop shows it within a minute: `surety status`");
                let result = json!({ "purchase": id, "action": redeemer(what).name(), "txHash": tx });
                return shop.tell.result(&result, &format!("{}, in transaction {tx}", told(what).1));
            }
            Err(Failure::Refused(why)) => {
                if !is_superseded(shop, &escrow, redeemer(what))? {
                    return Err(Failure::Refused(format!("{why}: `surety status {id}` says what can be done")));
                }
                shop.tell.progress("another transaction spent the escrow meanwhile: trying again");
            }
            Err(other) => return Err(other),
        }
    }
    Err(Failure::Unreachable("the escrow keeps changing: try again".into()))
}

/// Checks that the action will do what the user expects of the command. The contract has one action for both a refund
/// and a dispute: it opens a dispute if the seller has already posted the proof of delivery.
fn must_fit(what: BuyerAction, escrow: &Escrow, id: &TxHash) -> Result<(), Failure> {
    match (what, escrow.datum.has_result()) {
        (BuyerAction::RequestRefund, true) => Err(Failure::Refused(format!(
            "the proof of delivery is on the chain: `surety dispute {id}` disputes it, and the arbiter decides"
        ))),
        (BuyerAction::Dispute, false) => Err(Failure::Refused(format!(
            "there is no proof of delivery to dispute: `surety request-refund {id}` asks for the money back"
        ))),
        _ => Ok(()),
    }
}

fn attempt(shop: &Shop, id: &TxHash, (what, escrow): (Action, &Escrow), keys: &Keys) -> Result<TxHash, Failure> {
    let utxos = shop.chain.spendable(keys)?;
    // The address of the acting party must be sent separately, because it may have no unspent output.
    let addresses: Vec<Address> = escrow.datum.buyer.key_address().into_iter().collect();
    let body = json!({
        "action": what.name(), "utxos": described(&utxos)?, "changeAddress": keys.address(), "addresses": addresses,
    });
    let draft: DraftedTx = shop.service.post(&format!("/purchases/{id}/action-draft"), Ask::json(&body))?;
    let own = SigningWallet { keys, utxos: &utxos, now: shop.chain.clock()? };
    let tx = action(&draft, (what, escrow), &own)?;
    tell::under_way(format!(
        "transaction {} is signed, and may still get into a block: `surety status {id}` says what happened",
        tx.id
    ));
    shop.tell.progress(&format!("signed: fee {}, transaction {}", tx.fee.display_tada(), tx.id));
    match shop.chain.provider.submit(tx.cbor()) {
        // The answer may have been lost, so the chain is asked.
        Ok(()) | Err(ProviderError::Unreachable { .. }) => {}
        Err(refused) => return Err(refused.into()),
    }
    shop.tell.progress("waiting for a block");
    shop.chain.provider.wait_for(&tx.id, WAIT_SECONDS)?;
    Ok(tx.id)
}

/// Reads a purchase's current escrow output from the chain, without relying on the service.
///
/// # Errors
/// Returns an error if the buyer is not this wallet, if no block includes the purchase, or if the escrow has ended.
fn current(shop: &Shop, purchase: &TxHash, keys: &Keys) -> Result<Escrow, Failure> {
    let unknown = || Failure::Refused(format!("{purchase} is not in a block yet: try again in a minute"));
    let is_mine = |escrow: &Escrow| {
        escrow.datum.buyer.key_address().is_some_and(|address| keys.of(address.payment_key()).is_some())
    };
    let locked = made(shop, purchase)?.ok_or_else(unknown)?.into_iter().filter_map(|output| Escrow::of(output).ok());
    let buyer = keys.address();
    let none = || Failure::Refused(format!("{purchase} locked nothing for {buyer}: instant purchases are final"));
    let mut escrow = locked.into_iter().find(is_mine).ok_or_else(none)?;
    for _ in 0..MAX_STEPS {
        let Some(by) = shop.chain.spender_of(&escrow.utxo.reference)? else { return Ok(escrow) };
        match escrow.spent_into(&made(shop, &by)?.unwrap_or_default()) {
            Spent::Continues(next) => escrow = *next,
            Spent::Ended(_) => {
                return Err(Failure::Refused(format!("this escrow has ended, in {by}: `surety status {purchase}`")));
            }
        }
    }
    Err(Failure::Refused("this escrow has too many transactions to follow".into()))
}

/// Returns the outputs of a transaction, or `None` if no block includes it.
fn made(shop: &Shop, tx: &TxHash) -> Result<Option<Vec<Utxo>>, Failure> {
    let outputs = shop.chain.provider.outputs_of(tx)?;
    Ok(outputs.map(|outputs| outputs.into_iter().map(|output| output.utxo).collect()))
}

/// Returns an error if the contract permits the buyer's action only at a later time.
fn not_early(escrow: &Escrow, what: Action, now: Millis) -> Result<(), Failure> {
    let Some(Timing::Early(opens)) = escrow.datum.window(what).map(|window| window.timing(now, 0)) else {
        return Ok(());
    };
    let until = match what {
        Action::WithdrawRefund => ", if the seller has posted no result by then",
        _ => "",
    };
    let minutes = counted(opens.saturating_sub(now).div_ceil(60_000), "minute");
    Err(Failure::Refused(format!(
        "too early: the contract permits this from {} on (in {minutes}){until}. Nothing was signed",
        time_of(opens)
    )))
}

/// Waits for another transaction to spend the escrow, and returns whether one did. If the contract does not permit the
/// action now, returns `false` without waiting.
fn is_superseded(shop: &Shop, escrow: &Escrow, what: Action) -> Result<bool, Failure> {
    let now = shop.chain.clock()?;
    if escrow.datum.window(what).is_none_or(|window| window.timing(now, 0) != Timing::Open) {
        return Ok(false);
    }
    shop.tell.progress("waiting for another transaction that spends the escrow");
    for _ in 0..MOVE_SECONDS {
        if shop.chain.spender_of(&escrow.utxo.reference)?.is_some() {
            return Ok(true);
        }
        sleep(Duration::from_secs(1));
    }
    Ok(false)
}
