//! Buying from a service wallet. The rules and the settlement are those for external payers.

use std::collections::BTreeSet;

use api_types::Bought;
use cardano::{
    ContentHash, Lovelace, TxHash,
    chain::{Chain, Tip, Utxo},
    evaluation::Evaluate,
    keys::{SigningKey, VerifyEd25519},
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{BuildError, BuiltTx, TxPlan, Validity, Wallet, build},
};
use outbox::{
    Attempt, EntryState, Next, Provenance, Replacement, RetryPolicy, Sent, Sleep, Trust, VALID_SLOTS, WalletSnapshot,
    overdue, snapshot,
};
use sql::{Database, DatabaseError};
use x402_cardano::{
    exact::{Facts, InputState, Moment, Payment, VerifiedPayment, verify_with_facts},
    method::{Offered, PaymentMethod},
    wire::MAX_TIMEOUT_SECONDS,
};

use super::{
    BuyError, Checkout, FailedPayments, Unavailable, content_missing, method_of,
    settle::{PaymentOutcome, Start},
};
use crate::{
    account::Account,
    catalogue::ListingTerms,
    claim::{Blocked, Claim, NewPayment, WalletBlocked, conditions},
    contents::Contents,
    listing::DeliveryMode,
    payment, purchase, subject,
};

/// Maximum number of attempts to buy while concurrent requests make or change the same purchase.
const MAX_ROUNDS: u32 = 3;
/// Maximum number of retries if other payments of the wallet spend the inputs first.
const MAX_RETRIES: u32 = 39;
// Each attempt is valid for one second more than the last.
const _: () = assert!(VALID_SLOTS + (MAX_RETRIES as u64) < MAX_TIMEOUT_SECONDS as u64);
/// Maximum pause in ms between attempts, before a random part is added and before the pause is multiplied for wallets
/// with many tokens.
const MAX_PAUSE_MS: Millis = 1_000;
/// Number of tokens in a wallet at which the pauses between attempts double; with twice this number they triple, and so
/// on. Each attempt takes longer to compute if the wallet has many tokens.
const TOKENS_PER_PAUSE: u64 = 256;
/// Maximum total time in ms to wait for other payments of the wallet.
const MAX_WAIT_MS: Millis = 25_000;

/// An order to buy a listing from a service wallet.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub account: &'a Account,
    /// Key of the service wallet.
    pub key: &'a SigningKey,
    pub terms: &'a ListingTerms,
    pub mode: DeliveryMode,
    /// Price that the buyer agreed to pay; `None` if the client did not state one.
    pub agreed: Option<Lovelace>,
    /// 32 random bytes for the quote. The pauses between attempts are derived from the same bytes.
    pub nonce: [u8; 32],
}

/// A payment to make, with the data that its attempts share.
struct PaymentIntent<'a, 'c, D, C, V, Z, K> {
    checkout: &'a Checkout<'c, D, C, V, Z, K>,
    order: &'a Order<'a>,
    method: &'a dyn PaymentMethod,
    offered: Offered,
    tip: Tip,
    parameters: ProtocolParameters,
    /// Unspent outputs of the wallet that pays, according to the provider.
    utxos: Vec<Utxo>,
    /// Number of the wallet's recent failed payments for the listing. None of them can be included together with this
    /// payment.
    replaced: usize,
    /// Number of the buyer's other failed payments for the listing that were looked up on the chain.
    checked: usize,
    /// Inputs that this payment must spend, so that it cannot be included together with a recent failed payment.
    replacement_inputs: Vec<Utxo>,
}

impl<D: Database, C: Chain + Evaluate, V: VerifyEd25519, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// Buys from a service wallet, or returns an existing purchase.
    ///
    /// # Errors
    /// Returns an error if nothing was paid, or if the payment is stored but not settled yet. In the second case, the
    /// same call resumes the payment.
    pub async fn buy(&self, order: &Order<'_>) -> Result<Bought, BuyError> {
        if order.account.keys().contains(order.terms.seller_address.payment_key()) {
            return Err(BuyError::OwnListing);
        }
        for _ in 0..MAX_ROUNDS {
            if let Some(bought) = self.buy_once(order).await? {
                return Ok(bought);
            }
        }
        Err(BuyError::SamePurchase)
    }

    /// Makes the purchase, or returns the existing one. Returns `None` if the stored state has been changed meanwhile,
    /// for example by a concurrent request, so that the caller must try again.
    async fn buy_once(&self, order: &Order<'_>) -> Result<Option<Bought>, BuyError> {
        let Order { account, terms, mode, nonce, .. } = *order;
        let (wallet, now) = (account.wallet_address, self.now);
        let slot = api_types::SLOTS.slot_at(self.clock).unwrap_or(0);
        let reads = (
            conditions(account, &terms.id, mode, terms.price_lovelace, now),
            overdue(&wallet, slot),
            payment::given_up_recently(&wallet, &terms.id, now),
            snapshot(&wallet, slot, now),
        );
        let (blocked, over, ended, known) = self.database.batch(reads).await?;
        let offered_by = || {
            let missing = if terms.hidden { BuyError::UnknownListing } else { BuyError::NotOffered(mode) };
            let method = method_of(self.options, terms, mode).ok_or(missing)?;
            let is_agreed = order.agreed.is_none_or(|agreed| agreed == terms.price_lovelace);
            if is_agreed { Ok(method) } else { Err(BuyError::PriceChanged) }
        };
        let mut checked = 0;
        match blocked {
            Some(WalletBlocked::Any(Blocked::Owned { purchase })) => {
                return self.bought_before(order, &purchase).await.map(Some);
            }
            Some(WalletBlocked::Any(Blocked::PaymentOpen { tx })) => return self.resume_purchase(order, &tx).await,
            Some(WalletBlocked::Any(Blocked::OffSale)) => return Err(BuyError::UnknownListing),
            Some(WalletBlocked::Any(Blocked::PriceNotOffered)) => return Err(BuyError::PriceChanged),
            Some(WalletBlocked::Restoring) => return Err(Unavailable::Restoring.into()),
            Some(WalletBlocked::Any(Blocked::Unresolved)) => {
                match self.look_up_failed_payments(&terms.id, &account.keys(), Some(&wallet)).await? {
                    FailedPayments::NotIncluded(count) => checked = count,
                    FailedPayments::Changed => return Ok(None),
                    FailedPayments::InMempool(tx) => return Err(BuyError::Pending(tx)),
                    FailedPayments::TooMany(tx) => return Err(BuyError::Unresolved(tx)),
                }
            }
            // A payment that is overdue or has failed may return its amount to the budget, so the refusal is not final.
            // Owners are only asked to approve purchases that are otherwise possible.
            Some(WalletBlocked::SpendRefused(why)) if over.is_empty() && ended.is_empty() => {
                offered_by()?;
                return Err(why.into());
            }
            _ => {}
        }
        let method = offered_by()?;
        if self.behind && mode == DeliveryMode::Protected {
            return Err(Unavailable::ChainBehind.into());
        }
        let (tip, parameters) = (self.chain.tip().await?, self.chain.protocol_parameters().await?);
        let utxos = self.chain.utxos_at(&wallet.to_string(), |_| false).await?;
        if self.outbox().close(over, &tip, now).await? {
            return Ok(None);
        }
        let known = WalletSnapshot::of(&wallet, known)?;
        let replaced = ended.len();
        let replacement_inputs = match self.outbox().replacement(ended, &known, &utxos, now).await? {
            Replacement::InBlock(tx) => return Err(BuyError::Pending(tx)),
            Replacement::Unresolved(tx) => return Err(BuyError::Unresolved(tx)),
            Replacement::Inputs(inputs) => inputs,
        };
        // Uses the newest block's time, because the quote must be valid when the lock is included.
        let offered = method.offer(&terms.sale(), self.clock.max(tip.time_ms), nonce)?;
        let checkout = self;
        let intent = PaymentIntent {
            checkout,
            order,
            method,
            offered,
            tip,
            parameters,
            utxos,
            replaced,
            checked,
            replacement_inputs,
        };
        let policy = RetryPolicy { sleep: self.sleep, pauses: &intent.pauses() };
        let mut known = Some(known);
        let bought = self.outbox().send(&policy, now, async |attempt| intent.next(attempt, known.take()).await).await?;
        bought.ok_or(BuyError::Busy)
    }

    /// Resumes an unconfirmed payment. Returns `None` if the payment was claimed for another listing meanwhile.
    async fn resume_purchase(&self, order: &Order<'_>, tx: &TxHash) -> Result<Option<Bought>, BuyError> {
        let Some(mut record) = self.database.fetch(payment::by_tx(tx)).await? else { return Ok(None) };
        let outcome = self.settle(&mut record.entry, order.terms, Start::Resume, Trust::Payer).await?;
        if let PaymentOutcome::Included(payment) = &outcome
            && payment.record.listing_id != order.terms.id
        {
            return Ok(None);
        }
        self.finish(order, tx, outcome).await.map(Some)
    }

    /// Returns the content of a purchase that the account owns, if it may be released now.
    async fn bought_before(&self, order: &Order<'_>, purchase: &TxHash) -> Result<Bought, BuyError> {
        let gone = || DatabaseError(format!("the purchase {purchase} is gone"));
        let owned = self.redeliver(order.terms, &order.account.keys()).await?.ok_or_else(gone)?;
        let purchase = purchase::one(self.database, &owned.purchase).await?.ok_or_else(gone)?;
        Ok(Bought { purchase, content: owned.content, already_owned: true })
    }

    /// Returns the purchase and its content, if the content may be released now.
    async fn finish(&self, order: &Order<'_>, tx: &TxHash, outcome: PaymentOutcome) -> Result<Bought, BuyError> {
        let payment = match outcome {
            PaymentOutcome::Included(payment) => *payment,
            PaymentOutcome::Pending { .. } => return Err(BuyError::Pending(*tx)),
            PaymentOutcome::Refused(reason) => return Err(BuyError::Ledger(reason)),
            PaymentOutcome::Expired => return Err(BuyError::Expired),
        };
        let released = self.ensure_released(&payment.record)?;
        let content = self.hand_out(released, &order.terms.content_hash, tx, payment.content).await?;
        let gone = || DatabaseError(format!("the purchase {tx} is gone"));
        Ok(Bought { purchase: payment.purchase.ok_or_else(gone)?, content, already_owned: false })
    }
}

impl<D: Database, C: Chain + Evaluate, V: VerifyEd25519, Z: Sleep, K: Contents> PaymentIntent<'_, '_, D, C, V, Z, K> {
    /// Returns the pauses in ms between attempts, at most [`MAX_WAIT_MS`] in total. The pauses are random, so that
    /// concurrent requests for a wallet do not retry at the same time. They grow with each attempt and with the number
    /// of tokens in the wallet.
    fn pauses(&self) -> Vec<Millis> {
        let [a, b, c, d, e, f, g, h, ..] = self.order.nonce;
        let random = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let tokens: usize = self.utxos.iter().map(|utxo| utxo.value.assets.len()).sum();
        let slower = u64::try_from(tokens).unwrap_or(u64::MAX) / TOKENS_PER_PAUSE;
        let pauses = (0..MAX_RETRIES).map(|attempt: u32| {
            let step = Millis::from(attempt.saturating_add(2).saturating_pow(2)).saturating_mul(5).min(MAX_PAUSE_MS);
            let jitter = random.rotate_left(attempt).checked_rem(step.saturating_add(1)).unwrap_or(0);
            step.saturating_add(jitter).saturating_mul(slower.saturating_add(1))
        });
        let within = |waited: &mut Millis, pause: Millis| {
            *waited = waited.saturating_add(pause);
            (*waited <= MAX_WAIT_MS).then_some(pause)
        };
        pauses.scan(0, within).collect()
    }

    /// Builds and claims the payment, or, if it was just submitted, settles it and returns the purchase. Returns
    /// [`Next::Done`] with `None` if the stored state has changed, so that the purchase must be tried again. `known` is
    /// the wallet's state as read before the first attempt; later attempts read it again.
    async fn next(&self, attempt: Attempt, known: Option<WalletSnapshot>) -> Result<Next<Option<Bought>>, BuyError> {
        let Self { checkout, order, replaced, checked, .. } = *self;
        if let Some(sent) = attempt.sent {
            return self.sent(sent).await;
        }
        let wallet = order.account.wallet_address;
        let known = match known {
            Some(known) => known,
            None => WalletSnapshot::load(checkout.database, &wallet, self.tip.slot, checkout.now).await?,
        };
        // Another payment has reserved one of these inputs and may still fail, so the inputs must be chosen again.
        if self.replacement_inputs.iter().any(|utxo| known.reserved.contains(&utxo.reference)) {
            return Ok(Next::Done(None));
        }
        let utxos = known.spendable(&[self.utxos.as_slice(), &self.replacement_inputs].concat());
        let built = match self.build(&utxos, attempt.number) {
            Ok(built) => built,
            // The change of a payment that is being submitted will soon be spendable.
            Err(BuyError::Insufficient { .. } | BuyError::Build(BuildError::TooLarge { .. })) if known.in_flight => {
                return Ok(Next::Retry);
            }
            Err(error) => return Err(error),
        };
        let verified = self.verify(utxos, &built).await?;
        let (offer, header) =
            ((order.terms, order.terms.price_lovelace, order.mode, &self.offered), ContentHash::of(&built.cbor));
        let new = checkout.new_payment(offer, &verified, header, Provenance::Ours).await?;
        let new = NewPayment { account: Some(order.account), checked, replaced, ..new };
        match new.claim(checkout.database, checkout.now).await? {
            Claim::New(entry) => Ok(Next::Submit(Box::new(entry), Box::new(known))),
            // Payments of the same amount to the same seller from the same inputs are the same transaction.
            Claim::Blocked(WalletBlocked::Any(Blocked::Claimed)) | Claim::InputsTaken => Ok(Next::Retry),
            Claim::Blocked(WalletBlocked::Any(Blocked::ContentMissing)) => {
                Err(content_missing(&order.terms.content_hash).into())
            }
            Claim::Blocked(WalletBlocked::Any(Blocked::OffSale)) => Err(BuyError::UnknownListing),
            Claim::Blocked(WalletBlocked::Any(Blocked::PriceNotOffered)) => Err(BuyError::PriceChanged),
            Claim::Blocked(WalletBlocked::SpendRefused(why)) => Err(why.into()),
            Claim::Blocked(_) => Ok(Next::Done(None)),
        }
    }

    async fn sent(&self, sent: Sent) -> Result<Next<Option<Bought>>, BuyError> {
        let (checkout, order) = (self.checkout, self.order);
        match sent {
            Sent::NotRecorded => Ok(Next::Retry),
            Sent::Rejected(entry, reason) if entry.state == EntryState::Refused => Err(BuyError::Ledger(reason)),
            Sent::Submitted(mut entry) | Sent::Rejected(mut entry, _) => {
                let outcome = checkout.settle(&mut entry, order.terms, Start::Submitted, Trust::Payer).await?;
                checkout.finish(order, &entry.tx, outcome).await.map(|bought| Next::Done(Some(bought)))
            }
        }
    }

    fn build(&self, utxos: &[Utxo], attempt: usize) -> Result<BuiltTx, BuyError> {
        let address = self.order.account.wallet_address;
        let output = self.method.output(&self.offered, &address, None, &self.parameters, &api_types::SLOTS);
        let output = output.map_err(|error| BuyError::Terms(error.to_string()))?;
        // Each attempt is a different transaction, even with the same inputs.
        let now_slot = api_types::SLOTS.slot_at(self.checkout.now).unwrap_or(0).max(self.tip.slot);
        let valid = VALID_SLOTS.saturating_add(u64::try_from(attempt).unwrap_or(0));
        let until = now_slot.saturating_add(valid).min(output.latest_end_slot);
        let plan = TxPlan {
            outputs: vec![output.output],
            auxiliary_data: subject::auxiliary_data(self.order.terms.id.as_str()),
            inputs: self.replacement_inputs.clone(),
            validity: Validity { from: None, until },
            ..TxPlan::default()
        };
        let wallet = Wallet { address, utxos, reserved: &BTreeSet::new() };
        match build(&plan, &wallet, &self.parameters).and_then(|draft| draft.sign(&[self.order.key])) {
            Ok(built) => Ok(built),
            Err(BuildError::Insufficient { missing }) => Err(BuyError::Insufficient { missing, wallet: address }),
            Err(error) => Err(BuyError::Build(error)),
        }
    }

    /// Verifies the built payment by the rules for external payments.
    async fn verify(&self, utxos: Vec<Utxo>, built: &BuiltTx) -> Result<VerifiedPayment, BuyError> {
        // Anyone can send the wallet outputs with reference scripts. The builder has counted a fee for them.
        let known = |utxo: Utxo| (utxo.reference, InputState::Unspent(Utxo { reference_script: None, ..utxo }));
        let inputs = utxos.into_iter().map(known).collect();
        let facts = Facts { inputs, parameters: self.parameters.clone(), tip: self.tip, in_mempool: false };
        let payment = Payment::of_transaction(&built.cbor).map_err(|error| BuyError::Terms(error.to_string()))?;
        // On a local ledger, time can be ahead of the wall clock.
        let moment = Moment { now_ms: self.checkout.now.max(self.tip.time_ms), slots: api_types::SLOTS };
        let signatures = self.checkout.signatures;
        Ok(verify_with_facts(self.method, &self.offered, &payment, &facts, signatures, moment).await?)
    }
}
