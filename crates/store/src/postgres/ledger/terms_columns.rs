//! The terms that reports assume, column by column: both statements of an exchange compare them with the stored ones.

use crate::AssumedTerms;
use crate::postgres::connection::schema_client::Parameter;

/// Tiers and own limits.
#[derive(Default)]
pub(crate) struct TermsColumns {
    tiers: Vec<Option<String>>,
    own_minutes: Vec<Option<i64>>,
    own_days: Vec<Option<i64>>,
}

impl TermsColumns {
    /// Adds the terms of a report. Without a tier they are not compared.
    pub(crate) fn push(&mut self, terms: Option<&AssumedTerms>) {
        let own = terms.map(|terms| terms.own).unwrap_or_default();
        self.tiers.push(terms.map(|terms| terms.tier.to_string()));
        self.own_minutes.push(own.minute.map(i64::from));
        self.own_days.push(own.day.map(i64::from));
    }

    /// The columns as parameters: tiers, own minutes, own days.
    pub(crate) fn parameters(&self) -> [&dyn Parameter; 3] {
        [&self.tiers, &self.own_minutes, &self.own_days]
    }
}
