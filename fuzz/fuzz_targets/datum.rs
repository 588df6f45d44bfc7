//! Any bytes as an escrow's datum: never a panic, and what is read is what the ledger's own decoder reads.
#![no_main]

use escrow::Datum;
use libfuzzer_sys::fuzz_target;
use pallas_codec::minicbor;
use pallas_primitives::PlutusData;

fuzz_target!(|bytes: &[u8]| {
    let Ok(datum) = Datum::from_cbor(bytes) else { return };
    assert_eq!(Datum::from_cbor(&datum.to_cbor()), Ok(datum.clone()), "written and read again");
    let tree: PlutusData = minicbor::decode(bytes).expect("what is ours is Plutus data");
    assert_eq!(tree, datum.to_data(), "the same tree");
    let _ = datum.buyer.key_address();
});
