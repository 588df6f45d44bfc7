//! Workers KV with a timeout.

use std::time::Duration;

use worker::KvError;
pub use worker::KvStore;

/// Timeout of a KV operation.
const TIME: Duration = Duration::from_secs(5);

/// Waits for a KV operation, with a timeout.
///
/// # Errors
/// Returns the reason as text if KV fails or takes too long.
pub async fn in_time<T>(asked: impl Future<Output = Result<T, KvError>>) -> Result<T, String> {
    let late = || format!("no answer within {} seconds", TIME.as_secs());
    crate::within(TIME, asked).await.ok_or_else(late)?.map_err(|error| error.to_string())
}
