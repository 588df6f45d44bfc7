//! The platform's keys: one store for every worker that signs.
//!
//! ```text
//! account.key_version   secret
//!   0                   DEMO_SECRET                the shared demo wallet
//!   1                   WALLET_MASTER_SECRET
//!   n                   WALLET_MASTER_SECRET_n
//! ```
//!
//! `WALLET_KEY_VERSION` says from which version new wallets are made. Old secrets stay: their wallets hold money.

use std::{borrow::Cow, collections::BTreeMap};

use cardano::{
    Address,
    keys::{MIN_MASTER_BYTES, SigningKey, derive_receipt_key, derive_wallet_key},
};
use market::account::{DEMO_KEY_VERSION, DEMO_OWNER};
use zeroize::Zeroizing;

use crate::settings::{self, Lookup, SettingError};

/// The version of the master secret that `WALLET_MASTER_SECRET` holds; later ones carry their number in the name.
const FIRST_VERSION: u32 = 1;
/// The most versions there can be: each is looked up once in an isolate's life.
const LAST_VERSION: u32 = 32;
/// Which version new wallets are made from.
const KEY_VERSION: &str = "WALLET_KEY_VERSION";
/// The seller of record's key.
const SELLER: &str = "SELLER_SECRET";

/// The name of the secret behind the wallets of a version.
fn secret_name(version: u32) -> Cow<'static, str> {
    match version {
        DEMO_KEY_VERSION => "DEMO_SECRET".into(),
        FIRST_VERSION => "WALLET_MASTER_SECRET".into(),
        _ => format!("WALLET_MASTER_SECRET_{version}").into(),
    }
}

type Master = Zeroizing<Vec<u8>>;

/// Keys as the operator configured them. A secret that is missing or unusable is an error only where it is needed.
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

    /// The versions whose secrets are there, for operators who add one: `0,1,2`.
    #[must_use]
    pub fn versions(&self) -> String {
        let there = self.masters.iter().filter(|(_, master)| master.is_ok()).map(|(version, _)| version.to_string());
        there.collect::<Vec<_>>().join(",")
    }

    /// The version of the master secret from which new wallets are made.
    ///
    /// # Errors
    /// `WALLET_KEY_VERSION` is not a version.
    pub fn current_version(&self) -> Result<u32, SettingError> {
        self.current.clone()
    }

    /// The master secret of a version, for what else is derived from it under a name of its own.
    ///
    /// # Errors
    /// It is not set, or unusable.
    pub fn master(&self, version: u32) -> Result<&[u8], SettingError> {
        let unknown = || SettingError { name: secret_name(version), problem: settings::NOT_SET };
        match self.masters.get(&version) {
            None => Err(unknown()),
            Some(Ok(secret)) => Ok(secret),
            Some(Err(error)) => Err(error.clone()),
        }
    }

    /// The key of an owner's service wallet under a version of the master secret.
    ///
    /// # Errors
    /// The secret is not set, or unusable.
    pub fn wallet(&self, version: u32, owner: &str) -> Result<SigningKey, SettingError> {
        // The demo wallet and its secret go together: no other owner's key comes from it, and its key from no other.
        let version = if owner == DEMO_OWNER { DEMO_KEY_VERSION } else { version.max(FIRST_VERSION) };
        let unusable = SettingError { name: secret_name(version), problem: "is not a secret to derive keys from" };
        derive_wallet_key(self.master(version)?, version, owner).map_err(|_| unusable)
    }

    /// The key of a service wallet on record: for its address and no other.
    ///
    /// # Errors
    /// As [`KeyStore::wallet`]; or the secret is not the one that the wallet was made with.
    pub fn wallet_at(&self, version: u32, owner: &str, address: &Address) -> Result<SigningKey, SettingError> {
        let key = self.wallet(version, owner)?;
        if key.enterprise_address() == *address {
            return Ok(key);
        }
        Err(SettingError { name: secret_name(version), problem: "is not the one this wallet was made with" })
    }

    /// The key that signs receipts under a version of the master secret.
    ///
    /// # Errors
    /// The secret is not set, or unusable.
    pub fn receipts(&self, version: u32) -> Result<SigningKey, SettingError> {
        let unusable = SettingError { name: secret_name(version), problem: "is not a secret to derive keys from" };
        derive_receipt_key(self.master(version)?, version).map_err(|_| unusable)
    }

    /// Every key that receipts were or are signed with, by its version: what verifies an old receipt stays published.
    #[must_use]
    pub fn receipt_keys(&self) -> Vec<(u32, SigningKey)> {
        let versions = self.masters.keys().filter(|version| **version >= FIRST_VERSION);
        versions.filter_map(|version| Some((*version, self.receipts(*version).ok()?))).collect()
    }

    /// The seller of record's key; `None` where it is not set.
    ///
    /// # Errors
    /// It is set and unusable.
    pub fn seller(&self) -> Result<Option<&SigningKey>, SettingError> {
        self.seller.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// The seller of record's key, where protected sales need it.
    ///
    /// # Errors
    /// It is not set, or unusable.
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
        // A worker that was not told of the new version, but has its secret, finds both wallets.
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
