//! The lines of an export: the suite table, then the runs.

use scoregate_base::clock::Wall;

use super::run::{BadRun, IdentifiedRun, SuiteTable};

/// A line of an export.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportLine {
    /// The suite table, which applies to the lines after it.
    Suites(SuiteTable),
    /// A run.
    Run(IdentifiedRun),
}

impl ExportLine {
    /// Parses a line; `now` limits its times. Lines of runs never begin with `suites`.
    pub fn read(line: &str, now: Wall, suites: &SuiteTable) -> Result<Self, BadRun> {
        if Self::is_suites(line) {
            SuiteTable::read_line(line).map(Self::Suites)
        } else {
            IdentifiedRun::read(line, now, suites).map(Self::Run)
        }
    }

    /// Whether a line is to be a suite table, even if it cannot be read.
    pub fn is_suites(line: &str) -> bool {
        let fields = line.trim_start().strip_prefix('{').unwrap_or_default();
        fields.trim_start().starts_with("\"suites\"")
    }

    /// Writes it.
    pub fn write(&self) -> String {
        match self {
            Self::Suites(table) => table.write_line(),
            Self::Run(record) => record.write(),
        }
    }
}
