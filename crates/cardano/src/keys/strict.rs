//! Rejects the keys and signatures on which Ed25519 verifiers disagree.
//!
//! A signature that passes here but not on the ledger (libsodium) would release content for a transaction that can
//! never be included. WebCrypto in workerd accepts points of small order, so this check runs before every verifier.
//! Verifiers must not multiply by the cofactor; `ed25519-compact` does, and is used only to sign. All verifiers are
//! tested with the vectors of "Taming the many EdDSAs" (`tests/support/fixtures/cip8/strictness.json`).
//!
//! The rules are those of libsodium's `crypto_sign_verify_detached` (RFC 8032, section 5.1.7, and no points of small
//! order): S reduced, A and R canonically encoded, neither of small order. They need no curve arithmetic, because a
//! point is encoded as its y coordinate and a sign bit, and only five values of y belong to points whose order divides
//! 8.

use super::{Point, SignatureError};

/// The field's prime, 2^255 - 19, little endian.
const PRIME: [u8; 32] = {
    let mut p = [0xff; 32];
    p[0] = 0xed;
    p[31] = 0x7f;
    p
};

/// Order of the prime-order subgroup, 2^252 + 27742317777372353535851937790883648493, little endian.
const GROUP_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The five y coordinates that the eight points of small order have, little endian.
const SMALL_ORDER_Y: [[u8; 32]; 5] = [
    // y = 0: order 4.
    [0; 32],
    // y = 1: the neutral element.
    {
        let mut one = [0; 32];
        one[0] = 1;
        one
    },
    // y = -1: order 2.
    {
        let mut minus_one = PRIME;
        minus_one[0] = 0xec;
        minus_one
    },
    // The two y coordinates of the points of order 8.
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

/// Rejects public keys and signatures on whose encoding verifiers disagree. A signature that passes must still be
/// verified.
///
/// # Errors
/// Returns the rule that the key or the signature breaks.
pub fn check(key: &[u8; 32], signature: &[u8; 64]) -> Result<(), SignatureError> {
    let (commitment, scalar) = signature.split_at(32);
    if !is_below(scalar, &GROUP_ORDER) {
        return Err(SignatureError::ScalarNotReduced);
    }
    check_point(key, Point::PublicKey)?;
    check_point(commitment, Point::Commitment)
}

fn check_point(encoded: &[u8], which: Point) -> Result<(), SignatureError> {
    let mut y = [0; 32];
    for (to, from) in y.iter_mut().zip(encoded) {
        *to = *from;
    }
    // The top bit is the sign of x.
    if let Some(top) = y.last_mut() {
        *top &= 0x7f;
    }
    if !is_below(&y, &PRIME) {
        return Err(SignatureError::NonCanonicalPoint(which));
    }
    if SMALL_ORDER_Y.contains(&y) {
        return Err(SignatureError::SmallOrder(which));
    }
    Ok(())
}

/// Returns `true` if a little-endian number is below another one of the same length.
fn is_below(number: &[u8], bound: &[u8]) -> bool {
    number.iter().rev().lt(bound.iter().rev())
}
