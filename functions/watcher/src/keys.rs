//! The keys that the watcher acts with: the seller of record's, and those of service wallets.

use cardano::keys::{SigningKey, derive_wallet_key};
use edge::settings::{self, SettingError};
use market::watch::{Holder, act::Keys};
use worker::{Env, console_error};
use zeroize::Zeroizing;

/// What the operator configured.
pub struct PlatformKeys {
    seller: Option<SigningKey>,
    master: Option<Zeroizing<Vec<u8>>>,
}

impl PlatformKeys {
    /// The keys that are set. Without the seller's nothing is done, without the master secret nothing for buyers.
    ///
    /// # Errors
    /// A secret that is there and unusable.
    pub fn configured(env: &Env) -> Result<Self, SettingError> {
        const SELLER: &str = "SELLER_SECRET";
        const MASTER: &str = "WALLET_MASTER_SECRET";
        let set = |name| settings::optional(env, name).is_some();
        let seller = set(SELLER).then(|| settings::signing_key(env, SELLER)).transpose()?;
        let master = set(MASTER).then(|| settings::secret_bytes(env, MASTER)).transpose()?;
        Ok(Self { seller, master })
    }
}

impl Keys for PlatformKeys {
    fn seller(&self) -> Option<&SigningKey> {
        self.seller.as_ref()
    }

    fn buyer(&self, holder: &Holder) -> Option<SigningKey> {
        let key = derive_wallet_key(self.master.as_ref()?, holder.key_version, &holder.owner).ok()?;
        if key.enterprise_address() == holder.wallet {
            return Some(key);
        }
        console_error!("WALLET_MASTER_SECRET is not the one that {} was made with", holder.wallet);
        None
    }
}
