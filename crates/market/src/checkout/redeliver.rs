//! Redelivery of content to its buyer, who proves ownership by a signature over the listing or by a session.

use api_types::Purchase;
use cardano::{ContentHash, KeyHash, TxHash, chain::Chain, evaluation::Evaluate};
use outbox::{Sleep, Trust};
use sql::{Database, DatabaseError};

use super::{
    Checkout, NotRead, Unavailable,
    settle::{PaymentOutcome, Start},
};
use crate::{
    account::Account,
    catalogue::{self, ListingTerms},
    contents::Contents,
    payment::{self, PaymentRecord},
    purchase,
    release::Unreleased,
};

/// A redelivered purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redelivered {
    pub purchase: TxHash,
    pub content: String,
}

/// A purchase as its owner reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPurchase {
    /// The purchase; `None` until a block includes its transaction.
    pub purchase: Option<Purchase>,
    /// Content hash of the listing.
    pub content_hash: ContentHash,
    /// The purchased content; `None` if it was not requested, or if no block includes the transaction yet.
    pub content: Option<String>,
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// Returns the listing's content if one of these payment keys has bought it, or `None`. Records payments that
    /// blocks have included meanwhile.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn redeliver(
        &self,
        terms: &ListingTerms,
        buyers: &[KeyHash],
    ) -> Result<Option<Redelivered>, Unavailable> {
        let reads = (payment::owned(&terms.id, buyers), payment::maybe_included(&terms.id, buyers));
        let (mut found, paid) = self.database.batch(reads).await?;
        if found.is_none()
            && let (Some(included), _) = self.find_included(&paid).await?
        {
            found = self.database.fetch(payment::by_tx(&included)).await?;
        }
        // A rejected payment may have been claimed for another listing meanwhile.
        let is_same_listing = |record: &PaymentRecord| record.listing_id == terms.id;
        let Some(mut record) = found.filter(is_same_listing) else { return Ok(None) };
        let release = record.release(self.confirmations, self.clock);
        if let Err(Unreleased::NotIncluded | Unreleased::NoResult) = release
            && let PaymentOutcome::Included(settled) =
                self.settle(&mut record.entry, terms, Start::Resume, Trust::Payer).await?
        {
            record = settled.record;
        }
        if !is_same_listing(&record) {
            return Ok(None);
        }
        let content = self.content_again(&mut record, &terms.content_hash).await?;
        Ok(Some(Redelivered { purchase: record.entry.tx, content }))
    }

    /// Returns a purchase of the account, with its content if requested.
    ///
    /// # Errors
    /// See [`NotRead`].
    pub async fn own_purchase(
        &self,
        account: &Account,
        id: &TxHash,
        with_content: bool,
    ) -> Result<OwnPurchase, NotRead> {
        let reads = (payment::of_buyers(id, &account.keys()), purchase::read(id), catalogue::content_paid_by(id));
        let (record, purchase, hash) = self.database.batch(reads).await?;
        let mut record = record.ok_or(NotRead::Unknown)?;
        let missing = || DatabaseError(format!("{} has no content", record.listing_id));
        let content_hash: ContentHash = hash.ok_or_else(missing)?;
        let content = match (record.is_purchase(), with_content) {
            (false, _) if record.entry.state.is_open() => None,
            (false, _) => return Err(NotRead::Failed),
            (true, false) => None,
            (true, true) => Some(self.content_again(&mut record, &content_hash).await?),
        };
        Ok(OwnPurchase { purchase: purchase.map(Into::into), content_hash, content })
    }

    /// Returns content that was bought earlier, if it may be released now. Queries the provider only if nothing but
    /// newer blocks is missing.
    async fn content_again(&self, record: &mut PaymentRecord, hash: &ContentHash) -> Result<String, Unavailable> {
        if record.release(self.confirmations, self.clock) == Err(Unreleased::Unconfirmed) {
            self.observe(record).await?;
        }
        let released = self.ensure_released(record)?;
        self.hand_out(released, hash, &record.entry.tx, None).await
    }
}
