//! Buying from a service wallet: the terms, the rules and the settlement of an outside payer, in process.

use std::collections::BTreeSet;

use cardano::{
    Address, ContentHash, Lovelace, TxHash,
    chain::{Chain, ChainError, Tip, Utxo},
    keys::{SigningKey, VerifyEd25519},
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{BuildError, BuiltTx, TxPlan, Validity, Wallet, build},
};
use outbox::{Earlier, Entry, Outbox, OutboxError, Sleep, Standing, WalletSnapshot, overdue, snapshot};
use sql::{Database, DatabaseError, Rows, exactly};
use x402_cardano::{
    Refusal,
    exact::{Facts, InputState, Moment, Payment, VerifiedPayment, verify_with_facts},
    method::{OfferError, Offered, PaymentMethod},
};

use super::{Checkout, Unavailable, buyers_of, creator_part, must_be_given, no_content};
use crate::{
    account::{Account, spent_today},
    catalogue::ListingTerms,
    contents::{Contents, ContentsError},
    listing::DeliveryMode,
    payment::{self, Claim, NewPayment, NotGranted},
    purchase::{self, Owned},
    transitions::Transitions,
};

/// How long a payment of ours stays valid, in seconds: a dozen blocks of preprod. With one more for each try it stays
/// within `maxTimeoutSeconds`.
const VALID_SECONDS: u64 = 230;
/// How often a purchase that turns out to be made already is looked for again.
const MAX_ROUNDS: u32 = 3;
/// How often a purchase is built again because another took its inputs first.
const MAX_TRIES: u32 = 40;
/// The longest pause between tries, in ms, of a wallet with few tokens, but for what spreads them: many that wait for one wallet
/// must leave it the time to pay.
const MAX_PAUSE_MS: Millis = 1_000;
/// Tokens of a wallet that make its pauses longer by one of these: what a try computes grows with them.
const TOKENS_PER_PAUSE: u64 = 256;
/// Milliseconds of waiting for other payments of the wallet, all tries together.
const PATIENCE_MS: Millis = 25_000;

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
    /// The network that the order came from.
    pub network: &'a str,
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
    /// The listing does not offer this way to pay, or nobody configured it.
    #[error("mode: this listing does not offer {}", .0.as_str())]
    NotOffered(DeliveryMode),
    /// A limit is in the way.
    #[error(transparent)]
    NotGranted(#[from] NotGranted),
    /// The same purchase is being made.
    #[error("this purchase is being made already: try again in a few seconds")]
    SamePurchase,
    /// Other payments of the wallet took inputs first, again and again.
    #[error("the wallet is busy with other payments: try again in a few seconds")]
    Busy,
    /// The wallet holds too little.
    #[error("not enough tADA in the service wallet: send at least {} more to {wallet}", missing.display_tada())]
    Insufficient {
        /// How much more is needed.
        missing: Lovelace,
        /// Where to.
        wallet: Address,
    },
    /// The listing is the account's own.
    #[error("this is your own listing: nobody can pay themselves")]
    OwnListing,
    /// No transaction can be built from what the wallet holds.
    #[error("payment failed: {0}")]
    Build(BuildError),
    /// No quote can be made, or our own payment does not keep our own terms: a fault of the service.
    #[error("payment failed: {0}")]
    Terms(String),
    /// The ledger said no; nothing was paid.
    #[error("payment failed: the ledger refused the transaction, nothing was paid: {0}")]
    Ledger(String),
    /// It was in no block in time; nothing was paid.
    #[error("payment failed: the transaction was in no block in time, nothing was paid: try again")]
    Expired,
    /// Submitted, and not in a block yet.
    #[error(
        "the payment {0} is submitted and not in a block yet: call again to get the content; nothing is paid twice"
    )]
    Pending(TxHash),
    /// An earlier payment for the same may be in a block, and nothing keeps it out for now.
    #[error(
        "the earlier payment {0} for this ended without effect, as far as is known, and may still come into a block: try \
         again in a minute; nothing was paid now, and nothing is paid twice"
    )]
    Unsaid(TxHash),
    /// Something cannot be asked.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
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

/// Earlier payments for the same, and what the next one must spend so that none of them counts besides.
struct Apart {
    count: usize,
    /// How many of these, and of the owner's own, were looked for.
    lost: u32,
    utxos: Vec<Utxo>,
}

/// What one try came to.
enum Tried {
    /// It stands so.
    Settled(Box<Entry>, Standing, Vec<Rows>, Option<String>),
    /// Another payment of the wallet was quicker.
    Again,
    /// An equal purchase was quicker, or is known by now.
    Same,
}

/// One order with what is the same for all its tries.
struct Purchase<'a, 'c, D, C, V, Z, K> {
    checkout: &'a Checkout<'c, D, C, V, Z, K>,
    order: &'a Order<'a>,
    /// How it is paid, where it still is sold so.
    method: Option<&'a dyn PaymentMethod>,
}

impl<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// Buys from a service wallet, or finds that it is bought.
    ///
    /// # Errors
    /// Why not. Either nothing was paid, or the payment is on record and the same call takes it up again.
    pub async fn buy(&self, order: &Order<'_>) -> Result<Bought, BuyError> {
        let Order { account, terms, mode, .. } = order;
        let way = self.ways.iter().find(|(known, _)| known == mode && terms.modes.contains(mode));
        let seller = terms.seller_address;
        if seller == account.wallet_address || seller.to_string() == account.owner {
            return Err(BuyError::OwnListing);
        }
        let purchase = Purchase { checkout: self, order, method: way.map(|(_, method)| *method) };
        for _ in 0..MAX_ROUNDS {
            if let Some(bought) = purchase.round().await? {
                return Ok(bought);
            }
        }
        Err(BuyError::SamePurchase)
    }
}

impl<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep, K: Contents> Purchase<'_, '_, D, C, V, Z, K> {
    /// Looks for the purchase, then makes it. `None` where an equal request was quicker: its payment is this one's too.
    async fn round(&self) -> Result<Option<Bought>, BuyError> {
        let Order { account, terms, .. } = self.order;
        let (database, buyers, wallet) = (self.checkout.database, buyers_of(account), account.wallet_address);
        let slot = SlotConfig::PREPROD.slot_at(self.checkout.clock).unwrap_or(0);
        let snapshot = snapshot(&wallet, slot, self.checkout.now);
        let mut reads = vec![
            purchase::owned(&terms.id, &buyers),
            payment::open(&terms.id, &buyers),
            overdue(&wallet, slot),
            payment::ended_lately(&wallet, &terms.id, self.checkout.now),
            payment::lost(&terms.id, &account.owner),
            payment::ended_before(&wallet, &terms.id, self.checkout.now),
            payment::count_lost(&terms.id, &buyers),
            spent_today(&account.owner, self.checkout.now),
        ];
        reads.extend(snapshot);
        let [owned, open, over, ended, lost, before, looked, spent, sent, reserved, doubted] =
            exactly(database.batch(reads).await?)?;
        if let Some(owned) = owned.first_json::<Owned>()? {
            return self.owned(&owned).await.map(Some);
        }
        if let Some(mut record) = payment::all(&open)?.into_iter().next() {
            // Of the owner's own wallet as well, whoever handed it in.
            record.entry.unanswered = false;
            let settled = self.checkout.settle(&mut record.entry, record.mode, None, false).await?;
            if !self.checkout.is_of(terms, &record.entry.tx, &settled).await? {
                return Ok(None);
            }
            return self.finish(&record.entry, record.mode, settled.standing, &settled.followed, None).await.map(Some);
        }
        if self.is_paid(&lost).await? || self.checkout.find_included(&before).await?.is_some() {
            return Ok(None);
        }
        self.method()?;
        let looked = looked.first_json()?.unwrap_or(0);
        // The claim decides. What it would refuse by now asks nobody and builds nothing, unless a payment is in doubt: it may be
        // this purchase, or give back what it holds of the budget.
        if looked == 0 && ended.rows.is_empty() && over.rows.is_empty() {
            let (limits, spent) = ((account.max_per_payment, account.daily_budget), spent.first_json()?);
            let why = NotGranted::of(terms.price_lovelace, limits, spent.unwrap_or(Lovelace::ZERO));
            why.map_or(Ok(()), Err)?;
        }
        let view = self.look().await?;
        let outbox = Outbox { database, chain: self.checkout.chain, follow: &Transitions };
        if outbox.close(Entry::all(&over)?, &view.tip, self.checkout.now).await? {
            return Ok(None);
        }
        // What it was read of does not stay beside it, for as long as a block is waited for.
        let known = WalletSnapshot::read(&wallet, &[sent, reserved, doubted])?;
        let ended = Entry::all(&ended)?;
        // Those that were over long ago are looked for once: of more, the rest in the next round.
        let asked = [lost.rows.len(), before.rows.len(), ended.len()].iter().sum::<usize>();
        if usize::try_from(looked).is_ok_and(|looked: usize| looked > asked) {
            return Ok(None);
        }
        let count = ended.len();
        let earlier = outbox.earlier(ended, &known, &view.utxos, self.checkout.now).await?;
        match earlier {
            Earlier::InBlock(tx) => Err(BuyError::Pending(tx)),
            Earlier::Unsaid(tx) => Err(BuyError::Unsaid(tx)),
            Earlier::Without(utxos) => self.pay(&view, known, &Apart { count, lost: looked, utxos }).await,
        }
    }

    fn method(&self) -> Result<&dyn PaymentMethod, BuyError> {
        self.method.ok_or(BuyError::NotOffered(self.order.mode))
    }

    /// Whether one of these payments of the owner's own wallet, which took no effect for all that is known, is in a block all
    /// the same, or on its way to one.
    async fn is_paid(&self, lost: &Rows) -> Result<bool, BuyError> {
        if self.checkout.find_included(lost).await?.is_some() {
            return Ok(true);
        }
        self.checkout.find_waiting(lost).await?.map_or(Ok(false), |tx| Err(BuyError::Pending(tx)))
    }

    async fn owned(&self, owned: &Owned) -> Result<Bought, BuyError> {
        let Checkout { database, chain, confirmations, clock, .. } = *self.checkout;
        must_be_given(database, chain, owned, confirmations, clock).await?;
        let content = self.checkout.bought(self.order.terms, &owned.id).await?;
        let purchase = purchase::one(self.checkout.database, &owned.id).await?;
        let purchase = purchase.ok_or_else(|| DatabaseError(format!("purchase {} is gone", owned.id)))?;
        Ok(Bought { purchase, content, already_owned: true })
    }

    async fn look(&self) -> Result<ChainView, BuyError> {
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
        apart: &Apart,
    ) -> Result<Option<Bought>, BuyError> {
        let mut waited: Millis = 0;
        let offered = self.offer(view)?;
        let tokens: usize = view.utxos.iter().map(|utxo| utxo.value.assets.len()).sum();
        let slower = u64::try_from(tokens).unwrap_or(u64::MAX) / TOKENS_PER_PAUSE;
        for attempt in 0..MAX_TRIES {
            match self.attempt(view, &known, apart, &offered, attempt).await? {
                Tried::Settled(entry, standing, followed, content) => {
                    return self.finish(&entry, self.order.mode, standing, &followed, content).await.map(Some);
                }
                Tried::Same => return Ok(None),
                Tried::Again => {}
            }
            let pause = self.pause(attempt).saturating_mul(slower.saturating_add(1));
            waited = waited.saturating_add(pause);
            if waited > PATIENCE_MS {
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
        let reads = snapshot(&wallet, view.tip.slot, self.checkout.now).into();
        Ok(WalletSnapshot::read(&wallet, &exactly(self.checkout.database.batch(reads).await?)?)?)
    }

    async fn attempt(
        &self,
        view: &ChainView,
        known: &WalletSnapshot,
        apart: &Apart,
        offered: &Offered,
        attempt: u32,
    ) -> Result<Tried, BuyError> {
        let Order { account, terms, mode, .. } = *self.order;
        let without = apart.utxos.as_slice();
        // Another of ours has taken it since, and may be refused: then it keeps nothing out.
        if without.iter().any(|utxo| known.reserved.contains(&utxo.reference)) {
            return Ok(Tried::Same);
        }
        let utxos = known.spendable(&[view.utxos.as_slice(), without].concat());
        let built = match self.build(view, offered, &utxos, without.to_vec(), attempt) {
            Ok(built) => built,
            // Change of a payment that is being sent right now will be spendable in a moment.
            Err(BuyError::Insufficient { .. } | BuyError::Build(BuildError::TooLarge { .. })) if known.in_flight => {
                return Ok(Tried::Again);
            }
            Err(error) => return Err(error),
        };
        let verified = self.verify(view, utxos, offered, &built).await?;
        let (reading, content) = self.checkout.content_before_claim(terms).await?;
        let new = NewPayment {
            tx: verified.tx_id,
            cbor: &built.cbor,
            valid_until: verified.valid_until,
            listing_id: &terms.id,
            mode,
            payer: account.wallet_address,
            amount: terms.price_lovelace,
            creator: creator_part(mode, terms.price_lovelace),
            header: ContentHash::of(&built.cbor),
            terms_digest: offered.terms_digest().map(|digest| digest.0),
            identifier: None,
            newest_height: None,
            inputs: &built.facts.inputs,
            network: Some(self.order.network),
            account: Some(account),
            looked: apart.lost,
            ended: Some(apart.count),
            content: reading.is_some().then_some(terms.content_hash),
        };
        let (claim, beside) = new.claim(self.checkout.database, reading, self.checkout.now).await?;
        let mut entry = match claim {
            Claim::New(entry) => entry,
            Claim::NotGranted(why) => return Err(why.into()),
            Claim::Crowded => return Err(Unavailable::Crowded.into()),
            Claim::Owned(_)
            | Claim::Paying(_)
            | Claim::Ended
            | Claim::MaybePaid
            | Claim::TermsTaken
            | Claim::IdentifierTaken => return Ok(Tried::Same),
            // Payments of the same amount to the same seller from the same inputs are the same transaction.
            Claim::Known(_) | Claim::InputsTaken | Claim::TooManyRefused => return Ok(Tried::Again),
        };
        let content = content.or_else(|| beside.and_then(|rows| rows.rows.into_iter().next()));
        let settled = self.checkout.settle(&mut entry, self.order.mode, Some(Some(known)), true).await?;
        Ok(Tried::Settled(Box::new(entry), settled.standing, settled.followed, content))
    }

    fn build(
        &self,
        view: &ChainView,
        offered: &Offered,
        utxos: &[Utxo],
        without: Vec<Utxo>,
        attempt: u32,
    ) -> Result<BuiltTx, BuyError> {
        let (checkout, address) = (self.checkout, self.order.account.wallet_address);
        let output = self.method()?.output(offered, &address, None, &view.parameters, &SlotConfig::PREPROD);
        let output = output.map_err(|error| BuyError::Terms(error.to_string()))?;
        // Each try makes another transaction, even of the same inputs.
        let now_slot = SlotConfig::PREPROD.slot_at(checkout.now).unwrap_or(0).max(view.tip.slot);
        let until = now_slot.saturating_add(VALID_SECONDS).saturating_add(attempt.into()).min(output.latest_end_slot);
        let plan = TxPlan {
            outputs: vec![output.output],
            inputs: without,
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

    /// Holds our own payment to every rule that an outside payer's is held to.
    async fn verify(
        &self,
        view: &ChainView,
        utxos: Vec<Utxo>,
        offered: &Offered,
        built: &BuiltTx,
    ) -> Result<VerifiedPayment, BuyError> {
        // Anybody can send the wallet outputs that carry scripts. Our builder has counted a fee for each byte of them.
        let known = |utxo: Utxo| (utxo.reference, InputState::Unspent(Utxo { reference_script: None, ..utxo }));
        let inputs = utxos.into_iter().map(known).collect();
        let facts = Facts { inputs, parameters: view.parameters.clone(), tip: view.tip, in_mempool: false };
        let payment = Payment::of_transaction(&built.cbor).map_err(|error| BuyError::Terms(error.to_string()))?;
        // On a local ledger, time can be moved ahead of the wall clock.
        let moment = Moment { now_ms: self.checkout.now.max(view.tip.time_ms), slots: SlotConfig::PREPROD };
        Ok(verify_with_facts(self.method()?, offered, &payment, &facts, self.checkout.signatures, moment).await?)
    }

    /// The purchase and the content, once the payment is in a block.
    async fn finish(
        &self,
        entry: &Entry,
        mode: DeliveryMode,
        standing: Standing,
        followed: &[Rows],
        content: Option<String>,
    ) -> Result<Bought, BuyError> {
        match standing {
            Standing::Confirmed { .. } if mode == DeliveryMode::Protected => {
                self.checkout.must_have_its_result(&entry.tx, false).await?;
            }
            Standing::Confirmed { .. } => {}
            Standing::Pending { .. } => return Err(BuyError::Pending(entry.tx)),
            Standing::Refused(reason) => return Err(BuyError::Ledger(reason)),
            Standing::Expired => return Err(BuyError::Expired),
        }
        let purchase = match followed.last().and_then(|rows| rows.first()) {
            Some(purchase) => Some(purchase.to_owned()),
            None => purchase::one(self.checkout.database, &entry.tx).await?,
        };
        let content = self.checkout.bought_or(content, self.order.terms, &entry.tx).await?;
        let purchase = purchase.ok_or_else(|| no_content(self.order.terms))?;
        Ok(Bought { purchase, content, already_owned: false })
    }
}
