//! Tests of properties that hold for all inputs.

use proptest::prelude::*;

use super::{forge::*, *};
use crate::keys::{Native, SigningKey};

fn accepts(key: &[u8], sign1: &[u8]) -> bool {
    let verdict = SignedMessage::parse(key, sign1)
        .and_then(|message| message.check(&owner(), &DIGEST))
        .map(|it| Native::verify(&it.public_key, &it.message, &it.signature));
    verdict == Ok(Ok(()))
}

/// Returns a valid message in every layout that is accepted.
fn layouts() -> Vec<Forged> {
    let with_key_id = |key_id: &[u8]| {
        Forge::valid().with(|it| {
            it.key.insert(1, (int(2), bytes(key_id)));
            it.protected.insert(1, (int(4), bytes(key_id)));
        })
    };
    let ours = sign(&payment_key(), &owner(), &DIGEST).unwrap();
    let ours = Forged { key: ours.key, sign1: ours.signature };
    let mut tagged = Forge::valid().build();
    tagged.sign1.insert(0, 0xd2);
    vec![
        Forge::valid().build(),
        Forge::hashed().build(),
        with_key_id(&owner().to_bytes()).build(),
        with_key_id(&payment_key().public_key()).build(),
        Forge::valid().with(|it| it.key.push((int(2), bytes(payment_key().key_hash().as_bytes())))).build(),
        Forge::valid().with(|it| it.key.push((int(4), Value::Array(vec![int(2)])))).build(),
        Forge::valid().with(|it| it.unprotected.push((text("version"), int(1)))).build(),
        Forge::valid().with(|it| it.unprotected.push((int(4), bytes(&payment_key().public_key())))).build(),
        tagged,
        ours,
    ]
}

#[test]
fn every_flipped_bit_is_refused() {
    for forged in layouts() {
        assert!(accepts(&forged.key, &forged.sign1), "{forged:?}");
        for bit in 0..forged.key.len() * 8 {
            let mut key = forged.key.clone();
            key[bit / 8] ^= 1 << (bit % 8);
            assert!(!accepts(&key, &forged.sign1), "bit {bit} of the key: {}", hex::encode(key));
        }
        for bit in 0..forged.sign1.len() * 8 {
            let mut sign1 = forged.sign1.clone();
            sign1[bit / 8] ^= 1 << (bit % 8);
            assert!(!accepts(&forged.key, &sign1), "bit {bit} of the signature: {}", hex::encode(sign1));
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for forged in layouts() {
        for length in 0..forged.key.len() {
            assert!(!accepts(&forged.key[..length], &forged.sign1));
        }
        for length in 0..forged.sign1.len() {
            assert!(!accepts(&forged.key, &forged.sign1[..length]));
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(
        key in proptest::collection::vec(any::<u8>(), 0..120),
        sign1 in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        prop_assert!(!accepts(&key, &sign1));
        let valid = Forge::valid().build();
        prop_assert!(!accepts(&valid.key, &sign1));
        prop_assert!(!accepts(&key, &valid.sign1));
    }

    #[test]
    fn no_text_panics(key in ".{0,90}", sign1 in ".{0,90}") {
        let read = DataSignature::from_hex(&key, &sign1);
        prop_assert!(read.is_err() || read.is_ok_and(|it| SignedMessage::parse(&it.key, &it.signature).is_err()));
    }

    #[test]
    fn every_changed_byte_is_refused(layout in 0usize..8, at in 0usize..400, change in 1u8..=255) {
        let mut forged = layouts().swap_remove(layout);
        let at = at % (forged.key.len() + forged.sign1.len());
        match at.checked_sub(forged.key.len()) {
            None => forged.key[at] ^= change,
            Some(at) => forged.sign1[at] ^= change,
        }
        prop_assert!(!accepts(&forged.key, &forged.sign1));
    }

    #[test]
    fn spliced_and_overwritten_messages_are_refused(
        layout in 0usize..8,
        at in 0usize..200,
        insert in proptest::collection::vec(any::<u8>(), 1..9),
        overwrite in any::<bool>(),
    ) {
        let forged = layouts().swap_remove(layout);
        let at = at.min(forged.sign1.len());
        let mut sign1 = forged.sign1.clone();
        let end = if overwrite { (at + insert.len()).min(sign1.len()) } else { at };
        sign1.splice(at..end, insert);
        prop_assume!(sign1 != forged.sign1);
        prop_assert!(!accepts(&forged.key, &sign1));
    }

    #[test]
    fn a_signature_is_accepted_for_its_address_and_payload_alone(
        seed in any::<[u8; 32]>().prop_filter("not zeros", |seed| *seed != [0; 32]),
        payload in proptest::collection::vec(any::<u8>(), 0..64),
        stake in proptest::option::of(any::<[u8; 28]>()),
    ) {
        let key = SigningKey::from_seed(&seed).unwrap();
        let enterprise = key.enterprise_address();
        let address = stake.map_or(enterprise, |hash| Address::base(key.key_hash(), crate::address::Credential::Script(crate::ScriptHash::new(hash))));
        let signed = sign(&key, &address, &payload).unwrap();
        let message = SignedMessage::parse(&signed.key, &signed.signature).unwrap();
        let unverified = message.check(&address, &payload).unwrap();
        prop_assert_eq!(Native::verify(&unverified.public_key, &unverified.message, &unverified.signature), Ok(()));
        prop_assert_eq!(message.check(&owner(), &payload), Err(Cip8Error::OtherAddress));
        prop_assert_eq!(message.check(&address, &DIGEST), Err(Cip8Error::OtherPayload));
        if stake.is_some() {
            prop_assert_eq!(message.check(&enterprise, &payload), Err(Cip8Error::OtherAddress));
        }
    }
}
