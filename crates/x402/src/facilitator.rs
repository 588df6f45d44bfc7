//! Verification for other servers. A resource server that neither reads the chain nor submits transactions sends each
//! payment to a facilitator, together with the requirements that it offered: `POST /verify`, then `POST /settle`.
//!
//! Source: x402 specification v2, section 7.
//!
//! ```text
//! FacilitatorRequest ──offered──> Offered ──exact::verify──> VerifiedPayment ──> VerifyResponse, Settlement::response
//! ```
//!
//! A shop recognises its own offers ([`crate::method::recognise`]). A facilitator cannot, because the offers are those
//! of other servers. It takes the requirements from the request and checks that the buyer accepted the same ones. For
//! payments into the escrow, it also checks that the seller signed them.

use ::escrow::Deployment;
use cardano::{ContentHash, keys::VerifyEd25519};
use serde::{Deserialize, Serialize};

use crate::{
    Refusal,
    escrow::{AuthorizedTerms, TransferMethod},
    json,
    method::Offered,
    wire::{Accepted, ConfirmationPolicy, DefaultExtra, Extra, InvalidAccepted, Network, PaymentPayload, Version2},
};

/// Maximum `maxTimeoutSeconds` in the requirements of other servers, in seconds. It bounds the time for which a
/// facilitator watches a transaction.
pub const MAX_FOREIGN_TIMEOUT_SECONDS: u32 = 3_600;

/// Body of `POST /verify` and `POST /settle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FacilitatorRequest {
    /// Protocol version.
    pub x402_version: Version2,
    /// The buyer's payment, as the resource server received it.
    pub payment_payload: PaymentPayload,
    /// The entry of `accepts` that the resource server offered.
    pub payment_requirements: Accepted,
}

/// Answer to `POST /verify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerifyResponse {
    /// `true` if the ledger would accept the payment now, and it satisfies the requirements.
    pub is_valid: bool,
    /// Error code; absent if the payment is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid_reason: Option<String>,
    /// Error message for people; absent if the payment is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid_message: Option<String>,
    /// Address of the payer; absent if the payment is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
}

refusals! {
    /// Reason why a facilitator does not accept the requirements of another server.
    #[derive(Copy)]
    pub enum InvalidRequirements {
        /// The requirements are for a network that the facilitator does not use.
        #[error("paymentRequirements.network: only {0} is supported")]
        Network(&'static str) => "invalid_network",
        /// The transfer method is unknown, or the facilitator has no deployment of the escrow.
        #[error("paymentRequirements.extra.assetTransferMethod: this method is not supported here (GET /supported)")]
        Method => "invalid_payment_requirements",
        /// A known field of `extra` has an invalid value.
        #[error("paymentRequirements.extra: confirmationPolicy and areFeesSponsored must have the scheme's form")]
        Extra => "invalid_payment_requirements",
        /// The confirmation policy accepts a transaction that is only in a mempool, where it can still be replaced.
        #[error("paymentRequirements.extra.confirmationPolicy: l1Confirmations must be 0 to 20")]
        Mempool => "invalid_payment_requirements",
        /// `maxTimeoutSeconds` is zero or too large.
        #[error("paymentRequirements.maxTimeoutSeconds: must be 1 to {MAX_FOREIGN_TIMEOUT_SECONDS}")]
        Timeout => "invalid_payment_requirements",
    }
}

impl FacilitatorRequest {
    /// Parses the body of a request. An object with a duplicate name is an error.
    ///
    /// # Errors
    /// Returns an error if the body is not JSON of this shape.
    pub fn from_json(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_value(json::parse(body)?)
    }

    /// Checks the requirements, and that they are equal to those that the buyer accepted. Returns the offer against
    /// which the payment must be verified. `escrow` is the escrow deployment that the facilitator supports, with the
    /// name of its transfer method.
    ///
    /// # Errors
    /// [`Refusal`] with the first rule that the request breaks.
    pub async fn offered(
        &self,
        network: Network,
        escrow: Option<(&Deployment, TransferMethod)>,
        signatures: &impl VerifyEd25519,
    ) -> Result<Offered, Refusal> {
        let asked = &self.payment_requirements;
        asked.check_basics(network).map_err(|error| match error {
            InvalidAccepted::Network(name) => InvalidRequirements::Network(name).into(),
            other => Refusal::from(other),
        })?;
        if !self.payment_payload.accepted.equals(asked) {
            return Err(InvalidAccepted::Differs("paymentRequirements").into());
        }
        let terms = match (asked.method(), escrow) {
            ("default", _) => None,
            (name, Some((deployment, method))) if name == method.name() => Some((deployment, method)),
            _ => return Err(InvalidRequirements::Method.into()),
        };
        let extra = match terms {
            None => Extra::Default(asked.default_extra().map_err(|_| InvalidRequirements::Extra)?),
            Some(_) => Extra::Escrow(Box::new(asked.escrow_extra().map_err(|_| InvalidRequirements::Extra)?)),
        };
        if extra.confirmation_policy() < ConfirmationPolicy::IN_BLOCK {
            return Err(InvalidRequirements::Mempool.into());
        }
        let requirements = asked.requirements(extra);
        if !(1..=MAX_FOREIGN_TIMEOUT_SECONDS).contains(&requirements.max_timeout_seconds) {
            return Err(InvalidRequirements::Timeout.into());
        }
        let terms = match terms {
            None => None,
            Some((deployment, method)) => {
                Some(AuthorizedTerms::verify(signatures, &requirements, deployment, method).await?)
            }
        };
        Ok(Offered { requirements, terms })
    }

    /// Returns the SHA-256 of the requirements' canonical JSON (RFC 8785), or `None` if they have none. Two requests
    /// with equal digests are about the same offer.
    #[must_use]
    pub fn requirements_digest(&self) -> Option<ContentHash> {
        json::canonical(&*self.payment_requirements.with_canonical_network()).map(|text| ContentHash::of(&text))
    }
}

impl VerifyResponse {
    /// Creates the answer for a payment that may be settled.
    #[must_use]
    pub fn valid(payer: String) -> Self {
        Self { is_valid: true, invalid_reason: None, invalid_message: None, payer: Some(payer) }
    }

    /// Creates the answer for a payment that must not be settled.
    #[must_use]
    pub fn invalid(refusal: &Refusal) -> Self {
        let (reason, message) = (refusal.code().to_owned(), refusal.to_string());
        Self { is_valid: false, invalid_reason: Some(reason), invalid_message: Some(message), payer: None }
    }
}

impl Accepted {
    /// Parses `extra` in the form that it has for a payment to the seller's address. Unknown fields are ignored,
    /// because other servers may add fields of their own.
    fn default_extra(&self) -> Result<DefaultExtra, serde_json::Error> {
        const KNOWN: [&str; 3] = ["assetTransferMethod", "areFeesSponsored", "confirmationPolicy"];
        let known = self.extra().iter().filter(|(name, _)| KNOWN.contains(&name.as_str()));
        DefaultExtra::deserialize(serde_json::Value::Object(known.map(|(k, v)| (k.clone(), v.clone())).collect()))
    }
}

#[cfg(test)]
mod tests {
    use cardano::{Address, KeyHash, keys::Native};
    use serde_json::{Value, json};

    use super::*;
    use crate::escrow::fixture::{block_on, deployment, key, offered};

    fn of(requirements: &Value, accepted: &Value) -> Result<Offered, &'static str> {
        let payload = json!({ "x402Version": 2, "accepted": accepted,
            "payload": { "transaction": "AA==", "nonce": "ab#0" } });
        let body = json!({ "x402Version": 2, "paymentPayload": payload, "paymentRequirements": requirements });
        let request: FacilitatorRequest = serde_json::from_value(body).map_err(|_| "malformed")?;
        let deployment = deployment();
        let escrow = Some((&deployment, TransferMethod::Escrow));
        block_on(request.offered(Network::Preprod, escrow, &Native)).map_err(|refusal| refusal.code())
    }

    fn default_requirements() -> Value {
        json!({ "scheme": "exact", "network": "cardano:preprod", "amount": "2000000", "asset": "lovelace",
            "payTo": Address::enterprise(KeyHash::new([1; 28])), "maxTimeoutSeconds": 300, "extra": {} })
    }

    #[test]
    fn requirements_of_other_servers_become_an_offer() {
        let asked = default_requirements();
        let offer = of(&asked, &asked).unwrap();
        assert_eq!((offer.requirements.amount.get(), offer.terms.is_some()), (2_000_000, false));
        assert_eq!(offer.confirmation_policy(), ConfirmationPolicy::DEFAULT);
        let mut described = asked.clone();
        described["extra"] = json!({ "name": "an API", "confirmationPolicy": { "l1Confirmations": 0 } });
        assert_eq!(of(&described, &described).unwrap().confirmation_policy(), ConfirmationPolicy::IN_BLOCK);
        let quote = serde_json::to_value(offered().requirements).unwrap();
        assert_eq!(of(&quote, &quote).unwrap(), offered(), "a quote that another seller signed");
        let mut alias = asked.clone();
        alias["network"] = "cip34:0-1".into();
        assert!(of(&asked, &alias).is_ok() && of(&alias, &asked).is_ok());
    }

    #[test]
    fn each_invalid_requirement_has_its_code() {
        let default = default_requirements();
        for (field, value, code) in [
            ("scheme", json!("upto"), "unsupported_scheme"),
            ("network", json!("cardano:preview"), "invalid_network"),
            ("maxTimeoutSeconds", json!(0), "invalid_payment_requirements"),
            ("maxTimeoutSeconds", json!(3_601), "invalid_payment_requirements"),
            ("amount", json!("-1"), "malformed"),
            ("extra", json!({ "assetTransferMethod": "script" }), "invalid_payment_requirements"),
            ("extra", json!({ "assetTransferMethod": "masumi" }), "invalid_payment_requirements"),
            ("extra", json!({ "areFeesSponsored": true }), "invalid_payment_requirements"),
            ("extra", json!({ "confirmationPolicy": { "l1Confirmations": -1 } }), "invalid_payment_requirements"),
            ("extra", json!({ "confirmationPolicy": { "l1Confirmations": 21 } }), "invalid_payment_requirements"),
        ] {
            let mut asked = default.clone();
            asked[field] = value;
            assert_eq!(of(&asked, &asked).unwrap_err(), code, "{field}: {}", asked[field]);
        }
    }

    #[test]
    fn another_offer_than_the_accepted_one_is_refused() {
        let asked = default_requirements();
        for (field, value) in
            [("amount", json!("1999999")), ("payTo", json!("addr_test1")), ("extra", json!({ "a": 1 }))]
        {
            let mut other = asked.clone();
            other[field] = value;
            let mismatch = "invalid_exact_cardano_payload_accepted_mismatch";
            assert_eq!(of(&asked, &other).unwrap_err(), mismatch, "{field}");
            assert_eq!(of(&other, &asked).unwrap_err(), mismatch, "{field}");
        }
    }

    #[test]
    fn a_quote_whose_price_the_seller_did_not_sign_is_refused() {
        let mut quote = serde_json::to_value(offered().requirements).unwrap();
        quote["amount"] = json!("6000000");
        let code = of(&quote, &quote).unwrap_err();
        assert_eq!(code, "invalid_exact_cardano_requirements_masumi_seller_signature");
        assert_ne!(key(1).enterprise_address().to_string(), quote["payTo"]);
    }
}
