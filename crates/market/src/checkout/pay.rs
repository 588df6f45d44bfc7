//! A payment that somebody hands over: the value of a `PAYMENT-SIGNATURE` header, or the same object by another way.

use cardano::{
    Address, ContentHash, Lovelace, TxHash,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    keys::VerifyEd25519,
    slots::Millis,
};
use outbox::{Entry, EntryState, Provenance, Sleep, Trust, TxStatus, WalletSnapshot};
use sql::{Database, DatabaseError, Rows, exactly};
use x402_cardano::{
    Refusal,
    exact::{Payment, VerifiedPayment, VerifyError, verify},
    method::{Offered, recognise},
    request_commitment::{Bound, RequestDigest, request_commitment},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{
        HeaderError, InvalidAccepted, PaymentPayload, PaymentRequirements, SettlementResponse,
        payment_identifier::{InvalidPaymentId, payload_digest},
    },
};

use super::{
    Checkout, EarlierPayments, Unavailable, confirmations_of, creator_part, in_x402, no_content,
    settle::{Driven, ensure},
};
use crate::{
    catalogue::ListingTerms,
    claim::{Blocked, Claim, Identifier, NewPayment},
    contents::Contents,
    listing::DeliveryMode,
    payment::{self, Identified, MAX_CHECKED, PaymentRecord},
    purchase::{self, Owned, Status},
    release::release,
};

/// How often a claim is tried again because the payment that blocked it failed.
const MAX_ROUNDS: u32 = 3;

/// How much longer a new payment must be valid, in slots: three blocks in four come within as many.
const LEAST_SLOTS: u64 = 30;

/// How long a transaction that is not handed in, for its payer owns what it is for, must stay unseen.
const UNSEEN_MS: Millis = 5_000;

/// How long after its block a header without a secret is taken for its payer's, from their network: anybody there can make
/// it again from what the chain shows. Later the payer signs. Longer than whoever is told to come back has to wait: for the
/// blocks asked for on top, for a lock's result, for a provider that is away.
const REPLAY_WINDOW_MS: Millis = 60 * 60_000;

/// A payment as it came. Read again where it is verified: as values it may take eighty times its bytes, and whoever waits for
/// a block would hold them.
#[derive(Clone, Debug)]
pub struct Presented<'a> {
    text: &'a str,
    tx: TxHash,
    header: ContentHash,
    /// Whether something in it is known to nobody but who made it and us.
    is_secret: bool,
    /// Whether its transaction commits to the request that brings it, with a salt that the chain does not show: then who
    /// presents it made it, whether it is public or not.
    is_committed: bool,
    identifier: Option<Identifier>,
}

impl<'a> Presented<'a> {
    /// Reads the value of a `PAYMENT-SIGNATURE` header that came from this network of a client's. Without a secret of its own
    /// (`request-binding`, `payment-identifier`) all in it can be known to others: then it is the same header only from
    /// the same network.
    ///
    /// # Errors
    /// Whatever keeps it from being a payment: nothing was looked up.
    pub fn read(header: &'a str, network: &str) -> Result<Self, Refusal> {
        Self::of_request(header, network, None)
    }

    /// The same, of the request that brings it (`cardano-request-commitment`): a payment that commits to a request is taken
    /// with no other.
    ///
    /// # Errors
    /// As [`Self::read`], and a commitment that does not hold.
    pub fn of_request(header: &'a str, network: &str, request: Option<&RequestDigest>) -> Result<Self, Refusal> {
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

/// Why a payment delivers nothing now. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayError {
    /// It is refused: nothing was paid by it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was settled, or not yet: what is told about it.
    #[error("{0}")]
    NotSettled(Refusal, Box<SettlementResponse>),
    /// It was refunded.
    #[error("this payment was refunded: pay with a new transaction")]
    Refunded,
    /// Somebody else handed the transaction in before it came here, or may have: it proves nothing about who sends it.
    #[error(
        "a node had this transaction before it came from here: send X-Service-Proof, signed by the payer, together with \
         PAYMENT-SIGNATURE (a payment with a request commitment needs none)"
    )]
    Public,
    /// More of the payer's failed payments than are looked for may be in a block.
    #[error(
        "more than {MAX_CHECKED} payments of this payer for this listing failed, and some may still be in a block: try again \
         in an hour; nothing was paid now"
    )]
    TooManyUnresolved,
    /// It would hardly be in a block in time.
    #[error(
        "the payment is valid for less than {LEAST_SLOTS} seconds more: nothing was paid; build a new one, under new terms \
         where those expire soon"
    )]
    ExpiresTooSoon,
    /// Another payment spends the same.
    #[error(
        "another payment that spends an input of this one is on its way: wait until it is in a block or its time to live is \
         over, or spend other outputs"
    )]
    InputsTaken,
    /// The identifier came with another payload before.
    #[error("this payment identifier came with another payload before: use a new one for a new payment")]
    IdentifierTaken,
    /// Something cannot be asked.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

macro_rules! refused {
    ($($error:ty),*) => {$(
        impl From<$error> for PayError {
            fn from(error: $error) -> Self {
                Self::Refused(error.into())
            }
        }
    )*};
}
refused!(HeaderError, InvalidPaymentId, NotSettled);

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
struct Attempt<'a> {
    terms: &'a ListingTerms,
    presented: &'a Presented<'a>,
    /// The address whose owner signed the request itself.
    proven: Option<Address>,
    now: Millis,
}

impl Attempt<'_> {
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
        // One whose answer is not known yet goes on: how it was handed in is looked at before it delivers.
        if record.entry.provenance == Provenance::Foreign {
            self.may_have(&record.entry, &record.payer)
        } else {
            Ok(())
        }
    }

    fn is_for_it(&self, record: &PaymentRecord) -> Result<(), PayError> {
        if record.listing_id == self.terms.id {
            return Ok(());
        }
        // A claim whose submission has no answer binds no one yet: the payer must not pay anew meanwhile.
        if record.entry.state == EntryState::Claimed && record.entry.provenance == Provenance::Unknown {
            answer(Settlement::Pending(None), &record.entry.tx, &record.payer)?;
        }
        Err(NotSettled::OtherResource.into())
    }

    /// Whether what this payment bought is for who brought it: where a node had it before we handed it over, only the
    /// payer's signature tells them from whoever copied it.
    fn may_have(&self, entry: &Entry, payer: &Address) -> Result<(), PayError> {
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
        let attempt = Attempt { terms, presented, proven, now: self.now };
        let id = presented.identifier.as_ref().map(|identifier| identifier.id.as_str());
        let reads = vec![payment::record(presented.tx()), payment::identified(&terms.id, id)];
        let [known, identified] = exactly(self.database.batch(reads).await?)?;
        let identified: Option<Identified> = identified.first_json()?;
        if let (Some(own), Some(known)) = (&presented.identifier, &identified)
            && own.payload != known.payload
        {
            return Err(PayError::IdentifierTaken);
        }
        let mut known: Option<PaymentRecord> = known.first_json()?;
        if let Some(answered) = identified.filter(|answered| answered.tx != *presented.tx()) {
            known = self.database.run(payment::record(&answered.tx)).await?.first_json()?;
        }
        if let Some(mut record) = known {
            if self.still_stands(&attempt, &mut record).await? {
                attempt.is_for_it(&record)?;
                attempt.may_resume(&record, identified.is_some())?;
                return self.resume(&attempt, record).await;
            }
            // What a node refused once is for another listing by its payer's word alone.
            if record.listing_id != terms.id {
                attempt.may_have(&record.entry, &record.payer)?;
            }
        }
        self.pay_anew(&attempt).await
    }

    /// Whether to go on with a payment that was claimed before. One that the ledger refused is verified anew, unless a block
    /// has it after all, and its payer asks.
    async fn still_stands(&self, attempt: &Attempt<'_>, record: &mut PaymentRecord) -> Result<bool, PayError> {
        let for_it = attempt.is_for_it(record).is_ok();
        let payers = record.entry.provenance == Provenance::Ours || attempt.is_payer(&record.payer);
        let entry = &mut record.entry;
        let unbound = entry.state == EntryState::Claimed && entry.provenance == Provenance::Unknown && !for_it;
        let may_stand = for_it && (payers || entry.kind.names_its_listing());
        if unbound || entry.state == EntryState::Refused && may_stand {
            let trust = if unbound { Trust::Unproven } else { attempt.trust(&record.payer) };
            self.outbox().refresh(entry, None, trust, self.now).await.map_err(Unavailable::from)?;
        }
        Ok(entry.state != EntryState::Refused)
    }

    /// That the stored payment is still the one that this request went on with: one that was refused meanwhile may have
    /// been claimed anew.
    fn is_as_it_was(&self, attempt: &Attempt<'_>, header: &ContentHash, driven: &Driven) -> Result<(), PayError> {
        let Some(record) = &driven.record else { return Ok(()) };
        attempt.is_for_it(record)?;
        if record.is_refunded() {
            return Err(PayError::Refunded);
        }
        if record.header != *header && !attempt.is_payer(&record.payer) {
            return Err(NotSettled::Duplicate.into());
        }
        attempt.may_have(&record.entry, &record.payer)?;
        Ok(self.ensure_releasable(record)?)
    }

    async fn resume(&self, attempt: &Attempt<'_>, mut record: PaymentRecord) -> Result<Paid, PayError> {
        attempt.is_for_it(&record)?;
        if record.is_refunded() {
            return Err(PayError::Refunded);
        }
        let trust = attempt.trust(&record.payer);
        let driven = self.settle(&mut record.entry, attempt.terms, None, trust).await?;
        self.is_as_it_was(attempt, &record.header, &driven)?;
        if matches!(driven.status, TxStatus::Refused(_)) {
            attempt.may_have(&record.entry, &record.payer)?;
        }
        let settlement = answer(in_x402(driven.status), &record.entry.tx, &record.payer)?;
        let content = self.bought_or(driven.content, attempt.terms, &record.entry.tx).await?;
        // Last: a client that is told to come back must find the payment as it was.
        if !record.delivered && !(self.hung_up)() {
            self.database.run(payment::mark_delivered(&record.entry.tx, self.now)).await?;
        }
        Ok(Paid { content, settlement })
    }

    async fn verified(&self, attempt: &Attempt<'_>) -> Result<(DeliveryMode, Offered, VerifiedPayment), PayError> {
        let Attempt { terms, presented, .. } = attempt;
        let methods: Vec<_> = self.options.iter().map(|(_, method)| *method).collect();
        let payload = PaymentPayload::from_header(presented.text)?;
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
        verified.valid_until < now.saturating_add(LEAST_SLOTS)
    }

    /// What we know of a transaction that is public, where we handed it in ourselves: an equal request was quicker.
    async fn handed_in(&self, tx: &TxHash) -> Result<Option<PaymentRecord>, PayError> {
        let record: Option<PaymentRecord> = self.database.run(payment::record(tx)).await?.first_json()?;
        Ok(record.filter(|record| record.entry.state != EntryState::Refused))
    }

    async fn pay_anew(&self, attempt: &Attempt<'_>) -> Result<Paid, PayError> {
        let (mode, offered, verified) = self.verified(attempt).await?;
        if verified.public {
            if let Some(record) = self.handed_in(&verified.tx_id).await? {
                attempt.may_resume(&record, false)?;
                return self.resume(attempt, record).await;
            }
            if !attempt.is_payer(&verified.payer) {
                return Err(PayError::Public);
            }
        } else if self.expires_too_soon(&verified) {
            return Err(PayError::ExpiresTooSoon);
        }
        let (payer, terms) = (verified.payer, attempt.terms);
        let amount = Lovelace::new(verified.amount.get()).ok_or(Refusal::Requirements("the amount is out of range"))?;
        let mut new = NewPayment {
            tx: verified.tx_id,
            cbor: &verified.cbor,
            valid_until: verified.valid_until,
            provenance: attempt.provenance(&payer),
            listing_id: &terms.id,
            mode,
            payer,
            amount,
            creator: creator_part(mode, terms.price_lovelace),
            header: attempt.presented.header,
            terms_digest: offered.terms_digest().map(|digest| digest.0),
            identifier: attempt.presented.identifier.clone(),
            inputs: &verified.inputs,
            account: None,
            content: self.content_for_claim(terms).await?,
            checked: 0,
            excluded: 0,
        };
        for _ in 0..MAX_ROUNDS {
            match new.claim(self.database, self.now).await? {
                Claim::New(mut entry) => {
                    // A node refuses what it has: what its payer submitted before only waits for a block.
                    let first = (!verified.public).then_some(None);
                    return self.paid(attempt, &mut entry, &payer, first).await;
                }
                Claim::Known(record) => {
                    attempt.may_resume(&record, false)?;
                    return self.resume(attempt, *record).await;
                }
                Claim::Blocked(Blocked::Owned { purchase }) => {
                    if let Some(paid) = self.already_owned(attempt, &new, &purchase).await? {
                        return Ok(paid);
                    }
                }
                // The payer signed this transaction, which no one else has seen: the payment on its way is theirs.
                Claim::Blocked(Blocked::Paying { tx }) => {
                    if let Some(paid) = self.already_paying(attempt, &new, &tx).await? {
                        return Ok(paid);
                    }
                }
                Claim::Blocked(Blocked::Unresolved) => {
                    let failed = payment::unresolved(&terms.id, &[*payer.payment_key()], None, self.now);
                    match self.look_for_earlier(&self.database.run(failed).await?).await? {
                        EarlierPayments::NotFound(checked) => new.checked = checked,
                        EarlierPayments::Found => {}
                        EarlierPayments::Waiting(tx) => {
                            answer(Settlement::Pending(Some(SettlementEvidence::Mempool)), &tx, &payer)?;
                        }
                        EarlierPayments::TooMany(_) => return Err(PayError::TooManyUnresolved),
                    }
                }
                Claim::Blocked(Blocked::TermsTaken) => return Err(NotSettled::Duplicate.into()),
                Claim::Blocked(Blocked::IdentifierTaken) => return Err(PayError::IdentifierTaken),
                Claim::InputsTaken => return Err(PayError::InputsTaken),
                Claim::Blocked(
                    Blocked::ContentMissing
                    | Blocked::Superseded
                    | Blocked::Restoring
                    | Blocked::SignedOut
                    | Blocked::OverPerPayment { .. }
                    | Blocked::OverBudget { .. },
                ) => return Err(no_content(terms).into()),
            }
        }
        Err(NotSettled::Duplicate.into())
    }

    /// Settles a payment that was claimed just now, and delivers.
    async fn paid(
        &self,
        attempt: &Attempt<'_>,
        entry: &mut Entry,
        payer: &Address,
        first: Option<Option<&WalletSnapshot>>,
    ) -> Result<Paid, PayError> {
        let driven = self.settle(entry, attempt.terms, first, attempt.trust(payer)).await?;
        self.is_as_it_was(attempt, &attempt.presented.header, &driven)?;
        let settlement = answer(in_x402(driven.status), &entry.tx, payer)?;
        // An instant payment is marked with its inclusion; others last, as for a client that comes back.
        let is_marked = driven.record.as_ref().is_some_and(|record| record.delivered);
        let content = self.bought_or(driven.content, attempt.terms, &entry.tx).await?;
        if !is_marked && !(self.hung_up)() {
            self.database.run(payment::mark_delivered(&entry.tx, self.now)).await?;
        }
        Ok(Paid { content, settlement })
    }

    /// The content of a purchase that the payer owns; `None` where it was refunded meanwhile.
    async fn already_owned(
        &self,
        attempt: &Attempt<'_>,
        new: &NewPayment<'_>,
        purchase: &TxHash,
    ) -> Result<Option<Paid>, PayError> {
        self.must_be_unseen(attempt, &new.payer).await?;
        let reads = vec![purchase::owner(purchase), payment::record(purchase)];
        let [owned, record] = exactly(self.database.batch(reads).await?)?;
        let owned = owned.first_json::<Owned>()?.filter(|owned| owned.status != Status::Refunded);
        let Some(owned) = owned else { return Ok(None) };
        new.name(self.database, purchase, self.now).await?;
        let settlement = self.owned(&owned, &record, &new.payer).await?;
        Ok(Some(Paid { content: self.bought(attempt.terms, purchase).await?, settlement }))
    }

    /// The content of a payment of the payer's that is on its way; `None` where that failed meanwhile.
    async fn already_paying(
        &self,
        attempt: &Attempt<'_>,
        new: &NewPayment<'_>,
        other: &TxHash,
    ) -> Result<Option<Paid>, PayError> {
        self.must_be_unseen(attempt, &new.payer).await?;
        new.name(self.database, other, self.now).await?;
        let record = self.database.run(payment::record(other)).await?.first_json::<PaymentRecord>()?;
        let Some(record) = record else { return Ok(None) };
        match self.resume(attempt, record).await {
            Err(PayError::NotSettled(Refusal::Settlement(NotSettled::LedgerRefused(_) | NotSettled::Expired), _)) => {
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// That neither mempool nor block shows this transaction a moment later either. It is not submitted, so no node says that it
    /// had it before, and a provider's index may lag.
    async fn must_be_unseen(&self, attempt: &Attempt<'_>, payer: &Address) -> Result<(), PayError> {
        if attempt.is_payer(payer) {
            return Ok(());
        }
        self.sleep.sleep(UNSEEN_MS).await;
        let tx = attempt.presented.tx();
        let seen = async { Ok(self.chain.in_mempool(tx).await? || self.chain.inclusion_of(tx).await?.is_some()) };
        let seen: Result<bool, ChainError> = seen.await;
        if seen.map_err(Unavailable::from)? { Err(PayError::Public) } else { Ok(()) }
    }

    /// What is told where the payer owns the listing already: the original transaction, in its block.
    async fn owned(&self, owned: &Owned, record: &Rows, payer: &Address) -> Result<SettlementResponse, PayError> {
        ensure(&owned.id, release(&owned.facts, self.clock, &api_types::SLOTS))?;
        let (block, newer) = confirmations_of(record, self.chain, &owned.id, self.confirmations).await?;
        let evidence = SettlementEvidence::Block { inclusion: block, confirmations: newer };
        let enough = newer >= self.confirmations;
        let settlement = if enough { Settlement::Confirmed(evidence) } else { Settlement::Pending(Some(evidence)) };
        answer(settlement, &owned.id, payer)
    }
}

fn answer(settlement: Settlement, tx: &TxHash, payer: &Address) -> Result<SettlementResponse, PayError> {
    let response = settlement.response(tx, payer, api_types::NETWORK);
    match settlement.refusal() {
        None => Ok(response),
        Some(refusal) => Err(PayError::NotSettled(refusal, Box::new(response))),
    }
}
