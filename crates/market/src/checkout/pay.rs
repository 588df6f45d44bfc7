//! A payment from outside: verified, claimed, settled and delivered, or taken up where it is.

use cardano::{Address, ContentHash, TxHash, chain::Chain, evaluation::Evaluate, keys::VerifyEd25519, slots::Millis};
use outbox::{Entry, EntryState, Provenance, Sleep, Trust, TxStatus};
use sql::Database;
use x402_cardano::{
    Refusal,
    exact::{Payment, VerifiedPayment, verify},
    method::{Offered, recognise},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{InvalidAccepted, PaymentPayload, SettlementResponse},
};

use super::{
    Checkout, EarlierPayments, PayError, Presented, content_missing, ensure_releasable,
    settle::{PaymentOutcome, Start},
    x402_settlement,
};
use crate::{
    catalogue::ListingTerms,
    claim::{Blocked, Claim, NewPayment},
    contents::Contents,
    listing::DeliveryMode,
    payment::{self, Known, PaymentRecord},
};

/// How often a claim is tried again because the payment that blocked it failed.
const MAX_ROUNDS: u32 = 3;

/// How much longer a new payment must be valid, in slots: three blocks in four come within as many.
pub(super) const MIN_VALIDITY_SLOTS: u64 = 30;

/// How long a transaction that is not submitted, for its payer owns what it is for, must stay unseen.
const PUBLIC_CHECK_MS: Millis = 5_000;

/// How long after its block a header without a secret counts as its payer's, from the payer's network. Anyone there can
/// rebuild it from the chain. Later the payer signs. Longer than a client that is told to come back has to wait: for
/// more confirmations, for a lock's result, for a provider that is down.
const REPLAY_WINDOW_MS: Millis = 60 * 60_000;

/// A payment that delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    pub content: String,
    /// What is told about the payment. Its transaction is the one by which the payer owns the listing: where that is an
    /// earlier one, this one was not broadcast and expires unused.
    pub settlement: SettlementResponse,
}

/// A payment and what it is held against.
struct PayRequest<'a> {
    terms: &'a ListingTerms,
    presented: &'a Presented<'a>,
    /// The address whose owner signed the request itself.
    proven: Option<Address>,
    now: Millis,
}

impl PayRequest<'_> {
    /// That this request may take up a payment that was claimed before: it pays for the same listing, and came by the
    /// same header, or under the same identifier, which is never public (`is_identified`), or its payer signs.
    fn ensure_resumable(&self, record: &PaymentRecord, is_identified: bool) -> Result<(), PayError> {
        self.ensure_same_listing(record)?;
        if !(is_identified || self.has_same_header(record) || self.is_proven(&record.payer)) {
            return Err(NotSettled::Duplicate.into());
        }
        // One whose answer is not known yet goes on: how it was submitted is checked before it delivers.
        if record.entry.provenance == Provenance::Foreign {
            self.ensure_entitled(&record.entry, &record.payer)?;
        }
        Ok(())
    }

    /// Whether the payment came by this request's header, and that still shows its payer: before the content was handed
    /// out, or with an identifier in it. What only the payer and we know is public once the transaction is.
    fn has_same_header(&self, record: &PaymentRecord) -> bool {
        let Presented { header, identifier, is_secret, is_committed, .. } = self.presented;
        let is_same = record.header == *header || *is_committed;
        let is_fresh = !record.delivered || identifier.is_some();
        let replay_end = record.entry.block.map(|block| block.time_ms.saturating_add(REPLAY_WINDOW_MS));
        is_same && is_fresh && (*is_secret || replay_end.is_none_or(|end| self.now < end))
    }

    fn ensure_same_listing(&self, record: &PaymentRecord) -> Result<(), PayError> {
        if record.listing_id == self.terms.id {
            return Ok(());
        }
        // The payer must not pay anew meanwhile.
        if record.is_unanswered() {
            answer(Settlement::Pending(None), &record.entry.tx, &record.payer)?;
        }
        Err(NotSettled::OtherResource.into())
    }

    /// Whether this payment's content is for the client that brought it. Where a node had it before we submitted it,
    /// only the payer's signature distinguishes them from a copier.
    fn ensure_entitled(&self, entry: &Entry, payer: &Address) -> Result<(), PayError> {
        if entry.provenance == Provenance::Ours || self.is_payer(payer) { Ok(()) } else { Err(PayError::Public) }
    }

    /// Whether this payer asks: by a signature over the request, or by the salt of a commitment in the transaction.
    fn is_payer(&self, payer: &Address) -> bool {
        self.presented.is_committed || self.is_proven(payer)
    }

    /// Whether the payment key of this payer signed the request, under whatever address.
    fn is_proven(&self, payer: &Address) -> bool {
        self.proven.is_some_and(|signer| signer.payment_key() == payer.payment_key())
    }

    /// Who handed the payment to the network first, as far as is known before it is submitted.
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
    /// Takes a payment for a listing: verifies, claims and settles it, as far as the request's time allows, or takes it
    /// up where it is. `proven` is the address whose owner signed the request as a returning buyer does, if one did.
    ///
    /// # Errors
    /// Why nothing is delivered now.
    pub async fn pay(
        &self,
        terms: &ListingTerms,
        presented: &Presented<'_>,
        proven: Option<Address>,
    ) -> Result<Paid, PayError> {
        let pay = PayRequest { terms, presented, proven, now: self.now };
        let id = presented.identifier.as_ref().map(|identifier| identifier.id.as_str());
        let known = self.database.run(payment::known(presented.tx(), &terms.id, id)).await?;
        let Known { record, payload } = known.first_json()?.unwrap_or_default();
        if let (Some(own), Some(known)) = (&presented.identifier, payload)
            && own.payload != known
        {
            return Err(PayError::IdentifierTaken);
        }
        if let Some(mut record) = record {
            if self.is_standing(&pay, &mut record).await? {
                pay.ensure_resumable(&record, payload.is_some())?;
                return self.resume(&pay, record).await;
            }
            // What a node refused once is for another listing by its payer's word alone.
            if record.listing_id != terms.id {
                pay.ensure_entitled(&record.entry, &record.payer)?;
            }
        }
        self.pay_anew(&pay).await
    }

    /// Whether a payment that was claimed before still stands. One that the ledger refused is verified anew, unless a block
    /// has it after all, and its payer asks.
    async fn is_standing(&self, pay: &PayRequest<'_>, record: &mut PaymentRecord) -> Result<bool, PayError> {
        let is_same_listing = record.listing_id == pay.terms.id;
        let is_ours = record.entry.provenance == Provenance::Ours || pay.is_payer(&record.payer);
        let may_be_in_block = record.entry.state == EntryState::Refused
            && is_same_listing
            && (is_ours || record.entry.kind.names_its_listing());
        if may_be_in_block {
            self.outbox().refresh(&mut record.entry, None, pay.trust(&record.payer), self.now).await?;
        } else if record.is_unanswered() && !is_same_listing {
            self.outbox().refresh(&mut record.entry, None, Trust::Unproven, self.now).await?;
        }
        Ok(record.entry.state != EntryState::Refused)
    }

    /// That the stored payment is still the one that this request went on with: one that was refused meanwhile may have
    /// been claimed anew.
    fn ensure_unchanged(
        &self,
        pay: &PayRequest<'_>,
        header: &ContentHash,
        outcome: &PaymentOutcome,
    ) -> Result<(), PayError> {
        let Some(record) = &outcome.settled.record else { return Ok(()) };
        pay.ensure_same_listing(record)?;
        if record.is_refunded() {
            return Err(PayError::Refunded);
        }
        if record.header != *header && !pay.is_payer(&record.payer) {
            return Err(NotSettled::Duplicate.into());
        }
        pay.ensure_entitled(&record.entry, &record.payer)?;
        Ok(ensure_releasable(record, self.clock)?)
    }

    /// Goes on with a payment that was claimed before.
    async fn resume(&self, pay: &PayRequest<'_>, mut record: PaymentRecord) -> Result<Paid, PayError> {
        pay.ensure_same_listing(&record)?;
        if record.is_refunded() {
            return Err(PayError::Refunded);
        }
        self.deliver(pay, &mut record.entry, (&record.payer, &record.header), Start::Resume).await
    }

    /// Settles a payment of this payer, claimed by this header, and delivers.
    async fn deliver(
        &self,
        pay: &PayRequest<'_>,
        entry: &mut Entry,
        (payer, header): (&Address, &ContentHash),
        start: Start<'_>,
    ) -> Result<Paid, PayError> {
        let outcome = self.settle(entry, pay.terms, start, pay.trust(payer)).await?;
        self.ensure_unchanged(pay, header, &outcome)?;
        if matches!((start, &outcome.status), (Start::Resume, TxStatus::Refused(_))) {
            pay.ensure_entitled(entry, payer)?;
        }
        let settlement = answer(x402_settlement(outcome.status), &entry.tx, payer)?;
        // An instant payment is marked with its inclusion.
        let is_marked = outcome.settled.record.is_some_and(|record| record.delivered);
        let content = self.bought(&pay.terms.content_hash, &entry.tx, outcome.content).await?;
        // Last: a client that is told to come back must find the payment as it was.
        if !is_marked && !(self.hung_up)() {
            self.database.run(payment::mark_delivered(&entry.tx, self.now)).await?;
        }
        Ok(Paid { content, settlement })
    }

    async fn verified(&self, pay: &PayRequest<'_>) -> Result<(DeliveryMode, Offered, VerifiedPayment), PayError> {
        let PayRequest { terms, presented, .. } = pay;
        let methods: Vec<_> = self.options.iter().map(|(_, method)| *method).collect();
        let payload = PaymentPayload::from_header(presented.text).map_err(Refusal::from)?;
        let (method, offered) = recognise(&methods, &terms.sale(), &payload.accepted)?;
        let payment = Payment::read(&payload.payload).map_err(Refusal::from)?;
        drop(payload);
        let mode = self.options.iter().find(|(_, known)| known.name() == method.name()).map(|(mode, _)| *mode);
        let mode = mode.ok_or(Refusal::Requirements("no payment method has this name"))?;
        if !terms.modes.contains(&mode) {
            return Err(PayError::Refused(InvalidAccepted::Differs("extra").into()));
        }
        let verified = verify(method, &offered, &payment, self.chain, self.signatures, self.moment()).await?;
        Ok((mode, offered, verified))
    }

    fn expires_too_soon(&self, verified: &VerifiedPayment) -> bool {
        let now = api_types::SLOTS.slot_at(self.clock).unwrap_or(u64::MAX);
        verified.valid_until < now.saturating_add(MIN_VALIDITY_SLOTS)
    }

    /// The payment by this transaction, where an equal request claimed it first: it is taken up.
    async fn resume_equal(&self, pay: &PayRequest<'_>, tx: &TxHash) -> Result<Option<Paid>, PayError> {
        let record: Option<PaymentRecord> = self.database.run(payment::by_tx(tx)).await?.first_json()?;
        let Some(record) = record.filter(|record| record.entry.state != EntryState::Refused) else { return Ok(None) };
        pay.ensure_resumable(&record, false)?;
        self.resume(pay, record).await.map(Some)
    }

    async fn pay_anew(&self, pay: &PayRequest<'_>) -> Result<Paid, PayError> {
        let (mode, offered, verified) = self.verified(pay).await?;
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
        let new = self.new_payment((pay.terms, mode, &offered), &verified, *header, pay.provenance(&payer)).await?;
        let mut new = NewPayment { identifier: identifier.clone(), ..new };
        for _ in 0..MAX_ROUNDS {
            match new.claim(self.database, self.now).await? {
                Claim::New(mut entry) => {
                    // A node refuses what it has: what its payer submitted before only waits for a block.
                    let start = if verified.public { Start::Resume } else { Start::Submit(None) };
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

    /// What a claim leads to that this condition blocks. `None` where another try may do.
    async fn blocked(
        &self,
        pay: &PayRequest<'_>,
        new: &mut NewPayment<'_>,
        blocked: Blocked,
    ) -> Result<Option<Paid>, PayError> {
        match blocked {
            Blocked::Known => self.resume_equal(pay, &new.tx).await,
            Blocked::Owned { purchase } => self.already_owned(pay, new, &purchase).await,
            // The payer signed this transaction, which no one else has seen: the unconfirmed payment is theirs.
            Blocked::Paying { tx } => self.already_paying(pay, new, &tx).await,
            Blocked::Unresolved => {
                match self.check_earlier_payments(new.listing_id, &[*new.payer.payment_key()], None).await? {
                    EarlierPayments::NotFound(checked) => new.checked = checked,
                    EarlierPayments::Found => {}
                    EarlierPayments::Waiting(tx) => {
                        answer(Settlement::Pending(Some(SettlementEvidence::Mempool)), &tx, &new.payer)?;
                    }
                    EarlierPayments::TooMany(_) => return Err(PayError::TooManyUnresolved),
                }
                Ok(None)
            }
            Blocked::TermsTaken => Err(NotSettled::Duplicate.into()),
            Blocked::IdentifierTaken => Err(PayError::IdentifierTaken),
            Blocked::ContentMissing | Blocked::Superseded | Blocked::Restoring | Blocked::SpendRefused { .. } => {
                Err(content_missing(&pay.terms.content_hash).into())
            }
        }
    }

    /// The content of a purchase that the payer owns; `None` where it was refunded meanwhile. What is told is the original
    /// transaction, in its block.
    async fn already_owned(
        &self,
        pay: &PayRequest<'_>,
        new: &NewPayment<'_>,
        purchase: &TxHash,
    ) -> Result<Option<Paid>, PayError> {
        self.ensure_not_public(pay, &new.payer).await?;
        let record = self.database.run(payment::by_tx(purchase)).await?.first_json::<PaymentRecord>()?;
        let owned = record.filter(|record| record.is_purchase() && !record.is_refunded());
        let Some(owned) = owned else { return Ok(None) };
        pay.ensure_same_listing(&owned)?;
        new.name(self.database, purchase, self.now).await?;
        ensure_releasable(&owned, self.clock)?;
        let (inclusion, confirmations) = self.confirmations_of(&owned).await?;
        let evidence = SettlementEvidence::Block { inclusion, confirmations };
        let settlement = match confirmations >= self.confirmations {
            true => Settlement::Confirmed(evidence),
            false => Settlement::Pending(Some(evidence)),
        };
        let settlement = answer(settlement, purchase, &new.payer)?;
        let content = self.bought(&pay.terms.content_hash, purchase, None).await?;
        Ok(Some(Paid { content, settlement }))
    }

    /// The content of the payer's unconfirmed payment; `None` where that failed meanwhile.
    async fn already_paying(
        &self,
        pay: &PayRequest<'_>,
        new: &NewPayment<'_>,
        other: &TxHash,
    ) -> Result<Option<Paid>, PayError> {
        self.ensure_not_public(pay, &new.payer).await?;
        new.name(self.database, other, self.now).await?;
        let record = self.database.run(payment::by_tx(other)).await?.first_json::<PaymentRecord>()?;
        let Some(record) = record else { return Ok(None) };
        match self.resume(pay, record).await {
            Err(PayError::NotSettled(Refusal::Settlement(NotSettled::LedgerRefused(_) | NotSettled::Expired), _)) => {
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// That neither mempool nor block shows this transaction a moment later either. It is not submitted, so no node says that it
    /// had it before, and a provider's index may lag.
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

fn answer(settlement: Settlement, tx: &TxHash, payer: &Address) -> Result<SettlementResponse, PayError> {
    let response = settlement.response(tx, payer, api_types::NETWORK);
    match settlement.refusal() {
        None => Ok(response),
        Some(refusal) => Err(PayError::NotSettled(refusal, Box::new(response))),
    }
}
