//! The JSON object `extra` in an entry of `accepts` for payments into the escrow. Unknown fields are rejected at every
//! level, and every value has exactly one encoding.

use ::escrow::Parameters;
use cardano::{KeyHash, hash::to_hex};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use super::{
    commitment::InputCommitment,
    identifier::BlockchainIdentifier,
    method::TransferMethod,
    terms::{self, SellerTerms, TermsDigest},
};
use crate::wire::{ConfirmationPolicy, PaymentRequirements, not_sponsored, object, present, present_object};

/// Maximum size of a COSE object, in bytes. The limit prevents padding, which would enlarge the datum and so increase
/// the lovelace that the buyer must lock.
const MAX_COSE_BYTES: usize = 512;

/// The JSON object `extra` in an entry of `accepts` for payments into the escrow. Unknown fields are rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EscrowExtra {
    /// Name of the transfer method; must be the name that this service is configured to use.
    pub asset_transfer_method: TransferMethod,
    /// Number of confirmations that a payment needs; 1 if absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub confirmation_policy: Option<ConfirmationPolicy>,
    /// `areFeesSponsored`; never `true`, because fees cannot be sponsored in this scheme.
    #[serde(default, deserialize_with = "not_sponsored", skip_serializing_if = "Option::is_none")]
    pub are_fees_sponsored: Option<bool>,
    /// Commitment to the purchased listing.
    #[serde(deserialize_with = "object")]
    pub input_commitment: InputCommitment,
    /// The seller's terms.
    #[serde(deserialize_with = "object")]
    pub terms: SellerTerms,
    /// COSE_Key with the seller's public key.
    #[serde(with = "cose")]
    pub reference_key: Vec<u8>,
    /// COSE_Sign1 with the seller's signature of the terms' digest.
    #[serde(with = "cose")]
    pub reference_signature: Vec<u8>,
    /// Lookup key with which other Masumi services find the payment; see [`BlockchainIdentifier`].
    pub blockchain_identifier: String,
    /// The contract's parameters; `None` for those of the scheme's canonical deployment.
    #[serde(default, deserialize_with = "present_object", skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentWire>,
}

/// The JSON object `deployment`: the contract's parameters as strings. Unknown fields are rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeploymentWire {
    required_admins: String,
    admin_vkeys: Vec<KeyHash>,
    cooldown_period: String,
}

/// The field `extra` of an entry of `accepts` does not have the shape that the scheme prescribes for the escrow. The
/// text names the deviation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the escrow requirements are malformed: {0}")]
pub struct SchemaError(pub(super) String);

impl EscrowExtra {
    /// Parses the `extra` of an entry of `accepts` for payments into the escrow.
    ///
    /// # Errors
    /// [`SchemaError`] for any deviation from the shape that the scheme prescribes.
    pub fn read(extra: &Map<String, Value>) -> Result<Self, SchemaError> {
        let extra = Self::deserialize(extra).map_err(|error| SchemaError(error.to_string()))?;
        if extra.reference_signature.len() < ::escrow::MIN_REFERENCE_SIGNATURE_BYTES {
            return Err(SchemaError("extra.referenceSignature has fewer than 16 bytes".to_owned()));
        }
        if extra.deployment.as_ref().is_some_and(|deployment| deployment.parameters().is_none()) {
            return Err(SchemaError("extra.deployment is not a possible deployment".to_owned()));
        }
        extra.input_commitment.check_shape().map_err(|error| SchemaError(error.to_string()))?;
        Ok(extra)
    }

    /// Computes the digest that the seller must have signed for `entry` with this `extra`. `None` if the terms have no
    /// canonical JSON, which cannot happen.
    #[must_use]
    pub fn terms_digest(&self, entry: &PaymentRequirements) -> Option<TermsDigest> {
        self.terms.digest(entry, self.asset_transfer_method)
    }

    /// Computes the `blockchainIdentifier` of an entry that has this `extra` and this `payTo`.
    #[must_use]
    pub fn identifier(&self, pay_to: &str) -> BlockchainIdentifier {
        let SellerTerms { seller_nonce, buyer_nonce, agent_identifier, .. } = &self.terms;
        BlockchainIdentifier {
            seller_nonce: to_hex(seller_nonce),
            agent_identifier: to_hex(agent_identifier.bytes()),
            buyer_nonce: to_hex(buyer_nonce),
            reference_signature: to_hex(&self.reference_signature),
            reference_key: to_hex(&self.reference_key),
            contract_address: pay_to.to_owned(),
        }
    }
}

impl DeploymentWire {
    /// Converts the contract's parameters to their JSON form.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            required_admins: parameters.required_admins.to_string(),
            admin_vkeys: parameters.admin_vkeys.clone(),
            cooldown_period: parameters.cooldown_period.to_string(),
        }
    }

    /// Parses the contract's parameters. Returns `None` if they are invalid or not written in their canonical form.
    #[must_use]
    pub fn parameters(&self) -> Option<Parameters> {
        let parameters = Parameters {
            required_admins: self.required_admins.parse().ok()?,
            admin_vkeys: self.admin_vkeys.clone(),
            cooldown_period: self.cooldown_period.parse().ok()?,
        };
        (parameters.check().is_ok() && Self::new(&parameters) == *self).then_some(parameters)
    }
}

mod cose {
    use super::{Deserialize, Deserializer, MAX_COSE_BYTES, de, terms, to_hex};
    use serde::Serializer;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let bytes = terms::bytes(&String::deserialize(deserializer)?);
        bytes
            .filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_COSE_BYTES)
            .ok_or_else(|| de::Error::custom("a COSE object is lowercase hex of at most 512 bytes"))
    }
}
