//! Columns of reports: the applications, and the terms that the reports assume.

use crate::{LedgerReport, statements::SqlField};

/// Whether the application of a report `r` has terms other than the assumed ones. If the report assumes no terms,
/// nothing is compared.
pub const IS_OUTDATED: &str = "(r.terms IS NOT NULL AND r.terms IS DISTINCT FROM
    coalesce(a.own_limits, '') || ' ' || a.tier)";

pub struct ReportColumns {
    pub(crate) applications: Vec<String>,
    terms: Vec<Option<String>>,
}

impl ReportColumns {
    /// The columns of these reports.
    pub(crate) fn new(reports: &[LedgerReport]) -> Self {
        Self {
            applications: reports
                .iter()
                .map(|report| report.application.to_string())
                .collect(),
            terms: reports.iter().map(terms).collect(),
        }
    }

    pub(crate) fn terms(&self) -> SqlField<'_> {
        SqlField::OptionalTexts(&self.terms)
    }
}

/// The terms that a report assumes, as in [`IS_OUTDATED`].
fn terms(report: &LedgerReport) -> Option<String> {
    let terms = report.terms.as_ref()?;
    let own = terms.own.to_text().unwrap_or_default();
    Some(format!("{own} {}", terms.tier))
}
