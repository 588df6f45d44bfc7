//! The rules of a settlement: what the admins signed, and whether enough of them did.

use cardano::{KeyHash, TxRef, hash::blake2b};
use ed25519_compact::{PublicKey, Signature};
use escrow::{AdminSignature, AssetValue, Parameters, Redeemer, dispute::DisputeWithdrawal};

use super::{rules::Broken, transaction::Value};

/// Protected headers may have as many bytes.
pub const MAX_PROTECTED_HEADERS: usize = 256;

/// The rules of a settlement that this redeemer breaks, when so much is paid in the escrow's name.
#[must_use]
pub fn broken(
    parameters: &Parameters,
    own_ref: TxRef,
    redeemer: &Redeemer,
    to_buyer: &Value,
    to_seller: &Value,
) -> Vec<Broken> {
    let Redeemer::WithdrawDisputed { buyer_value, seller_value, admin_signatures } = redeemer else { return vec![] };
    let mut broken = vec![];
    let mut require = |holds: bool, rule| {
        if !holds {
            broken.push(rule);
        }
    };
    require(is_value(buyer_value) && is_value(seller_value), Broken::SharesAreValues);
    require(ascends(buyer_value) && ascends(seller_value), Broken::PoliciesAscend);
    require(is_paid(to_buyer, buyer_value), Broken::BuyerShare);
    require(is_paid(to_seller, seller_value), Broken::SellerShare);

    let (listed, required) = (parameters.admin_vkeys.len(), parameters.required_admins as usize);
    require((1..=listed).contains(&required), Broken::ThresholdReachable);
    require(admin_signatures.len() <= listed, Broken::FewSignatures);
    let short = admin_signatures.iter().all(|signature| signature.protected_headers.len() <= MAX_PROTECTED_HEADERS);
    require(short, Broken::ShortHeaders);
    let mut of_admins =
        admin_signatures.iter().filter(|signature| parameters.admin_vkeys.contains(&key_hash(signature)));
    require(of_admins.all(|signature| signature.signature.len() == Signature::BYTES), Broken::SignatureSize);

    let decision = DisputeWithdrawal { own_ref, buyer_value: buyer_value.clone(), seller_value: seller_value.clone() };
    let intent = decision.digest();
    let has_voted = |admin: &&KeyHash| {
        admin_signatures.iter().any(|signature| key_hash(signature) == **admin && is_valid(signature, &intent))
    };
    require(parameters.admin_vkeys.iter().filter(has_voted).count() >= required, Broken::Votes);
    broken
}

fn key_hash(signature: &AdminSignature) -> KeyHash {
    KeyHash::new(blake2b(&signature.verification_key))
}

/// Over the intent itself, or over its hash.
fn is_valid(signature: &AdminSignature, intent: &[u8; 28]) -> bool {
    let (Ok(key), Ok(bytes)) =
        (PublicKey::from_slice(&signature.verification_key), Signature::from_slice(&signature.signature))
    else {
        return false;
    };
    let payloads = [*intent, blake2b(intent)];
    payloads.iter().any(|payload| key.verify(sig_structure(&signature.protected_headers, payload), &bytes).is_ok())
}

/// RFC 9052, section 4.4: `["Signature1", protected, external_aad, payload]`, in deterministic CBOR.
#[must_use]
pub fn sig_structure(protected_headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut cbor = vec![0x84, 0x6a];
    cbor.extend_from_slice(b"Signature1");
    for part in [protected_headers, &[], payload] {
        match u8::try_from(part.len()) {
            Ok(length @ 0..24) => cbor.push(0x40 | length),
            Ok(length) => cbor.extend_from_slice(&[0x58, length]),
            Err(_) => {
                cbor.push(0x59);
                cbor.extend_from_slice(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
            }
        }
        cbor.extend_from_slice(part);
    }
    cbor
}

fn is_paid(paid: &Value, due: &AssetValue) -> bool {
    let assets = due.0.iter().flat_map(|(policy, names)| names.iter().map(move |(name, due)| (policy, name, *due)));
    assets.into_iter().all(|(policy, name, due)| paid.quantity(policy, name) >= due)
}

/// No policy twice or empty, names strictly ascending, nothing of quantity zero.
fn is_value(value: &AssetValue) -> bool {
    let mut policies: Vec<_> = value.0.iter().map(|(policy, _)| policy).collect();
    policies.sort_unstable();
    let distinct = policies.is_sorted_by(|a, b| a < b);
    distinct
        && value.0.iter().all(|(_, names)| {
            !names.is_empty()
                && names.is_sorted_by(|(a, _), (b, _)| a < b)
                && names.iter().all(|(_, quantity)| *quantity > 0)
        })
}

/// Repetitions are the other rule's business.
fn ascends(value: &AssetValue) -> bool {
    value.0.is_sorted_by(|(a, _), (b, _)| a <= b)
}
