//! Settles signed payments. Each payment is stored before it is sent, then sent until its outcome is known, and then
//! deleted.

use std::{
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use api_types::Listing;
use cardano::{Address, Lovelace, TxHash, TxRef, slots::Millis};
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
    keys::Keys,
    now_ms, proof,
    redelivery::{hand_over_again, hand_over_as_listed, redeliver, refusal, unlock},
    service::{Answer, Ask},
    tell,
};

/// Maximum time to wait for a payment's outcome, long enough for two blocks of preprod and a rollback.
const PATIENCE: Duration = Duration::from_secs(180);
/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_secs(2);
/// Safety margin in ms after the end of a payment's validity interval. Within the margin, a rollback may still lead to
/// a fork that includes the payment.
const ROLLBACK_MARGIN_MS: Millis = 2 * 60 * 1_000;

/// A signed payment, stored in the wallet's folder. Contains the service's address, because a proof of the purchase may
/// be sent only to that service, and the whole listing, because the service does not show listings that are off sale.
#[derive(Deserialize, Serialize)]
pub struct Payment {
    /// Address of the service that sells the listing.
    pub api: String,
    /// The listing as it was when the wallet bought it.
    pub listing: Listing,
    pub mode: DeliveryMode,
    /// The offer that this payment accepts: an entry of `accepts` in the 402 response.
    pub accepted: PaymentRequirements,
    /// The wallet's address that pays and becomes the buyer.
    pub payer: Address,
    pub fee: Lovelace,
    pub tx: TxHash,
    pub inputs: Vec<TxRef>,
    /// End of the transaction's validity interval, in POSIX ms.
    pub valid_until: Millis,
    /// Value of the `PAYMENT-SIGNATURE` header.
    pub header: String,
    /// Receipt (a compact JWS) that the service signed on delivery; `None` before the delivery.
    pub receipt: Option<String>,
}

/// State of a payment according to the chain.
#[derive(PartialEq)]
enum Fate {
    /// Included in a block.
    InBlock,
    /// Can no longer be included, because it has expired or another transaction has spent its inputs.
    Dead,
    /// May still be included.
    Open,
}

/// Returns the name of the file that stores the pending payment for a listing.
fn pending(listing: &str) -> String {
    format!("pending/{listing}.json")
}

/// Returns the name of the file that stores the payment of a purchase.
fn bought(purchase: &TxHash) -> String {
    format!("bought/{purchase}.json")
}

impl Payment {
    /// Reads the pending payment for a listing, or `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn pending(shop: &Shop, listing: &str) -> Result<Option<Self>, Failure> {
        shop.home.read(&pending(listing))
    }

    /// Reads the payment of a purchase, or `None` if this wallet stored none for this service.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn of_purchase(shop: &Shop, purchase: &TxHash) -> Result<Option<Self>, Failure> {
        let kept: Option<Self> = shop.home.read(&bought(purchase))?;
        Ok(kept.filter(|kept| kept.api == shop.service.base()))
    }

    /// Returns the salt with which the payment commits to its HTTP request, or `None` if it makes no such commitment.
    pub fn salt(&self) -> Option<Salt> {
        let payment: Value = decode_header(&self.header).ok()?;
        let salt = payment.get("extensions")?.get(request_commitment::NAME)?.pointer("/info/salt")?.as_str()?;
        Some(Salt::new(hex::decode(salt).ok()?.try_into().ok()?))
    }

    /// Stores the payment until its outcome is known. Must be called before the payment is sent to anyone.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.write(&pending(&self.listing.id), self)
    }

    fn forget(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.remove(&pending(&self.listing.id))
    }

    /// Sends the payment repeatedly until its outcome is known, and then prints the content. `out` is a file for the
    /// content.
    ///
    /// # Errors
    /// Returns an error if the outcome is still unknown when the time is up, or if nothing was bought.
    pub fn settle(mut self, shop: &Shop, keys: &Keys, out: Option<&PathBuf>) -> Result<(), Failure> {
        if self.api != shop.service.base() {
            return Err(Failure::Usage(format!(
                "a payment for {} is pending at {1}: resume it with --api {1}",
                self.listing.id, self.api
            )));
        }
        let (paid, tx, id) = (self.listing.price_lovelace.display_tada(), &self.tx, &self.listing.id);
        tell::under_way(format!(
            "the payment of {paid} is signed, and may still be made: transaction {tx}. Nothing else is paid for this listing \
             until it ends: `surety buy {id}` goes on with the same payment, and never pays twice"
        ));
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
                        // The transaction was public before, so the payer has to sign.
                        Some("payment_public") if proof.is_none() => {
                            proof = Some(proof::of_purchase(keys.owner(&self.payer)?, &self.listing.id)?);
                        }
                        _ if matches!(answer.failure(), Failure::Unreachable(_)) => {}
                        _ => return self.refused(shop, keys, &last, out),
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

    /// Handles a payment that the service rejected with the reason `why`. Asks the chain whether a block included the
    /// payment nevertheless.
    fn refused(&self, shop: &Shop, keys: &Keys, why: &str, out: Option<&PathBuf>) -> Result<(), Failure> {
        let Self { listing, tx, .. } = self;
        match self.fate(shop)? {
            Fate::InBlock => {
                if let Some(owned) = redeliver(shop, keys, &listing.id)? {
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
                let seconds = tell::counted(self.end().saturating_sub(now_ms()) / 1_000, "second");
                Err(Failure::Pending(format!(
                    "{why}. The signed payment {tx} may still get into a block for {seconds}, so no other payment is made until then"
                )))
            }
        }
    }

    /// Returns the time after which the payment can no longer be included, in POSIX ms.
    const fn end(&self) -> Millis {
        self.valid_until.saturating_add(ROLLBACK_MARGIN_MS)
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

    /// Handles the response that delivers the content. Prints the content, stores the settled payment with its receipt,
    /// and deletes the pending payment.
    fn deliver(&mut self, shop: &Shop, answer: &Answer, out: Option<&PathBuf>) -> Result<(), Failure> {
        let Self { listing, mode, fee, .. } = &*self;
        let settled: Option<SettlementResponse> =
            answer.header("payment-response").and_then(|header| decode_header(header).ok());
        // If the wallet owned the listing already, this is the earlier purchase; the new payment was not submitted.
        let tx = settled.as_ref().and_then(|settled| settled.transaction.parse().ok()).unwrap_or(self.tx);
        let extensions = settled.and_then(|settled| settled.extensions).unwrap_or_default();
        let receipt = extensions.get(offer_receipt::NAME).and_then(|block| block.pointer("/info/receipt/signature"));
        shop.tell.progress(&format!("bought: purchase {tx}"));
        let told = json!({
            "listing": listing.id, "purchase": tx, "mode": mode, "priceLovelace": listing.price_lovelace,
            "feeLovelace": fee, "alreadyOwned": false,
        });
        let advice = match mode {
            DeliveryMode::Protected => format!("`surety dispute {tx}` disputes it"),
            DeliveryMode::Instant => format!("`surety verdict {} mismatch` reports it", listing.id),
        };
        let handed = hand_over_as_listed(shop, told, (&answer.body, &listing.content_hash), out, &advice);
        self.receipt = receipt.and_then(Value::as_str).map(str::to_owned);
        shop.home.write(&bought(&tx), self)?;
        // If the service delivered other content, it may not have submitted the payment yet. The payment is kept as
        // long as the chain could still include it.
        if handed.is_ok() || self.fate(shop)? != Fate::Open {
            self.forget(shop)?;
        }
        handed
    }
}
