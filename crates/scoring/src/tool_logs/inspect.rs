//! Logs of Inspect AI: `.eval` and JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read as _, Seek as _},
    path::Path,
};

use serde::{Deserialize, de::IgnoredAny};

use crate::RunFailure;
use scoregate_base::clock::Wall;

use super::{
    eval_archive::EvalArchive,
    evaluation::{EvaluatedSample, Evaluation, LogProblem, SampleOutcome, TokenUsage},
    mapping::LogMapping,
    python_json::read_json,
    sample_error::LoggedException,
    score::LoggedScore,
};

/// The first bytes of a zip file.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// A log, or the header of an `.eval` file.
#[derive(Deserialize)]
struct InspectLog {
    status: String,
    eval: InspectSpec,
    results: Option<InspectResults>,
    #[serde(default)]
    stats: InspectStats,
    samples: Option<Vec<InspectSample>>,
}

/// The journal of an `.eval` file whose evaluation has not ended.
#[derive(Deserialize)]
struct InspectStart {
    eval: InspectSpec,
}

#[derive(Deserialize)]
struct InspectSpec {
    #[serde(default)]
    eval_id: String,
    #[serde(default)]
    run_id: String,
    #[serde(default)]
    task_id: String,
    created: String,
    task: String,
    model: String,
}

#[derive(Deserialize)]
struct InspectResults {
    #[serde(default)]
    completed_samples: usize,
}

#[derive(Default, Deserialize)]
struct InspectStats {
    #[serde(default)]
    started_at: String,
}

#[derive(Deserialize)]
struct InspectSample {
    id: InspectSampleId,
    epoch: u64,
    scores: Option<BTreeMap<String, InspectScore>>,
    model_usage: Option<BTreeMap<String, InspectUsage>>,
    total_time: Option<f64>,
    working_time: Option<f64>,
    invalidation: Option<IgnoredAny>,
    limit: Option<IgnoredAny>,
    error: Option<LoggedException>,
}

#[derive(Deserialize)]
struct InspectScore {
    value: LoggedScore,
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InspectUsage {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_cache_write: Option<u64>,
    input_tokens_cache_read: Option<u64>,
    total_cost: Option<f64>,
}

/// Numbers sort before texts.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(
    untagged,
    expecting = "the id of a sample is neither a number nor a string"
)]
enum InspectSampleId {
    Number(i64),
    Large(u64),
    Text(String),
}

/// Reads a log.
pub fn read(path: &Path, mapping: &LogMapping) -> Result<Evaluation, LogProblem> {
    let unreadable =
        |error: std::io::Error| LogProblem::invalid("", format!("cannot be read: {error}"));
    let mut file = File::open(path).map_err(unreadable)?;
    let mut first = Vec::new();
    (&mut file)
        .take(ZIP.len() as u64)
        .read_to_end(&mut first)
        .map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    if first == ZIP {
        return read_eval(&EvalArchive::open(file)?, mapping);
    }
    let log: InspectLog = read_json(file).map_err(|problem| {
        LogProblem::invalid("", format!("is not a log of Inspect AI: {problem}"))
    })?;
    check(&log.status, &log.eval, mapping)?;
    evaluation(log)
}

fn read_eval(archive: &EvalArchive, mapping: &LogMapping) -> Result<Evaluation, LogProblem> {
    let Some(mut log) = archive.read::<InspectLog>("header.json")? else {
        if let Some(start) = archive.read::<InspectStart>("_journal/start.json")? {
            check("started", &start.eval, mapping)?;
        }
        return Err(LogProblem::invalid(
            "",
            "has no header.json; it is not a log of Inspect AI",
        ));
    };
    check(&log.status, &log.eval, mapping)?;
    let names = archive.names().filter(|name| {
        name.strip_prefix("samples/")
            .is_some_and(|rest| rest.strip_suffix(".json").is_some())
    });
    let mut samples = Vec::new();
    for name in names {
        samples.extend(archive.read::<InspectSample>(name)?);
    }
    log.samples = Some(samples);
    evaluation(log)
}

/// Checks whether the evaluation should be imported.
fn check(status: &str, spec: &InspectSpec, mapping: &LogMapping) -> Result<(), LogProblem> {
    mapping.entries(&spec.task, &spec.model)?;
    let unfinished = match status {
        "success" => return Ok(()),
        "started" => "was not finished",
        "error" => "was stopped by an error",
        "cancelled" => "was cancelled",
        other => {
            return Err(LogProblem::invalid(
                "status",
                format!("{:?} is unknown", shortened(other)),
            ));
        }
    };
    Err(LogProblem::skipped(format!(
        "the evaluation of {} {unfinished}; complete it with `inspect eval-retry` and import the new log",
        shortened(&spec.task)
    )))
}

fn evaluation(log: InspectLog) -> Result<Evaluation, LogProblem> {
    let mut samples = log.samples.unwrap_or_default();
    let expected = log
        .results
        .map_or(1, |results| results.completed_samples.max(1));
    if samples.len() < expected {
        let problem = format!(
            "has {} of {expected} samples; evaluate again without `--no-log-samples`",
            samples.len()
        );
        return Err(LogProblem::invalid("samples", problem));
    }
    samples.sort_by(|one, other| one.key().cmp(&other.key()));
    let mut pairs = samples.iter().zip(samples.iter().skip(1));
    if let Some((twice, _)) = pairs.find(|(one, next)| one.key() == next.key()) {
        let problem = "is in the log twice; write the log again with Inspect AI";
        return Err(LogProblem::invalid(twice.name(), problem));
    }
    let spec = log.eval;
    let started = started(&log.stats, &spec)?;
    let samples = samples
        .into_iter()
        .map(|sample| sample.evaluated(&spec.model))
        .collect();
    let identity = if spec.eval_id.is_empty() {
        vec![spec.run_id, spec.task_id, spec.created]
    } else {
        vec![spec.eval_id]
    };
    Ok(Evaluation {
        identity,
        task: spec.task,
        model: spec.model,
        started,
        samples,
        lower_is_better: BTreeSet::new(),
    })
}

fn started(stats: &InspectStats, spec: &InspectSpec) -> Result<Wall, LogProblem> {
    let text = if stats.started_at.is_empty() {
        &spec.created
    } else {
        &stats.started_at
    };
    Wall::parse_rfc3339(text).ok_or_else(|| {
        let problem = format!("{:?} is not a time, or has no time zone", shortened(text));
        LogProblem::invalid("stats.started_at", problem)
    })
}

impl InspectSample {
    /// The key of the sample, which is unique in an evaluation.
    fn key(&self) -> (u64, &InspectSampleId) {
        (self.epoch, &self.id)
    }

    fn name(&self) -> String {
        let id = match &self.id {
            InspectSampleId::Number(number) => number.to_string(),
            InspectSampleId::Large(number) => number.to_string(),
            InspectSampleId::Text(text) => format!("{:?}", shortened(text)),
        };
        format!("sample {id}, epoch {}", self.epoch)
    }

    fn evaluated(self, model: &str) -> EvaluatedSample {
        let name = self.name();
        let outcome = match (self.invalidation, self.error) {
            (Some(_), _) => SampleOutcome::Invalidated,
            // A failed sample may have scores too, but they are for an incomplete response.
            (None, Some(exception)) => SampleOutcome::Failed(exception.failure()),
            (None, None) => {
                let mut scores = BTreeMap::new();
                for (scorer, score) in self.scores.unwrap_or_default() {
                    score.logged().add_as(&scorer, &mut scores);
                }
                SampleOutcome::Scored(scores)
            }
        };
        let usage = self
            .model_usage
            .unwrap_or_default()
            .get(model)
            .map(InspectUsage::logged);
        // Working time excludes the time that the sample waited for a rate limit or for other samples.
        let seconds = self.working_time.or(self.total_time);
        EvaluatedSample {
            name,
            outcome,
            latency_ms: seconds.map(|seconds| (seconds * 1_000.0).round()),
            usage,
            is_limited: self.limit.is_some(),
        }
    }
}

impl InspectUsage {
    fn logged(&self) -> TokenUsage {
        let read = self.input_tokens_cache_read.unwrap_or(0);
        let written = self.input_tokens_cache_write.unwrap_or(0);
        TokenUsage {
            input: self.input_tokens,
            output: self.output_tokens,
            cached: read.saturating_add(written),
            cost: self.total_cost,
        }
    }
}

impl InspectScore {
    fn logged(self) -> LoggedScore {
        match (self.value, self.reason.as_deref()) {
            (
                LoggedScore::Unscored(_),
                Some("invalid_response_format" | "no_response" | "refusal"),
            ) => LoggedScore::Unscored(RunFailure::Unusable),
            (value, _) => value,
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}
