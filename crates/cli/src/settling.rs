//! A signed payment without a known outcome: kept, sent, and forgotten when its end is known.

use std::{
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{ContentHash, Lovelace, TxHash, TxRef, keys::SigningKey, slots::Millis};
use market::{DeliveryMode, ListingId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use x402_cardano::wire::{PaymentRequirements, decode_header};

use crate::{
    Shop,
    failure::Failure,
    now_ms, proof,
    redelivery::{hand_over, hand_over_again, not_as_listed, redeliver, refusal, unlock},
    service::{Answer, Ask},
};

/// How long one command waits for a payment's end: two blocks of preprod and a rollback.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between two requests that ask for the same.
const PAUSE: Duration = Duration::from_secs(2);
/// How long after its validity a payment is thought of: a fork may begin some blocks back.
const AFTER_THE_END_MS: Millis = 2 * 60 * 1_000;

/// A signed payment of which the end is not known.
#[derive(Deserialize, Serialize)]
pub struct Pending {
    /// The service that it was made out to.
    pub api: String,
    pub listing: ListingId,
    pub mode: DeliveryMode,
    pub price: Lovelace,
    pub fee: Lovelace,
    pub tx: TxHash,
    pub inputs: Vec<TxRef>,
    /// The end of its validity, POSIX ms.
    pub valid_until: Millis,
    pub content_hash: ContentHash,
    /// The value of PAYMENT-SIGNATURE.
    pub header: String,
}

impl Pending {
    /// The one that is kept for a listing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn kept(shop: &Shop, listing: &ListingId) -> Result<Option<Self>, Failure> {
        shop.home.read(&Self::name(listing))
    }

    /// Keeps it: before anyone else has it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.write(&Self::name(&self.listing), self)
    }

    fn forget(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.remove(&Self::name(&self.listing))
    }

    fn terms(&self) -> Option<Terms> {
        let payload: Value = decode_header(&self.header).ok()?;
        let accepted = serde_json::from_value(payload.get("accepted")?.clone()).ok()?;
        Some(Terms { content_hash: self.content_hash, price: self.price, accepted })
    }

    fn name(listing: &ListingId) -> String {
        format!("pending/{listing}.json")
    }
}

/// What a purchase was of, and of which service: a proof for its listing goes to no other service.
#[derive(Deserialize, Serialize)]
pub struct Purchased {
    pub api: String,
    pub listing: ListingId,
    /// The receipt that the service signed: a compact JWS.
    #[serde(default)]
    pub receipt: Option<String>,
    /// What it was bought under: a listing that is taken off sale no longer shows it.
    #[serde(default)]
    pub terms: Option<Terms>,
}

/// What a purchase was bought under.
#[derive(Deserialize, Serialize)]
pub struct Terms {
    pub content_hash: ContentHash,
    pub price: Lovelace,
    /// The entry of `accepts` that was paid.
    pub accepted: PaymentRequirements,
}

impl Purchased {
    /// What this wallet bought by a transaction.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn kept(shop: &Shop, purchase: &TxHash) -> Result<Option<Self>, Failure> {
        shop.home.read(&Self::name(purchase))
    }

    fn name(purchase: &TxHash) -> String {
        format!("bought/{purchase}.json")
    }
}

/// The outcome of a payment, by the chain alone.
enum Fate {
    /// The money moved.
    InBlock,
    /// It cannot move any more.
    Dead,
    /// Not decided yet.
    Open,
}

/// Sends the payment until its end is known, and hands over what it bought.
///
/// # Errors
/// It is not known, or it bought nothing.
pub fn settle(shop: &Shop, key: &SigningKey, pending: &Pending, out: Option<&PathBuf>) -> Result<(), Failure> {
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
        match shop.service.ask("GET", &unlock(&pending.listing), Ask { headers, patient: true, ..Ask::default() }) {
            Err(failure) => last = failure.to_string(),
            Ok(answer) if answer.status == 200 => return deliver(shop, pending, &answer, out),
            Ok(answer) => {
                last = answer.words();
                match refusal(&answer).as_deref() {
                    Some("settlement_pending") => shop.tell.progress("submitted, in no block yet"),
                    // The network had it before the service: the payer has to say that it is theirs.
                    Some("payment_public") if !public => public = true,
                    _ if matches!(answer.failure(), Failure::Unreachable(_)) => {}
                    _ => return refused(shop, key, pending, &last, out),
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
fn refused(shop: &Shop, key: &SigningKey, pending: &Pending, why: &str, out: Option<&PathBuf>) -> Result<(), Failure> {
    match fate(shop, pending)? {
        Fate::InBlock => {
            if let Some(owned) = redeliver(shop, key, &pending.listing)? {
                pending.forget(shop)?;
                return hand_over_again(shop, (&pending.listing, &pending.content_hash), &owned, out);
            }
            Err(Failure::Pending(format!(
                "{} is in a block, and the service does not deliver ({why}): the payment is kept, try again later",
                pending.tx
            )))
        }
        Fate::Dead => {
            pending.forget(shop)?;
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
    if shop.chain.provider.outputs_of(&pending.tx)?.is_some() {
        return Ok(Fate::InBlock);
    }
    if shop.chain.provider.tip()?.time_ms > pending.valid_until.saturating_add(AFTER_THE_END_MS) {
        return Ok(Fate::Dead);
    }
    for input in &pending.inputs {
        let made = shop.chain.provider.outputs_of(&input.tx)?.unwrap_or_default();
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
    settlement(answer)?.get("transaction")?.as_str()?.parse().ok()
}

/// The receipt in PAYMENT-RESPONSE.
fn receipt_in(answer: &Answer) -> Option<String> {
    Some(settlement(answer)?.pointer("/extensions/offer-receipt/info/receipt/signature")?.as_str()?.to_owned())
}

fn settlement(answer: &Answer) -> Option<Value> {
    let settlement = STANDARD.decode(answer.header("payment-response")?).ok()?;
    serde_json::from_slice(&settlement).ok()
}

/// What was bought is there.
fn deliver(shop: &Shop, pending: &Pending, answer: &Answer, out: Option<&PathBuf>) -> Result<(), Failure> {
    let Pending { listing, mode, price, fee, .. } = pending;
    // Where the wallet owned it already, the earlier purchase; this payment was then not broadcast.
    let tx = settled_by(answer).unwrap_or(pending.tx);
    shop.tell.progress(&format!("bought: purchase {tx}"));
    let as_listed = ContentHash::of(&answer.body) == pending.content_hash;
    let told = json!({
        "listing": listing, "purchase": tx, "mode": mode, "priceLovelace": price, "feeLovelace": fee,
        "alreadyOwned": false, "contentHash": pending.content_hash, "asListed": as_listed,
    });
    hand_over(shop, told, &answer.body, out)?;
    let (api, receipt, terms) = (pending.api.clone(), receipt_in(answer), pending.terms());
    let purchased = Purchased { api, listing: listing.clone(), receipt, terms };
    shop.home.write(&Purchased::name(&tx), &purchased)?;
    // Who delivers something else may not have handed the payment in: it is kept while it could still be used.
    if as_listed || !matches!(fate(shop, pending)?, Fate::Open) {
        pending.forget(shop)?;
    }
    if as_listed {
        return Ok(());
    }
    let advice = match mode {
        DeliveryMode::Protected => format!("`surety request-refund {tx}` disputes it"),
        DeliveryMode::Instant => format!("`surety verdict {listing} mismatch` says so"),
    };
    Err(not_as_listed(&advice))
}
