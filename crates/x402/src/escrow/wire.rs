//! The escrow's entry of `accepts` on the wire: closed objects, one spelling for every value.

use ::escrow::Parameters;
use cardano::{KeyHash, Lovelace};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::{
    commitment::InputCommitment,
    identifier::Identifier,
    method::TransferMethod,
    terms::{self, Projected, Terms, TermsDigest},
};

/// The scheme that this crate implements.
pub(super) const SCHEME: &str = "exact";
/// The one asset that this service takes.
pub(super) const ASSET: &str = "lovelace";
/// Bytes of a COSE object at most: padding inflates the datum, and so what the buyer must lock.
const MAX_COSE_BYTES: usize = 512;

/// The requirements of a payment into the escrow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscrowRequirements {
    /// `exact`.
    pub scheme: String,
    /// The network, as it was signed.
    pub network: String,
    /// The price in lovelace: positive, without leading zeros.
    #[serde(deserialize_with = "amount")]
    pub amount: Lovelace,
    /// `lovelace`.
    pub asset: String,
    /// The escrow's address.
    pub pay_to: String,
    /// The 402's validity, seconds.
    pub max_timeout_seconds: u64,
    /// The escrow's terms.
    pub extra: EscrowExtra,
}

/// The closed object `extra`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EscrowExtra {
    /// The transfer method's configured name.
    #[serde(with = "method")]
    pub asset_transfer_method: TransferMethod,
    /// How deep in the chain a payment must be; 1 where it is not said.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub confirmation_policy: Option<ConfirmationPolicy>,
    /// Never true: this scheme has no fee sponsorship.
    #[serde(default, deserialize_with = "not_sponsored", skip_serializing_if = "Option::is_none")]
    pub are_fees_sponsored: Option<bool>,
    /// What is bought.
    pub input_commitment: InputCommitment,
    /// What the seller promises.
    pub terms: Terms,
    /// COSE_Key.
    #[serde(with = "cose")]
    pub reference_key: Vec<u8>,
    /// COSE_Sign1 over the terms' digest.
    #[serde(with = "cose")]
    pub reference_signature: Vec<u8>,
    /// See [`Identifier`].
    pub blockchain_identifier: String,
    /// The contract's parameters; those of the scheme's canonical deployment where they are not said.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentWire>,
}

/// The closed object `confirmationPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConfirmationPolicy {
    /// -1: accepted by a node; 0: in a block; 1 to 20: that many blocks on top.
    #[serde(deserialize_with = "confirmations")]
    pub l1_confirmations: i8,
}

/// The closed object `deployment`: the contract's parameters as texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeploymentWire {
    required_admins: String,
    admin_vkeys: Vec<KeyHash>,
    cooldown_period: String,
}

/// The requirements are not of the scheme's shape. The text says where, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the escrow requirements are malformed: {0}")]
pub struct SchemaError(String);

impl EscrowRequirements {
    /// Reads an entry of `accepts`.
    ///
    /// # Errors
    /// Any deviation from the closed objects of the scheme.
    pub fn parse(entry: &Value) -> Result<Self, SchemaError> {
        let requirements = Self::deserialize(entry).map_err(|error| SchemaError(error.to_string()))?;
        let malformed = |what: &str| Err(SchemaError(what.to_owned()));
        let extra = &requirements.extra;
        if requirements.scheme != SCHEME {
            return malformed("scheme is not exact");
        }
        if requirements.asset != ASSET {
            return malformed("asset is not lovelace");
        }
        if extra.reference_signature.len() < ::escrow::datum::MIN_REFERENCE_SIGNATURE_BYTES {
            return malformed("extra.referenceSignature has fewer than 16 bytes");
        }
        if extra.deployment.as_ref().is_some_and(|deployment| deployment.parameters().is_none()) {
            return malformed("extra.deployment is not a possible deployment");
        }
        extra.input_commitment.check_shape().map_err(|error| SchemaError(error.to_string()))?;
        Ok(requirements)
    }

    /// The digest that the seller must have signed.
    #[must_use]
    pub fn terms_digest(&self) -> Option<TermsDigest> {
        let amount = self.amount.to_string();
        self.extra.terms.digest(Projected {
            scheme: &self.scheme,
            asset_transfer_method: self.extra.asset_transfer_method.name(),
            network: &self.network,
            contract_address: &self.pay_to,
            amount: &amount,
            asset: &self.asset,
            max_timeout_seconds: self.max_timeout_seconds,
        })
    }

    /// The identifier that these requirements must carry.
    #[must_use]
    pub fn identifier(&self) -> Identifier {
        let Terms { seller_nonce, buyer_nonce, agent_identifier, .. } = &self.extra.terms;
        Identifier {
            seller_nonce: hex::encode(seller_nonce),
            agent_identifier: hex::encode(agent_identifier.bytes()),
            buyer_nonce: hex::encode(buyer_nonce),
            reference_signature: hex::encode(&self.extra.reference_signature),
            reference_key: hex::encode(&self.extra.reference_key),
            contract_address: self.pay_to.clone(),
        }
    }
}

impl DeploymentWire {
    /// These parameters on the wire.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            required_admins: parameters.required_admins.to_string(),
            admin_vkeys: parameters.admin_vkeys.clone(),
            cooldown_period: parameters.cooldown_period.to_string(),
        }
    }

    /// The parameters; `None` where they are not possible ones in their one spelling.
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

/// For an optional field that may be left out but not be `null`.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lovelace, D::Error> {
    let text = String::deserialize(deserializer)?;
    let amount: Lovelace = text.parse().map_err(de::Error::custom)?;
    if text.starts_with('0') { Err(de::Error::custom("amount is not positive and canonical")) } else { Ok(amount) }
}

fn not_sponsored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    if bool::deserialize(deserializer)? { Err(de::Error::custom("areFeesSponsored is true")) } else { Ok(Some(false)) }
}

fn confirmations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i8, D::Error> {
    match i8::deserialize(deserializer)? {
        level @ -1..=20 => Ok(level),
        _ => Err(de::Error::custom("l1Confirmations is not from -1 to 20")),
    }
}

mod method {
    use super::{Deserialize, Deserializer, TransferMethod, de};
    use serde::Serializer;

    pub fn serialize<S: Serializer>(method: &TransferMethod, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TransferMethod, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

mod cose {
    use super::{Deserialize, Deserializer, MAX_COSE_BYTES, de, terms};
    use serde::Serializer;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let bytes = terms::bytes(&String::deserialize(deserializer)?);
        bytes
            .filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_COSE_BYTES)
            .ok_or_else(|| de::Error::custom("a COSE object is lowercase hex of at most 512 bytes"))
    }
}
