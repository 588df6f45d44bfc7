//! Tests that verify signatures which wallet libraries made (tests/support/fixtures/cip8/generate.ts).

use serde::Deserialize;

use super::*;
use crate::keys::{Native, SigningKey};

const FIXTURE: &str = include_str!("../../tests/fixtures/cip8/wallets.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fixture {
    digest: String,
    plain_seed: String,
    signatures: Vec<WalletVector>,
}

#[derive(Deserialize)]
struct WalletVector {
    library: String,
    keys: String,
    address: Address,
    key: String,
    signature: String,
}

fn fixture() -> (Fixture, [u8; 32]) {
    let fixture: Fixture = serde_json::from_str(FIXTURE).unwrap();
    let digest = hex::decode(&fixture.digest).unwrap().try_into().unwrap();
    (fixture, digest)
}

fn verdict(signed: &WalletVector, claimed: &Address, payload: &[u8]) -> Result<(), Cip8Error> {
    let DataSignature { key, signature } = DataSignature::from_hex(&signed.key, &signed.signature)?;
    let it = SignedMessage::parse(&key, &signature)?.check(claimed, payload)?;
    Ok(Native::verify(&it.public_key, &it.message, &it.signature)?)
}

#[test]
fn every_wallet_library_and_layout_is_accepted_for_its_own_address_and_digest_alone() {
    let (fixture, digest) = fixture();
    assert_eq!(fixture.signatures.len(), 10 * 2 * 2);
    for signed in &fixture.signatures {
        let name = format!("{} with {} keys for {}", signed.library, signed.keys, signed.address);
        assert_eq!(verdict(signed, &signed.address, &digest), Ok(()), "{name}");
        assert_eq!(verdict(signed, &signed.address, &[0; 32]), Err(Cip8Error::OtherPayload), "{name}");
        for other in fixture.signatures.iter().filter(|other| other.address != signed.address) {
            assert_eq!(verdict(signed, &other.address, &digest), Err(Cip8Error::OtherAddress), "{name}");
        }
    }
}

#[test]
fn we_sign_the_very_bytes_that_evolution_sdk_and_lucid_sign() {
    let (fixture, digest) = fixture();
    let seed = hex::decode(&fixture.plain_seed).unwrap().try_into().unwrap();
    let key = SigningKey::from_seed(&seed).unwrap();
    let theirs: Vec<_> = fixture
        .signatures
        .iter()
        .filter(|it| it.keys == "plain" && ["evolution-sdk", "lucid-evolution"].contains(&it.library.as_str()))
        .collect();
    assert_eq!(theirs.len(), 4);
    for it in theirs {
        let ours = sign(&key, &it.address, &digest).unwrap();
        assert_eq!(Ok(ours), DataSignature::from_hex(&it.key, &it.signature), "{}", it.library);
    }
}

#[test]
fn signing_for_an_address_of_another_key_is_refused() {
    let (fixture, digest) = fixture();
    let key = SigningKey::from_seed(&[3; 32]).unwrap();
    assert!(sign(&key, &key.enterprise_address(), &digest).is_ok());
    for it in &fixture.signatures {
        assert_eq!(sign(&key, &it.address, &digest), Err(Cip8Error::OtherKey));
    }
}
