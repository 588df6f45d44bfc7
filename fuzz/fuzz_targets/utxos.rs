//! Any bytes as a transaction of anybody: never a panic, and whatever the strict reader takes means the same to both.
#![no_main]

use cardano::tx::{SignedTx, TransactionUtxos, transaction_id};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(utxos) = TransactionUtxos::read(bytes) else { return };
    assert_eq!(transaction_id(bytes), Ok(utxos.id));
    assert!(utxos.by_script.iter().all(|input| utxos.spent.contains(input)));
    let Ok(tx) = SignedTx::parse(bytes) else { return };
    assert_eq!((utxos.id, utxos.valid), (tx.id, tx.is_valid));
    if utxos.valid {
        assert_eq!(utxos.spent, tx.inputs);
        assert!(utxos.made.iter().map(|made| &made.value).eq(tx.outputs.iter().map(|output| &output.value)));
    }
});
