//! The keys that the watcher acts with: the seller of record's, and those of service wallets.

use std::rc::Rc;

use cardano::{Address, keys::SigningKey};
use edge::{keys::KeyStore, settings::SettingError};
use market::watch::{Keys, ServiceWallet};

/// The platform's keys, as far as they are set. Without the seller's there is no action; without a version's master
/// secret, none for the buyers of its wallets.
pub struct PlatformKeys(Rc<KeyStore>);

impl PlatformKeys {
    /// With a seller's key that can be used, if there is one.
    ///
    /// # Errors
    /// It is there and unusable.
    pub fn new(keys: Rc<KeyStore>) -> Result<Self, SettingError> {
        keys.seller()?;
        Ok(Self(keys))
    }
}

/// A wallet whose key is not to be had here.
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
