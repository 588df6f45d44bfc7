//! Identifies the buyers of purchases by the payment key that paid.
//!
//! A payment key has several addresses: an enterprise address, and a base address for each stake credential. Wallets
//! list them in varying order. If addresses were compared, a buyer who returns with another address of the same key
//! would be charged again. Stake keys do not identify a buyer, because anyone can create an address with another
//! person's stake credential.

use cardano::KeyHash;
use sql::Param;

/// Returns the SQL for a table of a buyer's payment keys, with one column `value`.
///
/// `array` is SQL for a JSON array of keys. The table contains these keys. If one of them owns an account, the table
/// also contains the key of the account's service wallet.
pub(crate) fn keys(array: &str) -> String {
    format!(
        "(SELECT value FROM json_each({array}) \
          UNION SELECT wallet_key FROM json_each({array}) JOIN accounts ON owner_key = value)"
    )
}

/// Returns the parameter for the SQL of [`keys`]: a buyer's payment keys as a JSON array.
pub(crate) fn parameter(keys: &[KeyHash]) -> Param {
    serde_json::json!(keys).to_string().into()
}
