//! Signed payments with an unknown outcome: stored, sent, and deleted when the outcome is known.

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

/// Maximum time to wait for a payment's outcome: two blocks of preprod and a rollback.
const PATIENCE: Duration = Duration::from_secs(180);
/// Pause between repeated requests.
const PAUSE: Duration = Duration::from_secs(2);
/// Time in ms after its validity interval for which a payment may still be included, because a fork can begin some
/// blocks back.
const AFTER_THE_END_MS: Millis = 2 * 60 * 1_000;

/// A stored payment. It records its service, because a proof is sent to no other one, and the listing, because a
/// listing that is off sale is no longer public.
#[derive(Deserialize, Serialize)]
pub struct Payment {
    /// The service that is paid.
    pub api: String,
    /// The listing when it was bought.
    pub listing: Listing,
    pub mode: DeliveryMode,
    /// The accepted entry of `accepts`.
    pub accepted: PaymentRequirements,
    /// The address of the wallet that paid: the buyer's.
    pub payer: Address,
    pub fee: Lovelace,
    pub tx: TxHash,
    pub inputs: Vec<TxRef>,
    /// End of the validity interval, POSIX ms.
    pub valid_until: Millis,
    /// The `PAYMENT-SIGNATURE` header.
    pub header: String,
    /// The receipt that the service signed on delivery, a compact JWS.
    pub receipt: Option<String>,
}

/// State of a payment on the chain.
#[derive(PartialEq)]
enum Fate {
    /// Included in a block.
    InBlock,
    /// Can no longer be included.
    Dead,
    /// May still be included.
    Open,
}

/// File of a listing's pending payment.
fn pending(listing: &str) -> String {
    format!("pending/{listing}.json")
}

/// File of a purchase.
fn bought(purchase: &TxHash) -> String {
    format!("bought/{purchase}.json")
}

impl Payment {
    /// Reads the pending payment for a listing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn pending(shop: &Shop, listing: &str) -> Result<Option<Self>, Failure> {
        shop.home.read(&pending(listing))
    }

    /// Reads the payment that made a purchase at this service.
    ///
    /// # Errors
    /// The file cannot be read.
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
    /// The file cannot be written.
    pub fn keep(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.write(&pending(&self.listing.id), self)
    }

    fn forget(&self, shop: &Shop) -> Result<(), Failure> {
        shop.home.remove(&pending(&self.listing.id))
    }

    /// Sends the payment until its outcome is known, and prints the content.
    ///
    /// # Errors
    /// The outcome is not known, or nothing was bought.
    pub fn settle(mut self, shop: &Shop, keys: &Keys, out: Option<&PathBuf>) -> Result<(), Failure> {
        if self.api != shop.service.base() {
            return Err(Failure::Usage(format!(
                "a payment for {} was made out to {1}: go on there with --api {1}",
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

    /// Handles a payment that the service rejects. Only the chain tells whether it was included.
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
                let seconds = self.end().saturating_sub(now_ms()) / 1_000;
                Err(Failure::Pending(format!(
                    "{why}. The signed payment {tx} could still be used for {seconds} seconds, so no other is made before"
                )))
            }
        }
    }

    /// Time after which it can no longer be included, POSIX ms.
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

    /// Handles a delivery.
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
            DeliveryMode::Instant => format!("`surety verdict {} mismatch` says so", listing.id),
        };
        let handed = hand_over_as_listed(shop, told, (&answer.body, &listing.content_hash), out, &advice);
        self.receipt = receipt.and_then(Value::as_str).map(str::to_owned);
        shop.home.write(&bought(&tx), self)?;
        // If the service delivers something else, it may not have submitted the payment, which is kept while it could
        // be.
        if handed.is_ok() || self.fate(shop)? != Fate::Open {
            self.forget(shop)?;
        }
        handed
    }
}
