//! Reads the archive: the series of every model for a refresh, and all runs for an export.

use std::sync::Arc;

use rusqlite::{Connection, params};

use scoregate_base::clock::Wall;

use super::{Archive, ArchiveError, Trouble, incident_records, query, rows};
use crate::{
    hour::HourRange,
    incident_scan::incident::IncidentHistory,
    run::{IdentifiedRun, SuiteTable},
    series::ScoreSeries,
};

/// The newest entries of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewestRuns {
    /// The time of the last import.
    pub import: Option<Wall>,
    /// The time of the newest run.
    pub run: Option<Wall>,
}

/// A model of an archive, with its series over a window.
pub struct ArchivedModel<'s> {
    pub series: &'s ScoreSeries,
    pub window: HourRange,
    /// The recorded incidents of the model.
    pub incidents: IncidentHistory,
    /// The newest run in the window, which determines the model's name and prices.
    pub newest: IdentifiedRun,
}

/// A model with the times of its first and newest runs, which may be outside the window.
struct ModelSpan {
    id: String,
    first: Wall,
    newest: Wall,
}

impl Archive {
    /// Whether the archive contains no runs.
    pub fn is_empty(&self) -> Result<bool, ArchiveError> {
        self.with(|file| Ok(!has_runs(file)?))
    }

    /// The suite table.
    pub fn suites(&self) -> Result<Arc<SuiteTable>, ArchiveError> {
        self.with(|file| suites(file))
    }

    /// Passes every model with runs in a window to `each`, one at a time, ordered by id. `window` chooses the window, given the
    /// times of the last import and the newest run. These times are returned with the suite table.
    pub(crate) fn each_series(
        &self,
        window: &dyn Fn(NewestRuns) -> HourRange,
        each: &mut dyn FnMut(ArchivedModel<'_>),
    ) -> Result<(Arc<SuiteTable>, NewestRuns), ArchiveError> {
        self.with(|file| {
            // The transaction gives a consistent view. If an import ends in the meantime, the next refresh includes it.
            let view = file.transaction()?;
            let models = models(&view)?;
            let newest = NewestRuns {
                import: last_import(&view)?,
                run: models.iter().map(|model| model.newest).max(),
            };
            let window = window(newest);
            let suites = suites(&view)?;
            // All models share one series, so that its memory is allocated only once.
            let mut series = ScoreSeries::new(Arc::clone(&suites), window);
            for model in models {
                if let Some(newest) = fill(&view, &model, window, &mut series)? {
                    each(ArchivedModel {
                        series: &series,
                        window,
                        incidents: incident_records::history(&view, &model.id)?,
                        newest,
                    });
                    series.clear();
                }
            }
            Ok((suites, newest))
        })
    }

    /// The time of the last import. This is cheap, because only one row is read.
    pub(crate) fn last_import(&self) -> Result<Option<Wall>, ArchiveError> {
        self.with(|file| last_import(file))
    }

    /// Passes every run to `each`, ordered by model and time, until it returns `false`.
    pub fn each_run(
        &self,
        each: &mut dyn FnMut(IdentifiedRun) -> bool,
    ) -> Result<(), ArchiveError> {
        let columns = rows::COLUMNS;
        let sql = format!("SELECT {columns} FROM run ORDER BY model, at, id");
        self.with(|file| query::each(file, &sql, [], |row| Ok(each(rows::record(row)?))))
    }
}

pub fn has_runs(file: &Connection) -> rusqlite::Result<bool> {
    file.prepare_cached("SELECT 1 FROM run")?.exists([])
}

pub fn suites(file: &Connection) -> Result<Arc<SuiteTable>, Trouble> {
    let text: String = file.query_row("SELECT suites FROM state", [], |row| row.get(0))?;
    SuiteTable::parse(&text)
        .map(Arc::new)
        .map_err(|bad| Trouble::Damage(format!("the suite table cannot be decoded: {bad}")))
}

/// Reads the runs of a model in the window into its series, ordered by time and id. Returns the newest run.
fn fill(
    file: &Connection,
    model: &ModelSpan,
    window: HourRange,
    series: &mut ScoreSeries,
) -> Result<Option<IdentifiedRun>, Trouble> {
    let [from, to] = [window.from, window.to].map(|hour| rows::milliseconds(hour.start()));
    let range = params![model.id, from, to];
    let columns = rows::COLUMNS;
    let condition = "FROM run WHERE model = ?1 AND at >= ?2 AND at < ?3 ORDER BY";
    let sql = format!("SELECT {columns} {condition} at DESC, id DESC LIMIT 1");
    let Some(newest) = query::all(file, &sql, range, rows::record)?.pop() else {
        return Ok(None);
    };
    let sql = format!("SELECT at, suite, trials, failures {condition} at, id");
    query::each(file, &sql, range, |row| {
        series.add(&rows::run(row, newest.run.model())?);
        Ok(true)
    })?;
    series.record_time(model.first);
    Ok(Some(newest))
}

/// All models, ordered by id. Each step is a search in the primary key, so the duration does not depend on the number
/// of runs.
fn models(file: &Connection) -> Result<Vec<ModelSpan>, Trouble> {
    let sql = "SELECT model, at, (SELECT max(at) FROM run AS newest WHERE newest.model = run.model)
        FROM run WHERE model > ?1 ORDER BY model, at LIMIT 1";
    let mut models: Vec<ModelSpan> = Vec::new();
    loop {
        let after = models.last().map_or("", |model| model.id.as_str());
        let next = query::all(file, sql, [after], |row| {
            Ok(ModelSpan {
                id: row.get(0)?,
                first: rows::instant(row.get(1)?)?,
                newest: rows::instant(row.get(2)?)?,
            })
        })?;
        if next.is_empty() {
            return Ok(models);
        }
        models.extend(next);
    }
}

fn last_import(file: &Connection) -> Result<Option<Wall>, Trouble> {
    let at: Option<i64> = file.query_row("SELECT imported FROM state", [], |row| row.get(0))?;
    at.map(rows::instant).transpose()
}
