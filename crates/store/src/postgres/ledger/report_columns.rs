//! Reports, column by column: the applications, and the terms that reports assume.

use crate::LedgerReport;
use crate::postgres::connection::schema_client::Parameter;

#[derive(Default)]
pub(crate) struct ReportColumns {
    pub(crate) applications: Vec<String>,
    tiers: Vec<Option<String>>,
    own_minutes: Vec<Option<i64>>,
    own_days: Vec<Option<i64>>,
}

impl ReportColumns {
    /// The columns of these reports. Without a tier, terms are not compared.
    pub(crate) fn new(reports: &[LedgerReport]) -> Self {
        let mut columns = Self::default();
        for report in reports {
            let terms = report.terms.as_ref();
            let own = terms.map(|terms| terms.own).unwrap_or_default();
            columns.applications.push(report.application.to_string());
            columns
                .tiers
                .push(terms.map(|terms| terms.tier.to_string()));
            columns.own_minutes.push(own.minute.map(i64::from));
            columns.own_days.push(own.day.map(i64::from));
        }
        columns
    }

    /// The terms as parameters: tiers, own minutes, own days.
    pub(crate) fn terms(&self) -> [&dyn Parameter; 3] {
        [&self.tiers, &self.own_minutes, &self.own_days]
    }
}
