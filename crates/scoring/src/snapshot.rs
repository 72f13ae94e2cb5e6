//! The snapshot: all results at a full hour, computed from the runs before it, and again after an import.
//!
//! It is a pure function of source and time, so every process gets the same result. Incidents that are found in an
//! archive are recorded there, and these records are part of the source.

use std::{sync::Arc, time::Duration};

use scoregate_base::clock::Wall;

use super::{
    archive::{Archive, ArchiveError, ArchivedModel, IncidentScanRecord, NewestRuns},
    changes,
    hour::{Hour, HourRange},
    incident_scan::{
        incident::{IncidentHistory, ScannedIncidents},
        incidents,
    },
    levels::ScoreLevels,
    method,
    model_state::ModelState,
    ranks::rank_bounds,
    run::{SuiteTable, TestedModel},
    series::ScoreSeries,
    simulate,
    student::TailQuantiles,
};

/// The source of runs.
#[derive(Debug)]
pub enum RunSource {
    /// Generated runs: the same seed always gives the same runs.
    Simulated {
        /// The seed.
        seed: u64,
    },
    /// Measured runs in memory.
    #[cfg(any(test, feature = "lab"))]
    Runs(super::lab::measured_runs::MeasuredRuns),
    /// Measured runs on disk. Runs dated in the future are counted only after their hour has ended.
    Archive(Archive),
}

/// An import whose date is more than this ahead of our clock must come from a machine with a wrong clock.
const CLOCKS_APART: Duration = Duration::from_mins(1);

/// All models at a full hour.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The end of the range of hours. Only earlier runs count.
    pub hour: Hour,
    /// The hour in which the snapshot was made: `hour`, or the previous hour if runs of the current hour are included.
    pub made_in: Hour,
    /// The date of the snapshot, which changes with every import.
    pub at: Wall,
    /// The last import included.
    pub imported: Option<Wall>,
    /// The suites that feed the scores.
    pub suites: Arc<SuiteTable>,
    /// The version of the method with these suites.
    pub method_version: String,
    /// The models, sorted by id.
    pub model_states: Vec<ModelState>,
    /// Quantiles for the bounds of intervals.
    pub quantiles: TailQuantiles,
    /// Whether the runs were simulated.
    pub synthetic: bool,
}

impl RunSource {
    /// The state at `now`: at the full hour or, if runs of the current hour were imported, including these runs.
    pub(super) fn snapshot(&self, now: Wall) -> Result<Snapshot, ArchiveError> {
        let none = NewestRuns::default();
        let synthetic = matches!(self, Self::Simulated { .. });
        let default = Arc::<SuiteTable>::default;
        let (suites, mut model_states, newest) = match self {
            Self::Simulated { seed } => (default(), simulated(*seed, window(now, none)), none),
            #[cfg(any(test, feature = "lab"))]
            Self::Runs(runs) => {
                let of_runs = runs.series(window(now, none));
                let window = window(now, none);
                let measured = of_runs
                    .into_iter()
                    .map(|(model, series)| unrecorded(model, &series, window));
                (default(), measured.collect(), none)
            }
            Self::Archive(archive) => archived(archive, now)?,
        };
        model_states.sort_by(|a, b| a.id().cmp(b.id()));
        let quantiles = TailQuantiles::of(method::INTERVAL_TAIL);
        ModelState::compare(&mut model_states, &quantiles);
        changes::determine(&mut model_states);
        rank_bounds::determine(&mut model_states);
        let (hour, at) = end(now, newest);
        Ok(Snapshot {
            hour,
            made_in: Hour::of(now),
            at,
            imported: newest.import,
            method_version: suites.method_version(),
            suites,
            model_states,
            quantiles,
            synthetic,
        })
    }

    /// The time of the last import. `None` if the runs are not in an archive, because they never change.
    pub(super) fn last_import(&self) -> Result<Option<Wall>, ArchiveError> {
        let Self::Archive(archive) = self else {
            return Ok(None);
        };
        archive.last_import()
    }
}

/// The hours that the snapshot at `now` covers.
fn window(now: Wall, newest: NewestRuns) -> HourRange {
    end(now, newest).0.last(method::WINDOW_HOURS)
}

/// The first hour whose runs do not count yet at `now`, and the date of the results.
///
/// Imported runs count immediately, even if they are from the current hour. Both results depend only on the archive and
/// the hour, so that all servers with one archive agree, and a restart changes nothing.
fn end(now: Wall, newest: NewestRuns) -> (Hour, Wall) {
    let hour = Hour::of(now);
    let since = |at: &Wall| *at >= hour.start();
    let Some(import) = newest.import.filter(since) else {
        return (hour, hour.start());
    };
    let at = if import <= now.plus(CLOCKS_APART) {
        import
    } else {
        Wall::from_seconds(now.seconds())
    };
    // Including an hour without runs would only push the oldest hour out of the window.
    (
        if newest.run.is_some_and(|run| since(&run)) {
            hour.plus(1)
        } else {
            hour
        },
        at,
    )
}

fn archived(
    archive: &Archive,
    now: Wall,
) -> Result<(Arc<SuiteTable>, Vec<ModelState>, NewestRuns), ArchiveError> {
    let mut models = Vec::new();
    let mut scans = Vec::new();
    let (suites, newest) = archive.each_series(&|newest| window(now, newest), &mut |archived| {
        let ArchivedModel {
            series,
            window,
            incidents,
            newest,
        } = archived;
        let model = Arc::clone(newest.run.model());
        let levels = ScoreLevels::of(series.rounds(window), series.round_length());
        let ScannedIncidents {
            published,
            revised,
            position,
        } = incidents::scan(series, window, &levels, &incidents);
        scans.push(IncidentScanRecord {
            model: model.id().clone(),
            before: incidents.position,
            after: position,
            revised,
            last_run_at: newest.run.at(),
            last_run: newest.id,
        });
        models.push(ModelState::compute(
            model, series, window.to, &levels, published,
        ));
    })?;
    let (_, at) = end(now, newest);
    if let Err(error) = archive.record_incidents(&scans, at) {
        tracing::error!(%error, "incidents could not be recorded; the next snapshot scans the same runs again");
    }
    Ok((suites, models, newest))
}

/// The state of a model without records. Its incidents are searched for in the whole window.
fn unrecorded(model: Arc<TestedModel>, series: &ScoreSeries, window: HourRange) -> ModelState {
    let levels = ScoreLevels::of(series.rounds(window), series.round_length());
    let scanned = incidents::scan(series, window, &levels, &IncidentHistory::default());
    ModelState::compute(model, series, window.to, &levels, scanned.published)
}

/// Computes one model after another, so that only one series is in memory.
fn simulated(seed: u64, window: HourRange) -> Vec<ModelState> {
    let mut states = Vec::new();
    for simulated in simulate::models(seed) {
        let mut series = ScoreSeries::new(Arc::default(), window);
        simulated.runs(window).for_each(|run| series.add(&run));
        states.push(unrecorded(Arc::clone(simulated.model()), &series, window));
    }
    states
}
