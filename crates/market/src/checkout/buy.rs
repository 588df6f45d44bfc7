//! Buying from a service wallet: the terms, the rules and the settlement of an outside payer, in process.

use std::collections::BTreeSet;

use cardano::{
    Address, ContentHash, Lovelace, TxHash,
    chain::{Chain, ChainError, Tip, Utxo},
    evaluation::Evaluate,
    keys::{SigningKey, VerifyEd25519},
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{BuildError, BuiltTx, TxPlan, Validity, Wallet, build},
};
use outbox::{Earlier, Entry, OutboxError, Provenance, Sleep, Trust, TxStatus, WalletSnapshot, overdue, snapshot};
use sql::{Database, DatabaseError, exactly};
use x402_cardano::{
    Refusal,
    exact::{Facts, InputState, Moment, Payment, VerifiedPayment, verify_with_facts},
    method::{OfferError, Offered, PaymentMethod},
};

use super::{Checkout, EarlierPayments, Unavailable, content_missing, ensure_releasable, settle::PaymentOutcome};
use crate::{
    account::Account,
    catalogue::ListingTerms,
    claim::{Blocked, Claim, NewPayment, conditions},
    contents::{Contents, ContentsError},
    limits::SpendRefused,
    listing::DeliveryMode,
    payment::{self, PaymentRecord},
    purchase, subject,
};

/// How long a payment from a service wallet stays valid, in seconds: a dozen blocks of preprod. With one more for each try it stays
/// within `maxTimeoutSeconds`.
const VALID_SECONDS: u64 = 230;
/// How often a purchase that turns out to be made already is looked for again.
const MAX_ROUNDS: u32 = 3;
/// How often a purchase is built again because another took its inputs first.
const MAX_TRIES: u32 = 40;
/// The longest pause between attempts, in ms, of a wallet with few tokens. Random spread comes on top, as many requests
/// that wait for one wallet must leave it the time to pay.
const MAX_PAUSE_MS: Millis = 1_000;
/// Tokens of a wallet that make its pauses longer by one of these: what a try computes grows with them.
const TOKENS_PER_PAUSE: u64 = 256;
/// Milliseconds of waiting for other payments of the wallet, all tries together.
const MAX_WAIT_MS: Millis = 25_000;

/// What is bought, and who pays.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub account: &'a Account,
    /// Its service wallet's key.
    pub key: &'a SigningKey,
    pub terms: &'a ListingTerms,
    /// How to pay.
    pub mode: DeliveryMode,
    /// 32 random bytes: quotes are made under it, and tries that collide are spread by it.
    pub nonce: [u8; 32],
}

/// A purchase and what it bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bought {
    /// The purchase as JSON.
    pub purchase: String,
    /// What was bought.
    pub content: String,
    /// Whether it was bought before, so that nothing was paid now.
    pub already_owned: bool,
}

/// Why nothing was bought. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuyError {
    /// No listing is for sale under this id: an operator hid it, and the account does not own it.
    #[error("listingId: no such listing")]
    UnknownListing,
    /// The listing does not offer this way to pay, or it is not configured.
    #[error("mode: this listing does not offer {}", .0.as_str())]
    NotOffered(DeliveryMode),
    /// A limit is in the way.
    #[error(transparent)]
    SpendRefused(#[from] SpendRefused),
    /// This purchase is being made already.
    #[error("this purchase is being made by another request: try again in a few seconds; nothing is paid twice")]
    SamePurchase,
    /// Other payments of the wallet took inputs first, again and again.
    #[error("the wallet is busy with other payments; nothing was paid: try again in a few seconds")]
    Busy,
    /// The wallet holds too little.
    #[error("not enough tADA in the Surety balance; nothing was paid: send at least {} more to {wallet}", missing.display_tada())]
    Insufficient {
        /// How much more is needed.
        missing: Lovelace,
        /// The address to send it to.
        wallet: Address,
    },
    /// The listing is the account's own.
    #[error("this is your own listing: you cannot pay yourself")]
    OwnListing,
    /// No transaction can be built from what the wallet holds.
    #[error("the payment failed; nothing was paid: {0}")]
    Build(BuildError),
    /// No quote can be made, or our own payment does not keep our own terms: a fault of the service.
    #[error("the payment failed; nothing was paid: {0}")]
    Terms(String),
    /// The ledger said no; nothing was paid.
    #[error("the ledger refused the payment; nothing was paid: {0}")]
    Ledger(String),
    /// It was in no block in time; nothing was paid.
    #[error("the payment was in no block before it expired; nothing was paid: try again")]
    Expired,
    /// Submitted, and not in a block yet.
    #[error(
        "the payment {0} is submitted and not in a block yet: call again to get the content; nothing is paid twice"
    )]
    Pending(TxHash),
    /// Locked, and no block has its result yet.
    #[error(
        "the payment {0} is locked, and its result is not in a block yet: call again to get the content; nothing is paid twice"
    )]
    NoResult(TxHash),
    /// An earlier payment for the same may be in a block, and nothing keeps it out for now.
    #[error(
        "an earlier payment for this listing, {0}, failed but may still get into a block: try again in a minute; nothing was paid now, and nothing is paid twice"
    )]
    EarlierUnresolved(TxHash),
    /// Something cannot be asked.
    #[error(transparent)]
    Unavailable(Unavailable),
}

impl BuyError {
    /// Whether the same call may succeed soon: a payment is unconfirmed, or others block it.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Pending(_) | Self::NoResult(_) | Self::EarlierUnresolved(_) | Self::SamePurchase | Self::Busy
        )
    }
}

impl From<Unavailable> for BuyError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::NoResult(lock) => Self::NoResult(lock),
            error => Self::Unavailable(error),
        }
    }
}

macro_rules! unavailable {
    ($($error:ty),*) => {$(
        impl From<$error> for BuyError {
            fn from(error: $error) -> Self {
                Self::Unavailable(error.into())
            }
        }
    )*};
}
unavailable!(DatabaseError, ChainError, ContentsError, OutboxError);

impl From<OfferError> for BuyError {
    fn from(error: OfferError) -> Self {
        Self::Terms(error.to_string())
    }
}

impl From<Refusal> for BuyError {
    fn from(refusal: Refusal) -> Self {
        Self::Terms(refusal.to_string())
    }
}

/// What the chain says of a wallet, read once for all tries.
struct ChainView {
    tip: Tip,
    parameters: ProtocolParameters,
    utxos: Vec<Utxo>,
}

/// Earlier payments for the listing, and what the next one must spend so that a block can have only one of them.
struct Replacement {
    /// Recent failed payments of the wallet.
    excluded: usize,
    /// Other failed payments that the chain was asked about.
    checked: usize,
    /// What the next one must spend.
    inputs: Vec<Utxo>,
}

/// The outcome of one attempt.
enum AttemptOutcome {
    Paid(Box<Entry>, Box<PaymentOutcome>),
    /// Another payment of the wallet was quicker.
    Retry,
    /// An equal purchase was quicker, or is known by now.
    AlreadyBought,
}

/// One order with what is the same for all its tries.
struct Purchase<'a, 'c, D, C, V, Z, K> {
    checkout: &'a Checkout<'c, D, C, V, Z, K>,
    order: &'a Order<'a>,
    /// How it is paid, where it still is sold so.
    method: Option<&'a dyn PaymentMethod>,
}

impl<D: Database, C: Chain + Evaluate, V: VerifyEd25519, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// Buys from a service wallet, or finds that it is bought.
    ///
    /// # Errors
    /// Why not. Either nothing was paid, or the payment is on record and the same call takes it up again.
    pub async fn buy(&self, order: &Order<'_>) -> Result<Bought, BuyError> {
        let Order { account, terms, mode, .. } = order;
        let option = self.options.iter().find(|(known, _)| known == mode && terms.modes.contains(mode));
        if account.keys().contains(terms.seller_address.payment_key()) {
            return Err(BuyError::OwnListing);
        }
        let purchase = Purchase { checkout: self, order, method: option.map(|(_, method)| *method) };
        for _ in 0..MAX_ROUNDS {
            if let Some(bought) = purchase.try_once().await? {
                return Ok(bought);
            }
        }
        Err(BuyError::SamePurchase)
    }
}

impl<D: Database, C: Chain + Evaluate, V: VerifyEd25519, Z: Sleep, K: Contents> Purchase<'_, '_, D, C, V, Z, K> {
    /// Looks for the purchase, then makes it. `None` where an equal request was quicker: its payment is this one's too.
    async fn try_once(&self) -> Result<Option<Bought>, BuyError> {
        let Order { account, terms, mode, .. } = self.order;
        let (checkout, wallet, now) = (self.checkout, account.wallet_address, self.checkout.now);
        let slot = api_types::SLOTS.slot_at(checkout.clock).unwrap_or(0);
        let reads = vec![
            conditions(account, &terms.id, *mode, terms.price_lovelace, now),
            overdue(&wallet, slot),
            payment::given_up_recently(&wallet, &terms.id, now),
            snapshot(&wallet, slot, now),
        ];
        let [blocked, over, ended, known] = exactly(checkout.database.batch(reads).await?)?;
        let mut checked = 0;
        match Blocked::read(&blocked)? {
            Some(Blocked::Owned { purchase }) => return self.owned(&purchase).await.map(Some),
            Some(Blocked::Paying { tx }) => return self.resume_payment(&tx).await,
            Some(Blocked::Restoring) => return Err(Unavailable::Restoring.into()),
            Some(Blocked::Unresolved) => {
                let failed = payment::unresolved(&terms.id, &account.keys(), Some(&wallet), now);
                match checkout.check_earlier_payments(&checkout.database.run(failed).await?.all_json()?).await? {
                    EarlierPayments::NotFound(count) => checked = count,
                    EarlierPayments::Found => return Ok(None),
                    EarlierPayments::Waiting(tx) => return Err(BuyError::Pending(tx)),
                    EarlierPayments::TooMany(tx) => return Err(BuyError::EarlierUnresolved(tx)),
                }
            }
            // A payment that is overdue, or failed recently, may give back what it holds of the budget.
            Some(blocked) if over.rows.is_empty() && ended.rows.is_empty() => {
                // No owner is asked to approve what cannot be bought.
                self.method()?;
                blocked.spend_refused().map_or(Ok(()), Err)?;
            }
            _ => {}
        }
        self.method()?;
        if checkout.behind && self.order.mode == DeliveryMode::Protected {
            return Err(Unavailable::ChainBehind.into());
        }
        let view = self.chain_view().await?;
        if checkout.outbox().close(Entry::all(&over)?, &view.tip, now).await? {
            return Ok(None);
        }
        let known = WalletSnapshot::read(&wallet, &known)?;
        let ended = Entry::all(&ended)?;
        let excluded = ended.len();
        match checkout.outbox().earlier(ended, &known, &view.utxos, now).await? {
            Earlier::InBlock(tx) => Err(BuyError::Pending(tx)),
            Earlier::Unresolved(tx) => Err(BuyError::EarlierUnresolved(tx)),
            Earlier::ReplacementInputs(inputs) => {
                self.pay(&view, known, &Replacement { excluded, checked, inputs }).await
            }
        }
    }

    /// Resumes an unconfirmed payment. `None` where it was claimed for another listing meanwhile.
    async fn resume_payment(&self, tx: &TxHash) -> Result<Option<Bought>, BuyError> {
        let record: Option<PaymentRecord> = self.checkout.database.run(payment::by_tx(tx)).await?.first_json()?;
        let Some(mut record) = record else { return Ok(None) };
        let outcome = self.checkout.settle(&mut record.entry, self.order.terms, None, Trust::Payer).await?;
        if outcome.record.as_ref().is_some_and(|record| record.listing_id != self.order.terms.id) {
            return Ok(None);
        }
        self.finish(&record.entry, outcome).await.map(Some)
    }

    fn method(&self) -> Result<&dyn PaymentMethod, BuyError> {
        let Order { terms, mode, .. } = self.order;
        self.method.ok_or(if terms.hidden { BuyError::UnknownListing } else { BuyError::NotOffered(*mode) })
    }

    /// The content of a purchase that the account owns; a lock's, once its result is in a block.
    async fn owned(&self, purchase: &TxHash) -> Result<Bought, BuyError> {
        let (checkout, terms) = (self.checkout, self.order.terms);
        let buyers = self.order.account.keys();
        let owned = checkout.redeliver(terms, &buyers).await?;
        let owned = owned.ok_or_else(|| DatabaseError(format!("the purchase {purchase} is gone")))?;
        let purchase = purchase::one(checkout.database, &owned.purchase).await?;
        let purchase = purchase.ok_or_else(|| DatabaseError(format!("the purchase {} is gone", owned.purchase)))?;
        Ok(Bought { purchase, content: owned.content, already_owned: true })
    }

    async fn chain_view(&self) -> Result<ChainView, BuyError> {
        let chain = self.checkout.chain;
        Ok(ChainView {
            tip: chain.tip().await?,
            parameters: chain.protocol_parameters().await?,
            utxos: chain.utxos_at(&self.order.account.wallet_address.to_string(), |_| false).await?,
        })
    }

    /// Pays, trying again while other payments of the same wallet get in between.
    async fn pay(
        &self,
        view: &ChainView,
        mut known: WalletSnapshot,
        replacement: &Replacement,
    ) -> Result<Option<Bought>, BuyError> {
        let mut waited: Millis = 0;
        let offered = self.offer(view)?;
        let tokens: usize = view.utxos.iter().map(|utxo| utxo.value.assets.len()).sum();
        let slower = u64::try_from(tokens).unwrap_or(u64::MAX) / TOKENS_PER_PAUSE;
        for attempt in 0..MAX_TRIES {
            match self.attempt(view, &known, replacement, &offered, attempt).await? {
                AttemptOutcome::Paid(entry, outcome) => return self.finish(&entry, *outcome).await.map(Some),
                AttemptOutcome::AlreadyBought => return Ok(None),
                AttemptOutcome::Retry => {}
            }
            let pause = self.pause(attempt).saturating_mul(slower.saturating_add(1));
            waited = waited.saturating_add(pause);
            if waited > MAX_WAIT_MS {
                break;
            }
            self.checkout.sleep.sleep(pause).await;
            known = self.snapshot(view).await?;
        }
        Err(BuyError::Busy)
    }

    /// Spread between requests, longer with each try.
    fn pause(&self, attempt: u32) -> Millis {
        let [a, b, c, d, e, f, g, h, ..] = self.order.nonce;
        let jitter = u64::from_le_bytes([a, b, c, d, e, f, g, h]).rotate_left(attempt);
        let step = Millis::from(attempt.saturating_add(2).saturating_pow(2)).saturating_mul(5).min(MAX_PAUSE_MS);
        step.saturating_add(jitter.checked_rem(step.saturating_add(1)).unwrap_or(0))
    }

    /// The terms of all tries, made now: the newest block's time counts, for a quote must still be open when the lock is
    /// in a block.
    fn offer(&self, view: &ChainView) -> Result<Offered, BuyError> {
        let clock = self.checkout.clock.max(view.tip.time_ms);
        Ok(self.method()?.offer(&self.order.terms.sale(), clock, self.order.nonce)?)
    }

    async fn snapshot(&self, view: &ChainView) -> Result<WalletSnapshot, BuyError> {
        let wallet = self.order.account.wallet_address;
        let known = snapshot(&wallet, view.tip.slot, self.checkout.now);
        Ok(WalletSnapshot::read(&wallet, &self.checkout.database.run(known).await?)?)
    }

    async fn attempt(
        &self,
        view: &ChainView,
        known: &WalletSnapshot,
        replacement: &Replacement,
        offered: &Offered,
        attempt: u32,
    ) -> Result<AttemptOutcome, BuyError> {
        let Order { account, terms, mode, .. } = *self.order;
        let replaced_inputs = replacement.inputs.as_slice();
        // Another of the wallet's payments has taken it since, and may be refused: then it keeps nothing out.
        if replaced_inputs.iter().any(|utxo| known.reserved.contains(&utxo.reference)) {
            return Ok(AttemptOutcome::AlreadyBought);
        }
        let utxos = known.spendable(&[view.utxos.as_slice(), replaced_inputs].concat());
        let built = match self.build(view, offered, &utxos, replaced_inputs.to_vec(), attempt) {
            Ok(built) => built,
            // Change of a payment that is being sent right now will be spendable in a moment.
            Err(BuyError::Insufficient { .. } | BuyError::Build(BuildError::TooLarge { .. })) if known.in_flight => {
                return Ok(AttemptOutcome::Retry);
            }
            Err(error) => return Err(error),
        };
        let verified = self.verify(view, utxos, offered, &built).await?;
        let header = ContentHash::of(&built.cbor);
        let new =
            self.checkout.new_payment::<BuyError>((terms, mode, offered), &verified, header, Provenance::Ours).await?;
        let new =
            NewPayment { account: Some(account), checked: replacement.checked, excluded: replacement.excluded, ..new };
        let mut entry = match new.claim(self.checkout.database, self.checkout.now).await? {
            Claim::New(entry) => entry,
            // Payments of the same amount to the same seller from the same inputs are the same transaction.
            Claim::Blocked(Blocked::Known) | Claim::InputsTaken => return Ok(AttemptOutcome::Retry),
            Claim::Blocked(Blocked::ContentMissing) => return Err(content_missing(&terms.content_hash).into()),
            Claim::Blocked(blocked) => match blocked.spend_refused() {
                Some(why) => return Err(why.into()),
                None => return Ok(AttemptOutcome::AlreadyBought),
            },
        };
        let outcome = self.checkout.settle(&mut entry, terms, Some(Some(known)), Trust::Payer).await?;
        Ok(AttemptOutcome::Paid(Box::new(entry), Box::new(outcome)))
    }

    fn build(
        &self,
        view: &ChainView,
        offered: &Offered,
        utxos: &[Utxo],
        replaced_inputs: Vec<Utxo>,
        attempt: u32,
    ) -> Result<BuiltTx, BuyError> {
        let (checkout, address) = (self.checkout, self.order.account.wallet_address);
        let output = self.method()?.output(offered, &address, None, &view.parameters, &api_types::SLOTS);
        let output = output.map_err(|error| BuyError::Terms(error.to_string()))?;
        // Each try makes another transaction, even of the same inputs.
        let now_slot = api_types::SLOTS.slot_at(checkout.now).unwrap_or(0).max(view.tip.slot);
        let until = now_slot.saturating_add(VALID_SECONDS).saturating_add(attempt.into()).min(output.latest_end_slot);
        let plan = TxPlan {
            outputs: vec![output.output],
            auxiliary_data: subject::auxiliary_data(self.order.terms.id.as_str()),
            inputs: replaced_inputs,
            validity: Validity { from: None, until },
            ..TxPlan::default()
        };
        let wallet = Wallet { address, utxos, reserved: &BTreeSet::new() };
        match build(&plan, &wallet, &view.parameters).and_then(|draft| draft.sign(&[self.order.key])) {
            Ok(built) => Ok(built),
            Err(BuildError::Insufficient { missing }) => Err(BuyError::Insufficient { missing, wallet: address }),
            Err(error) => Err(BuyError::Build(error)),
        }
    }

    /// Holds the service's own payment to every rule that an outside payer's is held to.
    async fn verify(
        &self,
        view: &ChainView,
        utxos: Vec<Utxo>,
        offered: &Offered,
        built: &BuiltTx,
    ) -> Result<VerifiedPayment, BuyError> {
        // Anyone can send the wallet outputs that carry scripts. Our builder has counted a fee for each byte of them.
        let known = |utxo: Utxo| (utxo.reference, InputState::Unspent(Utxo { reference_script: None, ..utxo }));
        let inputs = utxos.into_iter().map(known).collect();
        let facts = Facts { inputs, parameters: view.parameters.clone(), tip: view.tip, in_mempool: false };
        let payment = Payment::of_transaction(&built.cbor).map_err(|error| BuyError::Terms(error.to_string()))?;
        // On a local ledger, time can be moved ahead of the wall clock.
        let moment = Moment { now_ms: self.checkout.now.max(view.tip.time_ms), slots: api_types::SLOTS };
        Ok(verify_with_facts(self.method()?, offered, &payment, &facts, self.checkout.signatures, moment).await?)
    }

    /// The purchase and the content, once they may be released.
    async fn finish(&self, entry: &Entry, outcome: PaymentOutcome) -> Result<Bought, BuyError> {
        match outcome.status {
            TxStatus::Confirmed { .. } => {}
            TxStatus::Pending { .. } => return Err(BuyError::Pending(entry.tx)),
            TxStatus::Refused(reason) => return Err(BuyError::Ledger(reason)),
            TxStatus::Expired => return Err(BuyError::Expired),
        }
        let gone = || DatabaseError(format!("the payment {} is gone", entry.tx));
        ensure_releasable(&outcome.record.ok_or_else(gone)?, self.checkout.clock)?;
        let content = self.checkout.bought(&self.order.terms.content_hash, &entry.tx, outcome.content).await?;
        Ok(Bought { purchase: outcome.purchase.ok_or_else(gone)?, content, already_owned: false })
    }
}
