//! Reads keys from environment variables, because other users of the machine can read command lines.

use cardano::{Address, keys::SigningKey};
use clap::Args;

/// Arguments of `address`.
#[derive(Args)]
pub struct AddressArguments {
    /// Environment variable with the secret: 64 hexadecimal characters.
    name: String,
}

/// A secret that is missing or invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0} must be set to 64 hexadecimal characters (32 random bytes)")]
pub struct SecretError(String);

/// Returns the key whose secret is in the environment variable `name`.
///
/// # Errors
/// Returns an error if the variable is not set or is invalid.
pub fn key(name: &str) -> Result<SigningKey, SecretError> {
    let unusable = || SecretError(name.to_owned());
    let text = std::env::var(name).map_err(|_| unusable())?;
    let seed: [u8; 32] = hex::decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(unusable)?;
    SigningKey::from_seed(&seed).map_err(|_| unusable())
}

/// Prints the preprod enterprise address and the key hash for a secret.
///
/// # Errors
/// Returns an error if the variable is not set or is invalid.
pub fn run(arguments: &AddressArguments) -> Result<(), SecretError> {
    let key = key(&arguments.name)?;
    let address: Address = key.enterprise_address();
    println!("address  {address}");
    println!("keyhash  {}", key.key_hash());
    Ok(())
}
