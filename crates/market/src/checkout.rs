//! Buying: one use case for everybody who pays, whatever brings them here.
//!
//! ```text
//!            quote ──> the ways to pay, each method's offer
//! header ──> pay   ──> look up ──> recognise, verify ──> claim ──> settle ──> content      (pay.rs)
//! account ─> buy   ──> owned? ──> build from the service wallet ──> verify ──> claim ──> settle ──> content   (buy.rs)
//! proof  ──> redeliver ──> content of what was bought before
//! wallet ──> draft ──> a transaction for its owner to sign, which comes back as a header      (draft.rs)
//! ```
//!
//! Nothing is delivered that is not paid for, nothing is paid twice: a claim is one statement in which the database holds
//! that the terms are new, that the payer neither owns the listing nor is paying for it, and that limits and inputs allow
//! it. What is paid for can be delivered: a claim fails where the content is not there.

mod buy;
mod draft;
mod pay;
mod settle;

pub use buy::{Bought, BuyError, Order};
use cardano::{
    KeyHash, Lovelace, TxHash,
    chain::{Chain, ChainError, Inclusion},
    evaluation::Evaluate,
    keys::SignEd25519,
    slots::Millis,
};
pub use draft::{DraftError, DraftOrder, PaymentDraft, draft};
use outbox::{Decision, EntryState, OutboxError, Sleep, Trust, TxStatus};
pub use pay::{Paid, PayError, Presented};
use settle::ensure;
use sql::{Database, DatabaseError, Rows, exactly};
use x402_cardano::{
    exact::Moment,
    method::{Draft, OfferError, Offered, PaymentMethod},
    settlement::{Settlement, SettlementEvidence},
};

use crate::{
    catalogue::ListingTerms,
    contents::{Contents, ContentsError},
    fees::creator_share,
    listing::DeliveryMode,
    payment::{self, MAX_CHECKED, PaymentRecord},
    purchase::{self, Owned},
    release::{Release, release},
    results::Seller,
};

/// A payment method, and the delivery mode that it is.
pub type PaymentOption<'a> = (DeliveryMode, &'a dyn PaymentMethod);

/// One request's view of the world.
pub struct Checkout<'a, D, C, V, Z, K> {
    pub database: &'a D,
    pub chain: &'a C,
    /// Signature checks.
    pub signatures: &'a V,
    /// Waiting.
    pub sleep: &'a Z,
    /// What is sold.
    pub contents: &'a K,
    /// The platform as seller of record, where protected sales are configured.
    pub seller: Option<Seller<'a>>,
    /// Whether the newest known block is too old for protected sales: none is paid for anew.
    pub behind: bool,
    /// The payment methods that are configured.
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

/// What was bought before, for who proves to be the buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redelivered {
    pub purchase: TxHash,
    pub content: String,
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

/// What cannot be asked now. Nobody's fault; the same request may succeed later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The content cannot be read.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// A purchase is in a block, with fewer newer ones than are waited for.
    #[error(
        "the payment {0} is in a block, and newer ones are waited for: try again in a minute; nothing is paid twice"
    )]
    Unconfirmed(TxHash),
    /// No block has a lock's result yet.
    #[error(
        "the payment {0} is locked, and its result is not in a block yet: try again in a minute; nothing is paid twice"
    )]
    NoResult(TxHash),
    /// The newest known block is too old.
    #[error(
        "protected purchases are paused while this service catches up with the chain; nothing was paid; try again in a minute"
    )]
    ChainBehind,
    /// The database was restored, and the service wallet's purchases since the backup are not read from the chain yet.
    #[error(
        "this service was restored from a backup and reads from the chain what this wallet bought since; nothing was paid; \
         try again in a minute"
    )]
    Restoring,
    /// No result of a lock was posted in time.
    #[error("no result of {0} was posted in time: the content is not delivered; take the money back")]
    Refundable(TxHash),
}

impl From<OutboxError> for Unavailable {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::Database(error) => Self::Database(error),
            OutboxError::Chain(error) => Self::Chain(error),
        }
    }
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

/// What the creator gets of a sale under these terms: of an instant sale nothing is passed on.
pub(crate) fn creator_part(mode: DeliveryMode, price: Lovelace) -> Lovelace {
    match mode {
        DeliveryMode::Instant => Lovelace::ZERO,
        DeliveryMode::Protected => creator_share(price),
    }
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    const fn moment(&self) -> Moment {
        Moment { now_ms: self.clock, slots: api_types::SLOTS }
    }

    /// The content again, for a buyer who proved to be one, by any of these payment keys: of the purchase on record, or of a
    /// payment that is in a block by now, recorded with that. `None` where there is none.
    ///
    /// # Errors
    /// Something cannot be asked.
    pub async fn redeliver(
        &self,
        terms: &ListingTerms,
        buyers: &[KeyHash],
    ) -> Result<Option<Redelivered>, Unavailable> {
        let reads = vec![purchase::owned(&terms.id, buyers), payment::maybe_included(&terms.id, buyers)];
        let [owned, paid] = exactly(self.database.batch(reads).await?)?;
        let mut found = owned.first_json::<Owned>()?;
        if found.is_none()
            && let Some(included) = self.find_included(&paid).await?
        {
            found = self.database.run(purchase::owner(&included)).await?.first_json()?;
        }
        // A payment that was refused once may have been claimed for another listing meanwhile.
        let Some(mut owned) = found.filter(|owned| owned.listing_id == terms.id) else { return Ok(None) };
        if release(&owned.facts, self.clock, &api_types::SLOTS) != Release::Now {
            self.go_on(terms, &owned.id).await?;
            let again = self.database.run(purchase::owner(&owned.id)).await?.first_json()?;
            owned = again.ok_or_else(|| DatabaseError(format!("the purchase {} is gone", owned.id)))?;
        }
        ensure_redeliverable(self.database, self.chain, &owned, self.confirmations, self.clock).await?;
        Ok(Some(Redelivered { purchase: owned.id, content: self.bought(terms, &owned.id).await? }))
    }

    /// Goes on with a lock whose result is not in a block yet.
    async fn go_on(&self, terms: &ListingTerms, lock: &TxHash) -> Result<(), Unavailable> {
        let record: Option<PaymentRecord> = self.database.run(payment::record(lock)).await?.first_json()?;
        let mut record = record.ok_or_else(|| DatabaseError(format!("the payment {lock} is gone")))?;
        self.settle(&mut record.entry, terms, None, Trust::Payer).await?;
        Ok(())
    }

    /// Looks for a buyer's failed payments on the chain.
    async fn look_for_earlier(&self, failed: &Rows) -> Result<EarlierPayments, Unavailable> {
        let records = payment::all(failed)?;
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
        let (included, absent) = self.find_among(checked).await?;
        if included.is_some() {
            return Ok(EarlierPayments::Found);
        }
        if let Some(tx) = waiting {
            return Ok(EarlierPayments::Waiting(tx));
        }
        Ok(match (checked.last(), count > checked.len()) {
            (Some(last), true) if absent == 0 => EarlierPayments::TooMany(last.entry.tx),
            (_, true) => EarlierPayments::Found,
            (_, false) => EarlierPayments::NotFound(count.saturating_sub(absent)),
        })
    }

    async fn find_included(&self, paid: &Rows) -> Result<Option<TxHash>, Unavailable> {
        Ok(self.find_among(&payment::all(paid)?).await?.0)
    }

    /// Which of these payments a block has, and how many of them no block had long after their end.
    async fn find_among(&self, records: &[PaymentRecord]) -> Result<(Option<TxHash>, usize), Unavailable> {
        let mut absent = vec![];
        for mut record in records.iter().cloned() {
            let step = self.outbox().refresh(&mut record.entry, None, Trust::Payer, self.now).await?;
            if let Decision::Include(_) = step {
                return Ok((Some(record.entry.tx), 0));
            }
            if !record.entry.state.is_open() && record.entry.valid_until < payment::lately(self.now) {
                absent.push(record.entry.tx);
            }
        }
        // One that no block had long after its end is not looked for again: it would hide others.
        if !absent.is_empty() {
            self.database.run(outbox::absent(&absent)).await?;
        }
        Ok((None, absent.len()))
    }

    /// The content that this payment bought.
    async fn bought(&self, terms: &ListingTerms, payment: &TxHash) -> Result<String, Unavailable> {
        let content = self.contents.bought(&terms.content_hash, payment).await?;
        content.ok_or_else(|| no_content(terms).into())
    }

    /// Content that was read before, or now.
    async fn bought_or(
        &self,
        content: Option<String>,
        terms: &ListingTerms,
        payment: &TxHash,
    ) -> Result<String, Unavailable> {
        match content {
            Some(content) => Ok(content),
            None => self.bought(terms, payment).await,
        }
    }

    /// Makes sure that there is something to deliver before anything is paid: where contents lie in the database, the
    /// claim does so by this hash.
    async fn content_for_claim(&self, terms: &ListingTerms) -> Result<Option<cardano::ContentHash>, Unavailable> {
        if self.contents.reading(&terms.content_hash).is_some() {
            return Ok(Some(terms.content_hash));
        }
        self.contents.get(&terms.content_hash).await?.ok_or_else(|| no_content(terms))?;
        Ok(None)
    }
}

/// That content may be delivered again: it needs as many confirmations as the first time, for a buyer who proves to have
/// paid a moment ago has no more to show than the payment. `clock` is the escrow clock, POSIX ms.
///
/// # Errors
/// [`Unavailable::Unconfirmed`], [`Unavailable::NoResult`], [`Unavailable::Refundable`], or what cannot be asked.
pub async fn ensure_redeliverable(
    database: &impl Database,
    chain: &impl Chain,
    owned: &Owned,
    wanted: u64,
    clock: Millis,
) -> Result<(), Unavailable> {
    ensure(&owned.id, release(&owned.facts, clock, &api_types::SLOTS))?;
    if wanted == 0 {
        return Ok(());
    }
    let record = database.run(payment::record(&owned.id)).await?;
    let (_, newer) = confirmations_of(&record, chain, &owned.id, wanted).await?;
    if newer >= wanted { Ok(()) } else { Err(Unavailable::Unconfirmed(owned.id)) }
}

/// The block of a purchase, and how many newer ones there are; none is counted where none is asked for.
async fn confirmations_of(
    record: &Rows,
    chain: &impl Chain,
    purchase: &TxHash,
    wanted: u64,
) -> Result<(Inclusion, u64), Unavailable> {
    let block = record.first_json::<PaymentRecord>()?.and_then(|record| record.entry.block);
    let block = block.ok_or_else(|| DatabaseError(format!("the payment of {purchase} is in no block")))?;
    if wanted == 0 {
        return Ok((block, 0));
    }
    let tip = chain.tip().await?;
    // Newer blocks count only above a block that still has it: a rollback may have removed the one on record.
    let shown = chain.inclusion_of(purchase).await?;
    Ok((block, shown.map_or(0, |shown| tip.height.saturating_sub(shown.height))))
}

fn no_content(terms: &ListingTerms) -> DatabaseError {
    DatabaseError(format!("the content of {} is not there", terms.id))
}

/// How a driven payment stands, in x402's words.
fn in_x402(status: TxStatus) -> Settlement {
    let evidence = |block: Inclusion, confirmations| SettlementEvidence::Block { inclusion: block, confirmations };
    match status {
        TxStatus::Confirmed { block, confirmations } => Settlement::Confirmed(evidence(block, confirmations)),
        TxStatus::Pending { block: Some((block, newer)), .. } => Settlement::Pending(Some(evidence(block, newer))),
        TxStatus::Pending { submitted, .. } => Settlement::Pending(submitted.then_some(SettlementEvidence::Mempool)),
        TxStatus::Refused(reason) => Settlement::Refused(reason),
        TxStatus::Expired => Settlement::Expired,
    }
}
