//! Any bytes as a wallet's signature: never a panic. The first two bytes say how many of the rest are the COSE_Key.
#![no_main]

use cardano::cip8::SignedMessage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (key, signature) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
    if let Ok(message) = SignedMessage::parse(key, signature) {
        let _ = message.check(&message.address().clone(), &[0; 32]);
        assert!(signature.windows(64).any(|part| part == message.signature()));
    }
});
