//! Any bytes as an escrow's redeemer: never a panic, and what is read is what the ledger's own decoder reads.
#![no_main]

use escrow::Redeemer;
use libfuzzer_sys::fuzz_target;
use pallas_codec::minicbor;
use pallas_primitives::PlutusData;

fuzz_target!(|bytes: &[u8]| {
    let Ok(redeemer) = Redeemer::from_cbor(bytes) else { return };
    assert_eq!(Redeemer::from_cbor(&redeemer.to_cbor()), Ok(redeemer.clone()), "written and read again");
    let tree: PlutusData = minicbor::decode(bytes).expect("what is ours is Plutus data");
    assert_eq!(tree, redeemer.to_data(), "the same tree");
});
