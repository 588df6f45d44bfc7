//! The platform's keys, shared by all workers that sign.
//!
//! ```text
//! account.key_version   secret
//!   0                   DEMO_SECRET                the shared demo wallet
//!   1                   WALLET_MASTER_SECRET
//!   n                   WALLET_MASTER_SECRET_n
//! ```
//!
//! `WALLET_KEY_VERSION` selects the version for new wallets. Old secrets must stay set, because their wallets hold
//! money.

use std::{borrow::Cow, collections::BTreeMap};

use cardano::{
    Address,
    keys::{MIN_MASTER_BYTES, SigningKey, derive_receipt_key, derive_wallet_key},
};
use market::account::{DEMO_KEY_VERSION, DEMO_OWNER};
use zeroize::Zeroizing;

use crate::settings::{self, Lookup, SettingError};

/// First version of the master secret. Its setting is `WALLET_MASTER_SECRET`; the settings of later versions have the
/// version as a suffix, as in `WALLET_MASTER_SECRET_2`.
const FIRST_VERSION: u32 = 1;
/// Maximum version of the master secret. It is low, because every isolate looks up the settings of all versions.
const LAST_VERSION: u32 = 32;
/// Setting that selects the version of the master secret for new wallets.
const KEY_VERSION: &str = "WALLET_KEY_VERSION";
/// Setting with the secret key of the platform as seller of record.
const SELLER: &str = "SELLER_SECRET";

/// Returns the name of the setting with the master secret of a version.
fn secret_name(version: u32) -> Cow<'static, str> {
    match version {
        DEMO_KEY_VERSION => "DEMO_SECRET".into(),
        FIRST_VERSION => "WALLET_MASTER_SECRET".into(),
        _ => format!("WALLET_MASTER_SECRET_{version}").into(),
    }
}

type Master = Zeroizing<Vec<u8>>;

/// The configured keys. A missing or invalid secret causes an error only where it is used.
pub struct KeyStore {
    masters: BTreeMap<u32, Result<Master, SettingError>>,
    current: Result<u32, SettingError>,
    seller: Result<Option<SigningKey>, SettingError>,
}

fn master(lookup: &Lookup<'_>, version: u32) -> Result<Master, SettingError> {
    let name = secret_name(version);
    let secret = settings::secret_bytes(lookup, name.clone())?;
    if secret.len() < MIN_MASTER_BYTES {
        return Err(SettingError { name, problem: "must be at least 64 hexadecimal characters (32 random bytes)" });
    }
    Ok(secret)
}

fn current(lookup: &Lookup<'_>) -> Result<u32, SettingError> {
    let (first, last) = (FIRST_VERSION.into(), LAST_VERSION.into());
    let problem = "must be a whole number from 1 to 32";
    let version = settings::whole_number(lookup, KEY_VERSION, first, first..=last, problem)?;
    Ok(u32::try_from(version).unwrap_or(LAST_VERSION))
}

impl KeyStore {
    /// Reads every secret that is set.
    #[must_use]
    pub fn read(lookup: &Lookup<'_>) -> Self {
        let versions = DEMO_KEY_VERSION..=LAST_VERSION;
        Self {
            masters: versions.map(|version| (version, master(lookup, version))).collect(),
            current: current(lookup),
            seller: lookup(SELLER).map(|_| settings::signing_key(lookup, SELLER)).transpose(),
        }
    }

    /// Returns the versions whose master secrets are set, separated by commas (`0,1,2`), for operators who add a
    /// secret.
    #[must_use]
    pub fn versions(&self) -> String {
        let there = self.masters.iter().filter(|(_, master)| master.is_ok()).map(|(version, _)| version.to_string());
        there.collect::<Vec<_>>().join(",")
    }

    /// Returns the version of the master secret for new wallets.
    ///
    /// # Errors
    /// [`SettingError`] if `WALLET_KEY_VERSION` is invalid.
    pub fn current_version(&self) -> Result<u32, SettingError> {
        self.current.clone()
    }

    /// Returns the master secret of a version. Keys for different uses are derived from it with different domain
    /// separators.
    ///
    /// # Errors
    /// [`SettingError`] if the secret is not set or invalid.
    pub fn master(&self, version: u32) -> Result<&[u8], SettingError> {
        let unknown = || SettingError { name: secret_name(version), problem: settings::NOT_SET };
        match self.masters.get(&version) {
            None => Err(unknown()),
            Some(Ok(secret)) => Ok(secret),
            Some(Err(error)) => Err(error.clone()),
        }
    }

    /// Returns the key of an owner's service wallet under a version of the master secret.
    ///
    /// # Errors
    /// [`SettingError`] if the secret is not set or invalid.
    pub fn wallet(&self, version: u32, owner: &str) -> Result<SigningKey, SettingError> {
        // The demo secret is only for the demo wallet: no other owner's key is derived from it, and the demo
        // wallet's key is derived from no other secret.
        let version = if owner == DEMO_OWNER { DEMO_KEY_VERSION } else { version.max(FIRST_VERSION) };
        let unusable = SettingError { name: secret_name(version), problem: "is not a secret to derive keys from" };
        derive_wallet_key(self.master(version)?, version, owner).map_err(|_| unusable)
    }

    /// Returns the key of an owner's service wallet, and checks that it matches the wallet's stored address.
    ///
    /// # Errors
    /// Returns the errors of [`KeyStore::wallet`]. Returns an error if the stored address belongs to another key,
    /// because the wallet was created with another secret.
    pub fn wallet_at(&self, version: u32, owner: &str, address: &Address) -> Result<SigningKey, SettingError> {
        let key = self.wallet(version, owner)?;
        if key.enterprise_address() == *address {
            return Ok(key);
        }
        Err(SettingError { name: secret_name(version), problem: "is not the one this wallet was made with" })
    }

    /// Returns the key that signs receipts under a version of the master secret.
    ///
    /// # Errors
    /// [`SettingError`] if the secret is not set or invalid.
    pub fn receipts(&self, version: u32) -> Result<SigningKey, SettingError> {
        let unusable = SettingError { name: secret_name(version), problem: "is not a secret to derive keys from" };
        derive_receipt_key(self.master(version)?, version).map_err(|_| unusable)
    }

    /// Returns every key that signs or signed receipts, by version. Old keys stay published so that old receipts can be
    /// verified.
    #[must_use]
    pub fn receipt_keys(&self) -> Vec<(u32, SigningKey)> {
        let versions = self.masters.keys().filter(|version| **version >= FIRST_VERSION);
        versions.filter_map(|version| Some((*version, self.receipts(*version).ok()?))).collect()
    }

    /// Returns the seller of record's key, or `None` if it is not set.
    ///
    /// # Errors
    /// [`SettingError`] if it is set but invalid.
    pub fn seller(&self) -> Result<Option<&SigningKey>, SettingError> {
        self.seller.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// Returns the seller of record's key, for protected sales.
    ///
    /// # Errors
    /// [`SettingError`] if it is not set or invalid.
    pub fn required_seller(&self) -> Result<&SigningKey, SettingError> {
        self.seller()?.ok_or(SettingError { name: SELLER.into(), problem: settings::NOT_SET })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

    fn store(secrets: &[(&str, String)]) -> KeyStore {
        let find = |name: &str| secrets.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        KeyStore::read(&find)
    }

    fn secret(byte: u8) -> String {
        hex::encode([byte; 32])
    }

    #[test]
    fn a_rotation_keeps_old_wallets_and_makes_new_ones_from_the_new_secret() {
        let before = store(&[("WALLET_MASTER_SECRET", secret(1))]);
        let old = before.wallet(before.current_version().unwrap(), OWNER).unwrap().enterprise_address();
        let after = store(&[
            ("WALLET_MASTER_SECRET", secret(1)),
            ("WALLET_MASTER_SECRET_2", secret(2)),
            ("WALLET_KEY_VERSION", "2".into()),
        ]);
        assert_eq!(after.wallet_at(1, OWNER, &old).unwrap().enterprise_address(), old);
        assert_eq!(after.current_version(), Ok(2));
        let new = after.wallet(2, OWNER).unwrap().enterprise_address();
        assert_ne!(new, old);
        // A worker that has the new secret, but not the new version number, derives both wallets' keys.
        let untold = store(&[("WALLET_MASTER_SECRET", secret(1)), ("WALLET_MASTER_SECRET_2", secret(2))]);
        assert!(untold.wallet_at(2, OWNER, &new).is_ok() && untold.wallet_at(1, OWNER, &old).is_ok());
    }

    #[test]
    fn a_secret_that_was_replaced_signs_nothing_and_is_named() {
        let old = store(&[("WALLET_MASTER_SECRET", secret(1))]).wallet(1, OWNER).unwrap().enterprise_address();
        let replaced = store(&[("WALLET_MASTER_SECRET", secret(2))]);
        let error = replaced.wallet_at(1, OWNER, &old).unwrap_err();
        assert_eq!(error.to_string(), "WALLET_MASTER_SECRET is not the one this wallet was made with");
        let missing = replaced.wallet(2, OWNER).unwrap_err();
        assert_eq!(missing.to_string(), "WALLET_MASTER_SECRET_2 is not set");
    }

    #[test]
    fn the_demo_wallet_has_a_secret_of_its_own_that_makes_no_other() {
        let keys = store(&[("DEMO_SECRET", secret(3)), ("WALLET_MASTER_SECRET", secret(1))]);
        let demo = keys.wallet(DEMO_KEY_VERSION, DEMO_OWNER).unwrap().enterprise_address();
        assert_eq!(keys.wallet(1, DEMO_OWNER).unwrap().enterprise_address(), demo);
        let only_demo = store(&[("DEMO_SECRET", secret(3))]);
        assert!(only_demo.wallet(DEMO_KEY_VERSION, OWNER).is_err());
    }

    #[test]
    fn receipts_have_keys_of_their_own_and_old_ones_stay_known() {
        let keys = store(&[
            ("DEMO_SECRET", secret(3)),
            ("WALLET_MASTER_SECRET", secret(1)),
            ("WALLET_MASTER_SECRET_2", secret(2)),
            ("WALLET_KEY_VERSION", "2".into()),
            ("SELLER_SECRET", secret(4)),
        ]);
        let versions: Vec<u32> = keys.receipt_keys().iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, [1, 2]);
        let own = keys.receipts(2).unwrap().public_key();
        assert_ne!(own, keys.receipts(1).unwrap().public_key());
        assert_ne!(own, keys.required_seller().unwrap().public_key());
        assert_ne!(own, keys.wallet(2, "").unwrap().public_key());
    }

    #[test]
    fn an_unusable_secret_fails_only_its_users() {
        for (value, problem) in [
            ("11".repeat(31), "WALLET_MASTER_SECRET must be at least 64 hexadecimal characters (32 random bytes)"),
            ("not hexadecimal".into(), "WALLET_MASTER_SECRET must be hexadecimal"),
        ] {
            let keys = store(&[("WALLET_MASTER_SECRET", value), ("SELLER_SECRET", secret(4))]);
            assert_eq!(keys.wallet(1, OWNER).unwrap_err().to_string(), problem);
            assert!(keys.seller().unwrap().is_some());
        }
        for version in ["0", "33", "newest", "-1"] {
            let keys = store(&[("WALLET_KEY_VERSION", version.into())]);
            assert!(keys.current_version().is_err());
        }
    }
}
