//! A deployment of the contract: the parameters that make its hash, and where its script can be referenced.

use cardano::{ContentHash, KeyHash, ScriptHash, TxRef, slots::Millis};
use pallas_primitives::PlutusData;
use serde::{Deserialize, Serialize};

use crate::{PlutusAddress, codec};

/// The most arbiter keys of a deployment: each costs the contract a signature check per vote.
pub const MAX_ADMINS: usize = 64;

/// The contract's parameters, in the order in which they are applied. Other parameters make another script hash and
/// so another trust domain: the holders of the admin keys settle disputes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// How many entries of `admin_vkeys` must have signed.
    pub required_admins: u32,
    /// Hashes of the arbiters' keys. A key that stands here twice counts twice.
    pub admin_vkeys: Vec<KeyHash>,
    /// How long a party waits after its own action, ms.
    pub cooldown_period: Millis,
}

/// Why parameters would make an escrow whose disputes no one, or anyone, could settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No arbiter, or none needed.
    #[error("a deployment needs at least one arbiter key and a threshold of at least 1")]
    Empty,
    /// More signatures needed than keys there are.
    #[error("the threshold exceeds the number of arbiter keys: no dispute could ever be resolved")]
    Unreachable,
    /// More keys than the contract can check.
    #[error("a deployment has at most 64 arbiter keys")]
    TooMany,
    /// A cooldown longer than any deadline.
    #[error("the cooldown must be shorter than 15 minutes, the least gap between deadlines")]
    CooldownTooLong,
}

impl Parameters {
    /// Refuses parameters that strand disputes.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn check(&self) -> Result<(), ParameterError> {
        let admins = self.admin_vkeys.len();
        if admins == 0 || self.required_admins == 0 {
            return Err(ParameterError::Empty);
        }
        if admins > MAX_ADMINS {
            return Err(ParameterError::TooMany);
        }
        if usize::try_from(self.required_admins).map_or(true, |required| required > admins) {
            return Err(ParameterError::Unreachable);
        }
        if self.cooldown_period >= crate::deadlines::SUBMIT_TO_UNLOCK_MS {
            return Err(ParameterError::CooldownTooLong);
        }
        Ok(())
    }

    /// The parameters as data, in the order in which a blueprint takes them.
    #[must_use]
    pub fn to_data(&self) -> [PlutusData; 3] {
        let admins = self.admin_vkeys.iter().map(|hash| codec::bytes(hash.as_bytes())).collect();
        [codec::integer(self.required_admins.into()), codec::list(admins), codec::integer(self.cooldown_period)]
    }

    /// How many votes a key has.
    #[must_use]
    pub fn weight_of(&self, key: &KeyHash) -> usize {
        self.admin_vkeys.iter().filter(|admin| *admin == key).count()
    }
}

/// A deployment on the chain, as `xtask escrow deploy` records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployment {
    /// The contract with its parameters applied.
    pub script_hash: ScriptHash,
    /// The parameters.
    pub parameters: Parameters,
    /// An unspent output that carries the script.
    pub reference_script: TxRef,
    /// The script's bytes in that output: they cost a fee.
    pub reference_script_bytes: u32,
    /// SHA-256 of the blueprint as canonical JSON (RFC 8785), before its parameters were applied: says which contract
    /// this is. Records of before it was written have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint_sha256: Option<ContentHash>,
}

impl Deployment {
    /// Where escrows of this deployment are.
    #[must_use]
    pub const fn address(&self) -> PlutusAddress {
        PlutusAddress::script(self.script_hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(required_admins: u32, keys: usize, cooldown_period: Millis) -> Parameters {
        Parameters { required_admins, admin_vkeys: vec![KeyHash::new([1; 28]); keys], cooldown_period }
    }

    #[test]
    fn parameters_that_strand_disputes_are_refused() {
        assert_eq!(parameters(1, 1, 60_000).check(), Ok(()));
        assert_eq!(parameters(3, 3, 0).check(), Ok(()));
        assert_eq!(parameters(0, 1, 0).check(), Err(ParameterError::Empty));
        assert_eq!(parameters(1, 0, 0).check(), Err(ParameterError::Empty));
        assert_eq!(parameters(4, 3, 0).check(), Err(ParameterError::Unreachable));
        assert_eq!(parameters(1, 65, 0).check(), Err(ParameterError::TooMany));
        assert_eq!(parameters(1, 1, 15 * 60_000).check(), Err(ParameterError::CooldownTooLong));
    }

    #[test]
    fn a_repeated_key_has_repeated_weight() {
        assert_eq!(parameters(2, 3, 0).weight_of(&KeyHash::new([1; 28])), 3);
        assert_eq!(parameters(2, 3, 0).weight_of(&KeyHash::new([2; 28])), 0);
    }

    #[test]
    fn a_record_round_trips_and_is_closed() {
        let json = format!(
            r#"{{"scriptHash":"{0}","parameters":{{"requiredAdmins":1,"adminVkeys":["{0}"],"cooldownPeriod":60000}},"referenceScript":"{1}#0","referenceScriptBytes":5000}}"#,
            "ab".repeat(28),
            "cd".repeat(32)
        );
        let record: Deployment = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
        assert_eq!(record.blueprint_sha256, None, "a record of before digests were written");
        let with_digest = json.replace("5000}", &format!(r#"5000,"blueprintSha256":"{}"}}"#, "ef".repeat(32)));
        let record: Deployment = serde_json::from_str(&with_digest).unwrap();
        assert_eq!(record.blueprint_sha256, Some(ContentHash::new([0xef; 32])));
        assert_eq!(serde_json::to_string(&record).unwrap(), with_digest);
        assert!(serde_json::from_str::<Deployment>(&json.replace("60000", "-1")).is_err(), "a negative cooldown");
        assert!(serde_json::from_str::<Deployment>(&json.replacen('{', r#"{"extra":1,"#, 1)).is_err());
    }
}
