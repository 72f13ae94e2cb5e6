//! Query parameters of the side port's paths that are not commands, without percent-decoding.
//!
//! Does not parse queries of the public API; see `routes::params`.

use super::command_problem::{CommandProblem, CommandResult};

pub(super) struct QueryPairs<'q>(Vec<(&'q str, &'q str)>);

impl<'q> QueryPairs<'q> {
    /// Parses a query; only these names are accepted.
    pub(super) fn read(query: Option<&'q str>, names: &[&str]) -> CommandResult<Self> {
        let pairs = query
            .unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty());
        let pairs: Vec<_> = pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        if pairs.iter().any(|(name, _)| !names.contains(name)) {
            return Err(CommandProblem::bad(format!(
                "unknown query parameter; the parameters are {}",
                names.join(", ")
            )));
        }
        Ok(Self(pairs))
    }

    /// The last value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&'q str> {
        self.0
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// The last value of a parameter, as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> CommandResult<Option<T>> {
        let bad = |_| CommandProblem::bad(format!("`{name}` must be a number"));
        self.get(name)
            .map(|text| text.parse().map_err(bad))
            .transpose()
    }
}

/// An id of a path or a body.
pub(super) fn parsed_id<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
) -> CommandResult<T> {
    text.parse()
        .map_err(|bad: T::Err| CommandProblem::bad(bad.to_string()))
}
