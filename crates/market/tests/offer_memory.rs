//! A worker has 128 MB for all its requests: reading an offer takes little more than its body.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use market::listing::{MAX_CONTENT_BYTES, NewListing};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The longest body that is read, in bytes.
const BODY: usize = 6 * MAX_CONTENT_BYTES + (64 << 10);

/// Bytes that reading took at its peak, beyond the body itself, and the field that was refused.
fn reading(body: &[u8]) -> (usize, Option<&'static str>) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let read = NewListing::read(body, None);
    (ALLOCATOR.peak_usage() - before, read.err().map(|error| error.field))
}

fn offer(content: &str, more: &str) -> Vec<u8> {
    format!(
        r#"{{"title":"A hero","description":"x","priceLovelace":"1000000","modes":["instant"],
        "sellerAddress":"addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz","content":"{content}"{more}}}"#
    )
    .into_bytes()
}

/// One test, for the peak is the whole program's.
#[test]
fn whatever_a_body_of_six_mebibytes_holds_little_is_kept_of_it() {
    let mib = MAX_CONTENT_BYTES;
    let filled = |unit: &str| unit.repeat((BODY - 1_024) / unit.len());
    for (what, body, refused, most) in [
        ("a content of escapes", offer(&"\\u0001".repeat(mib), ""), None, 4 * mib),
        ("a content as it is", offer(&"x".repeat(mib), ""), None, 2 * mib),
        ("a content too long", offer(&"x".repeat(5 * mib), ""), Some("content"), mib),
        ("a content too long, of escapes", offer(&format!("\\n{}", filled("x")), ""), Some("content"), 17 * mib),
        ("a category of megabytes", offer("x", &format!(r#","category":"{}""#, filled("x"))), Some("category"), mib),
        ("unknown texts", offer("x", &format!(r#","more":"{}""#, filled("\\n"))), None, mib),
        ("unknown lists", offer("x", &format!(r#","more":[{}0]"#, filled("[],"))), None, mib),
        ("unknown objects", offer("x", &format!(r#","more":[{}0]"#, filled(r#"{"a":1},"#))), None, mib),
        ("texts in place of a text", offer("x", &format!(r#","category":[{}0]"#, filled("0,"))), Some("category"), mib),
        ("modes without end", format!(r#"{{"modes":[{}0]}}"#, filled(r#""x","#)).into_bytes(), Some("title"), mib),
        ("only brackets", filled("[").into_bytes(), Some("body"), mib),
        ("unknown brackets", offer("x", &format!(r#","more":{}"#, filled("["))), Some("body"), 17 * mib),
        ("fields without end", format!("{{{}}}", filled(r#""a":1,"#)).into_bytes(), Some("body"), mib),
    ] {
        assert!(body.len() <= BODY, "{what}: {} bytes", body.len());
        let (peak, field) = reading(&body);
        println!("{what}: {} KiB beside {} KiB", peak >> 10, body.len() >> 10);
        assert_eq!(field, refused, "{what}");
        assert!(peak <= most, "{what}: {peak} bytes");
    }
}
