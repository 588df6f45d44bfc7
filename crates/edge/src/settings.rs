//! What an operator configures: variables and secrets of the worker.

use std::borrow::Cow;

use cardano::keys::SigningKey;
use escrow::Deployment;
use worker::Env;
use zeroize::Zeroizing;

/// The variable with the deployment record.
pub const ESCROW_DEPLOYMENT: &str = "ESCROW_DEPLOYMENT";

/// A variable or secret that is missing or unusable. The text names it and says what to set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {problem}")]
pub struct SettingError {
    /// The variable's or secret's name.
    pub name: Cow<'static, str>,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A variable or secret, if it is set to anything.
#[must_use]
pub fn optional(env: &Env, name: &str) -> Option<String> {
    env.var(name).ok().map(|value| value.to_string()).filter(|value| !value.is_empty())
}

/// A variable or secret that must be set.
///
/// # Errors
/// It is not set.
pub fn required(env: &Env, name: impl Into<Cow<'static, str>>) -> Result<String, SettingError> {
    let name = name.into();
    optional(env, &name).ok_or(SettingError { name, problem: "is not set" })
}

/// A secret of hexadecimal digits, as bytes that are wiped when dropped.
///
/// # Errors
/// It is not set, or not hexadecimal.
pub fn secret_bytes(env: &Env, name: impl Into<Cow<'static, str>>) -> Result<Zeroizing<Vec<u8>>, SettingError> {
    let name = name.into();
    let text = Zeroizing::new(required(env, name.clone())?);
    let bytes = hex::decode(text.trim()).map_err(|_| SettingError { name, problem: "must be hexadecimal" })?;
    Ok(Zeroizing::new(bytes))
}

/// The Ed25519 key whose seed a secret is.
///
/// # Errors
/// It is not set, or not 32 bytes in hexadecimal.
pub fn signing_key(env: &Env, name: &'static str) -> Result<SigningKey, SettingError> {
    let wrong = || SettingError { name: name.into(), problem: "must be 64 hexadecimal characters (32 random bytes)" };
    let seed = secret_bytes(env, name)?;
    let seed: &[u8; 32] = seed.as_slice().try_into().map_err(|_| wrong())?;
    SigningKey::from_seed(seed).map_err(|_| wrong())
}

/// The escrow of protected sales; `None` where none is deployed.
///
/// # Errors
/// A record that cannot be read, or whose parameters no escrow should have.
pub fn deployment(env: &Env) -> Result<Option<Deployment>, SettingError> {
    let Some(record) = optional(env, ESCROW_DEPLOYMENT) else { return Ok(None) };
    let unusable = |problem| SettingError { name: ESCROW_DEPLOYMENT.into(), problem };
    let deployment: Deployment = serde_json::from_str(&record)
        .map_err(|_| unusable("is not a deployment record (cargo xtask escrow deploy)"))?;
    deployment.parameters.check().map_err(|_| unusable("has parameters that strand disputes"))?;
    Ok(Some(deployment))
}
