//! Records of any tool, as lines of JSON or as CSV: the mapping names the fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value;

use crate::RunFailure;
use scoregate_base::clock::Wall;

use super::evaluation::{
    EvaluatedSample, Evaluation, LogProblem, MOST_SAMPLES, SampleOutcome, TokenUsage,
};
use super::mapping::LogMapping;
use super::python_json::read_json;
use super::record_mapping::{FieldSource, RecordMapping};
use super::score::LoggedScore;

/// Maximum length of a line of JSON, in bytes.
const LONGEST_LINE: u64 = 16 << 20;
/// Maximum size of a CSV file, in bytes.
const LARGEST_CSV: u64 = 256 << 20;
/// Characters of a text that are kept for messages, and in which a time is looked for.
const SHOWN: usize = 64;

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
    samples: usize,
}

/// Reads a file of records.
pub(super) fn read(
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
        samples: 0,
    };
    if is_csv {
        reader.add_rows(file)?;
    } else {
        reader.add_lines(file)?;
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

/// With its samples in one order, regardless of that of the records. Its identity does not depend on the samples, so that a changed
/// file is not imported beside the old one.
fn ordered(mut evaluation: Evaluation) -> Evaluation {
    evaluation
        .samples
        .sort_by(|one, other| one.name.cmp(&other.name));
    evaluation.identity.push(evaluation.started.rfc3339());
    evaluation
}

fn bad(number: usize, problem: String) -> LogProblem {
    LogProblem::invalid(format!("record {number}"), problem)
}

impl RecordReader<'_> {
    fn add_rows(&mut self, file: File) -> Result<(), LogProblem> {
        // An unclosed quote makes one field of the rest of a file.
        if file.metadata().is_ok_and(|file| file.len() > LARGEST_CSV) {
            let problem = format!("is larger than {} MiB; divide it", LARGEST_CSV >> 20);
            return Err(LogProblem::invalid("", problem));
        }
        let rows = csv::Reader::from_reader(file).into_deserialize::<BTreeMap<String, String>>();
        for (row, number) in rows.zip(1..) {
            let row = row
                .map_err(|error| bad(number, error.to_string()))?
                .into_iter();
            let row = row.map(|(name, text)| (name, Value::from(text))).collect();
            self.add(number, Value::Object(row))
                .map_err(|problem| bad(number, problem))?;
        }
        Ok(())
    }

    fn add_lines(&mut self, file: File) -> Result<(), LogProblem> {
        let mut lines = BufReader::new(file);
        for number in 1.. {
            let mut line = Vec::new();
            let mut part = lines.by_ref().take(LONGEST_LINE);
            let length = part.read_until(b'\n', &mut line);
            if length.map_err(|error| bad(number, error.to_string()))? == 0 {
                break;
            }
            if line.len() as u64 == LONGEST_LINE {
                let problem = format!("is longer than {} MiB", LONGEST_LINE >> 20);
                return Err(bad(number, problem));
            }
            if !line.trim_ascii().is_empty() {
                read_json(line.as_slice(), LONGEST_LINE)
                    .and_then(|record| self.add(number, record))
                    .map_err(|problem| bad(number, problem))?;
            }
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
        let has = |(path, wanted): (&String, &String)| {
            at(&record, path).and_then(text).as_ref() == Some(wanted)
        };
        if !self.fields.only.iter().all(has) {
            return Ok(());
        }
        self.samples += 1;
        if self.samples > MOST_SAMPLES {
            return Err(format!(
                "the file has more than {MOST_SAMPLES} samples; divide it"
            ));
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

    /// The time of a record, or of its file.
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
        let value = |path: &Option<String>| {
            path.as_ref()
                .and_then(|path| at(record, path))
                .and_then(text)
        };
        let measured = |path: &Option<String>| match value(path).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(format!(
                    "{} is {:?}, which is no number",
                    path.as_deref().unwrap_or_default(),
                    last(&text)
                )),
            },
        };
        let name = match &self.fields.sample {
            Some(path) => last(&self.required(record, path, "sample")?).to_owned(),
            None => format!("record {number:07}"),
        };
        let no_errors = ["", "false", "0", "{}", "[]"];
        let outcome =
            match value(&self.fields.error).filter(|error| !no_errors.contains(&error.as_str())) {
                Some(error) => SampleOutcome::Failed(self.failure(&error)),
                None => SampleOutcome::Scored(self.scores(record, task)?),
            };
        let cost = measured(&self.fields.cost)?;
        let usage = cost.map(|cost| TokenUsage {
            input: 0,
            output: 0,
            cached: 0,
            cost: Some(cost),
        });
        Ok(EvaluatedSample {
            name,
            outcome,
            latency_ms: measured(&self.fields.latency_ms)?,
            usage,
        })
    }

    /// The scores that the mapping of the task names.
    fn scores(&self, record: &Value, task: &str) -> Result<BTreeMap<String, LoggedScore>, String> {
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
            let score =
                LoggedScore::deserialize(value).map_err(|error| format!("{path}: {error}"))?;
            scores.insert(path.clone(), score);
        }
        Ok(scores)
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

    /// A text of the record, or of the header before it.
    fn required(&self, record: &Value, path: &str, field: &str) -> Result<String, String> {
        let found = at(record, path)
            .or_else(|| at(&self.header, path))
            .and_then(text);
        found.filter(|text| !text.is_empty()).ok_or_else(|| {
            format!("has no {path}, which records.{field} names; correct the mapping, or leave such records out with records.only")
        })
    }
}

/// The value at a path; `None` for an absent one and for null. The name of a column may contain dots.
fn at<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    let nested = || {
        path.split('.').try_fold(record, |value, part| {
            value
                .get(part)
                .or_else(|| value.get(part.parse::<usize>().ok()?))
        })
    };
    record
        .get(path)
        .or_else(nested)
        .filter(|value| !value.is_null())
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

/// The instant at the end of a text, such as the id of an evaluation; in UTC without a zone.
fn instant(text: &str) -> Option<Wall> {
    let ends = text.char_indices().filter_map(|(at, _)| text.get(at..));
    let parsed =
        |end: &str| Wall::parse_rfc3339(end).or_else(|| Wall::parse_rfc3339(&format!("{end}Z")));
    ends.into_iter().find_map(parsed)
}
