//! Reports, column by column: the applications, numbers, and the terms that reports assume. Both statements of an exchange
//! compare these with the stored ones.

use crate::LedgerReport;
use crate::sql::tables::SqlField;

/// Whether the application of a report `r` has other terms than the report assumes. Without assumed ones they are not compared.
pub(crate) const IS_OUTDATED: &str = "(r.terms IS NOT NULL AND r.terms IS DISTINCT FROM
    coalesce(a.own_minute::text, '') || ' ' || coalesce(a.own_day::text, '') || ' ' || a.tier)";

pub(crate) struct ReportColumns<const N: usize> {
    pub(crate) applications: Vec<String>,
    pub(crate) numbers: [Vec<i64>; N],
    terms: Vec<Option<String>>,
}

impl<const N: usize> ReportColumns<N> {
    /// The columns of these reports, each with its numbers.
    pub(crate) fn new<'r>(reports: impl Iterator<Item = (&'r LedgerReport, [i64; N])>) -> Self {
        let mut columns = Self {
            applications: Vec::new(),
            numbers: [const { Vec::new() }; N],
            terms: Vec::new(),
        };
        for (report, numbers) in reports {
            columns.applications.push(report.application.to_string());
            columns.terms.push(terms(report));
            for (column, number) in columns.numbers.iter_mut().zip(numbers) {
                column.push(number);
            }
        }
        columns
    }

    pub(crate) fn terms(&self) -> SqlField<'_> {
        SqlField::OptionalTexts(&self.terms)
    }
}

/// The terms that a report assumes, as in [`IS_OUTDATED`].
fn terms(report: &LedgerReport) -> Option<String> {
    let terms = report.terms.as_ref()?;
    let [minute, day] = [terms.own.minute, terms.own.day]
        .map(|limit| limit.map_or_else(String::new, |limit| limit.to_string()));
    Some(format!("{minute} {day} {}", terms.tier))
}
