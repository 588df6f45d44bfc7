//! What an operator configures: variables and secrets of the worker.

use std::borrow::Cow;

use worker::Env;
use zeroize::Zeroizing;

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
