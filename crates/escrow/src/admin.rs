//! Arbiters' signatures on awards: creates them through CIP-8, and decides like the contract whether they are enough.

use cardano::{
    Address, KeyHash,
    cip8::{self, Cip8Error, SignedMessage},
    hash::blake2b,
    keys::{self, SigningKey, VerifyEd25519},
};
use pallas_codec::minicbor::Encoder;

use crate::{deployment::Parameters, dispute::DisputeWithdrawal, redeemer::AdminSignature};

/// Maximum size in bytes of the protected headers of an arbiter's signature that the contract accepts.
pub const MAX_PROTECTED_HEADERS: usize = 256;
/// Length of an Ed25519 signature, in bytes.
const SIGNATURE_BYTES: usize = 64;

impl AdminSignature {
    /// Signs an award with an arbiter's key. `address` must belong to that key.
    ///
    /// # Errors
    /// [`Cip8Error::OtherKey`] if the address belongs to another key.
    pub fn sign(arbiter: &SigningKey, address: &Address, intent: &DisputeWithdrawal) -> Result<Self, Cip8Error> {
        let signed = cip8::sign(arbiter, address, &intent.digest())?;
        Ok(Self::of_message(&SignedMessage::parse(&signed.key, &signed.signature)?))
    }

    /// Extracts from a wallet's `signData` answer the parts of the signature that the contract checks.
    #[must_use]
    pub fn of_message(message: &SignedMessage) -> Self {
        Self {
            verification_key: message.public_key().to_vec(),
            protected_headers: message.protected_headers().to_vec(),
            signature: message.signature().to_vec(),
        }
    }

    fn key_hash(&self) -> KeyHash {
        KeyHash::new(blake2b(&self.verification_key))
    }

    /// Returns `true` if this signature alone makes the contract reject the award, whatever the other signatures are.
    /// The script fails if the headers are too long, or if an arbiter's signature is not 64 bytes long.
    fn invalidates_award(&self, parameters: &Parameters) -> bool {
        self.protected_headers.len() > MAX_PROTECTED_HEADERS
            || (self.signature.len() != SIGNATURE_BYTES && parameters.admin_vkeys.contains(&self.key_hash()))
    }

    /// Returns `true` if the contract accepts this signature for the award `intent`. The signature must cover the
    /// award's digest, or the BLAKE2b-224 hash of the digest, which hardware wallets sign instead.
    pub async fn signs(&self, port: &impl VerifyEd25519, intent: &DisputeWithdrawal) -> bool {
        let (Ok(key), Ok(signature)) =
            (<[u8; 32]>::try_from(&*self.verification_key), <[u8; 64]>::try_from(&*self.signature))
        else {
            return false;
        };
        let digest = intent.digest();
        for payload in [digest, blake2b(&digest)] {
            let message = sig_structure(&self.protected_headers, &payload);
            if keys::verify(port, &key, &message, &signature).await.is_ok() {
                return true;
            }
        }
        false
    }
}

/// Returns `true` if these signatures have enough votes for the contract to accept the award `intent`.
///
/// A key that occurs several times in `admin_vkeys` has that many votes. A signature that is given twice counts once.
pub async fn have_enough_votes(
    port: &impl VerifyEd25519,
    parameters: &Parameters,
    intent: &DisputeWithdrawal,
    signatures: &[AdminSignature],
) -> bool {
    if signatures.len() > parameters.admin_vkeys.len()
        || signatures.iter().any(|signature| signature.invalidates_award(parameters))
    {
        return false;
    }
    let mut signed = Vec::new();
    for signature in signatures {
        if signature.signs(port, intent).await {
            signed.push(signature.key_hash());
        }
    }
    let votes = parameters.admin_vkeys.iter().filter(|admin| signed.contains(admin)).count();
    parameters.check().is_ok() && u32::try_from(votes).is_ok_and(|votes| votes >= parameters.required_admins)
}

/// Encodes the `Sig_structure` that a CIP-8 signature covers (RFC 9052, section 4.4), without external data.
#[must_use]
pub fn sig_structure(protected_headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut cbor = Encoder::new(Vec::new());
    // Writing to a vector cannot fail.
    let written =
        cbor.array(4).and_then(|cbor| cbor.str("Signature1")?.bytes(protected_headers)?.bytes(&[])?.bytes(payload));
    debug_assert!(written.is_ok());
    cbor.into_writer()
}

#[cfg(test)]
mod tests {
    use cardano::{Lovelace, TxHash, TxRef, keys::Native};
    use futures_lite::future::block_on;

    use super::*;
    use crate::dispute::Split;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn intent() -> DisputeWithdrawal {
        let own_ref = TxRef { tx: TxHash::new([0xcd; 32]), index: 0 };
        DisputeWithdrawal::new(own_ref, Split { buyer: Lovelace::from_ada(5), seller: Lovelace::ZERO })
    }

    fn signed_by(seed: u8) -> AdminSignature {
        let key = key(seed);
        AdminSignature::sign(&key, &key.enterprise_address(), &intent()).unwrap()
    }

    fn admins(required_admins: u32, seeds: &[u8]) -> Parameters {
        let admin_vkeys = seeds.iter().map(|seed| key(*seed).key_hash()).collect();
        Parameters { required_admins, admin_vkeys, cooldown_period: 60_000 }
    }

    fn enough(parameters: &Parameters, signatures: &[AdminSignature]) -> bool {
        block_on(have_enough_votes(&Native, parameters, &intent(), signatures))
    }

    #[test]
    fn the_signed_structure_is_the_one_that_the_contract_builds() {
        // The contract's prefix: array of 4, "Signature1"; then the headers, no external data, the payload.
        let expected = "846a5369676e61747572653143a1012740420001";
        assert_eq!(hex::encode(sig_structure(&[0xa1, 0x01, 0x27], &[0, 1])), expected);
    }

    #[test]
    fn a_signature_signs_one_award_only() {
        let signature = signed_by(1);
        assert!(block_on(signature.signs(&Native, &intent())));
        let other = DisputeWithdrawal { own_ref: TxRef { index: 1, ..intent().own_ref }, ..intent() };
        assert!(!block_on(signature.signs(&Native, &other)));
        for broken in [
            AdminSignature { verification_key: key(2).public_key().to_vec(), ..signature.clone() },
            AdminSignature { protected_headers: vec![0xa1, 0x01, 0x27], ..signature.clone() },
            AdminSignature { signature: vec![0; 64], ..signature.clone() },
            AdminSignature { signature: vec![0; 63], ..signature.clone() },
        ] {
            assert!(!block_on(broken.signs(&Native, &intent())), "{broken:?}");
        }
    }

    #[test]
    fn a_hashed_payload_counts_once_hashed() {
        let key = key(1);
        let headers = signed_by(1).protected_headers;
        let over = |payload: &[u8]| AdminSignature {
            verification_key: key.public_key().to_vec(),
            protected_headers: headers.clone(),
            signature: key.sign(&sig_structure(&headers, payload)).to_vec(),
        };
        let digest = intent().digest();
        let once: [u8; 28] = blake2b(&digest);
        let twice: [u8; 28] = blake2b(&once);
        assert!(block_on(over(&digest).signs(&Native, &intent())));
        assert!(block_on(over(&once).signs(&Native, &intent())));
        assert!(!block_on(over(&twice).signs(&Native, &intent())));
    }

    #[test]
    fn votes_are_counted_by_the_arbiters_list() {
        let two_of_three = admins(2, &[1, 2, 3]);
        assert!(enough(&two_of_three, &[signed_by(1), signed_by(3)]));
        assert!(!enough(&two_of_three, &[signed_by(1)]));
        assert!(!enough(&two_of_three, &[signed_by(1), signed_by(1)]), "one key, given twice");
        assert!(!enough(&two_of_three, &[signed_by(1), signed_by(4)]), "a stranger");
        assert!(enough(&two_of_three, &[signed_by(1), signed_by(4), signed_by(2)]), "a stranger does no harm");
        assert!(!enough(&two_of_three, &[signed_by(1), signed_by(2), signed_by(3), signed_by(3)]), "more than admins");
        assert!(enough(&admins(2, &[1, 1, 2]), &[signed_by(1)]), "a key with two votes");
        assert!(!enough(&admins(0, &[1]), &[signed_by(1)]), "no threshold");
    }

    #[test]
    fn overlong_headers_invalidate_an_award() {
        let long = AdminSignature { protected_headers: vec![0; MAX_PROTECTED_HEADERS + 1], ..signed_by(4) };
        assert!(!enough(&admins(1, &[1, 2]), &[signed_by(1), long]));
    }

    #[test]
    fn an_arbiters_signature_of_another_size_invalidates_an_award_and_a_strangers_does_not() {
        let short = |seed| AdminSignature { signature: vec![0; 63], ..signed_by(seed) };
        assert!(!enough(&admins(1, &[1, 2]), &[signed_by(1), short(2)]));
        assert!(enough(&admins(1, &[1, 2]), &[signed_by(1), short(4)]));
    }
}
