//! What an outside payer shows: the value of a `PAYMENT-SIGNATURE` header, or the same object by another way.

use cardano::{ContentHash, TxHash};
use x402_cardano::{
    Refusal,
    exact::Payment,
    request_commitment::{Bound, RequestDigest, request_commitment},
    wire::{PaymentPayload, PaymentRequirements, payment_identifier::payload_digest},
};

use crate::claim::Identifier;

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
    pub(super) text: &'a str,
    tx: TxHash,
    pub(super) header: ContentHash,
    /// Whether something in it is known to its maker and this service alone.
    pub(super) is_secret: bool,
    /// Whether its transaction commits to the request that brings it, with a salt that the chain does not show. Then
    /// its sender made it, even if it is public.
    pub(super) is_committed: bool,
    pub(super) identifier: Option<Identifier>,
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
