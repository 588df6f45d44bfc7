//! Ownership of purchases, by the payment key that paid.
//!
//! One payment key has several addresses: an enterprise address, and a base address for each stake credential. Wallets list
//! them in varying order. Comparing addresses would charge a buyer twice who returns with another address of the same key.
//! Stake keys do not identify a buyer, because anyone can create an address with another person's stake credential.

use cardano::KeyHash;
use sql::Param;

/// SQL for a buyer's payment keys, a table of one column `value`, over SQL for a JSON array of some of them. The table
/// has these, and those of the service wallets of the accounts that they sign in to.
pub(crate) fn keys(array: &str) -> String {
    format!(
        "(SELECT value FROM json_each({array}) \
          UNION SELECT wallet_key FROM json_each({array}) JOIN accounts ON owner_key = value)"
    )
}

/// The parameter that [`keys`] reads.
pub(crate) fn parameter(keys: &[KeyHash]) -> Param {
    serde_json::json!(keys).to_string().into()
}
