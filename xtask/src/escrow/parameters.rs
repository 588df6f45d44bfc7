//! The three parameters of the escrow script, checked before an address exists: once funds are locked under an
//! unreachable threshold, nobody can repair it.

use cardano::KeyHash;
use uplc::{PlutusData, ast::Data};

/// `vested_pay`'s parameters, known to be usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    required_admins: u32,
    admins: Vec<KeyHash>,
    cooldown_ms: i64,
}

/// Why parameters are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// Nobody could settle a dispute.
    #[error("no admins: name at least one key hash, or disputes can never be settled")]
    NoAdmins,
    /// Anybody could settle a dispute.
    #[error("a threshold of 0 admins is refused by the script: no dispute could ever be settled")]
    NoThreshold,
    /// More votes than the list can give.
    #[error("{required} admins are required but the list has only {listed} entries: disputes could never be settled")]
    Unreachable {
        /// Votes that a decision needs.
        required: u32,
        /// Votes that there are.
        listed: usize,
    },
    /// Cooldowns run forward.
    #[error("a cooldown of {0} ms is negative")]
    NegativeCooldown(i64),
    /// Not a key hash.
    #[error("admin {0:?} is not a key hash: expected 56 lowercase hexadecimal characters")]
    MalformedAdmin(String),
}

impl Parameters {
    /// Parameters with `required` votes out of `admins` (a repeated entry has as many votes) and a cooldown in ms.
    ///
    /// # Errors
    /// Each way in which a deployment with them could lock funds for good.
    pub fn new(required: u32, admins: Vec<KeyHash>, cooldown_ms: i64) -> Result<Self, ParametersError> {
        if admins.is_empty() {
            return Err(ParametersError::NoAdmins);
        }
        if required == 0 {
            return Err(ParametersError::NoThreshold);
        }
        if usize::try_from(required).map_or(true, |required| required > admins.len()) {
            return Err(ParametersError::Unreachable { required, listed: admins.len() });
        }
        if cooldown_ms < 0 {
            return Err(ParametersError::NegativeCooldown(cooldown_ms));
        }
        Ok(Self { required_admins: required, admins, cooldown_ms })
    }

    /// As [`Parameters::new`], from the hexadecimal key hashes of a command line.
    ///
    /// # Errors
    /// As there, and for a text that is no key hash.
    pub fn parse(required: u32, admins: &[String], cooldown_ms: i64) -> Result<Self, ParametersError> {
        let admins = admins
            .iter()
            .map(|text| text.trim().parse().map_err(|_| ParametersError::MalformedAdmin(text.clone())))
            .collect::<Result<_, _>>()?;
        Self::new(required, admins, cooldown_ms)
    }

    /// Votes that a decision on a dispute needs.
    #[must_use]
    pub const fn required_admins(&self) -> u32 {
        self.required_admins
    }

    /// Who may vote, one entry per vote.
    #[must_use]
    pub fn admins(&self) -> &[KeyHash] {
        &self.admins
    }

    /// How long a party waits between two of its own actions, in ms.
    #[must_use]
    pub const fn cooldown_ms(&self) -> i64 {
        self.cooldown_ms
    }

    /// The arguments in the script's order.
    #[must_use]
    pub fn to_data(&self) -> Vec<PlutusData> {
        let admins = self.admins.iter().map(|admin| Data::bytestring(admin.as_bytes().to_vec())).collect();
        vec![Data::integer(self.required_admins.into()), Data::list(admins), Data::integer(self.cooldown_ms.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin(n: u8) -> KeyHash {
        KeyHash::new([n; 28])
    }

    #[test]
    fn a_threshold_that_the_votes_reach_is_accepted_up_to_the_last_vote() {
        for required in 1..=3 {
            assert!(Parameters::new(required, vec![admin(1), admin(1), admin(2)], 0).is_ok(), "{required}");
        }
    }

    #[test]
    fn an_unreachable_threshold_is_refused() {
        let refused = Parameters::new(3, vec![admin(1), admin(2)], 0);
        assert_eq!(refused, Err(ParametersError::Unreachable { required: 3, listed: 2 }));
    }

    #[test]
    fn a_threshold_of_nobody_is_refused() {
        assert_eq!(Parameters::new(0, vec![admin(1)], 0), Err(ParametersError::NoThreshold));
    }

    #[test]
    fn an_empty_admin_list_is_refused() {
        assert_eq!(Parameters::new(1, vec![], 0), Err(ParametersError::NoAdmins));
    }

    #[test]
    fn a_negative_cooldown_is_refused() {
        assert_eq!(Parameters::new(1, vec![admin(1)], -1), Err(ParametersError::NegativeCooldown(-1)));
    }

    #[test]
    fn a_malformed_key_hash_is_refused_by_name() {
        for bad in ["", "ab", &"AB".repeat(28), &"ab".repeat(32), &"zz".repeat(28)] {
            let refused = Parameters::parse(1, &[bad.to_owned()], 0);
            assert_eq!(refused, Err(ParametersError::MalformedAdmin(bad.to_owned())));
        }
    }
}
