//! The object `PaymentPayload`, with which a buyer pays.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    Accepted, HeaderError, ResourceInfo, Version2, decode_header,
    object::{Object, object, optional},
};

/// The payment for a request, carried by its `PAYMENT-SIGNATURE` header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentPayload {
    /// Protocol version.
    pub x402_version: Version2,
    /// The purchased resource, echoed from the 402.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceInfo>,
    /// The entry of `accepts` that the buyer chose, copied in full from the 402.
    pub accepted: Accepted,
    /// The part that depends on the scheme: transaction and nonce.
    #[serde(deserialize_with = "object")]
    pub payload: ExactPayload,
    /// Entries for protocol extensions, such as those echoed from the 402.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

impl PaymentPayload {
    /// Parses the value of a `PAYMENT-SIGNATURE` header. The transaction in it is not decoded yet.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn from_header(value: &str) -> Result<Self, HeaderError> {
        decode_header(value).map_err(|error| match (error, misread(value)) {
            (HeaderError::Json(why), Some(field)) if !why.contains(field) => {
                HeaderError::Json(format!("{field}: {why}"))
            }
            (error, _) => error,
        })
    }
}

/// Returns the name of a payment's first field whose JSON type is wrong, or `None` if there is none.
fn misread(value: &str) -> Option<&'static str> {
    fn is<T: DeserializeOwned>(value: &Value) -> bool {
        T::deserialize(value).is_ok()
    }
    type Check = fn(&Value) -> bool;
    const FIELDS: [(&str, Check); 5] = [
        ("x402Version", is::<Version2>),
        ("resource", is::<Option<Object<ResourceInfo>>>),
        ("accepted", is::<Accepted>),
        ("payload", is::<Object<ExactPayload>>),
        ("extensions", is::<Option<Map<String, Value>>>),
    ];
    let fields: Map<String, Value> = decode_header(value).ok()?;
    FIELDS.into_iter().find(|(name, is)| fields.get(*name).is_some_and(|value| !is(value))).map(|(name, _)| name)
}

/// The payload of the scheme `exact` on Cardano.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactPayload {
    /// Base64 of the signed transaction's CBOR. The transaction must not be submitted by the buyer.
    pub transaction: String,
    /// An unspent output that the transaction spends, as `txHash#index`. It identifies the payer and makes the payment
    /// unique.
    pub nonce: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::encode_header;

    #[test]
    fn a_field_of_another_type_is_named() {
        let entry = json!({ "scheme": "exact", "network": "cardano:preprod", "amount": "1", "asset": "lovelace",
            "payTo": "addr_test1", "maxTimeoutSeconds": 300, "extra": {} });
        let whole = json!({ "x402Version": 2, "accepted": entry,
            "payload": { "transaction": "AA==", "nonce": "ab#0" }, "resource": null, "extensions": {} });
        assert!(PaymentPayload::from_header(&encode_header(&whole).unwrap()).is_ok());
        for field in ["x402Version", "resource", "accepted", "payload", "extensions"] {
            for other in [json!(null), json!([]), json!(7), json!("x"), json!({ "payTo": 7 })] {
                let mut changed = whole.clone();
                changed[field] = other.clone();
                let Err(error) = PaymentPayload::from_header(&encode_header(&changed).unwrap()) else {
                    assert!(matches!(field, "resource" | "extensions"), "{field}: {other}");
                    continue;
                };
                assert!(error.to_string().contains(field), "{field} = {other}: {error}");
            }
        }
    }
}
