//! `/verify` and `/settle`.

use cardano::{Address, TxHash, chain::Chain, keys::VerifyEd25519, slots::Millis};
use outbox::{Entry, EntryState, Outbox, OutboxError, PollPolicy, Sleep, Trust, TxStatus, WaitOutcome};
use sql::{Database, Write};
use x402_cardano::{
    exact::{self, Moment, Payment, VerifiedPayment},
    facilitator::{FacilitatorRequest, InvalidRequirements, VerifyResponse},
    method::Offered,
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{ConfirmationPolicy, SettlementResponse},
};

use crate::{Facilitator, Failed, store};

/// A request whose offer and payment were parsed, but not verified against the chain.
struct Parsed {
    offered: Offered,
    payment: Payment,
    /// SHA-256 of the requirements, in hex.
    requirements: String,
    tx: TxHash,
}

impl<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep> Facilitator<'_, D, C, V, Z> {
    /// Answers `POST /verify`. Stores nothing.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn verify(&self, request: &FacilitatorRequest) -> Result<VerifyResponse, OutboxError> {
        match self.payer_of(request).await {
            Ok(payer) => Ok(VerifyResponse::valid(payer.to_string())),
            Err(Failed::Refused(refusal)) => Ok(VerifyResponse::invalid(&refusal)),
            Err(Failed::Unavailable(error)) => Err(error),
        }
    }

    /// Answers `POST /settle`: submits the transaction unless an earlier request has, and waits for its block.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed. A payment that was recorded is continued by the next
    /// request.
    pub async fn settle(&self, request: &FacilitatorRequest) -> Result<SettlementResponse, OutboxError> {
        match self.settled(request).await {
            Ok(response) => Ok(response),
            Err(Failed::Refused(refusal)) => Ok(SettlementResponse {
                success: false,
                transaction: String::new(),
                network: self.network,
                payer: None,
                error_reason: Some(refusal.code().to_owned()),
                extra: None,
                extensions: None,
            }),
            Err(Failed::Unavailable(error)) => Err(error),
        }
    }

    async fn payer_of(&self, request: &FacilitatorRequest) -> Result<Address, Failed> {
        let parsed = self.parse(request).await?;
        if let Some((_, payer)) = self.recorded(&parsed).await? {
            return Ok(payer);
        }
        Ok(self.verified(&parsed).await?.payer)
    }

    async fn settled(&self, request: &FacilitatorRequest) -> Result<SettlementResponse, Failed> {
        let parsed = self.parse(request).await?;
        let (mut entry, payer, is_new) = match self.recorded(&parsed).await? {
            Some((entry, payer)) => (entry, payer, false),
            None => self.record(&parsed).await?,
        };
        let policy = parsed.offered.confirmation_policy();
        let settlement = self.wait(&mut entry, is_new, policy).await?;
        let is_settled = matches!(settlement, Settlement::Confirmed(_));
        if is_settled && self.database.execute(store::report(&parsed.tx, self.now)).await?.is_none() {
            return Err(NotSettled::Duplicate.into());
        }
        Ok(settlement.response(&parsed.tx, &payer, self.network))
    }

    async fn parse(&self, request: &FacilitatorRequest) -> Result<Parsed, Failed> {
        let escrow = self.escrow.map(|escrow| (escrow.deployment, escrow.name));
        let offered = request.offered(self.network, escrow, self.signatures).await?;
        let own = self.escrow.is_some_and(|escrow| offered.seller() == Some(&escrow.own_seller));
        let requirements = request.requirements_digest().filter(|_| !own).ok_or(InvalidRequirements::Method)?;
        let payment = Payment::read(&request.payment_payload.payload)?;
        let tx = payment.tx.id;
        Ok(Parsed { offered, payment, requirements: requirements.to_string(), tx })
    }

    /// Returns the recorded settlement of this payment with its payer, or `None` if there is no record.
    async fn recorded(&self, parsed: &Parsed) -> Result<Option<(Entry, Address)>, Failed> {
        let (entry, settlement) = self.database.batch((outbox::by_id(&parsed.tx), store::by_tx(&parsed.tx))).await?;
        match (entry, settlement) {
            (None, _) => Ok(None),
            (Some(entry), Some(settlement)) if store::continues(&entry) => {
                if settlement.requirements != parsed.requirements {
                    Err(NotSettled::OtherResource.into())
                } else if settlement.reported_at_ms.is_some() {
                    Err(NotSettled::Duplicate.into())
                } else {
                    Ok(Some((entry, settlement.payer)))
                }
            }
            (Some(entry), Some(_)) if entry.state == EntryState::Refused => Ok(None),
            // The transaction pays in this service's own shop.
            (Some(_), _) => Err(NotSettled::Duplicate.into()),
        }
    }

    async fn verified(&self, parsed: &Parsed) -> Result<VerifiedPayment, Failed> {
        let method = match (&parsed.offered.terms, self.escrow) {
            (None, _) => self.default,
            (Some(_), Some(escrow)) => escrow.method,
            (Some(_), None) => return Err(InvalidRequirements::Method.into()),
        };
        let moment = Moment { now_ms: self.now, slots: self.network.slots() };
        let Parsed { offered, payment, .. } = parsed;
        let verified = exact::verify(method, offered, payment, self.chain, self.signatures, moment).await?;
        // Anyone could have copied a transaction that is public before it came here.
        if verified.public { Err(NotSettled::Duplicate.into()) } else { Ok(verified) }
    }

    /// Verifies and records a payment. Returns its entry, its payer, and whether this request recorded it.
    async fn record(&self, parsed: &Parsed) -> Result<(Entry, Address, bool), Failed> {
        let verified = self.verified(parsed).await?;
        let new = store::entry(&verified, &parsed.offered);
        let insert = store::insert(&verified, &parsed.offered, &parsed.requirements, self.now);
        let (entry, ()) = self.database.batch((outbox::write_down(&new, self.now), insert)).await?;
        if let Some(entry) = entry {
            return Ok((entry, verified.payer, true));
        }
        // Another request was faster, or the inputs or the terms are in use.
        let recorded = self.recorded(parsed).await?.ok_or(NotSettled::Duplicate)?;
        Ok((recorded.0, recorded.1, false))
    }

    async fn wait(&self, entry: &mut Entry, is_new: bool, policy: ConfirmationPolicy) -> Result<Settlement, Failed> {
        let outbox = Outbox { database: self.database, chain: self.chain, hook: &|_, _| Ok(vec![]) };
        if is_new
            && let Some(reason) = outbox.submit_first(entry, None, self.now).await?
            && entry.state == EntryState::Refused
        {
            return Ok(Settlement::Refused(reason));
        }
        let trust = if is_new { Trust::Submitter } else { Trust::Unproven };
        let polls = PollPolicy { sleep: self.sleep, schedule: self.schedule, at_once: !is_new };
        let WaitOutcome { status, rest, .. } =
            outbox.wait_for_block(entry, &polls, trust, self.now, |_| None::<Write>).await?;
        Ok(match status {
            TxStatus::Included(_) => self.wait_for_depth(entry, policy, rest).await,
            TxStatus::Pending { submitted } => Settlement::Pending(submitted.then_some(SettlementEvidence::Mempool)),
            TxStatus::Refused(reason) => Settlement::Refused(reason),
            TxStatus::Expired => Settlement::Expired,
        })
    }

    /// Polls until the transaction has enough confirmations, or until these waits (ms) have passed.
    async fn wait_for_depth(&self, entry: &Entry, policy: ConfirmationPolicy, waits: &[Millis]) -> Settlement {
        let (mut waits, mut evidence) = (waits.iter(), None);
        loop {
            // A provider that does not answer shows nothing new.
            if let Ok(Some((inclusion, confirmations))) = self.chain.depth_of(&entry.tx).await {
                let seen = SettlementEvidence::Block { inclusion, confirmations };
                if seen.meets(policy) {
                    return Settlement::Confirmed(seen);
                }
                evidence = Some(seen);
            }
            let Some(wait) = waits.next() else { return Settlement::Pending(evidence) };
            self.sleep.sleep(*wait).await;
        }
    }
}
