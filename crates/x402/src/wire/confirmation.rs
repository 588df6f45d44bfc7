//! The number of confirmations that a payment needs before the resource is delivered.

use serde::{Deserialize, Serialize};

use super::object::Object;

/// A policy that says how many confirmations a payment needs before the resource is delivered. In JSON, the object
/// `extra.confirmationPolicy`, in which unknown fields are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmationPolicy {
    l1_confirmations: i8,
}

/// The JSON is not a [`ConfirmationPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("confirmationPolicy.l1Confirmations is a whole number from -1 to 20")]
pub struct ConfirmationPolicyError;

impl ConfirmationPolicy {
    /// The payment must be accepted into a node's mempool.
    pub const MEMPOOL: Self = Self { l1_confirmations: -1 };
    /// A block must include the payment.
    pub const IN_BLOCK: Self = Self { l1_confirmations: 0 };
    /// A block must include the payment, and one newer block must follow. This policy applies if none is given.
    pub const DEFAULT: Self = Self { l1_confirmations: 1 };

    /// Creates a policy. Returns `None` if the number is not from -1 to 20.
    #[must_use]
    pub fn new(l1_confirmations: i8) -> Option<Self> {
        (-1..=20).contains(&l1_confirmations).then_some(Self { l1_confirmations })
    }

    /// Returns the required number of confirmations: -1 for acceptance into a mempool, 0 for inclusion in a block, n
    /// for at least n newer blocks.
    #[must_use]
    pub const fn l1_confirmations(self) -> i8 {
        self.l1_confirmations
    }
}

impl Default for ConfirmationPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<'de> Deserialize<'de> for ConfirmationPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct ConfirmationJson {
            l1_confirmations: i8,
        }
        let Object(ConfirmationJson { l1_confirmations }) = Object::deserialize(deserializer)?;
        Self::new(l1_confirmations).ok_or_else(|| serde::de::Error::custom(ConfirmationPolicyError))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_is_a_closed_object_with_a_whole_number_in_range() {
        let read = |policy: &serde_json::Value| ConfirmationPolicy::deserialize(policy);
        for n in [-1, 0, 1, 20] {
            assert_eq!(read(&json!({ "l1Confirmations": n })).unwrap().l1_confirmations(), n);
        }
        for policy in [
            json!(null),
            json!({}),
            json!(0),
            json!([0]),
            json!({ "l1Confirmations": -2 }),
            json!({ "l1Confirmations": 21 }),
            json!({ "l1Confirmations": 1.5 }),
            json!({ "l1Confirmations": "1" }),
            json!({ "l1Confirmations": null }),
            json!({ "l1Confirmations": 0, "l2": 1 }),
        ] {
            assert!(read(&policy).is_err(), "{policy}");
        }
    }
}
