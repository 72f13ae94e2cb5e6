//! Stores the parsed lines of an import, and counts the outcomes.

use crate::cli::control::operator;
use crate::cli::exit::Exit;
use crate::cli::printer;
use scoregate_base::clock::{Mono, Wall};
use scoregate_base::routes::ModelId;
use scoregate_scoring::{
    Archive, ArchiveError, BadRun, ExportLine, RunInsertion, ScanPosition, Withdrawal,
};

use super::equal_messages::EqualMessages;
use super::tool_logs::ToolLogs;

/// The outcomes of an import.
#[derive(Default)]
pub(super) struct RunImportCounts {
    imported: u64,
    existing: u64,
    pub(super) rejected: u64,
    /// Lines of withdrawn runs, which stay withdrawn.
    withdrawn: u64,
    messages: EqualMessages,
}

/// Lines of one kind with their numbers.
struct NumberedLines<T> {
    numbers: Vec<u64>,
    lines: Vec<T>,
}

impl<T> Default for NumberedLines<T> {
    fn default() -> Self {
        Self {
            numbers: Vec::new(),
            lines: Vec::new(),
        }
    }
}

impl<T> NumberedLines<T> {
    fn push(&mut self, number: u64, line: T) {
        self.numbers.push(number);
        self.lines.push(line);
    }

    /// Stores the lines; returns for each its number and the outcome.
    fn stored(
        self,
        take: impl FnOnce(&[T]) -> Result<Vec<RunInsertion>, ArchiveError>,
    ) -> Result<impl Iterator<Item = (u64, RunInsertion)>, ArchiveError> {
        let outcomes = if self.lines.is_empty() {
            Vec::new()
        } else {
            take(&self.lines)?
        };
        Ok(self.numbers.into_iter().zip(outcomes))
    }
}

impl RunImportCounts {
    /// Stores what is valid, reports the invalid lines and counts the outcomes.
    pub(super) fn store(
        &mut self,
        archive: &Archive,
        now: Wall,
        file: &str,
        lines: Vec<(u64, Result<ExportLine, BadRun>)>,
    ) -> anyhow::Result<()> {
        let mut runs = NumberedLines::default();
        let mut withdrawals = NumberedLines::default();
        let mut incidents = NumberedLines::default();
        let mut positions = NumberedLines::default();
        let mut rejected = Vec::new();
        for (number, line) in lines {
            match line {
                // The reader sends it apart.
                Ok(ExportLine::Suites(_)) => {}
                Ok(ExportLine::Run(record)) => runs.push(number, record),
                Ok(ExportLine::Withdrawn(withdrawal)) => withdrawals.push(number, withdrawal),
                Ok(ExportLine::Incident(record)) => incidents.push(number, record),
                Ok(ExportLine::IncidentScan(model, position)) => {
                    positions.push(number, (model, position));
                }
                Err(bad) => rejected.push((number, bad)),
            }
        }
        let problem = "exists with other content; use a new id, or `scoregate scoring correct`";
        for (number, insertion) in runs.stored(|runs| archive.take(runs))? {
            if !self.count(insertion) {
                rejected.push((
                    number,
                    BadRun {
                        field: "id".into(),
                        problem: problem.into(),
                    },
                ));
            }
        }
        let take =
            |withdrawals: &[Withdrawal]| archive.take_withdrawals(withdrawals, &operator(), now);
        withdrawals.stored(take)?.for_each(|(_, insertion)| {
            self.count(insertion);
        });
        for (number, insertion) in
            incidents.stored(|records| archive.take_incidents(records, now))?
        {
            if !self.count(insertion) {
                let problem = "exists with other content, which stays".into();
                rejected.push((
                    number,
                    BadRun {
                        field: "incident.revision".into(),
                        problem,
                    },
                ));
            }
        }
        let take = |positions: &[(ModelId, ScanPosition)]| archive.take_scan_positions(positions);
        positions.stored(take)?.for_each(|(_, insertion)| {
            self.count(insertion);
        });
        rejected.sort_by_key(|(number, _)| *number);
        for (number, bad) in &rejected {
            self.rejected += 1;
            self.messages.report(format_args!("{file}:{number}"), bad);
        }
        Ok(())
    }

    /// Counts an outcome; returns false if the line has to be rejected.
    fn count(&mut self, insertion: RunInsertion) -> bool {
        match insertion {
            RunInsertion::New => self.imported += 1,
            RunInsertion::AlreadyThere => self.existing += 1,
            RunInsertion::Withdrawn => self.withdrawn += 1,
            RunInsertion::OtherContent => return false,
        }
        true
    }

    fn summary(&self) -> String {
        let Self {
            imported,
            existing,
            rejected,
            withdrawn,
            ..
        } = self;
        let withdrawn = if *withdrawn > 0 {
            format!(", {withdrawn} withdrawn")
        } else {
            String::new()
        };
        format!("{imported} imported, {existing} already present, {rejected} rejected{withdrawn}")
    }

    /// The counts so far, with runs per second.
    pub(super) fn with_rate(&self, started: Mono, now: Mono) -> String {
        let milliseconds = u64::try_from(now.since(started).as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let runs = self.imported + self.existing + self.rejected + self.withdrawn;
        format!(
            "{}, {} a second",
            self.summary(),
            runs.saturating_mul(1_000) / milliseconds
        )
    }

    /// Prints how many messages were equal, and the result.
    pub(super) fn print(&mut self, json: bool, logs: Option<&ToolLogs>) -> Exit {
        self.messages.finish();
        if let Some(logs) = logs {
            logs.counts().messages.finish();
        }
        let Self {
            imported,
            existing,
            rejected,
            withdrawn,
            ..
        } = self;
        if json {
            let mut counts = serde_json::json!({
                "imported": imported, "existing": existing, "rejected": rejected, "withdrawn": withdrawn
            });
            if let (Some(counts), Some(logs)) = (counts.as_object_mut(), logs) {
                counts.insert("logs".into(), logs.counts().json());
            }
            return printer::json(&counts);
        }
        let logs = logs
            .map(|logs| format!("{}\n", logs.counts().summary()))
            .unwrap_or_default();
        printer::data(&format!("{logs}{}\n", self.summary()))
    }
}
