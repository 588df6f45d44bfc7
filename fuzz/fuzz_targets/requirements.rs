//! Any bytes as the accepted entry of a paid retry: never a panic, and what is read is written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use x402_cardano::escrow::{EscrowRequirements, Identifier};

fuzz_target!(|bytes: &[u8]| {
    let Ok(entry) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(requirements) = EscrowRequirements::parse(&entry) else { return };
    let _ = requirements.terms_digest();
    let _ = requirements.extra.input_commitment.check();
    // `payTo` is any text until it is compared with the escrow's address: one with a dot in it cannot be found again.
    if let Ok(identifier) = Identifier::decode(&requirements.identifier().encode()) {
        assert_eq!(identifier, requirements.identifier());
    }
    // Fields beside the seven of the entry itself are not read; every other value has one spelling.
    let Value::Object(written) = serde_json::to_value(&requirements).expect("texts and small numbers") else { return };
    for (name, value) in written {
        assert_eq!(entry.get(&name), Some(&value), "{name}");
    }
});
