//! The lines of an export: the suite table, then the runs.

use super::run::{BadRun, RunLine, SuiteTable};

/// A line of an export.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportLine {
    /// The suite table, which applies to the lines after it.
    Suites(SuiteTable),
    /// A run.
    Run(RunLine),
}

impl ExportLine {
    /// Parses a line. Lines of runs never start with `suites`.
    pub fn parse(line: &str) -> Result<Self, BadRun> {
        if Self::is_suites(line) {
            SuiteTable::parse_line(line).map(Self::Suites)
        } else {
            RunLine::parse(line).map(Self::Run)
        }
    }

    /// Whether a line is meant to be a suite table, even if it cannot be parsed.
    pub fn is_suites(line: &str) -> bool {
        let fields = line.trim_start().strip_prefix('{').unwrap_or_default();
        fields.trim_start().starts_with("\"suites\"")
    }
}
