//! Reports, column by column: the applications, numbers, and the terms that reports assume. Both statements of an exchange
//! compare these with the stored ones.

use crate::LedgerReport;
use crate::postgres::connection::schema_client::Parameter;

pub(crate) struct ReportColumns<const N: usize> {
    pub(crate) applications: Vec<String>,
    pub(crate) numbers: [Vec<i64>; N],
    tiers: Vec<Option<String>>,
    own_limits: Vec<Option<String>>,
}

impl<const N: usize> ReportColumns<N> {
    /// The columns of these reports, each with its numbers. Without a tier, terms are not compared.
    pub(crate) fn new<'r>(reports: impl Iterator<Item = (&'r LedgerReport, [i64; N])>) -> Self {
        let numbers = [const { Vec::new() }; N];
        let (applications, tiers, own_limits) = Default::default();
        let mut columns = Self {
            applications,
            numbers,
            tiers,
            own_limits,
        };
        for (report, numbers) in reports {
            let terms = report.terms.as_ref();
            columns.applications.push(report.application.to_string());
            columns
                .tiers
                .push(terms.map(|terms| terms.tier.to_string()));
            columns
                .own_limits
                .push(terms.and_then(|terms| terms.own.to_text()));
            for (column, number) in columns.numbers.iter_mut().zip(numbers) {
                column.push(number);
            }
        }
        columns
    }

    /// The columns of numbers as parameters.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &dyn Parameter> {
        self.numbers.iter().map(|column| column as &dyn Parameter)
    }

    /// The terms as parameters: tiers, own limits.
    pub(crate) fn terms(&self) -> [&dyn Parameter; 2] {
        [&self.tiers, &self.own_limits]
    }
}
