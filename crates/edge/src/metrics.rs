//! Metrics in a dataset of Workers Analytics Engine: one data point per payment and one per run of the watcher
//! (a *tick*).
//!
//! A data point consists of enumerated values and numbers, so it cannot contain anything that identifies a user.
//! Without the binding, nothing is written. A failure to write is logged, and never fails a request or a run of the
//! watcher.
//!
//! | column    | payment                                           | tick                                |
//! |-----------|---------------------------------------------------|-------------------------------------|
//! | `index1`  | `payment`                                         | `tick`                              |
//! | `blob1`   | outcome: `delivered`, or the code of the error    | outcome: `complete` or `failed`     |
//! | `blob2`   | delivery mode; empty if the payment names none    |                                     |
//! | `double1` | seconds from the request to its answer            | seconds that the tick took          |
//! | `double2` | calls to the provider                             | calls to the provider and arbiter   |
//! | `double3` |                                                   | actions submitted                   |
//! | `double4` |                                                   | failures: notes in its log line     |

use std::time::Duration;

use api_types::{DeliveryMode, ErrorCode};
use worker::{AnalyticsEngineDataPointBuilder, Env};

/// Name of the dataset's binding.
const BINDING: &str = "METRICS";

/// A data point, one row of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum DataPoint {
    /// A request that presented a payment, or that bought from a service wallet.
    Payment {
        /// `None` if the payment names no delivery mode of this service.
        mode: Option<DeliveryMode>,
        /// Reason why the content was not delivered; `None` if it was.
        error: Option<ErrorCode>,
        /// Time from the request to its answer.
        time: Duration,
        /// Number of calls to the provider.
        calls: u32,
    },
    /// A run of the watcher (a *tick*).
    Tick {
        /// `false` if the run ended early.
        is_complete: bool,
        /// Duration of the run.
        time: Duration,
        /// Number of outgoing calls.
        calls: u32,
        /// Number of submitted actions.
        actions: usize,
        /// Number of failures that are noted in the run's log line.
        failures: usize,
    },
}

impl DataPoint {
    /// Writes the data point to the dataset of this worker, if one is bound.
    pub fn write(&self, env: &Env) {
        let Ok(dataset) = env.analytics_engine(BINDING) else { return };
        let (index, blobs, doubles) = self.columns();
        let point = AnalyticsEngineDataPointBuilder::new().indexes([index]).blobs(blobs).doubles(doubles);
        if let Err(error) = point.write_to(&dataset) {
            crate::log::fault(&error);
        }
    }

    /// Returns the values of the columns in the table above: `index1`, the texts from `blob1` on, and the numbers from
    /// `double1` on.
    fn columns(&self) -> (&'static str, Vec<String>, Vec<f64>) {
        match self {
            Self::Payment { mode, error, time, calls } => {
                let outcome = error.map_or_else(|| "delivered".to_owned(), name);
                let mode = mode.map_or("", DeliveryMode::as_str).to_owned();
                ("payment", vec![outcome, mode], vec![time.as_secs_f64(), f64::from(*calls)])
            }
            Self::Tick { is_complete, time, calls, actions, failures } => {
                let outcome = if *is_complete { "complete" } else { "failed" };
                let doubles = vec![time.as_secs_f64(), f64::from(*calls), count(*actions), count(*failures)];
                ("tick", vec![outcome.to_owned()], doubles)
            }
        }
    }
}

/// Returns the name of an error code as it appears in the API's responses.
fn name(code: ErrorCode) -> String {
    serde_json::to_value(code).ok().and_then(|code| Some(code.as_str()?.to_owned())).unwrap_or_default()
}

fn count(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undelivered_payment_is_labelled_with_its_error_code() {
        let (mode, error, time) =
            (Some(DeliveryMode::Protected), Some(ErrorCode::PaymentPending), Duration::from_millis(45_500));
        let point = DataPoint::Payment { mode, error, time, calls: 9 };
        let blobs = vec!["payment_pending".to_owned(), "protected".to_owned()];
        assert_eq!(point.columns(), ("payment", blobs, vec![45.5, 9.0]));
    }
}
