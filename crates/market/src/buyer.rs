//! Under which addresses one buyer may own a listing.

/// SQL for a buyer's addresses, over SQL for a JSON array of some of them: these, and the service wallets of the accounts
/// that they sign in to.
pub(crate) fn addresses(array: &str) -> String {
    format!(
        "(SELECT value FROM json_each({array}) \
          UNION SELECT wallet_address FROM accounts WHERE owner IN (SELECT value FROM json_each({array})))"
    )
}
