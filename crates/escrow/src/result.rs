//! The result hash, with which the seller commits on the chain to the delivered text.

use cardano::{ContentHash, TxHash};

/// Computes the result hash: the SHA-256 of the lock transaction's id in lowercase hex, a semicolon, and the delivered
/// text (MIP-004, with the lock's id in place of the purchaser's identifier).
#[must_use]
pub fn result_hash(lock: &TxHash, output: &str) -> ContentHash {
    let mut text = lock.to_string();
    text.push(';');
    text.push_str(output);
    ContentHash::of(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_the_lock_and_the_output() {
        let lock = TxHash::new([0xab; 32]);
        // Result of `sha256sum` for "abab…ab;a prompt".
        assert_eq!(result_hash(&lock, "a prompt").to_string(), EXPECTED);
        assert_ne!(result_hash(&lock, "a prompt "), result_hash(&lock, "a prompt"));
        assert_ne!(result_hash(&TxHash::new([0; 32]), "a prompt"), result_hash(&lock, "a prompt"));
    }

    const EXPECTED: &str = "fb868e63ddb4716711c6c47f6d60e3db6a5eee111810e9ad8a3dfa88533ca45c";
}
