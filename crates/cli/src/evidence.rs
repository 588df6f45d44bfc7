//! `surety evidence` and `surety verify`: write and verify a file with which anyone can check a purchase without
//! trusting the service.
//!
//! ```text
//! service (public routes) ──> its signed statement, the contract ┐
//! chain ──> each transaction's bytes                             ├─> evidence, checked before it is written
//! this wallet's folder ──> terms, receipt, digest of the salt    ┘
//! ```
//!
//! The file does not contain the content. Every part of it is public or signed by the service.

use std::{fs, path::PathBuf};

use api_types::PurchaseStatement;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cardano::{ContentHash, TxHash, slots::Millis, tx::TransactionUtxos};
use clap::Args;
use escrow::{State, plan::Escrow, result::result_hash};
use market::DeliveryMode;
use serde::Serialize;
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
    service::{Ask, no_listing},
    settling::Payment,
    tell::{counted, time_of},
    verify::evidence::{
        Checked, Derived, Evidence, Flaw, Proofs, Prover, PurchaseFacts, ServiceKey, Step, VERSION, check, derive,
        ensure, flaw, transactions_of,
    },
};

/// Arguments of `evidence`.
#[derive(Args)]
pub struct EvidenceArguments {
    #[command(flatten)]
    purchase: PurchaseArgument,
    /// Write the evidence to this file instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The blueprint (CIP-57) of the purchase's contract, if it is not this repository's.
    #[arg(long)]
    contract: Option<PathBuf>,
}

/// Arguments of `verify`.
#[derive(Args)]
pub struct VerifyArguments {
    /// The evidence file.
    file: PathBuf,
    /// URL of a Blockfrost API, with `/api/v0`. If given, checks that the chain has every transaction of the file and
    /// no further one, and asks the service at --api for its public key.
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// The service's public key, if you know it: the `x` in its /.well-known/did.json. If given, no other key is
    /// trusted.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    service_key: Option<String>,
    /// The delivered content, to be compared with the listing and with the hash that the seller posted on the chain.
    #[arg(long, value_name = "FILE")]
    content: Option<PathBuf>,
    /// The blueprint (CIP-57) of the purchase's contract, if it is not this repository's.
    #[arg(long)]
    contract: Option<PathBuf>,
}

impl From<Flaw> for Failure {
    fn from(flaw: Flaw) -> Self {
        Self::Refused(format!("the evidence is inconsistent: {flaw}"))
    }
}

/// Collects the evidence of a purchase, checks it, and prints it or writes it to a file.
///
/// # Errors
/// Returns an error if a part cannot be read, or if two parts contradict each other.
pub fn collect(shop: &Shop, arguments: &EvidenceArguments) -> Result<(), Failure> {
    let blueprint = blueprint(arguments.contract.as_ref())?;
    let id = arguments.purchase.id(shop)?;
    let answer = shop.service.ask("GET", &format!("/purchases/{id}/statement"), Ask::default())?;
    if answer.status != 200 {
        return Err(answer.failure());
    }
    let (jws, said) = statement(answer.body)?;
    if said.service != shop.service.base() {
        return Err(Failure::Usage(format!("the service is {0}: name it with --api {0}", said.service)));
    }
    let mut payment = Payment::of_purchase(shop, &id)?;
    let receipt = payment.as_mut().and_then(|payment| payment.receipt.take());
    if let Some(Payment { listing, .. }) = &payment
        && (&listing.id, &listing.content_hash, listing.price_lovelace, listing.seller_address)
            != (&said.listing.id, &said.listing.content_hash, said.listing.price_lovelace, said.listing.seller_address)
    {
        return Err(Failure::Refused(format!(
            "the service now describes {} differently from the listing that was bought",
            listing.id
        )));
    }
    // A wallet that owned the listing already may have stored a payment that was not used.
    let payment = payment.filter(|payment| payment.tx == id);
    let mut evidence = evidence(shop, jws, &said)?;
    evidence.receipt = receipt;
    evidence.salt_digest = payment.as_ref().and_then(Payment::salt).map(|salt| salt.digest());
    if said.purchase.mode == DeliveryMode::Protected {
        let offered = payment.map_or_else(|| offered(shop, &said.listing.id), |payment| Ok(payment.accepted))?;
        evidence.quote = Some(quote(offered, &evidence)?);
    }
    let Derived { steps, decision, .. } = derive(&evidence, &blueprint)?;
    for (step, (status, datum)) in evidence.steps.iter_mut().zip(steps) {
        evidence.purchase.status.clone_from(&status);
        (step.status, step.datum) = (status, datum.map(hex::encode));
    }
    evidence.decision = decision;
    check(&evidence, &blueprint, &published(shop)?)?;
    let file = json!(evidence);
    if let Some(path) = &arguments.out {
        let written = fs::write(path, format!("{file:#}\n"));
        written.map_err(|error| Failure::Refused(format!("cannot write {}: {error}", path.display())))?;
        shop.tell.progress(&format!("wrote {} to {}", counted(evidence.steps.len(), "transaction"), path.display()));
        return Ok(());
    }
    shop.tell.result(&file, &format!("{file:#}"))
}

/// Parses the service's statement about a purchase. Returns the JWS and its payload. Does not check the signature,
/// because the evidence is verified as a whole later.
fn statement(body: Vec<u8>) -> Result<(String, PurchaseStatement), Failure> {
    let unreadable = || Failure::Refused("the service's statement is not in the documented form".into());
    let jws = String::from_utf8(body).map_err(|_| unreadable())?;
    let payload = jws.split('.').nth(1).and_then(|payload| BASE64_URL_SAFE_NO_PAD.decode(payload).ok());
    let said = serde_json::from_slice(&payload.ok_or_else(unreadable)?).map_err(|_| unreadable())?;
    Ok((jws, said))
}

/// Returns the public keys that the service at --api publishes in its DID document.
fn published(shop: &Shop) -> Result<Vec<ServiceKey>, Failure> {
    Ok(ServiceKey::published(&shop.service.get("/.well-known/did.json")?))
}

/// Collects the facts of a purchase from the service's statement and the chain. Leaves the status and the datum of each
/// step empty. The caller derives them from the transactions.
fn evidence(shop: &Shop, jws: String, said: &PurchaseStatement) -> Result<Evidence, Failure> {
    let PurchaseStatement { service, listing, purchase, .. } = said;
    let step = |(tx_hash, at): (TxHash, Millis)| {
        let missing = || Failure::Refused(format!("the chain does not have {tx_hash}, which the service names"));
        let (cbor, _) = shop.chain.transaction(&tx_hash)?.ok_or_else(missing)?;
        let sha256 = ContentHash::of(&cbor);
        Ok(Step { tx_hash, status: String::new(), at, datum: None, sha256, cbor: hex::encode(cbor) })
    };
    Ok(Evidence {
        version: VERSION,
        service: service.clone(),
        listing: listing.clone(),
        purchase: PurchaseFacts {
            id: purchase.id,
            mode: purchase.mode,
            buyer_address: purchase.buyer_address,
            status: String::new(),
        },
        quote: None,
        salt_digest: None,
        steps: transactions_of(purchase).into_iter().map(step).collect::<Result<_, Failure>>()?,
        decision: None,
        statement: Some(jws),
        receipt: None,
    })
}

fn refused(why: String) -> Failure {
    Failure::Refused(format!("the quote cannot be collected: {why}"))
}

/// Requests the ways to pay for a listing, and returns the offer of a protected purchase.
fn offered(shop: &Shop, listing: &str) -> Result<PaymentRequirements, Failure> {
    let answer = shop.service.ask("GET", &unlock(listing), Ask::default())?;
    if answer.status == 404 {
        return Err(no_listing(listing));
    }
    let header = answer.header("payment-required").ok_or_else(|| answer.failure())?;
    let required: PaymentRequired = decode_header(header).map_err(|error| refused(error.to_string()))?;
    let offered = required.accepts.into_iter().find(|entry| entry.extra.escrow().is_some());
    offered.ok_or_else(|| refused("no protected sale of it is offered now".into()))
}

/// Rebuilds the seller's signed offer under which the buyer locked the money. `offered` is any current offer of the
/// listing; its terms and signature are replaced with those in the escrow's datum.
fn quote(offered: PaymentRequirements, evidence: &Evidence) -> Result<PaymentRequirements, Failure> {
    let extra = offered.extra.escrow().ok_or_else(|| refused("it has no escrow".into()))?;
    // Finds the escrow output for this listing in the first transaction.
    let cbor = evidence.steps.first().and_then(|step| hex::decode(&step.cbor).ok());
    let made = cbor.and_then(|cbor| TransactionUtxos::read(&cbor).ok()).map(|utxos| utxos.created).unwrap_or_default();
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
    // Fields that the seller did not sign and no transaction contains are omitted.
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

/// Results of the two comparisons that an arbiter makes with the delivered content. Both are `None` if the user gave no
/// content.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContentChecks {
    /// Whether the content has the listed hash. `None` if it does, but no party proves the listed hash.
    output_matches_listing: Option<bool>,
    /// `true` if the content has the hash that the seller posted on the chain. `None` for an instant purchase, and
    /// before the seller has posted a result.
    output_is_what_seller_posted: Option<bool>,
}

/// Checks an evidence file, and prints for each part who proves it.
///
/// # Errors
/// Returns an error that names the first contradiction between parts of the file. If there is none, returns an error
/// that lists the parts without proof, if any.
pub fn verify(shop: &Shop, arguments: &VerifyArguments) -> Result<(), Failure> {
    // Large enough for twenty transactions of the maximum size in hexadecimal.
    let file = read_file(&arguments.file)?;
    let evidence: Evidence = serde_json::from_slice(&file).map_err(|error| {
        Failure::Refused(format!("the evidence is inconsistent: {}: {error}", arguments.file.display()))
    })?;
    let content = arguments.content.as_deref().map(read_file).transpose()?;
    let keys = keys(shop, arguments, &evidence.service)?;
    let blueprint = blueprint(arguments.contract.as_ref())?;
    let known = keys.as_ref().map_or(&[][..], |keys| keys);
    let Checked { derived, mut proofs, as_of } = check(&evidence, &blueprint, known)?;
    if let Some(url) = &arguments.ledger {
        is_on_chain(&evidence, &derived, &ChainClient::at(Some(url), false)?)?;
        proofs.are_on_chain();
    }
    let checks = content_checks(&evidence, &derived, &proofs, content.as_deref());
    let claims = proofs.claims();
    let told = json!({
        "purchase": evidence.purchase.id, "service": evidence.service, "status": evidence.purchase.status,
        "proofs": proofs.table(), "claims": claims, "checks": checks, "decision": evidence.decision,
        "asOf": as_of.map(|at| at.to_string()), "onChain": arguments.ledger.is_some(),
    });
    shop.tell.result(&told, &words(&evidence.service, &proofs, &checks, as_of))?;
    if [checks.output_matches_listing, checks.output_is_what_seller_posted].contains(&Some(false)) {
        return Err(Failure::Refused(
            "the content is not the listed one, or not the one whose hash the seller posted".into(),
        ));
    }
    if claims.is_empty() {
        return Ok(());
    }
    let mut ways = vec![];
    if arguments.ledger.is_none() {
        ways.push("--ledger URL asks the chain and the service".to_owned());
    }
    ways.extend(keys.err());
    if evidence.statement.is_none() {
        ways.push("the file has no statement of the service".to_owned());
    }
    let ways = if ways.is_empty() { String::new() } else { format!(" ({})", ways.join("; ")) };
    Err(Failure::Unproven(format!("nobody proves {}{ways}", claims.join(", "))))
}

/// Returns the trusted public keys of the service named in the file: the key given on the command line, or else the
/// keys that the service publishes. The inner error says why no key can be trusted.
fn keys(shop: &Shop, arguments: &VerifyArguments, service: &str) -> Result<Result<Vec<ServiceKey>, String>, Failure> {
    if let Some(key) = &arguments.service_key {
        let key = ServiceKey::pinned(key).map_err(|why| Failure::Usage(format!("--service-key: {why}")))?;
        return Ok(Ok(vec![key]));
    }
    let pin = "--service-key pins the key of the service";
    if arguments.ledger.is_none() {
        return Ok(Err(pin.to_owned()));
    }
    if shop.service.base() != service {
        return Ok(Err(format!("if you trust the service at this address, ask it with --api {service}; {pin}")));
    }
    match published(shop) {
        Ok(keys) if keys.is_empty() => Ok(Err(format!("{service} publishes no key"))),
        Ok(keys) => Ok(Ok(keys)),
        Err(failure) => Ok(Err(format!("{failure}; {pin}"))),
    }
}

/// Compares the delivered content with the listing and with the result that the seller posted on the chain. `content`
/// is `None` if the user gave none.
fn content_checks(evidence: &Evidence, derived: &Derived, proofs: &Proofs, content: Option<&[u8]>) -> ContentChecks {
    let listed = content.map(|content| ContentHash::of(content) == evidence.listing.content_hash);
    // A match with a hash that no party proves is not evidence.
    let listed = listed.filter(|equal| !equal || proofs.has("listing.contentHash"));
    let posted = content.filter(|_| !derived.result.is_empty()).map(|content| {
        let hash = std::str::from_utf8(content).map(|text| result_hash(&evidence.purchase.id, text));
        hash.is_ok_and(|hash| derived.result == hash.as_bytes())
    });
    ContentChecks { output_matches_listing: listed, output_is_what_seller_posted: posted }
}

/// Checks that the chain includes each transaction of the file with the same bytes and at the same time, and that no
/// transaction of the escrow is missing in the file.
fn is_on_chain(evidence: &Evidence, derived: &Derived, chain: &ChainClient) -> Result<(), Failure> {
    chain.must_be_preprod()?;
    for (index, step) in evidence.steps.iter().enumerate() {
        let part = |field| format!("steps[{index}].{field}");
        let missing = || flaw(part("txHash"), "the chain does not have it");
        let (cbor, block) = chain.transaction(&step.tx_hash)?.ok_or_else(missing)?;
        ensure(hex::encode(cbor) == step.cbor, part("cbor"), "the chain has other bytes")?;
        ensure(block.valid, part("cbor"), "its scripts failed")?;
        ensure(block.time_ms == step.at, part("at"), "its block has another time")?;
    }
    match derived.open.map(|open| chain.spender_of(&open)).transpose()?.flatten() {
        Some(tx) => Err(flaw("steps", format!("the escrow went on in {tx}")).into()),
        None => Ok(()),
    }
}

/// Formats the result of the verification for people. The fields are grouped by their strongest proof; those without
/// proof come last.
fn words(service: &str, proofs: &Proofs, checks: &ContentChecks, as_of: Option<Millis>) -> String {
    let signed = as_of.map(|at| format!(", as of {}", time_of(at))).unwrap_or_default();
    let groups = [
        (Some(Prover::Chain), "proven by the chain".to_owned()),
        (Some(Prover::Service), format!("proven by the signature of {service}{signed}")),
        (Some(Prover::Seller), "proven by the signature of the seller that the escrow names".to_owned()),
        (Some(Prover::Signatures), "signed by the parties; whether a block has it was not asked".to_owned()),
        (None, "proven by nobody: the file claims it".to_owned()),
    ];
    let mut lines = vec![];
    for (prover, title) in groups {
        let rows: Vec<String> = proofs.by(prover).map(|row| format!("  {:<22}  {}", row.field, row.value)).collect();
        if !rows.is_empty() {
            lines.push(title);
            lines.extend(rows);
        }
    }
    let told =
        |what: &str, holds: Option<bool>| holds.map(|holds| format!("{}: {what}", if holds { "yes" } else { "NO" }));
    lines.extend(told("the content is the listed one", checks.output_matches_listing));
    lines.extend(told("the seller posted this content", checks.output_is_what_seller_posted));
    crate::tell::plain_lines(&lines)
}
