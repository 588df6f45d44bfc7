//! Keys from the environment: never from the command line, where other users of the machine can read them.

use cardano::{Address, keys::SigningKey};
use clap::Args;

/// `cargo xtask address NAME`
#[derive(Args)]
pub struct AddressArguments {
    /// The environment variable with the secret: 64 hexadecimal characters.
    name: String,
}

/// A secret that is missing or unusable.
#[derive(Debug, thiserror::Error)]
#[error("{0} must be set to 64 hexadecimal characters (32 random bytes)")]
pub struct SecretError(String);

/// The key whose secret an environment variable holds.
///
/// # Errors
/// Not set, or unusable.
pub fn key(name: &str) -> Result<SigningKey, SecretError> {
    let unusable = || SecretError(name.to_owned());
    let text = std::env::var(name).map_err(|_| unusable())?;
    let seed: [u8; 32] = hex::decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(unusable)?;
    SigningKey::from_seed(&seed).map_err(|_| unusable())
}

/// Prints the preprod enterprise address and the key hash of a secret.
///
/// # Errors
/// As [`key`].
pub fn run(arguments: &AddressArguments) -> Result<(), SecretError> {
    let key = key(&arguments.name)?;
    let address: Address = key.enterprise_address();
    println!("address  {address}");
    println!("keyhash  {}", key.key_hash());
    Ok(())
}
