//! Why a line or a table was rejected.

use serde::Deserialize;

use scoregate_base::json;

/// Why a run, another line of an export, or a suite table was rejected: the field and the expected value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadRun {
    /// The path of the field, such as `trials[2].scores.spec`.
    pub field: String,
    /// The problem, and the expected value.
    pub problem: String,
}

impl BadRun {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// Parses a line of JSON. The error names the field.
    pub(crate) fn parse<'l, T: Deserialize<'l>>(line: &'l str) -> Result<T, Self> {
        json::read(line.as_bytes())
            .map_err(|bad| Self::new(bad.field.as_deref().unwrap_or("line"), bad.problem))
    }

    /// The same problem in a nested field.
    pub(super) fn within(self, whole: &str) -> Self {
        Self {
            field: format!("{whole}.{}", self.field),
            ..self
        }
    }
}

/// Checks an amount of money or time.
pub fn check_amount(amount: f64) -> Result<(), String> {
    if amount.is_finite() && amount >= 0.0 {
        return Ok(());
    }
    Err(format!(
        "{amount} is not an amount; write a number of at least 0"
    ))
}
