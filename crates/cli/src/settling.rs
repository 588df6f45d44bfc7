//! A signed payment without a known outcome: kept, sent, and forgotten when its end is known.

use std::{
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use api_types::Listing;
use cardano::{Lovelace, TxHash, TxRef, keys::SigningKey, slots::Millis};
use market::DeliveryMode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use x402_cardano::{
    request_commitment::{self, Salt},
    wire::{PaymentRequirements, SettlementResponse, decode_header, offer_receipt},
};

use crate::{
    Shop,
    failure::Failure,
    now_ms, proof,
    redelivery::{hand_over_again, hand_over_as_listed, redeliver, refusal, unlock},
    service::{Answer, Ask},
};

/// How long one command waits for a payment's end: two blocks of preprod and a rollback.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between two requests that ask for the same.
const PAUSE: Duration = Duration::from_secs(2);
/// How long after its validity a payment is thought of: a fork may begin some blocks back.
const AFTER_THE_END_MS: Millis = 2 * 60 * 1_000;

/// A signed payment: what it is of, and of which service. A proof for its listing goes to no other service; a listing that is
/// taken off sale no longer shows what it was bought under.
#[derive(Deserialize, Serialize)]
pub struct Payment {
    /// The service that it was made out to.
    pub api: String,
    /// What is bought, as it was listed.
    pub listing: Listing,
    pub mode: DeliveryMode,
    /// The entry of `accepts` that it pays.
    pub accepted: PaymentRequirements,
    pub fee: Lovelace,
    pub tx: TxHash,
    pub inputs: Vec<TxRef>,
    /// The end of its validity, POSIX ms.
    pub valid_until: Millis,
    /// The value of PAYMENT-SIGNATURE.
    pub header: String,
    /// The receipt that the service signed when it delivered: a compact JWS.
    pub receipt: Option<String>,
}

/// The outcome of a payment, by the chain alone.
#[derive(PartialEq)]
enum Fate {
    /// The money moved.
    InBlock,
    /// It cannot move any more.
    Dead,
    /// Not decided yet.
    Open,
}

/// The file of a payment of which the end is not known, by its listing.
fn pending(listing: &str) -> String {
    format!("pending/{listing}.json")
}

/// The file of what a transaction bought.
fn bought(purchase: &TxHash) -> String {
    format!("bought/{purchase}.json")
}

impl Payment {
    /// The one of which the end is not known, for a listing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn pending(shop: &Shop, listing: &str) -> Result<Option<Self>, Failure> {
        shop.home.read(&pending(listing))
    }

    /// The one that bought this from this service.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_purchase(shop: &Shop, purchase: &TxHash) -> Result<Option<Self>, Failure> {
        let kept: Option<Self> = shop.home.read(&bought(purchase))?;
        Ok(kept.filter(|kept| kept.api == shop.service.base()))
    }

    /// The salt under which the payment commits to its request, if it does.
    pub fn salt(&self) -> Option<Salt> {
        let payment: Value = decode_header(&self.header).ok()?;
        let salt = payment.get("extensions")?.get(request_commitment::NAME)?.pointer("/info/salt")?.as_str()?;
        Some(Salt::new(hex::decode(salt).ok()?.try_into().ok()?))
    }

    /// Keeps the payment until its end is known: before anyone else has it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.write(&pending(&self.listing.id), self)
    }

    fn forget(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.remove(&pending(&self.listing.id))
    }

    /// Sends the payment until its end is known, and hands over what it bought.
    ///
    /// # Errors
    /// It is not known, or it bought nothing.
    pub fn settle(mut self, shop: &Shop, key: &SigningKey, out: Option<&PathBuf>) -> Result<(), Failure> {
        if self.api != shop.service.base() {
            return Err(Failure::Usage(format!(
                "a payment for {} was made out to {1}: go on there with --api {1}",
                self.listing.id, self.api
            )));
        }
        let began = Instant::now();
        let mut proof = None;
        let mut last = String::from("no answer");
        while began.elapsed() < PATIENCE {
            let mut headers = vec![("payment-signature", self.header.as_str())];
            headers.extend(proof.as_deref().map(|proof| (proof::HEADER, proof)));
            match shop.service.ask("GET", &unlock(&self.listing.id), Ask { headers, ..Ask::default() }) {
                Err(failure) => last = failure.to_string(),
                Ok(answer) if answer.status == 200 => return self.deliver(shop, &answer, out),
                Ok(answer) => {
                    last = answer.words();
                    match refusal(&answer).as_deref() {
                        Some("settlement_pending") => shop.tell.progress("submitted, in no block yet"),
                        // The network had it before the service: the payer has to say that it is theirs.
                        Some("payment_public") if proof.is_none() => {
                            proof = Some(proof::of_purchase(key, &self.listing.id)?);
                        }
                        _ if matches!(answer.failure(), Failure::Unreachable(_)) => {}
                        _ => return self.refused(shop, key, &last, out),
                    }
                }
            }
            shop.tell.progress(&format!("waiting ({last})"));
            sleep(PAUSE);
        }
        Err(Failure::Pending(format!(
            "it is not known yet whether {} was paid in {} ({last}): the same command again goes on with the same payment, \
             and never pays twice",
            self.listing.price_lovelace.display_tada(),
            self.tx
        )))
    }

    /// The service takes no such payment. Whether it moved the money, the chain alone says.
    fn refused(&self, shop: &Shop, key: &SigningKey, why: &str, out: Option<&PathBuf>) -> Result<(), Failure> {
        let Self { listing, tx, .. } = self;
        match self.fate(shop)? {
            Fate::InBlock => {
                if let Some(owned) = redeliver(shop, key, &listing.id)? {
                    self.forget(shop)?;
                    return hand_over_again(shop, (&listing.id, &listing.content_hash), &owned, out);
                }
                Err(Failure::Pending(format!(
                    "{tx} is in a block, and the service does not deliver ({why}): the payment is kept, try again later"
                )))
            }
            Fate::Dead => {
                self.forget(shop)?;
                Err(Failure::Refused(format!("{why}. Nothing was paid; the same command again makes a new payment")))
            }
            Fate::Open => {
                let seconds = self.end().saturating_sub(now_ms()) / 1_000;
                Err(Failure::Pending(format!(
                    "{why}. The signed payment {tx} could still be used for {seconds} seconds, so no other is made before"
                )))
            }
        }
    }

    /// From when on no block can have it, POSIX ms.
    const fn end(&self) -> Millis {
        self.valid_until.saturating_add(AFTER_THE_END_MS)
    }

    fn fate(&self, shop: &Shop) -> Result<Fate, Failure> {
        if shop.chain.provider.outputs_of(&self.tx)?.is_some() {
            return Ok(Fate::InBlock);
        }
        if shop.chain.provider.tip()?.time_ms > self.end() {
            return Ok(Fate::Dead);
        }
        for input in &self.inputs {
            if shop.chain.spender_of(input)?.is_some_and(|by| by != self.tx) {
                return Ok(Fate::Dead);
            }
        }
        Ok(Fate::Open)
    }

    /// What was bought is there.
    fn deliver(&mut self, shop: &Shop, answer: &Answer, out: Option<&PathBuf>) -> Result<(), Failure> {
        let Self { listing, mode, fee, .. } = &*self;
        let settled: Option<SettlementResponse> =
            answer.header("payment-response").and_then(|header| decode_header(header).ok());
        // Where the wallet owned it already, the earlier purchase; this payment was then not broadcast.
        let tx = settled.as_ref().and_then(|settled| settled.transaction.parse().ok()).unwrap_or(self.tx);
        let extensions = settled.and_then(|settled| settled.extensions).unwrap_or_default();
        let receipt = extensions.get(offer_receipt::NAME).and_then(|block| block.pointer("/info/receipt/signature"));
        shop.tell.progress(&format!("bought: purchase {tx}"));
        let told = json!({
            "listing": listing.id, "purchase": tx, "mode": mode, "priceLovelace": listing.price_lovelace,
            "feeLovelace": fee, "alreadyOwned": false,
        });
        let advice = match mode {
            DeliveryMode::Protected => format!("`surety request-refund {tx}` disputes it"),
            DeliveryMode::Instant => format!("`surety verdict {} mismatch` says so", listing.id),
        };
        let handed = hand_over_as_listed(shop, told, (&answer.body, &listing.content_hash), out, &advice);
        self.receipt = receipt.and_then(Value::as_str).map(str::to_owned);
        shop.home.write(&bought(&tx), self)?;
        // Who delivers something else may not have handed the payment in: it is kept while it could still be used.
        if handed.is_ok() || self.fate(shop)? != Fate::Open {
            self.forget(shop)?;
        }
        handed
    }
}
