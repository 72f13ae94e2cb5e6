//! Records of any tool, as JSON lines or as CSV. The mapping names the fields.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::Path,
};

use serde_json::Value;

use crate::RunFailure;
use scoregate_base::clock::Wall;

use super::{
    evaluation::{EvaluatedSample, Evaluation, LogProblem, SampleOutcome, TokenUsage},
    mapping::LogMapping,
    python_json::json_values,
    record_mapping::{FieldSource, RecordMapping},
    score::LoggedScore,
};

/// Values of an error field that mean that there was no error.
const NO_ERRORS: [&str; 5] = ["", "false", "0", "{}", "[]"];
/// Number of characters at the end of a string that are kept for messages and scanned for a timestamp.
const SHOWN: usize = 64;

/// Collects the evaluations of a file.
struct RecordReader<'m> {
    mapping: &'m LogMapping,
    fields: &'m RecordMapping,
    /// The name of the file, without its suffix.
    name: String,
    header: Value,
    /// The evaluations, by the number of headers read so far, task and model.
    found: BTreeMap<(usize, String, String), Evaluation>,
    headers: usize,
}

/// Reads a file of records.
pub fn read(
    path: &Path,
    is_csv: bool,
    mapping: &LogMapping,
) -> Vec<Result<Evaluation, LogProblem>> {
    read_all(path, is_csv, mapping).unwrap_or_else(|problem| vec![Err(problem)])
}

fn read_all(
    path: &Path,
    is_csv: bool,
    mapping: &LogMapping,
) -> Result<Vec<Result<Evaluation, LogProblem>>, LogProblem> {
    let fields = mapping.records.as_ref().ok_or_else(|| {
        LogProblem::missing(
            "the mapping has no [records]; name the fields of a record: model, task and time",
        )
    })?;
    let file = File::open(path)
        .map_err(|error| LogProblem::invalid("", format!("cannot be read: {error}")))?;
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut reader = RecordReader {
        mapping,
        fields,
        name,
        header: Value::Null,
        found: BTreeMap::new(),
        headers: 0,
    };
    if is_csv {
        let rows = csv::Reader::from_reader(file).into_deserialize::<BTreeMap<String, String>>();
        let rows = rows.map(|row| row.map(object).map_err(|error| error.to_string()));
        reader.add_all(rows)?;
    } else {
        let values = json_values::<Value>(file);
        reader.add_all(values.map(|value| value.map_err(|error| error.to_string())))?;
    }
    if reader.found.is_empty() {
        let problem = "has no record with the values of records.only; check the mapping";
        return Err(LogProblem::invalid("", problem));
    }
    Ok(reader
        .found
        .into_values()
        .map(|evaluation| Ok(ordered(evaluation)))
        .collect())
}

/// Sorts the samples, so that the order of the records does not matter. The evaluation's identity does not depend on the samples,
/// so that a changed file is not imported in addition to the old one.
fn ordered(mut evaluation: Evaluation) -> Evaluation {
    evaluation
        .samples
        .sort_by(|one, other| one.name.cmp(&other.name));
    evaluation.identity.push(evaluation.started.rfc3339());
    evaluation
}

/// Converts a row of CSV to a record.
fn object(row: BTreeMap<String, String>) -> Value {
    let fields = row.into_iter().map(|(name, text)| (name, text.into()));
    Value::Object(fields.collect())
}

impl RecordReader<'_> {
    fn add_all(
        &mut self,
        records: impl Iterator<Item = Result<Value, String>>,
    ) -> Result<(), LogProblem> {
        for (record, number) in records.zip(1..) {
            record
                .and_then(|record| self.add(number, record))
                .map_err(|problem| LogProblem::invalid(format!("record {number}"), problem))?;
        }
        Ok(())
    }

    fn add(&mut self, number: usize, record: Value) -> Result<(), String> {
        if self
            .fields
            .header
            .as_ref()
            .is_some_and(|header| at(&record, header).is_some())
        {
            self.header = record;
            self.headers += 1;
            return Ok(());
        }
        let mut only = self.fields.only.iter();
        if !only.all(|(path, wanted)| optional(&record, Some(path)).as_ref() == Some(wanted)) {
            return Ok(());
        }
        let model = self.named(&record, &self.fields.model, "model")?;
        let task = self.named(&record, &self.fields.task, "task")?;
        let started = self.started(&record)?;
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

    fn named(&self, record: &Value, source: &FieldSource, field: &str) -> Result<String, String> {
        match source {
            FieldSource::Fixed { value } => Ok(value.clone()),
            FieldSource::Path(path) => self.required(record, path, field),
        }
    }

    /// The time of a record, or of its file if records have no time.
    fn started(&self, record: &Value) -> Result<Wall, String> {
        let path = self.fields.time.as_ref();
        let time = path
            .map(|path| self.required(record, path, "time"))
            .transpose()?;
        let time = last(time.as_ref().unwrap_or(&self.name));
        instant(time).ok_or_else(|| {
            format!(
                "{time:?} does not end with a time such as 2026-11-27T12:00:00Z; correct records.time, or the name of \
                 the file if there is none"
            )
        })
    }

    fn sample(&self, number: usize, record: &Value, task: &str) -> Result<EvaluatedSample, String> {
        let name = match &self.fields.sample {
            Some(path) => last(&self.required(record, path, "sample")?).to_owned(),
            None => format!("record {number:07}"),
        };
        let error = optional(record, self.fields.error.as_deref());
        let outcome = match error.filter(|error| !NO_ERRORS.contains(&error.as_str())) {
            Some(error) => SampleOutcome::Failed(self.failure(&error)),
            None => SampleOutcome::Scored(self.scores(record, task)),
        };
        let cost = measured(record, self.fields.cost.as_deref())?;
        let usage = cost.map(|cost| TokenUsage {
            input: 0,
            output: 0,
            cached: 0,
            cost: Some(cost),
        });
        Ok(EvaluatedSample {
            name,
            outcome,
            latency_ms: measured(record, self.fields.latency_ms.as_deref())?,
            usage,
            is_limited: false,
        })
    }

    /// The scores that are named in the task's mapping.
    fn scores(&self, record: &Value, task: &str) -> BTreeMap<String, LoggedScore> {
        let sources = self
            .mapping
            .task(task)
            .map(|task| task.axes.values())
            .into_iter()
            .flatten();
        let mut scores = BTreeMap::new();
        for path in sources.filter_map(|source| source.score.as_ref()) {
            let Some(value) = at(record, path).filter(|value| value.as_str() != Some("")) else {
                continue;
            };
            scores.insert(path.clone(), LoggedScore::from(value.clone()));
        }
        scores
    }

    fn failure(&self, error: &str) -> RunFailure {
        let error = error.to_lowercase();
        let known = self
            .fields
            .failures
            .iter()
            .find(|(part, _)| error.contains(&part.to_lowercase()));
        known.map_or(RunFailure::Harness, |(_, failure)| *failure)
    }

    /// A required string field of the record, or of the header before it.
    fn required(&self, record: &Value, path: &str, field: &str) -> Result<String, String> {
        let found = at(record, path)
            .or_else(|| at(&self.header, path))
            .and_then(text);
        found.filter(|text| !text.is_empty()).ok_or_else(|| {
            format!("has no {path}, which records.{field} names; correct the mapping, or leave such records out with records.only")
        })
    }
}

/// The value at a path; `None` if it is absent or null. The name of a column may contain dots.
fn at<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    record
        .get(path)
        .or_else(|| {
            path.split('.').try_fold(record, |value, part| {
                value
                    .get(part)
                    .or_else(|| value.get(part.parse::<usize>().ok()?))
            })
        })
        .filter(|value| !value.is_null())
}

/// The text at a path that is optional in the mapping.
fn optional(record: &Value, path: Option<&str>) -> Option<String> {
    at(record, path?).and_then(text)
}

fn measured(record: &Value, path: Option<&str>) -> Result<Option<f64>, String> {
    let Some(text) = optional(record, path).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.map(Some).ok_or_else(|| {
        let path = path.unwrap_or_default();
        format!("{path} is {:?}, which is not a number", last(&text))
    })
}

fn text(value: &Value) -> Option<String> {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    (!value.is_null()).then_some(text)
}

/// The end of a text.
fn last(text: &str) -> &str {
    text.char_indices()
        .nth_back(SHOWN - 1)
        .and_then(|(at, _)| text.get(at..))
        .unwrap_or(text)
}

/// The time at the end of a string, such as the id of an evaluation. A time without a time zone is in UTC.
fn instant(text: &str) -> Option<Wall> {
    text.char_indices()
        .filter_map(|(at, _)| text.get(at..))
        .find_map(|end| {
            Wall::parse_rfc3339(end).or_else(|| Wall::parse_rfc3339(&format!("{end}Z")))
        })
}
