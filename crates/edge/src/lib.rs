//! Cloudflare's runtime behind the service's ports: D1, the chain provider over fetch, WebCrypto, time and randomness.
//!
//! Besides the workers themselves this is the only crate that names `worker`.

pub mod answer;
pub mod bearer;
pub mod chain;
pub mod client;
pub mod contents;
pub mod d1;
pub mod documents;
pub mod ed25519;
pub mod http;
pub mod jws;
pub mod keys;
pub mod log;
pub mod serve;
pub mod settings;
pub mod timer;
pub mod usage;

pub use getrandom::Error as RandomError;
pub use usage::{MAX_OUTSIDE_CALLS, Usage};

/// POSIX ms by the runtime's clock (which stands still while a request computes).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn now_ms() -> u64 {
    // Exact until the year 287396.
    js_sys::Date::now() as u64
}

/// Random bytes from the runtime's secure source.
///
/// # Errors
/// The runtime has no secure source: nothing that needs one may go on.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for randomness")]
pub fn random<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Waits.
pub async fn sleep(time: std::time::Duration) {
    worker::Delay::from(time).await;
}
