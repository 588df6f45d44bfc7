use super::*;
use crate::params::Rational;
use proptest::prelude::*;
use serde_json::json;

pub(super) fn parameters() -> serde_json::Value {
    json!({
        "epoch": 240, "min_fee_a": 44, "min_fee_b": 155381, "max_tx_size": 16384, "max_val_size": "5000",
        "coins_per_utxo_size": "4310", "collateral_percent": 150, "max_collateral_inputs": 3, "price_mem": 0.0577,
        "price_step": 0.0000721, "max_tx_ex_mem": "14000000", "max_tx_ex_steps": "10000000000",
        "min_fee_ref_script_cost_per_byte": 15, "cost_models_raw": { "PlutusV3": [100788, 420, 1] },
    })
}

fn listed(height: u64, index: u64) -> serde_json::Value {
    json!({ "tx_hash": "ab".repeat(32), "tx_index": index, "block_height": height, "block_time": 1_700_000_000 })
}

/// Anyone may send an output with the maximum number of tokens to any address. If a wallet could not read it, the
/// wallet would be blocked.
#[test]
fn an_output_with_as_many_tokens_as_the_ledger_allows_is_read() {
    // Maximum that fits into 5,000 bytes (`maxValueSize`): one policy (30 bytes), each name with its quantity 3 or 4
    // bytes.
    let most = 256 + (5_000 - 40 - 3 * 256) / 4;
    let token = |n: usize| json!({ "unit": format!("{}{n:04x}", "ab".repeat(28)), "quantity": "1" });
    let lovelace = json!({ "unit": "lovelace", "quantity": "25000000" });
    let amount: Vec<_> = std::iter::once(lovelace).chain((0..most).map(token)).collect();
    let output = json!({
        "address": "addr_test1...", "amount": amount, "output_index": 0, "data_hash": null, "inline_datum": null,
        "reference_script_hash": null,
    });
    let tx = TxHash::new([7; 32]);
    let body = json!({ "hash": tx, "inputs": [], "outputs": [output] }).to_string();
    let read = outputs(body.as_bytes(), &tx).unwrap();
    assert_eq!(read[0].utxo.value.assets.len(), most);
}

#[test]
fn an_addresss_transactions_are_put_into_the_chains_order() {
    let read = |list: Vec<serde_json::Value>| address_transactions(json!(list).to_string().as_bytes());
    let places: Vec<Place> =
        read(vec![listed(7, 1), listed(7, 2), listed(9, 0)]).unwrap().iter().map(|tx| tx.place).collect();
    let place = |height, position| Place { height, position };
    assert_eq!(places, [place(7, 1), place(7, 2), place(9, 0)]);
    assert_eq!(read(vec![listed(7, 1)]).unwrap()[0].time_ms, 1_700_000_000_000);
    for list in
        [vec![listed(7, 2), listed(9, 0), listed(7, 1)], vec![listed(9, 0), listed(7, 2), listed(7, 2), listed(7, 1)]]
    {
        let places: Vec<Place> = read(list).unwrap().iter().map(|tx| tx.place).collect();
        assert_eq!(places, [place(7, 1), place(7, 2), place(9, 0)]);
    }
    let mut other = listed(7, 1);
    other["tx_hash"] = json!("cd".repeat(32));
    assert!(read(vec![listed(7, 1), other]).is_err(), "two at one place");
}

#[test]
fn prices_keep_their_exact_fractions() {
    let read = protocol_parameters(parameters().to_string().as_bytes()).unwrap();
    assert_eq!(read.price_mem, Rational { numerator: 577, denominator: 10_000 });
    assert_eq!(read.price_step, Rational { numerator: 721, denominator: 10_000_000 });
    assert_eq!(read.min_fee_ref_script_cost_per_byte, Rational { numerator: 15, denominator: 1 });
}

#[test]
fn a_price_with_more_decimals_than_there_is_room_for_is_the_next_larger_one() {
    for (written, numerator) in [
        ("0.0000721333333333333333333", 72_133_333_334),
        ("0.000072133333333000", 72_133_333_333),
        ("0.0000721333333330000001", 72_133_333_334),
    ] {
        let mut body = parameters();
        body["price_step"] = json!(written);
        let read = protocol_parameters(body.to_string().as_bytes()).unwrap();
        assert_eq!(read.price_step, Rational { numerator, denominator: 1_000_000_000_000_000 }, "{written}");
    }
}

#[test]
fn impossible_protocol_parameters_are_refused() {
    for (field, value) in [
        ("min_fee_a", json!(0)),
        ("min_fee_a", json!(-1)),
        ("coins_per_utxo_size", json!("x")),
        ("coins_per_utxo_size", json!(null)),
        ("price_mem", json!(-0.5)),
        ("price_step", json!("1e-5")),
    ] {
        let mut body = parameters();
        body[field] = value;
        assert!(protocol_parameters(body.to_string().as_bytes()).is_err(), "{field}");
    }
}

#[test]
fn an_answer_about_another_transaction_is_refused() {
    let (asked, other) = (TxHash::new([1; 32]), TxHash::new([2; 32]));
    let body = json!({"hash": other, "outputs": []}).to_string();
    assert!(outputs(body.as_bytes(), &asked).is_err());
    assert_eq!(outputs(body.as_bytes(), &other), Ok(vec![]));
}

/// A transaction of 16 kB can reference 450 inputs of 1,600 tokens, which must not be held in memory.
#[test]
fn inputs_of_any_size_are_skipped_in_bounded_memory() {
    let tx = TxHash::new([1; 32]);
    let tokens: Vec<String> =
        (0..1_600).map(|n| format!(r#"{{"unit":"{}{n:04x}","quantity":"1"}}"#, "ab".repeat(28))).collect();
    let input = format!(
        r#"{{"address":"addr_test1","amount":[{}],"tx_hash":"{}","output_index":0,"inline_datum":"{}"}},"#,
        tokens.join(","),
        "cd".repeat(32),
        "ef".repeat(11_000)
    );
    let mut reader = AnswerReader::new(TransactionOutputs::of(tx));
    let mut bytes = 0;
    let mut push = |text: &str| {
        // Chunks of odd sizes, as a network delivers them.
        for piece in text.as_bytes().chunks(4_093) {
            assert!(reader.push(piece.to_vec()));
            bytes += piece.len();
        }
    };
    push(&format!(r#"{{"hash":"{tx}","inputs":["#));
    (0..450).for_each(|_| push(&input));
    push(
        r#"{"outputs":[{}]}],"outputs":[{"address":"addr_test1","amount":[{"unit":"lovelace","quantity":"5"}],"output_index":0,
        "data_hash":null,"inline_datum":null,"reference_script_hash":null,"collateral":false,"consumed_by_tx":null}]}"#,
    );
    assert!(reader.held() < 4 << 10, "{} bytes are held", reader.held());
    let outputs = reader.finish().unwrap();
    assert!(bytes > 70_000_000);
    assert_eq!((outputs.len(), outputs[0].utxo.value.lovelace.get()), (1, 5));
}

#[test]
fn outputs_are_read_alike_in_pieces_of_any_size() {
    let tx = TxHash::new([1; 32]);
    let output = |index: u16| {
        json!({"address": "addr_test1\"[{\u{e9}", "amount": [{"unit": "lovelace", "quantity": "5"}],
        "output_index": index, "data_hash": null, "inline_datum": "d87980", "reference_script_hash": null,
        "collateral": false, "consumed_by_tx": tx})
    };
    let body = json!({"hash": tx, "inputs": [output(7)], "outputs": [output(0), output(1)], "more": [1, 2.5e3, {"outputs": []}]}).to_string();
    let whole = outputs(body.as_bytes(), &tx).unwrap();
    assert_eq!(whole.len(), 2);
    assert_eq!(whole[1].spent_by, Some(tx));
    for size in 1..body.len() {
        let mut reader = AnswerReader::new(TransactionOutputs::of(tx));
        assert!(body.as_bytes().chunks(size).all(|piece| reader.push(piece.to_vec())));
        assert_eq!(reader.finish().as_ref(), Ok(&whole), "in pieces of {size}");
    }
    for end in 0..body.len() {
        assert!(outputs(&body.as_bytes()[..end], &tx).is_err(), "cut at {end}");
    }
}

#[test]
fn an_answer_above_the_memory_bound_is_refused() {
    let tx = TxHash::new([1; 32]);
    let fill = |before: &str, filling: &str| {
        let mut reader = AnswerReader::new(TransactionOutputs::of(tx));
        reader.push(before.as_bytes().to_vec());
        let pieces = (0..100_000).take_while(|_| reader.push(filling.as_bytes().to_vec())).count();
        assert!(pieces < 100_000 && reader.finish().is_err(), "{before}");
    };
    fill(r#"{"inputs":[""#, &"a".repeat(1_000));
    fill(r#"{"inputs":["#, &"[".repeat(10));
    fill(r#"{"outputs":["#, &"1,".repeat(500));
    fill(r#"{"outputs":[{"amount":["#, &r#""a","#.repeat(10));
}

fn unspent(tx: u8, index: u16, lovelace: u64, tokens: usize) -> serde_json::Value {
    let token = |n: usize| json!({ "unit": format!("{}{n:04x}", "ab".repeat(28)), "quantity": "1" });
    let held = std::iter::once(json!({ "unit": "lovelace", "quantity": lovelace.to_string() }));
    let amount: Vec<_> = held.chain((0..tokens).map(token)).collect();
    json!({ "address": "addr_test1", "tx_hash": TxHash::new([tx; 32]), "output_index": index, "amount": amount,
        "data_hash": null, "inline_datum": null, "reference_script_hash": null })
}

fn page(outputs: &[serde_json::Value]) -> UnspentOutputs {
    stream::whole(json!(outputs).to_string().as_bytes(), UnspentPage::at("addr_test1")).unwrap()
}

/// Anyone may send outputs of 1,200 tokens each to a wallet. Memory stays bounded, and the wallet's lovelace stays
/// visible.
#[test]
fn a_wallet_full_of_tokens_is_read_in_bounded_memory() {
    let mut holdings = Holdings::default();
    for number in 0..3_u8 {
        let mut outputs: Vec<_> = (0..19).map(|index| unspent(number, index, 17_000_000, 1_200)).collect();
        outputs.push(unspent(number, 99, 5_000_000, 0));
        if number == 1 {
            outputs[7] = unspent(number, 7, 900_000_000, 1_200);
        }
        assert!(holdings.take(End::Oldest, page(&outputs), 20));
        let tokens: usize = holdings.utxos().iter().map(|utxo| utxo.value.assets.len()).sum();
        assert!(tokens <= 2_000, "{tokens} tokens after page {number}");
    }
    let utxos = holdings.into_utxos();
    assert_eq!(utxos.iter().filter(|utxo| utxo.value.assets.is_empty()).count(), 3, "nothing plain is let go");
    assert!(utxos.iter().any(|utxo| utxo.value.lovelace.get() == 900_000_000), "nor what is worth most");
}

#[test]
fn a_history_read_from_both_ends_is_read_until_they_meet() {
    let outputs: Vec<_> = (0..250).map(|index| unspent(1, index, 5_000_000, 0)).collect();
    let oldest = |number: usize| page(&outputs[number * 100..outputs.len().min(number * 100 + 100)]);
    let newest = |number: usize| {
        let reversed: Vec<_> = outputs.iter().rev().cloned().collect();
        page(&reversed[number * 100..outputs.len().min(number * 100 + 100)])
    };
    let mut holdings = Holdings::default();
    assert!(holdings.take(End::Oldest, oldest(0), 100));
    assert!(holdings.take(End::Newest, newest(0), 100));
    assert!(!holdings.take(End::Oldest, oldest(1), 100), "met");
    let utxos = holdings.into_utxos();
    let names: std::collections::BTreeSet<_> = utxos.iter().map(|utxo| utxo.reference).collect();
    assert_eq!((utxos.len(), names.len()), (250, 250), "all, and each once");
    let mut few = Holdings::default();
    assert!(!few.take(End::Oldest, page(&outputs[..3]), 100), "one short page is all");
}

#[test]
fn a_balance_is_read_past_any_number_of_tokens() {
    let read = |body: &str| stream::whole(body.as_bytes(), LovelaceReader::default());
    let body = json!({ "address": "addr_test1", "amount": unspent(1, 0, 7_000_000, 5_000)["amount"], "script": false });
    assert_eq!(read(&body.to_string()).unwrap().get(), 7_000_000);
    assert_eq!(read(r#"{"amount":[]}"#).unwrap().get(), 0);
    for bad in ["", "{}", "[]", r#"{"amount":[5]}"#, r#"{"amount":[{"unit":"lovelace","quantity":"-1"}]}"#] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn bytes_of_another_transaction_than_requested_are_refused() {
    let cbor = [0x84, 0xa0, 0xa0, 0xf5, 0xf6];
    let id = TxHash::of_body(&[0xa0]);
    let body = json!({"cbor": hex::encode(cbor)}).to_string();
    assert_eq!(transaction(body.as_bytes(), &id), Ok(cbor.to_vec()));
    assert!(transaction(body.as_bytes(), &TxHash::new([1; 32])).is_err(), "another's");
    for bad in [json!({}), json!({"cbor": "xyz"}), json!({"cbor": ""}), json!({"cbor": "a0"}), json!({"cbor": null})] {
        assert!(transaction(bad.to_string().as_bytes(), &id).is_err(), "{bad}");
    }
}

#[test]
fn an_output_that_counts_lovelace_twice_or_never_is_refused() {
    let tx = TxHash::new([1; 32]);
    let output = |amount: serde_json::Value| {
        json!({"hash": tx, "outputs": [{"address": "addr_test1", "amount": amount, "output_index": 0,
            "data_hash": null, "inline_datum": null, "reference_script_hash": null, "collateral": false}]})
        .to_string()
    };
    let ada = json!({"unit": "lovelace", "quantity": "5"});
    assert!(outputs(output(json!([ada])).as_bytes(), &tx).is_ok());
    assert!(outputs(output(json!([ada, ada])).as_bytes(), &tx).is_err());
    assert!(outputs(output(json!([])).as_bytes(), &tx).is_err());
}

proptest! {
    #[test]
    fn no_answer_panics(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let tx = TxHash::new([0; 32]);
        let _ = (tip(&body), protocol_parameters(&body), unspent_outputs(&body, ""), outputs(&body, &tx), transaction(&body, &tx));
    }
}
