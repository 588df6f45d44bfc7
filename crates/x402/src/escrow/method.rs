//! The two names of the transfer method that pays into the escrow, one of which a service is configured to use.

use std::{fmt, str::FromStr};

use ::escrow::Deployment;
use cardano::ContentHash;
use serde::{Deserialize, Serialize};

/// SHA-256 of the canonical JSON (RFC 8785) of the contract's blueprint as the scheme document publishes it.
pub const PUBLISHED_BLUEPRINT: ContentHash = ContentHash::new([
    0x62, 0x49, 0xde, 0x17, 0xbb, 0x87, 0xc5, 0x24, 0x61, 0x06, 0xaf, 0x6b, 0x0f, 0x33, 0xde, 0x22, 0xb4, 0x4c, 0xa2,
    0x4b, 0x9c, 0x14, 0x45, 0xfa, 0x36, 0xd1, 0x0e, 0xb8, 0xb5, 0x83, 0xde, 0xc7,
]);

/// Name of the transfer method that pays into the escrow. The seller's signature covers the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferMethod {
    /// `escrow`, the name in this service's API.
    #[default]
    Escrow,
    /// `masumi`, the name in the scheme document, which stock clients support.
    Masumi,
}

/// The name is neither `escrow` nor `masumi`, the two names of the transfer method into the escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the escrow's transfer method is `escrow` or `masumi`")]
pub struct UnknownMethod;

/// The deployment cannot be offered under the name `masumi`, because it is not recorded as a deployment of the
/// published contract. Clients derive the escrow's address from that contract, so they could not pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "clients of the method `masumi` derive the escrow's address from the published validator, blueprint \
     {PUBLISHED_BLUEPRINT}, and the deployment is not recorded as being of it: deploy that blueprint, or use `escrow`"
)]
pub struct NotPublished;

impl TransferMethod {
    /// Checks that clients of the transfer method with this name can pay into this deployment. Clients of `masumi`
    /// derive `payTo` from the published validator and `extra.deployment`, and reject any other address.
    ///
    /// # Errors
    /// [`NotPublished`] if the name is `masumi` and the deployment is not recorded as one of the published validator.
    pub fn check_deployment(self, deployment: &Deployment) -> Result<(), NotPublished> {
        let published = deployment.blueprint_sha256 == Some(PUBLISHED_BLUEPRINT);
        if self == Self::Escrow || published { Ok(()) } else { Err(NotPublished) }
    }

    /// Returns the value of `assetTransferMethod` in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Escrow => "escrow",
            Self::Masumi => "masumi",
        }
    }
}

impl FromStr for TransferMethod {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        [Self::Escrow, Self::Masumi].into_iter().find(|method| method.name() == name).ok_or(UnknownMethod)
    }
}

impl fmt::Display for TransferMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_known_method_names_are_read() {
        for method in [TransferMethod::Escrow, TransferMethod::Masumi] {
            assert_eq!(method.name().parse(), Ok(method));
        }
        for other in ["", "default", "script", "Escrow", "escrow "] {
            assert_eq!(other.parse::<TransferMethod>(), Err(UnknownMethod), "{other:?}");
        }
    }

    #[test]
    fn the_scheme_documents_name_needs_the_published_blueprint() {
        let own = crate::escrow::fixture::deployment();
        let of = |sha256: Option<&str>| Deployment {
            blueprint_sha256: sha256.map(|hash| hash.parse().unwrap()),
            ..own.clone()
        };
        let published = of(Some("6249de17bb87c5246106af6b0f33de22b44ca24b9c1445fa36d10eb8b583dec7"));
        assert_eq!(TransferMethod::Masumi.check_deployment(&published), Ok(()));
        for other in [of(None), of(Some(&"62".repeat(32)))] {
            assert_eq!(TransferMethod::Masumi.check_deployment(&other), Err(NotPublished));
            assert_eq!(TransferMethod::Escrow.check_deployment(&other), Ok(()));
        }
    }
}
