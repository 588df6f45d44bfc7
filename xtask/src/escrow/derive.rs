//! `cargo xtask escrow derive`: computes the script and the address of a deployment without the chain.

use std::{error::Error, process::ExitCode};

use clap::Args;

use cardano::KeyHash;
use escrow::Parameters;

use super::BlueprintArgument;

/// Arguments of `derive`.
#[derive(Args)]
pub struct DeriveArguments {
    #[command(flatten)]
    blueprint: BlueprintArgument,
    /// Key hashes of the arbiters, separated by commas. A hash that is listed twice has two votes.
    #[arg(long, value_delimiter = ',', required = true)]
    admins: Vec<String>,
    /// Number of votes needed to decide a dispute.
    #[arg(long)]
    required: u32,
    /// Time that a party has to wait between two actions, in ms.
    #[arg(long, allow_negative_numbers = true)]
    cooldown: i64,
}

/// Reason why parameters are rejected. They are checked strictly, because a deployment cannot be changed once funds are
/// locked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersRefused {
    /// A text is not a key hash.
    #[error("admin {0:?} is not a key hash: expected 56 lowercase hexadecimal characters")]
    MalformedAdmin(String),
    /// The cooldown is negative.
    #[error("a cooldown of {0} ms is negative")]
    NegativeCooldown(i64),
    /// The parameters are unusable in combination.
    #[error(transparent)]
    Unusable(#[from] escrow::ParameterError),
}

/// Parses the parameters of a deployment.
///
/// # Errors
/// Returns an error if a deployment with these parameters could lock funds permanently.
pub fn parameters(required: u32, admins: &[String], cooldown_ms: i64) -> Result<Parameters, ParametersRefused> {
    let key_hash = |text: &String| text.parse().map_err(|_| ParametersRefused::MalformedAdmin(text.clone()));
    let admin_vkeys = admins.iter().map(key_hash).collect::<Result<Vec<KeyHash>, _>>()?;
    let cooldown_period = u64::try_from(cooldown_ms).map_err(|_| ParametersRefused::NegativeCooldown(cooldown_ms))?;
    let parameters = Parameters { required_admins: required, admin_vkeys, cooldown_period };
    parameters.check()?;
    Ok(parameters)
}

pub(super) fn run(arguments: &DeriveArguments) -> Result<ExitCode, Box<dyn Error>> {
    let parameters = parameters(arguments.required, &arguments.admins, arguments.cooldown)?;
    let blueprint = arguments.blueprint.load()?;
    let script = blueprint.apply(&parameters)?;
    println!("contract {}", blueprint.sha256());
    println!("hash     {}", script.hash);
    println!("address  {}", script.address());
    println!("bytes    {}", script.cbor.len());
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use escrow::ParameterError;

    fn admins(n: usize) -> Vec<String> {
        vec!["ab".repeat(28); n]
    }

    #[test]
    fn a_threshold_that_the_votes_reach_is_accepted_up_to_the_last_vote() {
        for required in 1..=3 {
            assert!(parameters(required, &admins(3), 0).is_ok(), "{required}");
        }
    }

    #[test]
    fn an_unreachable_threshold_is_refused() {
        assert_eq!(parameters(3, &admins(2), 0), Err(ParameterError::Unreachable.into()));
    }

    #[test]
    fn a_threshold_of_zero_and_an_empty_admin_list_are_refused() {
        assert_eq!(parameters(0, &admins(1), 0), Err(ParameterError::Empty.into()));
        assert_eq!(parameters(1, &[], 0), Err(ParameterError::Empty.into()));
    }

    #[test]
    fn a_negative_cooldown_is_refused() {
        assert_eq!(parameters(1, &admins(1), -1), Err(ParametersRefused::NegativeCooldown(-1)));
    }

    #[test]
    fn a_malformed_key_hash_is_refused_by_name() {
        for bad in ["", "ab", &"AB".repeat(28), &"ab".repeat(32), &"zz".repeat(28)] {
            let refused = parameters(1, &[bad.to_owned()], 0);
            assert_eq!(refused, Err(ParametersRefused::MalformedAdmin(bad.to_owned())));
        }
    }
}
