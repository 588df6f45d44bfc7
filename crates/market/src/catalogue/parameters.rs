//! Collects the parameters of SQL statements that are assembled from parts.

use sql::Param;

/// Values of the parameters of an SQL statement that is being assembled.
#[derive(Default)]
pub(super) struct Parameters(pub(super) Vec<Param>);

impl Parameters {
    /// Adds a parameter and returns its name in SQL, such as `?3`.
    pub(super) fn name(&mut self, value: impl Into<Param>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }
}
