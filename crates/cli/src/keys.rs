//! The keys of a wallet: one for its first address, and one for each other used address of its account.

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

    /// Returns the key of the first address, with which the wallet signs in and sells, and at which it is paid.
    pub const fn first(&self) -> &SigningKey {
        &self.first
    }

    /// Returns the first address, to which change goes.
    pub fn address(&self) -> Address {
        self.first.address()
    }

    /// Returns all keys of the wallet, beginning with the first address's.
    pub fn all(&self) -> impl Iterator<Item = &SigningKey> {
        [&self.first].into_iter().chain(&self.others)
    }

    /// Returns the addresses of all keys, beginning with the first address.
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
