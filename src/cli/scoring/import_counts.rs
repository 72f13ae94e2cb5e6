//! Stores the parsed lines of an import, and counts the outcomes.

use crate::cli::control::operator;
use crate::cli::exit::Exit;
use crate::cli::printer;
use crate::clock::{Mono, Wall};
use crate::scoring::{Archive, BadRun, ExportLine, RunInsertion};

use super::tool_logs::ToolLogs;

/// The outcomes of an import.
#[derive(Default)]
pub(super) struct RunImportCounts {
    imported: u64,
    existing: u64,
    pub(super) rejected: u64,
    /// Lines of withdrawn runs, which stay withdrawn.
    withdrawn: u64,
}

impl RunImportCounts {
    /// Stores the valid runs, reports the invalid lines and counts the outcomes.
    pub(super) fn store(
        &mut self,
        archive: &Archive,
        now: Wall,
        lines: Vec<(u64, Result<ExportLine, BadRun>)>,
        report: &dyn Fn(u64, &BadRun),
    ) -> anyhow::Result<()> {
        let (mut numbers, mut records) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
        let (mut withdrawals, mut rejected) = (Vec::new(), Vec::new());
        for (number, line) in lines {
            match line {
                Ok(ExportLine::Run(record)) => {
                    numbers.push(number);
                    records.push(record);
                }
                Ok(ExportLine::Withdrawn(withdrawal)) => withdrawals.push(withdrawal),
                Err(bad) => rejected.push((number, bad)),
            }
        }
        for ((number, record), insertion) in numbers.iter().zip(&records).zip(archive.take(&records)?) {
            match insertion {
                RunInsertion::New => self.imported += 1,
                RunInsertion::AlreadyThere => self.existing += 1,
                RunInsertion::Withdrawn => self.withdrawn += 1,
                RunInsertion::OtherContent => {
                    let problem = format!(
                        "{} exists with other content; use a new id, or `scoregate scoring correct`",
                        record.id
                    );
                    rejected.push((*number, BadRun { field: "id".into(), problem }));
                }
            }
        }
        if !withdrawals.is_empty() {
            let taken = archive.take_withdrawals(&withdrawals, &operator(), now)?;
            let new = taken.iter().filter(|insertion| **insertion == RunInsertion::New).count();
            self.imported += new as u64;
            self.existing += (taken.len() - new) as u64;
        }
        rejected.sort_by_key(|(number, _)| *number);
        for (number, bad) in &rejected {
            self.rejected += 1;
            report(*number, bad);
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let Self { imported, existing, rejected, withdrawn } = self;
        let withdrawn = if *withdrawn > 0 { format!(", {withdrawn} withdrawn") } else { String::new() };
        format!("{imported} imported, {existing} already present, {rejected} rejected{withdrawn}")
    }

    /// The counts so far, with runs per second.
    pub(super) fn with_rate(&self, started: Mono, now: Mono) -> String {
        let milliseconds = u64::try_from(now.since(started).as_millis()).unwrap_or(u64::MAX).max(1);
        let runs = self.imported + self.existing + self.rejected + self.withdrawn;
        format!("{}, {} a second", self.summary(), runs.saturating_mul(1_000) / milliseconds)
    }

    /// Prints the result.
    pub(super) fn print(&self, json: bool, logs: Option<&ToolLogs>) -> Exit {
        let Self { imported, existing, rejected, withdrawn } = self;
        if json {
            let mut counts = serde_json::json!({
                "imported": imported, "existing": existing, "rejected": rejected, "withdrawn": withdrawn
            });
            if let (Some(counts), Some(logs)) = (counts.as_object_mut(), logs) {
                counts.insert("logs".into(), logs.json());
            }
            return printer::data(&format!("{counts:#}\n"));
        }
        let logs = logs.map(|logs| format!("{}\n", logs.summary())).unwrap_or_default();
        printer::data(&format!("{logs}{}\n", self.summary()))
    }
}
