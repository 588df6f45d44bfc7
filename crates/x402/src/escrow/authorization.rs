//! Verifies the terms that the seller signed. A lock is later compared with them.

use cardano::{
    Lovelace,
    cip8::{Cip8Error, SignedMessage},
    keys::VerifyEd25519,
};

use super::{
    DeploymentWire, EscrowExtra, SchemaError,
    commitment::CommitmentError,
    method::TransferMethod,
    terms::{SellerTerms, TermsDigest},
};
use crate::wire::{Asset, PaymentRequirements, SCHEME_EXACT};
use ::escrow::{Deadlines, Deployment, PlutusAddress};

/// Payment terms that the seller signed, for an escrow deployment that this service allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedTerms {
    pub(super) terms: SellerTerms,
    pub(super) terms_digest: TermsDigest,
    pub(super) price: Lovelace,
    pub(super) escrow: PlutusAddress,
    pub(super) reference_key: Vec<u8>,
    pub(super) reference_signature: Vec<u8>,
}

refusals! {
    /// The rule that payment requirements break.
    pub enum AuthorizationError {
        /// The requirements are not in the form that the scheme prescribes.
        #[error("{0}")]
        Schema(#[from] SchemaError) => "invalid_exact_cardano_requirements_masumi_schema",
        /// The name of the transfer method is not the configured name.
        #[error("the escrow's transfer method is another")]
        Method => "invalid_exact_cardano_requirements_masumi_method",
        /// A digest of the request commitment is wrong.
        #[error("{0}")]
        Commitment(#[from] CommitmentError) => "invalid_exact_cardano_requirements_masumi_commitment",
        /// The digest in the terms differs from that of the request commitment.
        #[error("terms.inputHash is not inputCommitment.digest")]
        InputHash => "invalid_exact_cardano_requirements_masumi_input_hash",
        /// The deadlines are closer together than the scheme allows.
        #[error("the deadlines are closer together than the scheme allows")]
        DeadlineGaps => "invalid_exact_cardano_requirements_masumi_deadline",
        /// The contract's deployment is not the one that the service allows. It may have other arbiters, for example.
        #[error("this deployment of the escrow is not allowed")]
        Deployment => "invalid_exact_cardano_requirements_masumi_deployment",
        /// `payTo` is not the escrow address of the declared deployment.
        #[error("payTo is not the address of the escrow's deployment")]
        Address => "invalid_exact_cardano_requirements_masumi_address",
        /// The terms claim that the seller is a registered agent. This crate does not validate registrations.
        #[error("terms.agentIdentifier claims a registration, which is not validated here")]
        AgentIdentifier => "invalid_exact_cardano_requirements_masumi_agent_identifier",
        /// The seller's signature is invalid.
        #[error("the seller's signature of the terms is not valid: {0}")]
        SellerSignature(#[from] Cip8Error) => "invalid_exact_cardano_requirements_masumi_seller_signature",
        /// The signature's header `hashed` is not `false`, so the wallet may have signed a hash of the digest.
        #[error("the seller's signature must say that its payload is not hashed")]
        Hashed => "invalid_exact_cardano_requirements_masumi_seller_signature",
        /// The field `blockchainIdentifier` does not match the other fields of the requirements.
        #[error("blockchainIdentifier is not that of the requirements")]
        Identifier => "invalid_exact_cardano_requirements_masumi_identifier",
    }
}

/// An entry of `accepts` to be verified, with the only deployment and method name that this service allows.
#[derive(Clone, Copy)]
pub(super) struct Issued<'a> {
    entry: &'a PaymentRequirements,
    extra: &'a EscrowExtra,
    deployment: &'a Deployment,
    method: TransferMethod,
}

type Check = fn(&Issued<'_>) -> Result<(), AuthorizationError>;

/// Rules for payment requirements, in the order in which they are checked. The seller's signature is verified
/// afterwards, by [`seller_signature`].
pub(super) const CHECKS: &[Check] =
    &[schema, method, commitment, input_hash, deadline_gaps, deployment, address, agent_identifier, identifier];

fn schema(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    let malformed = |what: &str| AuthorizationError::Schema(SchemaError(what.to_owned()));
    holds(issued.entry.scheme == SCHEME_EXACT, malformed("scheme is not exact"))?;
    holds(issued.entry.asset == Asset::Lovelace, malformed("asset is not lovelace"))
}

fn method(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    holds(issued.extra.asset_transfer_method == issued.method, AuthorizationError::Method)
}

fn commitment(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    Ok(issued.extra.input_commitment.check()?)
}

fn input_hash(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    let EscrowExtra { terms, input_commitment, .. } = issued.extra;
    holds(terms.input_hash == input_commitment.digest, AuthorizationError::InputHash)
}

fn deadline_gaps(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    holds(issued.extra.terms.deadlines.gaps_hold(), AuthorizationError::DeadlineGaps)
}

fn deployment(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    let declared = issued.extra.deployment.as_ref().and_then(DeploymentWire::parameters);
    holds(declared.as_ref() == Some(&issued.deployment.parameters), AuthorizationError::Deployment)
}

fn address(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    holds(issued.entry.pay_to == issued.deployment.address().to_string(), AuthorizationError::Address)
}

fn agent_identifier(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    holds(issued.extra.terms.agent_identifier.bytes().is_empty(), AuthorizationError::AgentIdentifier)
}

fn identifier(issued: &Issued<'_>) -> Result<(), AuthorizationError> {
    let expected = issued.extra.identifier(&issued.entry.pay_to).encode();
    holds(issued.extra.blockchain_identifier == expected, AuthorizationError::Identifier)
}

fn holds(condition: bool, error: AuthorizationError) -> Result<(), AuthorizationError> {
    if condition { Ok(()) } else { Err(error) }
}

/// Verifies the seller's CIP-8 signature of exactly these terms. Signatures over a hashed payload are rejected.
pub(super) async fn seller_signature(
    port: &impl VerifyEd25519,
    issued: &Issued<'_>,
) -> Result<TermsDigest, AuthorizationError> {
    let extra = issued.extra;
    let digest = extra.terms_digest(issued.entry).ok_or(AuthorizationError::Hashed)?;
    let message = SignedMessage::parse(&extra.reference_key, &extra.reference_signature)?;
    if message.hashed_header() != Some(false) {
        return Err(AuthorizationError::Hashed);
    }
    let unverified = message.check(&extra.terms.seller, digest.0.as_bytes())?;
    unverified.verify(port).await.map_err(Cip8Error::from)?;
    Ok(digest)
}

impl AuthorizedTerms {
    /// Verifies an entry of `accepts` against every rule of the scheme that does not need the transaction. The entry
    /// may come from any server, but it must be for this `deployment` and this name of the transfer method.
    ///
    /// # Errors
    /// Returns the first rule that the entry breaks.
    pub async fn verify(
        port: &impl VerifyEd25519,
        entry: &PaymentRequirements,
        deployment: &Deployment,
        method: TransferMethod,
    ) -> Result<Self, AuthorizationError> {
        let extra = entry.extra.escrow().ok_or(AuthorizationError::Method)?;
        let issued = Issued { entry, extra, deployment, method };
        for check in CHECKS {
            check(&issued)?;
        }
        let terms_digest = seller_signature(port, &issued).await?;
        let price = Lovelace::new(entry.amount.get());
        let price = price.ok_or_else(|| SchemaError("amount is more than all lovelace".to_owned()))?;
        Ok(Self::signed(extra, terms_digest, price, deployment.address()))
    }

    /// Creates terms whose signature is already known to be valid.
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

    /// Returns the digest that identifies these terms (the scheme's *logical replay key*). A service must accept only
    /// the first transaction that pays under these terms.
    #[must_use]
    pub const fn terms_digest(&self) -> TermsDigest {
        self.terms_digest
    }

    /// Returns the seller's address, whose key signed the terms.
    #[must_use]
    pub const fn seller(&self) -> &cardano::Address {
        &self.terms.seller
    }

    /// Returns the deadlines of an escrow under these terms.
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
        fixture::{block_on, deployment, key, offered},
        terms::AgentIdentifier,
    };
    use crate::wire::Amount;

    /// Applies a change to valid requirements, and returns the codes of the rules that the changed requirements break.
    /// With `resign`, the seller signs the changed terms.
    fn broken(resign: bool, change: impl FnOnce(&mut PaymentRequirements, &mut EscrowExtra)) -> Vec<&'static str> {
        let mut entry = offered().requirements;
        let mut extra = entry.extra.escrow().unwrap().clone();
        change(&mut entry, &mut extra);
        if resign {
            let digest = extra.terms_digest(&entry).unwrap();
            let seller = key(1);
            let signed = cip8::sign(&seller, &seller.enterprise_address(), digest.0.as_bytes()).unwrap();
            extra.reference_key = signed.key;
            extra.reference_signature = signed.signature;
            extra.blockchain_identifier = extra.identifier(&entry.pay_to).encode();
        }
        let deployment = deployment();
        let issued = Issued { entry: &entry, extra: &extra, deployment: &deployment, method: TransferMethod::Escrow };
        let rules = CHECKS.iter().filter_map(|check| check(&issued).err());
        let signature = block_on(seller_signature(&Native, &issued)).err();
        rules.chain(signature).map(|error| error.code()).collect()
    }

    fn code(name: &str) -> [String; 1] {
        [format!("invalid_exact_cardano_requirements_masumi_{name}")]
    }

    #[test]
    fn honest_requirements_break_no_rule() {
        let none: [&str; 0] = [];
        assert_eq!(broken(false, |_, _| {}), none);
        assert_eq!(broken(true, |_, _| {}), none);
    }

    #[test]
    fn each_rule_catches_what_no_other_does() {
        assert_eq!(broken(true, |_, x| x.asset_transfer_method = TransferMethod::Masumi), code("method"));
        let content = |_: &mut PaymentRequirements, x: &mut EscrowExtra| {
            x.input_commitment.parts[0].content = Some("other".into());
        };
        assert_eq!(broken(true, content), code("commitment"));
        let other_hash = cardano::ContentHash::new([1; 32]);
        assert_eq!(broken(true, |_, x| x.terms.input_hash = other_hash), code("input_hash"));
        assert_eq!(broken(true, |_, x| x.terms.deadlines.submit_result -= 720_001), code("deadline"));
        assert_eq!(broken(true, |_, x| x.deployment = None), code("deployment"));
        let other = |_: &mut PaymentRequirements, x: &mut EscrowExtra| {
            let parameters = ::escrow::Parameters { cooldown_period: 1, ..deployment().parameters };
            x.deployment = Some(DeploymentWire::new(&parameters));
        };
        assert_eq!(broken(true, other), code("deployment"));
        assert_eq!(broken(true, |r, _| r.pay_to = key(5).enterprise_address().to_string()), code("address"));
        assert_eq!(broken(true, |r, _| r.scheme = "upto".into()), code("schema"));
        let token = Asset::Token { policy: [1; 28], name: vec![] };
        assert_eq!(broken(true, |r, _| r.asset = token), code("schema"));
        let issued = AgentIdentifier::Bytes(vec![0x67; 30]);
        assert_eq!(broken(true, |_, x| x.terms.agent_identifier = issued), code("agent_identifier"));
        assert_eq!(broken(false, |_, x| x.blockchain_identifier.push_str("00")), code("identifier"));
    }

    #[test]
    fn terms_that_the_seller_did_not_sign_are_refused() {
        let unsigned = code("seller_signature");
        assert_eq!(broken(false, |r, _| r.max_timeout_seconds = 301), unsigned);
        assert_eq!(broken(false, |r, _| r.amount = Amount::new(6_000_000).unwrap()), unsigned);
        assert_eq!(broken(false, |_, x| x.terms.deadlines.external_dispute_unlock += 1), unsigned);
        assert_eq!(broken(true, |_, x| x.terms.seller = key(5).enterprise_address()), unsigned, "another seller");
    }

    #[test]
    fn another_signature_scheme_is_refused() {
        let resigned = |change: fn(&mut EscrowExtra)| {
            broken(false, |r, x| {
                change(x);
                x.blockchain_identifier = x.identifier(&r.pay_to).encode();
            })
        };
        let unsigned = code("seller_signature");
        // `{"hashed": true}`, or no `hashed` at all, instead of `{"hashed": false}`. The signature does not cover this
        // header.
        let flip = |x: &mut EscrowExtra| {
            let signature = &mut x.reference_signature;
            let at = signature.windows(7).position(|part| part == b"hashed\xf4").unwrap() + 6;
            signature[at] = 0xf5;
        };
        assert_eq!(resigned(flip), unsigned);
        let leave_out = |x: &mut EscrowExtra| {
            let signature = &mut x.reference_signature;
            let at = signature.windows(9).position(|part| part == b"\xa1\x66hashed\xf4").unwrap();
            signature.splice(at..at + 9, [0xa0]);
        };
        assert_eq!(resigned(leave_out), unsigned);
        assert_eq!(resigned(|x| *x.reference_signature.last_mut().unwrap() ^= 1), unsigned);
        assert_eq!(resigned(|x| *x.reference_key.last_mut().unwrap() ^= 1), unsigned);
        assert_eq!(resigned(|x| x.reference_key = vec![0xa1, 1, 1]), unsigned);
        assert_eq!(resigned(|x| x.reference_signature = vec![0x55; 16]), unsigned);
    }
}
