//! `surety evidence` and `surety verify`: a file with which anyone can check a purchase without trusting the service.
//!
//! ```text
//! service (public routes) ──> purchase, listing, contract ┐
//! chain ──> each transaction's bytes                      ├─> evidence, checked before it is written
//! this wallet's folder ──> terms and receipt, if it has   ┘
//! ```
//!
//! The file does not contain the content. Everything in it is public, so the service needs no route for it.

use std::{fs, path::PathBuf};

use api_types::{Listing, Purchase};
use cardano::{ContentHash, TxHash, tx::TransactionUtxos};
use clap::Args;
use escrow::{State, plan::Escrow};
use market::{DeliveryMode, ListingId};
use serde_json::json;
use x402_cardano::{
    escrow::{EscrowExtra, InputCommitment, SellerTerms},
    wire::{Extra, PaymentRequired, PaymentRequirements, decode_header},
};

use crate::{
    Shop,
    acting::PurchaseArgument,
    buying::blueprint,
    chain::ChainClient,
    failure::Failure,
    read_file,
    redelivery::unlock,
    service::Ask,
    settling::Payment,
    verify::evidence::{
        Checks, Decision, Evidence, Flaw, ListingFacts, PurchaseFacts, Receipt, Shown, Step, VERSION, check, ensure,
        flaw, shown,
    },
};

/// What the service calls a payout to the creator, which is no step of the escrow.
const CREATOR_PAID: &str = "creator_paid";

/// Which purchase, and where its evidence goes.
#[derive(Args)]
pub struct EvidenceArguments {
    #[command(flatten)]
    purchase: PurchaseArgument,
    /// A file for it, instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The blueprint (CIP-57) of the purchase's contract, where it is not this repository's.
    #[arg(long)]
    contract: Option<PathBuf>,
}

/// Which evidence, and what it is held against.
#[derive(Args)]
pub struct VerifyArguments {
    /// The file.
    file: PathBuf,
    /// A Blockfrost API of the chain, with `/api/v0`: each transaction must be there, and the last be the last.
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// What was delivered: it must be what was listed, and what the seller posted.
    #[arg(long, value_name = "FILE")]
    content: Option<PathBuf>,
    /// The blueprint (CIP-57) of the purchase's contract, where it is not this repository's.
    #[arg(long)]
    contract: Option<PathBuf>,
}

impl From<Flaw> for Failure {
    fn from(flaw: Flaw) -> Self {
        Self::Refused(format!("the evidence does not hold: {flaw}"))
    }
}

/// Collects the evidence of a purchase, checks it, and hands it over.
///
/// # Errors
/// Something cannot be asked, or does not hold.
pub fn collect(shop: &Shop, arguments: &EvidenceArguments) -> Result<(), Failure> {
    let blueprint = blueprint(arguments.contract.as_ref())?;
    let id = arguments.purchase.id(shop)?;
    let purchase: Purchase = shop.service.get(&format!("/purchases/{id}"))?;
    let mut payment = Payment::of_purchase(shop, &id)?;
    let receipt = payment.as_mut().and_then(|payment| payment.receipt.take());
    // A wallet that owned the listing already may have made out a payment in another mode than it bought by.
    let payment = payment.filter(|payment| payment.mode == purchase.mode);
    let listing = match &payment {
        Some(payment) => payment.listing.clone(),
        None => {
            let named = purchase.listing_id.parse::<ListingId>();
            shop.service.listing(&named.map_err(|_| Failure::Refused("the service names no listing".into()))?)?
        }
    };
    let mut evidence = evidence(shop, &purchase, &listing)?;
    if purchase.mode == DeliveryMode::Protected {
        let offered = payment.map_or_else(|| offered(shop, &listing.id), |payment| Ok(payment.accepted))?;
        evidence.quote = Some(quote(offered, &evidence)?);
    }
    let Shown { steps, decision, .. } = shown(&evidence, &blueprint, None)?;
    for (step, (status, datum)) in evidence.steps.iter_mut().zip(steps) {
        evidence.purchase.status.clone_from(&status);
        (step.status, step.datum) = (status, datum.map(hex::encode));
    }
    evidence.decision = decision;
    if let Some(jws) = receipt {
        evidence.receipt = Receipt::of(jws, &shop.service.get("/.well-known/did.json")?);
    }
    check(&evidence, &blueprint, None)?;
    let file = json!(evidence);
    if let Some(path) = &arguments.out {
        let written = fs::write(path, format!("{file:#}\n"));
        written.map_err(|error| Failure::Refused(format!("cannot write {}: {error}", path.display())))?;
        shop.tell.progress(&format!("{} transactions are in {}", evidence.steps.len(), path.display()));
        return Ok(());
    }
    shop.tell.result(&file, &format!("{file:#}"))
}

/// What service and chain say of a purchase; its steps say nothing yet beside their transactions.
fn evidence(shop: &Shop, purchase: &Purchase, listing: &Listing) -> Result<Evidence, Failure> {
    let mut txs: Vec<TxHash> =
        purchase.events.iter().filter(|event| event.status != CREATOR_PAID).map(|event| event.tx_hash).collect();
    txs.dedup();
    let step = |tx_hash: TxHash| {
        let missing = || Failure::Refused(format!("the chain does not have {tx_hash}, which the service names"));
        let (cbor, block) = shop.chain.transaction(&tx_hash)?.ok_or_else(missing)?;
        Ok(Step {
            tx_hash,
            status: String::new(),
            height: block.height,
            at: block.time_ms,
            datum: None,
            sha256: ContentHash::of(&cbor),
            cbor: hex::encode(cbor),
        })
    };
    Ok(Evidence {
        version: VERSION,
        listing: ListingFacts {
            id: listing.id.clone(),
            content_hash: listing.content_hash,
            price_lovelace: listing.price_lovelace,
            seller_address: (purchase.mode == DeliveryMode::Instant).then_some(listing.seller_address),
        },
        purchase: PurchaseFacts {
            id: purchase.id,
            mode: purchase.mode,
            buyer_address: purchase.buyer_address,
            status: String::new(),
        },
        quote: None,
        steps: txs.into_iter().map(step).collect::<Result<_, Failure>>()?,
        decision: None,
        receipt: None,
    })
}

fn refused(why: String) -> Failure {
    Failure::Refused(format!("the quote cannot be collected: {why}"))
}

/// The protected offer of a listing that is for sale.
fn offered(shop: &Shop, listing: &str) -> Result<PaymentRequirements, Failure> {
    let answer = shop.service.ask("GET", &unlock(listing), Ask::default())?;
    let header = answer.header("payment-required").ok_or_else(|| answer.failure())?;
    let required: PaymentRequired = decode_header(header).map_err(|error| refused(error.to_string()))?;
    let offered = required.accepts.into_iter().find(|entry| entry.extra.escrow().is_some());
    offered.ok_or_else(|| refused("no protected sale of it is offered now".into()))
}

/// The quote that the lock was made under: any offer of the listing, with the terms and the signature in the lock's datum.
fn quote(offered: PaymentRequirements, evidence: &Evidence) -> Result<PaymentRequirements, Failure> {
    let extra = offered.extra.escrow().ok_or_else(|| refused("it has no escrow".into()))?;
    // The first transaction's escrow under terms of this seller.
    let cbor = evidence.steps.first().and_then(|step| hex::decode(&step.cbor).ok());
    let made = cbor.and_then(|cbor| TransactionUtxos::read(&cbor).ok()).map(|utxos| utxos.made).unwrap_or_default();
    let escrows = made.into_iter().filter(|output| output.address == offered.pay_to).map(Escrow::of);
    let mut datums = escrows.flatten().map(|escrow| escrow.datum).filter(|datum| datum.state == State::FundsLocked);
    let datum = datums.find(|datum| datum.input_hash == extra.terms.input_hash.as_bytes());
    let datum = datum.ok_or_else(|| refused("nothing is locked under it".into()))?;
    let nonce = datum.seller_nonce.as_slice().try_into().ok();
    let terms = SellerTerms {
        seller: datum.seller.key_address().ok_or_else(|| refused("its seller is a script".into()))?,
        seller_return: datum.seller_return_address.and_then(|address| address.key_address()),
        seller_nonce: nonce.ok_or_else(|| refused("its nonce has not 32 bytes".into()))?,
        buyer_nonce: datum.buyer_nonce,
        agent_identifier: extra.terms.agent_identifier.clone(),
        input_hash: extra.terms.input_hash,
        deadlines: datum.deadlines,
    };
    let commitment = InputCommitment::of_listing(&evidence.listing.id, &evidence.listing.content_hash);
    // What the seller did not sign, and no transaction repeats, is left out.
    let mut extra = EscrowExtra {
        confirmation_policy: None,
        are_fees_sponsored: None,
        input_commitment: commitment,
        terms,
        reference_key: datum.reference_key,
        reference_signature: datum.reference_signature,
        ..extra.clone()
    };
    extra.blockchain_identifier = extra.identifier(&offered.pay_to).encode();
    Ok(PaymentRequirements { extra: Extra::Escrow(Box::new(extra)), ..offered })
}

/// Checks evidence, and says what it shows.
///
/// # Errors
/// The first part that does not hold.
pub fn verify(shop: &Shop, arguments: &VerifyArguments) -> Result<(), Failure> {
    // Twenty transactions of the ledger's largest size take less than what is read, in hexadecimal.
    let file = read_file(&arguments.file)?;
    let evidence: Evidence = serde_json::from_slice(&file).map_err(|error| {
        Failure::Refused(format!("the evidence does not hold: {}: {error}", arguments.file.display()))
    })?;
    let content = arguments.content.as_deref().map(read_file).transpose()?;
    let shown = check(&evidence, &blueprint(arguments.contract.as_ref())?, content.as_deref())?;
    let on_chain = arguments.ledger.is_some();
    if let Some(url) = &arguments.ledger {
        is_on_chain(&evidence, &shown, &ChainClient::at(Some(url), false)?)?;
    }
    let checks = shown.checks;
    let told = json!({
        "purchase": evidence.purchase.id, "status": evidence.purchase.status, "checks": checks,
        "decision": evidence.decision, "receipt": evidence.receipt.is_some(), "onChain": on_chain,
    });
    shop.tell.result(&told, &words(&evidence, &checks, on_chain))?;
    let delivered = [checks.output_matches_listing, checks.output_is_what_seller_posted];
    if delivered.contains(&Some(false)) {
        return Err(Failure::Refused("the content is not what was listed, or not what the seller posted".into()));
    }
    Ok(())
}

/// That the chain has each transaction, byte for byte and where the file says, and that the escrow went no further.
fn is_on_chain(evidence: &Evidence, shown: &Shown, chain: &ChainClient) -> Result<(), Failure> {
    chain.must_be_preprod()?;
    for (index, step) in evidence.steps.iter().enumerate() {
        let part = |field| format!("steps[{index}].{field}");
        let missing = || flaw(part("txHash"), "the chain does not have it");
        let (cbor, block) = chain.transaction(&step.tx_hash)?.ok_or_else(missing)?;
        ensure(hex::encode(cbor) == step.cbor, part("cbor"), "the chain has other bytes")?;
        ensure(block.valid, part("cbor"), "its scripts failed")?;
        ensure(block.height == step.height, part("height"), "it is in another block")?;
        ensure(block.time_ms == step.at, part("at"), "its block has another time")?;
    }
    match shown.open.map(|open| chain.spender_of(&open)).transpose()?.flatten() {
        Some(tx) => Err(flaw("steps", format!("the escrow went on in {tx}")).into()),
        None => Ok(()),
    }
}

/// What the file shows, for people.
fn words(evidence: &Evidence, checks: &Checks, on_chain: bool) -> String {
    let Evidence { listing, purchase, steps, decision, receipt, .. } = evidence;
    let (price, mode) = (listing.price_lovelace.display_tada(), purchase.mode.as_str());
    let statuses: Vec<&str> = steps.iter().map(|step| step.status.as_str()).collect();
    let told = |what, holds: Option<bool>| holds.map(|holds| format!("{}: {what}", if holds { "yes" } else { "NO" }));
    let on_chain = if on_chain { "the chain has all of it" } else { "not held against the chain: --ledger URL does" };
    let lines = [
        Some(format!("{} of {} for {price}, {mode}: {}", purchase.id, listing.id, purchase.status)),
        Some(format!("{} transactions hold together: {}", steps.len(), statuses.join(", "))),
        decision.as_ref().map(|Decision { buyer_lovelace, seller_lovelace, .. }| {
            let [buyer, seller] = [buyer_lovelace, seller_lovelace].map(|lovelace| lovelace.display_tada());
            format!("the arbiters signed {buyer} to the buyer and {seller} to the seller")
        }),
        told("the escrow commits to this listing", checks.escrow_is_for_listing),
        told("the seller posted this content", checks.output_is_what_seller_posted),
        told("the content is what was listed", checks.output_matches_listing),
        receipt.as_ref().map(|_| "the receipt is signed for this purchase".to_owned()),
        Some(on_chain.to_owned()),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}
