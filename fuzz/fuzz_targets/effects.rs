//! Any bytes as a transaction of anybody: never a panic, and whatever the strict reader takes means the same to both.
#![no_main]

use cardano::tx::{SignedTx, TransactionEffects, transaction_id};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(effects) = TransactionEffects::read(bytes) else { return };
    assert_eq!(transaction_id(bytes), Ok(effects.id));
    assert!(effects.by_script.iter().all(|input| effects.spent.contains(input)));
    let Ok(tx) = SignedTx::parse(bytes) else { return };
    assert_eq!((effects.id, effects.valid), (tx.id, tx.is_valid));
    if effects.valid {
        assert_eq!(effects.spent, tx.inputs);
        assert!(effects.made.iter().map(|made| &made.value).eq(tx.outputs.iter().map(|output| &output.value)));
    }
});
