//! Identifies the seller of an offer, by a session or by a signed proof.

use api_types::{Error, ErrorCode};
use cardano::{Address, ContentHash, slots::Millis};
use edge::{
    answer::{ErrorAnswer, Fault},
    ed25519::WebCrypto,
};
use market::{
    listing::NewListing,
    proof::{Proof, ProofError},
};

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    error::ApiError,
    route::{Argument, Asked, PROOF},
    session::Session,
};

/// The seller who offers a listing, as the request identifies them.
pub enum Seller {
    /// The owner of the session's account.
    Owner(Address),
    /// The signer of a recent proof. The signature is verified later, when the digest of the offer is known.
    Signer(Proof),
}

impl Seller {
    /// Returns the seller's address if the seller has a session; `None` if the seller signed a proof.
    pub const fn owner(&self) -> Option<Address> {
        match self {
            Self::Owner(owner) => Some(*owner),
            Self::Signer(_) => None,
        }
    }

    /// Verifies that the seller signed `digest`, unless the seller has a session. Returns the seller's address and the
    /// time of the signature; `None` as the time for a session.
    pub async fn verified(
        self,
        digest: impl FnOnce(&Proof) -> ContentHash,
        now_ms: Millis,
    ) -> Result<(Address, Option<Millis>), ErrorAnswer> {
        match self {
            Self::Owner(owner) => Ok((owner, None)),
            Self::Signer(proof) => {
                proof.check(&WebCrypto, &digest(&proof), now_ms).await.map_err(ErrorAnswer::unauthorized)?;
                Ok((proof.address, Some(proof.timestamp)))
            }
        }
    }

    /// Verifies that the seller signed this offer, and returns the signed digest. Returns `None` if the seller has a
    /// session, because then no signature is needed.
    pub async fn check(&self, offer: &NewListing, now_ms: u64) -> Result<Option<String>, ProofError> {
        let Self::Signer(proof) = self else { return Ok(None) };
        if proof.address != offer.seller {
            return Err(ProofError::OtherAddress(offer.seller));
        }
        let digest = proof.listing_digest(&offer.content_hash(), &offer.signed_price);
        proof.check(&WebCrypto, &digest, now_ms).await?;
        Ok(Some(digest.to_string()))
    }
}

/// Extracts the seller from the request's headers, before the body is read.
impl Argument for Seller {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        let app = asked.app;
        if let Some(Session { account, .. }) = Session::shown(app).await? {
            return Ok(Self::Owner(account.owner.parse().map_err(Fault::inconsistent("an owner that sells"))?));
        }
        let unproven = "sign in, or sign the offer with the seller's wallet (header X-Service-Proof)";
        let unproven = || ErrorAnswer::unauthorized(Error::new(ErrorCode::NotSignedIn, unproven));
        let header = app.request.headers().get(PROOF)?.ok_or_else(unproven)?;
        Ok(Self::Signer(Proof::recent(&header, app.now_ms).map_err(ErrorAnswer::unauthorized)?))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.security(&["session", "proof"]).fails(&[401])
    }
}
