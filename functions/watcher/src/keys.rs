//! The keys of the watcher: the platform's, and those of service wallets.

use std::rc::Rc;

use cardano::{Address, keys::SigningKey};
use edge::{keys::KeyStore, settings::SettingError};
use market::watch::{Keys, ServiceWallet};

/// The configured keys. Without the seller's key, the watcher does not act as seller. Each service wallet's key is
/// derived from a version of the master secret; without that version, the watcher does not act for the wallet.
pub struct PlatformKeys(Rc<KeyStore>);

impl PlatformKeys {
    /// Creates the keys, after checking the seller's key if it is set.
    ///
    /// # Errors
    /// Returns an error if the seller's key is invalid.
    pub fn new(keys: Rc<KeyStore>) -> Result<Self, SettingError> {
        keys.seller()?;
        Ok(Self(keys))
    }
}

/// A service wallet whose key cannot be derived, so that the watcher cannot act for it.
#[derive(Debug, thiserror::Error)]
#[error("the service wallet {0} cannot be protected: {1}")]
struct Unprotected(Address, SettingError);

impl Keys for PlatformKeys {
    fn seller(&self) -> Option<&SigningKey> {
        self.0.seller().ok().flatten()
    }

    fn versions(&self) -> String {
        self.0.versions()
    }

    fn buyer(&self, wallet: &ServiceWallet) -> Option<SigningKey> {
        let key = self.0.wallet_at(wallet.key_version, &wallet.owner, &wallet.address);
        key.inspect_err(|error| edge::log::fault(&Unprotected(wallet.address, error.clone()))).ok()
    }
}
