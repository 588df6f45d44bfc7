//! `surety buy`
//!
//! ```text
//!            kept from before? ──yes──────────────────────────────┐
//!                  │ no                                           v
//! owned? ──yes──> print   draft ──> verify, sign ──> keep ──> send the same header until the end is known
//!                                                                 │
//!            delivered: forget, print    cannot be on the chain any more: forget    else: keep, exit code 4
//! ```
//!
//! A signed payment is money that somebody else can move until its validity ends. So it is written down before it is sent,
//! and no other is made for the listing until the chain says what became of it.

use std::{
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    ContentHash, Lovelace, TxHash, TxRef,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
};
use clap::Args;
use market::{DeliveryMode, ListingId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xtask::escrow::blueprint::Blueprint;

use crate::{
    Shop,
    catalogue::listing_id,
    chain::{clock, described},
    failure::Failure,
    now_ms, proof,
    redelivery::{Owned, hand_over, redeliver, refusal, unlock},
    selling::mode as read_mode,
    service::{Answer, Ask, Listing},
    tell::plain,
    verify::{
        self, Own,
        payment::{Asked, Draft, payment},
    },
    wallet::{Ada, signer},
};

/// The contract in this repository.
const BLUEPRINT: &str = include_str!("../../../contracts/plutus.json");
/// How long one command waits for a payment's end: two blocks of preprod and a rollback.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between two requests that ask for the same.
const PAUSE: Duration = Duration::from_secs(2);
/// How long after its validity a payment is thought of: a fork may begin some blocks back.
const AFTER_THE_END_MS: Millis = 2 * 60 * 1_000;

/// What to buy, and how.
#[derive(Args)]
pub struct BuyArguments {
    /// The listing's id: lst_...
    #[arg(value_parser = listing_id)]
    listing: ListingId,
    /// Lock the money in the escrow, from which it comes back if nothing is delivered.
    #[arg(long)]
    protected: bool,
    /// As --protected, in a word: instant or protected.
    #[arg(long, value_parser = read_mode, conflicts_with = "protected")]
    mode: Option<DeliveryMode>,
    /// The most that it may cost, in ADA.
    #[arg(long, default_value = "10")]
    at_most: Ada,
    /// A file for what is bought, instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The blueprint (CIP-57) of the contract that money may be locked in, where it is not this repository's.
    #[arg(long, env = "ESCROW_BLUEPRINT")]
    contract: Option<PathBuf>,
}

/// A signed payment of which the end is not known.
#[derive(Deserialize, Serialize)]
struct Pending {
    /// The service that it was made out to.
    api: String,
    listing: ListingId,
    mode: DeliveryMode,
    price: Lovelace,
    fee: Lovelace,
    tx: TxHash,
    inputs: Vec<TxRef>,
    /// The end of its validity, POSIX ms.
    valid_until: Millis,
    content_hash: ContentHash,
    /// The value of PAYMENT-SIGNATURE.
    header: String,
}

impl Pending {
    fn name(listing: &ListingId) -> String {
        format!("pending/{listing}.json")
    }
}

/// What became of a payment, by the chain alone.
enum Fate {
    /// The money moved.
    InBlock,
    /// It cannot move any more.
    Dead,
    /// Nobody knows yet.
    Open,
}

/// Buys, or goes on with what was begun.
pub fn run(shop: &Shop, arguments: &BuyArguments) -> Result<(), Failure> {
    let id = &arguments.listing;
    let (key, address) = signer(shop)?;
    let _locked = shop.home.lock()?;
    if let Some(pending) = shop.home.read::<Pending>(&Pending::name(id))? {
        shop.tell.progress(&format!("going on with the payment {} of before", pending.tx));
        return settle(shop, &key, &pending, arguments);
    }
    let (listing, _) = shop.service.listing(id)?;
    let mode =
        arguments.mode.unwrap_or(if arguments.protected { DeliveryMode::Protected } else { DeliveryMode::Instant });
    let Ada(most) = arguments.at_most;
    let title = plain(&listing.title);
    if !listing.modes.contains(&mode) {
        let other = if mode == DeliveryMode::Instant { "--protected" } else { "--mode instant" };
        return Err(Failure::Refused(format!("{title} is not sold {}: try {other}", mode.as_str())));
    }
    if listing.price > most {
        let price = listing.price.display_tada();
        let more = price.trim_end_matches(" tADA");
        return Err(Failure::Refused(format!(
            "{title} costs {price}, and {} is the most that is paid: --at-most {more} allows it",
            most.display_tada()
        )));
    }
    if listing.seller.payment_key() == address.payment_key() {
        return Err(Failure::Refused(format!("{title} is this wallet's own listing: buy with another, --wallet NAME")));
    }
    if let Some(Owned { purchase, content }) = redeliver(shop, &key, id)? {
        shop.tell.progress(&format!("bought before, in {purchase}: nothing is paid"));
        let told = json!({ "listing": id, "purchase": purchase, "alreadyOwned": true });
        return hand_over(shop, told, &content, arguments.out.as_ref());
    }
    let pending = make_out(shop, &key, (id, &listing, mode), arguments)?;
    shop.home.write(&Pending::name(id), &pending)?;
    settle(shop, &key, &pending, arguments)
}

/// A payment for the listing: drafted by the service, held against what was asked for, signed; not sent.
fn make_out(
    shop: &Shop,
    key: &SigningKey,
    (id, listing, mode): (&ListingId, &Listing, DeliveryMode),
    arguments: &BuyArguments,
) -> Result<Pending, Failure> {
    let address = key.enterprise_address();
    shop.chain.must_be_preprod()?;
    let utxos = shop.chain.spendable(&address)?;
    if utxos.is_empty() {
        return Err(Failure::Refused(format!(
            "the wallet is empty: `surety fund` gets money from a local ledger; on preprod send tADA to {address}"
        )));
    }
    let body = json!({ "mode": mode, "utxos": described(&utxos, &address)?, "changeAddress": address });
    let ask = Ask { body: Some(body), ..Ask::default() };
    let draft: Draft = shop.service.json("POST", &format!("/listings/{id}/payment-draft"), ask)?;
    let blueprint = match &arguments.contract {
        Some(path) => Blueprint::load(path),
        None => Blueprint::parse(BLUEPRINT),
    };
    let blueprint = blueprint.map_err(|error| Failure::Usage(format!("--contract: {error}")))?;
    let (parameters, now) = (shop.chain.parameters()?, clock(&shop.chain.tip()?));
    let asked = Asked { listing, mode, blueprint: &blueprint, parameters: &parameters };
    let made = payment(&draft, &asked, &Own { address, utxos: &utxos, now }, key)?;
    let (fee, change) = (made.tx.fee, verify::change_of(&made.tx, &address));
    let how = if mode == DeliveryMode::Instant { "pays the seller" } else { "locks in the escrow" };
    shop.tell.progress(&format!(
        "{}\n{how} {} {}\nfee {}, {} come back; transaction {}",
        plain(&listing.title),
        made.pay_to,
        made.paid.display_tada(),
        fee.display_tada(),
        change.display_tada(),
        made.tx.id,
    ));
    if let Some(terms) = &made.terms {
        let minutes = |at: Millis| at.saturating_sub(now) / 60_000;
        let deadlines = terms.deadlines();
        shop.tell.progress(&format!(
            "no result within {} minutes: `surety refund`; a wrong one within {}: `surety request-refund`",
            minutes(deadlines.submit_result),
            minutes(deadlines.unlock),
        ));
    }
    let until = made.tx.ttl.and_then(|slot| SlotConfig::PREPROD.slot_begins_at(slot));
    Ok(Pending {
        api: shop.service.base().to_owned(),
        listing: id.clone(),
        mode,
        price: listing.price,
        fee,
        tx: made.tx.id,
        inputs: made.tx.inputs.clone(),
        valid_until: until.unwrap_or(Millis::MAX),
        content_hash: listing.content_hash,
        header: header(draft.payment, made.tx.cbor()),
    })
}

/// PAYMENT-SIGNATURE: the draft's payment with the signed transaction in it.
fn header(mut payment: Value, cbor: &[u8]) -> String {
    if let Some(payload) = payment.get_mut("payload").and_then(Value::as_object_mut) {
        payload.insert("transaction".into(), json!(STANDARD.encode(cbor)));
    }
    STANDARD.encode(payment.to_string())
}

/// Sends the payment until its end is known.
fn settle(shop: &Shop, key: &SigningKey, pending: &Pending, arguments: &BuyArguments) -> Result<(), Failure> {
    if pending.api != shop.service.base() {
        return Err(Failure::Usage(format!(
            "a payment for {} was made out to {}: go on there with --api {0}",
            pending.api, pending.listing
        )));
    }
    let began = Instant::now();
    let mut public = false;
    let mut last = String::from("no answer");
    while began.elapsed() < PATIENCE {
        let proof = if public { Some(proof::of_purchase(key, pending.listing.as_str())?) } else { None };
        let mut headers = vec![("payment-signature", pending.header.as_str())];
        headers.extend(proof.as_deref().map(|proof| (proof::HEADER, proof)));
        match shop.service.ask("GET", &unlock(&pending.listing), Ask { headers, body: None, patient: true }) {
            Err(failure) => last = failure.to_string(),
            Ok(answer) if answer.status == 200 => return deliver(shop, pending, &answer, arguments),
            Ok(answer) => {
                last = answer.words();
                match refusal(&answer).as_deref() {
                    Some("settlement_pending") => shop.tell.progress("on its way, in no block yet"),
                    // The network had it before the service: the payer has to say that it is theirs.
                    Some("payment_public") if !public => public = true,
                    _ if matches!(answer.failure(), Failure::Unreachable(_)) => {}
                    _ => return refused(shop, key, pending, &last, arguments),
                }
            }
        }
        shop.tell.progress(&format!("waiting ({last})"));
        sleep(PAUSE);
    }
    Err(unknown(pending, &last))
}

fn unknown(pending: &Pending, why: &str) -> Failure {
    Failure::Pending(format!(
        "it is not known yet whether {} was paid in {} ({why}): the same command again goes on with the same payment, and \
         never pays twice",
        pending.price.display_tada(),
        pending.tx
    ))
}

/// The service takes no such payment. Whether it moved the money, the chain alone says.
fn refused(
    shop: &Shop,
    key: &SigningKey,
    pending: &Pending,
    why: &str,
    arguments: &BuyArguments,
) -> Result<(), Failure> {
    match fate(shop, pending)? {
        Fate::InBlock => {
            if let Some(Owned { purchase, content }) = redeliver(shop, key, &pending.listing)? {
                shop.home.remove(&Pending::name(&pending.listing))?;
                let told = json!({ "listing": pending.listing, "purchase": purchase, "alreadyOwned": true });
                return hand_over(shop, told, &content, arguments.out.as_ref());
            }
            Err(Failure::Pending(format!(
                "{} is in a block, and the service does not deliver ({why}): the payment is kept, try again later",
                pending.tx
            )))
        }
        Fate::Dead => {
            shop.home.remove(&Pending::name(&pending.listing))?;
            Err(Failure::Refused(format!("{why}. Nothing was paid; the same command again makes a new payment")))
        }
        Fate::Open => {
            let end = pending.valid_until.saturating_add(AFTER_THE_END_MS);
            let seconds = end.saturating_sub(now_ms()) / 1_000;
            Err(Failure::Pending(format!(
                "{why}. The signed payment {} could still be used for {seconds} seconds, so no other is made before",
                pending.tx
            )))
        }
    }
}

fn fate(shop: &Shop, pending: &Pending) -> Result<Fate, Failure> {
    if shop.chain.outputs_of(&pending.tx)?.is_some() {
        return Ok(Fate::InBlock);
    }
    if shop.chain.tip()?.time_ms > pending.valid_until.saturating_add(AFTER_THE_END_MS) {
        return Ok(Fate::Dead);
    }
    for input in &pending.inputs {
        let made = shop.chain.outputs_of(&input.tx)?.unwrap_or_default();
        if made
            .iter()
            .any(|output| output.utxo.reference == *input && output.spent_by.is_some_and(|by| by != pending.tx))
        {
            return Ok(Fate::Dead);
        }
    }
    Ok(Fate::Open)
}

/// The transaction that PAYMENT-RESPONSE names.
fn settled_by(answer: &Answer) -> Option<TxHash> {
    let settlement = STANDARD.decode(answer.header("payment-response")?).ok()?;
    let settlement: Value = serde_json::from_slice(&settlement).ok()?;
    settlement.get("transaction")?.as_str()?.parse().ok()
}

/// What was bought is there.
fn deliver(shop: &Shop, pending: &Pending, answer: &Answer, arguments: &BuyArguments) -> Result<(), Failure> {
    let Pending { listing, mode, price, fee, .. } = pending;
    // Where the wallet owned it already, the earlier purchase; this payment was then not broadcast.
    let tx = settled_by(answer).unwrap_or(pending.tx);
    shop.tell.progress(&format!("bought: purchase {tx}"));
    let as_listed = ContentHash::of(&answer.body) == pending.content_hash;
    let told = json!({
        "listing": listing, "purchase": tx, "mode": mode, "priceLovelace": price, "feeLovelace": fee,
        "alreadyOwned": false, "contentHash": pending.content_hash, "asListed": as_listed,
    });
    hand_over(shop, told, &answer.body, arguments.out.as_ref())?;
    shop.home.remove(&Pending::name(listing))?;
    if as_listed {
        return Ok(());
    }
    let advice = match mode {
        DeliveryMode::Protected => format!("`surety request-refund {tx}` disputes it"),
        DeliveryMode::Instant => format!("`surety verdict {tx} mismatch` says so"),
    };
    Err(Failure::Refused(format!("what was delivered is not what was listed (its SHA-256 is another): {advice}")))
}
