//! Converts evaluations to runs: one trial for each sample. If there are too many for one run, they are divided into
//! parts of equal size.
//!
//! A run contains only data that the tool measured. If one score of an evaluation cannot be used, the whole evaluation
//! is rejected, because the other scores would be a biased selection.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::{
    Axis, MAX_TRIALS, RunFailure, RunId, RunLine, TestedModel,
    run::{TrialLine, TrialScores},
};

use super::{
    EvaluationTool,
    evaluation::{Evaluation, LogProblem, SampleOutcome, TokenUsage},
    mapping::{LogMapping, ScoreSource, TaskMapping},
    score::LoggedScore,
};

/// Maximum number of unusable samples that a message names.
const NAMED_SAMPLES: usize = 3;
const TOKENS_OF_A_PRICE: f64 = 1e6;

/// The runs of an evaluation.
#[derive(Debug, PartialEq)]
pub struct MappedRuns {
    /// The task, as the tool named it.
    pub task: String,
    /// The model, as the tool named it.
    pub model: String,
    /// The id of the model.
    pub model_id: String,
    /// The suite.
    pub suite: String,
    /// The axes that have scores.
    pub axes: Vec<&'static str>,
    /// When the evaluation started, as in the runs.
    pub time: String,
    /// The runs.
    pub runs: Vec<RunLine>,
    /// Number of trials with scores.
    pub scored: u64,
    /// Number of failed trials, by reason.
    pub failed: BTreeMap<RunFailure, u64>,
    /// Number of samples that were declared invalid and are left out.
    pub invalidated: u64,
    /// Number of trials whose sample the tool stopped at a limit. These trials keep their scores.
    pub limited: u64,
    /// Measurements that are missing from all trials, because the tool or the mapping does not provide them.
    pub absent: Vec<&'static str>,
}

/// Converts an evaluation to runs.
pub fn convert(
    tool: EvaluationTool,
    evaluation: &Evaluation,
    mapping: &LogMapping,
) -> Result<MappedRuns, LogProblem> {
    let (task, model) = mapping.entries(&evaluation.task, &evaluation.model)?;
    let mut converted = MappedRuns {
        task: evaluation.task.clone(),
        model: evaluation.model.clone(),
        model_id: model.id().to_string(),
        suite: task.suite.clone(),
        axes: task.axes.keys().map(|axis| axis.word()).collect(),
        time: evaluation.started.rfc3339(),
        runs: Vec::new(),
        scored: 0,
        failed: BTreeMap::new(),
        invalidated: 0,
        limited: 0,
        absent: Vec::new(),
    };
    let trials = converted.trials(evaluation, task, model)?;
    let all = trials.len();
    let parts = trials.len().div_ceil(MAX_TRIALS).max(1);
    let mut trials = trials.into_iter();
    for part in 0..parts {
        // The part sizes differ by at most one trial, so that no trial has much more weight than another.
        let length = all * (part + 1) / parts - all * part / parts;
        let trials = trials.by_ref().take(length).collect();
        let id = run_id(tool, evaluation, part + 1);
        let run = RunLine::new(id, model, &task.suite, evaluation.started, trials);
        converted.runs.push(run);
    }
    Ok(converted)
}

impl MappedRuns {
    fn trials(
        &mut self,
        evaluation: &Evaluation,
        task: &TaskMapping,
        model: &TestedModel,
    ) -> Result<Vec<TrialLine>, LogProblem> {
        let mut trials = Vec::new();
        let mut problems = Vec::new();
        for sample in &evaluation.samples {
            let scores = match &sample.outcome {
                SampleOutcome::Invalidated => {
                    self.invalidated += 1;
                    continue;
                }
                SampleOutcome::Failed(failure) => Ok(Err(*failure)),
                SampleOutcome::Scored(scores) => axes(task, scores, evaluation),
            };
            match scores {
                Ok(Ok(scores)) => {
                    self.scored += 1;
                    let cost = sample.usage.and_then(|usage| cost(usage, model));
                    trials.push(TrialLine::new(scores, sample.latency_ms, cost));
                }
                Ok(Err(failure)) => {
                    *self.failed.entry(failure).or_default() += 1;
                    trials.push(TrialLine::from_failure(failure));
                }
                Err(problem) => problems.push(format!("{}: {problem}", sample.name)),
            }
            self.limited += u64::from(sample.is_limited);
        }
        if !problems.is_empty() {
            return Err(invalid_samples(evaluation, &problems));
        }
        self.check_completeness(evaluation, trials.len())?;
        if self.scored > 0 && trials.iter().all(|trial| trial.latency_ms.is_none()) {
            self.absent.push("latency");
        }
        if self.scored > 0 && trials.iter().all(|trial| trial.cost.is_none()) {
            self.absent.push("cost");
        }
        Ok(trials)
    }

    /// Checks that the trials are not a biased selection of the samples.
    fn check_completeness(&self, evaluation: &Evaluation, trials: usize) -> Result<(), LogProblem> {
        let task = &evaluation.task;
        if trials == 0 {
            let problem = format!("all samples of the task {task} were declared invalid");
            return Err(LogProblem::skipped(problem));
        }
        let harness = self
            .failed
            .get(&RunFailure::Harness)
            .copied()
            .unwrap_or_default();
        if harness * 2 > trials as u64 {
            return Err(LogProblem::skipped(format!(
                "the evaluation of {task} is unfinished: {harness} of {trials} samples failed in the harness, and the others \
                 alone would be a biased selection; complete it and import the new log"
            )));
        }
        Ok(())
    }
}

/// The first sample problems, and the number of further problems.
fn invalid_samples(evaluation: &Evaluation, problems: &[String]) -> LogProblem {
    let (named, others) = problems.split_at(NAMED_SAMPLES.min(problems.len()));
    let named = named.join("; ");
    let problem = match others.len() {
        0 => named,
        more => format!("{named}; and {more} more samples"),
    };
    LogProblem::invalid(format!("task {}", evaluation.task), problem)
}

/// The cost reported by the tool, or the cost of the tokens at the prices in the mapping. Cached tokens have different
/// prices, so their cost is unknown.
fn cost(usage: TokenUsage, model: &TestedModel) -> Option<f64> {
    if usage.cost.is_some() {
        return usage.cost;
    }
    let input = model.price_input()?;
    let output = model.price_output()?;
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 tokens")]
    let dollars = (usage.input as f64 * input + usage.output as f64 * output) / TOKENS_OF_A_PRICE;
    (usage.cached == 0).then_some(dollars)
}

/// The scores on the axes. If an axis has no score, the trial has failed.
fn axes(
    task: &TaskMapping,
    scores: &BTreeMap<String, LoggedScore>,
    evaluation: &Evaluation,
) -> Result<Result<TrialScores, RunFailure>, String> {
    let mut axes = TrialScores::default();
    let mut failure = None::<RunFailure>;
    for (axis, source) in &task.axes {
        let (name, score) = source.find(*axis, scores)?;
        if evaluation.lower_is_better.contains(name) && !source.is_reversed() {
            return Err(format!(
                "a lower {name} is better; give axes.{} a scale with the worst value first, such as scale = [1, 0]",
                axis.word()
            ));
        }
        match source.normalized(*axis, name, score)? {
            Ok(score) => {
                axes.set(*axis, score);
            }
            // A reason that counts against the model takes precedence over a reason that does not.
            Err(reason) => failure = Some(failure.map_or(reason, |other| other.min(reason))),
        }
    }
    Ok(failure.map_or(Ok(axes), Err))
}

impl ScoreSource {
    fn find<'a>(
        &self,
        axis: Axis,
        scores: &'a BTreeMap<String, LoggedScore>,
    ) -> Result<(&'a String, &'a LoggedScore), String> {
        let axis = axis.word();
        let names: Vec<&str> = scores.keys().map(String::as_str).collect();
        let names = names.join(", ");
        if self.score.is_none() && scores.len() > 1 {
            return Err(format!("has the scores {names}; name one in axes.{axis}"));
        }
        let found = match &self.score {
            Some(name) => scores.get_key_value(name),
            None => scores.iter().next(),
        };
        found.ok_or_else(|| {
            let wanted = self.score.as_ref();
            let wanted = wanted.map_or(String::new(), |name| format!(" {name:?}"));
            let names = if names.is_empty() { "none" } else { &names };
            format!("has no score{wanted} for axes.{axis}; it has {names}")
        })
    }

    fn is_reversed(&self) -> bool {
        self.scale.is_some_and(|[worst, best]| best < worst)
    }

    /// The score from 0 to 1, or the reason why the sample has none.
    fn normalized(
        &self,
        axis: Axis,
        name: &str,
        score: &LoggedScore,
    ) -> Result<Result<f64, RunFailure>, String> {
        let axis = axis.word();
        let number = match score {
            LoggedScore::Unscored(failure) => return Ok(Err(*failure)),
            LoggedScore::Number(number) => *number,
            LoggedScore::Word(word) => match self.values.get(word).copied().or_else(|| known_word(word)) {
                Some(score) => return Ok(Ok(score)),
                None => word.parse().map_err(|_| {
                    format!("{name} is {word:?}; give axes.{axis} its score, such as values = {{ {word:?} = 1.0 }}")
                })?,
            },
            LoggedScore::NotANumber | LoggedScore::Several(_) => {
                return Err(format!("{name} is not a number; use another score for axes.{axis}"));
            }
        };
        let [worst, best] = self.scale.unwrap_or([0.0, 1.0]);
        // Turns a negative zero into zero.
        let score = (number - worst) / (best - worst) + 0.0;
        if (0.0..=1.0).contains(&score) {
            return Ok(Ok(score));
        }
        Err(format!(
            "{name} is {number}, outside [{worst}, {best}]; give axes.{axis} its scale = [worst, best]"
        ))
    }
}

/// The words that Inspect AI's metrics convert to numbers.
fn known_word(word: &str) -> Option<f64> {
    match word {
        "C" => Some(1.0),
        "P" => Some(0.5),
        "I" | "N" => Some(0.0),
        other => match other.to_lowercase().as_str() {
            "yes" | "true" => Some(1.0),
            "no" | "false" => Some(0.0),
            _ => None,
        },
    }
}

/// The id is the same in every import of the evaluation. Tools other than Inspect AI have no ids, so a hash of the
/// identity is used.
fn run_id(tool: EvaluationTool, evaluation: &Evaluation, part: usize) -> RunId {
    let task = &evaluation.task;
    if let EvaluationTool::Inspect = tool
        && let [id] = evaluation.identity.as_slice()
        && !id.is_empty()
        && !task.is_empty()
        && let Some(plain) = RunId::new(&format!("{}:{id}:{task}:{part}", tool.word()))
    {
        return plain;
    }
    let mut hash = Sha256::new();
    for text in evaluation.identity.iter().chain([task]) {
        // The length is included, so that no two lists of strings result in the same bytes.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let digest = HEXLOWER.encode(hash.finalize().get(..16).unwrap_or_default());
    RunId::new(&format!("{}:{digest}:{part}", tool.word())).expect("it is short and visible")
}
