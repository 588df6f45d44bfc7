//! Tests that parse Blockfrost's own examples, recorded from its OpenAPI description (devnet/test/vendor.test.ts
//! compares the recording with the description). Each example is parsed in full, and with its required fields alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use serde_json::Value;
use surety_cardano::{
    Lovelace, TxHash,
    blockfrost::{self, AnswerReader, LovelaceReader, TransactionOutputs, UnspentPage},
    history::Place,
    tx::transaction_id,
};

const RECORDED: &str = include_str!("blockfrost.json");
const TOKEN: &str = "b0d07d45fe9514f80213f4020e5a61241458be626841cde717cb38a76e7574636f696e";

/// An endpoint's path as the OpenAPI description has it, and the parser of its responses.
type Reader = (&'static str, fn(&[u8]));

const READERS: &[Reader] = &[
    ("/addresses/{address}", balance),
    ("/addresses/{address}/transactions", transactions),
    ("/addresses/{address}/utxos", unspent),
    ("/blocks/latest", block),
    ("/blocks/{hash_or_number}", block),
    ("/blocks/{hash_or_number}/previous", blocks),
    ("/blocks/{hash_or_number}/txs", block_transactions),
    ("/epochs/latest/parameters", parameters),
    ("/genesis", genesis),
    // Only the status is used.
    ("/mempool/{hash}", |_| ()),
    ("/txs/{hash}", transaction),
    ("/txs/{hash}/cbor", bytes),
    ("/txs/{hash}/utxos", outputs),
];

#[test]
fn the_vendors_examples_are_read() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let answers = recorded["answers"].as_object().unwrap();
    let known: Vec<&str> = READERS.iter().map(|(endpoint, _)| *endpoint).collect();
    let asked: Vec<&String> = answers.keys().collect();
    assert_eq!(asked, known, "each endpoint that is asked has an example and a reader");
    for (endpoint, read) in READERS {
        for form in ["whole", "least"] {
            read(&serde_json::to_vec(&answers[*endpoint][form]).unwrap());
        }
    }
}

fn hash(text: &str) -> TxHash {
    text.parse().unwrap()
}

fn ada(count: u32) -> Lovelace {
    Lovelace::from_ada(count)
}

fn block(body: &[u8]) {
    let tip = blockfrost::tip(body).unwrap();
    assert_eq!((tip.height, tip.slot, tip.time_ms), (15_243_593, 412_162_133, 1_641_338_934_000));
    assert_eq!(blockfrost::epoch(body), Ok(425));
}

fn blocks(body: &[u8]) {
    let blocks = blockfrost::blocks(body).unwrap();
    assert_eq!(blocks.iter().map(|block| (block.height, block.slot)).collect::<Vec<_>>(), [(15_243_593, 412_162_133)]);
}

fn block_transactions(body: &[u8]) {
    let ids = blockfrost::block_transactions(body).unwrap();
    let last = hash("e8073fd5318ff43eca18a852527166aa8008bee9ee9e891f585612b7e4ba700b");
    assert_eq!((ids.len(), ids.last()), (4, Some(&last)));
}

fn genesis(body: &[u8]) {
    assert_eq!(blockfrost::network_magic(body), Ok(764_824_073), "mainnet's");
}

fn parameters(body: &[u8]) {
    let read = blockfrost::protocol_parameters(body).unwrap();
    assert_eq!((read.min_fee_a, read.min_fee_b, read.max_tx_size), (44, 155_381, 16_384));
    assert_eq!(read.coins_per_utxo_byte, 34_482);
    assert_eq!(blockfrost::epoch(body), Ok(225));
}

const TX: &str = "1e043f100dce12d107f679685acd2fc0610e10f72a92d412794c9773d11d8477";

fn transaction(body: &[u8]) {
    let included = blockfrost::inclusion(body, &hash(TX)).unwrap();
    assert_eq!((included.height, included.slot, included.valid), (123_456, 42_000_000, true));
    assert_eq!(included.time_ms, 1_635_505_891_000);
}

fn outputs(body: &[u8]) {
    let whole = blockfrost::outputs(body, &hash(TX)).unwrap();
    let mut reader = AnswerReader::new(TransactionOutputs::of(hash(TX)));
    for byte in body {
        reader.push(vec![*byte]);
    }
    assert_eq!(reader.finish().unwrap(), whole, "the same byte by byte");
    assert_eq!(whole.len(), 1);
    let output = &whole[0];
    assert_eq!((output.utxo.value.lovelace, output.utxo.value.assets[TOKEN]), (ada(42), 12));
    assert_eq!(output.utxo.inline_datum.as_deref(), Some([0x19, 0xa6, 0xaa].as_slice()));
    assert!(output.utxo.reference_script.is_some() && !output.not_on_ledger);
    let spender = "66c29b56952f6085afac3b0632d781af78d020b080063bcfd6c54b8e2b8fed41";
    assert!(output.spent_by.is_none_or(|by| by == hash(spender)), "left out of the least");
}

fn bytes(body: &[u8]) {
    let json: Value = serde_json::from_slice(body).unwrap();
    let cbor = hex::decode(json["cbor"].as_str().unwrap()).unwrap();
    let id = transaction_id(&cbor).unwrap();
    assert_eq!(blockfrost::transaction(body, &id), Ok(cbor));
    assert!(blockfrost::transaction(body, &hash(TX)).is_err(), "another's");
}

const ADDRESS: &str =
    "addr1qxqs59lphg8g6qndelq8xwqn60ag3aeyfcp33c2kdp46a09re5df3pzwwmyq946axfcejy5n4x0y99wqpgtp2gd0k09qsgy6pz";

fn unspent(body: &[u8]) {
    let utxos = blockfrost::unspent_outputs(body, ADDRESS).unwrap().utxos;
    let held: Vec<u64> = utxos.iter().map(|utxo| utxo.value.lovelace.get()).collect();
    assert_eq!(held, [42_000_000, 729_235_000, 42_000_000]);
    assert_eq!(utxos[2].value.assets[TOKEN], 12);
    assert!(utxos[0].datum_hash.is_some() && utxos[0].inline_datum.is_none());
    assert!(utxos.iter().all(|utxo| utxo.address == ADDRESS));
    let mut reader = AnswerReader::new(UnspentPage::at(ADDRESS));
    reader.push(body.to_vec());
    assert!(reader.finish().is_ok());
}

fn balance(body: &[u8]) {
    let mut reader = AnswerReader::new(LovelaceReader::default());
    reader.push(body.to_vec());
    assert_eq!(reader.finish(), Ok(ada(42)));
}

fn transactions(body: &[u8]) {
    let listed = blockfrost::address_transactions(body).unwrap();
    let places: Vec<Place> = listed.iter().map(|tx| tx.place).collect();
    let place = |height, position| Place { height, position };
    assert_eq!(places, [place(69, 6), place(4_547, 9), place(564_654, 0)]);
}
