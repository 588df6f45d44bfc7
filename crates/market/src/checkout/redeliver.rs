//! Content again, for a buyer who proves to be one: by a signature over the listing, or in a session by a purchase's id.

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

/// What was bought before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redelivered {
    pub purchase: TxHash,
    pub content: String,
}

/// A purchase of the account's as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPurchase {
    /// Its public JSON; `None` while no block has its transaction.
    pub shown: Option<String>,
    /// What the listing promised.
    pub content_hash: ContentHash,
    /// What was bought, where it was asked for and a block has the transaction; never after a refund.
    pub content: Option<String>,
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// The content again, for a buyer who proved to be one, by any of these payment keys. It is that of the purchase on
    /// record, or of a payment that is in a block by now and is recorded so. `None` where there is none.
    ///
    /// # Errors
    /// Something cannot be asked.
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
        // A payment that was refused once may have been claimed for another listing meanwhile.
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

    /// One purchase of an account's, with its content where that is asked for.
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

    /// Content that was bought before. It needs as many confirmations as the first time: a buyer who proves a payment
    /// of a moment ago has no more to show than that payment.
    async fn content_again(&self, record: &PaymentRecord, hash: &ContentHash) -> Result<String, Unavailable> {
        ensure_releasable(record, self.clock)?;
        if self.confirmations > 0 && self.confirmations_of(record).await?.1 < self.confirmations {
            return Err(Unavailable::Unconfirmed(record.entry.tx));
        }
        self.bought(hash, &record.entry.tx, None).await
    }

    /// The block of a purchase, and how many newer ones there are; none is counted where none is asked for.
    pub(super) async fn confirmations_of(&self, record: &PaymentRecord) -> Result<(Inclusion, u64), Unavailable> {
        let purchase = record.entry.tx;
        let missing = || DatabaseError(format!("the payment of {purchase} is in no block"));
        let block = record.entry.block.ok_or_else(missing)?;
        if self.confirmations == 0 {
            return Ok((block, 0));
        }
        let tip = self.chain.tip().await?;
        // Newer blocks count only above a block that still has it: a rollback may have removed the one on record.
        let shown = self.chain.inclusion_of(&purchase).await?;
        Ok((block, shown.map_or(0, |shown| tip.height.saturating_sub(shown.height))))
    }
}
