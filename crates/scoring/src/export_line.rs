//! The lines of an export: the suite table, runs, then what was withdrawn, then the records of incidents.

use scoregate_base::clock::Wall;
use scoregate_base::routes::ModelId;

use super::incident_scan::incident::{IncidentRecord, ScanPosition};
use super::run::{BadRun, IdentifiedRun, SuiteTable, Withdrawal};

/// A line of an export.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportLine {
    /// The suite table, which applies to the lines after it.
    Suites(SuiteTable),
    /// A run.
    Run(IdentifiedRun),
    /// A withdrawn run.
    Withdrawn(Withdrawal),
    /// A revision of an incident.
    Incident(IncidentRecord),
    /// The position of the scan of a model.
    IncidentScan(ModelId, ScanPosition),
}

impl ExportLine {
    /// Parses a line; `now` limits its times. Lines of runs never begin with the field of another line.
    pub fn read(line: &str, now: Wall, suites: &SuiteTable) -> Result<Self, BadRun> {
        let fields = fields(line);
        if Self::is_suites(line) {
            SuiteTable::read_line(line).map(Self::Suites)
        } else if fields.starts_with("\"withdrawn\"") {
            Withdrawal::read(line, now).map(Self::Withdrawn)
        } else if fields.starts_with("\"incident\"") {
            IncidentRecord::read(line, now).map(Self::Incident)
        } else if fields.starts_with("\"incidentScan\"") {
            ScanPosition::read(line, now)
                .map(|(model, position)| Self::IncidentScan(model, position))
        } else {
            IdentifiedRun::read(line, now, suites).map(Self::Run)
        }
    }

    /// Whether a line is to be a suite table, even if it cannot be read.
    pub fn is_suites(line: &str) -> bool {
        fields(line).starts_with("\"suites\"")
    }

    /// Writes it.
    pub fn write(&self) -> String {
        match self {
            Self::Suites(table) => table.write_line(),
            Self::Run(record) => record.write(),
            Self::Withdrawn(withdrawal) => withdrawal.write(),
            Self::Incident(record) => record.write(),
            Self::IncidentScan(model, position) => position.write(model),
        }
    }
}

/// The text of a line after its opening brace.
fn fields(line: &str) -> &str {
    line.trim_start()
        .strip_prefix('{')
        .map_or("", str::trim_start)
}
