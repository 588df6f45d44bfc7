//! Buying, for every kind of payer.
//!
//! ```text
//!            quote ──> the offers of each payment method
//! header ──> pay   ──> look up ──> recognise, verify ──> claim ──> settle ──> content                 (pay.rs)
//! account ─> buy   ──> owned? ──> build a payment, verify it ──> claim ──> settle ──> content         (buy.rs)
//! proof  ──> redeliver ──> content of an earlier purchase
//! wallet ──> draft ──> a transaction for its owner to sign, which comes back as a header              (draft.rs)
//! ```
//!
//! A claim (`claim.sql`) checks in one statement that the payment's terms are unused, that the payer neither owns the
//! listing nor is paying for it, that limits allow the payment, and that the content exists. So content is never
//! delivered unpaid, and never paid for twice.

mod buy;
mod draft;
mod errors;
mod pay;
mod presented;
mod redeliver;
mod settle;

pub use buy::Order;
use cardano::{
    Address, ContentHash, KeyHash, Lovelace, TxHash, chain::Chain, evaluation::Evaluate, keys::SignEd25519,
    slots::Millis,
};
pub use draft::{DraftOrder, PaymentDraft, PaymentDraftError, draft};
pub use errors::{BuyError, NotRead, PayError, Unavailable};
use outbox::{Decision, EntryState, Provenance, Sleep, Trust};
pub use pay::PaidContent;
pub use presented::{Presentation, Presented};
pub use redeliver::{OwnPurchase, Redelivered};
use sql::{Database, DatabaseError};
use x402_cardano::{
    exact::{Moment, VerifiedPayment},
    method::{OfferDraft, OfferError, Offered, PaymentMethod},
};

use crate::{
    catalogue::ListingTerms,
    claim::NewPayment,
    contents::Contents,
    listing::{DeliveryMode, ListingId},
    payment::{self, MAX_CHECKED, PaymentRecord},
    release::{Released, Unreleased},
    result_poster::Seller,
};

/// A configured payment method with its delivery mode.
pub type PaymentOption<'a> = (DeliveryMode, &'a dyn PaymentMethod);

/// The checkout during one request, with the ports, settings and times that it uses.
pub struct Checkout<'a, D, C, V, Z, K> {
    pub database: &'a D,
    pub chain: &'a C,
    pub signatures: &'a V,
    /// Waits between polls of the chain.
    pub sleep: &'a Z,
    pub contents: &'a K,
    /// The platform as seller of protected sales, if configured.
    pub seller: Option<Seller<'a>>,
    /// Whether the newest known block is too old for protected sales to be offered.
    pub behind: bool,
    pub options: &'a [PaymentOption<'a>],
    /// Wall clock in POSIX milliseconds.
    pub now: Millis,
    /// Clock for escrow deadlines: the later of the wall clock and the newest known block's time.
    pub clock: Millis,
    /// Milliseconds to wait before each poll of the chain.
    pub schedule: &'a [Millis],
    /// Required number of newer blocks (0 to 20) on top of the block that includes a payment, and on top of the block
    /// that includes its result.
    pub confirmations: u64,
    /// Returns whether the client has disconnected and so cannot receive the response.
    pub client_disconnected: &'a dyn Fn() -> bool,
    /// Writes a line to the log.
    pub note: &'a dyn Fn(&str),
}

/// State of a buyer's failed payments for a listing, as looked up on the chain.
enum FailedPayments {
    /// No block includes any of the payments. Contains the number of payments that could still be included.
    NotIncluded(usize),
    /// A block includes one of the payments, or some can no longer be included. The claim must be tried again.
    Changed,
    /// A node's mempool contains the failed payment with this id.
    InMempool(TxHash),
    /// There are more failed payments than can be looked up at once. Contains the id of the last one that was looked
    /// up.
    TooMany(TxHash),
}

/// Returns an offer of a sale for each configured payment method that the listing allows.
///
/// `signer` signs a protected offer. Nothing is stored.
///
/// # Errors
/// Returns an error if the configuration does not allow a quote.
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
            OfferDraft::Ready(ready) => *ready,
            OfferDraft::Unsigned(quote) => {
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

    /// Looks up on the chain whether a buyer's failed payments for a listing were included nevertheless. Recent
    /// payments of `wallet` are skipped, because the wallet's next payment will conflict with them.
    async fn look_up_failed_payments(
        &self,
        listing: &ListingId,
        buyers: &[KeyHash],
        wallet: Option<&Address>,
    ) -> Result<FailedPayments, Unavailable> {
        let failed = payment::unresolved(listing, buyers, wallet, self.now);
        let records = self.database.fetch(failed).await?;
        let (count, checked) = (records.len(), records.get(..MAX_CHECKED).unwrap_or(&records));
        // The mempool is checked first: a transaction that moves from it into a block in between is then still found.
        let mut waiting = None;
        for record in checked.iter().filter(|record| record.entry.state == EntryState::Refused) {
            if self.chain.in_mempool(&record.entry.tx).await? {
                waiting = Some(record.entry.tx);
                break;
            }
        }
        let (included, never_included) = self.find_included(checked).await?;
        if included.is_some() {
            return Ok(FailedPayments::Changed);
        }
        if let Some(tx) = waiting {
            return Ok(FailedPayments::InMempool(tx));
        }
        Ok(match (checked.last(), count > checked.len()) {
            (Some(last), true) if never_included == 0 => FailedPayments::TooMany(last.entry.tx),
            (_, true) => FailedPayments::Changed,
            (_, false) => FailedPayments::NotIncluded(count.saturating_sub(never_included)),
        })
    }

    /// Returns the first of these payments that a block includes, if any. Also returns how many of them expired so long
    /// ago that no block can include them.
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
        // Payments that expired long ago are not looked up again, so that they do not displace others.
        if !never_included.is_empty() {
            self.database.execute(outbox::mark_never_included(&never_included)).await?;
        }
        Ok((None, never_included.len()))
    }

    /// Returns the permission to hand out a payment's content, if it may be released now.
    fn ensure_released(&self, record: &PaymentRecord) -> Result<Released, Unavailable> {
        let tx = record.entry.tx;
        record.release(self.confirmations, self.clock).map_err(|why| match why {
            Unreleased::NotIncluded => Unavailable::NotIncluded(tx),
            Unreleased::NoResult => Unavailable::NoResult(tx),
            Unreleased::Unconfirmed => Unavailable::Unconfirmed(tx),
            Unreleased::Refundable => Unavailable::Refundable(tx),
            Unreleased::Refunded => Unavailable::Refunded(tx),
        })
    }

    /// Returns the content that a payment bought, for its buyer. Reads the content unless this request has read it
    /// before. This is the only function that hands out content.
    async fn hand_out(
        &self,
        Released { .. }: Released,
        hash: &ContentHash,
        payment: &TxHash,
        read: Option<String>,
    ) -> Result<String, Unavailable> {
        match read {
            Some(content) => Ok(content),
            None => self.read_bought(hash, payment).await,
        }
    }

    /// Reads the content that a payment bought, to hand it out or to compute its hash for the escrow.
    async fn read_bought(&self, hash: &ContentHash, payment: &TxHash) -> Result<String, Unavailable> {
        Ok(self.contents.bought(hash, payment).await?.ok_or_else(|| content_missing(hash))?)
    }

    /// Builds the data for claiming a verified payment. `price` is the price that it pays, and `header` is the hash of
    /// its `PAYMENT-SIGNATURE` header.
    async fn new_payment<'a>(
        &self,
        (terms, price, mode, offered): (&'a ListingTerms, Lovelace, DeliveryMode, &Offered),
        verified: &'a VerifiedPayment,
        header: ContentHash,
        provenance: Provenance,
    ) -> Result<NewPayment<'a>, Unavailable> {
        // If contents are in the database, the claim itself checks that this hash exists.
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
            amount: price,
            header,
            terms_digest: offered.terms_digest().map(|digest| digest.0),
            identifier: None,
            inputs: &verified.inputs,
            account: None,
            content,
            checked: 0,
            replaced: 0,
        })
    }
}

/// Returns the payment method for a delivery mode. `None` if no method is configured for the mode, or if the listing
/// does not allow it.
fn method_of<'a>(
    options: &[PaymentOption<'a>],
    terms: &ListingTerms,
    mode: DeliveryMode,
) -> Option<&'a dyn PaymentMethod> {
    let option = options.iter().find(|(known, _)| *known == mode && terms.modes.contains(&mode));
    option.map(|(_, method)| *method)
}

fn content_missing(hash: &ContentHash) -> DatabaseError {
    DatabaseError(format!("the content {hash} is missing"))
}
