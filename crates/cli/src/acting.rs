//! `surety status`, `request-refund`, `refund`, `release`, `verdict`: after a purchase.

use std::{thread::sleep, time::Duration};

use api_types::{DeliveryMode, Purchase, PurchaseStatus};
use cardano::{
    Address, TxHash,
    chain::{TracedOutput, Utxo},
    keys::SigningKey,
    slots::Millis,
};
use clap::Args;
use escrow::{Action, Datum};
use market::ListingId;
use provider::ProviderError;
use serde_json::{Value, json};
use time::OffsetDateTime;
use x402_cardano::escrow::listing_input_hash;

use crate::{
    Shop,
    chain::{clock, described},
    failure::Failure,
    proof,
    service::Ask,
    settling::Purchased,
    tell::plain,
    verify::{
        NotAsAsked, Own,
        action::{Draft, Escrow, action},
    },
    wallet::signer,
};

/// How long a transaction may take to a block, in seconds: it is valid for three minutes.
const WAIT_SECONDS: u64 = 240;
/// How often an action is drafted anew because the escrow moved meanwhile.
const MAX_TRIES: u32 = 3;
/// How long another transaction may take to a block, in seconds.
const MOVE_SECONDS: u32 = 90;
/// Steps of an escrow that are followed.
const MAX_STEPS: usize = 32;

/// Which purchase.
#[derive(Args)]
pub struct PurchaseArgument {
    /// The purchase's id (64 hexadecimal characters), or the id of the listing that this wallet bought.
    #[arg(value_parser = named)]
    purchase: Named,
}

/// Whether what was bought is what was listed.
#[derive(Args)]
pub struct VerdictArguments {
    #[command(flatten)]
    purchase: PurchaseArgument,
    /// ok, mismatch or no_result_yet.
    #[arg(value_parser = ["ok", "mismatch", "no_result_yet"])]
    verdict: String,
}

/// A purchase as people name it.
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
    /// The purchase's id.
    ///
    /// # Errors
    /// The wallet bought nothing of the listing, or the service cannot be asked.
    pub fn id(&self, shop: &Shop) -> Result<TxHash, Failure> {
        match &self.purchase {
            Named::Purchase(id) => Ok(*id),
            Named::Listing(listing) => {
                let (_, address) = signer(shop)?;
                let (sold, _) = shop.service.listing(listing)?;
                let query = format!("/purchases?seller={}&buyer={address}", sold.seller_address);
                let bought: Vec<Purchase> = shop.service.json("GET", &query, Ask::default())?;
                let is_it =
                    |one: &&Purchase| one.listing_id == listing.as_str() && one.status != PurchaseStatus::Refunded;
                let none =
                    || Failure::Refused(format!("{address} owns no purchase of {listing}: name it by its own id"));
                Ok(bought.iter().find(is_it).ok_or_else(none)?.id)
            }
        }
    }

    /// The listing of a purchase, as it was named or is known here. The service could name another, for which the
    /// wallet's signature would open content bought elsewhere.
    fn listing(&self, id: &TxHash, shop: &Shop) -> Result<ListingId, Failure> {
        if let Named::Listing(listing) = &self.purchase {
            return Ok(listing.clone());
        }
        let known = Purchased::kept(shop, id)?.filter(|known| known.api == shop.service.base());
        let unknown = || Failure::Usage(format!("this program did not buy {id} here: name the listing that it is of"));
        known.map(|known| known.listing).ok_or_else(unknown)
    }

    /// That an escrow is of the listing that was named, whatever the service says of its purchase.
    fn must_be_of(&self, escrow: &Escrow, shop: &Shop) -> Result<(), Failure> {
        let Named::Listing(listing) = &self.purchase else { return Ok(()) };
        let (sold, _) = shop.service.listing(listing)?;
        let same = escrow.datum.input_hash == listing_input_hash(listing.as_str(), &sold.content_hash).as_bytes();
        let other = || NotAsAsked::Terms(format!("the escrow that the service names is not of {listing}"));
        if same { Ok(()) } else { Err(other().into()) }
    }
}

/// Prints the purchase's state, and what can be done.
pub fn status(shop: &Shop, purchase: &PurchaseArgument) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    let (known, mut told): (Purchase, Value) = shop.service.told("GET", &format!("/purchases/{id}"), Ask::default())?;
    let mut lines = vec![
        format!("purchase  {id}"),
        format!("listing   {}", says(&told, "listingId")),
        format!("mode      {}", says(&told, "mode")),
        format!("status    {}", known.status.words()),
    ];
    for event in &known.events {
        lines.push(format!("  {}  {:<32}  {}", time_of(event.at), plain(event.words(known.mode)), event.tx_hash));
    }
    if known.mode == DeliveryMode::Protected {
        let possible = possible(shop, &id)?;
        // The chain's state, which the watcher may not have read yet.
        let state = says(&possible, "state");
        if state != known.status.name() {
            let known = serde_json::from_value::<PurchaseStatus>(json!(state));
            let words = known.map_or_else(|_| state.clone(), |known| known.words().to_owned());
            lines.push(format!("on the chain already: {words}"));
        }
        let actions = possible.get("actions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        lines.extend(actions.iter().filter_map(|one| can_be_done(one, &id)));
        if let Some(fields) = told.as_object_mut() {
            fields.insert("state".into(), json!(state));
            fields.insert("actions".into(), json!(actions));
        }
    }
    shop.tell.result(&told, &lines.join("\n"))
}

/// An action of the buyer's that is still possible, with its command.
fn can_be_done(action: &Value, id: &TxHash) -> Option<String> {
    let command = command(&says(action, "action"))?;
    let when = match says(action, "timing").as_str() {
        "open" => "now".to_owned(),
        "early" => format!("from {} on", says(action, "opens").parse().map(time_of).unwrap_or_default()),
        _ => return None,
    };
    Some(format!("\n{}\n  `surety {command} {id}`  ({when})", says(action, "words")))
}

fn possible(shop: &Shop, id: &TxHash) -> Result<Value, Failure> {
    shop.service.json("POST", &format!("/purchases/{id}/action-draft"), Ask::default())
}

fn says(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).map(plain).unwrap_or_default()
}

/// POSIX ms as people say it: `26 Nov 2026, 17:05 UTC`.
fn time_of(ms: Millis) -> String {
    let format = time::macros::format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
    let time = i64::try_from(ms / 1_000).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(format).ok()).unwrap_or_else(|| "at no known time".to_owned())
}

/// What is done once it is in a block.
const fn done(what: Action) -> &'static str {
    match what {
        Action::SetRefundRequested => "the money is asked back",
        Action::WithdrawRefund => "the money is back in the wallet",
        Action::AuthorizeWithdrawal => "the money is released to the seller",
        // The seller's and the arbiter's.
        Action::SubmitResult | Action::AuthorizeRefund | Action::Withdraw | Action::WithdrawDisputed => what.name(),
    }
}

/// The command for an action that is the buyer's.
fn command(action: &str) -> Option<&'static str> {
    match action {
        "SetRefundRequested" => Some("request-refund"),
        "WithdrawRefund" => Some("refund"),
        "AuthorizeWithdrawal" => Some("release"),
        _ => None,
    }
}

/// Says whether it is what was listed.
pub fn verdict(shop: &Shop, VerdictArguments { purchase, verdict }: &VerdictArguments) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    let key = shop.home.key()?;
    let listing = purchase.listing(&id, shop)?;
    let proof = proof::of_purchase(&key, listing.as_str())?;
    let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::json(json!({ "verification": verdict })) };
    let told: Value = shop.service.json("POST", &format!("/purchases/{id}/verification"), ask)?;
    shop.tell.result(&told, &format!("verdict on {id}: {verdict}"))
}

/// Does one thing with a protected purchase's escrow.
pub fn act(shop: &Shop, purchase: &PurchaseArgument, what: Action) -> Result<(), Failure> {
    let id = purchase.id(shop)?;
    let (key, address) = signer(shop)?;
    shop.chain.must_be_preprod()?;
    let _locked = shop.home.lock()?;
    for tries in 1..=MAX_TRIES {
        let escrow = current(shop, &id, &address)?;
        purchase.must_be_of(&escrow, shop)?;
        match attempt(shop, &id, (what, &escrow), (&key, &address)) {
            Err(failure) => {
                let again = tries < MAX_TRIES && matches!(failure, Failure::Refused(_)) && is_open(shop, &id, what)?;
                if !again || !moves(shop, &escrow)? {
                    return Err(advised(failure, &id));
                }
                shop.tell.progress("another transaction spent the escrow meanwhile: trying again");
            }
            Ok(tx) => {
                let words = format!("{}, in transaction {tx}", done(what));
                shop.tell.progress("the shop shows it within a minute: `surety status`");
                return shop.tell.result(&json!({ "purchase": id, "action": what.name(), "txHash": tx }), &words);
            }
        }
    }
    Err(Failure::Unreachable("the escrow goes on too fast: try again".into()))
}

fn attempt(
    shop: &Shop,
    id: &TxHash,
    (what, escrow): (Action, &Escrow),
    (key, address): (&SigningKey, &Address),
) -> Result<TxHash, Failure> {
    let utxos = shop.chain.spendable(address)?;
    let body = json!({ "action": what.name(), "utxos": described(&utxos, address)?, "changeAddress": address });
    let draft: Draft = shop.service.json("POST", &format!("/purchases/{id}/action-draft"), Ask::json(body))?;
    let own = Own { address: *address, utxos: &utxos, now: clock(&shop.chain.provider.tip()?) };
    let tx = action(&draft, (what, escrow), &own, key)?;
    shop.tell.progress(&format!("signed: fee {}, transaction {}", tx.fee.display_tada(), tx.id));
    match shop.chain.provider.submit(tx.cbor()) {
        // The answer may have been lost: the chain tells.
        Ok(()) | Err(ProviderError::Unreachable { .. }) => {}
        Err(ProviderError::Refused(why)) => {
            return Err(Failure::Refused(format!("the ledger refuses it: {}", plain(&why))));
        }
        Err(other) => return Err(other.into()),
    }
    shop.tell.progress("waiting for a block");
    shop.chain.provider.wait_for(&tx.id, WAIT_SECONDS)?;
    Ok(tx.id)
}

/// The escrow of a purchase of this wallet's, as the chain has it now: read from there, not from the service.
fn current(shop: &Shop, purchase: &TxHash, buyer: &Address) -> Result<Escrow, Failure> {
    let outputs = shop.chain.provider.outputs_of(purchase)?;
    let outputs =
        outputs.ok_or_else(|| Failure::Refused(format!("no block has {purchase} yet: try again in a minute")))?;
    let mine = outputs.into_iter().find_map(|output| {
        let datum = datum_of(&output.utxo)?;
        let key = datum.buyer.key_address().map(|address| *address.payment_key());
        (key.as_ref() == Some(buyer.payment_key())).then_some((output, datum))
    });
    let none = || Failure::Refused(format!("{purchase} locked nothing for {buyer}: instant purchases are final"));
    let (mut output, mut datum) = mine.ok_or_else(none)?;
    for _ in 0..MAX_STEPS {
        let TracedOutput { utxo, spent_by, .. } = output;
        let Some(by) = spent_by else { return Ok(Escrow { utxo, datum }) };
        let next = shop.chain.provider.outputs_of(&by)?.unwrap_or_default().into_iter().find_map(|output| {
            let next = datum_of(&output.utxo)?;
            // The signature of its terms tells an escrow from others.
            let same = output.utxo.address == utxo.address && next.reference_signature == datum.reference_signature;
            same.then_some((output, next))
        });
        let ended = || Failure::Refused(format!("this escrow has ended, in {by}: `surety status {purchase}`"));
        (output, datum) = next.ok_or_else(ended)?;
    }
    Err(Failure::Refused("this escrow has gone through too many steps".into()))
}

fn datum_of(utxo: &Utxo) -> Option<Datum> {
    Datum::from_cbor(utxo.inline_datum.as_ref()?).ok()
}

/// What was refused, and where it says what is possible.
fn advised(failure: Failure, id: &TxHash) -> Failure {
    match failure {
        Failure::Refused(words) => Failure::Refused(format!("{words}: `surety status {id}` says what can be done")),
        other => other,
    }
}

/// Whether the service itself says that this can be done now: then another party's transaction came first.
fn is_open(shop: &Shop, id: &TxHash, what: Action) -> Result<bool, Failure> {
    let possible = possible(shop, id)?;
    let open = |one: &Value| says(one, "action") == what.name() && says(one, "timing") == "open";
    Ok(possible.get("actions").and_then(Value::as_array).into_iter().flatten().any(open))
}

/// Waits for the transaction that goes before ours, if there is one.
fn moves(shop: &Shop, escrow: &Escrow) -> Result<bool, Failure> {
    shop.tell.progress("waiting for another transaction that spends the escrow");
    let reference = escrow.utxo.reference;
    for _ in 0..MOVE_SECONDS {
        let outputs = shop.chain.provider.outputs_of(&reference.tx)?.unwrap_or_default();
        if outputs.iter().any(|output| output.utxo.reference == reference && output.spent_by.is_some()) {
            return Ok(true);
        }
        sleep(Duration::from_secs(1));
    }
    Ok(false)
}
