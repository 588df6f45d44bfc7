//! Any bytes as the accepted entry of a paid retry: never a panic, and what is read is written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use x402_cardano::{
    escrow::BlockchainIdentifier,
    wire::{Accepted, PaymentRequirements},
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(entry) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(accepted) = serde_json::from_value::<Accepted>(entry.clone()) else { return };
    let Ok(requirements) = serde_json::from_value::<PaymentRequirements>(entry.clone()) else { return };
    // An `extra` that is left out is written as an empty one.
    let whole = entry.get("extra").is_some();
    assert_eq!(accepted.is(&requirements), whole, "every value has one spelling");
    let Some(extra) = requirements.extra.escrow() else { return };
    let _ = extra.terms_digest(&requirements);
    let _ = extra.input_commitment.check();
    // `payTo` is any text until it is compared with the escrow's address: one with a dot in it cannot be found again.
    let identifier = extra.identifier(&requirements.pay_to);
    if let Ok(read) = BlockchainIdentifier::decode(&identifier.encode()) {
        assert_eq!(read, identifier);
    }
});
