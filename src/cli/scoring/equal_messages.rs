//! Messages about lines and logs. The first of several identical messages is printed, and the others are counted.

use std::{collections::BTreeMap, fmt::Display};

use crate::cli::printer;

/// Maximum number of different problems that are counted. Further problems are always printed.
const MOST_PROBLEMS: usize = 1_000;

/// Problems, each with the number of suppressed messages.
#[derive(Debug, Default)]
pub struct EqualMessages(BTreeMap<String, u64>);

impl EqualMessages {
    /// Prints a problem, unless the same problem was already printed.
    pub fn report(&mut self, place: impl Display, problem: impl Display) {
        let problem = problem.to_string();
        if let Some(count) = self.0.get_mut(&problem) {
            *count += 1;
            return;
        }
        printer::message(&format!("{place}: {problem}"));
        if self.0.len() < MOST_PROBLEMS {
            self.0.insert(problem, 0);
        }
    }

    /// Prints for each problem how many identical messages were suppressed.
    pub fn finish(&mut self) {
        for (problem, count) in std::mem::take(&mut self.0)
            .into_iter()
            .filter(|(_, count)| *count > 0)
        {
            printer::message(&format!("{count} more: {problem}"));
        }
    }
}
