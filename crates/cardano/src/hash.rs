//! Hash types: 32 bytes for transactions and content, 28 bytes for credentials; lowercase hex in text.

use std::{fmt, str::FromStr};

use cryptoxide::blake2b::Blake2b;
use sha2::{Digest, Sha256};

/// Encodes bytes as lowercase hex, about ten times as fast as `hex::encode`. Public only for x402-cardano.
#[doc(hidden)]
#[must_use]
pub fn to_hex(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = vec![0; bytes.len().saturating_mul(2)];
    // Cannot fail: the buffer has twice the input's length.
    let _ = hex::encode_to_slice(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// The text is not a hash of the expected length in lowercase hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} lowercase hexadecimal characters")]
pub struct HashError {
    expected: usize,
}

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Creates a hash from its bytes.
            #[must_use]
            pub const fn new(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes of the hash.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }

            /// Creates a hash from a slice, or returns `None` if the length is wrong.
            #[must_use]
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; $bytes * 2];
                hex::encode_to_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
                f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = HashError;

            fn from_str(text: &str) -> Result<Self, HashError> {
                let error = HashError { expected: $bytes * 2 };
                if text.len() != $bytes * 2 || text.bytes().any(|b| b.is_ascii_uppercase()) {
                    return Err(error);
                }
                let mut bytes = [0; $bytes];
                hex::decode_to_slice(text, &mut bytes).map_err(|_| error)?;
                Ok(Self(bytes))
            }
        }

        serialized_as_text!($name);
    };
}

hash_type!(
    /// A transaction id: BLAKE2b-256 of the transaction body's bytes as received.
    TxHash, 32
);
hash_type!(
    /// SHA-256 of a listing's content, of a signed text, or of another document.
    ContentHash, 32
);
hash_type!(
    /// A key credential: BLAKE2b-224 of an Ed25519 public key.
    KeyHash, 28
);
hash_type!(
    /// A script credential: BLAKE2b-224 of a language tag and the script.
    ScriptHash, 28
);

impl TxHash {
    /// Computes the id of the transaction with this body. `body` must be exactly the CBOR bytes that are signed.
    #[must_use]
    pub fn of_body(body: &[u8]) -> Self {
        Self(blake2b(body))
    }
}

impl ContentHash {
    /// Computes the SHA-256 of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl KeyHash {
    /// Computes the credential of an Ed25519 public key.
    #[must_use]
    pub fn of_public_key(key: &[u8; 32]) -> Self {
        Self(blake2b(key))
    }
}

/// Computes a BLAKE2b hash with a length of `N` bytes. The ledger uses the lengths 28 and 32.
#[must_use]
pub fn blake2b<const N: usize>(bytes: &[u8]) -> [u8; N] {
    const { assert!(N >= 1 && N <= 64, "the sizes that BLAKE2b has") };
    let mut out = [0; N];
    Blake2b::blake2b(&mut out, bytes, &[]);
    out
}

/// Reference of a transaction output, `txHash#index` in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxRef {
    /// Transaction that created the output.
    pub tx: TxHash,
    /// Index of the output in that transaction. The ledger allows 0 to 65535.
    pub index: u16,
}

/// The text is not an output reference, `txHash#index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a UTxO reference: 64 lowercase hexadecimal characters, '#', and an index from 0 to 65535")]
pub struct TxRefError;

impl fmt::Display for TxRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.tx, self.index)
    }
}

impl FromStr for TxRef {
    type Err = TxRefError;

    fn from_str(text: &str) -> Result<Self, TxRefError> {
        let (tx, index) = text.split_once('#').ok_or(TxRefError)?;
        let canonical = index == "0" || !index.starts_with('0');
        if !canonical || !index.bytes().all(|b| b.is_ascii_digit()) {
            return Err(TxRefError);
        }
        Ok(Self { tx: tx.parse().map_err(|_| TxRefError)?, index: index.parse().map_err(|_| TxRefError)? })
    }
}

serialized_as_text!(TxRef);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blake2b_hashes_equal_the_ledgers() {
        // RFC 7693's empty-input digests at the two sizes that the ledger uses.
        assert_eq!(hex::encode(blake2b::<32>(b"")), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
        assert_eq!(hex::encode(blake2b::<28>(b"")), "836cc68931c2e4e3e838602eca1902591d216837bafddfe6f0c8cb07");
    }

    #[test]
    fn a_hash_is_lowercase_hex_of_the_right_length() {
        let good = "ab".repeat(32);
        assert_eq!(good.parse::<TxHash>().unwrap().to_string(), good);
        for bad in ["", &"AB".repeat(32), &"ab".repeat(31), &"ab".repeat(33), &"zz".repeat(32), &"é".repeat(32)] {
            assert!(bad.parse::<TxHash>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_utxo_reference_has_one_spelling() {
        let tx = "ab".repeat(32);
        assert_eq!(format!("{tx}#12").parse::<TxRef>().unwrap().to_string(), format!("{tx}#12"));
        for bad in ["", "#", "#0", "65536", "01", "+1", "-1", " 1", ""] {
            assert!(format!("{tx}#{bad}").parse::<TxRef>().is_err(), "{bad}");
        }
    }
}
