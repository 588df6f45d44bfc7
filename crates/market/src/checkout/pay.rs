//! External payments: verifies, claims, settles and delivers a payment, or resumes an already claimed one.

use cardano::{
    Address, ContentHash, Lovelace, TxHash, chain::Chain, evaluation::Evaluate, keys::VerifyEd25519, slots::Millis,
};
use outbox::{Entry, EntryState, Provenance, Sleep, Trust};
use sql::{Both, Database, DatabaseError};
use x402_cardano::{
    Refusal,
    exact::{Payment, VerifiedPayment, verify},
    method::{Offered, Sale, recognise},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{InvalidAccepted, PaymentPayload, SettlementResponse},
};

use super::{
    Checkout, FailedPayments, PayError, Presented, content_missing,
    settle::{PaymentOutcome, Start},
};
use crate::{
    catalogue::{ListingTerms, edit},
    claim::{Blocked, Claim, NewPayment},
    contents::Contents,
    listing::DeliveryMode,
    payment::{self, IdentifierUse, PaymentRecord},
    release::{Released, Unreleased},
};

/// Maximum number of attempts to claim a payment. A claim is retried if the payment that blocks it fails meanwhile.
const MAX_ROUNDS: u32 = 3;

/// Minimum remaining validity of a new payment, in slots. In this time, a block includes the payment with a probability
/// of about three quarters.
pub(super) const MIN_VALIDITY_SLOTS: u64 = 30;

/// Time in ms to wait before looking for a transaction in mempools and blocks. A transaction that somebody else
/// submitted appears at the provider only after a delay.
const PUBLIC_CHECK_MS: Millis = 5_000;

/// Length in ms of the window, after the block of a payment, during which a `PAYMENT-SIGNATURE` header without a secret
/// still identifies the payer. The header must come from the client network that first sent it.
///
/// The window is limited because anyone on that network could rebuild the header from the chain. The window is longer
/// than clients have to wait for confirmations, for a result, or for a provider that is down. Afterwards the payer has
/// to sign.
const REPLAY_WINDOW_MS: Millis = 60 * 60_000;

/// Length in ms of the window, after a delivery, during which a header with a secret still gives access to the content.
/// A client that lost the response retries within minutes, and the server cannot tell for certain whether a response
/// was lost.
const RETRY_WINDOW_MS: Millis = 10 * 60_000;

/// A successful payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidContent {
    pub content: String,
    /// Settlement response. It names the transaction by which the payer bought the listing. If that is an earlier
    /// transaction, the presented payment was not submitted.
    pub settlement: SettlementResponse,
}

/// A presented payment, with facts about the request that presents it.
struct PayRequest<'a> {
    terms: &'a ListingTerms,
    presented: &'a Presented<'a>,
    /// Address whose key signed the request; `None` if the request is not signed.
    proven: Option<Address>,
    now: Millis,
}

impl PayRequest<'_> {
    /// Checks whether this request may resume a claimed payment. It must pay for the same listing. It must also have
    /// the same header, the same secret identifier (`is_identified`), or a signature of the payer.
    fn ensure_resumable(&self, record: &PaymentRecord, is_identified: bool) -> Result<(), PayError> {
        self.ensure_same_listing(record)?;
        if !(is_identified || self.has_same_header(record) || self.is_proven(&record.payer)) {
            return Err(NotSettled::Duplicate.into());
        }
        // If the answer to the submission was lost, the payment is resumed, and its provenance is checked before
        // delivery.
        if record.entry.provenance == Provenance::Foreign {
            self.ensure_entitled(&record.entry, &record.payer)?;
        }
        Ok(())
    }

    /// Returns whether this request has the header with which the payment was claimed, and the header still identifies
    /// the payer. A header without a secret does so until the content is delivered, and at most for
    /// [`REPLAY_WINDOW_MS`]. A header with a secret does so until [`RETRY_WINDOW_MS`] after the delivery, and a header
    /// with a payment identifier without a limit.
    fn has_same_header(&self, record: &PaymentRecord) -> bool {
        let Presented { header, identifier, is_secret, is_committed, .. } = self.presented;
        let is_same = record.header == *header || *is_committed;
        let retry_end = record.delivered_at_ms.map(|at| at.saturating_add(RETRY_WINDOW_MS));
        let is_retried = retry_end.is_none_or(|end| *is_secret && self.now < end);
        let is_fresh = is_retried || identifier.is_some();
        let replay_end = record.entry.block.map(|block| block.time_ms.saturating_add(REPLAY_WINDOW_MS));
        is_same && is_fresh && (*is_secret || replay_end.is_none_or(|end| self.now < end))
    }

    fn ensure_same_listing(&self, record: &PaymentRecord) -> Result<(), PayError> {
        if record.listing_id == self.terms.id {
            return Ok(());
        }
        // While it is not known whether a node accepted the payment, the payer must not pay again.
        if record.awaits_submission_answer() {
            return Err(not_settled(&Settlement::Pending(None), &record.entry.tx, &record.payer));
        }
        Err(NotSettled::OtherResource.into())
    }

    /// Checks whether this client may get the payment's content.
    ///
    /// If a node knew the transaction before this service submitted it, anyone may have copied it. The request must
    /// then be signed by the payer.
    fn ensure_entitled(&self, entry: &Entry, payer: &Address) -> Result<(), PayError> {
        if entry.provenance == Provenance::Ours || self.is_payer(payer) { Ok(()) } else { Err(PayError::Public) }
    }

    /// Returns whether the request is known to come from the payer, by a signature or by the salt of the transaction's
    /// request commitment.
    fn is_payer(&self, payer: &Address) -> bool {
        self.presented.is_committed || self.is_proven(payer)
    }

    /// Returns whether the payer's payment key signed the request, under any address of that key.
    fn is_proven(&self, payer: &Address) -> bool {
        self.proven.is_some_and(|signer| signer.payment_key() == payer.payment_key())
    }

    /// Returns the provenance to store for a payment before this service submits it.
    fn provenance(&self, payer: &Address) -> Provenance {
        match (self.presented.is_committed, self.is_payer(payer)) {
            (true, _) => Provenance::Ours,
            (false, true) => Provenance::Foreign,
            (false, false) => Provenance::Unknown,
        }
    }

    fn trust(&self, payer: &Address) -> Trust {
        if self.is_payer(payer) { Trust::Payer } else { Trust::Unproven }
    }
}

impl<D: Database, C: Chain + Evaluate, V: VerifyEd25519, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    /// Verifies, claims and settles a payment for a listing within the request's time, or resumes a payment that was
    /// claimed before. `proven` is the address whose key signed the request, if any.
    ///
    /// # Errors
    /// Returns the reason why no content is delivered.
    pub async fn pay(
        &self,
        terms: &ListingTerms,
        presented: &Presented<'_>,
        proven: Option<Address>,
    ) -> Result<PaidContent, PayError> {
        let pay = PayRequest { terms, presented, proven, now: self.now };
        let id = presented.identifier.as_ref().map(|identifier| identifier.id.as_str());
        if let Some(Both(mut record, IdentifierUse { payload })) =
            self.database.fetch(payment::resumed_by(presented.tx(), &terms.id, id)).await?
        {
            if let (Some(own), Some(known)) = (&presented.identifier, payload)
                && own.payload != known
            {
                return Err(PayError::IdentifierTaken);
            }
            if self.is_standing(&pay, &mut record).await? {
                pay.ensure_resumable(&record, payload.is_some())?;
                return self.resume(&pay, record).await;
            }
            // Only the payer may use a payment that failed for one listing to pay for another one.
            if record.listing_id != terms.id {
                pay.ensure_entitled(&record.entry, &record.payer)?;
            }
        }
        self.pay_anew(&pay).await
    }

    /// Returns whether a claimed payment is still valid. A rejected payment is not, and must be verified and claimed
    /// again. If a block may include the payment in spite of a rejection, looks it up on the chain first.
    async fn is_standing(&self, pay: &PayRequest<'_>, record: &mut PaymentRecord) -> Result<bool, PayError> {
        let is_same_listing = record.listing_id == pay.terms.id;
        let is_ours = record.entry.provenance == Provenance::Ours || pay.is_payer(&record.payer);
        let may_be_in_block = record.entry.state == EntryState::Refused
            && is_same_listing
            && (is_ours || record.entry.kind.names_its_listing());
        if may_be_in_block {
            self.outbox().refresh(&mut record.entry, None, pay.trust(&record.payer), self.now).await?;
        } else if record.awaits_submission_answer() && !is_same_listing {
            self.outbox().refresh(&mut record.entry, None, Trust::Unproven, self.now).await?;
        }
        Ok(record.entry.state != EntryState::Refused)
    }

    /// Checks that no other request has claimed the payment meanwhile, which is possible after a rejection.
    fn ensure_unchanged(
        &self,
        pay: &PayRequest<'_>,
        header: &ContentHash,
        record: &PaymentRecord,
    ) -> Result<(), PayError> {
        pay.ensure_same_listing(record)?;
        if record.header != *header && !pay.is_payer(&record.payer) {
            return Err(NotSettled::Duplicate.into());
        }
        pay.ensure_entitled(&record.entry, &record.payer)
    }

    /// Resumes a payment that an earlier request recorded.
    async fn resume(&self, pay: &PayRequest<'_>, mut record: PaymentRecord) -> Result<PaidContent, PayError> {
        pay.ensure_same_listing(&record)?;
        if record.is_refunded() {
            return Err(PayError::Refunded);
        }
        self.deliver(pay, &mut record.entry, (&record.payer, &record.header), Start::Resume).await
    }

    /// Settles a payment that this payer has claimed, and delivers its content.
    async fn deliver(
        &self,
        pay: &PayRequest<'_>,
        entry: &mut Entry,
        (payer, header): (&Address, &ContentHash),
        start: Start,
    ) -> Result<PaidContent, PayError> {
        let ended = match self.settle(entry, pay.terms, start, pay.trust(payer)).await? {
            PaymentOutcome::Included(payment) => {
                self.ensure_unchanged(pay, header, &payment.record)?;
                let (released, settlement) = self.settlement_of(&payment.record, payer)?;
                let hash = &pay.terms.content_hash;
                let content = self.hand_out(released, hash, &entry.tx, payment.content).await?;
                self.mark_delivered(&payment.record).await;
                return Ok(PaidContent { content, settlement });
            }
            PaymentOutcome::Pending { submitted } => {
                Settlement::Pending(submitted.then_some(SettlementEvidence::Mempool))
            }
            PaymentOutcome::Refused(reason) => {
                if matches!(start, Start::Resume) {
                    pay.ensure_entitled(entry, payer)?;
                }
                Settlement::Refused(reason)
            }
            PaymentOutcome::Expired => Settlement::Expired,
        };
        Err(not_settled(&ended, &entry.tx, payer))
    }

    /// Records that the content is delivered, unless the client has disconnected. If the database fails, the content is
    /// delivered nevertheless, and a repeated request with the same header gets the content again.
    async fn mark_delivered(&self, record: &PaymentRecord) {
        if record.delivered_at_ms.is_some() || (self.client_disconnected)() {
            return;
        }
        if let Err(error) = self.database.execute(payment::mark_delivered(&record.entry.tx, self.now)).await {
            (self.note)(&format!("the delivery of {} is not recorded: {error}", record.entry.tx));
        }
    }

    /// Builds the settlement response for a payment that a block includes, together with the permission to hand out its
    /// content.
    fn settlement_of(
        &self,
        record: &PaymentRecord,
        payer: &Address,
    ) -> Result<(Released, SettlementResponse), PayError> {
        let missing = || DatabaseError(format!("the payment of {} is in no block", record.entry.tx));
        let inclusion = record.entry.block.ok_or_else(missing)?;
        let evidence = SettlementEvidence::Block { inclusion, confirmations: record.facts.depth().unwrap_or(0) };
        if record.release(self.confirmations, self.clock) == Err(Unreleased::Unconfirmed) {
            return Err(not_settled(&Settlement::Pending(Some(evidence)), &record.entry.tx, payer));
        }
        let released = self.ensure_released(record)?;
        Ok((released, Settlement::Confirmed(evidence).response(&record.entry.tx, payer, api_types::NETWORK)))
    }

    /// Verifies a payment against the offer that it accepts. Also returns the offer, with its price and delivery mode.
    async fn verified(
        &self,
        pay: &PayRequest<'_>,
    ) -> Result<(Lovelace, DeliveryMode, Offered, VerifiedPayment), PayError> {
        let PayRequest { terms, presented, .. } = pay;
        let methods: Vec<_> = self.options.iter().map(|(_, method)| *method).collect();
        let payload = PaymentPayload::from_header(presented.text).map_err(Refusal::from)?;
        let (price, (method, offered)) = match recognise(&methods, &terms.sale(), &payload.accepted) {
            Ok(recognised) => (terms.price_lovelace, recognised),
            Err(refusal) => {
                // The price may have changed since it was offered, or since the terms were cached.
                let prices = self.database.fetch(edit::payable_prices(&terms.id, self.now)).await?;
                let others = prices.into_iter().filter(|price| *price != terms.price_lovelace);
                let mut recognised = others.filter_map(|price| {
                    let sale = Sale { price, ..terms.sale() };
                    Some((price, recognise(&methods, &sale, &payload.accepted).ok()?))
                });
                recognised.next().ok_or(refusal)?
            }
        };
        let payment = Payment::read(&payload.payload).map_err(Refusal::from)?;
        drop(payload);
        let mode = self.options.iter().find(|(_, known)| known.name() == method.name()).map(|(mode, _)| *mode);
        let mode = mode.ok_or(Refusal::Requirements("no payment method has this name"))?;
        if !terms.modes.contains(&mode) {
            return Err(PayError::Refused(InvalidAccepted::Differs("extra").into()));
        }
        let verified = verify(method, &offered, &payment, self.chain, self.signatures, self.moment()).await?;
        Ok((price, mode, offered, verified))
    }

    fn expires_too_soon(&self, verified: &VerifiedPayment) -> bool {
        let now = api_types::SLOTS.slot_at(self.clock).unwrap_or(u64::MAX);
        verified.valid_until < now.saturating_add(MIN_VALIDITY_SLOTS)
    }

    /// Resumes the payment with this transaction if it was claimed meanwhile and this request may resume it. Returns
    /// `None` if it was not claimed, or was rejected.
    async fn resume_equal(&self, pay: &PayRequest<'_>, tx: &TxHash) -> Result<Option<PaidContent>, PayError> {
        let record = self.database.fetch(payment::by_tx(tx)).await?;
        let Some(record) = record.filter(|record| record.entry.state != EntryState::Refused) else { return Ok(None) };
        pay.ensure_resumable(&record, false)?;
        self.resume(pay, record).await.map(Some)
    }

    async fn pay_anew(&self, pay: &PayRequest<'_>) -> Result<PaidContent, PayError> {
        let (price, mode, offered, verified) = self.verified(pay).await?;
        let payer = verified.payer;
        if verified.public {
            if let Some(paid) = self.resume_equal(pay, &verified.tx_id).await? {
                return Ok(paid);
            }
            if !pay.is_payer(&payer) {
                return Err(PayError::Public);
            }
        } else if self.expires_too_soon(&verified) {
            return Err(PayError::ExpiresTooSoon);
        }
        let Presented { header, identifier, .. } = pay.presented;
        let new =
            self.new_payment((pay.terms, price, mode, &offered), &verified, *header, pay.provenance(&payer)).await?;
        let mut new = NewPayment { identifier: identifier.clone(), ..new };
        for _ in 0..MAX_ROUNDS {
            match new.claim::<Blocked>(self.database, self.now).await? {
                Claim::New(mut entry) => {
                    // A node rejects a transaction that it knows, so a public one is not submitted again.
                    let start = if verified.public { Start::Resume } else { Start::Submit };
                    return self.deliver(pay, &mut entry, (&payer, header), start).await;
                }
                Claim::InputsTaken => return Err(PayError::InputsTaken),
                Claim::Blocked(blocked) => {
                    if let Some(paid) = self.blocked(pay, &mut new, blocked).await? {
                        return Ok(paid);
                    }
                }
            }
        }
        Err(NotSettled::Duplicate.into())
    }

    /// Handles a condition that blocked a payment's claim. Returns `None` if the claim should be retried.
    async fn blocked(
        &self,
        pay: &PayRequest<'_>,
        new: &mut NewPayment<'_>,
        blocked: Blocked,
    ) -> Result<Option<PaidContent>, PayError> {
        match blocked {
            Blocked::Claimed => self.resume_equal(pay, &new.tx).await,
            Blocked::Owned { purchase } => self.already_owned(pay, new, &purchase).await,
            // This transaction has not been public, so its sender is the payer of the unconfirmed payment too.
            Blocked::PaymentOpen { tx } => self.already_paying(pay, new, &tx).await,
            Blocked::Unresolved => {
                match self.look_up_failed_payments(new.listing_id, &[*new.payer.payment_key()], None).await? {
                    FailedPayments::NotIncluded(checked) => new.checked = checked,
                    FailedPayments::Changed => {}
                    FailedPayments::InMempool(tx) => {
                        let pending = Settlement::Pending(Some(SettlementEvidence::Mempool));
                        return Err(not_settled(&pending, &tx, &new.payer));
                    }
                    FailedPayments::TooMany(_) => return Err(PayError::TooManyUnresolved),
                }
                Ok(None)
            }
            Blocked::TermsTaken => Err(NotSettled::Duplicate.into()),
            Blocked::IdentifierTaken => Err(PayError::IdentifierTaken),
            Blocked::OffSale => Err(PayError::OffSale),
            Blocked::PriceNotOffered => Err(PayError::Refused(InvalidAccepted::Differs("amount").into())),
            Blocked::ContentMissing => Err(content_missing(&pay.terms.content_hash).into()),
        }
    }

    /// Delivers the content of a listing that the payer has already bought. The response names the transaction of that
    /// purchase. Returns `None` if the purchase was refunded meanwhile.
    async fn already_owned(
        &self,
        pay: &PayRequest<'_>,
        new: &NewPayment<'_>,
        purchase: &TxHash,
    ) -> Result<Option<PaidContent>, PayError> {
        self.ensure_not_public(pay, &new.payer).await?;
        let record = self.database.fetch(payment::by_tx(purchase)).await?;
        let owned = record.filter(|record| record.is_purchase() && !record.is_refunded());
        let Some(mut owned) = owned else { return Ok(None) };
        pay.ensure_same_listing(&owned)?;
        new.bind_identifier(self.database, purchase, self.now).await?;
        if owned.release(self.confirmations, self.clock) == Err(Unreleased::Unconfirmed) {
            self.observe(&mut owned).await?;
        }
        let (released, settlement) = self.settlement_of(&owned, &new.payer)?;
        let content = self.hand_out(released, &pay.terms.content_hash, purchase, None).await?;
        Ok(Some(PaidContent { content, settlement }))
    }

    /// Waits for the payer's unconfirmed payment and delivers its content. Returns `None` if that payment failed
    /// meanwhile.
    async fn already_paying(
        &self,
        pay: &PayRequest<'_>,
        new: &NewPayment<'_>,
        other: &TxHash,
    ) -> Result<Option<PaidContent>, PayError> {
        self.ensure_not_public(pay, &new.payer).await?;
        new.bind_identifier(self.database, other, self.now).await?;
        let Some(record) = self.database.fetch(payment::by_tx(other)).await? else { return Ok(None) };
        match self.resume(pay, record).await {
            Err(PayError::NotSettled(Refusal::Settlement(NotSettled::LedgerRefused(_) | NotSettled::Expired), _)) => {
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Returns an error if a mempool or a block contains this transaction, unless the request is known to come from the
    /// payer.
    ///
    /// Without this check, anyone could present a public transaction to get the content. A transaction that this
    /// service submits needs no such check, because nodes reject a transaction that they know.
    async fn ensure_not_public(&self, pay: &PayRequest<'_>, payer: &Address) -> Result<(), PayError> {
        if pay.is_payer(payer) {
            return Ok(());
        }
        self.sleep.sleep(PUBLIC_CHECK_MS).await;
        let tx = pay.presented.tx();
        if self.chain.in_mempool(tx).await? || self.chain.inclusion_of(tx).await?.is_some() {
            return Err(PayError::Public);
        }
        Ok(())
    }
}

/// Builds the error for a payment whose content cannot be delivered now, with the payment's settlement status.
fn not_settled(settlement: &Settlement, tx: &TxHash, payer: &Address) -> PayError {
    let refusal = settlement.refusal().unwrap_or_else(|| NotSettled::Pending.into());
    PayError::NotSettled(refusal, Box::new(settlement.response(tx, payer, api_types::NETWORK)))
}
