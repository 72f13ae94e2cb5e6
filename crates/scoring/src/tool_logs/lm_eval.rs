//! Logs of lm-evaluation-harness: a results file, and next to it a samples file for each task.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use scoregate_base::clock::Wall;

use super::{
    evaluation::{EvaluatedSample, Evaluation, LogProblem, SampleOutcome, both},
    mapping::{LogMapping, TaskMapping},
    python_json::{json_values, read_json},
    score::LoggedScore,
};

/// The filter of samples that name no filter.
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
    /// Kept as text, because run ids must not depend on how a build parses numbers.
    date: Option<Box<RawValue>>,
    model_name: Option<String>,
    /// The tasks. Groups of tasks are only in `results` and have no samples.
    #[expect(
        clippy::zero_sized_map_values,
        reason = "only the names of an object are read"
    )]
    configs: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    higher_is_better: BTreeMap<String, Value>,
    #[serde(default, rename = "n-samples")]
    n_samples: BTreeMap<String, LmSampleCount>,
}

#[derive(Deserialize)]
struct LmSampleCount {
    effective: usize,
}

/// A line of a samples file: a sample as processed by one filter.
#[derive(Deserialize)]
struct LmSample {
    doc_id: u64,
    filter: Option<String>,
    /// The names of the metrics. Older releases do not list them.
    #[serde(rename = "metrics")]
    listed: Option<Vec<String>>,
    #[serde(flatten)]
    metrics: BTreeMap<String, LoggedScore>,
}

/// The metrics of each document, as processed by one filter.
type LmDocuments = BTreeMap<u64, BTreeMap<String, LoggedScore>>;

/// A parsed results file.
struct LmLog<'a> {
    path: &'a Path,
    model: String,
    date: String,
    started: Wall,
    results: LmResults,
}

/// Reads a results file and the samples of the tasks that the mapping names.
pub fn read(path: &Path, mapping: &LogMapping) -> Vec<Result<Evaluation, LogProblem>> {
    let log = match LmLog::read(path) {
        Ok(log) => log,
        Err(problem) => return vec![Err(problem)],
    };
    let tasks = log.results.configs.keys();
    tasks.map(|task| log.mapped(task, mapping)).collect()
}

impl<'a> LmLog<'a> {
    fn read(path: &'a Path) -> Result<Self, LogProblem> {
        let file = File::open(path)
            .map_err(|error| LogProblem::invalid("", format!("cannot be read: {error}")))?;
        let results: LmResults = read_json(file).map_err(|problem| {
            let problem = format!("is not a results file of lm-evaluation-harness: {problem}");
            LogProblem::invalid("", problem)
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
                "is missing or not a time; this is not a results file",
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

    /// The evaluation of a task, if the mapping names it.
    fn mapped(&self, task: &str, mapping: &LogMapping) -> Result<Evaluation, LogProblem> {
        let entries = mapping.entries(task, &self.model);
        let ((mapped, _), samples) = both(entries, self.samples_path(task))?;
        self.evaluation(task, mapped, &samples)
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
        let by_filter = samples(path, &name)?;
        if by_filter.is_empty() {
            return Err(LogProblem::invalid(name, "has no samples; evaluate again"));
        }
        let (filter, samples) = filtered(by_filter, task, mapped)?;
        let expected = self
            .results
            .n_samples
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

    /// The samples file next to the results file. Both names contain the same date.
    fn samples_path(&self, task: &str) -> Result<PathBuf, LogProblem> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let date = stem.rsplit_once('_').map_or("", |(_, date)| date);
        // The name of the task becomes part of a path.
        let is_plain = !task.contains(['/', '\\', '\0']);
        let name = format!("samples_{task}_{date}.jsonl");
        let path = self.path.with_file_name(&name);
        if is_plain && path.is_file() {
            return Ok(path);
        }
        Err(LogProblem::missing(format!(
            "the task {task} has no {name:?} next to the results; evaluate with `--log_samples`"
        )))
    }

    fn lower_is_better(&self, task: &str) -> BTreeSet<String> {
        let metrics = self
            .results
            .higher_is_better
            .get(task)
            .and_then(Value::as_object);
        metrics
            .into_iter()
            .flatten()
            .filter(|(_, is_higher)| is_higher.as_bool() == Some(false))
            .map(|(metric, _)| metric.clone())
            .collect()
    }
}

/// The samples of each filter, ordered by document.
fn samples(path: &Path, name: &str) -> Result<BTreeMap<String, LmDocuments>, LogProblem> {
    let file = File::open(path)
        .map_err(|error| LogProblem::invalid(name, format!("cannot be read: {error}")))?;
    let mut by_filter = BTreeMap::<_, LmDocuments>::new();
    for (index, sample) in json_values::<LmSample>(file).enumerate() {
        let line = index + 1;
        let sample =
            sample.map_err(|error| LogProblem::invalid(name, format!("line {line}: {error}")))?;
        let doc_id = sample.doc_id;
        let filter = sample
            .filter
            .clone()
            .unwrap_or_else(|| NO_FILTER.to_owned());
        let documents = by_filter.entry(filter).or_default();
        if documents.insert(doc_id, sample.metrics()).is_some() {
            let problem =
                format!("line {line}: document {doc_id} is in the file twice; evaluate again");
            return Err(LogProblem::invalid(name, problem));
        }
    }
    Ok(by_filter)
}

/// The filter in the mapping, or the only filter, with its documents.
fn filtered(
    mut by_filter: BTreeMap<String, LmDocuments>,
    task: &str,
    mapped: &TaskMapping,
) -> Result<(String, LmDocuments), LogProblem> {
    let filters: Vec<String> = by_filter.keys().cloned().collect();
    let filter = match (&mapped.filter, filters.as_slice()) {
        (Some(filter), _) => filter,
        (None, [only]) => only,
        (None, all) => {
            return Err(LogProblem::missing(format!(
                "the task {task} has the filters {}; name one in the mapping, such as filter = {:?}",
                all.join(", "),
                all.first().map_or("", String::as_str)
            )));
        }
    };
    let documents = by_filter.remove(filter).ok_or_else(|| {
        let filters = filters.join(", ");
        LogProblem::missing(format!(
            "the task {task} has no filter {filter:?}; it has {filters}"
        ))
    })?;
    Ok((filter.clone(), documents))
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
        is_limited: false,
    }
}

impl LmSample {
    fn metrics(mut self) -> BTreeMap<String, LoggedScore> {
        self.metrics.retain(|metric, _| match &self.listed {
            Some(listed) => listed.contains(metric),
            None => !NOT_METRICS.contains(&metric.as_str()),
        });
        self.metrics
    }
}
