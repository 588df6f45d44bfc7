//! Buying: one use case for every payer and every way to ask.
//!
//! ```text
//!            quote ──> the ways to pay, each method's offer
//! header ──> pay   ──> look up ──> recognise, verify ──> claim ──> settle ──> content      (pay.rs)
//! account ─> buy   ──> owned? ──> build from the service wallet ──> verify ──> claim ──> settle ──> content   (buy.rs)
//! proof  ──> redeliver ──> content of what was bought before
//! wallet ──> draft ──> a transaction for its owner to sign, which comes back as a header      (draft.rs)
//! ```
//!
//! Nothing is delivered that is not paid for, and nothing is paid twice. A claim is one statement in which the database
//! holds that the terms are new, and that the payer neither owns the listing nor is paying for it. Limits and inputs
//! must allow it, too. What is paid for can be delivered: a claim fails where the content is not there.

mod buy;
mod draft;
mod errors;
mod pay;
mod presented;
mod redeliver;
mod settle;

pub use buy::Order;
use cardano::{
    Address, ContentHash, KeyHash, TxHash,
    chain::{Chain, Inclusion},
    evaluation::Evaluate,
    keys::SignEd25519,
    slots::Millis,
};
pub use draft::{DraftError, DraftOrder, PaymentDraft, draft};
pub use errors::{BuyError, NotRead, PayError, Unavailable};
use outbox::{Decision, EntryState, Provenance, Sleep, Trust, TxStatus};
pub use pay::Paid;
pub use presented::{Presentation, Presented};
pub use redeliver::{OwnPurchase, Redelivered};
use sql::{Database, DatabaseError};
use x402_cardano::{
    exact::{Moment, VerifiedPayment},
    method::{Draft, OfferError, Offered, PaymentMethod},
    settlement::{Settlement, SettlementEvidence},
};

use crate::{
    catalogue::ListingTerms,
    claim::NewPayment,
    contents::Contents,
    listing::{DeliveryMode, ListingId},
    payment::{self, MAX_CHECKED, PaymentRecord},
    release::Release,
    result_poster::Seller,
};

/// A payment method, and the delivery mode that it is.
pub type PaymentOption<'a> = (DeliveryMode, &'a dyn PaymentMethod);

/// One request's view of the world.
pub struct Checkout<'a, D, C, V, Z, K> {
    pub database: &'a D,
    pub chain: &'a C,
    pub signatures: &'a V,
    /// The port that waits: tests pass time, workers sleep.
    pub sleep: &'a Z,
    pub contents: &'a K,
    /// The platform as seller of record, where protected sales are configured.
    pub seller: Option<Seller<'a>>,
    /// Whether the newest known block is too old for protected sales: none is paid for anew.
    pub behind: bool,
    pub options: &'a [PaymentOption<'a>],
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// The clock of escrow matters: the later of the wall clock and the newest known block's time.
    pub clock: Millis,
    /// Waits in ms between looks for a block.
    pub schedule: &'a [Millis],
    /// Newer blocks that a payment waits for beyond the one that has it: 0 to 20.
    pub confirmations: u64,
    /// Whether the client has hung up: what it did not receive is not delivered.
    pub hung_up: &'a dyn Fn() -> bool,
    /// Takes a line for the log.
    pub note: &'a dyn Fn(&str),
}

/// What the chain shows of a buyer's failed payments for a listing.
enum EarlierPayments {
    /// None of them is in a block: so many remain that may still be.
    NotFound(usize),
    /// One is in a block, or fewer are left than before: the claim decides anew.
    Found,
    /// This one waits for a block.
    Waiting(TxHash),
    /// There are more than are looked for at once; this one is the last of those.
    TooMany(TxHash),
}

/// The offers of a sale, by every method that the listing offers and that is configured. One signature where it offers
/// protection, made by this signer; nothing is stored.
///
/// # Errors
/// A quote that cannot be made: a fault of the configuration.
pub async fn quote(
    signer: &impl SignEd25519,
    options: &[PaymentOption<'_>],
    terms: &ListingTerms,
    clock: Millis,
    nonce: [u8; 32],
) -> Result<Vec<Offered>, OfferError> {
    let mut offered = Vec::with_capacity(options.len());
    for (_, method) in options.iter().filter(|(mode, _)| terms.modes.contains(mode)) {
        offered.push(match method.draft(&terms.sale(), clock, nonce)? {
            Draft::Ready(ready) => *ready,
            Draft::Unsigned(quote) => {
                let signature = signer.sign(quote.key(), quote.to_sign()).await;
                quote.signed(signature)
            }
        });
    }
    Ok(offered)
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    const fn moment(&self) -> Moment {
        Moment { now_ms: self.clock, slots: api_types::SLOTS }
    }

    /// Asks the chain about a buyer's failed payments for a listing, but for those that this wallet's next one excludes.
    async fn check_earlier_payments(
        &self,
        listing: &ListingId,
        buyers: &[KeyHash],
        wallet: Option<&Address>,
    ) -> Result<EarlierPayments, Unavailable> {
        let failed = payment::unresolved(listing, buyers, wallet, self.now);
        let records: Vec<PaymentRecord> = self.database.run(failed).await?.all_json()?;
        let (count, checked) = (records.len(), records.get(..MAX_CHECKED).unwrap_or(&records));
        // A provider may have passed on what it refused; no node keeps an expired one. The mempool is asked before the
        // blocks: what left it meanwhile is seen where it went.
        let mut waiting = None;
        for record in checked.iter().filter(|record| record.entry.state == EntryState::Refused) {
            if self.chain.in_mempool(&record.entry.tx).await? {
                waiting = Some(record.entry.tx);
                break;
            }
        }
        let (included, never_included) = self.find_included(checked).await?;
        if included.is_some() {
            return Ok(EarlierPayments::Found);
        }
        if let Some(tx) = waiting {
            return Ok(EarlierPayments::Waiting(tx));
        }
        Ok(match (checked.last(), count > checked.len()) {
            (Some(last), true) if never_included == 0 => EarlierPayments::TooMany(last.entry.tx),
            (_, true) => EarlierPayments::Found,
            (_, false) => EarlierPayments::NotFound(count.saturating_sub(never_included)),
        })
    }

    /// The first of these payments that a block has, and how many of them no block had long after their validity ended.
    async fn find_included(&self, records: &[PaymentRecord]) -> Result<(Option<TxHash>, usize), Unavailable> {
        let mut never_included = vec![];
        for mut record in records.iter().cloned() {
            let decision = self.outbox().refresh(&mut record.entry, None, Trust::Payer, self.now).await?;
            if let Decision::Include(_) = decision {
                return Ok((Some(record.entry.tx), 0));
            }
            if !record.entry.state.is_open() && record.entry.valid_until < payment::oldest_uncertain_slot(self.now) {
                never_included.push(record.entry.tx);
            }
        }
        // One that no block had long after its validity is not checked again: it would take the place of others.
        if !never_included.is_empty() {
            self.database.run(outbox::mark_never_included(&never_included)).await?;
        }
        Ok((None, never_included.len()))
    }

    /// The content that this payment bought, unless it was read on the way.
    async fn bought(&self, hash: &ContentHash, payment: &TxHash, read: Option<String>) -> Result<String, Unavailable> {
        match read {
            Some(content) => Ok(content),
            None => Ok(self.contents.bought(hash, payment).await?.ok_or_else(|| content_missing(hash))?),
        }
    }

    /// A verified payment, to be claimed; `header` is the digest of what carried it here.
    async fn new_payment<'a>(
        &self,
        (terms, mode, offered): (&'a ListingTerms, DeliveryMode, &Offered),
        verified: &'a VerifiedPayment,
        header: ContentHash,
        provenance: Provenance,
    ) -> Result<NewPayment<'a>, Unavailable> {
        // There is something to deliver: where contents lie in the database, the claim makes sure of that by this hash.
        let hash = &terms.content_hash;
        let content = self.contents.reading(hash).is_some().then_some(*hash);
        if content.is_none() && self.contents.get(hash).await?.is_none() {
            return Err(content_missing(hash).into());
        }
        Ok(NewPayment {
            tx: verified.tx_id,
            cbor: &verified.cbor,
            valid_until: verified.valid_until,
            provenance,
            listing_id: &terms.id,
            mode,
            payer: verified.payer,
            // An offer asks for it, and a payment that pays anything else is not verified.
            amount: terms.price_lovelace,
            header,
            terms_digest: offered.terms_digest().map(|digest| digest.0),
            identifier: None,
            inputs: &verified.inputs,
            account: None,
            content,
            checked: 0,
            excluded: 0,
        })
    }
}

/// The method that pays for a listing in this mode, where it is offered so and that is configured.
fn method_of<'a>(
    options: &[PaymentOption<'a>],
    terms: &ListingTerms,
    mode: DeliveryMode,
) -> Option<&'a dyn PaymentMethod> {
    let option = options.iter().find(|(known, _)| *known == mode && terms.modes.contains(&mode));
    option.map(|(_, method)| *method)
}

/// That the content of a payment may be released at this time of the escrow clock, POSIX ms.
///
/// # Errors
/// [`Unavailable::NoResult`] where a block is waited for, [`Unavailable::Refundable`] where no result will come.
fn ensure_releasable(record: &PaymentRecord, clock: Millis) -> Result<(), Unavailable> {
    match record.release(clock) {
        Release::Now => Ok(()),
        Release::NotYet => Err(Unavailable::NoResult(record.entry.tx)),
        Release::Never => Err(Unavailable::Refundable(record.entry.tx)),
    }
}

fn content_missing(hash: &ContentHash) -> DatabaseError {
    DatabaseError(format!("the content {hash} is not there"))
}

fn x402_settlement(status: TxStatus) -> Settlement {
    let evidence = |block: Inclusion, confirmations| SettlementEvidence::Block { inclusion: block, confirmations };
    match status {
        TxStatus::Confirmed { block, confirmations } => Settlement::Confirmed(evidence(block, confirmations)),
        TxStatus::Pending { block: Some((block, newer)), .. } => Settlement::Pending(Some(evidence(block, newer))),
        TxStatus::Pending { submitted, .. } => Settlement::Pending(submitted.then_some(SettlementEvidence::Mempool)),
        TxStatus::Refused(reason) => Settlement::Refused(reason),
        TxStatus::Expired => Settlement::Expired,
    }
}
