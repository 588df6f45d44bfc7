//! Any bytes as an escrow's datum: never a panic, and what is read is what the ledger's own decoder reads.
#![no_main]

use escrow::Datum;
use libfuzzer_sys::fuzz_target;
use pallas_codec::minicbor;
use pallas_primitives::PlutusData;

/// The places of the cooldowns, which are read as the last of all times where they are beyond it.
const COOLDOWNS: [usize; 2] = [16, 17];
const LAST_TIME: i64 = (1 << 53) - 1;

fuzz_target!(|bytes: &[u8]| {
    let Ok(datum) = Datum::from_cbor(bytes) else { return };
    assert_eq!(Datum::from_cbor(&datum.to_cbor()), Ok(datum.clone()), "written and read again");
    let tree: PlutusData = minicbor::decode(bytes).expect("what is ours is Plutus data");
    let (PlutusData::Constr(tree), PlutusData::Constr(read)) = (&tree, &datum.to_data()) else {
        panic!("a constructor")
    };
    assert_eq!((tree.constr_index(), tree.fields.len()), (read.constr_index(), read.fields.len()));
    let last = PlutusData::BigInt(pallas_primitives::BigInt::Int(LAST_TIME.into()));
    for (place, (field, read)) in tree.fields.iter().zip(read.fields.iter()).enumerate() {
        let beyond = COOLDOWNS.contains(&place) && *read == last && *field > last;
        assert!(field == read || beyond, "field {place}: {field:?} was read as {read:?}");
    }
    let _ = datum.buyer.key_address();
});
