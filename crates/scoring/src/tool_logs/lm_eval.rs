//! Logs of lm-evaluation-harness: a results file, and beside it a samples file for each task.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use scoregate_base::clock::Wall;

use super::evaluation::{
    EvaluatedSample, Evaluation, LogProblem, MOST_SAMPLES, SampleOutcome, both,
};
use super::mapping::{LogMapping, TaskMapping};
use super::python_json::{LimitedMap, json_values, read_json};
use super::score::LoggedScore;

/// Maximum size of a results file, in bytes: thousands of tasks have a few MiB.
const LARGEST_RESULTS: u64 = 256 << 20;
/// Maximum number of metrics of a sample.
const MOST_METRICS: usize = 1_000;
/// The filter of samples that do not name one.
const NO_FILTER: &str = "none";
/// Fields of a sample that are not metrics, for releases that do not list the metrics.
const NOT_METRICS: [&str; 8] = [
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "doc_hash",
    "prompt_hash",
    "target_hash",
];

#[derive(Deserialize)]
struct LmResults {
    /// As text: run ids must not depend on how a build parses numbers.
    date: Option<Box<RawValue>>,
    model_name: Option<String>,
    /// Tasks; groups of tasks are in `results` only and have no samples.
    configs: LimitedMap<IgnoredAny>,
    #[serde(default)]
    higher_is_better: LimitedMap<Value>,
    #[serde(default, rename = "n-samples")]
    n_samples: LimitedMap<LmSampleCount>,
}

#[derive(Deserialize)]
struct LmSampleCount {
    effective: usize,
}

/// A line of a samples file: a sample as one filter saw it.
struct LmSample {
    doc_id: u64,
    filter: String,
    metrics: BTreeMap<String, LoggedScore>,
}

/// The metrics of each document, as one filter saw it.
type LmDocuments = BTreeMap<u64, BTreeMap<String, LoggedScore>>;

/// A results file, read.
struct LmLog<'a> {
    path: &'a Path,
    model: String,
    date: String,
    started: Wall,
    results: LmResults,
}

/// Reads a results file and the samples of the tasks that the mapping names.
pub(super) fn read(path: &Path, mapping: &LogMapping) -> Vec<Result<Evaluation, LogProblem>> {
    let log = match LmLog::read(path) {
        Ok(log) => log,
        Err(problem) => return vec![Err(problem)],
    };
    let evaluation = |task: &String| {
        let ((mapped, _), samples) =
            both(mapping.entries(task, &log.model), log.samples_path(task))?;
        log.evaluation(task, mapped, &samples)
    };
    log.results.configs.0.keys().map(evaluation).collect()
}

impl<'a> LmLog<'a> {
    fn read(path: &'a Path) -> Result<Self, LogProblem> {
        let whole = |problem: String| LogProblem::invalid("", problem);
        let file = File::open(path).map_err(|error| whole(format!("cannot be read: {error}")))?;
        let results: LmResults = read_json(file, LARGEST_RESULTS).map_err(|problem| {
            whole(format!(
                "is not a results file of lm-evaluation-harness: {problem}"
            ))
        })?;
        let model = results.model_name.clone().ok_or_else(|| {
            LogProblem::invalid(
                "model_name",
                "is missing; name the model in `--model_args` and evaluate again",
            )
        })?;
        let date = results.date.as_ref().map(|date| date.get().to_owned());
        let seconds = date.as_ref().and_then(|date| date.parse::<f64>().ok());
        let seconds = seconds.filter(|seconds| (0.0..1e11).contains(seconds));
        let Some((date, seconds)) = date.zip(seconds) else {
            return Err(LogProblem::invalid(
                "date",
                "is missing or no time; it is not a results file",
            ));
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range, by the filter above"
        )]
        let started = Wall::from_millis((seconds * 1_000.0) as u64);
        Ok(Self {
            path,
            model,
            date,
            started,
            results,
        })
    }

    fn evaluation(
        &self,
        task: &str,
        mapped: &TaskMapping,
        path: &Path,
    ) -> Result<Evaluation, LogProblem> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut by_filter = samples(path, &name)?;
        if by_filter.is_empty() {
            return Err(LogProblem::invalid(name, "has no samples; evaluate again"));
        }
        let filters = by_filter.keys().cloned().collect::<Vec<_>>().join(", ");
        let filter = match (&mapped.filter, by_filter.len()) {
            (Some(filter), _) => filter.clone(),
            (None, 1) => filters.clone(),
            (None, _) => {
                return Err(LogProblem::missing(format!(
                    "the task {task} has the filters {filters}; name one in the mapping, such as filter = {:?}",
                    by_filter.keys().next().map_or("", String::as_str)
                )));
            }
        };
        let samples = by_filter.remove(&filter).ok_or_else(|| {
            LogProblem::missing(format!(
                "the task {task} has no filter {filter:?}; it has {filters}"
            ))
        })?;
        let expected = self
            .results
            .n_samples
            .0
            .get(task)
            .map_or(samples.len(), |count| count.effective);
        if samples.len() != expected {
            let found = samples.len();
            let problem = format!("has {found} of {expected} samples; copy the file again");
            return Err(LogProblem::invalid(name, problem));
        }
        let mut identity = vec![
            self.model.clone(),
            task.to_owned(),
            self.date.clone(),
            filter,
        ];
        identity.extend(samples.keys().map(u64::to_string));
        Ok(Evaluation {
            identity,
            task: task.to_owned(),
            model: self.model.clone(),
            started: self.started,
            samples: samples
                .into_iter()
                .map(|(doc_id, scores)| evaluated(doc_id, scores))
                .collect(),
            lower_is_better: self.lower_is_better(task),
        })
    }

    /// The file beside the results; its name has the date of theirs.
    fn samples_path(&self, task: &str) -> Result<PathBuf, LogProblem> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let date = stem.rsplit_once('_').map_or("", |(_, date)| date);
        // A task's name is part of a path here.
        let is_plain = !task.contains(['/', '\\', '\0']);
        let name = format!("samples_{task}_{date}.jsonl");
        let path = self.path.with_file_name(&name);
        if is_plain && path.is_file() {
            return Ok(path);
        }
        Err(LogProblem::missing(format!(
            "the task {task} has no {name:?} beside the results; evaluate with `--log_samples`"
        )))
    }

    fn lower_is_better(&self, task: &str) -> BTreeSet<String> {
        let metrics = self
            .results
            .higher_is_better
            .0
            .get(task)
            .and_then(Value::as_object);
        let is_lower = |(_, is_higher): &(&String, &Value)| is_higher.as_bool() == Some(false);
        metrics
            .into_iter()
            .flatten()
            .filter(is_lower)
            .map(|(metric, _)| metric.clone())
            .collect()
    }
}

/// The samples of each filter, by document.
fn samples(path: &Path, name: &str) -> Result<BTreeMap<String, LmDocuments>, LogProblem> {
    let bad = |problem: String| LogProblem::invalid(name, problem);
    let file = File::open(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let mut by_filter = BTreeMap::<_, LmDocuments>::new();
    for (index, sample) in json_values::<LmSample>(file, u64::MAX).enumerate() {
        let line = index + 1;
        let sample = sample.map_err(|error| bad(format!("line {line}: {error}")))?;
        if index >= MOST_SAMPLES {
            return Err(bad(format!("has more than {MOST_SAMPLES} samples")));
        }
        let LmSample {
            doc_id,
            filter,
            metrics,
        } = sample;
        if by_filter
            .entry(filter)
            .or_default()
            .insert(doc_id, metrics)
            .is_some()
        {
            return Err(bad(format!(
                "line {line}: document {doc_id} is in the file twice; evaluate again"
            )));
        }
    }
    Ok(by_filter)
}

fn evaluated(doc_id: u64, metrics: BTreeMap<String, LoggedScore>) -> EvaluatedSample {
    let mut scores = BTreeMap::new();
    for (metric, score) in metrics {
        score.add_as(&metric, &mut scores);
    }
    let name = format!("document {doc_id}");
    EvaluatedSample {
        name,
        outcome: SampleOutcome::Scored(scores),
        latency_ms: None,
        usage: None,
    }
}

impl<'de> Deserialize<'de> for LmSample {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(LmSampleVisitor)
    }
}

struct LmSampleVisitor;

impl<'de> Visitor<'de> for LmSampleVisitor {
    type Value = LmSample;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sample")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<LmSample, A::Error> {
        let mut doc_id = None;
        let mut filter = None;
        let mut listed = None::<Vec<String>>;
        let mut metrics = BTreeMap::new();
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "doc_id" => doc_id = Some(fields.next_value()?),
                "filter" => filter = Some(fields.next_value()?),
                "metrics" => listed = Some(fields.next_value()?),
                known if NOT_METRICS.contains(&known) => drop(fields.next_value::<IgnoredAny>()?),
                _ => {
                    metrics.insert(field, fields.next_value()?);
                    if metrics.len() > MOST_METRICS {
                        return Err(A::Error::custom(format!(
                            "a sample has more than {MOST_METRICS} metrics"
                        )));
                    }
                }
            }
        }
        if let Some(listed) = listed {
            metrics.retain(|metric, _| listed.contains(metric));
        }
        let doc_id = doc_id.ok_or_else(|| A::Error::missing_field("doc_id"))?;
        Ok(LmSample {
            doc_id,
            filter: filter.unwrap_or_else(|| NO_FILTER.to_owned()),
            metrics,
        })
    }
}
