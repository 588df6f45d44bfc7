//! Measures the CPU time per payment natively: `cargo bench -p x402-cardano`.
//!
//! The second column is relative to one Ed25519 verification on the same machine in the same run, to compare machines.
//! In the workers the same code runs as WebAssembly, and the runtime's WebCrypto verifies signatures.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "measures")]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a benchmark ends where it fails"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::{collections::BTreeSet, hint::black_box, time::Instant};

use cardano::{
    ContentHash, Lovelace, Network, ScriptHash, TxHash, TxRef,
    chain::{Utxo, Value},
    keys::{Native, SigningKey, verify},
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{BuiltTx, Wallet, build},
};
use escrow::{
    Datum, Deployment, Parameters, State,
    plan::{ChainTime, Escrow, Planner, Step},
};
use futures_util::FutureExt;
use support::{NOW_MS, Payment, address};
use x402_cardano::{
    escrow::TransferMethod,
    exact,
    method::{EscrowMethod, Offered, PaymentMethod, Sale},
    wire::{Accepted, ConfirmationPolicy, PaymentPayload},
};

/// Duration of each measurement, in milliseconds.
const MILLIS: u128 = 400;

fn main() {
    let yard = micros(|| {
        let key = support::key(1);
        let signature = key.sk.sign(b"a message of thirty-two bytes...", None);
        let (key, signature) = (*key.pk, *signature);
        move || verify(&Native, &key, b"a message of thirty-two bytes...", &signature).now_or_never().unwrap().unwrap()
    });
    println!("{:<58}{:>12}{:>22}", "one payment, on one processor", "µs", "Ed25519 verifications");
    let show = |name: &str, micros: f64| println!("{name:<58}{micros:>12.1}{:>22.2}", micros / yard);
    show("an Ed25519 signature verified (cardano::keys::Native)", yard);
    show("PAYMENT-SIGNATURE read into a transaction", micros(reading));
    show("an instant payment verified, all rules", micros(verifying));
    show("a protected quote issued and signed", micros(issuing));
    show("a quote recognised from what came back", micros(recognising));
    show("an escrow's datum read", micros(datum_reading));
    show("a result posted: planned, built twice, signed", micros(posting));
}

/// Returns the mean time of many runs after a warm-up, in microseconds.
fn micros<T, F: FnMut() -> T>(prepare: impl FnOnce() -> F) -> f64 {
    let mut work = prepare();
    for _ in 0..3 {
        black_box(work());
    }
    let start = Instant::now();
    let mut runs = 0_u32;
    while start.elapsed().as_millis() < MILLIS {
        black_box(work());
        runs = runs.saturating_add(1);
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(runs)
}

fn reading() -> impl FnMut() -> exact::Payment {
    let header = Payment::valid().header();
    move || exact::Payment::read(&PaymentPayload::from_header(&header).unwrap().payload).unwrap()
}

fn verifying() -> impl FnMut() -> TxHash {
    let payment = Payment::valid();
    let read = exact::Payment::of_transaction(&payment.transaction()).unwrap();
    move || payment.judge(&read).unwrap().tx_id
}

fn deployment() -> Deployment {
    Deployment {
        script_hash: ScriptHash::new([0xee; 28]),
        parameters: Parameters { required_admins: 1, admin_vkeys: vec![support::key_hash(9)], cooldown_period: 60_000 },
        reference_script: TxRef { tx: TxHash::new([7; 32]), index: 1 },
        reference_script_bytes: 4_000,
        blueprint_sha256: None,
    }
}

fn seller() -> SigningKey {
    SigningKey::from_seed(&[2; 32]).unwrap()
}

fn platform() -> EscrowMethod {
    EscrowMethod::new(Network::Preprod, deployment(), seller(), TransferMethod::Escrow, ConfirmationPolicy::IN_BLOCK)
        .unwrap()
}

fn sale() -> Sale<'static> {
    Sale { listing_id: "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV", price: Lovelace::from_ada(10), ..support::sale() }
}

fn offered() -> Offered {
    platform().offer(&sale(), NOW_MS, [3; 32]).unwrap()
}

fn issuing() -> impl FnMut() -> serde_json::Value {
    let platform = platform();
    move || serde_json::to_value(platform.offer(&sale(), NOW_MS, [3; 32]).unwrap().requirements).unwrap()
}

fn recognising() -> impl FnMut() -> bool {
    let platform = platform();
    let accepted = Accepted::echo(&offered().requirements).unwrap();
    move || platform.recognise(&sale(), &accepted).is_ok()
}

fn utxo(address: String, lovelace: Lovelace, inline_datum: Option<Vec<u8>>, index: u16) -> Utxo {
    let reference = TxRef { tx: TxHash::new([8; 32]), index };
    let value = Value { lovelace, ..Value::default() };
    Utxo { reference, address, value, inline_datum, datum_hash: None, reference_script: None }
}

fn locked() -> Escrow {
    let (parameters, slots) = (ProtocolParameters::preprod(), SlotConfig::PREPROD);
    let datum = platform().output(&offered(), &address(1), None, &parameters, &slots).unwrap().output.inline_datum;
    let output = utxo(deployment().address().to_string(), Lovelace::from_ada(12), datum, 0);
    Escrow::read(output, &deployment()).unwrap()
}

fn datum_reading() -> impl FnMut() -> State {
    let cbor = locked().datum.to_cbor();
    move || Datum::from_cbor(&cbor).unwrap().state
}

fn posting() -> impl FnMut() -> BuiltTx {
    let (escrow, seller, deployment, parameters) = (locked(), seller(), deployment(), ProtocolParameters::preprod());
    let own = seller.enterprise_address();
    let utxos = [utxo(own.to_string(), Lovelace::from_ada(900), None, 1)];
    let time = ChainTime { tip_slot: SlotConfig::PREPROD.slot_at(NOW_MS).unwrap(), now: NOW_MS };
    move || {
        let none = BTreeSet::new();
        let wallet = Wallet { address: own, utxos: &utxos, reserved: &none };
        let planner = Planner { deployment: &deployment, parameters: &parameters, slots: &SlotConfig::PREPROD };
        let plan = planner.plan(&escrow, &Step::SubmitResult(ContentHash::new([6; 32])), time).unwrap();
        black_box(build(&plan, &wallet, &parameters).unwrap().unsigned_cbor().unwrap());
        build(&plan, &wallet, &parameters).unwrap().sign(&[&seller]).unwrap()
    }
}
