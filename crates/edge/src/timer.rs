//! Waiting.

use std::time::Duration;

use cardano::slots::Millis;
use outbox::Sleep;

/// Waits by the runtime's timer, but no longer than until a time.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    until: Millis,
}

impl Timer {
    /// Waits no longer than until a time, POSIX ms.
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
