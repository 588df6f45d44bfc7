//! A deployment of the contract: its parameters, which determine the script hash, and its reference script.

use cardano::{ContentHash, KeyHash, ScriptHash, TxRef, slots::Millis};
use pallas_primitives::PlutusData;
use serde::{Deserialize, Serialize};

use crate::{PlutusAddress, codec};

/// Maximum number of arbiters' keys. The contract verifies one signature per vote, and each costs execution units.
pub const MAX_ADMINS: usize = 64;

/// The contract's parameters, in the order in which they are applied.
///
/// The parameters are part of the script hash, so a deployment with other arbiters has another address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Number of entries of `admin_vkeys` that must sign an award.
    pub required_admins: u32,
    /// Hashes of the arbiters' keys. A key that is listed twice has two votes.
    pub admin_vkeys: Vec<KeyHash>,
    /// Time in milliseconds for which a party must wait after its own action before it may act again.
    pub cooldown_period: Millis,
}

/// Reason why the parameters are unusable: no dispute could be settled, or anyone could settle one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// There is no arbiter, or no arbiter's signature is required.
    #[error("a deployment needs at least one arbiter key and a threshold of at least 1")]
    Empty,
    /// More signatures are required than there are arbiters' keys.
    #[error("the threshold exceeds the number of arbiter keys: no dispute could ever be resolved")]
    Unreachable,
    /// There are more than [`MAX_ADMINS`] arbiters' keys.
    #[error("a deployment has at most 64 arbiter keys")]
    TooMany,
    /// The cooldown is at least as long as the minimum time from `submit_result` to `unlock`.
    #[error("the cooldown must be shorter than 15 minutes, the minimum time from submit_result to unlock")]
    CooldownTooLong,
}

impl Parameters {
    /// Checks that arbiters, and nobody else, can settle disputes under these parameters.
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

    /// Encodes the parameters as Plutus data, in the order in which a blueprint takes them.
    #[must_use]
    pub fn to_data(&self) -> [PlutusData; 3] {
        let admins = self.admin_vkeys.iter().map(|hash| codec::bytes(hash.as_bytes())).collect();
        [codec::integer(self.required_admins.into()), codec::list(admins), codec::integer(self.cooldown_period)]
    }

    /// Returns how often a key is listed among the arbiters' keys, which is its number of votes.
    #[must_use]
    pub fn weight_of(&self, key: &KeyHash) -> usize {
        self.admin_vkeys.iter().filter(|admin| *admin == key).count()
    }
}

/// A deployed contract, as recorded by `xtask escrow deploy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployment {
    /// Hash of the script with its parameters applied.
    pub script_hash: ScriptHash,
    /// Parameters applied to the script.
    pub parameters: Parameters,
    /// Reference of the unspent output that carries the script, for transactions to refer to.
    pub reference_script: TxRef,
    /// Size of the reference script in bytes. Each transaction that uses the script pays a fee per byte.
    pub reference_script_bytes: u32,
    /// SHA-256 of the blueprint as canonical JSON (RFC 8785), before its parameters were applied. `None` in older
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint_sha256: Option<ContentHash>,
}

impl Deployment {
    /// Returns the address that holds this deployment's escrows.
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
