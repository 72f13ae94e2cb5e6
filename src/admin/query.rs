//! The parameters in a query of the side port: names and values, none of which needs an escape.
//!
//! Not for: queries of the API (`routes::params`), which strangers send.

use super::command::CommandProblem;

/// The parameters.
pub(super) struct QueryPairs<'q>(Vec<(&'q str, &'q str)>);

impl<'q> QueryPairs<'q> {
    /// Reads those of a query, which may have these names alone.
    pub(super) fn read(query: Option<&'q str>, names: &[&str]) -> Result<Self, CommandProblem> {
        let pairs = query.unwrap_or("").split('&').filter(|pair| !pair.is_empty());
        let pairs: Vec<_> = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        if pairs.iter().any(|(name, _)| !names.contains(name)) {
            return Err(CommandProblem::bad(format!("the query may have {}", names.join(", "))));
        }
        Ok(Self(pairs))
    }

    /// What was said last by that name.
    pub(super) fn get(&self, name: &str) -> Option<&'q str> {
        self.0.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The same, as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, CommandProblem> {
        let bad = |_| CommandProblem::bad(format!("`{name}` has to be a number"));
        self.get(name).map(|text| text.parse().map_err(bad)).transpose()
    }
}
