//! Payments as clients present them, in a `PAYMENT-SIGNATURE` header or as the same JSON in a tool call.

use cardano::{ContentHash, TxHash};
use x402_cardano::{
    Refusal,
    exact::Payment,
    request_commitment::{Bound, RequestDigest, request_commitment},
    wire::{PaymentPayload, PaymentRequirements, payment_identifier::payload_digest},
};

use crate::claim::Identifier;

/// The payment and the proofs of a request, each as the text of its HTTP header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// x402's `PaymentPayload` (`PAYMENT-SIGNATURE`).
    pub payment: Option<String>,
    /// Recent signature over the listing by the buyer's wallet (`X-Service-Proof`).
    pub proof: Option<String>,
    /// Signed challenge of a 402 answer (`SIGN-IN-WITH-X`). Used in place of `proof`, and ignored if `proof` is
    /// present.
    pub sign_in: Option<String>,
}

/// An unparsed payment with its summary. A parsed payment can take eighty times the memory of its text, so only the
/// text is held while a request waits for a block. It is parsed again for verification.
#[derive(Clone, Debug)]
pub struct Presented<'a> {
    pub(super) text: &'a str,
    tx: TxHash,
    pub(super) header: ContentHash,
    /// Whether the payment contains a secret that only its sender and this service know.
    pub(super) is_secret: bool,
    /// Whether the transaction commits to this request with a salt. The salt is not on the chain, so only the payment's
    /// sender knows it.
    pub(super) is_committed: bool,
    pub(super) identifier: Option<Identifier>,
}

impl<'a> Presented<'a> {
    /// Parses the value of a `PAYMENT-SIGNATURE` header.
    ///
    /// A header without a secret (`request-binding`, `payment-identifier`) may be public, so a repeated header is only
    /// recognised if it comes from the same client network. A payment with a `cardano-request-commitment` is accepted
    /// for that request only.
    ///
    /// # Errors
    /// Returns an error if the header is malformed or commits to another request. Nothing is looked up in that case.
    pub fn read(header: &'a str, network: &str, request: Option<&RequestDigest>) -> Result<Self, Refusal> {
        let payload = PaymentPayload::from_header(header)?;
        let identifier = match payload.payment_id()? {
            Some(id) => Some(Identifier { id: id.to_string(), payload: payload_digest(header)? }),
            None => None,
        };
        let tx = Payment::read(&payload.payload)?.tx;
        let is_committed = request_commitment(&payload, &tx, request, false)? == Bound::ToThisRequest;
        let is_secret = payload.has_secret() || identifier.is_some() || is_committed;
        let known_as = if is_secret { ContentHash::of(header.as_bytes()) } else { of_network(header, network) };
        Ok(Self { text: header, tx: tx.id, header: known_as, is_secret, is_committed, identifier })
    }

    /// Returns the transaction's id.
    #[must_use]
    pub const fn tx(&self) -> &TxHash {
        &self.tx
    }

    /// Returns the payment requirements that the payment accepts.
    ///
    /// # Errors
    /// Returns an error if the requirements do not belong to this scheme.
    pub fn accepted(&self) -> Result<PaymentRequirements, Refusal> {
        let accepted = serde_json::to_value(PaymentPayload::from_header(self.text)?.accepted);
        let requirements = accepted.and_then(serde_json::from_value);
        requirements.map_err(|_| Refusal::Requirements("the accepted entry cannot be shown"))
    }
}

fn of_network(header: &str, network: &str) -> ContentHash {
    // Headers contain no line breaks, so different pairs cannot have the same text.
    ContentHash::of(format!("{header}\n{network}").as_bytes())
}
