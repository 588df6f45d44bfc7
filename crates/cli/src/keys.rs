//! The keys of a wallet: the key of its first address, and a key for each other used address of its account.

use cardano::{Address, KeyHash, keys::SigningKey};

/// The address belongs to another wallet.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no address of this wallet: another one paid (--wallet NAME)")]
pub struct NotOwner(Address);

/// The keys of a wallet.
pub struct Keys {
    first: SigningKey,
    others: Vec<SigningKey>,
}

impl Keys {
    pub const fn new(first: SigningKey, others: Vec<SigningKey>) -> Self {
        Self { first, others }
    }

    /// Returns the key of the first address. The wallet sells with this key, and is paid at this address.
    pub const fn first(&self) -> &SigningKey {
        &self.first
    }

    /// Returns the first address, which receives the change.
    pub fn address(&self) -> Address {
        self.first.address()
    }

    /// Returns all keys of the wallet, starting with the key of its first address.
    pub fn all(&self) -> impl Iterator<Item = &SigningKey> {
        [&self.first].into_iter().chain(&self.others)
    }

    /// Returns the addresses of all keys, starting with the first address.
    pub fn addresses(&self) -> Vec<Address> {
        self.all().map(SigningKey::address).collect()
    }

    /// Returns the wallet's key with this hash, or `None` if the wallet has no such key.
    pub fn of(&self, hash: &KeyHash) -> Option<&SigningKey> {
        self.all().find(|key| key.key_hash() == *hash)
    }

    /// Returns the key of one of the wallet's addresses.
    ///
    /// # Errors
    /// [`NotOwner`] if the address belongs to another wallet.
    pub fn owner(&self, address: &Address) -> Result<&SigningKey, NotOwner> {
        self.of(address.payment_key()).ok_or(NotOwner(*address))
    }
}
