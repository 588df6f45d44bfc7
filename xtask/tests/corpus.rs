//! Replays the fuzzing corpora. Each contains a minimal set of inputs that reaches all code that fuzzing ever reached,
//! and every input that ever failed.
//!
//! A corpus is one file for each decoder, with one input in hex per line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../fuzz/src/lib.rs"]
mod decoders;

use std::{fs, path::Path};

#[test]
fn every_decoder_keeps_its_promise_for_every_input_that_the_fuzzer_kept() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut files: Vec<_> =
        fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert!(
        files.iter().eq(decoders::DECODERS.iter().map(|(name, _)| format!("{name}.hex")).collect::<Vec<_>>().iter())
    );
    for (name, decode) in decoders::DECODERS {
        let inputs = fs::read_to_string(corpus.join(format!("{name}.hex"))).unwrap();
        assert!(!inputs.is_empty(), "{name}");
        for (index, input) in inputs.lines().enumerate() {
            // The test's output names the input that a decoder panics at.
            println!("{name}.hex:{}", index.saturating_add(1));
            decode(&hex::decode(input).unwrap());
        }
    }
}
