//! Tests of rejected messages: another signer, or another address.

use super::*;

#[test]
fn the_owners_payment_key_is_accepted_for_base_and_enterprise_addresses() {
    assert_eq!(verdict(Forge::valid()), OK);
    let enterprise = payment_key().enterprise_address();
    let forged = Forge::for_address(payment_key(), &enterprise.to_bytes()).build();
    assert_eq!(verdict_for(&forged, &enterprise, &DIGEST), OK);
}

#[test]
fn another_persons_key_for_the_owners_address_is_refused() {
    let stranger = SigningKey::from_seed(&[9; 32]).unwrap();
    let forge = Forge::for_address(stranger, &owner().to_bytes());
    assert_eq!(verdict(forge), Err(Cip8Error::OtherKey));
}

#[test]
fn the_stake_key_of_the_same_address_is_refused() {
    let forge = Forge::for_address(stake_key(), &owner().to_bytes());
    assert_eq!(verdict(forge), Err(Cip8Error::OtherKey));
}

#[test]
fn a_reward_address_is_refused_even_with_its_own_stake_key() {
    let mut reward = vec![0xe0];
    reward.extend(stake_key().key_hash().as_bytes());
    let forge = Forge::for_address(stake_key(), &reward);
    assert_eq!(verdict(forge), Err(Cip8Error::Address(AddressError::Unsupported)));
}

#[test]
fn the_owners_enterprise_address_is_not_the_owners_base_address() {
    let enterprise = payment_key().enterprise_address();
    let forged = Forge::for_address(payment_key(), &enterprise.to_bytes()).build();
    assert_eq!(verdict_for(&forged, &owner(), &DIGEST), Err(Cip8Error::OtherAddress));
    assert_eq!(verdict_for(&Forge::valid().build(), &enterprise, &DIGEST), Err(Cip8Error::OtherAddress));
}

#[test]
fn the_payment_key_under_another_stake_key_is_refused() {
    let other = Address::base(payment_key().key_hash(), Credential::Key(KeyHash::new([7; 28])));
    let forged = Forge::for_address(payment_key(), &other.to_bytes()).build();
    assert_eq!(verdict_for(&forged, &owner(), &DIGEST), Err(Cip8Error::OtherAddress));
    assert_eq!(verdict_for(&forged, &other, &DIGEST), OK);
}

#[test]
fn a_mainnet_address_is_refused() {
    let mut mainnet = owner().to_bytes();
    mainnet[0] |= 1;
    let forge = Forge::for_address(payment_key(), &mainnet);
    assert_eq!(verdict(forge), Err(Cip8Error::Address(AddressError::WrongNetwork)));
}

#[test]
fn a_script_address_with_the_keys_own_hash_is_refused() {
    let mut script = owner().to_bytes();
    script[0] |= 0x10;
    let forge = Forge::for_address(payment_key(), &script);
    assert_eq!(verdict(forge), Err(Cip8Error::Address(AddressError::Script)));
}

#[test]
fn an_address_with_bytes_after_it_is_refused() {
    let mut longer = owner().to_bytes();
    longer.push(0);
    let forge = Forge::for_address(payment_key(), &longer);
    assert_eq!(verdict(forge), Err(Cip8Error::Address(AddressError::Malformed)));
}

#[test]
fn an_address_as_text_is_refused() {
    let spelled = owner().to_string();
    assert_eq!(valid_but(|it| it.protected[1].1 = text(&spelled)), Err(Cip8Error::NoAddress));
}

#[test]
fn a_signature_without_an_address_is_refused() {
    assert_eq!(valid_but(|it| it.protected.truncate(1)), Err(Cip8Error::NoAddress));
}

#[test]
fn an_address_that_is_not_signed_is_refused() {
    let moved = valid_but(|it| {
        let address = it.protected.pop().unwrap();
        it.unprotected.push(address);
    });
    assert_eq!(moved, Err(Cip8Error::UnknownParameter(CosePart::Signature)));
}

#[test]
fn a_bare_key_hash_for_an_address_is_refused() {
    let forge = Forge::for_address(payment_key(), payment_key().key_hash().as_bytes());
    assert!(matches!(verdict(forge), Err(Cip8Error::Address(_))));
}
