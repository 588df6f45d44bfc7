//! Tests of rejected messages, each next to the most similar message that is accepted.

use ciborium::Value;

use super::{forge::*, *};
use crate::{
    address::{AddressError, Credential},
    hash::blake2b,
    keys::{Native, Point, SigningKey},
};

fn verdict_for(forged: &Forged, claimed: &Address, payload: &[u8]) -> Result<(), Cip8Error> {
    let it = SignedMessage::parse(&forged.key, &forged.sign1)?.check(claimed, payload)?;
    Ok(Native::verify(&it.public_key, &it.message, &it.signature)?)
}

fn verdict(forge: Forge) -> Result<(), Cip8Error> {
    verdict_for(&forge.build(), &owner(), &DIGEST)
}

fn valid_but(change: impl FnOnce(&mut Forge)) -> Result<(), Cip8Error> {
    verdict(Forge::valid().with(change))
}

/// Edits the bytes of a valid message, and verifies the result.
fn edited(edit: impl FnOnce(&mut Forged)) -> Result<(), Cip8Error> {
    let mut forged = Forge::valid().build();
    edit(&mut forged);
    verdict_for(&forged, &owner(), &DIGEST)
}

/// Replaces the bytes `from`, which must occur exactly once, by `to`.
fn replace(bytes: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let at: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert_eq!(at.len(), 1, "{} in {}", hex::encode(from), hex::encode(&*bytes));
    bytes.splice(at[0]..at[0] + from.len(), to.iter().copied());
}

const OK: Result<(), Cip8Error> = Ok(());

mod encoding;
mod key_and_algorithm;
mod payload;
mod signature;
mod signer;
