//! Scores the scenarios in `tests/reference`. The output contains every document, and the numbers before rounding. `.ci/reference.sh` sets
//! `SCOREGATE_REFERENCE` to the output directory, and compares the files with an independent implementation.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use flate2::bufread::MultiGzDecoder;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, Period, Route, SortBy},
};

use super::fixtures::{HOUR, asked, every_question};
use crate::{
    drift::DriftResult,
    hour::Hour,
    levels::LevelComparison,
    measure::Measure,
    model_state::{ModelState, PeriodSummary},
    statistics::{Estimate, FittedLine},
    *,
};

/// The directory of the scenarios.
const SCENARIOS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/reference/scenarios"
);
/// The `sortBy` values that have separate scores, in the order of `Measure::ALL`.
const MEASURES: [SortBy; 5] = [
    SortBy::Combined,
    SortBy::Coding,
    SortBy::Reasoning,
    SortBy::Tooling,
    SortBy::SevenAxis,
];

#[test]
fn rankings_do_not_depend_on_the_steps_in_which_runs_are_imported() {
    let directory = std::env::var_os("SCOREGATE_REFERENCE");
    let index = std::fs::read_to_string(Path::new(SCENARIOS).join("index.json")).unwrap();
    let scenarios: Vec<Value> = serde_json::from_str(&index).unwrap();
    assert!(!scenarios.is_empty());
    for scenario in &scenarios {
        let text = |field: &str| scenario.get(field).and_then(Value::as_str);
        let now = Wall::parse_rfc3339(text("now").unwrap()).unwrap();
        let runs = (text("file").unwrap(), text("suites"));
        let write = |ending: &str, content: &str| {
            let name = format!("{}{ending}", text("name").unwrap());
            if let Some(directory) = &directory {
                std::fs::write(Path::new(directory).join(name), content).unwrap();
            }
        };
        let place = TempDir::new().unwrap();
        let path = place.path().join("runs.db");
        fill(&path, runs, now, &[now]);
        let at_once = scored(&path, now);
        write(".json", &at_once.to_string());

        // The same runs are imported in steps, which leaves records of earlier snapshots. The reference continues the scans of those snapshots.
        let place = TempDir::new().unwrap();
        let path = place.path().join("runs.db");
        let steps = [700, 400, 220, 150, 100].map(|hours| now.minus(HOUR * hours));
        fill(&path, runs, now, &[&steps[..], &[now]].concat());
        write("-recorded.jsonl", &export(&path));
        let in_steps = scored(&path, now);
        write("-recorded.json", &in_steps.to_string());
        for period in Period::ALL {
            let ranking = DocumentKey::over(Route::Models, period).to_string();
            let [once, steps] = [&at_once, &in_steps].map(|all| &all["documents"][&ranking]);
            assert_eq!(once, steps, "{ranking}");
        }
    }
}

/// Imports the runs in steps, with a snapshot before each step except the first.
fn fill(path: &Path, (runs, suites): (&str, Option<&str>), now: Wall, steps: &[Wall]) {
    let archive = Archive::open(path).unwrap();
    let mut table = SuiteTable::default();
    if let Some(suites) = suites {
        let text = std::fs::read_to_string(Path::new(SCENARIOS).join(suites)).unwrap();
        table = SuiteTable::parse(&text).unwrap();
        archive.set_suites(&table, *steps.first().unwrap()).unwrap();
    }
    let file = BufReader::new(File::open(Path::new(SCENARIOS).join(runs)).unwrap());
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
    let mut records: Vec<IdentifiedRun> = lines
        .map(|line| {
            RunLine::parse(&line.unwrap())
                .unwrap()
                .check(now, &table)
                .unwrap()
        })
        .collect();
    let mut previous = None;
    for step in steps {
        if let Some(previous) = previous.replace(*step) {
            RunSource::Archive(Archive::open(path).unwrap())
                .snapshot(previous)
                .unwrap();
        }
        let (known, later): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|one| one.run.at() <= *step);
        assert!(
            archive
                .import(&known, *step)
                .unwrap()
                .iter()
                .all(|taken| *taken == RunInsertion::New)
        );
        records = later;
    }
    assert_eq!(records, [], "every run is imported");
}

/// The runs, and the data that the reference needs to continue the scans: records of incidents and scan positions.
fn export(path: &Path) -> String {
    let archive = Archive::open(path).unwrap();
    let mut lines = Vec::new();
    archive
        .each_run(&mut |run| push(&mut lines, run.write()))
        .unwrap();
    archive
        .each_incident_record(&mut |record| {
            push(
                &mut lines,
                json!({ "incident": record.to_json() }).to_string(),
            )
        })
        .unwrap();
    for (model, position) in archive.scan_positions() {
        let [round, hour] = [position.round, position.hour].map(|hour| hour.map(Hour::start));
        let mut line = json!({ "model": model, "hourAt": hour });
        if let (Some(fields), Some(round)) = (line.as_object_mut(), round) {
            fields.insert("roundAt".into(), json!(round));
        }
        push(&mut lines, json!({ "incidentScan": line }).to_string());
    }
    lines.concat()
}

fn push(lines: &mut Vec<String>, line: String) -> bool {
    lines.push(line + "\n");
    true
}

fn scored(archive: &Path, now: Wall) -> Value {
    let open = || RunSource::Archive(Archive::open(archive).unwrap());
    let scoring = Scoring::open(open(), now).unwrap();
    let documents = every_question(&scoring).into_iter().map(|(key, _)| {
        let items = asked(&scoring, &key);
        (key.to_string(), Value::Array(items))
    });
    let documents: Map<String, Value> = documents.collect();
    let snapshot = open().snapshot(now).unwrap();
    let models = snapshot
        .model_states
        .iter()
        .map(|state| (state.id().to_owned(), exact(state)));
    json!({ "exact": { "models": models.collect::<Map<_, _>>() }, "documents": documents })
}

/// The numbers of a model before they are rounded.
fn exact(state: &ModelState) -> Value {
    let periods =
        Period::ALL.map(|period| (period.word().to_owned(), of_period(state.over(period))));
    let axes = Axis::ALL.iter().zip(&state.slopes);
    let slopes = axes.map(|(axis, fit)| (axis.word().to_owned(), line(fit.as_ref())));
    let levels = Period::ALL.iter().zip(&state.levels);
    let levels =
        levels.map(|(period, levels)| (period.word().to_owned(), compared(levels.as_ref())));
    json!({
        "roundHours": state.round_length.hours(),
        "periods": Map::from_iter(periods),
        "axes": axis_means(state),
        "slopes": slopes.collect::<Map<_, _>>(),
        "levels": levels.collect::<Map<_, _>>(),
        "drift": drift(&state.drift),
        "alert": compared(state.lately.as_ref()),
        "incidents": state.incidents.iter().map(|incident| json!({
            "openedAt": incident.opened.rfc3339(),
            "resolvedAt": incident.resolved.map(Wall::rfc3339),
            "baseline": incident.baseline,
            "mean": incident.mean,
            "lowest": incident.lowest,
        })).collect::<Vec<_>>(),
    })
}

fn compared(levels: Option<&LevelComparison>) -> Value {
    json!({
        "now": estimate(levels.map(|levels| &levels.now)),
        "baseline": estimate(levels.map(|levels| &levels.before)),
        "since": levels.map(|levels| levels.since.start().rfc3339()),
    })
}

fn of_period(summary: &PeriodSummary) -> Value {
    let scores = MEASURES.iter().zip(Measure::ALL).map(|(sort_by, measure)| {
        let (now, before) = summary.estimates(measure);
        let now = estimate(now.as_ref());
        let before = before.map(|before| before.mean);
        (
            sort_by.word().to_owned(),
            json!({ "now": now, "before": before }),
        )
    });
    json!({
        "scores": scores.collect::<Map<_, _>>(),
        "standardError": summary.standard_error(),
        "latencyMs": summary.latency,
        "costUsd": summary.reading.cost(),
        "availability": summary.attempts.availability(),
        "deviation": summary.deviation,
        "runs": summary.runs.0,
        "failedRuns": summary.runs.1,
    })
}

fn axis_means(state: &ModelState) -> Map<String, Value> {
    let means = state.over(Period::Day).reading.axes();
    Axis::ALL
        .iter()
        .zip(means)
        .map(|(axis, mean)| (axis.word().to_owned(), json!(mean)))
        .collect()
}

fn estimate(estimate: Option<&Estimate>) -> Value {
    let spread = |estimate: &Estimate| estimate.spread;
    json!({
        "score": estimate.map(|estimate| estimate.mean),
        "standardError": estimate.and_then(spread).map(|spread| spread.variance.sqrt()),
        "degreesOfFreedom": estimate.and_then(spread).map(|spread| spread.df),
    })
}

fn line(line: Option<&FittedLine>) -> Value {
    json!({ "slope": line.map(|line| line.slope), "p": line.map(|line| line.p) })
}

fn drift(drift: &DriftResult) -> Value {
    json!({
        "statistic": drift.statistic,
        "samples": drift.samples,
        "noise": drift.noise,
        "p": drift.signal.map(|signal| signal.chance),
        "signalledAt": drift.signal.map(|signal| signal.hour.start().rfc3339()),
    })
}
