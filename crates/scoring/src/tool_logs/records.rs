//! Records of any tool, as lines of JSON or as CSV: the mapping names the fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value;

use crate::RunFailure;
use scoregate_base::clock::Wall;

use super::evaluation::{EvaluatedSample, Evaluation, LogProblem, MOST_SAMPLES, SampleOutcome, TokenUsage};
use super::mapping::LogMapping;
use super::python_json::json_values;
use super::record_mapping::{FieldSource, RecordMapping};
use super::score::LoggedScore;

/// The evaluations of a file.
struct RecordReader<'m> {
    mapping: &'m LogMapping,
    fields: &'m RecordMapping,
    /// The name of the file, without its suffix.
    name: String,
    header: Value,
    /// By number of headers, task and model.
    found: BTreeMap<(usize, String, String), Evaluation>,
    headers: usize,
}

/// Reads a file of records.
pub(super) fn read(path: &Path, is_csv: bool, mapping: &LogMapping) -> Vec<Result<Evaluation, LogProblem>> {
    read_all(path, is_csv, mapping).unwrap_or_else(|problem| vec![Err(problem)])
}

fn read_all(
    path: &Path,
    is_csv: bool,
    mapping: &LogMapping,
) -> Result<Vec<Result<Evaluation, LogProblem>>, LogProblem> {
    let fields = mapping.records.as_ref().ok_or_else(|| {
        LogProblem::missing("the mapping has no [records]; name the fields of a record: model, task and time")
    })?;
    let file =
        File::open(path).map_err(|error| LogProblem::invalid("", format!("cannot be read: {error}")))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut reader =
        RecordReader { mapping, fields, name, header: Value::Null, found: BTreeMap::new(), headers: 0 };
    let bad = |number: usize, problem: String| LogProblem::invalid(format!("record {number}"), problem);
    if is_csv {
        let rows = csv::Reader::from_reader(file).into_deserialize::<BTreeMap<String, String>>();
        for (row, number) in rows.zip(1..) {
            let row = row.map_err(|error| bad(number, error.to_string()))?;
            let row = row.into_iter().map(|(name, text)| (name, Value::from(text))).collect();
            reader.add(number, Value::Object(row)).map_err(|problem| bad(number, problem))?;
        }
    } else {
        for (record, number) in json_values::<Value>(file, u64::MAX).zip(1..) {
            let record = record.map_err(|error| bad(number, error.to_string()))?;
            reader.add(number, record).map_err(|problem| bad(number, problem))?;
        }
    }
    if reader.found.is_empty() {
        return Err(LogProblem::invalid(
            "",
            "has no record with the values of records.only; check the mapping",
        ));
    }
    Ok(reader.found.into_values().map(|evaluation| Ok(ordered(evaluation))).collect())
}

/// With its samples in one order, whatever that of the records was.
fn ordered(mut evaluation: Evaluation) -> Evaluation {
    evaluation.samples.sort_by(|one, other| one.name.cmp(&other.name));
    let names = evaluation.samples.iter().map(|sample| sample.name.clone());
    evaluation.identity.push(evaluation.started.rfc3339());
    evaluation.identity.extend(names);
    evaluation
}

impl RecordReader<'_> {
    fn add(&mut self, number: usize, record: Value) -> Result<(), String> {
        if self.fields.header.as_ref().is_some_and(|header| at(&record, header).is_some()) {
            self.header = record;
            self.headers += 1;
            return Ok(());
        }
        let has =
            |(path, wanted): (&String, &String)| at(&record, path).and_then(text).as_ref() == Some(wanted);
        if !self.fields.only.iter().all(has) {
            return Ok(());
        }
        if number > MOST_SAMPLES {
            return Err(format!("the file has more than {MOST_SAMPLES} records; divide it"));
        }
        let [model, task] =
            [(&self.fields.model, "model"), (&self.fields.task, "task")].map(|(source, name)| match source {
                FieldSource::Fixed { value } => Ok(value.clone()),
                FieldSource::Path(path) => self.required(&record, path, name),
            });
        let (model, task) = (model?, task?);
        let time = self.fields.time.as_ref().map(|path| self.required(&record, path, "time")).transpose()?;
        let time = time.as_ref().unwrap_or(&self.name);
        let started = instant(time).ok_or_else(|| {
            format!(
                "{time:?} does not end with a time such as 2026-11-27T12:00:00Z; correct records.time, or the name of \
                 the file if there is none"
            )
        })?;
        let sample = self.sample(number, &record, &task)?;
        let key = (self.headers, task.clone(), model.clone());
        let evaluation = self.found.entry(key).or_insert_with(|| Evaluation {
            identity: vec![model.clone(), task.clone()],
            task,
            model,
            started,
            samples: Vec::new(),
            lower_is_better: BTreeSet::new(),
        });
        evaluation.started = evaluation.started.min(started);
        evaluation.samples.push(sample);
        Ok(())
    }

    fn sample(&self, number: usize, record: &Value, task: &str) -> Result<EvaluatedSample, String> {
        let value = |path: &Option<String>| path.as_ref().and_then(|path| at(record, path));
        let measured = |path: &Option<String>| value(path).and_then(text).and_then(|text| text.parse().ok());
        let name = match &self.fields.sample {
            Some(path) => self.required(record, path, "sample")?,
            None => format!("record {number:07}"),
        };
        let error = value(&self.fields.error).and_then(text).filter(|error| !error.is_empty());
        let outcome = match error {
            Some(error) => SampleOutcome::Failed(self.failure(&error)),
            None => SampleOutcome::Scored(self.scores(record, task)?),
        };
        let usage = measured(&self.fields.cost).map(|cost| TokenUsage {
            input: 0,
            output: 0,
            cached: 0,
            cost: Some(cost),
        });
        Ok(EvaluatedSample { name, outcome, latency_ms: measured(&self.fields.latency_ms), usage })
    }

    /// The scores that the mapping of the task names.
    fn scores(&self, record: &Value, task: &str) -> Result<BTreeMap<String, LoggedScore>, String> {
        let sources = self.mapping.task(task).map(|task| task.axes.values()).into_iter().flatten();
        let mut scores = BTreeMap::new();
        for path in sources.filter_map(|source| source.score.as_ref()) {
            let Some(value) = at(record, path) else { continue };
            let score = LoggedScore::deserialize(value).map_err(|error| format!("{path}: {error}"))?;
            scores.insert(path.clone(), score);
        }
        Ok(scores)
    }

    fn failure(&self, error: &str) -> RunFailure {
        let error = error.to_lowercase();
        let known = self.fields.failures.iter().find(|(part, _)| error.contains(part.as_str()));
        known.map_or(RunFailure::Harness, |(_, failure)| *failure)
    }

    /// A text of the record, or of the header before it.
    fn required(&self, record: &Value, path: &str, field: &str) -> Result<String, String> {
        let found = at(record, path).or_else(|| at(&self.header, path)).and_then(text);
        found.filter(|text| !text.is_empty()).ok_or_else(|| {
            format!("has no {path}, which records.{field} names; correct the mapping, or leave such records out with records.only")
        })
    }
}

/// The value at a path; `None` for an absent one and for null. The name of a column may contain dots.
fn at<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    let nested = || {
        path.split('.').try_fold(record, |value, part| {
            value.get(part).or_else(|| value.get(part.parse::<usize>().ok()?))
        })
    };
    record.get(path).or_else(nested).filter(|value| !value.is_null())
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (!value.is_null()).then_some(text)
}

/// The instant at the end of a text, such as the id of an evaluation; in UTC without a zone.
fn instant(text: &str) -> Option<Wall> {
    let ends = text.char_indices().filter_map(|(at, _)| text.get(at..));
    let parsed = |end: &str| Wall::parse_rfc3339(end).or_else(|| Wall::parse_rfc3339(&format!("{end}Z")));
    ends.into_iter().find_map(parsed)
}
