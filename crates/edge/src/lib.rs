//! Implements the service's ports on Cloudflare's runtime: D1, KV, the chain provider over fetch, WebCrypto, time and
//! randomness.
//!
//! Apart from the workers themselves, this is the only crate that uses the crate `worker`.

pub mod answer;
pub mod bearer;
pub mod chain;
pub mod challenges;
pub mod client;
pub mod contents;
pub mod d1;
pub mod documents;
pub mod ed25519;
pub mod http;
pub mod jws;
pub mod keys;
pub mod kv;
pub mod log;
pub mod metrics;
pub mod queue;
pub mod semaphore;
pub mod serve;
pub mod settings;
pub mod timer;
pub mod usage;

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use futures_util::future::{Either, select};
pub use getrandom::Error as RandomError;
pub use usage::{MAX_OUTSIDE_CALLS, Usage};

/// Returns the current time in POSIX milliseconds. The runtime's clock stands still while a request computes.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn now_ms() -> u64 {
    // Exact until the year 287396.
    js_sys::Date::now() as u64
}

/// Returns random bytes from the runtime's secure source.
///
/// # Errors
/// [`RandomError`] if the runtime has no secure source.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for randomness")]
pub fn random<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Waits for a duration.
pub async fn sleep(time: Duration) {
    again(worker::Delay::from(time)).await;
}

/// Returns the result of `work`, or `None` if it is not ready within `time`.
async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(Box::pin(work), pin!(sleep(time))).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// Returns a future that first yields, and then polls `timer`. The runtime's timers wake only the task that polled them
/// first, but the first poll of a request ([`serve::serve`]) happens outside any task.
async fn again<T>(timer: impl Future<Output = T>) -> T {
    let mut polled = false;
    poll_fn(|context| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    timer.await
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        task::{Context, Wake, Waker},
    };

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_timer_wakes_the_task_that_polled_last() {
        let kept = Cell::new(None);
        let timer = poll_fn(|context| {
            kept.set(Some(kept.take().unwrap_or_else(|| context.waker().clone())));
            Poll::<()>::Pending
        });
        let mut waiting = pin!(again(timer));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let woken = Arc::new(Woken::default());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&woken.clone().into())).is_pending());
        kept.take().unwrap().wake();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }
}
