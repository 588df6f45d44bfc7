//! A payment from outside: the value of a `PAYMENT-SIGNATURE` header, or the same object by another way.

use cardano::{
    Address, ContentHash, TxHash,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    keys::VerifyEd25519,
    slots::Millis,
};
use outbox::{Entry, EntryState, Provenance, Sleep, Trust, TxStatus, WalletSnapshot};
use sql::{Database, DatabaseError};
use x402_cardano::{
    Refusal,
    exact::{Payment, VerifiedPayment, VerifyError, verify},
    method::{Offered, recognise},
    request_commitment::{Bound, RequestDigest, request_commitment},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{
        InvalidAccepted, PaymentPayload, PaymentRequirements, SettlementResponse, payment_identifier::payload_digest,
    },
};

use super::{
    Checkout, EarlierPayments, Unavailable, content_missing, ensure_releasable, settle::PaymentOutcome, x402_settlement,
};
use crate::{
    catalogue::ListingTerms,
    claim::{Blocked, Claim, Identifier, NewPayment},
    contents::Contents,
    listing::DeliveryMode,
    payment::{self, Known, MAX_CHECKED, PaymentRecord},
    proof::ProofError,
};

/// How often a claim is tried again because the payment that blocked it failed.
const MAX_ROUNDS: u32 = 3;

/// How much longer a new payment must be valid, in slots: three blocks in four come within as many.
const MIN_VALIDITY_SLOTS: u64 = 30;

/// How long a transaction that is not submitted, for its payer owns what it is for, must stay unseen.
const PUBLIC_CHECK_MS: Millis = 5_000;

/// How long after its block a header without a secret counts as its payer's, from the payer's network. Anyone there can
/// rebuild it from the chain. Later the payer signs. Longer than a client that is told to come back has to wait: for
/// more confirmations, for a lock's result, for a provider that is down.
const REPLAY_WINDOW_MS: Millis = 60 * 60_000;

/// What an outside payer shows, each as the HTTP header of its name carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// x402's PaymentPayload (`PAYMENT-SIGNATURE`).
    pub payment: Option<String>,
    /// A recent signature of the payer's wallet over the listing (`X-Service-Proof`).
    pub proof: Option<String>,
}

/// A payment as it came. Read again where it is verified: as values it may take eighty times its bytes, and a request that
/// waits for a block would hold them.
#[derive(Clone, Debug)]
pub struct Presented<'a> {
    text: &'a str,
    tx: TxHash,
    header: ContentHash,
    /// Whether something in it is known to its maker and this service alone.
    is_secret: bool,
    /// Whether its transaction commits to the request that brings it, with a salt that the chain does not show. Then
    /// its sender made it, even if it is public.
    is_committed: bool,
    identifier: Option<Identifier>,
}

impl<'a> Presented<'a> {
    /// Reads the value of a `PAYMENT-SIGNATURE` header that came from this network of a client's. Without a secret of its own
    /// (`request-binding`, `payment-identifier`) all in it can be known to others: then it is the same header only from
    /// the same network. One that commits to a request (`cardano-request-commitment`) is taken with no other.
    ///
    /// # Errors
    /// Whatever keeps it from being a payment, or of this request: nothing was looked up.
    pub fn read(header: &'a str, network: &str, request: Option<&RequestDigest>) -> Result<Self, Refusal> {
        let payload = PaymentPayload::from_header(header)?;
        let identifier = match payload.payment_id()? {
            Some(id) => Some(Identifier { id: id.to_string(), payload: payload_digest(header)? }),
            None => None,
        };
        let tx = Payment::read(&payload.payload)?.tx;
        let is_committed = request_commitment(&payload, &tx, request, false)? == Bound::ToThisRequest;
        let is_secret = payload.is_bound() || identifier.is_some() || is_committed;
        let known_as = if is_secret { ContentHash::of(header.as_bytes()) } else { of_network(header, network) };
        Ok(Self { text: header, tx: tx.id, header: known_as, is_secret, is_committed, identifier })
    }

    /// The transaction.
    #[must_use]
    pub const fn tx(&self) -> &TxHash {
        &self.tx
    }

    /// The entry that was accepted.
    ///
    /// # Errors
    /// It is none of this scheme's.
    pub fn accepted(&self) -> Result<PaymentRequirements, Refusal> {
        let accepted = serde_json::to_value(PaymentPayload::from_header(self.text)?.accepted);
        let requirements = accepted.and_then(serde_json::from_value);
        requirements.map_err(|_| Refusal::Requirements("the accepted entry cannot be shown"))
    }
}

fn of_network(header: &str, network: &str) -> ContentHash {
    // Headers have no line breaks.
    ContentHash::of(format!("{header}\n{network}").as_bytes())
}

/// A payment that delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// What was bought.
    pub content: String,
    /// What is told about the payment. Its transaction is the one by which the payer owns the listing: where that is an
    /// earlier one, this one was not broadcast and expires unused.
    pub settlement: SettlementResponse,
}

/// Why nothing is delivered now. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayError {
    /// Nothing was shown.
    #[error("payment required: choose one of the offers")]
    Unpaid,
    /// The proof proves nothing.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The address that signed the proof has bought nothing here.
    #[error("this address has not bought this listing: pay for it")]
    NotOwned,
    /// It is refused: nothing was paid by it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was settled, or not yet: what is told about it.
    #[error("{0}")]
    NotSettled(Refusal, Box<SettlementResponse>),
    /// It was refunded.
    #[error("this payment was refunded: pay with a new transaction")]
    Refunded,
    /// Another handed the transaction in before it came here, or may have: it proves nothing about who sends it.
    #[error(
        "this transaction was public before it came here, so it does not show who sends it: send X-Service-Proof, signed by the payer, together with PAYMENT-SIGNATURE (a payment with a request commitment needs none); nothing is paid twice"
    )]
    Public,
    /// More of the payer's failed payments than are looked for may be in a block.
    #[error(
        "too many failed payments: more than {MAX_CHECKED} of this payer's for this listing failed, and some may still be in a block; nothing was paid now; try again in one hour"
    )]
    TooManyUnresolved,
    /// It would hardly be in a block in time.
    #[error(
        "the payment is valid for less than {MIN_VALIDITY_SLOTS} seconds more: nothing was paid; build a new one, under new terms \
         where those expire soon"
    )]
    ExpiresTooSoon,
    /// Another payment spends the same.
    #[error(
        "an unconfirmed payment spends an input of this one; nothing was paid: wait until it is in a block or expires, or spend other outputs"
    )]
    InputsTaken,
    /// The identifier came with another payload before.
    #[error(
        "this payment identifier came with another payload before; nothing was paid: use a new one for a new payment"
    )]
    IdentifierTaken,
    /// Something cannot be asked.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl PayError {
    /// The stable code: this is the table of all that are not x402's own.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unpaid => "PAYMENT-SIGNATURE header is required",
            Self::Proof(_) => "proof_refused",
            Self::NotOwned => "not_owned",
            Self::Refused(refusal) | Self::NotSettled(refusal, _) => refusal.code(),
            Self::Refunded => "payment_refunded",
            Self::Public => "payment_public",
            Self::TooManyUnresolved => "payer_unresolved",
            Self::ExpiresTooSoon => "invalid_exact_cardano_payload_ttl_too_soon",
            Self::InputsTaken => "invalid_exact_cardano_payload_input_not_available",
            Self::IdentifierTaken => "payment_identifier_taken",
            Self::Unavailable(Unavailable::ChainBehind) => "protected_paused",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// What is told about a payment that was settled, or not yet.
    #[must_use]
    pub const fn settlement(&self) -> Option<&SettlementResponse> {
        if let Self::NotSettled(_, settlement) = self { Some(settlement) } else { None }
    }

    /// Whether a payment is unconfirmed.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        matches!(self, Self::NotSettled(Refusal::Settlement(NotSettled::Pending), _))
    }

    /// Whether it tells how a payment stands that was made before: its payer is told of a hidden listing's, too.
    #[must_use]
    pub const fn reports_earlier_payment(&self) -> bool {
        matches!(self, Self::NotSettled(..) | Self::Refunded | Self::Public)
    }
}

impl From<NotSettled> for PayError {
    fn from(error: NotSettled) -> Self {
        Self::Refused(error.into())
    }
}

impl From<DatabaseError> for PayError {
    fn from(error: DatabaseError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<VerifyError> for PayError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Refused(refusal) => Self::Refused(refusal),
            VerifyError::Chain(error) => Self::Unavailable(error.into()),
        }
    }
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
    /// Whether a payment that was claimed before may be taken up: for the same listing, with the same header before the
    /// content was handed out. The header is what only the payer and we know, until the transaction is public. An
    /// identifier is never public, whether it was looked for or stands in the same header; and the payer may sign.
    fn may_resume(&self, record: &PaymentRecord, identified: bool) -> Result<(), PayError> {
        let same = record.header == self.presented.header || self.presented.is_committed;
        let same = same && (!record.delivered || self.presented.identifier.is_some());
        let since = record.entry.block.map(|block| block.time_ms.saturating_add(REPLAY_WINDOW_MS));
        let same = same && (self.presented.is_secret || since.is_none_or(|end| self.now < end));
        if !(same || identified || self.is_proven(&record.payer)) {
            return Err(NotSettled::Duplicate.into());
        }
        // One whose answer is not known yet goes on: how it was submitted is checked before it delivers.
        if record.entry.provenance == Provenance::Foreign {
            self.ensure_entitled(&record.entry, &record.payer)
        } else {
            Ok(())
        }
    }

    fn ensure_same_listing(&self, record: &PaymentRecord) -> Result<(), PayError> {
        if record.listing_id == self.terms.id {
            return Ok(());
        }
        // A claim whose submission has no answer binds no one yet: the payer must not pay anew meanwhile.
        if record.entry.state == EntryState::Claimed && record.entry.provenance == Provenance::Unknown {
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
            if self.is_resumable(&pay, &mut record).await? {
                return self.resume_claimed(&pay, record, payload.is_some()).await;
            }
            // What a node refused once is for another listing by its payer's word alone.
            if record.listing_id != terms.id {
                pay.ensure_entitled(&record.entry, &record.payer)?;
            }
        }
        self.pay_anew(&pay).await
    }

    /// Whether to go on with a payment that was claimed before. One that the ledger refused is verified anew, unless a block
    /// has it after all, and its payer asks.
    async fn is_resumable(&self, pay: &PayRequest<'_>, record: &mut PaymentRecord) -> Result<bool, PayError> {
        let same_listing = pay.ensure_same_listing(record).is_ok();
        let payers = record.entry.provenance == Provenance::Ours || pay.is_payer(&record.payer);
        let entry = &mut record.entry;
        let unbound = entry.state == EntryState::Claimed && entry.provenance == Provenance::Unknown && !same_listing;
        let may_stand = same_listing && (payers || entry.kind.names_its_listing());
        if unbound || entry.state == EntryState::Refused && may_stand {
            let trust = if unbound { Trust::Unproven } else { pay.trust(&record.payer) };
            self.outbox().refresh(entry, None, trust, self.now).await.map_err(Unavailable::from)?;
        }
        Ok(entry.state != EntryState::Refused)
    }

    /// That the stored payment is still the one that this request went on with: one that was refused meanwhile may have
    /// been claimed anew.
    fn ensure_unchanged(
        &self,
        pay: &PayRequest<'_>,
        header: &ContentHash,
        outcome: &PaymentOutcome,
    ) -> Result<(), PayError> {
        let Some(record) = &outcome.record else { return Ok(()) };
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

    /// Goes on with a payment that was claimed before, where the request may.
    async fn resume_claimed(
        &self,
        pay: &PayRequest<'_>,
        record: PaymentRecord,
        identified: bool,
    ) -> Result<Paid, PayError> {
        pay.ensure_same_listing(&record)?;
        pay.may_resume(&record, identified)?;
        self.resume(pay, record).await
    }

    async fn resume(&self, pay: &PayRequest<'_>, mut record: PaymentRecord) -> Result<Paid, PayError> {
        pay.ensure_same_listing(&record)?;
        if record.is_refunded() {
            return Err(PayError::Refunded);
        }
        self.deliver(pay, &mut record.entry, (&record.payer, &record.header), None).await
    }

    /// Settles a payment, claimed by this header, and delivers. `first`: it was claimed just now, and is to be submitted.
    async fn deliver(
        &self,
        pay: &PayRequest<'_>,
        entry: &mut Entry,
        (payer, header): (&Address, &ContentHash),
        first: Option<Option<&WalletSnapshot>>,
    ) -> Result<Paid, PayError> {
        let outcome = self.settle(entry, pay.terms, first, pay.trust(payer)).await?;
        self.ensure_unchanged(pay, header, &outcome)?;
        if first.is_none() && matches!(outcome.status, TxStatus::Refused(_)) {
            pay.ensure_entitled(entry, payer)?;
        }
        let settlement = answer(x402_settlement(outcome.status), &entry.tx, payer)?;
        // An instant payment is marked with its inclusion.
        let is_marked = outcome.record.is_some_and(|record| record.delivered);
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

    /// What is stored of a transaction that an equal request claimed first.
    async fn own_submission(&self, tx: &TxHash) -> Result<Option<PaymentRecord>, PayError> {
        let record: Option<PaymentRecord> = self.database.run(payment::by_tx(tx)).await?.first_json()?;
        Ok(record.filter(|record| record.entry.state != EntryState::Refused))
    }

    async fn pay_anew(&self, pay: &PayRequest<'_>) -> Result<Paid, PayError> {
        let (mode, offered, verified) = self.verified(pay).await?;
        let payer = verified.payer;
        if verified.public {
            if let Some(record) = self.own_submission(&verified.tx_id).await? {
                return self.resume_claimed(pay, record, false).await;
            }
            if !pay.is_payer(&payer) {
                return Err(PayError::Public);
            }
        } else if self.expires_too_soon(&verified) {
            return Err(PayError::ExpiresTooSoon);
        }
        let PayRequest { terms, presented, .. } = pay;
        let sold = (*terms, mode, &offered);
        let new = self.new_payment(sold, &verified, presented.header, pay.provenance(&payer)).await;
        let mut new: NewPayment<'_> = new.map_err(|error: PayError| error)?;
        new.identifier.clone_from(&presented.identifier);
        for _ in 0..MAX_ROUNDS {
            match new.claim(self.database, self.now).await? {
                Claim::New(mut entry) => {
                    // A node refuses what it has: what its payer submitted before only waits for a block.
                    let first = (!verified.public).then_some(None);
                    return self.deliver(pay, &mut entry, (&payer, &presented.header), first).await;
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
            Blocked::Known => match self.own_submission(&new.tx).await? {
                Some(record) => self.resume_claimed(pay, record, false).await.map(Some),
                None => Ok(None),
            },
            Blocked::Owned { purchase } => self.already_owned(pay, new, &purchase).await,
            // The payer signed this transaction, which no one else has seen: the unconfirmed payment is theirs.
            Blocked::Paying { tx } => self.already_paying(pay, new, &tx).await,
            Blocked::Unresolved => {
                let failed = payment::unresolved(new.listing_id, &[*new.payer.payment_key()], None, self.now);
                let failed = self.database.run(failed).await?.all_json()?;
                match self.check_earlier_payments(&failed).await? {
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
            Blocked::ContentMissing
            | Blocked::Superseded
            | Blocked::Restoring
            | Blocked::SignedOut
            | Blocked::OverPerPayment { .. }
            | Blocked::OverBudget { .. }
            | Blocked::Unapproved => Err(content_missing(&pay.terms.content_hash).into()),
        }
    }

    /// The content of a purchase that the payer owns; `None` where it was refunded meanwhile.
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
        let settlement = self.owned(&owned, &new.payer).await?;
        Ok(Some(Paid { content: self.bought(&pay.terms.content_hash, purchase, None).await?, settlement }))
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
        let seen = async { Ok(self.chain.in_mempool(tx).await? || self.chain.inclusion_of(tx).await?.is_some()) };
        let seen: Result<bool, ChainError> = seen.await;
        if seen.map_err(Unavailable::from)? { Err(PayError::Public) } else { Ok(()) }
    }

    /// What is told where the payer owns the listing already: the original transaction, in its block.
    async fn owned(&self, owned: &PaymentRecord, payer: &Address) -> Result<SettlementResponse, PayError> {
        ensure_releasable(owned, self.clock)?;
        let (block, newer) = self.confirmations_of(owned).await?;
        let evidence = SettlementEvidence::Block { inclusion: block, confirmations: newer };
        let enough = newer >= self.confirmations;
        let settlement = if enough { Settlement::Confirmed(evidence) } else { Settlement::Pending(Some(evidence)) };
        answer(settlement, &owned.entry.tx, payer)
    }
}

fn answer(settlement: Settlement, tx: &TxHash, payer: &Address) -> Result<SettlementResponse, PayError> {
    let response = settlement.response(tx, payer, api_types::NETWORK);
    match settlement.refusal() {
        None => Ok(response),
        Some(refusal) => Err(PayError::NotSettled(refusal, Box::new(response))),
    }
}
