//! Quotes: the escrow's entry of a 402, signed by the seller, and recognised on the retry without having been stored.
//!
//! Everything in a quote follows from the sale, the configuration, the time of issue and a random nonce. Signing is
//! deterministic (RFC 8032), so the quote that an entry claims to be can be made again from the entry's own nonce and
//! deadlines: if both are equal in every field, it is ours, for nobody else can make the signature in it.

use cardano::{
    Address, ContentHash, Lovelace,
    cip8::{self, Cip8Error},
    keys::SigningKey,
    slots::Millis,
};
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::{
    authorization::AuthorizedTerms,
    commitment::InputCommitment,
    jcs,
    method::TransferMethod,
    terms::{AgentIdentifier, Terms, TermsDigest},
    wire::{ASSET, ConfirmationPolicy, DeploymentWire, EscrowExtra, EscrowRequirements, SCHEME, SchemaError},
};
use ::escrow::{Deadlines, Deployment};

/// The network of this service.
const NETWORK: &str = "cardano:preprod";
/// The same network in the words of CIP-34: accepted from clients, never offered.
const NETWORK_ALIAS: &str = "cip34:0-1";
/// How long a 402 holds, seconds; a lock must be in a block by then.
const MAX_TIMEOUT_SECONDS: u64 = 300;
/// A payment counts once it is in a block.
const L1_CONFIRMATIONS: i8 = 0;

/// The least price that can be protected (service API, "Limits"): under it the fees and the least output eat the sale.
pub const MIN_PROTECTED_PRICE: Lovelace = Lovelace::from_ada(5);

/// What is sold.
#[derive(Clone, Copy, Debug)]
pub struct Sale<'a> {
    /// The listing's id.
    pub listing_id: &'a str,
    /// SHA-256 of what will be delivered.
    pub content_hash: ContentHash,
    /// The price.
    pub price: Lovelace,
}

/// Who sells, and where the money is locked.
#[derive(Clone, Copy, Debug)]
pub struct Issuer<'a> {
    /// The seller's key.
    pub seller: &'a SigningKey,
    /// An address of that key.
    pub seller_address: Address,
    /// The escrow.
    pub deployment: &'a Deployment,
    /// Under which name.
    pub method: TransferMethod,
}

/// A quote of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// The entry of `accepts`.
    pub requirements: EscrowRequirements,
    /// The logical replay key: the first transaction that claims it keeps it.
    pub terms_digest: TermsDigest,
}

/// Why a quote cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueError {
    /// Less than 5 tADA.
    #[error("the price is too low to be protected")]
    PriceTooLow,
    /// The seller's address is not of the seller's key.
    #[error("the seller's key: {0}")]
    Key(#[from] Cip8Error),
    /// The time of issue is at the end of time.
    #[error("the time of issue is out of range")]
    Time,
}

/// Why an entry is not a quote of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOurQuote {
    /// Not of the scheme's shape.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// We never signed this: another listing, price, seller, escrow, deadline, or a changed field.
    #[error("the accepted requirements are not a quote of this service for this listing")]
    NeverIssued,
}

impl NotOurQuote {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Schema(_) => "invalid_exact_cardano_requirements_masumi_schema",
            Self::NeverIssued => "masumi_terms_unknown",
        }
    }
}

impl Issuer<'_> {
    /// The quote for this sale, issued at this time on the escrow's clock, under this random nonce. One signature.
    ///
    /// # Errors
    /// See [`IssueError`].
    pub fn issue(&self, sale: &Sale<'_>, now: Millis, seller_nonce: [u8; 32]) -> Result<Quote, IssueError> {
        if sale.price < MIN_PROTECTED_PRICE {
            return Err(IssueError::PriceTooLow);
        }
        let input_commitment = InputCommitment::of_listing(sale.listing_id, &sale.content_hash);
        let terms = Terms {
            seller: self.seller_address,
            seller_return: None,
            seller_nonce,
            buyer_nonce: vec![],
            agent_identifier: AgentIdentifier::Omitted,
            input_hash: input_commitment.digest,
            deadlines: Deadlines::issue(now).ok_or(IssueError::Time)?,
        };
        let mut requirements = EscrowRequirements {
            scheme: SCHEME.to_owned(),
            network: NETWORK.to_owned(),
            amount: sale.price,
            asset: ASSET.to_owned(),
            pay_to: self.deployment.address().to_string(),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            extra: EscrowExtra {
                asset_transfer_method: self.method,
                confirmation_policy: Some(ConfirmationPolicy { l1_confirmations: L1_CONFIRMATIONS }),
                are_fees_sponsored: Some(false),
                input_commitment,
                terms,
                reference_key: vec![],
                reference_signature: vec![],
                blockchain_identifier: String::new(),
                deployment: Some(DeploymentWire::new(&self.deployment.parameters)),
            },
        };
        let terms_digest = requirements.terms_digest().ok_or(IssueError::Time)?;
        let signed = cip8::sign(self.seller, &self.seller_address, terms_digest.0.as_bytes())?;
        let bytes = |hex: &str, part| hex::decode(hex).map_err(|_| Cip8Error::NotHex(part));
        requirements.extra.reference_key = bytes(&signed.key, cip8::Part::Key)?;
        requirements.extra.reference_signature = bytes(&signed.signature, cip8::Part::Signature)?;
        requirements.extra.blockchain_identifier = requirements.identifier().encode();
        Ok(Quote { requirements, terms_digest })
    }

    /// The quote of ours that this accepted entry is, for this sale.
    ///
    /// # Errors
    /// See [`NotOurQuote`].
    pub fn recognise(&self, sale: &Sale<'_>, accepted: &Value) -> Result<Quote, NotOurQuote> {
        let claimed = EscrowRequirements::parse(accepted)?;
        let terms = &claimed.extra.terms;
        let issued = terms.deadlines.issued_at().ok_or(NotOurQuote::NeverIssued)?;
        let quote = self.issue(sale, issued, terms.seller_nonce).map_err(|_| NotOurQuote::NeverIssued)?;
        if same_entry(accepted, &quote) { Ok(quote) } else { Err(NotOurQuote::NeverIssued) }
    }
}

/// Whether an entry is this quote in every field. The network may be spelled in its other form.
///
/// The signature in our quote is not known to whoever sent the entry, so the comparison must not tell by its duration
/// how much of it was guessed.
fn same_entry(accepted: &Value, quote: &Quote) -> bool {
    let Ok(mut ours) = quote.to_json() else { return false };
    if accepted.get("network").and_then(Value::as_str) == Some(NETWORK_ALIAS)
        && let Some(network) = ours.get_mut("network")
    {
        *network = NETWORK_ALIAS.into();
    }
    match (jcs::canonical(accepted), jcs::canonical(&ours)) {
        (Some(accepted), Some(ours)) => accepted.ct_eq(&ours).into(),
        _ => false,
    }
}

impl Quote {
    /// The entry of `accepts`.
    ///
    /// # Errors
    /// Never in practice: the requirements are texts and one small number.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(&self.requirements)
    }

    /// When what may happen to an escrow under this quote.
    #[must_use]
    pub const fn deadlines(&self) -> &Deadlines {
        &self.requirements.extra.terms.deadlines
    }

    /// Whether a lock under this quote may still be new at this time on the escrow's clock (the later of the wall
    /// clock and the last block's time). A payment that was claimed in time is resumed without asking.
    #[must_use]
    pub const fn is_open_at(&self, now: Millis) -> bool {
        now < self.deadlines().pay_by
    }

    /// The terms of a quote that was recognised, or just issued: known to be signed by the seller.
    #[must_use]
    pub fn authorized(&self, issuer: &Issuer<'_>) -> AuthorizedTerms {
        AuthorizedTerms::of_quote(self, issuer.deployment)
    }
}

#[cfg(test)]
mod tests;
