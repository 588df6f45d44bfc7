//! The ledger's rules for built transactions, written a second time. They work on [`SignedTx`], which shares no code
//! with the builder.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    chain::Utxo,
    fees,
    hash::{KeyHash, TxRef},
    keys::Native,
    params::ProtocolParameters,
    tx::{AddressKind, OutputDatum, SignedTx, build::BuiltTx},
};

/// A transaction that passed every rule.
pub(super) struct Approved {
    pub(super) tx: SignedTx,
    /// Minimum fee in lovelace for the transaction's bytes and those of the scripts that its inputs carry.
    pub(super) min_fee: u64,
}

/// Checks a transaction without scripts. Its inputs must be among the outputs `known`.
pub(super) fn approve(built: &BuiltTx, known: &[Utxo], params: &ProtocolParameters) -> Approved {
    let tx = SignedTx::parse(&built.cbor).expect("readable");
    let spent: Vec<&Utxo> = tx.inputs.iter().map(|input| find(known, input)).collect();
    conserves_value(&tx, &spent);
    let size = built.cbor.len() as u64 - 1;
    assert!(size <= params.max_tx_size, "{size} bytes");
    let min_fee = size * params.min_fee_a + params.min_fee_b + scripts_fee(&spent, params);
    assert!(tx.fee.get() >= min_fee, "fee {} below {min_fee}", tx.fee);
    assert!(tx.fee.get() * 100 <= min_fee * 101, "fee {} over 1 % above {min_fee}", tx.fee);
    for output in &tx.outputs {
        let least = (output.size as u64 + 160) * params.coins_per_utxo_byte;
        assert!(output.value.lovelace.get() >= least, "output of {} below {least}", output.value.lovelace);
        assert!(output.value_size as u64 <= params.max_value_size);
    }
    signatures(&tx, &spent);
    assert!(tx.inputs.is_sorted() && tx.is_valid && tx.auxiliary_data.is_none());
    reports(built, &tx);
    Approved { tx, min_fee }
}

/// Returns the fee for the scripts that the inputs carry, assuming each is as large as the output's lovelace permits.
fn scripts_fee(spent: &[&Utxo], params: &ProtocolParameters) -> u64 {
    let carriers = spent.iter().filter(|utxo| utxo.reference_script.is_some());
    let bytes: u64 = carriers.map(|utxo| (utxo.value.lovelace.get() / 4310 - 160).min(16_384)).sum();
    assert!(bytes <= 200 * 1024, "{bytes} bytes of scripts");
    let fee = |reference_script_bytes| {
        let weight = fees::Weight { tx_bytes: 1, reference_script_bytes, ..fees::Weight::default() };
        fees::min_fee(params, &weight).unwrap().get()
    };
    fee(bytes) - fee(0)
}

fn find<'a>(known: &'a [Utxo], input: &TxRef) -> &'a Utxo {
    known.iter().find(|utxo| utxo.reference == *input).expect("spends only what there is")
}

fn conserves_value(tx: &SignedTx, spent: &[&Utxo]) {
    let mut balance: BTreeMap<&str, i128> = BTreeMap::from([("", -i128::from(tx.fee.get()))]);
    let inputs = spent.iter().map(|utxo| (&utxo.value, 1));
    let outputs = tx.outputs.iter().map(|output| (&output.value, -1));
    for (value, sign) in inputs.chain(outputs) {
        *balance.entry("").or_default() += sign * i128::from(value.lovelace.get());
        for (unit, quantity) in &value.assets {
            *balance.entry(unit).or_default() += sign * i128::from(*quantity);
        }
    }
    balance.retain(|_, rest| *rest != 0);
    assert!(balance.is_empty(), "not conserved: {balance:?}");
}

/// Checks that exactly the keys of the inputs and the required signers signed.
fn signatures(tx: &SignedTx, spent: &[&Utxo]) {
    let owner = |utxo: &&Utxo| *utxo.address.parse::<crate::Address>().unwrap().payment_key();
    let needed: BTreeSet<KeyHash> = spent.iter().map(owner).chain(tx.required_signers.iter().copied()).collect();
    let signed: BTreeSet<KeyHash> = tx.vkey_witnesses.iter().map(|witness| witness.key_hash()).collect();
    assert_eq!(signed, needed);
    for witness in &tx.vkey_witnesses {
        Native::verify(&witness.key, tx.id.as_bytes(), &witness.signature).expect("a good signature");
    }
}

/// Checks that the facts reported by the builder match the transaction.
pub(super) fn reports(built: &BuiltTx, tx: &SignedTx) {
    let facts = &built.facts;
    assert_eq!((facts.tx_id, facts.fee, &facts.inputs), (tx.id, tx.fee, &tx.inputs));
    assert_eq!(tx.ttl, Some(facts.valid_until_slot));
    assert_eq!(facts.outputs.len(), tx.outputs.len());
    for (index, (said, made)) in facts.outputs.iter().zip(&tx.outputs).enumerate() {
        assert_eq!(said.reference, TxRef { tx: tx.id, index: index as u16 });
        assert_eq!(said.value, made.value);
        let datum = said.inline_datum.clone().map(OutputDatum::Inline);
        assert_eq!(datum, made.datum);
        if let AddressKind::Key(address) = made.owner {
            assert_eq!(said.address, address.to_string());
        }
    }
}
