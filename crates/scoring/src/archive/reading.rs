//! Reads the archive: the series of every model for a refresh, and every run for an export.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use scoregate_base::clock::Wall;

use super::rows::{self, StoredRun};
use super::suites::StoredSuites;
use super::{Archive, ArchiveError, Trouble, day_number, incident_records, query, summed_by, sums};
use crate::hour::HourRange;
use crate::incident_scan::incident::IncidentHistory;
use crate::run::{IdentifiedRun, RunId, SuiteTable, TestedModel};
use crate::series::ScoreSeries;

/// The newest entries of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewestRuns {
    /// The end of the last import.
    pub import: Option<Wall>,
    /// The newest run.
    pub run: Option<Wall>,
}

/// A model of an archive, with its series in a window.
pub(crate) struct ArchivedModel<'s> {
    pub model: Arc<TestedModel>,
    pub series: &'s ScoreSeries,
    pub window: HourRange,
    /// Its recorded incidents.
    pub incidents: IncidentHistory,
    /// Its newest run in the window.
    pub last_run: Option<(RunId, Wall)>,
}

impl Archive {
    /// The suite table.
    pub fn suites(&self) -> Result<Arc<SuiteTable>, ArchiveError> {
        self.with(|inside| Ok(StoredSuites::load(&inside.connection)?.table))
    }

    /// Passes every model with runs in a window, one at a time, by id. The window is chosen by the last import and the
    /// newest run, which are returned with the suite table.
    pub(crate) fn each_series(
        &self,
        window: &dyn Fn(NewestRuns) -> HourRange,
        each: &mut dyn FnMut(ArchivedModel<'_>),
    ) -> Result<(Arc<SuiteTable>, NewestRuns), ArchiveError> {
        self.with(|inside| {
            // A consistent view: an import that ends meanwhile is seen by the next refresh.
            let view = inside.connection.transaction()?;
            let newest = NewestRuns {
                import: last_import(&view)?,
                run: newest_run(&view)?,
            };
            let window = window(newest);
            let by: String =
                view.query_row("SELECT method FROM summed_by", [], |row| row.get(0))?;
            let suites = StoredSuites::load(&view)?;
            if by != summed_by(&suites.table) {
                return Err(Trouble::OtherMethod);
            }
            let sql = "SELECT number, id FROM model ORDER BY id";
            let models: Vec<(i64, String)> =
                query::all(&view, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let sql = "SELECT sum FROM day WHERE number >= ?1 AND number <= ?2 ORDER BY number";
            let mut first_run =
                view.prepare_cached("SELECT min(at_ms) FROM run WHERE model = ?1")?;
            let mut series = ScoreSeries::new(Arc::clone(&suites.table), window);
            for (number, id) in models {
                let days = [window.from, window.to].map(|hour| day_number(number, hour));
                let mut described = None;
                query::each(&view, sql, days, |row| {
                    let sum = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
                    sums::read(sum, &mut |summed| {
                        if window.has(summed.hour) {
                            // Names and prices change; the newest run is authoritative. Hours are read in order.
                            described = Some(summed.description);
                            if let Some(suite) = suites.index(summed.suite)? {
                                series.put(summed.hour, suite, &summed.count, &summed.latencies);
                            }
                        }
                        Ok(())
                    })?;
                    Ok(true)
                })?;
                if let Some(description) = described {
                    let model =
                        rows::described_model(&view, "description.number = ?1", description)?;
                    let first: Option<i64> = first_run.query_row([number], |row| row.get(0))?;
                    first
                        .and_then(rows::instant)
                        .iter()
                        .for_each(|at| series.record_time(*at));
                    let incidents = incident_records::history(&view, &id)?;
                    let last_run = last_run(&view, number, window)?;
                    each(ArchivedModel {
                        model,
                        series: &series,
                        window,
                        incidents,
                        last_run,
                    });
                    series.clear();
                }
            }
            Ok((suites.table, newest))
        })
    }

    /// The time of the last import. Cheap: one row is read.
    pub(crate) fn last_import(&self) -> Result<Option<Wall>, ArchiveError> {
        self.with(|inside| Ok(last_import(&inside.connection)?))
    }

    /// Passes every run, by model and time, until the callback returns false.
    pub fn each_run(
        &self,
        each: &mut dyn FnMut(IdentifiedRun) -> bool,
    ) -> Result<(), ArchiveError> {
        let sql = StoredRun::with_model() + " ORDER BY run.model, at_ms, run.id";
        self.with(|inside| {
            let suites = StoredSuites::load(&inside.connection)?;
            query::each(&inside.connection, &sql, [], |row| {
                let id: String = row.get(0)?;
                let model = rows::model(row, 2)?;
                Ok(each(StoredRun::read(row, 7)?.record(&id, &model, &suites)?))
            })
        })
    }
}

fn last_import(file: &Connection) -> rusqlite::Result<Option<Wall>> {
    let at: Option<i64> =
        file.query_row("SELECT max(at_ms) FROM last_import", [], |row| row.get(0))?;
    Ok(at.and_then(rows::instant))
}

/// Each model's newest run is at the end of its part of the table.
fn newest_run(file: &Connection) -> rusqlite::Result<Option<Wall>> {
    let sql = "SELECT max((SELECT max(at_ms) FROM run WHERE run.model = model.number)) FROM model";
    let at: Option<i64> = file.query_row(sql, [], |row| row.get(0))?;
    Ok(at.and_then(rows::instant))
}

fn last_run(
    file: &Connection,
    model: i64,
    window: HourRange,
) -> rusqlite::Result<Option<(RunId, Wall)>> {
    let mut newest = file.prepare_cached(
        "SELECT id, at_ms FROM run WHERE model = ?1 AND at_ms < ?2 ORDER BY at_ms DESC, id DESC LIMIT 1",
    )?;
    let end = rows::milliseconds(window.to.start());
    let run: Option<(String, i64)> = newest
        .query_row(params![model, end], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(run.and_then(|(id, at)| RunId::new(&id).zip(rows::instant(at))))
}
