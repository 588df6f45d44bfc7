//! Redelivery of content to its buyer, who proves ownership by a signature over the listing or by a session.

use cardano::{
    ContentHash, KeyHash, TxHash,
    chain::{Chain, Inclusion},
    evaluation::Evaluate,
};
use outbox::{Sleep, Trust};
use sql::{Database, DatabaseError, exactly};

use super::{Checkout, NotRead, Unavailable, ensure_releasable, settle::Start};
use crate::{
    account::Account,
    catalogue::{self, ListingTerms},
    contents::Contents,
    payment::{self, PaymentRecord},
    purchase,
    release::Release,
};

/// A redelivered purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redelivered {
    pub purchase: TxHash,
    pub content: String,
}

/// Current state of a purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPurchase {
    /// Public JSON; `None` until the transaction is in a block.
    pub shown: Option<String>,
    /// Content hash of the listing.
    pub content_hash: ContentHash,
    /// Content, if requested and if the transaction is in a block. Never after a refund.
    pub content: Option<String>,
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// Returns the content that any of these payment keys bought, if any. Records payments that were included
    /// meanwhile.
    ///
    /// # Errors
    /// The database or the provider failed.
    pub async fn redeliver(
        &self,
        terms: &ListingTerms,
        buyers: &[KeyHash],
    ) -> Result<Option<Redelivered>, Unavailable> {
        let reads = vec![payment::owned(&terms.id, buyers), payment::maybe_included(&terms.id, buyers)];
        let [owned, paid] = exactly(self.database.batch(reads).await?)?;
        let mut found: Option<PaymentRecord> = owned.first_json()?;
        if found.is_none()
            && let (Some(included), _) = self.find_included(&paid.all_json()?).await?
        {
            found = self.database.run(payment::by_tx(&included)).await?.first_json()?;
        }
        // A rejected payment may have been claimed for another listing meanwhile.
        let is_same_listing = |record: &PaymentRecord| record.listing_id == terms.id;
        let Some(mut record) = found.filter(is_same_listing) else { return Ok(None) };
        if record.release(self.clock) != Release::Now {
            let outcome = self.settle(&mut record.entry, terms, Start::Resume, Trust::Payer).await?;
            record = outcome.settled.record.unwrap_or(record);
        }
        if !is_same_listing(&record) {
            return Ok(None);
        }
        let content = self.content_again(&record, &terms.content_hash).await?;
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
        let reads = vec![payment::of_buyers(id, &account.keys()), purchase::read(id), catalogue::content_paid_by(id)];
        let [record, shown, hash] = exactly(self.database.batch(reads).await?)?;
        let record: PaymentRecord = record.first_json()?.ok_or(NotRead::Unknown)?;
        let missing = || DatabaseError(format!("{} has no content", record.listing_id));
        let content_hash: ContentHash = hash.first_json()?.ok_or_else(missing)?;
        let content = match (record.is_purchase(), with_content) {
            (false, _) if record.entry.state.is_open() => None,
            (false, _) => return Err(NotRead::Failed),
            (true, false) => None,
            (true, true) if record.is_refunded() => return Err(NotRead::Refunded),
            (true, true) => Some(self.content_again(&record, &content_hash).await?),
        };
        Ok(OwnPurchase { shown: shown.first().map(str::to_owned), content_hash, content })
    }

    /// Returns the content of a purchase once it has enough confirmations. A signature by the payer of a fresh payment
    /// proves no more than the payment itself.
    async fn content_again(&self, record: &PaymentRecord, hash: &ContentHash) -> Result<String, Unavailable> {
        ensure_releasable(record, self.clock)?;
        if self.confirmations > 0 && self.confirmations_of(record).await?.1 < self.confirmations {
            return Err(Unavailable::Unconfirmed(record.entry.tx));
        }
        self.bought(hash, &record.entry.tx, None).await
    }

    /// Returns the block of a purchase and its number of confirmations, which is counted only if any are required.
    pub(super) async fn confirmations_of(&self, record: &PaymentRecord) -> Result<(Inclusion, u64), Unavailable> {
        let purchase = record.entry.tx;
        let missing = || DatabaseError(format!("the payment of {purchase} is in no block"));
        let block = record.entry.block.ok_or_else(missing)?;
        if self.confirmations == 0 {
            return Ok((block, 0));
        }
        let tip = self.chain.tip().await?;
        // The stored block may have been rolled back, so confirmations are counted only if the transaction is still in
        // a block.
        let shown = self.chain.inclusion_of(&purchase).await?;
        Ok((block, shown.map_or(0, |shown| tip.height.saturating_sub(shown.height))))
    }
}
