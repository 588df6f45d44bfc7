//! Runs the decoders on the stored corpus: a minimal set of inputs with full coverage, and all inputs that ever failed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../fuzz/src/lib.rs"]
mod decoders;

use std::{fs, path::Path};

#[test]
fn every_decoder_keeps_its_promise_for_every_input_that_the_fuzzer_kept() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut folders: Vec<_> =
        fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    assert!(folders.iter().eq(decoders::DECODERS.iter().map(|(name, _)| name)), "{folders:?}");
    for (name, decode) in decoders::DECODERS {
        let inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{name}");
        for input in inputs {
            // The test's output names the input that a decoder panics at.
            println!("{}", input.display());
            decode(&fs::read(&input).unwrap());
        }
    }
}
