#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surety_fuzz::cose(bytes));
