//! Terms that the seller has signed: what a lock is held against.

use cardano::{
    Lovelace,
    cip8::{Cip8Error, SignedMessage},
    keys::VerifyEd25519,
};

use super::{
    DeploymentWire, EscrowExtra, SchemaError,
    commitment::CommitmentError,
    method::TransferMethod,
    terms::{Terms, TermsDigest},
};
use crate::wire::{Asset, PaymentRequirements, SCHEME_EXACT};
use ::escrow::{Deadlines, Deployment, PlutusAddress};

/// The terms of a payment, known to be signed by the seller for an escrow that this service allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedTerms {
    pub(super) terms: Terms,
    pub(super) terms_digest: TermsDigest,
    pub(super) price: Lovelace,
    pub(super) escrow: PlutusAddress,
    pub(super) reference_key: Vec<u8>,
    pub(super) reference_signature: Vec<u8>,
}

/// Which of the scheme's rules about the requirements does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// Not of the scheme's shape.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Another transfer method than the configured one.
    #[error("the escrow's transfer method is another")]
    Method,
    /// A digest of the request commitment.
    #[error(transparent)]
    Commitment(#[from] CommitmentError),
    /// The terms are about another request than the commitment.
    #[error("terms.inputHash is not inputCommitment.digest")]
    InputHash,
    /// The deadlines are not far enough apart.
    #[error("the deadlines are closer together than the scheme allows")]
    DeadlineGaps,
    /// A deployment that the service does not allow: other arbiters, other trust.
    #[error("the escrow's deployment is not an allowed one")]
    Deployment,
    /// `payTo` is not where that deployment's escrows are.
    #[error("payTo is not the address of the escrow's deployment")]
    Address,
    /// A registry claim, which this service cannot validate.
    #[error("terms.agentIdentifier claims a registration, which is not validated here")]
    AgentIdentifier,
    /// The seller's signature.
    #[error("the seller's signature of the terms does not hold: {0}")]
    SellerSignature(#[from] Cip8Error),
    /// The seller signed a hash of the digest, not the digest.
    #[error("the seller's signature must say that its payload is not hashed")]
    Hashed,
    /// The compatibility identifier.
    #[error("blockchainIdentifier is not that of the requirements")]
    Identifier,
}

impl AuthorizationError {
    /// The stable code; the reference implementation's where it has one for the same rule.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Schema(_) => "invalid_exact_cardano_requirements_masumi_schema",
            Self::Method => "invalid_exact_cardano_requirements_masumi_method",
            Self::Commitment(_) => "invalid_exact_cardano_requirements_masumi_commitment",
            Self::InputHash => "invalid_exact_cardano_requirements_masumi_input_hash",
            Self::DeadlineGaps => "invalid_exact_cardano_requirements_masumi_deadline",
            Self::Deployment => "invalid_exact_cardano_requirements_masumi_deployment",
            Self::Address => "invalid_exact_cardano_requirements_masumi_address",
            Self::AgentIdentifier => "invalid_exact_cardano_requirements_masumi_agent_identifier",
            Self::SellerSignature(_) | Self::Hashed => "invalid_exact_cardano_requirements_masumi_seller_signature",
            Self::Identifier => "invalid_exact_cardano_requirements_masumi_identifier",
        }
    }
}

/// An entry to check, and what the service allows: the one deployment, under the configured name.
#[derive(Clone, Copy)]
pub(super) struct Claim<'a> {
    entry: &'a PaymentRequirements,
    extra: &'a EscrowExtra,
    deployment: &'a Deployment,
    method: TransferMethod,
}

type Check = fn(&Claim<'_>) -> Result<(), AuthorizationError>;

/// Every rule about the requirements but the seller's signature, in the order in which they are checked.
pub(super) const CHECKS: &[Check] =
    &[schema, method, commitment, input_hash, deadline_gaps, deployment, address, agent_identifier, identifier];

fn schema(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    let malformed = |what: &str| AuthorizationError::Schema(SchemaError(what.to_owned()));
    holds(claim.entry.scheme == SCHEME_EXACT, malformed("scheme is not exact"))?;
    holds(claim.entry.asset == Asset::Lovelace, malformed("asset is not lovelace"))
}

fn method(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    holds(claim.extra.asset_transfer_method == claim.method, AuthorizationError::Method)
}

fn commitment(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    Ok(claim.extra.input_commitment.check()?)
}

fn input_hash(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    let EscrowExtra { terms, input_commitment, .. } = claim.extra;
    holds(terms.input_hash == input_commitment.digest, AuthorizationError::InputHash)
}

fn deadline_gaps(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    holds(claim.extra.terms.deadlines.gaps_hold(), AuthorizationError::DeadlineGaps)
}

fn deployment(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    let declared = claim.extra.deployment.as_ref().and_then(DeploymentWire::parameters);
    holds(declared.as_ref() == Some(&claim.deployment.parameters), AuthorizationError::Deployment)
}

fn address(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    holds(claim.entry.pay_to == claim.deployment.address().to_string(), AuthorizationError::Address)
}

fn agent_identifier(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    holds(claim.extra.terms.agent_identifier.bytes().is_empty(), AuthorizationError::AgentIdentifier)
}

fn identifier(claim: &Claim<'_>) -> Result<(), AuthorizationError> {
    let expected = claim.extra.identifier(&claim.entry.pay_to).encode();
    holds(claim.extra.blockchain_identifier == expected, AuthorizationError::Identifier)
}

fn holds(condition: bool, error: AuthorizationError) -> Result<(), AuthorizationError> {
    if condition { Ok(()) } else { Err(error) }
}

/// That the seller signed exactly these terms, the CIP-8 way and without hashing the payload.
pub(super) async fn seller_signature(
    port: &impl VerifyEd25519,
    claim: &Claim<'_>,
) -> Result<TermsDigest, AuthorizationError> {
    let extra = claim.extra;
    let digest = extra.terms_digest(claim.entry).ok_or(AuthorizationError::Hashed)?;
    let (key, signature) = (hex::encode(&extra.reference_key), hex::encode(&extra.reference_signature));
    let message = SignedMessage::parse(&key, &signature)?;
    if message.says_hashed() != Some(false) {
        return Err(AuthorizationError::Hashed);
    }
    let unverified = message.check(&extra.terms.seller, digest.0.as_bytes())?;
    unverified.verify(port).await.map_err(Cip8Error::from)?;
    Ok(digest)
}

impl AuthorizedTerms {
    /// Checks an entry that somebody issued for this deployment under this name: every rule of the scheme that does not
    /// need the transaction.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub async fn verify(
        port: &impl VerifyEd25519,
        entry: &PaymentRequirements,
        deployment: &Deployment,
        method: TransferMethod,
    ) -> Result<Self, AuthorizationError> {
        let extra = entry.extra.escrow().ok_or(AuthorizationError::Method)?;
        let claim = Claim { entry, extra, deployment, method };
        for check in CHECKS {
            check(&claim)?;
        }
        let terms_digest = seller_signature(port, &claim).await?;
        let price = Lovelace::new(entry.amount.get());
        let price = price.ok_or_else(|| SchemaError("amount is more than all lovelace".to_owned()))?;
        Ok(Self::signed(extra, terms_digest, price, deployment.address()))
    }

    /// Terms that are known to be signed.
    pub(crate) fn signed(
        extra: &EscrowExtra,
        terms_digest: TermsDigest,
        price: Lovelace,
        escrow: PlutusAddress,
    ) -> Self {
        Self {
            terms: extra.terms.clone(),
            terms_digest,
            price,
            escrow,
            reference_key: extra.reference_key.clone(),
            reference_signature: extra.reference_signature.clone(),
        }
    }

    /// The logical replay key.
    #[must_use]
    pub const fn terms_digest(&self) -> TermsDigest {
        self.terms_digest
    }

    /// When what may happen to an escrow under these terms.
    #[must_use]
    pub const fn deadlines(&self) -> &Deadlines {
        &self.terms.deadlines
    }
}

#[cfg(test)]
mod tests {
    use cardano::{cip8, keys::Native};

    use super::*;
    use crate::escrow::{
        fixture::{block_on, deployment, key, quote},
        terms::AgentIdentifier,
        wire::DeploymentWire,
    };

    /// The codes of every rule that these requirements break, signed anew by the seller if so wished.
    fn broken(resign: bool, change: impl FnOnce(&mut EscrowRequirements)) -> Vec<&'static str> {
        let mut requirements = quote().requirements;
        change(&mut requirements);
        if resign {
            let digest = requirements.terms_digest().unwrap();
            let seller = key(1);
            let signed = cip8::sign(&seller, &seller.enterprise_address(), digest.0.as_bytes()).unwrap();
            requirements.extra.reference_key = hex::decode(signed.key).unwrap();
            requirements.extra.reference_signature = hex::decode(signed.signature).unwrap();
            requirements.extra.blockchain_identifier = requirements.identifier().encode();
        }
        let deployment = deployment();
        let allowed = Allowed { deployment: &deployment, method: TransferMethod::Escrow };
        let rules = CHECKS.iter().filter_map(|check| check(&requirements, allowed).err());
        let signature = block_on(seller_signature(&Native, &requirements)).err();
        rules.chain(signature).map(|error| error.code()).collect()
    }

    fn code(name: &str) -> [String; 1] {
        [format!("invalid_exact_cardano_requirements_masumi_{name}")]
    }

    #[test]
    fn honest_requirements_break_no_rule() {
        let none: [&str; 0] = [];
        assert_eq!(broken(false, |_| {}), none);
        assert_eq!(broken(true, |_| {}), none);
    }

    #[test]
    fn each_rule_catches_what_no_other_does() {
        assert_eq!(broken(true, |r| r.extra.asset_transfer_method = TransferMethod::Masumi), code("method"));
        let content = |r: &mut EscrowRequirements| r.extra.input_commitment.parts[0].content = Some("other".into());
        assert_eq!(broken(true, content), code("commitment"));
        let other_hash = cardano::ContentHash::new([1; 32]);
        assert_eq!(broken(true, |r| r.extra.terms.input_hash = other_hash), code("input_hash"));
        assert_eq!(broken(true, |r| r.extra.terms.deadlines.submit_result -= 660_001), code("deadline"));
        assert_eq!(broken(true, |r| r.extra.deployment = None), code("deployment"));
        let other = |r: &mut EscrowRequirements| {
            let parameters = ::escrow::Parameters { cooldown_period: 1, ..deployment().parameters };
            r.extra.deployment = Some(DeploymentWire::new(&parameters));
        };
        assert_eq!(broken(true, other), code("deployment"));
        let elsewhere = |r: &mut EscrowRequirements| r.pay_to = key(5).enterprise_address().to_string();
        assert_eq!(broken(true, elsewhere), code("address"));
        let claim =
            |r: &mut EscrowRequirements| r.extra.terms.agent_identifier = AgentIdentifier::Bytes(vec![0x67; 30]);
        assert_eq!(broken(true, claim), code("agent_identifier"));
        assert_eq!(broken(false, |r| r.extra.blockchain_identifier.push_str("00")), code("identifier"));
    }

    #[test]
    fn terms_that_the_seller_did_not_sign_are_refused() {
        let unsigned = code("seller_signature");
        assert_eq!(broken(false, |r| r.max_timeout_seconds = 301), unsigned);
        assert_eq!(broken(false, |r| r.amount = Lovelace::from_ada(6)), unsigned);
        assert_eq!(broken(false, |r| r.extra.terms.deadlines.external_dispute_unlock += 1), unsigned);
        assert_eq!(broken(true, |r| r.extra.terms.seller = key(5).enterprise_address()), unsigned, "another seller");
    }

    #[test]
    fn another_way_of_signing_is_refused() {
        let resigned = |change: fn(&mut EscrowRequirements)| {
            broken(false, |r| {
                change(r);
                r.extra.blockchain_identifier = r.identifier().encode();
            })
        };
        let unsigned = code("seller_signature");
        // `{"hashed": true}` and no `hashed` at all, instead of `{"hashed": false}`: the header is not signed itself.
        let flip = |r: &mut EscrowRequirements| {
            let signature = &mut r.extra.reference_signature;
            let at = signature.windows(7).position(|part| part == b"hashed\xf4").unwrap() + 6;
            signature[at] = 0xf5;
        };
        assert_eq!(resigned(flip), unsigned);
        let leave_out = |r: &mut EscrowRequirements| {
            let signature = &mut r.extra.reference_signature;
            let at = signature.windows(9).position(|part| part == b"\xa1\x66hashed\xf4").unwrap();
            signature.splice(at..at + 9, [0xa0]);
        };
        assert_eq!(resigned(leave_out), unsigned);
        assert_eq!(resigned(|r| *r.extra.reference_signature.last_mut().unwrap() ^= 1), unsigned);
        assert_eq!(resigned(|r| *r.extra.reference_key.last_mut().unwrap() ^= 1), unsigned);
        assert_eq!(resigned(|r| r.extra.reference_key = vec![0xa1, 1, 1]), unsigned);
        assert_eq!(resigned(|r| r.extra.reference_signature = vec![0x55; 16]), unsigned);
    }
}
