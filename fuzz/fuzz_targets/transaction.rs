//! Any bytes as a signed transaction: never a panic, the bytes kept as they came, outputs' datums read like any.
#![no_main]

use cardano::tx::{OutputDatum, SignedTx};
use escrow::Datum;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(tx) = SignedTx::parse(bytes) else { return };
    assert_eq!(tx.cbor(), bytes, "kept byte for byte");
    assert_eq!(SignedTx::parse(tx.cbor()).map(|again| again.id), Ok(tx.id));
    for output in &tx.outputs {
        if let Some(OutputDatum::Inline(datum)) = &output.datum {
            let _ = Datum::from_cbor(datum);
        }
    }
});
