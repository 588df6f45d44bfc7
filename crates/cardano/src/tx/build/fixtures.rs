//! Parameters, keys and wallets for this module's tests.

use std::collections::BTreeSet;

use super::{NewOutput, TxPlan, Validity, Wallet};
use crate::{
    address::Address,
    chain::{Utxo, Value},
    hash::{TxHash, TxRef},
    keys::SigningKey,
    money::Lovelace,
    params::ProtocolParameters,
};

pub(super) static NOTHING_RESERVED: BTreeSet<TxRef> = BTreeSet::new();
pub(super) const FOREVER: Validity = Validity { from: None, until: 100_000_000 };

/// Returns preprod's parameters of epoch 240. Tests that need a cost model set their own.
pub(crate) fn preprod() -> ProtocolParameters {
    ProtocolParameters { cost_model_v3: vec![1, -2, 3], ..ProtocolParameters::preprod() }
}

pub(super) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

pub(super) fn lovelace(amount: u64) -> Lovelace {
    Lovelace::new(amount).unwrap()
}

pub(super) fn reference(number: u32) -> TxRef {
    let mut hash = [0; 32];
    hash[..4].copy_from_slice(&number.to_be_bytes());
    TxRef { tx: TxHash::new(hash), index: (number % 7) as u16 }
}

/// Creates a UTxO with native assets, each given as (policy byte, name, quantity).
pub(super) fn utxo(number: u32, at: Address, amount: u64, assets: &[(u8, &str, u64)]) -> Utxo {
    let unit = |(policy, name, quantity): &(u8, &str, u64)| {
        (format!("{}{}", hex::encode([*policy; 28]), hex::encode(name)), *quantity)
    };
    Utxo {
        reference: reference(number),
        address: at.to_string(),
        value: Value { lovelace: lovelace(amount), assets: assets.iter().map(unit).collect() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

pub(super) fn wallet(address: Address, utxos: &[Utxo]) -> Wallet<'_> {
    Wallet { address, utxos, reserved: &NOTHING_RESERVED }
}

pub(super) fn pay(to: Address, amount: u64) -> TxPlan {
    TxPlan { outputs: vec![NewOutput::pay(to, lovelace(amount))], validity: FOREVER, ..TxPlan::default() }
}
