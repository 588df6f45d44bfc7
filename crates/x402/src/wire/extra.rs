//! The object `extra` in an entry of `accepts`. Its type depends on the transfer method that `assetTransferMethod`
//! names.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use super::{ConfirmationPolicy, accepted::method_of, present};
use crate::escrow::EscrowExtra;

/// Details of how an entry of `accepts` is paid, depending on its transfer method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Extra {
    /// The payment goes to the seller's address.
    Default(DefaultExtra),
    /// The payment goes into the escrow.
    Escrow(Box<EscrowExtra>),
}

/// The object `extra` of an entry with the transfer method `default`, which pays the seller directly. Unknown fields
/// are rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DefaultExtra {
    /// Always `default`, if present.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub asset_transfer_method: Option<String>,
    /// `areFeesSponsored`; never `true`, because fees cannot be sponsored in this scheme.
    #[serde(default, deserialize_with = "not_sponsored", skip_serializing_if = "Option::is_none")]
    pub are_fees_sponsored: Option<bool>,
    /// Number of confirmations that a payment needs; 1 if absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub confirmation_policy: Option<ConfirmationPolicy>,
}

impl Extra {
    /// Returns the name of the transfer method.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Default(_) => "default",
            Self::Escrow(extra) => extra.asset_transfer_method.name(),
        }
    }

    /// Returns the number of confirmations that a payment needs. If the entry names no policy, a block must include the
    /// payment and one newer block must follow.
    #[must_use]
    pub fn confirmation_policy(&self) -> ConfirmationPolicy {
        let said = match self {
            Self::Default(extra) => extra.confirmation_policy,
            Self::Escrow(extra) => extra.confirmation_policy,
        };
        said.unwrap_or_default()
    }

    /// Returns the `extra` of a payment into the escrow, or `None` for another transfer method.
    #[must_use]
    pub fn escrow(&self) -> Option<&EscrowExtra> {
        match self {
            Self::Default(_) => None,
            Self::Escrow(extra) => Some(extra),
        }
    }
}

impl Default for Extra {
    fn default() -> Self {
        Self::Default(DefaultExtra::default())
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let extra = Map::<String, Value>::deserialize(deserializer)?;
        match method_of(&extra) {
            "default" => DefaultExtra::deserialize(&extra).map(Self::Default).map_err(de::Error::custom),
            "escrow" | "masumi" => EscrowExtra::read(&extra).map(Box::new).map(Self::Escrow).map_err(de::Error::custom),
            _ => Err(de::Error::custom("extra.assetTransferMethod is not default, escrow or masumi")),
        }
    }
}

/// Deserialises `areFeesSponsored`, which must be absent or `false`.
pub(crate) fn not_sponsored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    if bool::deserialize(deserializer)? { Err(de::Error::custom("areFeesSponsored is true")) } else { Ok(Some(false)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn read(extra: Value) -> Result<Extra, serde_json::Error> {
        from_value(extra)
    }

    #[test]
    fn an_empty_extra_means_the_default_method() {
        let extra = read(json!({})).unwrap();
        assert_eq!((extra.method(), extra.confirmation_policy()), ("default", ConfirmationPolicy::DEFAULT));
        assert_eq!(serde_json::to_value(&extra).unwrap(), json!({}), "and is written as it came");
    }

    #[test]
    fn an_extra_is_closed_and_its_method_known() {
        for extra in [
            json!(null),
            json!([]),
            json!({ "assetTransferMethod": null }),
            json!({ "assetTransferMethod": "script" }),
            json!({ "assetTransferMethod": "escrow" }),
            json!({ "areFeesSponsored": true }),
            json!({ "areFeesSponsored": null }),
            json!({ "confirmationPolicy": null }),
            json!({ "paymentFlow": "authorization" }),
        ] {
            assert!(read(extra.clone()).is_err(), "{extra}");
        }
    }
}
