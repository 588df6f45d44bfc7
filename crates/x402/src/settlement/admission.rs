//! Which payments go on to settlement: a new one that verifies, or a known one that comes back the same way.

use cardano::{ContentHash, chain::Chain};

use super::{
    record::{Claim, Record, SettlementStore, State},
    settle::SettleError,
};
use crate::{
    Refusal,
    exact::{Offer, VerifiedPayment, VerifyError},
};

/// A payment that may be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Verified now: to be claimed and submitted.
    New(Box<Claim>),
    /// Claimed before: to be watched.
    Known(Box<Record>),
}

impl Admission {
    /// The transaction.
    #[must_use]
    pub const fn tx(&self) -> &cardano::TxHash {
        match self {
            Self::New(claim) => &claim.payment.tx_id,
            Self::Known(record) => &record.tx,
        }
    }

    /// Who pays.
    #[must_use]
    pub const fn payer(&self) -> &cardano::Address {
        match self {
            Self::New(claim) => &claim.payment.payer,
            Self::Known(record) => &record.payer,
        }
    }
}

/// Why a payment was not admitted.
pub type AdmitError<E> = SettleError<E>;

/// Reads a payment's header, looks it up, and verifies it with `verify` if it is new. `resource` is what the request
/// is for.
///
/// # Errors
/// A refusal, or a chain or store that cannot be asked.
pub async fn admit<S: SettlementStore>(
    header: &str,
    resource: &str,
    terms_digest: Option<ContentHash>,
    store: &S,
    chain: &impl Chain,
    verify: impl AsyncFnOnce(&Offer) -> Result<VerifiedPayment, VerifyError>,
) -> Result<Admission, AdmitError<S::Error>> {
    let request = Request { header, resource, terms_digest };
    admit_offer(&Offer::from_header(header)?, &request, store, chain, verify).await
}

/// Where a payment comes from and what it is for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The value of `PAYMENT-SIGNATURE`.
    pub header: &'a str,
    /// What is asked for.
    pub resource: &'a str,
    /// The digest of the signed terms that are paid under, where there are any: it stays with the first transaction.
    pub terms_digest: Option<ContentHash>,
}

/// As [`admit`], with an offer that was read from the header already: to choose the transfer method by it.
///
/// # Errors
/// As [`admit`].
pub async fn admit_offer<S: SettlementStore>(
    offer: &Offer,
    request: &Request<'_>,
    store: &S,
    chain: &impl Chain,
    verify: impl AsyncFnOnce(&Offer) -> Result<VerifiedPayment, VerifyError>,
) -> Result<Admission, AdmitError<S::Error>> {
    let Request { header, resource, terms_digest } = *request;
    let digest = ContentHash::of(header.as_bytes());
    if let Some(record) = store.find(&offer.tx.id).await.map_err(SettleError::Store)?
        && resumes(&record, resource, &digest, chain).await?
    {
        return Ok(Admission::Known(Box::new(record)));
    }
    let payment = verify(offer).await?;
    Ok(Admission::New(Box::new(Claim { resource: resource.to_owned(), header: digest, terms_digest, payment })))
}

/// Whether a known payment is taken up where it is. One that the ledger refused is verified anew, unless it did get
/// into a block after all: a node also refuses what somebody else handed in first. Even then it belongs to the header
/// that brought it first, because by then the transaction may be public.
async fn resumes<E>(
    record: &Record,
    resource: &str,
    header: &ContentHash,
    chain: &impl Chain,
) -> Result<bool, SettleError<E>> {
    replay(record, resource, header)?;
    Ok(record.state != State::Refused || chain.inclusion_of(&record.tx).await?.is_some())
}

/// Whether a transaction that was claimed before may be presented again: for the same resource, with the same header,
/// before the content was delivered. The header is what only the payer and we know, until the transaction is public;
/// afterwards the payer proves ownership by a signature instead.
///
/// # Errors
/// It may not.
pub fn replay(record: &Record, resource: &str, header: &ContentHash) -> Result<(), Refusal> {
    if record.resource != resource {
        Err(Refusal::OtherResource)
    } else if record.header != *header || record.delivered {
        Err(Refusal::DuplicateSettlement)
    } else {
        Ok(())
    }
}
