//! Any bytes as a wallet's unspent output: never a panic, and what is read means the same in a transaction.
#![no_main]

use cardano::tx::{TransactionUtxos, read_unspent};
use libfuzzer_sys::fuzz_target;
use pallas_codec::minicbor::Decoder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(utxo) = read_unspent(bytes) else { return };
    let mut decoder = Decoder::new(bytes);
    decoder.array().expect("a pair");
    let input = decoder.position();
    decoder.skip().expect("an input");
    let output = decoder.position();
    decoder.skip().expect("an output");
    let end = decoder.position();
    // [{0: [input], 1: [output]}, {}, true, null]
    let (input, output) = (&bytes[input..output], &bytes[output..end]);
    let tx = [&[0x84, 0xa2, 0x00, 0x81], input, &[0x01, 0x81], output, &[0xa0, 0xf5, 0xf6]].concat();
    let read = TransactionUtxos::read(&tx).expect("a transaction of it");
    assert_eq!(read.spent, [utxo.reference]);
    assert_eq!(read.made.len(), 1);
    assert_eq!((&read.made[0].address, &read.made[0].value), (&utxo.address, &utxo.value));
    assert_eq!(read.made[0].inline_datum, utxo.inline_datum);
});
