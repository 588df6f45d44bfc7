//! `surety buy`
//!
//! ```text
//!            stored payment? ──yes────────────────────────────────┐
//!                  │ no                                           v
//! owned? ──yes──> print   draft ──> verify, sign ──> store ──> send the same header until its outcome is known
//!                                                                 │
//!            delivered: delete, print    cannot be included any more: delete    otherwise: keep, exit code 4
//! ```
//!
//! Anyone with a signed payment can submit it while it is valid. So it is stored before it is sent, and no other
//! payment for the listing is made until the chain shows that it was included or has expired.

use std::path::PathBuf;

use api_types::Listing;
use base64::{Engine, engine::general_purpose::STANDARD};
use blueprint::Blueprint;
use cardano::{Address, Lovelace, slots::Millis};
use clap::Args;
use market::{DeliveryMode, ListingId};
use serde_json::{Value, json};
use x402_cardano::{
    request_commitment::{HttpRequest, RequestDigest, Salt},
    wire::{MAX_HEADER_BYTES, encode_header},
};

use crate::{
    Shop,
    catalogue::{listing_id, mode as read_mode},
    chain::described,
    failure::Failure,
    keys::Keys,
    redelivery::{hand_over_again, redeliver, unlock},
    service::Ask,
    settling::Payment,
    tell::{counted, plain},
    verify::{
        DraftedTx, SigningWallet,
        payment::{RequestedPurchase, SignedDraft, payment},
    },
    wallet::ada,
};

/// Blueprint (CIP-57) of this repository's compiled escrow contract.
const BLUEPRINT: &str = include_str!("../../../contracts/plutus.json");

/// Arguments of `buy`.
#[derive(Args)]
pub struct BuyArguments {
    /// The listing's id: lst_...
    #[arg(value_parser = listing_id)]
    listing: ListingId,
    /// Lock the money in the escrow, from which it comes back if nothing is delivered.
    #[arg(long)]
    protected: bool,
    /// How to pay: instant, or protected (like --protected).
    #[arg(long, value_parser = read_mode, conflicts_with = "protected")]
    mode: Option<DeliveryMode>,
    /// Maximum price to pay, in ADA.
    #[arg(long, default_value = "10", value_parser = ada)]
    at_most: Lovelace,
    /// Write the content to this file instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The blueprint (CIP-57) of the escrow contract, if it is not the one in this repository.
    #[arg(long, env = "ESCROW_BLUEPRINT")]
    contract: Option<PathBuf>,
}

/// Buys a listing, or resumes an earlier payment.
pub fn run(shop: &Shop, arguments: &BuyArguments) -> Result<(), Failure> {
    let BuyArguments { listing: id, at_most: most, out, .. } = arguments;
    let keys = shop.home.keys()?;
    let _locked = shop.home.lock()?;
    if let Some(payment) = Payment::pending(shop, id.as_str())? {
        shop.tell.progress(&format!("resuming the earlier payment {}", payment.tx));
        return payment.settle(shop, &keys, out.as_ref());
    }
    let listing = shop.service.listing(id)?;
    let mode =
        arguments.mode.unwrap_or(if arguments.protected { DeliveryMode::Protected } else { DeliveryMode::Instant });
    let title = plain(&listing.title);
    if !listing.offers(mode) {
        let other = if mode == DeliveryMode::Instant { "--protected" } else { "--mode instant" };
        return Err(Failure::Refused(format!("{title} is not sold {}: try {other}", mode.as_str())));
    }
    if listing.price_lovelace > *most {
        let price = listing.price_lovelace.display_tada();
        let more = price.trim_end_matches(" tADA");
        return Err(Failure::Refused(format!(
            "{title} costs {price}, which is more than {}: --at-most {more} allows it",
            most.display_tada()
        )));
    }
    if keys.of(listing.seller_address.payment_key()).is_some() {
        return Err(Failure::Refused(format!("{title} is this wallet's own listing: buy with another, --wallet NAME")));
    }
    if let Some(owned) = redeliver(shop, &keys, id.as_str())? {
        shop.tell.progress(&format!("bought before, in {}: nothing is paid", owned.purchase));
        return hand_over_again(shop, (id.as_str(), &listing.content_hash), &owned, out.as_ref());
    }
    let payment = draft_and_sign(shop, &keys, (listing, mode), &blueprint(arguments.contract.as_ref())?)?;
    payment.keep(shop)?;
    payment.settle(shop, &keys, out.as_ref())
}

/// Drafts a payment, verifies the draft, and signs it. The signed payment is not sent yet.
fn draft_and_sign(
    shop: &Shop,
    keys: &Keys,
    (listing, mode): (Listing, DeliveryMode),
    blueprint: &Blueprint,
) -> Result<Payment, Failure> {
    let address = keys.address();
    shop.chain.must_be_preprod()?;
    let utxos = shop.chain.spendable(keys)?;
    if utxos.is_empty() {
        return Err(Failure::Refused(format!(
            "the wallet is empty: `surety fund` gets money from a local ledger; on preprod send tADA to {address}. \
             `surety wallet show` looks for money at other addresses of the account"
        )));
    }
    // The request that will carry the payment.
    let url = format!("{}{}", shop.service.base(), unlock(&listing.id));
    let request = RequestDigest::of(&HttpRequest { method: "GET", url: &url, body: b"", headers: &[] });
    let request = request.map_err(|error| Failure::Usage(format!("--api: {error}")))?;
    let salt = Salt::new(crate::random()?);
    let body = json!({
        "mode": mode,
        "utxos": described(&utxos)?,
        "changeAddress": address,
        "commitment": request.salted(&salt).to_text(),
    });
    let draft: DraftedTx = shop.service.post(&format!("/listings/{}/payment-draft", listing.id), Ask::json(&body))?;
    let (parameters, now) = (shop.chain.provider.protocol_parameters()?, shop.chain.clock()?);
    let requested =
        RequestedPurchase { listing: &listing, mode, blueprint, parameters: &parameters, request: (request, salt) };
    let made = payment(&draft, &requested, &SigningWallet { keys, utxos: &utxos, now })?;
    tell(shop, &made, &listing, (&address, now));
    let until = made.tx.ttl.and_then(|slot| api_types::SLOTS.slot_begins_at(slot));
    Ok(Payment {
        api: shop.service.base().to_owned(),
        listing,
        mode,
        accepted: made.accepted,
        payer: made.payer,
        fee: made.tx.fee,
        tx: made.tx.id,
        inputs: made.tx.inputs.clone(),
        valid_until: until.unwrap_or(Millis::MAX),
        header: header(draft.payment, made.tx.cbor(), made.is_committed.then_some(&salt))?,
        receipt: None,
    })
}

/// Prints the signed payment: its recipient, the change, and for a protected purchase the deadlines for a refund and a
/// dispute.
fn tell(shop: &Shop, made: &SignedDraft, listing: &Listing, (address, now): (&Address, Millis)) {
    let home = address.to_bytes();
    let back = made.tx.outputs.iter().filter(|output| output.address == home).map(|output| output.value.lovelace);
    let how = if made.terms.is_none() { "pays the seller" } else { "locks in the escrow" };
    shop.tell.progress(&format!(
        "{}\n{how} {} {}\nfee {}, change {}; transaction {}",
        plain(&listing.title),
        made.pay_to,
        made.paid.display_tada(),
        made.tx.fee.display_tada(),
        back.sum::<Lovelace>().display_tada(),
        made.tx.id,
    ));
    if let Some(terms) = &made.terms {
        let minutes = |at: Millis| counted(at.saturating_sub(now) / 60_000, "minute");
        let deadlines = terms.deadlines();
        shop.tell.progress(&format!(
            "no result within {}: `surety refund`; a wrong one within {}: `surety dispute`",
            minutes(deadlines.submit_result),
            minutes(deadlines.unlock),
        ));
    }
}

/// Reads the escrow contract's blueprint from the file `contract`. Without a file, returns this repository's blueprint.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a blueprint.
pub fn blueprint(contract: Option<&PathBuf>) -> Result<Blueprint, Failure> {
    let blueprint = match contract {
        Some(path) => Blueprint::load(path),
        None => Blueprint::parse(BLUEPRINT),
    };
    blueprint.map_err(|error| Failure::Usage(format!("--contract: {error}")))
}

/// Builds the value of the `PAYMENT-SIGNATURE` header from the draft's payload, the signed transaction, and the salt of
/// the request commitment if there is one.
///
/// # Errors
/// Returns an error if the header is too long to be stored or sent.
fn header(mut payment: Value, cbor: &[u8], salt: Option<&Salt>) -> Result<String, Failure> {
    if let Some(payload) = payment.get_mut("payload").and_then(Value::as_object_mut) {
        payload.insert("transaction".into(), json!(STANDARD.encode(cbor)));
    }
    if let Some(extensions) = payment.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.extend(salt.into_iter().flat_map(Salt::disclosed));
    }
    let header = encode_header(&payment).map_err(|error| Failure::Refused(error.to_string()))?;
    if header.len() > MAX_HEADER_BYTES {
        return Err(Failure::Refused(format!(
            "the service's draft makes a payment of {} bytes, more than {MAX_HEADER_BYTES}: nothing was sent",
            header.len()
        )));
    }
    Ok(header)
}
