//! Whose a purchase is: the payment key's that paid, under whatever address it is known. A base address, an enterprise
//! address and one with another stake part are one buyer.

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
