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
mod given;
mod pay;

pub use buy::{Bought, BuyError, Order};
use cardano::{
    Lovelace, TxHash,
    chain::{Chain, ChainError, Inclusion},
    keys::SignEd25519,
    slots::{Millis, SlotConfig},
};
pub use draft::{DraftError, DraftOrder, PaymentDraft, draft};
pub use given::{Results, must_be_given};
use outbox::{Decision, Entry, EntryState, Follow, Outbox, OutboxError, Patience, Settled, Sleep, Standing};
pub use pay::{Paid, PayError, Presented};
use serde::Deserialize;
use sql::{Database, DatabaseError, Rows, Statement, exactly};
use x402_cardano::{
    exact::Moment,
    method::{Draft, OfferError, Offered, PaymentMethod},
    settlement::{Settlement, SettlementEvidence},
};

use crate::{
    account::Account,
    catalogue::ListingTerms,
    contents::{Contents, ContentsError, MOST_HELD},
    fees::creator_share,
    listing::DeliveryMode,
    payment::{self, PaymentRecord},
    purchase::{self, Owned, Status},
    transitions::Transitions,
};

/// A way to pay, and the delivery mode that it is.
pub type Way<'a> = (DeliveryMode, &'a dyn PaymentMethod);

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
    /// Who posts results.
    pub results: &'a dyn Results,
    /// The ways to pay that are configured.
    pub ways: &'a [Way<'a>],
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// The clock of escrow matters: the later of the wall clock and the newest known block's time.
    pub clock: Millis,
    /// Waits in ms between looks for a block.
    pub schedule: &'a [Millis],
    /// Newer blocks that a payment waits for beyond the one that has it: 0 to 20.
    pub confirmations: u64,
    /// Whether whoever asks has hung up: what was not received is not delivered.
    pub hung_up: &'a dyn Fn() -> bool,
}

/// What was bought before, for who proves to be the buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redelivered {
    pub purchase: TxHash,
    pub content: String,
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
    /// A lock's result is not posted, and may not be in time: the money could be taken back.
    #[error(
        "the result of {0} is not posted yet: the content comes with it, try again in a minute; where it never \
         is, ask for the money back"
    )]
    NoResult(TxHash),
    /// More protected sales wait for their results than are posted in time.
    #[error(
        "too many protected sales wait for their results, of all or of your network: nothing was handed in; try again in a \
         few minutes, with a new payment unless this one is public already"
    )]
    Crowded,
}

impl From<OutboxError> for Unavailable {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::Database(error) => Self::Database(error),
            OutboxError::Chain(error) => Self::Chain(error),
        }
    }
}

/// The offers of a sale, by every way that the listing offers and that is configured. One signature where it offers
/// protection, made by this signer; nothing is stored.
///
/// # Errors
/// A quote that cannot be made: a fault of the configuration.
pub async fn quote(
    signer: &impl SignEd25519,
    ways: &[Way<'_>],
    terms: &ListingTerms,
    clock: Millis,
    nonce: [u8; 32],
) -> Result<Vec<Offered>, OfferError> {
    let mut offered = Vec::with_capacity(ways.len());
    for (_, method) in ways.iter().filter(|(mode, _)| terms.modes.contains(mode)) {
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
fn creator_part(mode: DeliveryMode, price: Lovelace) -> Lovelace {
    match mode {
        DeliveryMode::Instant => Lovelace::ZERO,
        DeliveryMode::Protected => creator_share(price),
    }
}

/// What follows from a payment's inclusion in a request that waits for it: the purchase, that its content is handed out,
/// and the purchase as it is shown.
struct Waiting<'a> {
    delivers: bool,
    hung_up: &'a dyn Fn() -> bool,
    now: Millis,
}

impl Follow for Waiting<'_> {
    fn follow(&self, entry: &Entry, step: &Decision) -> Result<Vec<Statement>, DatabaseError> {
        let mut statements = Transitions.follow(entry, step)?;
        if matches!(step, Decision::Include(_)) {
            if self.delivers && !(self.hung_up)() {
                statements.push(payment::mark_delivered(&entry.tx, self.now));
            }
            statements.extend([payment::record(&entry.tx), purchase::read(&entry.tx)]);
        }
        Ok(statements)
    }
}

/// What is read of a purchase that was recorded just now.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    listing_id: String,
}

impl<D: Database, C: Chain, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    const fn moment(&self) -> Moment {
        Moment { now_ms: self.clock, slots: SlotConfig::PREPROD }
    }

    /// Drives a payment, and marks it delivered where it is confirmed by this, and nothing else is waited for.
    async fn settle(
        &self,
        entry: &mut Entry,
        mode: DeliveryMode,
        first: Option<Option<&outbox::WalletSnapshot>>,
        has_content: bool,
    ) -> Result<Settled, DatabaseError> {
        let confirmations = self.confirmations;
        // With more blocks to wait for, nothing is handed out when the first has it.
        let delivers = first.is_some() && mode == DeliveryMode::Instant && has_content;
        let follow = Waiting { delivers: delivers && confirmations == 0, hung_up: self.hung_up, now: self.now };
        let outbox = Outbox { database: self.database, chain: self.chain, follow: &follow };
        let patience = Patience { sleep: self.sleep, schedule: self.schedule, confirmations };
        let settled = outbox.settle(entry, first, &patience, self.now).await?;
        let at_inclusion = confirmations == 0 && !settled.followed.is_empty();
        if delivers && matches!(settled.standing, Standing::Confirmed { .. }) && !at_inclusion && !(self.hung_up)() {
            self.database.run(payment::mark_delivered(&entry.tx, self.now)).await?;
        }
        Ok(settled)
    }

    /// Whether the purchase that is recorded, where a payment is confirmed, is of this listing: what the ledger refused once
    /// may have been taken up for another one meanwhile.
    async fn is_of(&self, terms: &ListingTerms, tx: &TxHash, settled: &Settled) -> Result<bool, DatabaseError> {
        if !matches!(settled.standing, Standing::Confirmed { .. }) {
            return Ok(true);
        }
        let purchase: Option<Recorded> = match settled.followed.last() {
            Some(rows) => rows.first_json()?,
            // Another request recorded it.
            None => self.database.run(purchase::owner(tx)).await?.first_json()?,
        };
        let purchase = purchase.ok_or_else(|| DatabaseError(format!("{tx} is gone")))?;
        Ok(purchase.listing_id == terms.id)
    }

    /// The content again, for a buyer who proved to be one, by any of these addresses: of the purchase on record, or of a
    /// payment that is in a block by now, recorded with that. `None` where there is none.
    ///
    /// # Errors
    /// Something cannot be asked.
    pub async fn redeliver(&self, terms: &ListingTerms, buyers: &[String]) -> Result<Option<Redelivered>, Unavailable> {
        let reads = vec![purchase::owned(&terms.id, buyers), payment::maybe_included(&terms.id, buyers)];
        let [owned, paid] = exactly(self.database.batch(reads).await?)?;
        let mut found = owned.first_json::<Owned>()?;
        if found.is_none()
            && let Some(included) = self.find_included(&paid).await?
        {
            found = self.database.run(purchase::owner(&included)).await?.first_json()?;
        }
        // What the ledger refused once may have been taken up for another listing meanwhile.
        let Some(owned) = found.filter(|owned| owned.listing_id == terms.id) else { return Ok(None) };
        must_be_given(self.database, self.chain, &owned, self.confirmations, self.clock).await?;
        Ok(Some(Redelivered { purchase: owned.id, content: self.bought(terms, &owned.id).await? }))
    }

    async fn find_included(&self, paid: &Rows) -> Result<Option<TxHash>, Unavailable> {
        let outbox = Outbox { database: self.database, chain: self.chain, follow: &Transitions };
        let mut absent = vec![];
        for mut record in payment::all(paid)? {
            record.entry.unanswered = false;
            if let Decision::Include(_) = outbox.look(&mut record.entry, None, self.now).await? {
                return Ok(Some(record.entry.tx));
            }
            if !record.entry.state.is_open() && record.entry.valid_until < payment::lately(self.now) {
                absent.push(record.entry.tx);
            }
        }
        // What is looked for in vain for good must not stand before what is not.
        if !absent.is_empty() {
            self.database.run(outbox::absent(&absent)).await?;
        }
        Ok(None)
    }

    /// Which of these payments, that a node refused, waits for a block all the same: a provider may have refused what it
    /// passed on.
    async fn find_waiting(&self, paid: &Rows) -> Result<Option<TxHash>, Unavailable> {
        // No node keeps what is over.
        let refused = |record: &PaymentRecord| record.entry.state == EntryState::Refused;
        for record in payment::all(paid)?.into_iter().filter(refused) {
            if self.chain.in_mempool(&record.entry.tx).await? {
                return Ok(Some(record.entry.tx));
            }
        }
        Ok(None)
    }

    /// The content for whom this payment bought it for.
    async fn bought(&self, terms: &ListingTerms, payment: &TxHash) -> Result<String, Unavailable> {
        let content = self.contents.bought(&terms.content_hash, payment).await?;
        content.ok_or_else(|| no_content(terms).into())
    }

    /// The same where it was read before, or now.
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

    /// The content that a claim reads beside it, where it is one, or that is kept elsewhere and read before it.
    async fn content_before_claim(
        &self,
        terms: &ListingTerms,
    ) -> Result<(Option<Statement>, Option<String>), Unavailable> {
        match self.contents.reading(&terms.content_hash) {
            Some(statement) => Ok((Some(statement), None)),
            None => {
                let content = self.contents.get(&terms.content_hash).await?.ok_or_else(|| no_content(terms))?;
                Ok((None, Some(content).filter(|content| content.len() <= MOST_HELD)))
            }
        }
    }
}

fn no_content(terms: &ListingTerms) -> DatabaseError {
    DatabaseError(format!("the content of {} is not there", terms.id))
}

/// How a driven payment stands, in x402's words.
fn in_x402(standing: Standing) -> Settlement {
    let evidence = |block: Inclusion, confirmations| SettlementEvidence::Block { inclusion: block, confirmations };
    match standing {
        Standing::Confirmed { block, confirmations } => Settlement::Confirmed(evidence(block, confirmations)),
        Standing::Pending { block: Some((block, newer)), .. } => Settlement::Pending(Some(evidence(block, newer))),
        Standing::Pending { submitted, .. } => Settlement::Pending(submitted.then_some(SettlementEvidence::Mempool)),
        Standing::Refused(reason) => Settlement::Refused(reason),
        Standing::Expired => Settlement::Expired,
    }
}

/// The addresses under which an account may own something.
#[must_use]
pub fn buyers_of(account: &Account) -> Vec<String> {
    vec![account.wallet_address.to_string(), account.owner.clone()]
}

/// Whether a purchase was refunded: what it bought is no longer the buyer's.
const fn is_refunded(status: Option<Status>) -> bool {
    matches!(status, Some(Status::Refunded))
}
