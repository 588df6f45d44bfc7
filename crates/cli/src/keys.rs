//! The keys of a wallet: of its first address, and of the other used addresses of its account.

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

    /// The key that the wallet signs in, sells and is paid with.
    pub const fn first(&self) -> &SigningKey {
        &self.first
    }

    /// The first key's address, to which change goes.
    pub fn address(&self) -> Address {
        self.first.address()
    }

    /// All keys, the first one first.
    pub fn all(&self) -> impl Iterator<Item = &SigningKey> {
        [&self.first].into_iter().chain(&self.others)
    }

    /// The addresses of all keys.
    pub fn addresses(&self) -> Vec<Address> {
        self.all().map(SigningKey::address).collect()
    }

    /// The key of this hash; `None` if it is not the wallet's.
    pub fn of(&self, hash: &KeyHash) -> Option<&SigningKey> {
        self.all().find(|key| key.key_hash() == *hash)
    }

    /// The key of an address of the wallet.
    ///
    /// # Errors
    /// [`NotOwner`] if the address belongs to another wallet.
    pub fn owner(&self, address: &Address) -> Result<&SigningKey, NotOwner> {
        self.of(address.payment_key()).ok_or(NotOwner(*address))
    }
}
