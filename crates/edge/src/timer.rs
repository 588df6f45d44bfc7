//! Waiting with the runtime's timer.

use std::time::Duration;

use cardano::slots::Millis;
use outbox::Sleep;

/// A timer that waits by the runtime's clock, but never beyond a deadline.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    until: Millis,
}

impl Timer {
    /// Creates a timer with a deadline, in POSIX milliseconds.
    #[must_use]
    pub const fn until(until: Millis) -> Self {
        Self { until }
    }
}

impl Sleep for Timer {
    async fn sleep(&self, ms: Millis) {
        let left = self.until.saturating_sub(crate::now_ms());
        crate::sleep(Duration::from_millis(ms.min(left))).await;
    }
}
