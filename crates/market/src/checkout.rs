//! Buying: one use case for everybody who pays, whatever brings them here.
//!
//! ```text
//!            quote ──> the ways to pay, each method's offer
//! header ──> pay   ──> look up ──> recognise, verify ──> claim ──> settle ──> content      (pay.rs)
//! account ─> buy   ──> owned? ──> build from the service wallet ──> verify ──> claim ──> settle ──> content   (buy.rs)
//! proof  ──> redeliver ──> content of what was bought before
//! ```
//!
//! Nothing is delivered that is not paid for, nothing is paid twice: a claim is one statement in which the database holds
//! that the terms are new, that the payer neither owns the listing nor is paying for it, and that limits and inputs allow
//! it. What is paid for can be delivered: a claim fails where the content is not there.

mod buy;
mod pay;

pub use buy::{Bought, BuyError, Order};
use cardano::{
    Lovelace, TxHash,
    chain::{Chain, ChainError, Inclusion},
    slots::{Millis, SlotConfig},
};
use outbox::{Entry, Follow, Outbox, OutboxError, Patience, Settled, Sleep, Standing, Step, by_id};
pub use pay::{Paid, PayError, Presented};
use sql::{Database, DatabaseError, Rows, Statement, exactly};
use x402_cardano::{
    exact::Moment,
    method::{OfferError, Offered, PaymentMethod},
    settlement::{Evidence, Settlement},
};

use crate::{
    account::Account,
    catalogue::Terms,
    contents::{Contents, ContentsError},
    fees::creator_share,
    listing::DeliveryMode,
    payment,
    purchase::{self, Owned, Status},
    transitions::Transitions,
};

/// A way to pay, and the delivery mode that it is.
pub type Way<'a> = (DeliveryMode, &'a dyn PaymentMethod);

/// One request's view of the world.
pub struct Checkout<'a, D, C, V, Z, K> {
    /// The database.
    pub database: &'a D,
    /// The chain.
    pub chain: &'a C,
    /// Signature checks.
    pub signatures: &'a V,
    /// Waiting.
    pub sleep: &'a Z,
    /// What is sold.
    pub contents: &'a K,
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
    /// The purchase.
    pub purchase: TxHash,
    /// The content.
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
/// protection; nothing is stored.
///
/// # Errors
/// A quote that cannot be made: a fault of the configuration.
pub fn quote(ways: &[Way<'_>], terms: &Terms, clock: Millis, nonce: [u8; 32]) -> Result<Vec<Offered>, OfferError> {
    let offered = ways.iter().filter(|(mode, _)| terms.modes.contains(mode));
    offered.map(|(_, method)| method.offer(&terms.sale(), clock, nonce)).collect()
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
    fn follow(&self, entry: &Entry, step: &Step) -> Result<Vec<Statement>, DatabaseError> {
        let mut statements = Transitions.follow(entry, step)?;
        if matches!(step, Step::Include(_)) {
            if self.delivers && !(self.hung_up)() {
                statements.push(payment::mark_delivered(&entry.tx, self.now));
            }
            statements.push(purchase::read(&entry.tx));
        }
        Ok(statements)
    }
}

impl<D: Database, C: Chain, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    const fn moment(&self) -> Moment {
        Moment { now_ms: self.clock, slots: SlotConfig::PREPROD }
    }

    /// Drives a payment, and marks it delivered where it is confirmed by this.
    async fn settle(
        &self,
        entry: &mut Entry,
        first: Option<Option<&outbox::WalletSnapshot>>,
    ) -> Result<Settled, DatabaseError> {
        let confirmations = self.confirmations;
        // With more blocks to wait for, nothing is handed out when the first has it.
        let follow = Waiting { delivers: confirmations == 0, hung_up: self.hung_up, now: self.now };
        let outbox = Outbox { database: self.database, chain: self.chain, follow: &follow };
        let patience = Patience { sleep: self.sleep, schedule: self.schedule, confirmations };
        let settled = outbox.settle(entry, first, &patience, self.now).await?;
        let at_inclusion = confirmations == 0 && !settled.followed.is_empty();
        if matches!(settled.standing, Standing::Confirmed { .. }) && !at_inclusion && !(self.hung_up)() {
            self.database.run(payment::mark_delivered(&entry.tx, self.now)).await?;
        }
        Ok(settled)
    }

    /// The content again, for a buyer who proved to be one, by any of these addresses: of the purchase on record, or of a
    /// payment that is in a block by now, recorded with that. `None` where there is none.
    ///
    /// # Errors
    /// Something cannot be asked.
    pub async fn redeliver(&self, terms: &Terms, buyers: &[String]) -> Result<Option<Redelivered>, Unavailable> {
        let reads = vec![purchase::owned(&terms.id, buyers), payment::open(&terms.id, buyers)];
        let [owned, open] = exactly(self.database.batch(reads).await?)?;
        let mut found = owned.first_json::<Owned>()?.map(|owned| owned.id);
        if found.is_none() {
            found = self.find_included(&open).await?;
        }
        let Some(purchase) = found else { return Ok(None) };
        if !self.is_confirmed(&purchase).await? {
            return Ok(None);
        }
        Ok(Some(Redelivered { purchase, content: self.content(terms).await? }))
    }

    async fn is_confirmed(&self, purchase: &TxHash) -> Result<bool, Unavailable> {
        is_confirmed(self.database, self.chain, purchase, self.confirmations, self.now).await
    }

    async fn find_included(&self, open: &Rows) -> Result<Option<TxHash>, Unavailable> {
        let outbox = Outbox { database: self.database, chain: self.chain, follow: &Transitions };
        for mut record in payment::all(open)? {
            if let Step::Include(_) = outbox.look(&mut record.entry, None, self.now).await? {
                return Ok(Some(record.entry.tx));
            }
        }
        Ok(None)
    }

    async fn content(&self, terms: &Terms) -> Result<String, Unavailable> {
        let content = self.contents.get(&terms.content_hash).await?;
        content.ok_or_else(|| no_content(terms).into())
    }

    /// The content that a claim read beside it, or that is kept elsewhere and read before it.
    async fn content_before_claim(&self, terms: &Terms) -> Result<(Option<Statement>, Option<String>), Unavailable> {
        match self.contents.reading(&terms.content_hash) {
            Some(statement) => Ok((Some(statement), None)),
            None => Ok((None, Some(self.content(terms).await?))),
        }
    }
}

/// Whether a payment that is on record has as many newer blocks above its own as are asked for: a purchase is recorded when
/// the first block has it. After an hour no number that can be asked for is missing.
///
/// # Errors
/// Something cannot be asked.
pub async fn is_confirmed(
    database: &impl Database,
    chain: &impl Chain,
    tx: &TxHash,
    asked: u64,
    now: Millis,
) -> Result<bool, Unavailable> {
    const LONG_AGO_MS: Millis = 60 * 60 * 1_000;
    if asked == 0 {
        return Ok(true);
    }
    let entry = Entry::first(&database.run(by_id(tx)).await?)?;
    let Some(block) = entry.and_then(|entry| entry.block) else { return Ok(false) };
    if block.time_ms.saturating_add(LONG_AGO_MS) < now {
        return Ok(true);
    }
    let tip = chain.tip().await?;
    let block = chain.inclusion_of(tx).await?;
    Ok(block.is_some_and(|block| tip.height.saturating_sub(block.height) >= asked))
}

fn no_content(terms: &Terms) -> DatabaseError {
    DatabaseError(format!("the content of {} is not there", terms.id))
}

/// How a driven payment stands, in x402's words.
fn in_x402(standing: Standing) -> Settlement {
    let evidence = |block: Inclusion, confirmations| Evidence::Block { inclusion: block, confirmations };
    match standing {
        Standing::Confirmed { block, confirmations } => Settlement::Confirmed(evidence(block, confirmations)),
        Standing::Pending { block: Some((block, newer)), .. } => Settlement::Pending(Some(evidence(block, newer))),
        Standing::Pending { submitted, .. } => Settlement::Pending(submitted.then_some(Evidence::Mempool)),
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
