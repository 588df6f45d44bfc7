//! Tests of the ways in which Blockfrost-compatible providers deviate from the documented form.

use serde_json::{Value, json};

use super::{tests::parameters, *};
use crate::{chain::TracedOutput, params::ProtocolParameters};

fn parameters_with(field: &str, value: Option<Value>) -> ChainResult<ProtocolParameters> {
    let mut body = parameters();
    match value {
        Some(value) => body[field] = value,
        None => drop(body.as_object_mut().unwrap().remove(field)),
    }
    protocol_parameters(body.to_string().as_bytes())
}

fn output_with(field: &str, value: Option<Value>) -> ChainResult<Vec<TracedOutput>> {
    let tx = TxHash::new([7; 32]);
    let mut output = json!({
        "address": "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz",
        "amount": [{ "unit": "lovelace", "quantity": "5000000" }], "output_index": 0, "data_hash": null,
        "inline_datum": null, "reference_script_hash": null, "collateral": false, "consumed_by_tx": null,
    });
    match value {
        Some(value) => output[field] = value,
        None => drop(output.as_object_mut().unwrap().remove(field)),
    }
    outputs(json!({ "hash": tx, "inputs": [], "outputs": [output] }).to_string().as_bytes(), &tx)
}

#[test]
fn cost_models_that_are_missing_leave_everything_else_as_it_is() {
    let whole = protocol_parameters(parameters().to_string().as_bytes()).unwrap();
    for quirk in [None, Some(json!(null)), Some(json!({})), Some(json!({ "PlutusV3": null, "PlutusV2": [1] }))] {
        let read = parameters_with("cost_models_raw", quirk.clone()).unwrap();
        assert_eq!(read, ProtocolParameters { cost_model_v3: vec![], ..whole.clone() }, "{quirk:?}");
    }
}

#[test]
fn the_price_of_a_byte_is_read_under_its_older_name() {
    let mut body = parameters();
    for older in [json!("4310"), json!(4310)] {
        body["coins_per_utxo_size"] = json!(null);
        body["coins_per_utxo_word"] = older;
        assert_eq!(protocol_parameters(body.to_string().as_bytes()).unwrap().coins_per_utxo_byte, 4_310);
    }
    assert!(parameters_with("coins_per_utxo_size", None).is_err(), "without either nothing can be checked");
}

#[test]
fn numbers_are_read_from_texts_and_texts_from_numbers() {
    for (field, value) in [
        ("max_val_size", json!(5000)),
        ("max_tx_ex_steps", json!(10_000_000_000_u64)),
        ("price_mem", json!("0.0577")),
        ("min_fee_a", json!("44")),
        ("price_step", json!(7.21e-5)),
    ] {
        let whole = protocol_parameters(parameters().to_string().as_bytes()).unwrap();
        assert_eq!(parameters_with(field, Some(value)).as_ref(), Ok(&whole), "{field}");
    }
    let read = output_with("amount", Some(json!([{ "unit": "lovelace", "quantity": 5_000_000 }])));
    assert_eq!(read, output_with("extra", Some(json!(null))));
}

#[test]
fn null_missing_and_unknown_fields_are_ignored() {
    let whole = output_with("extra", Some(json!({ "of": ["another", "vendor"] }))).unwrap();
    for field in ["collateral", "consumed_by_tx", "data_hash", "inline_datum", "reference_script_hash"] {
        for quirk in [None, Some(json!(null))] {
            assert_eq!(output_with(field, quirk.clone()).as_ref(), Ok(&whole), "{field}: {quirk:?}");
        }
    }
    let block = json!({
        "hash": "ab".repeat(32), "height": 7, "slot": 9, "time": 1, "epoch": 2, "slot_leader": null, "vendor": {},
        "block_vrf": null, "output": null, "fees": null,
    });
    assert_eq!(tip(block.to_string().as_bytes()).unwrap().height, 7);
}

#[test]
fn missing_fields_that_decide_about_money_are_errors() {
    for quirk in [None, Some(json!(null)), Some(json!([])), Some(json!([{ "unit": "lovelace", "quantity": null }]))] {
        assert!(output_with("amount", quirk).is_err());
    }
    assert!(output_with("amount", Some(json!([{ "unit": "lovelace", "quantity": 0.5 }]))).is_err());
    assert!(output_with("amount", Some(json!([{ "unit": "lovelace", "quantity": -1 }]))).is_err());
    let asked = TxHash::new([1; 32]);
    let mut tx = json!({
        "hash": asked, "block": "ab".repeat(32), "block_height": 1, "block_time": 1, "slot": 1, "valid_contract": true,
    });
    assert!(inclusion(tx.to_string().as_bytes(), &asked).is_ok());
    tx["valid_contract"] = json!(null);
    assert!(inclusion(tx.to_string().as_bytes(), &asked).is_err());
}
