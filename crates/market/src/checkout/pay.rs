//! A payment that somebody hands over: the value of a `PAYMENT-SIGNATURE` header, or the same object by another way.

use cardano::{
    Address, ContentHash, Lovelace, TxHash,
    chain::{Chain, ChainError},
    keys::VerifyEd25519,
    slots::{Millis, SlotConfig},
};
use outbox::{Entry, EntryState, Outbox, Settled, Sleep, Standing};
use sql::{Database, DatabaseError, Rows, exactly};
use x402_cardano::{
    Refusal,
    exact::{Payment, VerifiedPayment, VerifyError, verify},
    method::{Offered, recognise},
    request_commitment::{Bound, RequestDigest, request_commitment},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{
        HeaderError, InvalidAccepted, Network, PaymentPayload, PaymentRequirements, SettlementResponse,
        payment_identifier::{InvalidPaymentId, payload_digest},
    },
};

use super::{
    Checkout, Unavailable, creator_part,
    given::{confirmations_of, must_have_result},
    in_x402, is_refunded, no_content,
};
use crate::{
    catalogue::ListingTerms,
    contents::Contents,
    listing::DeliveryMode,
    payment::{self, Claim, Identified, Identifier, LOOKED_FOR, MAX_REFUSED, NewPayment, PaymentRecord},
    purchase::{self, Owned},
    transitions::Transitions,
};

/// How often a claim is tried again because the payment that stood in its way ended without effect.
const MAX_ROUNDS: u32 = 3;

/// How much longer a new payment must be valid, in slots: three blocks in four come within as many.
const LEAST_SLOTS: u64 = 30;

/// How long a transaction that is not handed in, for its payer owns what it is for, must stay unseen.
const UNSEEN_MS: Millis = 5_000;

/// How long after its block a header without a secret is taken for its payer's, from their network: anybody there can make
/// it again from what the chain shows. Later the payer signs. Longer than whoever is told to come back has to wait: for the
/// blocks asked for on top, for a lock's result, for a provider that is away.
const MADE_AGAIN_MS: Millis = 60 * 60_000;

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
    network: String,
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
        let network = network.to_owned();
        Ok(Self { text: header, tx: tx.id, header: known_as, is_secret, is_committed, identifier, network })
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
    /// Many payments of this payer took no effect lately.
    #[error(
        "{MAX_REFUSED} payments of this payer, or more than {LOOKED_FOR} for this listing, took no effect lately: no other is \
         taken until their time has been over for an hour"
    )]
    TooManyRefused,
    /// One that would hardly be in a block in time: whoever hands in many of them pays nothing, and keeps others out.
    #[error(
        "the payment can be in a block for less than {LEAST_SLOTS} seconds more: nothing was paid; build a new one, under new \
         terms where those are over soon"
    )]
    EndsAtOnce,
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
    /// Whether this payer brings the payment: who knows the commitment's salt made it, and so did who signs the request.
    fn is_payers(&self, payer: &Address) -> bool {
        self.presented.is_committed || self.proven == Some(*payer)
    }

    /// Whether a payment that was claimed before may be taken up: for the same listing, with the same header before the
    /// content was handed out. The header is what only the payer and we know, until the transaction is public. An
    /// identifier is never public, whether it was looked for or stands in the same header; and the payer may sign.
    fn may_resume(&self, record: &PaymentRecord, identified: bool) -> Result<(), PayError> {
        let same = record.header == self.presented.header || self.presented.is_committed;
        let same = same && (!record.delivered || self.presented.identifier.is_some());
        let since = record.entry.block.map(|block| block.time_ms.saturating_add(MADE_AGAIN_MS));
        let same = same && (self.presented.is_secret || since.is_none_or(|end| self.now < end));
        if !(same || identified || self.proven == Some(record.payer)) {
            return Err(NotSettled::Duplicate.into());
        }
        self.may_have(&record.entry, &record.payer)
    }

    fn is_for_it(&self, record: &PaymentRecord) -> Result<(), PayError> {
        if record.listing_id == self.terms.id {
            return Ok(());
        }
        // What becomes of a claim that binds nobody is not known yet: whose money it moves must not pay anew meanwhile.
        if record.entry.state == EntryState::Claimed && record.entry.unanswered {
            answer(Settlement::Pending(None), &record.entry.tx, &record.payer)?;
        }
        Err(NotSettled::OtherResource.into())
    }

    /// Whether what this payment bought is for who brought it: where a node had it before we handed it over, only the
    /// payer's signature tells them from whoever copied it.
    fn may_have(&self, entry: &Entry, payer: &Address) -> Result<(), PayError> {
        if entry.was_public && !self.is_payers(payer) { Err(PayError::Public) } else { Ok(()) }
    }
}

impl<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
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

    /// Whether a payment that was claimed before is to be taken up where it is. One that the ledger refused is verified
    /// anew, unless it did get into a block after all, and nobody else handed it in first or its payer signs.
    async fn still_stands(&self, attempt: &Attempt<'_>, record: &mut PaymentRecord) -> Result<bool, PayError> {
        let payers = !record.entry.was_public || attempt.is_payers(&record.payer);
        let for_it = attempt.is_for_it(record).is_ok();
        let entry = &mut record.entry;
        // One that was presented for another listing, and is not known to have been handed in from here, binds nobody.
        let unbound = entry.state == EntryState::Claimed && entry.unanswered && !for_it;
        if unbound || entry.state == EntryState::Refused && payers && for_it {
            let outbox = Outbox { database: self.database, chain: self.chain, follow: &Transitions };
            outbox.look(entry, None, self.now).await.map_err(Unavailable::from)?;
        }
        Ok(entry.state != EntryState::Refused)
    }

    /// That a payment which is in a block is whose and what for it was when it was taken up: what the ledger refused meanwhile
    /// may have been brought anew.
    async fn is_as_it_was(
        &self,
        attempt: &Attempt<'_>,
        (tx, header): (&TxHash, &ContentHash),
        settled: &Settled,
    ) -> Result<(), PayError> {
        let now: Option<PaymentRecord> = match settled.followed.as_slice() {
            [.., record, _] => record.first_json()?,
            // Another request recorded it.
            _ => self.database.run(payment::record(tx)).await?.first_json()?,
        };
        let now = now.ok_or_else(|| DatabaseError(format!("{tx} is gone")))?;
        attempt.is_for_it(&now)?;
        if is_refunded(now.status) {
            return Err(PayError::Refunded);
        }
        let same = now.header == *header || attempt.is_payers(&now.payer);
        if same { attempt.may_have(&now.entry, &now.payer) } else { Err(NotSettled::Duplicate.into()) }
    }

    async fn resume(&self, attempt: &Attempt<'_>, mut record: PaymentRecord) -> Result<Paid, PayError> {
        attempt.is_for_it(&record)?;
        if is_refunded(record.status) {
            return Err(PayError::Refunded);
        }
        // What its payer brings is theirs, whoever handed it in first.
        record.entry.unanswered &= !attempt.is_payers(&record.payer);
        let settled = self.settle(&mut record.entry, record.mode, None, false).await?;
        if let Standing::Confirmed { .. } = &settled.standing {
            self.is_as_it_was(attempt, (&record.entry.tx, &record.header), &settled).await?;
            if record.mode == DeliveryMode::Protected {
                self.must_have_its_result(&record.entry.tx, true).await?;
            }
        }
        if matches!(settled.standing, Standing::Confirmed { .. } | Standing::Refused(_)) {
            attempt.may_have(&record.entry, &record.payer)?;
        }
        let settlement = answer(in_x402(settled.standing), &record.entry.tx, &record.payer)?;
        let content = self.bought(attempt.terms, &record.entry.tx).await?;
        // Last: whoever is told to come back must find it as it was.
        if !record.delivered && !(self.hung_up)() {
            self.database.run(payment::mark_delivered(&record.entry.tx, self.now)).await?;
        }
        Ok(Paid { content, settlement })
    }

    async fn verified(&self, attempt: &Attempt<'_>) -> Result<(DeliveryMode, Offered, VerifiedPayment), PayError> {
        let Attempt { terms, presented, .. } = attempt;
        let methods: Vec<_> = self.ways.iter().map(|(_, method)| *method).collect();
        let payload = PaymentPayload::from_header(presented.text)?;
        let (method, offered) = recognise(&methods, &terms.sale(), &payload.accepted)?;
        let payment = Payment::read(&payload.payload).map_err(Refusal::from)?;
        drop(payload);
        let mode = self.ways.iter().find(|(_, known)| known.name() == method.name()).map(|(mode, _)| *mode);
        let mode = mode.ok_or(Refusal::Requirements("no way to pay has this method"))?;
        if !terms.modes.contains(&mode) {
            return Err(PayError::Refused(InvalidAccepted::Differs("extra").into()));
        }
        let verified = verify(method, &offered, &payment, self.chain, self.signatures, self.moment()).await?;
        Ok((mode, offered, verified))
    }

    fn ends_at_once(&self, verified: &VerifiedPayment) -> bool {
        let now = SlotConfig::PREPROD.slot_at(self.clock).unwrap_or(u64::MAX);
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
            if !attempt.is_payers(&verified.payer) {
                return Err(PayError::Public);
            }
        } else if self.ends_at_once(&verified) {
            return Err(PayError::EndsAtOnce);
        }
        let (payer, terms) = (verified.payer, attempt.terms);
        let amount = Lovelace::new(verified.amount.get()).ok_or(Refusal::Requirements("the amount is out of range"))?;
        let (reading, mut content) = self.content_before_claim(terms).await?;
        let mut new = NewPayment {
            tx: verified.tx_id,
            cbor: &verified.cbor,
            valid_until: verified.valid_until,
            newest_height: Some(verified.newest_height).filter(|_| !attempt.is_payers(&payer)),
            listing_id: &terms.id,
            mode,
            payer,
            amount,
            creator: creator_part(mode, terms.price_lovelace),
            header: attempt.presented.header,
            terms_digest: offered.terms_digest().map(|digest| digest.0),
            identifier: attempt.presented.identifier.clone(),
            inputs: &verified.inputs,
            network: Some(&attempt.presented.network),
            account: None,
            content: reading.is_some().then_some(terms.content_hash),
            looked: 0,
            ended: None,
        };
        let mut too_many = false;
        for _ in 0..MAX_ROUNDS {
            let (claim, beside) = new.claim(self.database, reading.clone(), self.now).await?;
            content = content.or_else(|| beside.and_then(|rows| rows.rows.into_iter().next()));
            match claim {
                Claim::New(mut entry) => {
                    // A node takes nothing twice: what its payer handed in before only waits for a block.
                    let first = (!verified.public || !attempt.presented.is_committed).then_some(None);
                    let settled = self.settle(&mut entry, mode, first, content.is_some()).await?;
                    if let Standing::Confirmed { .. } = &settled.standing {
                        let claimed = (&entry.tx, &attempt.presented.header);
                        self.is_as_it_was(attempt, claimed, &settled).await?;
                    }
                    let settlement = answer(in_x402(settled.standing), &entry.tx, &payer)?;
                    attempt.may_have(&entry, &payer)?;
                    if mode == DeliveryMode::Protected {
                        self.must_have_its_result(&entry.tx, false).await?;
                    }
                    // With its block, where nothing else was waited for; otherwise last, as for who comes back.
                    let is_marked = first.is_some() && mode == DeliveryMode::Instant && content.is_some();
                    let content = self.bought_or(content, terms, &entry.tx).await?;
                    if !is_marked && !(self.hung_up)() {
                        self.database.run(payment::mark_delivered(&entry.tx, self.now)).await?;
                    }
                    return Ok(Paid { content, settlement });
                }
                Claim::Known(record) => {
                    // Whoever waits beside another holds no content meanwhile.
                    drop(content);
                    attempt.may_resume(&record, false)?;
                    return self.resume(attempt, *record).await;
                }
                Claim::Owned(purchase) => {
                    content = None;
                    self.must_be_unseen(attempt, &payer).await?;
                    let reads = vec![purchase::owner(&purchase), payment::record(&purchase)];
                    let [owned, record] = exactly(self.database.batch(reads).await?)?;
                    // It may have been refunded meanwhile.
                    let owned = owned.first_json::<Owned>()?.filter(|owned| !is_refunded(Some(owned.status)));
                    let Some(owned) = owned else { continue };
                    new.name(self.database, &purchase, self.now).await?;
                    let settlement = self.owned(&owned, &record, &payer).await?;
                    return Ok(Paid { content: self.bought_or(content, terms, &purchase).await?, settlement });
                }
                Claim::MaybePaid => {
                    let payer_text = payer.to_string();
                    let reads = vec![
                        payment::lost_of_buyer(&terms.id, &payer_text),
                        payment::count_lost(&terms.id, std::slice::from_ref(&payer_text)),
                        payment::count_lost_lately(&terms.id, &payer_text, self.now),
                    ];
                    let [lost, count, lately] = exactly(self.database.batch(reads).await?)?;
                    if self.find_included(&lost).await?.is_some() {
                        continue;
                    }
                    self.must_not_wait(&lost, &payer).await?;
                    let count = count.first_json()?.unwrap_or(0);
                    if lately.first_json::<u32>()?.unwrap_or(0) > LOOKED_FOR {
                        return Err(PayError::TooManyRefused);
                    }
                    // Those that were over long ago are looked for once: of more, the rest in the next round.
                    too_many = count > LOOKED_FOR;
                    if !too_many {
                        new.looked = count;
                    }
                }
                // The payer signed this transaction, which nobody else has seen: whose payment is on its way is the same.
                Claim::Paying(other) => {
                    content = None;
                    self.must_be_unseen(attempt, &payer).await?;
                    new.name(self.database, &other, self.now).await?;
                    let record = self.database.run(payment::record(&other)).await?.first_json::<PaymentRecord>()?;
                    let Some(record) = record else { continue };
                    match self.resume(attempt, record).await {
                        Err(PayError::NotSettled(
                            Refusal::Settlement(NotSettled::LedgerRefused(_) | NotSettled::Expired),
                            _,
                        )) => {}
                        done => return done,
                    }
                }
                Claim::TermsTaken => return Err(NotSettled::Duplicate.into()),
                Claim::IdentifierTaken => return Err(PayError::IdentifierTaken),
                Claim::Crowded => return Err(Unavailable::Crowded.into()),
                Claim::TooManyRefused => return Err(PayError::TooManyRefused),
                Claim::InputsTaken => return Err(PayError::InputsTaken),
                Claim::NotGranted(_) | Claim::Ended => return Err(no_content(terms).into()),
            }
        }
        if too_many { Err(PayError::TooManyRefused) } else { Err(NotSettled::Duplicate.into()) }
    }

    /// That nobody has this transaction, which is not handed in, a moment later either: what a provider's index did not show
    /// yet is no secret of its payer's. No node is asked for it, so none says that it had it before.
    async fn must_be_unseen(&self, attempt: &Attempt<'_>, payer: &Address) -> Result<(), PayError> {
        if attempt.is_payers(payer) {
            return Ok(());
        }
        self.sleep.sleep(UNSEEN_MS).await;
        let tx = attempt.presented.tx();
        let seen = async { Ok(self.chain.in_mempool(tx).await? || self.chain.inclusion_of(tx).await?.is_some()) };
        let seen: Result<bool, ChainError> = seen.await;
        if seen.map_err(Unavailable::from)? { Err(PayError::Public) } else { Ok(()) }
    }

    /// That none of these payments waits for a block.
    async fn must_not_wait(&self, lost: &Rows, payer: &Address) -> Result<(), PayError> {
        if let Some(tx) = self.find_waiting(lost).await? {
            answer(Settlement::Pending(Some(SettlementEvidence::Mempool)), &tx, payer)?;
        }
        Ok(())
    }

    /// What is told where the payer owns the listing already: the original transaction, in its block.
    async fn owned(&self, owned: &Owned, record: &Rows, payer: &Address) -> Result<SettlementResponse, PayError> {
        must_have_result(owned, self.clock)?;
        let (block, newer) = confirmations_of(record, self.chain, &owned.id, self.confirmations).await?;
        let evidence = SettlementEvidence::Block { inclusion: block, confirmations: newer };
        let enough = newer >= self.confirmations;
        let settlement = if enough { Settlement::Confirmed(evidence) } else { Settlement::Pending(Some(evidence)) };
        answer(settlement, &owned.id, payer)
    }
}

fn answer(settlement: Settlement, tx: &TxHash, payer: &Address) -> Result<SettlementResponse, PayError> {
    let response = settlement.response(tx, payer, Network::Preprod);
    match settlement.refusal() {
        None => Ok(response),
        Some(refusal) => Err(PayError::NotSettled(refusal, Box::new(response))),
    }
}
